"""The memories of an AI as pandas DataFrames: load, audit, plan, write back, undo.

Everything that people use is reachable from here::

    import memframe as mf

    client = mf.connect()
    access = mf.open_access(client, request_id)
    memories = mf.load_memories(access)

Names are loaded when first used, so that importing memframe costs little more than importing pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memframe.errors import (
    AccessError,
    AnswerTooLargeError,
    AuthError,
    ConfigError,
    ConflictError,
    DecisionTimeout,
    FrameError,
    IncompleteRunError,
    InvalidError,
    JournalError,
    MemframeError,
    NoAnswerError,
    NotFoundError,
    OAuthError,
    PlanError,
    ProtocolError,
    RateLimitError,
    SealError,
    ServiceError,
    StalePlanError,
)
from memframe.secret import Secret

if TYPE_CHECKING:
    from memframe import plot, service
    from memframe.access import Access, open_access
    from memframe.apply import Run, apply_plan, create_memories, push_memories, resume_run, update_memories
    from memframe.archive import Changes, export_memories, forget_memories, load_archive, refresh_archive
    from memframe.audit import Audit, ChatJudge, Policy, audit_memories
    from memframe.clean import CleanedFile, clean_file
    from memframe.cleanup import plan_cleanup, write_changes
    from memframe.client import Client, connect, wait_for_decision
    from memframe.fleet import (
        Fleet,
        FleetFolder,
        FleetPlans,
        FleetRun,
        apply_fleet,
        audit_fleet,
        export_fleet,
        load_fleet,
        plan_fleet,
    )
    from memframe.history import diff_archives
    from memframe.journal import list_runs, purge_runs
    from memframe.load import (
        iter_memories,
        load_access_requests,
        load_memories,
        load_memory,
        load_tag,
        load_tags,
    )
    from memframe.oauth import OAuthFlow
    from memframe.panel import Panel
    from memframe.plan import NULL, Plan, plan_changes, plan_deletes
    from memframe.readers import read_memories
    from memframe.restore import plan_restore
    from memframe.review import Review, review
    from memframe.signin import SignIn
    from memframe.snapshots import list_snapshots
    from memframe.undo import plan_reseal, plan_undo
    from memframe.versions import show_versions
    from memframe.wire import AccessRequest, Credentials, OAuthTokens

_ROOMS = {
    "access": "Access open_access",
    "apply": "Run apply_plan create_memories push_memories resume_run update_memories",
    "archive": "Changes export_memories forget_memories load_archive refresh_archive",
    "audit": "Audit ChatJudge Policy audit_memories",
    "clean": "CleanedFile clean_file",
    "cleanup": "plan_cleanup write_changes",
    "client": "Client connect wait_for_decision",
    "fleet": "Fleet FleetFolder FleetPlans FleetRun apply_fleet audit_fleet export_fleet load_fleet plan_fleet",
    "history": "diff_archives",
    "journal": "list_runs purge_runs",
    "load": "iter_memories load_access_requests load_memories load_memory load_tag load_tags",
    "oauth": "OAuthFlow",
    "panel": "Panel",
    "plan": "NULL Plan plan_changes plan_deletes",
    "readers": "read_memories",
    "restore": "plan_restore",
    "review": "Review review",
    "signin": "SignIn",
    "snapshots": "list_snapshots",
    "undo": "plan_reseal plan_undo",
    "versions": "show_versions",
    "wire": "AccessRequest Credentials OAuthTokens",
}
"""Modules, and the names that each of them defines."""

_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
_SUBMODULES = {"plot", "service"}

__all__ = [
    "NULL",
    "Access",
    "AccessError",
    "AccessRequest",
    "AnswerTooLargeError",
    "Audit",
    "AuthError",
    "Changes",
    "ChatJudge",
    "CleanedFile",
    "Client",
    "ConfigError",
    "ConflictError",
    "Credentials",
    "DecisionTimeout",
    "Fleet",
    "FleetFolder",
    "FleetPlans",
    "FleetRun",
    "FrameError",
    "IncompleteRunError",
    "InvalidError",
    "JournalError",
    "MemframeError",
    "NoAnswerError",
    "NotFoundError",
    "OAuthError",
    "OAuthFlow",
    "OAuthTokens",
    "Panel",
    "Plan",
    "PlanError",
    "Policy",
    "ProtocolError",
    "RateLimitError",
    "Review",
    "Run",
    "SealError",
    "Secret",
    "ServiceError",
    "SignIn",
    "StalePlanError",
    "apply_fleet",
    "apply_plan",
    "audit_fleet",
    "audit_memories",
    "clean_file",
    "connect",
    "create_memories",
    "diff_archives",
    "export_fleet",
    "export_memories",
    "forget_memories",
    "iter_memories",
    "list_runs",
    "list_snapshots",
    "load_access_requests",
    "load_archive",
    "load_fleet",
    "load_memories",
    "load_memory",
    "load_tag",
    "load_tags",
    "open_access",
    "plan_changes",
    "plan_cleanup",
    "plan_deletes",
    "plan_fleet",
    "plan_reseal",
    "plan_restore",
    "plan_undo",
    "plot",
    "purge_runs",
    "push_memories",
    "read_memories",
    "refresh_archive",
    "resume_run",
    "review",
    "service",
    "show_versions",
    "update_memories",
    "wait_for_decision",
    "write_changes",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - takes most of the time of `import memframe`

        return version("memframe")
    if name in _SUBMODULES:
        return import_module(f"memframe.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'memframe' has no attribute {name!r}")
    value = getattr(import_module(f"memframe.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
