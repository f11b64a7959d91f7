"""`memframe plan` and `memframe undo`: what would be written, to look at and to keep for `memframe apply`.

`memframe apply`, `resume` and `runs`: carry plans out, go on with what broke off, and look after the journals.

`memframe reseal`: after a change of key, content that is sealed with older keys, planned for `memframe apply`.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
import pandas as pd

from memframe.access import Access
from memframe.apply import Run, apply_plan, resume_run
from memframe.archive import is_sealed, load_archive
from memframe.archive.places import FORMATS, format_of, parts_of
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.cleanup import audit_again, plan_cleanup
from memframe.cleanup.proposals import MAX_SHARE, Actions, read_actions
from memframe.cli.options import (
    LocalPath,
    as_json,
    ask_secrets,
    full_id,
    keys_in,
    on_request,
    opened,
    request_option,
)
from memframe.client.responses import is_uuid
from memframe.display import number_of
from memframe.errors import AccessError, AuthError, ConfigError
from memframe.journal import STATUSES, list_runs, purge_runs
from memframe.load import iter_memories
from memframe.plan import Plan, plan_changes, plan_deletes
from memframe.plan.changes import OnNull, check_size
from memframe.plan.conflicts import OnConflict
from memframe.reseal import plan_reseal
from memframe.secret import Secret
from memframe.undo import plan_undo

CONFLICTS = 3
"""Exit code of a plan with conflicts, as of a run with rejected rows."""

MAX_SHOWN = 20
"""Changes that are printed without --full."""

full_option = click.option("--full", is_flag=True, help=f"Print all changes, not only the first {MAX_SHOWN}.")

to_file = click.option(
    "--out",
    type=LocalPath(),
    help="Keep the plan in this file, sealed for you on this machine.",
)


@click.command("plan")
@click.argument("edited", required=False, type=LocalPath())
@request_option(required=False)
@to_file
@click.option(
    "--from-audit",
    "audit",
    type=LocalPath(dir_okay=False),
    help="Plan what an audit proposes, kept by `memframe audit --out`; no EDITED.",
)
@click.option(
    "--actions",
    help="Of an audit only these, such as delete,merge; or what to do about checks: personal_data=redact.",
)
@click.option("--delete", "is_delete", is_flag=True, help="Delete the memories of EDITED.")
@click.option("--show", "saved", type=LocalPath(), help="Show a plan that was kept; no EDITED.")
@click.option(
    "--on-null",
    type=click.Choice(get_args(OnNull)),
    default="raise",
    show_default=True,
    help="Emptied cells.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    default="raise",
    show_default=True,
    help='Fields that were changed here and at the service; "raise" shows them and keeps no plan, "mark" keeps '
    "one without them.",
)
@click.option(
    "--max-share",
    type=click.FloatRange(0, 1),
    default=MAX_SHARE,
    show_default=True,
    help="The largest share of all memories that --actions may delete on wording alone.",
)
@click.option("--max-changes", type=click.IntRange(min=0), help="Refuse to plan more.")
@full_option
@as_json
def plan_edits(
    request_id: str | None,
    out: Path | None,
    saved: Path | None,
    full: bool,
    as_json: bool,
    on_conflict: OnConflict,
    **given: Any,
) -> None:
    """Plan what EDITED asks to be written: an archive (.parquet, .jsonl, .csv) with edited or new rows.

    EDITED may be what pandas wrote: to_parquet, to_csv, or to_json with orient="records" and lines=True.
    A table of one's own with some of an archive's columns will do, such as content and tags (JSON lists in
    .csv). Nothing is written. Rows that are not in EDITED are left alone; --delete plans to delete those that are,
    and then EDITED may also be a text file of ids or their beginnings, one a line, or - for standard input.

    Instead of EDITED, --from-audit plans what an audit proposes, as far as it is still to be found: delete, merge,
    redact, retag, rescale. Personal data is redacted only with --actions personal_data=redact, and what is told by
    wording is deleted only with --actions junk=delete or the like.

    Ends with 3 if there are conflicts.

    \b
    Example:
        memframe plan edited.parquet --request 7c9e6679 --out edits.plan
        memframe audit --request 7c9e6679 --out audit.json
        memframe plan --from-audit audit.json --request 7c9e6679 --actions delete,merge --out cleanup.plan
    """
    if saved is not None:
        _show(Plan.load(saved), full=full, as_json=as_json)
        return
    if request_id is None or (given["edited"] is None) == (given["audit"] is None):
        raise click.UsageError("give --request and EDITED or --from-audit, or --show a plan that was kept")
    with opened(request_id) as access:
        plan = _planned(access, on_conflict="mark" if on_conflict == "raise" else on_conflict, **given)
    _show(plan, full=full, as_json=as_json)
    n_conflicts = plan.counts.get("conflict", 0)
    if n_conflicts and on_conflict == "raise":
        _refuse_to_keep(n_conflicts, out)
    elif out is not None:
        keep(plan, out, request_id)
    if n_conflicts:
        sys.exit(CONFLICTS)


@click.command("undo")
@click.argument("journal", type=LocalPath())
@on_request
@to_file
@full_option
@as_json
def plan_back(journal: Path, request_id: str, out: Path | None, full: bool, as_json: bool) -> None:
    """Plan to take a run back: patches restore, deletes are restored or created anew, creates are deleted.

    Nothing is written. What somebody has changed since is a conflict, which is shown, left out of the plan that
    is kept, and not overwritten: ends with 3. A deleted memory has its id and dates again where the service restores
    it; elsewhere it has a new id and the date of the undo. The plan says which, with the old date.

    \b
    Example:
        memframe undo cleanup.journal --request 7c9e6679 --out undo.plan
    """
    with opened(request_id) as access:
        plan = plan_undo(access, journal)
    _show(plan, full=full, as_json=as_json)
    if out is not None:
        keep(plan, out, request_id)
    if "conflict" in plan.counts:
        sys.exit(CONFLICTS)


def _planned(
    access: Access,
    *,
    edited: Path | None,
    audit: Path | None,
    actions: str | None,
    is_delete: bool,
    on_null: OnNull,
    on_conflict: OnConflict,
    max_changes: int | None,
    max_share: float,
) -> Plan:
    if audit is not None:
        plan = _cleanup(access, audit, _actions(actions), on_conflict, max_share)
    elif actions is not None or edited is None:
        raise click.UsageError("--actions chooses among the proposals of --from-audit")
    elif is_delete:
        plan = plan_deletes(access, _doomed(edited, access), on_conflict=on_conflict)
    else:
        plan = plan_changes(access, _rows_in(edited, access), on_null=on_null, on_conflict=on_conflict)
    check_size(plan.records, max_changes)
    return plan


def _cleanup(
    access: Access, audit: Path, actions: Actions, on_conflict: OnConflict, max_share: float
) -> Plan:
    read_actions(actions)  # before anything is read
    renewal = audit_again(access, audit)
    if renewal.n_left_out:
        told = number_of(renewal.n_left_out, "finding is", "findings are")
        click.echo(f"{told} not to be found any more, and left out.", err=True)
    return plan_cleanup(access, renewal.audit, actions=actions, on_conflict=on_conflict, max_share=max_share)


def _actions(text: str | None) -> Actions:
    """What `--actions` says: a list, or a mapping."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    pairs = [part.partition("=")[::2] for part in parts if "=" in part]
    if pairs and len(pairs) < len(parts):
        raise click.UsageError("--actions: either names such as delete,merge, or pairs such as junk=review")
    return dict(pairs) or (None if text is None else parts)


def _rows_in(path: Path, access: Access) -> pd.DataFrame:
    """An archive, sealed or not; or a table of one's own that has some of the columns of one."""
    first, *_ = parts_of(path)
    names = format_of(first).names(first)
    known = [name for name in ARCHIVE_SCHEMA if name in names]
    rows = load_archive(path, key=access if is_sealed(path) else None, columns=known or None)
    others = [name for name in names if name not in rows and name not in rows.index.names]
    return rows.assign(**dict.fromkeys(others))  # their names are all that a plan looks at


def _doomed(path: Path, access: Access) -> pd.DataFrame | list[str]:
    """Rows of an archive, which say what was seen; or ids alone."""
    if path.suffix.lower() in FORMATS or path.is_dir():
        return _rows_in(path, access)
    try:
        with click.open_file(str(path), encoding="utf-8") as lines:
            given = [line.strip() for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as fault:
        cause = "it is not text in UTF-8" if isinstance(fault, UnicodeDecodeError) else fault.strerror
        raise ConfigError(
            f"the ids in {path} cannot be read ({cause}): give an archive, or a text file with an id on each line"
        ) from None
    if all(map(is_uuid, given)):
        return given
    ids = [memory_id for frame in iter_memories(access, progress=False) for memory_id in frame.id]
    return [full_id(one, ids, ("memory", "memories"), shown_by="memframe export") for one in given]


def _show(plan: Plan, *, full: bool, as_json: bool) -> None:
    click.echo(plan.to_json() if as_json else plan.diff(limit=None if full else MAX_SHOWN))
    if len(plan) > MAX_SHOWN and not (full or as_json):
        click.echo(f"These are the first {MAX_SHOWN} of {len(plan):,} changes; --full prints all.", err=True)


def _refuse_to_keep(n_conflicts: int, out: Path | None) -> None:
    """Tell why there is no plan to apply, and which options make one."""
    kept = "" if out is None else f", so {out} was not written"
    click.echo(
        f"{number_of(n_conflicts, 'conflict', 'conflicts')} with what the service holds now{kept}. Decide with "
        "--on-conflict mine (overwrite) or --on-conflict theirs (leave as it is); --on-conflict mark keeps a plan "
        "without them.",
        err=True,
    )


def keep(plan: Plan, path: Path, request_id: str) -> None:
    """Write what can be carried out of a plan to a file, and tell how."""
    kept = plan.without("conflict")
    left_out = number_of(plan.counts.get("conflict", 0), "conflict", "conflicts")
    if plan and not kept:
        click.echo(f"{left_out}, and nothing else to do, so {path} was not written.", err=True)
        return
    kept.save(path)
    without = f" without {left_out}" if len(kept) < len(plan) else ""
    n_deletes = kept.counts.get("delete", 0)
    confirm = f" --confirm {n_deletes}" if n_deletes else ""
    told = f"memframe apply {shlex.quote(str(path))}{confirm} --request {request_id}"
    click.echo(f"Kept in {path}{without}. To carry it out: {told}", err=True)


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
    is_there_once = not (run.verification.missing or run.verification.duplicates)
    return 0 if written == len(run.outcomes) and is_there_once else NOT_ALL_WRITTEN


MAX_TOLD = 10


@click.command("reseal")
@on_request
@click.option(
    "--old-keys",
    "file",
    type=LocalPath(),
    help="File with the older keys, as hexadecimal text, one a line. Without it they are asked for, not shown, or "
    "are the lines of standard input.",
)
@click.option("--leave-unopened", is_flag=True, help="Leave what no key opens as it is, and plan the rest.")
@to_file
@as_json
def plan_newest_seal(
    request_id: str, file: Path | None, leave_unopened: bool, out: Path | None, as_json: bool
) -> None:
    """Plan to seal with the user's newest key what is still sealed with older ones.

    For services that leave that to applications when a key changes. Nothing is written; what is under the newest
    key already, or stored unsealed, is left alone. The texts themselves stay as they are.

    Ends with 3, and keeps no plan, if there is content that none of the keys opens.

    \b
    Example:
        memframe reseal --request 7c9e6679 --old-keys old-keys.txt --out reseal.plan
        memframe apply reseal.plan --request 7c9e6679
    """
    keys = _older_keys(file)
    with opened(request_id) as access:
        plan = plan_reseal(access, old_keys=keys)
    n_unopened = plan.counts.get("invalid", 0)
    click.echo(plan.to_json() if as_json else "\n".join([str(plan), *_unopened(plan)]))
    if n_unopened and not leave_unopened:
        click.echo("No plan was kept; --leave-unopened plans the rest.", err=True)
        sys.exit(CONFLICTS)
    if out is not None:
        keep(plan.without("invalid"), out, request_id)


def _older_keys(file: Path | None) -> list[Secret]:
    keys = ask_secrets("Older key") if file is None else keys_in(file, "--old-keys")
    if not keys:
        place = "on standard input" if file is None else f"in {file}"
        raise ConfigError(f"there is no key {place}; give the older keys as hexadecimal text, one a line")
    return keys


def _unopened(plan: Plan) -> Iterator[str]:
    """The first memories that no key has opened, and why."""
    odd = [change for change in plan.records if change.action == "invalid"]
    yield from (f"memory {change.id}: {change.reason}" for change in odd[:MAX_TOLD])
    if len(odd) > MAX_TOLD:
        yield f"and {len(odd) - MAX_TOLD:,} more, which --json shows"
