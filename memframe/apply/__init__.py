"""Plan to service, journal first: the one door through which anything is changed; and how a run goes on.

Nothing is lost, nothing is written twice, and a run that was cut short knows where it stands:

- The intent and the exact bytes of every request are on the disk before it leaves (`memframe.journal`).
- What may have been carried out is never sent again before it was looked for, a create in two complete listings
  at least ``settle_s`` apart. It is known by its sealed bytes, which nothing else in the world has.
- The same bytes and the same ``Idempotency-Key`` are sent each time. Services that honour it are safe beyond
  that; nothing here relies on it.

What no client can promise: that something between here and the service does not deliver a create twice, and that
a request whose connection broke is not carried out later than ``settle_s``, when it has been sent again. Both
are looked for when the run is read back at its end, and reported as duplicates; none is deleted by itself. Who
changes a memory between its last reading and the patch (a round trip, at most 30 seconds) is overwritten, as
the API knows no condition for a write.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from os import PathLike
from pathlib import Path

from msgspec.structs import replace

from memframe.access import Access
from memframe.apply.books import Books
from memframe.apply.engine import Engine, Job
from memframe.apply.known import keep_known
from memframe.apply.outcome import Outcome, outcome_of
from memframe.apply.reconcile import traces_of
from memframe.apply.run import Run, Verification
from memframe.apply.start import (
    check_options,
    check_plan,
    drafts_of,
    header_of,
    read_start,
    refuse_elsewhere,
    refuse_repeated,
)
from memframe.errors import JournalError, PlanError, check_kind
from memframe.files import expand_path
from memframe.journal import KEPT_DAYS, Journal, Operation, Shelf, Standing
from memframe.plan import Plan
from memframe.progress import Progress, ProgressOption
from memframe.runtime import Runtime

__all__ = ["Outcome", "Run", "StrPath", "Verification", "apply_plan", "path_in", "resume_run"]

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
    shelf, vault = Shelf(runtime.folder), runtime.open_local_cipher()
    with shelf.writing_to(plan.user_id):
        refuse_repeated(shelf, vault, plan)
        start = read_start(access, plan)
        read_at = runtime.clock()
        header = header_of(access, plan, encrypt=encrypt)
        path = shelf.path_of(header) if journal is None else expand_path(journal)
        shelf.purge_finished(header.created_at - timedelta(days=KEPT_DAYS))
        drafts = drafts_of(plan, start, encrypt=encrypt)
        connect, keep = runtime.connect, partial(keep_known, access)
        with (
            Journal.create(
                path, header, drafts, vault, ids_before=start.ids_before, connect=connect
            ) as record,
            _bar(progress, len(plan.writes), runtime) as bar,
        ):
            books = Books(record, [Operation(n, change) for n, change in enumerate(plan.writes)], bar)
            traces = traces_of(books, start.ids_before, encrypt=encrypt)
            job = Job(start.access, keep, header, books, traces, workers, settle_s, read_at)
            return _carried_out(job, shelf, path)


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
    shelf, vault = Shelf(runtime.folder), runtime.open_local_cipher()
    with (
        shelf.writing_to(access.user_id),
        Journal.open(path, vault, writes=True, connect=runtime.connect) as record,
    ):
        header, keep = record.header, partial(keep_known, access)
        refuse_elsewhere(access, "journal", header.base_url, header.user_id)
        with _bar(progress, header.n_changes, runtime) as bar:
            books = Books(record, record.operations(), bar)
            books.write(_in_doubt(books))
            traces = traces_of(books, record.ids_before, encrypt=header.encrypt)
            job = Job(access.renew(), keep, header, books, traces, workers, settle_s)
            return _carried_out(job, shelf, path)


def path_in(journal: StrPath | Run) -> Path:
    """The journal's path, given as such or as the run that it is of."""
    check_kind("the run", journal, Run, str, PathLike, error=PlanError)
    path = journal.journal if isinstance(journal, Run) else expand_path(journal)
    if path is None:
        raise JournalError(
            "this run had nothing to do, and has no journal: there is nothing to resume or undo"
        )
    return path


def _bar(progress: ProgressOption, total: int, runtime: Runtime) -> Progress:
    return Progress(progress, total=total, text="changes", clock=runtime.clock)


def _in_doubt(books: Books) -> dict[int, Standing]:
    """What may have been carried out when the last process ended: looked for before anything else."""
    found = [op for op in books if op.state == "sending" or (op.state == "planned" and op.standing.in_doubt)]
    return {op.n: replace(op.standing, state="unknown", in_doubt=True) for op in found}


def _carried_out(job: Job, shelf: Shelf, path: Path) -> Run:
    shelf.note_open(job.header, path)
    try:
        verification, stopped = Engine(job).carry_out()
    except BaseException as cut_short:  # Ctrl-C above all: whoever reads of it is told how to go on
        cut_short.add_note(
            f"The run stands in its journal: resume_run(access, {str(path)!r}) goes on with it."
        )
        raise
    counts = job.books.balance()
    if not (counts["planned"] or counts["unknown"]):
        shelf.note_closed(job.header)
    results = tuple(outcome_of(operation) for operation in job.books)
    return Run(results=results, journal=path, verification=verification, stopped=stopped)
