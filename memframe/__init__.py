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
    from memframe.access import Access, open_access, wait_for_decision
    from memframe.archive import export_memories, load_archive
    from memframe.audit import Audit, audit_memories
    from memframe.client import Client, connect
    from memframe.load import (
        iter_memories,
        load_access_requests,
        load_memories,
        load_memory,
        load_tag,
        load_tags,
    )
    from memframe.oauth import OAuthFlow
    from memframe.signin import SignIn
    from memframe.wire import AccessRequest, Credentials, OAuthTokens

_ROOMS = {
    "access": ("Access", "open_access", "wait_for_decision"),
    "archive": ("export_memories", "load_archive"),
    "audit": ("Audit", "audit_memories"),
    "client": ("Client", "connect"),
    "load": (
        "iter_memories",
        "load_access_requests",
        "load_memories",
        "load_memory",
        "load_tag",
        "load_tags",
    ),
    "oauth": ("OAuthFlow",),
    "signin": ("SignIn",),
    "wire": ("AccessRequest", "Credentials", "OAuthTokens"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
_SUBMODULES = {"plot", "service"}

__all__ = [
    "Access",
    "AccessError",
    "AccessRequest",
    "Audit",
    "AuthError",
    "Client",
    "ConfigError",
    "ConflictError",
    "Credentials",
    "DecisionTimeout",
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
    "PlanError",
    "ProtocolError",
    "RateLimitError",
    "SealError",
    "Secret",
    "ServiceError",
    "SignIn",
    "StalePlanError",
    "audit_memories",
    "connect",
    "export_memories",
    "iter_memories",
    "load_access_requests",
    "load_archive",
    "load_memories",
    "load_memory",
    "load_tag",
    "load_tags",
    "open_access",
    "plot",
    "service",
    "wait_for_decision",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"memframe.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'memframe' has no attribute {name!r}")
    value = getattr(import_module(f"memframe.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
