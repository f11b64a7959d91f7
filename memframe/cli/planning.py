"""`memframe plan` and `memframe undo`: what would be written, to look at and to keep for `memframe apply`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, get_args

import click
import pandas as pd

from memframe.access import Access
from memframe.archive import is_sealed, load_archive
from memframe.archive.places import FORMATS, format_of, parts_of
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.cleanup import audit_again, plan_cleanup
from memframe.cleanup.asked import MAX_SHARE, Actions, asked_for
from memframe.cli.opening import as_json, on_request, opened, request_option
from memframe.plan import Plan, plan_changes, plan_deletes
from memframe.plan.changes import OnNull, check_size
from memframe.plan.conflicts import OnConflict
from memframe.undo import plan_undo

CONFLICTS = 3
"""Exit code of a plan with conflicts, as of a run with rejected rows."""

to_file = click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Keep the plan in this file, sealed for you on this machine.",
)


@click.command("plan")
@click.argument("edited", required=False, type=click.Path(path_type=Path))
@request_option(required=False)
@to_file
@click.option(
    "--from-audit",
    "audit",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Plan what an audit proposes, kept by `memframe audit --out`; no EDITED.",
)
@click.option(
    "--actions",
    help="Of an audit only these, such as delete,merge; or what to do about checks: personal_data=redact.",
)
@click.option("--delete", "is_delete", is_flag=True, help="Delete the memories of EDITED.")
@click.option(
    "--show", "saved", type=click.Path(path_type=Path), help="Show a plan that was kept; no EDITED."
)
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
    help='Fields that were changed here and at the service; "raise" shows them and keeps no plan.',
)
@click.option(
    "--max-share",
    type=click.FloatRange(0, 1),
    default=MAX_SHARE,
    show_default=True,
    help="The largest share of all memories that --actions may delete on wording alone.",
)
@click.option("--max-changes", type=click.IntRange(min=0), help="Refuse to plan more.")
@as_json
def plan_edits(
    request_id: str | None,
    out: Path | None,
    saved: Path | None,
    as_json: bool,
    on_conflict: OnConflict,
    **given: Any,
) -> None:
    """Plan what EDITED asks to be written: an archive (.parquet, .jsonl, .csv) with edited or new rows.

    EDITED may be what pandas wrote: to_parquet, to_csv, or to_json with orient="records" and lines=True.
    A table of one's own with some of an archive's columns will do, such as content and tags (JSON lists in
    .csv). Nothing is written. Rows that are not in EDITED are left alone; --delete plans to delete those that are,
    and then EDITED may also be a text file of ids, one a line, or - for standard input.

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
        _show(Plan.load(saved), as_json=as_json)
        return
    if request_id is None or (given["edited"] is None) == (given["audit"] is None):
        raise click.UsageError("give --request and EDITED or --from-audit, or --show a plan that was kept")
    with opened(request_id) as access:
        plan = _planned(access, on_conflict="mark" if on_conflict == "raise" else on_conflict, **given)
    _show(plan, as_json=as_json)
    has_conflicts = "conflict" in plan.counts
    if out is not None and not (has_conflicts and on_conflict == "raise"):
        keep(plan, out, request_id)
    if has_conflicts:
        sys.exit(CONFLICTS)


@click.command("undo")
@click.argument("journal", type=click.Path(path_type=Path))
@on_request
@to_file
@as_json
def plan_back(journal: Path, request_id: str, out: Path | None, as_json: bool) -> None:
    """Plan to take a run back: patches restore, deletes are created anew, creates are deleted.

    Nothing is written. What somebody has changed since is a conflict and not overwritten: ends with 3.

    \b
    Example:
        memframe undo cleanup.journal --request 7c9e6679 --out undo.plan
    """
    with opened(request_id) as access:
        plan = plan_undo(access, journal)
    _show(plan, as_json=as_json)
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
    asked_for(actions)  # before anything is read
    renewal = audit_again(access, audit)
    if renewal.n_left_out:
        told = "finding is" if renewal.n_left_out == 1 else "findings are"
        click.echo(f"{renewal.n_left_out:,} {told} not to be found any more, and left out.", err=True)
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
    with click.open_file(str(path)) as lines:
        return [line.strip() for line in lines if line.strip()]


def _show(plan: Plan, *, as_json: bool) -> None:
    click.echo(plan.to_json() if as_json else plan.diff())


def keep(plan: Plan, path: Path, request_id: str) -> None:
    """Write a plan to a file, and tell how to carry it out."""
    plan.save(path)
    n_deletes = plan.counts.get("delete", 0)
    confirm = f" --confirm {n_deletes}" if n_deletes else ""
    told = f"memframe apply {shlex.quote(str(path))}{confirm} --request {request_id}"
    click.echo(f"Kept. To carry it out: {told}", err=True)
