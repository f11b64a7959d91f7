"""`memframe clean`: audit a file of another memory system, decide, and write it clean in its own format."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from memframe.audit import Audit, audit_memories
from memframe.audit.policy import Policy, read_policy
from memframe.clean import CleanedFile, open_file, write_plan
from memframe.cleanup import plan_cleanup, write_changes
from memframe.cli.options import (
    FILE,
    LocalPath,
    as_json,
    example,
    policy_option,
    print_result,
    remark,
    wants_json,
)
from memframe.cli.review import decide_all, find_named
from memframe.cli.write import MAX_PRINTED_CHANGES, full_option
from memframe.display import escape_invisible, number_of
from memframe.plan import Plan
from memframe.plan.change import format_counts
from memframe.plan.current import current_of
from memframe.readers import read_memories
from memframe.review import review


@click.command("clean")
@click.argument("path", type=LocalPath(exists=True))
@click.option(
    "--accept",
    metavar="NAMES",
    help="Accept all proposals of these checks, kinds or ids, such as exact_duplicate,secret, and no others.",
)
@click.option("--decisions", type=FILE, help="Apply what you accepted in this file of decisions.")
@policy_option
@click.option("--plan", "plan_path", type=FILE, help="Apply a plan that `memframe review --file` saved.")
@click.option("--diff", "is_dry", is_flag=True, help="Print a unified diff and write nothing.")
@click.option(
    "--out", type=LocalPath(), help="Write the clean copy here. Default: NAME.cleaned.EXT next to PATH."
)
@click.option(
    "--changes",
    type=FILE,
    multiple=True,
    help="For exports: only list the ids to delete and the texts to set in this file (.json or .csv).",
)
@click.option("--in-place", is_flag=True, help="Change PATH itself; `memframe undo` restores it.")
@click.option("--force", is_flag=True, help="Replace an existing --out.")
@click.option("--format", "form", default="auto", help="Format of PATH, if several fit.")
@click.option("--zone", help="Time zone of times in PATH without one, such as Europe/Paris.")
@full_option
@as_json
@example(
    "memframe clean MEMORY.md --diff",
    "memframe clean memory.jsonl --accept exact_duplicate,secret",
    "memframe clean MEMORY.md --in-place",
    "memframe clean agent.af --changes changes.csv",
)
def clean_command(
    path: Path,
    accept: str | None,
    decisions: Path | None,
    policy: Path | None,
    plan_path: Path | None,
    is_dry: bool,
    out: Path | None,
    changes: tuple[Path, ...],
    in_place: bool,
    force: bool,
    form: str,
    zone: str | None,
    full: bool,
) -> None:
    """Clean PATH in its own format: Markdown, JSON, JSON Lines, CSV, Parquet, or a folder of them.

    Audits PATH and, in a terminal, asks about each proposal. A script applies what `memframe plan` would, or what
    --accept names, or what you accepted in --decisions. Only the text of those memories changes; what the format cannot
    hold is listed. By default, writes a copy next to PATH.

    Exits with 3 if PATH has changed since the plan was made.
    """
    if plan_path is not None and (accept or decisions or policy):
        raise click.UsageError("--plan is already decided: leave out --accept, --decisions and --policy.")
    if in_place and out is not None:
        raise click.UsageError("--out writes a copy and --in-place changes the file: give one of them.")
    if changes and (out is not None or in_place or is_dry):
        raise click.UsageError("--changes only writes a list: leave out --out, --in-place and --diff.")
    if changes:
        _list_changes(path, changes, plan_path, accept, decisions, policy, form=form, zone=zone, force=force)
        return
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        opened = open_file(path, format=form, zone=zone)
    rules = read_policy(policy)
    audit = audit_memories(opened.reading.frame, policy=rules)
    plan = Plan.load(plan_path) if plan_path else _make_plan(audit, rules, accept, decisions, is_dry=is_dry)
    cleaned = write_plan(opened, plan, audit, out=out, in_place=in_place, dry_run=is_dry, force=force)
    values: dict[str, Any] = {
        "path": str(path),
        "counts": cleaned.plan.counts,
        "left": cleaned.plan.left.to_dict("records"),
        "out": cleaned.out and str(cleaned.out),
        "backup": cleaned.backup and str(cleaned.backup),
        "diff": cleaned.diff,
    }
    if wants_json():
        print_result(values)
    elif is_dry:
        _print_patch(cleaned)
    else:
        click.echo(cleaned.plan.diff(limit=None if full else MAX_PRINTED_CHANGES))
        print_result(values, _lines_of(cleaned))


def _list_changes(
    path: Path,
    changes: tuple[Path, ...],
    plan_path: Path | None,
    accept: str | None,
    decisions: Path | None,
    policy: Path | None,
    *,
    form: str,
    zone: str | None,
    force: bool,
) -> None:
    """Audit and decide as for a clean file, and list the changes to make in the system that exported it."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        read = read_memories(path, format=form, zone=zone)
    rules = read_policy(policy)
    audit = audit_memories(read, policy=rules)
    plan = Plan.load(plan_path) if plan_path else _make_plan(audit, rules, accept, decisions, is_dry=False)
    plan.refuse_stale(current_of(audit.memories))
    for each in changes:
        write_changes(plan, audit.memories, each, force=force)
    listed = [str(each) for each in changes]
    values = {
        "path": str(path),
        "counts": plan.counts,
        "left": plan.left.to_dict("records"),
        "changes": listed,
    }
    print_result(
        values,
        f"{format_counts(plan.counts) or 'Nothing to clean'}: {', '.join(listed)}, readable only by you",
    )


def _make_plan(
    audit: Audit, rules: Policy | None, accept: str | None, decisions: Path | None, *, is_dry: bool
) -> Plan:
    is_asked = sys.stdin.isatty() and sys.stdout.isatty() and not (is_dry or wants_json())
    if accept is None and decisions is None and not is_asked:
        return plan_cleanup(audit, policy=rules)
    desk = review(audit, decisions=decisions, policy=rules)
    if accept is not None:
        desk.accept(find_named(desk, accept, accepting=True))
    elif is_asked:
        decide_all(desk)
    return desk.plan()


_PATCH_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
"""Colours of the lines of a patch by their first character, as in git."""


def _print_patch(cleaned: CleanedFile) -> None:
    """Print a patch unchanged for a program; on a terminal, in colours and with control characters escaped."""
    patch = cleaned.diff
    if sys.stdout.isatty():
        patch = "\n".join(
            click.style(escape_invisible(line), fg=_PATCH_COLOURS.get(line[:1])) for line in patch.split("\n")
        )
    click.echo(patch.encode(), nl=False)
    n_changes = format_counts(cleaned.plan.counts)
    remark(f"{n_changes}; nothing was written." if cleaned.plan else "Nothing to clean.")
    _remark_left(cleaned)


def _remark_left(cleaned: CleanedFile) -> None:
    if n_left := len(cleaned.plan.left):
        remark(f"{number_of(n_left, 'proposal is', 'proposals are')} left for you; --json lists them.")


def _lines_of(cleaned: CleanedFile) -> Iterator[str]:
    if cleaned.out is None:
        yield "Nothing to clean: no file was written."
    elif cleaned.backup is None:
        yield f"Clean copy: {cleaned.out}"
    else:
        yield f"Cleaned: {cleaned.out}"
        yield f"To undo it: memframe undo {shlex.quote(str(cleaned.backup))}"
