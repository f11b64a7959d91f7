"""Plan to service, journal first; how a run goes on; and frames written in one call."""

from __future__ import annotations

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
    freeze_body,
    read_service_state,
    refuse_elsewhere,
    refuse_repeated,
)
from memframe.apply.reconcile import update_baseline
from memframe.apply.run import Run
from memframe.display import number_of
from memframe.envelope import Envelope
from memframe.errors import JournalError, PlanError, check_kind, resume_hint
from memframe.files import expand_path
from memframe.journal import KEPT_DAYS, WRITTEN, Entry, Header, Journal, Operation, RunDirectory
from memframe.plan import Plan, plan_changes
from memframe.plan.change import list_some
from memframe.plan.changes import OnConflict, OnNull
from memframe.plan.current import CurrentMemory
from memframe.plan.edited_frame import EditedFrame
from memframe.progress import Progress, ProgressOption
from memframe.runtime import package_version

StrPath = str | PathLike[str]


def apply_plan(
    access: Access,
    plan: Plan,
    *,
    confirm: int | None = None,
    journal: StrPath | None = None,
    workers: int = 4,
    progress: ProgressOption = "auto",
    settle_s: float = 2.0,
    encrypt: bool = True,
) -> Run:
    """Carry out a plan.

    Before the first request everything is checked: that the plan is for this user, that nothing in it is open,
    and, by reading the service afresh, that nothing has moved since. What happens to a row after that is in
    the run, not an error: `Run.raise_for_failures` makes one of it.

    Parameters
    ----------
    access : Access
    plan : Plan
    confirm : int, optional
        How many memories the plan deletes; a must where it deletes any.
    journal : path, optional
        Where the record of the run is made; by default in the user's state folder, where those of finished runs
        older than 30 days are removed when a new run begins.
    workers : int
        Writes in flight, at most; fewer where the service asks for it. From 1 to 16.
    progress : "auto", True, False or callable
        As everywhere.
    settle_s : float
        How long a create whose answer got lost must stay unseen before it is sent again.
    encrypt : bool
        False sends content as plain text, to a service that seals it by itself.

    Returns
    -------
    Run

    Raises
    ------
    PlanError
        The plan is for another user or service, has conflicts or invalid changes, was carried out before, or
        deletes what ``confirm`` does not count.
    StalePlanError
        What it was made from has moved, or the user's key has.
    AccessError
        The user's approval is gone.
    JournalError
        There can be no journal; nothing was sent. Or it could not be written any more; what is in flight then
        counts as unknown.

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
    check_plan(access, plan, confirm)
    if not plan.writes:
        return Run(results=(), journal=None)
    runtime = access.client.runtime
    directory, cipher = RunDirectory(runtime.folder), runtime.open_local_cipher()
    with directory.writing_to(plan.user_id):
        refuse_repeated(directory, cipher, plan)
        renewed, current, ids_before = read_service_state(access, plan)
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
    """Freeze the requests of a plan, each sealed once, and the memories as they were."""
    for change in plan.writes:
        memory = current.get(change.id or "")
        yield change, freeze_body(change, plan.user_id, envelope), None if memory is None else memory.blob


def resume_run(
    access: Access,
    journal: StrPath | Run,
    *,
    workers: int = 4,
    progress: ProgressOption = "auto",
    settle_s: float = 2.0,
) -> Run:
    """Go on with a run that was cut short, with the bytes that were frozen when it began.

    First it looks for what may have been written; then it sends what is planned still. Edits that were made in
    the meantime are no part of it. Resuming a run that has come to its end reads it back once more.

    Parameters
    ----------
    access : Access
        To the same user's memories.
    journal : path or Run
        The record of the run: ``run.journal``, or as `list_runs` shows it.
    workers, progress, settle_s
        As in `apply_plan`.

    Returns
    -------
    Run
        With the outcomes of all changes of the plan, those of before included.

    Raises
    ------
    JournalError
        The journal is damaged, in use, or sealed with a key that is not here.
    PlanError
        It is of another user or service.
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
    runtime = access.client.runtime
    path = path_in(journal)
    directory, cipher = RunDirectory(runtime.folder), runtime.open_local_cipher()
    with (
        directory.writing_to(access.user_id),
        Journal.open(path, cipher, writes=True, connect=runtime.connect) as record,
    ):
        refuse_elsewhere(access, "journal", record.header.base_url, record.header.user_id)
        engine = partial(Engine, access.renew(), workers=workers, settle_s=settle_s)
        return _carry_out(engine, access, directory, record, record.operations(), progress)


def path_in(journal: StrPath | Run) -> Path:
    """Return the path of a journal, given as such or as its run."""
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
        log.write(_cut_short(log))
        engine = engine_of(log)
        directory.mark_open(header, path)
        try:
            verification, current, stopped = engine.run()
        except BaseException as cut_short:  # Ctrl-C above all: its traceback says how to go on
            hint = resume_hint(path)
            cut_short.add_note(f"The run is recorded in its journal: {hint.python}.")
            cut_short.hint = hint  # type: ignore[attr-defined]  # of any exception, for the command line
            raise
        update_baseline(access, log.with_state(*WRITTEN), current)
        counts = log.balance()
        if not (counts["planned"] or counts["unknown"]):
            directory.mark_closed(header)
        return Run(results=tuple(log), journal=path, verification=verification, stopped=stopped)


def _cut_short(log: OperationLog) -> list[Operation]:
    """Mark as unknown what may have been carried out when the last process ended."""
    found = [op for op in log if op.state == "sending" or (op.state == "planned" and op.ambiguous)]
    return [replace(op, state="unknown", ambiguous=True) for op in found]


# -- frames in one call


class WriteOptions(TypedDict, total=False):
    """Options of `apply_plan`."""

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

    Rows with ``id`` are changed where they were edited, rows without one become new memories, and rows that are
    not in the frame are left alone.

    Parameters
    ----------
    access : Access
    frame : DataFrame
    on_null, on_conflict, max_changes
        As in `plan_changes`.
    **options
        ``journal workers progress settle_s encrypt``, as in `apply_plan`.

    Returns
    -------
    Run
        With one outcome for each row that was to be written, and none for the others; its notes name the columns
        that were not.

    Raises
    ------
    PlanError
        The frame cannot be written as it is; nothing was.
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
    """Make a new memory of every row.

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
        A row has an id: it is there already.

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
        "an id, so that they are there already: update_memories() changes them, push_memories() does both",
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
    """Change the memories of a frame where its rows were edited.

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
        "no id, so that nobody knows what to change: create_memories() makes them, push_memories() does both",
        with_id=False,
    )
    return push_memories(
        access, frame, on_null=on_null, on_conflict=on_conflict, max_changes=max_changes, **options
    )


def _refuse_rows(frame: pd.DataFrame, why: str, *, with_id: bool) -> None:
    edited = EditedFrame(frame)
    rows = [f"row {edited.name(row)}" for row, one in enumerate(edited.ids) if (one is not None) is with_id]
    if rows:
        raise PlanError(f"{number_of(len(rows), 'row has', 'rows have')} {why} ({list_some(rows)})")
