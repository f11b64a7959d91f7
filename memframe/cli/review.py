"""`memframe review`: decide on proposals one by one in a terminal, or by ids in a script."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from memframe.access import Access
from memframe.audit import audit_memories
from memframe.cleanup import audit_again
from memframe.cli.access import open_request, request_option
from memframe.cli.options import FILE, LocalPath, as_json, example, remark, show, wants_json
from memframe.display import escape_invisible, number_of, printable
from memframe.errors import PlanError
from memframe.load import load_memories, load_tags
from memframe.plan import Plan
from memframe.readers import read_memories
from memframe.review import Review, review
from memframe.review.detail import Detail, show_proposal

KEYS = {
    "y": "accept",
    "n": "reject, and never ask again while the text stays as it is",
    "e": "edit the text that stays, in $EDITOR",
    "l": "later: ask again at the end",
    "g": "open the group, and decide on its memories one by one",
    "s": "show the secrets of this proposal",
    "u": "undo the last decision",
    "q": "quit; what was decided is kept",
    "?": "explain the keys",
}

COLORS = {"removed": "red", "added": "green", "masked": "yellow", "invisible": "magenta", "same": None}

ROLES = {"goes": "goes", "stays": "stays", "changes": "changes", "about": "is about"}


@click.command("review")
@request_option(required=False)
@click.option("--plan", "plan_path", type=FILE, help="Review a saved plan.")
@click.option("--audit", "audit_path", type=FILE, help="Review what a saved audit of the --request proposes.")
@click.option(
    "--file", "foreign", type=LocalPath(exists=True), help="Review a file of another memory system."
)
@click.option("--decisions", type=FILE, help="File in which the decisions last; made by the first one.")
@click.option("--list", "is_list", is_flag=True, help="List the proposals, and decide nothing.")
@click.option("--stats", is_flag=True, help="Show how often each check was right, by your own decisions.")
@click.option(
    "--accept", multiple=True, metavar="ID", help="Accept a proposal by its id, or a kind: check/kind."
)
@click.option(
    "--reject", multiple=True, metavar="ID", help="Reject a proposal by its id, or a kind: check/kind."
)
@click.option("--note", default="", help="Why, for the file.")
@click.option("--until", metavar="DAY", help="When the decisions of --accept and --reject end.")
@click.option("--out", type=LocalPath(), help="Save the plan of what was accepted, encrypted for you.")
@click.option("--html", type=FILE, help="Write what was decided as a page.")
@as_json
@example(
    "memframe review --request 7c9e6679 --decisions ilka.decisions --out cleanup.plan",
    "memframe review --request 7c9e6679 --decisions ilka.decisions --accept exact_duplicate/copy",
)
def review_command(
    request_id: str | None,
    plan_path: Path | None,
    audit_path: Path | None,
    foreign: Path | None,
    decisions: Path | None,
    is_list: bool,
    stats: bool,
    accept: tuple[str, ...],
    reject: tuple[str, ...],
    note: str,
    until: str | None,
    out: Path | None,
    html: Path | None,
) -> None:
    """Decide on proposals one by one, as `git add -p` does; nothing is written to the service.

    Proposals come in groups, those with the most to gain first. What was rejected is not asked again until its text
    changes. --list, --accept, --reject, --stats and --json are for scripts: none of them asks anything.
    """
    if sum(one is not None for one in (plan_path, audit_path, foreign)) > 1:
        raise click.UsageError("Give one of --plan, --audit and --file.")
    if plan_path is None and foreign is None and request_id is None:
        raise click.UsageError("Choose what to review: --request ID, --plan FILE or --file PATH.")
    if decisions is None and out is None and (accept or reject):
        raise click.UsageError("Nothing would be kept: give --decisions FILE or --out PLAN.")
    if out is not None and foreign is not None:
        raise click.UsageError("No service holds the memories of a --file, so that there is no plan to save.")
    with ExitStack() as stack:
        is_needed = foreign is None and (plan_path is None or out is not None)
        access = stack.enter_context(open_request(request_id)) if request_id and is_needed else None
        desk = review(_read_origin(access, plan_path, audit_path, foreign), decisions=decisions)
        for call, given in ((desk.accept, accept), (desk.reject, reject)):
            if chosen := [one for text in given for one in _choose(desk, text)]:
                call(chosen, note=note, until=until)
        if not (is_list or stats or accept or reject or html or wants_json()):
            _decide_all(desk)
        if html is not None:
            desk.to_html(html)
        _report(desk, access, out, is_list=is_list, stats=stats)


def _read_origin(
    access: Access | None, plan_path: Path | None, audit_path: Path | None, foreign: Path | None
) -> Any:
    if plan_path is not None:
        return Plan.load(plan_path)
    if foreign is not None:
        return audit_memories(read_memories(foreign))
    if access is None:
        raise click.UsageError("Give --request ID.")
    if audit_path is not None:
        return audit_again(access, audit_path).audit
    return audit_memories(load_memories(access), tags=load_tags(access))


def _choose(desk: Review, text: str) -> list[str]:
    """Find proposals by an id, or the open ones of a kind."""
    if "/" not in text:
        return [desk.find(text).id]
    check, _, kind = text.partition("/")
    found = [
        one.id
        for one in desk.proposals
        if (one.first.check, one.first.kind) == (check, kind) and not desk.state(one)
    ]
    if not found:
        raise PlanError(f"there is no open proposal of {printable(text, 60)}; --list shows them")
    return found


def _report(desk: Review, access: Access | None, out: Path | None, *, is_list: bool, stats: bool) -> None:
    queue, progress = desk.queue, desk.progress
    lines: list[str] = []
    if is_list:
        columns = ("proposal", "decision", "check", "kind", "n_memories", "action", "reason")
        lines += [
            f"{one:<10} {decision or 'open':<9} {f'{check}/{kind}':<32} {n:>5} {action:<8} {printable(reason, 80)}"
            for one, decision, check, kind, n, action, reason in zip(
                *(queue[c] for c in columns), strict=True
            )
        ]
    if stats:
        lines += [_stat(row) for row in progress.to_dict("records")]
    n_left = int(progress["left"].sum())
    lines.append(f"{number_of(len(queue), 'proposal', 'proposals')}, {n_left:,} left.")
    plan = None
    if out is not None:
        plan = desk.plan(access)
        plan.save(out)
        lines.append(
            f"Plan: {out} ({number_of(len(plan), 'change', 'changes')}); `memframe apply` carries it out."
        )
    values = {
        "left": n_left,
        "queue": json.loads(queue.to_json(orient="records")),
        "progress": json.loads(progress.to_json(orient="records")),
        "plan": None if plan is None else {"path": str(out), "changes": len(plan)},
    }
    show(values, map(escape_invisible, lines))


def _stat(row: dict[Any, Any]) -> str:
    n = row["accepted"] + row["edited"] + row["rejected"]
    right = f"{100 * row['accepted'] / n:.0f} % of {n:,} right" if n else "nothing decided"
    return f"{row['check']}/{row['kind']:<28} {right}, {row['left']:,} left"


# ---- one by one


def _decide_all(desk: Review) -> None:
    """Ask about each open proposal, until none is left or the person quits."""
    if desk.decisions.path is None:
        remark("Without --decisions FILE, what you decide is only in the plan of --out.")
    while one := next((one.id for one in desk.proposals if desk.state(one) == ""), None):
        answer = _ask(desk, one)
        if answer == "q":
            return


def _ask(desk: Review, proposal: str) -> str:
    """Show a proposal, and ask until it is decided; return the key."""
    shown = show_proposal(desk, proposal)
    n_left = sum(desk.state(one) == "" for one in desk.proposals)
    click.echo(f"\n{number_of(n_left, 'proposal', 'proposals')} left")
    _print(shown)
    while True:
        keys = [key for key in KEYS if key not in _idle_keys(shown)]
        answer = click.prompt(
            click.style(f"[{','.join(keys)}]", bold=True), prompt_suffix=" ", default="?", show_default=False
        )
        key = str(answer).strip()[:1].lower()
        try:
            if key == "s" and "s" in keys:
                _print(show_proposal(desk, proposal, reveal=True))
            elif key in keys and key != "?":
                _act(desk, shown, key)
                return key
            else:
                for name in keys:
                    click.echo(f"{name}  {KEYS[name]}")
        except PlanError as error:
            click.echo(click.style(escape_invisible(error.for_shell()), fg="red"), err=True)


def _idle_keys(shown: Detail) -> Iterator[str]:
    """Yield the keys that do nothing for a proposal."""
    if shown.action == "none":
        yield "y"
    if not isinstance(shown.editable.get("content"), str):
        yield "e"
    if not shown.has_secrets:
        yield "s"
    if sum(member.role != "stays" for member in shown.members) < 2:
        yield "g"


def _act(desk: Review, shown: Detail, key: str) -> None:
    if key == "e":
        text = click.edit(str(shown.editable["content"]), extension=".txt")
        if text is None:
            raise PlanError("the text was not saved: nothing was edited")
        desk.edit(shown.id, content=text.rstrip("\n"))
    elif key == "g":
        desk.split(shown.id)
    elif key == "u":
        desk.undo()
    elif call := {"y": desk.accept, "n": desk.reject, "l": desk.later}.get(key):
        call(shown.id)


def _print(shown: Detail) -> None:
    """Print a proposal; texts of memories are in pieces whose invisible characters are spelled out."""
    width = max(20, min(shutil.get_terminal_size().columns, 120))
    click.echo(click.style(shown.heading, bold=True) + f"  {shown.id}")
    click.echo(click.wrap_text(shown.reason, width))
    for member in shown.members:
        click.echo(
            click.style(f"  {ROLES[member.role]}: {printable(' · '.join(member.facts), width)}", dim=True)
        )
        for field in member.fields:
            text = "".join(
                click.style(
                    _marked(piece.kind, piece.text),
                    fg=COLORS[piece.kind],
                    strikethrough=piece.kind == "removed",
                )
                for piece in field.pieces
            )
            for line in text.split("\n"):
                click.echo(f"    {line}")
    if shown.n_more:
        click.echo(f"  and {shown.n_more:,} more")
    for sentence in shown.others:
        click.echo(f"  also: {printable(sentence, width)}")
    click.echo(shown.accepting)


def _marked(kind: str, text: str) -> str:
    """Mark in words what colours say where there are none."""
    if sys.stdout.isatty() or kind not in ("removed", "added"):
        return text
    return f"[-{text}-]" if kind == "removed" else f"{{+{text}+}}"
