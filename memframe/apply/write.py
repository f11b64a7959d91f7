"""Apply a plan, resume a run, and write a frame in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TypedDict, Unpack
from uuid import uuid4

import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.apply.engine import Engine
from memframe.apply.operations import OperationLog
from memframe.apply.preflight import (
    check_options,
    check_plan,
    check_policy,
    check_rest,
    freeze_body,
    read_service_state,
    refuse_elsewhere,
    refuse_repeated,
)
from memframe.apply.reconcile import update_baseline
from memframe.apply.run import Run
from memframe.audit.policy import PolicyOption, read_policy
from memframe.display import number_of
from memframe.envelope import Envelope
from memframe.errors import Hint, JournalError, PlanError, check_kind, resume_hint
from memframe.files import expand_path
from memframe.journal import KEPT_DAYS, STATUSES, WRITTEN, Entry, Header, Journal, Operation, RunDirectory
from memframe.plan import Plan, plan_changes
from memframe.plan.change import list_some
from memframe.plan.changes import OnConflict, OnNull
from memframe.plan.current import CurrentMemory
from memframe.plan.edited_frame import EditedFrame
from memframe.progress import Progress, ProgressOption
from memframe.versions import package_version

StrPath = str | PathLike[str]


def apply_plan(
    access: Access,
    plan: Plan,
    *,
    confirm: int | None = None,
    confirm_losses: int | None = None,
    policy: PolicyOption = None,
    journal: StrPath | None = None,
    workers: int = 4,
    progress: ProgressOption = "auto",
    settle_s: float = 2.0,
    encrypt: bool = True,
) -> Run:
    """Carry out a plan.

    Before the first request, memframe checks that the plan is for this user and has no unresolved changes, and
    reads the service again to make sure that nothing has changed since. Later failures of single rows are
    recorded in the run; `Run.raise_for_failures` turns them into an error.

    Parameters
    ----------
    access : Access
    plan : Plan
    confirm : int, optional
        The number of memories that the plan deletes; required if it deletes any.
    confirm_losses : int, optional
        The number of values in ``plan.losses``. ``confirm`` includes what the deletes lose, and your own edits need
        no confirmation, so this is required only if an edited merge loses a value; a wrong number is always an error.
    policy : Policy, Path or None
        Rules on what must never happen, from a file such as ``memframe.toml``. They are checked against the memories at
        the service at this moment; a plan that breaks one is refused before anything is sent.
    journal : Path, optional
        Path for the journal; by default in the user's state folder, where journals of finished runs older than 30 days
        are removed when a new run begins.
    workers : int
        Maximum number of simultaneous writes, from 1 to 16; fewer if the service asks for it.
    progress : "auto", True, False or callable
        As in `load_memories`.
    settle_s : float
        Seconds that a create without an answer must remain absent before it is sent again.
    encrypt : bool
        False sends content as plain text, for a service that does the sealing.

    Returns
    -------
    Run

    Raises
    ------
    PlanError
        The plan is for another user or service, has conflicts or invalid changes, was carried out before, deletes
        or loses what is not confirmed, or breaks the policy.
    ConfigError
        The policy cannot be read.
    StalePlanError
        The memories or the user's key have changed since the plan was made.
    AccessError
        The user's approval is gone.
    JournalError
        The journal cannot be created, and nothing was sent; or it can no longer be written, and writes in
        flight count as unknown.

    Examples
    --------
    >>> from memframe import load_memories, plan_changes
    >>> memories = load_memories(access)
    >>> edited = memories.assign(source=memories.source.replace("mail-helper", "mail"))
    >>> run = apply_plan(access, plan_changes(access, edited))
    >>> run
    <memframe.Run: 58 done; 58 read back: all as written>
    >>> run.outcomes.status.unique().tolist()
    ['done']
    """
    check_kind("access", access, Access)
    check_kind("plan", plan, Plan, error=PlanError)
    check_options(workers, settle_s)
    check_plan(access, plan, confirm, confirm_losses)
    rules = read_policy(policy)
    if not plan.writes:
        return Run(results=(), journal=None)
    runtime = access.client.runtime
    directory, cipher = RunDirectory(runtime.folder), runtime.open_local_cipher()
    with directory.lock_user(plan.user_id):
        refuse_repeated(directory, cipher, plan)
        renewed, current, ids_before = read_service_state(access, plan)
        if rules is not None:
            check_policy(access, plan, rules, current)
        read_at, begun_at = runtime.clock(), runtime.now()
        header = Header(
            run_id=str(uuid4()),
            base_url=plan.base_url,
            user_id=plan.user_id,
            request_id=access.request_id,
            key_version=plan.key_version,
            plan_id=plan.id,
            created_at=begun_at,
            memframe=package_version(),
            n_changes=len(plan.writes),
            encrypt=encrypt,
        )
        directory.purge_finished(begun_at - timedelta(days=KEPT_DAYS))
        path = directory.path_of(header) if journal is None else expand_path(journal)
        entries = _entries(plan, current, renewed.envelope if encrypt else None)
        with Journal.create(
            path, header, entries, cipher, ids_before=ids_before, connect=runtime.connect
        ) as record:
            planned = [Operation(n=n, change=change) for n, change in enumerate(plan.writes)]
            engine = partial(Engine, renewed, workers=workers, settle_s=settle_s, read_at=read_at)
            return _carry_out(engine, access, directory, record, planned, progress)


def _entries(plan: Plan, current: Mapping[str, CurrentMemory], envelope: Envelope | None) -> Iterator[Entry]:
    """Freeze the requests of a plan, each sealed once, and the memories before the changes."""
    for change in plan.writes:
        memory = current.get(change.id or "")
        yield change, freeze_body(change, plan.user_id, envelope), None if memory is None else memory.blob


def resume_run(
    access: Access,
    journal: StrPath | Run,
    *,
    policy: PolicyOption = None,
    workers: int = 4,
    progress: ProgressOption = "auto",
    settle_s: float = 2.0,
) -> Run:
    """Resume an interrupted run with the exact bytes recorded when it began.

    It first finds out what was written, then sends the rest. Edits made in the meantime are not included.
    Resuming a finished run only verifies it again.

    Parameters
    ----------
    access : Access
        Access to the same user's memories.
    journal : Path or Run
        The journal of the run: ``run.journal``, or a path from `list_runs`.
    policy : Policy, Path or None
        As in `apply_plan`, for the changes that are not done yet; limits apply to the whole run.
    workers, progress, settle_s
        As in `apply_plan`.

    Returns
    -------
    Run
        The outcomes of all changes of the plan, including earlier ones.

    Raises
    ------
    JournalError
        The journal is damaged, in use, or sealed with a key that is not here.
    PlanError
        The run belongs to another user or service, or the rest of it breaks the policy.
    ConfigError
        The policy cannot be read.
    AccessError
        The user's approval is gone.

    Examples
    --------
    >>> from memframe import load_memories, plan_deletes
    >>> run = apply_plan(access, plan_deletes(access, load_memories(access, limit=2)), confirm=2)
    >>> resume_run(access, run.journal).outcomes.status.tolist()  # nothing was left to do
    ['done', 'done']
    """
    check_kind("access", access, Access)
    check_options(workers, settle_s)
    rules = read_policy(policy)
    runtime = access.client.runtime
    path = journal_path(journal)
    directory, cipher = RunDirectory(runtime.folder), runtime.open_local_cipher()
    with (
        directory.lock_user(access.user_id),
        Journal.open(path, cipher, writes=True, connect=runtime.connect) as record,
    ):
        refuse_elsewhere(access, "journal", record.header.base_url, record.header.user_id)
        renewed, operations = access.renew(), record.operations()
        if rules is not None:
            check_rest(renewed, operations, rules, record.header)
        engine = partial(Engine, renewed, workers=workers, settle_s=settle_s)
        return _carry_out(engine, access, directory, record, operations, progress)


def journal_path(journal: StrPath | Run) -> Path:
    """Return the path of a journal, which is given by this path or by its run."""
    check_kind("the run", journal, Run, str, PathLike, error=PlanError)
    path = journal.journal if isinstance(journal, Run) else expand_path(journal)
    if path is None:
        raise JournalError(
            "this run had nothing to do, and has no journal: there is nothing to resume or undo"
        )
    return path


def _carry_out(
    engine_of: Callable[[OperationLog], Engine],
    access: Access,
    directory: RunDirectory,
    journal: Journal,
    operations: list[Operation],
    progress: ProgressOption,
) -> Run:
    header, path = journal.header, journal.path
    with Progress(progress, total=header.n_changes, text="changes", clock=access.client.runtime.clock) as bar:
        log = OperationLog(journal, operations, bar)
        log.write(_mark_unknown(log))
        engine = engine_of(log)
        directory.mark_unfinished(header, path)
        try:
            verification, current, stopped = engine.run()
        except BaseException as ended_early:
            # Ctrl-C above all: its traceback says where the run stands, and how to go on
            n_of = Counter(operation.status for operation in log)
            so_far = ", ".join(f"{n_of[status]:,} {status}" for status in STATUSES if n_of[status])
            hint = Hint(f"{so_far}; ", f"{so_far}; ") + resume_hint(path)
            ended_early.add_note(f"The run is recorded in its journal: {hint.python}.")
            ended_early.hint = hint  # type: ignore[attr-defined]  # of any exception, for the command line
            raise
        update_baseline(access, log.with_state(*WRITTEN), current)
        counts = log.balance()
        if not (counts["planned"] or counts["unknown"]):
            directory.mark_finished(header)
        return Run(results=tuple(log), journal=path, verification=verification, stopped=stopped)


def _mark_unknown(log: OperationLog) -> list[Operation]:
    """Mark the operations as unknown that may have been carried out when the last process ended."""
    found = [op for op in log if op.state == "sending" or (op.state == "planned" and op.ambiguous)]
    return [replace(op, state="unknown", ambiguous=True) for op in found]


# -- frames in one call


class WriteOptions(TypedDict, total=False):
    """Options of `apply_plan`."""

    policy: PolicyOption
    journal: StrPath | None
    workers: int
    progress: ProgressOption
    settle_s: float
    encrypt: bool


def push_memories(
    access: Access,
    frame: pd.DataFrame,
    *,
    on_null: OnNull = "raise",
    on_conflict: OnConflict = "raise",
    max_changes: int | None = None,
    **options: Unpack[WriteOptions],
) -> Run:
    """Write the edited and the new rows of a frame: `plan_changes` and `apply_plan` in one.

    Edited rows with an ``id`` are patched, rows without one become new memories, and rows that are missing from
    the frame are left alone.

    Parameters
    ----------
    access : Access
    frame : DataFrame
    on_null, on_conflict, max_changes
        As in `plan_changes`.
    **options
        ``policy journal workers progress settle_s encrypt``, as in `apply_plan`.

    Returns
    -------
    Run
        One outcome for each changed or new row; the notes name columns that were not written.

    Raises
    ------
    PlanError
        The frame cannot be written; nothing was sent.
    StalePlanError, AccessError, JournalError
        As in `apply_plan`.

    Examples
    --------
    >>> from memframe import load_memories
    >>> memories = load_memories(access)
    >>> run = push_memories(access, memories.assign(importance=memories.importance.clip(upper=0.9)))
    >>> run.raise_for_failures()
    """
    plan = plan_changes(access, frame, on_null=on_null, on_conflict=on_conflict, max_changes=max_changes)
    return replace(apply_plan(access, plan, **options), notes=plan.notes)


def create_memories(access: Access, frame: pd.DataFrame, **options: Unpack[WriteOptions]) -> Run:
    """Create a memory from every row.

    Parameters
    ----------
    access : Access
    frame : DataFrame
        With ``content``, and without ids.
    **options
        As in `apply_plan`.

    Returns
    -------
    Run
        ``run.outcomes.id`` has the new ids, in the order of the rows.

    Raises
    ------
    PlanError
        A row has an id, so the memory already exists.

    Examples
    --------
    >>> import pandas as pd
    >>> run = create_memories(access, pd.DataFrame({"title": ["Tea"], "content": ["Likes green tea."]}))
    >>> run.outcomes[["action", "status"]]
       action status
    0  create   done
    """
    _refuse_rows(
        frame,
        "an id, so that they already exist: update_memories() changes them, push_memories() does both",
        with_id=True,
    )
    return push_memories(access, frame, **options)


def update_memories(
    access: Access,
    frame: pd.DataFrame,
    *,
    on_null: OnNull = "raise",
    on_conflict: OnConflict = "raise",
    max_changes: int | None = None,
    **options: Unpack[WriteOptions],
) -> Run:
    """Write the edited rows of a frame to their memories.

    Parameters
    ----------
    access : Access
    frame : DataFrame
        With an ``id`` in every row.
    on_null, on_conflict, max_changes
        As in `plan_changes`.
    **options
        As in `apply_plan`.

    Returns
    -------
    Run
        With one outcome for each row that was edited.

    Raises
    ------
    PlanError
        A row has no id, or as in `push_memories`.

    Examples
    --------
    >>> from memframe import load_memories
    >>> oldest = load_memories(access, limit=1)
    >>> update_memories(access, oldest.assign(title="Who Ilka was")).outcomes[["action", "status"]]
      action status
    0  patch   done
    """
    _refuse_rows(
        frame,
        "no id, so it is unknown what to change: create_memories() creates new ones, push_memories() does both",
        with_id=False,
    )
    return push_memories(
        access, frame, on_null=on_null, on_conflict=on_conflict, max_changes=max_changes, **options
    )


def _refuse_rows(frame: pd.DataFrame, why: str, *, with_id: bool) -> None:
    edited = EditedFrame(frame)
    rows = [f"row {edited.label(row)}" for row, one in enumerate(edited.ids) if (one is not None) is with_id]
    if rows:
        raise PlanError(f"{number_of(len(rows), 'row has', 'rows have')} {why} ({list_some(rows)})")
