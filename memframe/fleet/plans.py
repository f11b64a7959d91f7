"""Plan the cleanup of every user that a policy allows without a person, and apply the plans.

A plan is made from a new audit and saved in the folder of the fleet, sealed with the local data key. The journal of its
run is in the run directory, like every journal, and is found by the id of the plan. So a repeated `apply_fleet` resumes
interrupted runs, begins missing ones, and skips finished ones. Whenever it was killed, nothing is lost and nothing is
written twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import asdict, replace

from memframe.access import Access
from memframe.apply import Run, apply_plan, resume_run
from memframe.archive.formats import open_by_bytes, raise_write_errors
from memframe.audit import audit_memories
from memframe.audit.policy import Limits, Policy, PolicyOption
from memframe.cleanup import plan_cleanup
from memframe.cleanup.proposals import PLANNED
from memframe.client import Client
from memframe.client.responses import canonical_id
from memframe.decisions import DecisionsByMemory
from memframe.display import html_card, number_of
from memframe.errors import ConfigError, FrameError, JournalError, MemframeError, PlanError, check_kind
from memframe.files import private_folder, process_lock
from memframe.fleet.folder import AUDIT_FIRST, FleetFolder
from memframe.fleet.per_user import PerUser, decisions_of, read_fleet_decisions, read_policies
from memframe.fleet.run import list_users, process_in_threads
from memframe.fleet.work import (
    FINDINGS,
    FINDINGS_FILE,
    PLANS,
    FleetUser,
    with_access,
)
from memframe.journal import SETTLED, STATUSES, Journal, RunDirectory, RunNote
from memframe.listing import check_count
from memframe.load import load_memories, load_tags
from memframe.plan import Plan
from memframe.plan.permitted import check_limits, leave_out_unallowed
from memframe.progress import Progress, ProgressOption

PLAN_FILE = "cleanup.plan"


class UserPlan(Struct, frozen=True):
    """The plan of one user; ``status`` is planned, nothing, unfinished, revoked or failed."""

    user_id: str
    request_id: str
    status: Literal["planned", "nothing", "unfinished", "revoked", "failed"]
    n_changes: int = 0
    n_deletes: int = 0
    n_left: int = 0
    """Proposals that the plan leaves out."""
    error: str | None = None


class UserRun(Struct, frozen=True):
    """The run of one user; ``status`` is done, open, refused, revoked or failed."""

    user_id: str
    request_id: str
    status: Literal["done", "open", "refused", "revoked", "failed"]
    done: int = 0
    recovered: int = 0
    rejected: int = 0
    conflict: int = 0
    unknown: int = 0
    planned: int = 0
    journal: str | None = None
    error: str | None = None


class _ByUser:
    """A table with one row per user, and its counts."""

    _row: type[Struct]
    _counted: tuple[str, ...]

    def __init__(self, rows: Iterable[Struct]) -> None:
        columns = self._row.__struct_fields__
        dtypes = {name: "int64" if name in self._counted else "str" for name in columns}
        self.outcomes = pd.DataFrame([asdict(row) for row in rows], columns=[*columns]).astype(dtypes)

    @property
    def users(self) -> dict[str, int]:
        """Count users by status."""
        return dict(Counter(self.outcomes["status"].tolist()))

    @property
    def counts(self) -> dict[str, int]:
        """Add up the counts of all users."""
        return {name: int(self.outcomes[name].sum()) for name in self._counted}

    def __repr__(self) -> str:
        parts = (f"{n:,} {name}" for name, n in (self.counts | {"users": len(self.outcomes)}).items() if n)
        return f"<memframe.{type(self).__name__}: {', '.join(parts) or 'no users'}>"

    def _repr_html_(self) -> str:
        return html_card(type(self).__name__, {**self.counts, "users": self.users})


class FleetPlans(_ByUser):
    """The plans of a fleet, made by `plan_fleet`.

    Attributes
    ----------
    outcomes : DataFrame
        One row per user for whom there was something to plan: ``user_id request_id status n_changes n_deletes n_left
        error``. ``status`` is planned; nothing, if the policy allows none of it; unfinished, if an earlier plan has to
        be applied first; revoked; or failed.
    """

    _row, _counted = UserPlan, ("n_changes", "n_deletes", "n_left")


class FleetRun(_ByUser):
    """The balance of all runs of a fleet, made by `apply_fleet`.

    Attributes
    ----------
    outcomes : DataFrame
        One row per user: ``user_id request_id status done recovered rejected conflict unknown planned journal
        error``. ``status`` is done; open, if changes are planned or unknown, and the next `apply_fleet` continues;
        refused, if some were rejected or in conflict; revoked; or failed.
    """

    _row, _counted = UserRun, STATUSES


def plan_fleet(
    client: Client,
    path: str | PathLike[str],
    *,
    policy: PolicyOption,
    decisions: str | PathLike[str] | None = None,
    workers: int = 8,
    progress: ProgressOption = "auto",
) -> FleetPlans:
    """Plan for each user what the last audit proposes and a policy allows without a person. Nothing is written.

    Users with such findings in the folder are loaded and audited again. A plan leaves out changes that the policy does
    not allow, changes of protected memories, and changes that would lose a value that no other memory holds. If a plan
    exceeds the policy's limits, this user fails.

    Parameters
    ----------
    client : Client
    path : str or Path
        The folder of an earlier `audit_fleet`. Plans are saved in it, one per user, sealed for you on this machine.
        They replace those of an earlier call, except plans whose run has begun and not finished.
    policy : Policy or Path
        Its ``[allow]`` says what may be planned; a folder may have policies for single users, as in `audit_fleet`.
    decisions : str or Path, optional
        As in `audit_fleet`; rejected proposals are not planned.
    workers : int
        Threads.
    progress : {"auto", True, False} or callable
        Progress display, counted in users.

    Returns
    -------
    FleetPlans

    Raises
    ------
    ConfigError
        The policy cannot be read, or allows nothing.
    FrameError
        The folder contains no audit of a fleet, or cannot be written.
    JournalError
        The decisions cannot be read, or another process plans or applies in this folder.

    Examples
    --------
    >>> from memframe import audit_fleet
    >>> nights = audit_fleet(client, folder / "nightly", checks=["exact_duplicate"])
    >>> path = folder / "memframe.toml"
    >>> _ = path.write_text('[allow]\\nactions = ["delete"]\\nchecks = ["exact_duplicate"]\\n')
    >>> plans = plan_fleet(client, nights.path, policy=path)
    >>> plans.users
    {'planned': 1}
    >>> run = apply_fleet(client, nights.path, policy=path)
    >>> run.counts["done"] == plans.counts["n_changes"]
    True
    """
    check_kind("client", client, Client)
    check_count("workers", workers, 1)
    rules, folder = _read_rules(policy), FleetFolder(path)
    decided = read_fleet_decisions(decisions)
    if not folder.folders(FINDINGS):
        raise FrameError(f"{folder.path} contains no audit of a fleet", hint=AUDIT_FIRST)
    with _locked(folder):
        places = [place for place in folder.folders(FINDINGS) if _has_work(folder, place, rules)]
        due = _approved(client, folder, places, rules, decided)
        plan = partial(_plan_user, client, folder=folder, rules=rules, decisions=decided)
        return FleetPlans(_in_order(client, due, plan, workers, progress))


def apply_fleet(
    client: Client,
    path: str | PathLike[str],
    *,
    policy: PolicyOption,
    workers: int = 4,
    settle_s: float = 2.0,
    progress: ProgressOption = "auto",
) -> FleetRun:
    """Apply the plans of `plan_fleet`, each with its own journal, and return one balance.

    The policy takes the place of a confirmation: no number of deletes has to be confirmed. If a plan is stale, or has a
    change that the policy does not allow now, this user fails, and nothing of the plan is sent. After an interruption,
    repeat the call: it finds out what was written, and writes the rest.

    Parameters
    ----------
    client : Client
    path : str or Path
        The folder with the plans.
    policy : Policy or Path
    workers : int
        Users at a time.
    settle_s : float
        As in `apply_plan`.
    progress : {"auto", True, False} or callable
        Progress display, counted in users.

    Returns
    -------
    FleetRun
        Users whose run is already finished are counted from their journals, without a request.

    Raises
    ------
    ConfigError
        The policy cannot be read, or allows nothing.
    FrameError
        There is no such folder.
    JournalError
        Another process plans or applies in this folder.

    Examples
    --------
    >>> from memframe import audit_fleet
    >>> from memframe.audit import Policy
    >>> from memframe.audit.policy import Allow
    >>> nights = audit_fleet(client, folder / "nightly", checks=["exact_duplicate"])
    >>> apply_fleet(client, nights.path, policy=Policy(allow=Allow(actions=("delete",))))  # nothing was planned
    <memframe.FleetRun: no users>
    """
    check_kind("client", client, Client)
    check_count("workers", workers, 1)
    rules, folder = _read_rules(policy), FleetFolder(path)
    if not folder.path.is_dir():
        raise FrameError(f"there is no folder {folder.path}", hint=AUDIT_FIRST)
    with _locked(folder):
        due = _approved(client, folder, folder.folders(PLANS), rules)
        apply = partial(_apply_user, client, folder=folder, rules=rules, settle_s=settle_s)
        return FleetRun(_in_order(client, due, apply, workers, progress))


def _read_rules(policy: PolicyOption) -> PerUser[Policy]:
    rules = read_policies(policy)
    if not any(one and one.allow.actions for one in (rules.common, *rules.own.values())):
        raise ConfigError(
            "policy: plans of a fleet contain only what [allow] of a policy names, and it names no actions: "
            'add actions = ["delete"] or others there'
        )
    return rules


@contextmanager
def _locked(folder: FleetFolder) -> Iterator[None]:
    """Let only one process plan or apply in a folder; an error names the file that cannot be written."""
    with (
        raise_write_errors(folder.path),
        process_lock(folder.path / ".plans.lock", what=f"the plans of {folder.path}"),
    ):
        yield


def _approved(
    client: Client, folder: FleetFolder, places: Iterable[Path], *per_user: PerUser[Any]
) -> list[FleetUser]:
    """Return the users of folders, with an empty request id unless one is approved; delete revoked users' results."""
    wanted = [folder.user_of(place) for place in places]
    approved, _ = list_users(client, folder, *per_user)
    by_id = {canonical_id(user.user_id): user for user in approved if user.user_id}
    return [by_id.get(user_id) or FleetUser("", user_id) for user_id in wanted]


def _in_order(
    client: Client, users: list[FleetUser], process: Any, workers: int, progress: ProgressOption
) -> list[Any]:
    """Process users in threads, with a progress display; return their rows in the order of the folder."""
    rows = []
    with Progress(progress, total=len(users), text="users") as bar:
        for row in process_in_threads(client, users, process, workers=workers):
            if row is not None:
                rows.append(row)
            bar.step()
    return sorted(rows, key=lambda row: row.user_id)


def _has_work(folder: FleetFolder, place: Path, rules: PerUser[Policy]) -> bool:
    """Return True if a user has findings that may become changes, or an earlier plan; others need not be loaded."""
    user_id = folder.user_of(place)
    allow = (rules.of(user_id) or Policy()).allow
    if (folder.place(PLANS, user_id) / PLAN_FILE).exists():
        return True
    if not allow.actions:
        return False
    with open_by_bytes(place / FINDINGS_FILE) as file:
        found = pq.ParquetFile(file).read(["check", "action"]).to_pydict()
    return any(
        action in PLANNED and (allow.checks is None or check in allow.checks)
        for check, action in zip(found["check"], found["action"], strict=True)
    )


# -- one user


_NO_REQUEST = "has no approved access request now: the plan for this user is not applied"


def _plan_user(
    client: Client,
    user: FleetUser,
    *,
    folder: FleetFolder,
    rules: PerUser[Policy],
    decisions: PerUser[DecisionsByMemory],
) -> UserPlan:
    row = partial(UserPlan, str(user.user_id), user.request_id)
    if not user.request_id:
        return row("revoked", error=_NO_REQUEST)
    file = folder.place(PLANS, str(user.user_id)) / PLAN_FILE

    def make(access: Access) -> UserPlan:
        if file.exists() and _is_unfinished(access.client, Plan.load(file)):
            return row("unfinished", error="an earlier plan was not applied completely: apply it first")
        plan = _plan_allowed(access, rules.of(access.user_id) or Policy(), decisions)
        if plan:
            for place in (file.parent.parent, file.parent):
                private_folder(place)
            plan.save(file)
        else:
            file.unlink(missing_ok=True)
        n_deletes = plan.counts.get("delete", 0)
        return row("planned" if plan else "nothing", len(plan), n_deletes, len(plan.left))

    return with_access(client, user, make, lambda failure, error: row(failure, error=error))


def _plan_allowed(access: Access, rules: Policy, decisions: PerUser[DecisionsByMemory]) -> Plan:
    """Plan what a new audit proposes and the policy allows; limits apply to what is left after that."""
    memories = load_memories(access, progress=False)
    audit = audit_memories(
        memories,
        tags=load_tags(access),
        decisions=decisions_of(decisions, access.user_id, memories["id"].tolist()),
    )
    within = replace(rules, limits=Limits())
    share = rules.limits.delete_share
    plan = plan_cleanup(access, audit, on_conflict="theirs", max_share=share, policy=within)
    plan = leave_out_unallowed(plan, rules)
    check_limits(plan, rules.limits, lambda: len(memories))
    return plan


def _is_unfinished(client: Client, plan: Plan) -> bool:
    note = RunDirectory(client.runtime.folder).of_plan(plan.id)
    return note is not None and not note.is_purged and not _is_finished(_count_states(client, note))


def _is_finished(counts: Mapping[str, int]) -> bool:
    return not any(n for status, n in counts.items() if status not in SETTLED)


def _count_states(client: Client, note: RunNote) -> dict[str, Any]:
    with Journal.open(note.place, client.runtime.open_local_cipher()) as journal:
        n_of = Counter(operation.status for operation in journal.operations())
    return {status: n_of[status] for status in STATUSES}


def _apply_user(
    client: Client, user: FleetUser, *, folder: FleetFolder, rules: PerUser[Policy], settle_s: float
) -> UserRun | None:
    """Begin, resume or count the run of one user; None if there is no plan, or its journal was purged."""
    row = partial(UserRun, str(user.user_id), user.request_id)
    try:
        file = folder.place(PLANS, str(user.user_id)) / PLAN_FILE
        if not file.exists():
            return row("revoked", error=_NO_REQUEST) if not user.request_id else None
        plan = Plan.load(file)
        note = _find_run(client, plan)
        if note is not None and note.is_purged:
            return None  # finished so long ago that its journal was purged
        counts = {} if note is None else _count_states(client, note)
        if note is not None and _is_finished(counts):
            refused = counts["rejected"] or counts["conflict"]
            return row("refused" if refused else "done", **counts, journal=str(note.place))
    except MemframeError as error:
        return row("failed", error=str(error))
    waiting: dict[str, Any] = {"planned": len(plan)} if note is None else {**counts}
    place = None if note is None else str(note.place)
    if not user.request_id:
        return row("revoked", **waiting, journal=place, error=_NO_REQUEST)

    def carry_out(access: Access) -> UserRun:
        own = rules.of(access.user_id) or Policy()
        options: dict[str, Any] = {"policy": own, "progress": False, "settle_s": settle_s}
        if note is not None:
            run = resume_run(access, note.place, **options)
        else:
            _refuse_unallowed(plan, own)
            run = apply_plan(access, plan, confirm=plan.counts.get("delete"), **options)
        return _row_of(run, row)

    return with_access(
        client,
        user,
        carry_out,
        lambda failure, error: row(failure, **waiting, journal=place, error=error),
    )


def _find_run(client: Client, plan: Plan) -> RunNote | None:
    """Find the run of a plan; remove a journal that is incomplete because its process was killed.

    The note on a run is on the disk before the first request is sent, so that nothing was sent if there is no note.
    """
    directory = RunDirectory(client.runtime.folder)
    with directory.lock_user(plan.user_id):
        note = directory.of_plan(plan.id)
        if note is None or note.file != note.journal:
            return note
        try:
            _count_states(client, note)
        except JournalError:
            directory.forget(note.place)
            return None
        return note


def _refuse_unallowed(plan: Plan, rules: Policy) -> None:
    n_left = len(plan) - len(leave_out_unallowed(plan, rules))
    if n_left:
        changes = number_of(n_left, "change", "changes")
        raise PlanError(f"the plan has {changes} that [allow] of the policy does not allow now: plan again")


def _row_of(run: Run, row: partial[UserRun]) -> UserRun:
    counts: dict[str, Any] = {name: run.counts[name] for name in STATUSES}
    error = None
    if run.stopped:
        error = str(run.stopped)
    elif not run.verification.is_clean:
        error = str(run.verification)
    return row(_status_of(run), **counts, journal=run.journal and str(run.journal), error=error)


def _status_of(run: Run) -> str:
    if run.counts["planned"] or run.counts["unknown"]:
        return "open"
    return "done" if run.is_complete else "refused"
