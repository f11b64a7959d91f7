"""`memframe plan`, `undo`, `reseal`, `apply`, `resume` and `runs`: plan changes, and carry plans out."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any, get_args

import click
import pandas as pd

from memframe.access import Access
from memframe.apply import Run, apply_plan, resume_run
from memframe.archive import is_sealed, load_archive
from memframe.archive.formats import OPENERS, open_archive_file, parts_of
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.audit.policy import read_policy
from memframe.clean.files import is_backup, purge_backups, undo_files
from memframe.cleanup import audit_again, plan_cleanup
from memframe.cleanup.proposals import MAX_SHARE, Actions, read_actions
from memframe.cli.access import access_required, open_request, request_option
from memframe.cli.options import (
    CONFLICTS,
    COUNT,
    FILE,
    SECONDS,
    UNKNOWN,
    LocalPath,
    as_json,
    ask_secrets,
    combine,
    example,
    key_file_option,
    policy_option,
    print_result,
    read_keys,
    remark,
    wants_json,
)
from memframe.client.responses import full_id, is_uuid
from memframe.decisions import read_decisions
from memframe.display import number_of
from memframe.errors import AccessError, AuthError, ConfigError, FrameError
from memframe.journal import STATUSES, list_runs, purge_runs
from memframe.load import iter_memories
from memframe.plan import Plan, plan_changes, plan_deletes
from memframe.plan.change import format_counts
from memframe.plan.changes import OnConflict, OnNull, check_n_changes
from memframe.plan.permitted import keep_policy
from memframe.plan.render import on_one_line
from memframe.restore import check_archive, plan_restore
from memframe.review import review
from memframe.secret import Secret
from memframe.undo import plan_id_of, plan_reseal, plan_undo

MAX_PRINTED_CHANGES = 20
"""Changes that are printed without --full."""

MAX_ROWS_SHOWN = 10
"""Most failed rows that are printed; the others are only counted."""

out_option = click.option(
    "--out", type=LocalPath(), help="Save the plan in this file, encrypted for you on this machine."
)
full_option = click.option(
    "--full", is_flag=True, help=f"Print all changes, not only the first {MAX_PRINTED_CHANGES}."
)
max_changes_option = click.option(
    "--max-changes", metavar="N", type=COUNT, help="Refuse to plan more than N changes."
)


@click.command("plan")
@click.argument("edited", required=False, type=LocalPath())
@request_option(required=False)
@out_option
@click.option(
    "--from-audit",
    "audit",
    type=FILE,
    help="Plan the proposals of an audit that `memframe audit --out` saved, instead of EDITED.",
)
@click.option(
    "--actions",
    help="Plan only these actions, such as delete,merge; or actions by check, such as personal_data=redact.",
)
@key_file_option
@click.option("--delete", "is_delete", is_flag=True, help="Delete the memories of EDITED.")
@click.option("--show", "saved", type=LocalPath(), help="Show a saved plan instead.")
@click.option(
    "--on-null",
    type=click.Choice(get_args(OnNull)),
    default="raise",
    help="Meaning of an emptied cell: an error, a field to clear, or no change.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    default="raise",
    help="Fields that also changed at the service: show them and save no plan (raise), save a plan without "
    "them (mark), overwrite them (mine) or leave them (theirs).",
)
@click.option(
    "--max-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Largest share of all memories to delete by wording alone. Default: delete_share of the --policy, "
    f"else {MAX_SHARE:g}.",
)
@max_changes_option
@policy_option
@click.option(
    "--decisions",
    type=LocalPath(exists=True, dir_okay=False),
    help="Plan exactly the proposals of --from-audit that you accepted in this file.",
)
@full_option
@as_json
@example(
    "memframe plan edited.parquet --request 7c9e6679 --out edits.plan",
    "memframe audit --request 7c9e6679 --out audit.json",
    "memframe plan --from-audit audit.json --request 7c9e6679 --out cleanup.plan",
)
def plan_command(
    edited: Path | None,
    request_id: str | None,
    audit: Any,
    key: Secret | None,
    is_delete: bool,
    saved: Path | None,
    actions: str | None,
    on_null: OnNull,
    on_conflict: OnConflict,
    max_share: float | None,
    max_changes: int | None,
    policy: Path | None,
    decisions: Path | None,
    out: Path | None,
    full: bool,
) -> None:
    """Plan the changes of EDITED: an archive (.parquet, .jsonl, .csv) with edited or new rows.

    pandas can write EDITED: to_parquet, to_csv, or to_json with orient="records" and lines=True. Some columns of an
    archive are enough, such as content and tags (JSON lists in .csv). Nothing is written to the service. Rows that are
    not in EDITED stay. --delete plans to delete the rows of EDITED, which may then also be a text file with one id, or
    beginning of an id, per line; - is standard input.

    Instead of EDITED, --from-audit plans the proposals of an audit that still apply: delete, merge, redact, strip,
    retag, rescale. To redact personal data as well, add --actions personal_data=redact; to delete memories whose
    wording alone is suspicious, add --actions junk=delete. With --decisions, the plan has only what you accepted, and
    says how many proposals are undecided.

    Exits with 3 if there are conflicts.
    """
    if saved is not None:
        _show(Plan.load(saved), full=full)
        return
    if request_id is None or (edited is None) == (audit is None):
        raise click.UsageError("give --request and EDITED or --from-audit, or --show a saved plan")
    if audit is None and actions is not None:
        raise click.UsageError("--actions chooses among the proposals of --from-audit: give both")
    if decisions is not None and (audit is None or actions is not None or max_share is not None):
        raise click.UsageError("Give --decisions with --from-audit, and without --actions and --max-share")
    in_plan: OnConflict = "mark" if on_conflict == "raise" else on_conflict  # to show the conflicts below
    rules = read_policy(policy)
    with open_request(request_id) as access:
        if edited is None:
            plan = _plan_proposals(
                access, audit, actions, decisions, on_conflict=in_plan, max_share=max_share, policy=rules
            )
        elif is_delete:
            plan = plan_deletes(access, _rows_to_delete(edited, access, key), on_conflict=in_plan)
        else:
            rows = _read_rows(edited, key or access)
            plan = plan_changes(access, rows, on_null=on_null, on_conflict=in_plan)
        plan = _compare_with_all(access, plan)
        if rules is not None and edited is not None:
            plan = keep_policy(access, plan, rules)
    check_n_changes(plan.records, max_changes)
    n_conflicts = plan.counts.get("conflict", 0)
    if n_conflicts and on_conflict == "raise":
        _show(plan, full=full)
        unwritten = "" if out is None else f", so {out} was not written"
        click.echo(
            f"{number_of(n_conflicts, 'conflict', 'conflicts')} with what the service holds now{unwritten}. Decide "
            "with --on-conflict mine (overwrite) or --on-conflict theirs (leave as it is); --on-conflict mark keeps a "
            "plan without them.",
            err=True,
        )
        sys.exit(CONFLICTS)
    _save_and_exit(plan, out, request_id, "conflict", full=full)


def _plan_proposals(
    access: Access, audit: Path, actions: str | None, decisions: Path | None, **options: Any
) -> Plan:
    chosen = _parse_actions(actions)
    read_actions(chosen)  # before anything is read
    read_decisions(decisions)
    renewal = audit_again(access, audit, policy=options["policy"])
    if renewal.n_left_out:
        n_gone = number_of(renewal.n_left_out, "finding", "findings")
        remark(f"{n_gone} left out: not found any more.")
    if renewal.note:
        remark(f"{renewal.note}.")
    if decisions is not None:
        return review(renewal.audit, decisions=decisions, policy=options["policy"]).plan(access)
    return plan_cleanup(access, renewal.audit, actions=chosen, **options)


@click.command("undo")
@click.argument("journal", type=LocalPath())
@request_option(required=False)
@combine(out_option, full_option, as_json)
@example(
    "memframe undo cleanup.journal --request 7c9e6679 --out undo.plan",
    "memframe undo 20261124T093000Z-5f2c1a90.backup",
)
def undo_command(request_id: str | None, journal: Path, out: Path | None, full: bool) -> None:
    """Plan to undo a run: revert its patches, bring back its deletes, delete its creates.

    Nothing is written. Later changes by others are conflicts: the command prints them, leaves them out of the saved
    plan and exits with 3. A deleted memory gets its id and dates back if the service can restore it, and otherwise a
    new id and the date of the undo. The plan says which, with the old date.

    A backup of `memframe clean --in-place` is restored at once, unless the file has changed since.
    """
    if is_backup(journal):
        paths = undo_files(journal)
        print_result({"restored": [*map(str, paths)]}, f"Restored: {', '.join(map(str, paths))}")
        return
    if request_id is None:
        raise click.UsageError("Missing option '--request': the run is undone at its service.")
    with open_request(request_id) as access:
        plan = _compare_with_all(access, plan_undo(access, journal))
        if out is not None and out.exists() and Plan.load(out).id == plan_id_of(journal):
            raise ConfigError(
                f"{out} is the plan of this run and is not replaced: give another path to --out"
            )
        _save_and_exit(plan, out, access.request_id, "conflict", full=full)


@click.command("restore")
@click.argument("archive", type=LocalPath(exists=True))
@click.option(
    "--as-of",
    metavar="TIME",
    help="Use the state that ARCHIVE had at this time, such as 2026-11-16.",
)
@key_file_option
@click.option(
    "--on-conflict",
    type=click.Choice([choice for choice in get_args(OnConflict) if choice != "raise"]),
    default="mark",
    help="Memories that exist and differ: show them and leave them out of the saved plan (mark), overwrite them with "
    "the archive (mine), or leave them (theirs).",
)
@max_changes_option
@click.option(
    "--check", is_flag=True, help="Only check that the archive has all that the service lists; plan nothing."
)
@access_required
@combine(out_option, full_option, as_json)
@example(
    "memframe restore backup.parquet --request 7c9e6679 --check",
    "memframe restore backup.parquet --request 7c9e6679 --out restore.plan",
    "memframe apply restore.plan --request 7c9e6679",
)
def restore_command(
    access: Access,
    archive: Path,
    as_of: str | None,
    key: Secret | None,
    on_conflict: OnConflict,
    max_changes: int | None,
    check: bool,
    out: Path | None,
    full: bool,
) -> None:
    """Plan to restore what ARCHIVE has and the service lacks; or verify with --check that it has everything.

    ARCHIVE is what `memframe export` wrote, sealed or not. Memories of another account get new ids. Nothing is written.
    Memories that exist and are equal stay; those that differ are conflicts, which are printed and left out of the saved
    plan. A deleted memory gets its id and dates back if the service can restore it, and otherwise a new id and the date
    of the run.

    Exits with 3 if there are conflicts or memories that cannot be created; with --check, if a memory of the service is
    missing in the archive or differs.
    """
    if check and as_of is not None:
        raise click.UsageError("--check compares the present state of ARCHIVE: leave out --as-of")
    if check:
        found = check_archive(access, archive, key=key)
        print_result(found, str(found))
        sys.exit(0 if found.is_whole else CONFLICTS)
    plan = _compare_with_all(
        access, plan_restore(access, archive, key=key, on_conflict=on_conflict, as_of=as_of)
    )
    check_n_changes(plan.records, max_changes)
    _save_and_exit(plan, out, access.request_id, "conflict", "invalid", full=full)


def _compare_with_all(access: Access, plan: Plan) -> Plan:
    """Load all memories to look for values that a plan would lose, if it has any and nothing was loaded yet."""
    if plan.losses.empty or plan.n_compared:
        return plan
    return plan.compare_with(pd.concat(iter_memories(access, progress=False)))


def _parse_actions(text: str | None) -> Actions:
    """Parse --actions: a list, or a mapping."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    pairs = [part.partition("=")[::2] for part in parts if "=" in part]
    if pairs and len(pairs) < len(parts):
        raise click.UsageError("--actions: either names such as delete,merge, or pairs such as junk=review")
    return dict(pairs) or (None if text is None else parts)


def _read_rows(path: Path, key: Access | Secret) -> pd.DataFrame:
    """Read an archive, or any table with some of its columns."""
    first, *_ = parts_of(path)
    names = open_archive_file(first).names
    known = [name for name in ARCHIVE_SCHEMA if name in names]
    if not known:
        raise FrameError(
            f"{path} has no column of a memory, such as id or content: edit a file of `memframe export`, or rename its "
            "columns"
        )
    rows = load_archive(path, key=key if is_sealed(path) else None, columns=known or None)
    others = [name for name in names if name not in rows and name not in rows.index.names]
    return rows.assign(**dict.fromkeys(others))  # a plan refuses them by their names


def _rows_to_delete(path: Path, access: Access, key: Secret | None) -> pd.DataFrame | list[str]:
    """Read rows of an archive, which become the baseline, or only ids."""
    if path.suffix.lower() in OPENERS or path.is_dir():
        return _read_rows(path, key or access)
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
    return [full_id(one, ids, ("memory", "memories"), shown_by="`memframe export`") for one in given]


def _show(plan: Plan, *, full: bool) -> None:
    if wants_json():
        click.echo(plan.to_json().encode())
        return
    click.echo(plan.diff(limit=None if full else MAX_PRINTED_CHANGES))
    if len(plan) > MAX_PRINTED_CHANGES and not full:
        remark(f"Shown: {MAX_PRINTED_CHANGES} of {len(plan):,} changes; --full prints all.")


def _save_and_exit(
    plan: Plan, path: Path | None, request_id: str, *refused: str, full: bool | None = None
) -> None:
    """Save the writes of a plan, print the command that applies them, and end with 3 if there are refused changes.

    If ``full`` is given, the plan is printed after it is saved, because a pager that is left early closes the pipe.
    """
    writable = plan.without("conflict", "invalid")
    left_out = format_counts({name: plan.counts.get(name, 0) for name in ("conflict", "invalid")})
    is_saved = path is not None and (bool(writable) or not plan)
    if path is not None and is_saved:
        writable.save(path)
    if full is not None:
        _show(plan, full=full)
    if path is not None and not is_saved:
        click.echo(f"{left_out}, and nothing else to do, so {path} was not written.", err=True)
    elif path is not None:
        without = f" without {left_out}" if len(writable) < len(plan) else ""
        remark(f"Saved to {path}{without}. {describe_next_step(writable, path, request_id)}")
    if plan.counts.keys() & {*refused}:
        sys.exit(CONFLICTS)


def describe_next_step(plan: Plan, path: Path, request_id: str) -> str:
    """Return the command that applies a saved plan."""
    if not plan:
        return "It changes nothing."
    saved = shlex.quote(str(path))
    if plan.file is not None:
        return f"To apply it: memframe clean {shlex.quote(plan.file)} --plan {saved}"
    n_deletes, n_lost = plan.counts.get("delete", 0), len(plan.losses)
    confirm = f" --confirm {n_deletes}" if n_deletes else ""
    confirm += f" --confirm-losses {n_lost}" if n_lost else ""
    return f"To apply it: memframe apply {saved}{confirm} --request {request_id}"


writing_options = combine(
    click.option("--workers", metavar="N", default=4, type=click.IntRange(1, 16), help="Concurrent writes."),
    click.option(
        "--settle",
        "settle_s",
        metavar="SECONDS",
        default=2.0,
        type=SECONDS,
        help="Seconds to look for an unanswered write before sending it again.",
    ),
    as_json,
)


@click.command("apply")
@click.argument("plan", type=LocalPath())
@request_option(required=True)
@click.option(
    "--confirm", metavar="N", type=COUNT, help="Number of memories that the plan deletes, as confirmation."
)
@click.option(
    "--confirm-losses",
    metavar="N",
    type=COUNT,
    help="Number of values that would be lost, as the plan lists them.",
)
@policy_option
@click.option("--journal", type=LocalPath(), help="File for the journal of the run.")
@click.option("--plaintext", is_flag=True, help="Send content unsealed, for services that seal it.")
@writing_options
@example("memframe apply cleanup.plan --confirm 12 --request 7c9e6679")
def apply_command(plan: Path, request_id: str, plaintext: bool, **options: Any) -> None:
    """Apply a plan. Each write is recorded first, so you can resume and undo the run.

    Exits with 3 if rows were rejected, in conflict or left out, or are missing or duplicated when read back. Exits with
    4 if the outcome of some is unknown; `memframe resume` finds it out.
    """
    loaded = Plan.load(plan)  # before connecting: it may be damaged
    if not (loaded.losses.empty and loaded.left.empty) and not wants_json():
        for note in loaded.remarks:
            remark(on_one_line(note))
    with open_request(request_id) as access:
        _finish(apply_plan(access, loaded, encrypt=not plaintext, **options), access.request_id)


@click.command("resume")
@click.argument("journal", type=LocalPath())
@access_required
@policy_option
@writing_options
@example("memframe resume cleanup.journal --request 7c9e6679")
def resume_command(access: Access, journal: Path, **options: Any) -> None:
    """Resume an interrupted run: find out what was written, then write the rest.

    The exit codes are those of `memframe apply`. A run that was undone since also exits with 3: nothing is written,
    and a new plan would repeat it.
    """
    _finish(resume_run(access, journal, **options), access.request_id)


@click.command("runs")
@click.option(
    "--purge",
    "days",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    help="Remove runs older than this, including interrupted ones.",
)
@click.option(
    "--forget",
    "journals",
    metavar="JOURNAL",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Forget a run and remove its journal, even if that is already lost.",
)
@as_json
@example("memframe runs --purge 30")
def runs_command(days: float | None, journals: tuple[Path, ...]) -> None:
    """List your runs, with their journals.

    A journal holds, encrypted, what its run deleted and changed: `memframe undo` needs it. Journals are in your state
    folder, unless --journal placed them elsewhere; --purge leaves those alone. A new run removes journals of runs that
    finished more than 30 days ago. If a journal is missing, its run stays in the list, and its plan is refused, until
    you bring the journal back or --forget it.
    """
    if journals:
        remark(f"{len(purge_runs(journals=journals)):,} removed")
    if days is not None:
        remark(f"{number_of(len(purge_runs(older_than_days=days)), 'run', 'runs')} removed")
        if n_backups := purge_backups(days):
            remark(f"{number_of(n_backups, 'backup of a file', 'backups of files')} removed")
    runs = list_runs()
    known = json.loads(runs.drop(columns="journal").to_json(orient="records", date_format="iso"))
    for run, journal in zip(known, runs["journal"], strict=True):
        run["journal"] = str(journal)  # not through pandas, whose JSON needs paths in UTF-8
    print_result(known, "\n".join(map(_format_run, runs.to_dict("records"))) or "no runs")


def _format_run(run: dict[Hashable, Any]) -> str:
    """Print a run: start, state, outcomes and journal."""
    known = {name: value for name, value in run.items() if pd.notna(value)}  # an unreadable run has few
    counts = ", ".join(f"{known[name]:,} {name}" for name in STATUSES if known.get(name))
    began = f"{known['created_at']:%Y-%m-%d %H:%M}" if "created_at" in known else " " * 16
    return f"{began}  {run['state']:<10}  {counts or '-':<8}  {run['journal']}"


def _finish(run: Run, request_id: str) -> None:
    """Print the outcomes of a run, and end with its exit code."""
    left = [result for result in run.results if result.status not in {"done", "recovered"}]
    rows = [
        f"row {one.row}: {one.action} {one.status}" + (f": {one.error}" if one.error else "") for one in left
    ]
    values = {
        "journal": run.journal and str(run.journal),
        "counts": run.counts,
        "outcomes": json.loads(run.outcomes.to_json(orient="records")),
        "verification": run.verification,
        "stopped": run.stopped and str(run.stopped),
    }
    summary = str(run).removeprefix("<memframe.Run: ").removesuffix(">")
    is_plain = run.verification.is_clean and not any(
        one.restores or one.status != "done" for one in run.results
    )
    if is_plain and run.verification.n_checked == len(run) > 0:
        summary = f"{number_of(len(run), 'change', 'changes')} written and verified"
    words = [summary, *_list_first(rows)]
    print_result(values, words)
    if run.journal is not None and not wants_json():
        is_open = any(one.status in {"planned", "unknown"} for one in left)
        purpose, verb = ("To resume", "resume") if is_open else ("To undo it", "undo")
        if run.verification.undone and not is_open:
            remark("The run was undone since. To repeat it, make a new plan.")
        else:
            remark(f"{purpose}: memframe {verb} {shlex.quote(str(run.journal))} --request {request_id}")
    has_unknown = run.counts.get("unknown") and not isinstance(run.stopped, AccessError | AuthError)
    if run.stopped is not None and not has_unknown:
        raise run.stopped
    is_there_once = not (run.verification.missing or run.verification.undone or run.verification.duplicates)
    if has_unknown:
        sys.exit(UNKNOWN)
    sys.exit(CONFLICTS if left or not is_there_once else 0)


def _list_first(lines: list[str]) -> list[str]:
    """Return the first lines of many, and count the rest."""
    n_more = len(lines) - MAX_ROWS_SHOWN
    return lines[:MAX_ROWS_SHOWN] + ([f"and {n_more:,} more; --json lists them"] if n_more > 0 else [])


@click.command("reseal")
@access_required
@click.option(
    "--old-keys",
    "file",
    type=LocalPath(),
    help="File with the older keys, as hexadecimal text, one per line. Default: prompt for them, or read "
    "standard input.",
)
@click.option("--leave-unopened", is_flag=True, help="Skip content that no key opens, and plan the rest.")
@out_option
@as_json
@example(
    "memframe reseal --request 7c9e6679 --old-keys old-keys.txt --out reseal.plan",
    "memframe apply reseal.plan --request 7c9e6679",
)
def reseal_command(access: Access, file: Path | None, leave_unopened: bool, out: Path | None) -> None:
    """Plan to encrypt content again, from older keys to the newest one.

    Some services leave this to applications when a key changes. Nothing is written, and the texts stay the same.
    Content that is sealed with the newest key, or not at all, is left alone.

    Exits with 3, and saves no plan, if some content opens with none of the keys.
    """
    keys = ask_secrets("Older key") if file is None else read_keys(file, "--old-keys")
    if not keys:
        place = "on standard input" if file is None else f"in {file}"
        raise ConfigError(f"there is no key {place}: give the older keys as hexadecimal text, one per line")
    plan = plan_reseal(access, old_keys=keys)
    unopened = [change for change in plan.records if change.action == "invalid"]
    print_result(
        plan.to_json(), [str(plan), *_list_first([f"memory {one.id}: {one.reason}" for one in unopened])]
    )
    if unopened and not leave_unopened:
        click.echo("No plan was saved. To plan the rest, add --leave-unopened.", err=True)
        sys.exit(CONFLICTS)
    _save_and_exit(plan.without("invalid"), out, access.request_id)
