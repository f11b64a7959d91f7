"""`memframe plan` and `memframe undo`: what would be written, to look at and to keep for `memframe apply`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, get_args

import click
import pandas as pd

from memframe.access import Access
from memframe.answers import is_uuid
from memframe.archive import is_sealed, load_archive
from memframe.archive.places import FORMATS, format_of, parts_of
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.cleanup import audit_again, plan_cleanup
from memframe.cleanup.asked import MAX_SHARE, Actions, asked_for
from memframe.cli.group import LocalPath
from memframe.cli.opening import as_json, full_id, on_request, opened, request_option
from memframe.errors import ConfigError
from memframe.load import iter_memories
from memframe.plan import Plan, plan_changes, plan_deletes
from memframe.plan.changes import OnConflict, OnNull, check_size
from memframe.showing import number_of
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
    asked_for(actions)  # before anything is read
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
