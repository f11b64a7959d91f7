"""`memframe apply`, `resume` and `runs`: carry plans out, go on with what broke off, and look after the journals."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import click
import msgspec
import pandas as pd

from memframe.apply import Run, apply_plan, resume_run
from memframe.cli.group import LocalPath
from memframe.cli.opening import as_json, on_request, opened
from memframe.errors import AccessError, AuthError
from memframe.journal import STATUSES, list_runs, purge_runs
from memframe.plan import Plan
from memframe.showing import number_of

NOT_ALL_WRITTEN, UNKNOWN_LEFT = 3, 4
"""Exit codes: rows that were refused, conflict, were left out, or are not there once; rows of which nobody knows."""

MAX_ROWS_TOLD = 10

workers = click.option(
    "--workers", default=4, show_default=True, type=click.IntRange(1, 16), help="Writes in flight."
)
settle = click.option(
    "--settle",
    "settle_s",
    default=2.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Seconds for which a write without an answer must stay unseen before it is sent again.",
)


@click.command("apply")
@click.argument("plan", type=LocalPath())
@on_request
@click.option("--confirm", type=click.IntRange(min=0), help="How many memories the plan deletes.")
@click.option("--journal", type=LocalPath(), help="Where to record the run.")
@click.option(
    "--plaintext", is_flag=True, help="Send content unsealed, for services that seal by themselves."
)
@workers
@settle
@as_json
def carry_out(
    plan: Path,
    request_id: str,
    confirm: int | None,
    journal: Path | None,
    plaintext: bool,
    workers: int,
    settle_s: float,
    as_json: bool,
) -> None:
    """Carry out a plan; what happens is recorded first, so that it can be resumed and undone.

    Ends with 3 if rows were rejected, in conflict or left out, or are not there (or there twice) when they are
    read back; with 4 if it is not known of some whether they were written: `memframe resume` finds out.

    \b
    Example:
        memframe apply cleanup.plan --confirm 12 --request 7c9e6679
    """
    loaded = Plan.load(plan)
    with opened(request_id) as access:
        run = apply_plan(
            access,
            loaded,
            confirm=confirm,
            journal=journal,
            encrypt=not plaintext,
            workers=workers,
            settle_s=settle_s,
        )
    _tell(run, request_id, as_json=as_json)


@click.command("resume")
@click.argument("journal", type=LocalPath())
@on_request
@workers
@settle
@as_json
def go_on(journal: Path, request_id: str, workers: int, settle_s: float, as_json: bool) -> None:
    """Go on with a run that broke off: first find out what was written, then write the rest.

    Ends as `memframe apply` does.

    \b
    Example:
        memframe resume cleanup.journal --request 7c9e6679
    """
    with opened(request_id) as access:
        run = resume_run(access, journal, workers=workers, settle_s=settle_s)
    _tell(run, request_id, as_json=as_json)


@click.command("runs")
@click.option(
    "--purge",
    "days",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    help="Remove runs that are older, also those that broke off.",
)
@click.option(
    "--forget",
    "journals",
    metavar="JOURNAL",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Give up a run: remove its journal, which may be gone for good already.",
)
@as_json
def show_runs(days: float | None, journals: tuple[Path, ...], as_json: bool) -> None:
    """List the runs whose journals are kept in your own state folder, or where --journal said.

    A journal holds, sealed, what its run has deleted and changed: it is what `memframe undo` needs, and
    should not be kept for ever: of finished runs it goes after 30 days, when a new run begins. --purge leaves
    alone what you keep elsewhere. A run whose journal is missing stays in the list, and its plan is refused,
    until you bring the journal back or --forget it.

    \b
    Example:
        memframe runs --purge 30
    """
    if journals:
        click.echo(f"{len(purge_runs(journals=journals)):,} removed", err=True)
    if days is not None:
        click.echo(f"{number_of(len(purge_runs(older_than_days=days)), 'run', 'runs')} removed", err=True)
    runs = list_runs()
    if as_json:
        click.echo(runs.astype({"journal": "str"}).to_json(orient="records", date_format="iso"))
    else:
        click.echo("\n".join(map(_line, runs.to_dict("records"))) or "no runs")


def _line(run: dict[Hashable, Any]) -> str:
    """One run: when it began, how far it is, what became of its changes, and where its journal is."""
    known = {name: value for name, value in run.items() if pd.notna(value)}  # of an unreadable one little is
    counts = ", ".join(f"{known[name]:,} {name}" for name in STATUSES if known.get(name))
    began = f"{known['created_at']:%Y-%m-%d %H:%M}" if "created_at" in known else " " * 16
    return f"{began}  {run['state']:<10}  {counts or '-':<8}  {run['journal']}"


def _tell(run: Run, request_id: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(_told(run)))
    else:
        click.echo("\n".join([str(run).removeprefix("<memframe.Run: ").removesuffix(">"), *_left_over(run)]))
        if run.journal is not None:
            is_open = bool({"planned", "unknown"} & set(run.outcomes.status))
            told, verb = ("To go on", "resume") if is_open else ("To take it back", "undo")
            path = shlex.quote(str(run.journal))
            click.echo(f"{told}: memframe {verb} {path} --request {request_id}", err=True)
    code = exit_code_of(run)
    if run.stopped is not None and code != UNKNOWN_LEFT:
        raise run.stopped
    if code:
        sys.exit(code)


def _told(run: Run) -> dict[str, object]:
    return {
        "journal": None if run.journal is None else str(run.journal),
        "counts": run.counts,
        "outcomes": json.loads(run.outcomes.to_json(orient="records")),
        "verification": run.verification,
        "stopped": None if run.stopped is None else str(run.stopped),
    }


def _left_over(run: Run) -> list[str]:
    """The first changes that were not written, and why."""
    left = [result for result in run.results if result.status not in {"done", "recovered"}]
    rows = [
        f"row {one.row}: {one.action} {one.status}" + (f": {one.error}" if one.error else "")
        for one in left[:MAX_ROWS_TOLD]
    ]
    more = len(left) - len(rows)
    return [*rows, f"and {more:,} more, which --json shows"] if more else rows


def exit_code_of(run: Run) -> int:
    """What a script can rely on: 0, `NOT_ALL_WRITTEN` or `UNKNOWN_LEFT`; that access was refused counts more."""
    if run.counts.get("unknown") and not isinstance(run.stopped, AccessError | AuthError):
        return UNKNOWN_LEFT
    written = run.counts.get("done", 0) + run.counts.get("recovered", 0)
    is_there_once = not (run.verification.missing or run.verification.undone or run.verification.duplicates)
    return 0 if written == len(run.outcomes) and is_there_once else NOT_ALL_WRITTEN
