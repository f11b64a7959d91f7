"""`memframe review`: decide on proposals one by one in a terminal, or by ids in a script."""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from memframe.access import Access
from memframe.audit import CHECKS, audit_memories
from memframe.audit.policy import Policy, read_policy
from memframe.cleanup import audit_again
from memframe.cli.access import open_request, request_option
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
from memframe.cli.write import describe_next_step
from memframe.display import escape_invisible, number_of, printable
from memframe.errors import PlanError, find_nearest
from memframe.load import load_memories, load_tags
from memframe.plan import Plan
from memframe.readers import read_memories
from memframe.review import Review, review
from memframe.review.detail import (
    OFFER_WARNING,
    Detail,
    ShownMemory,
    describe_choice,
    show_proposal,
    shown_ids,
)
from memframe.review.filters import Filters

if sys.platform != "win32":
    import termios

KEYS = {
    "y": "accept",
    "n": "reject; ask again only if the text changes",
    "e": "edit the text that stays, in $EDITOR",
    "l": "later: put it last, also the next time",
    "j": "go on without a decision",
    "a": "accept all of this kind of which few can be wrong",
    "g": "open the group, to decide on its memories one by one",
    "s": "show the secrets of this proposal",
    "w": "show the whole of it",
    "/": "ask only about proposals with certain words",
    "A": "accept all with these words of which few can be wrong; asks first",
    "R": "reject all with these words; asks first",
    "u": "undo the last decision",
    "q": "quit; what you decided so far counts",
    "?": "explain the keys",
}

STYLES: dict[str, dict[str, Any]] = {
    "same": {},
    "found": {"fg": "yellow", "underline": True},
    "moved": {"fg": "cyan"},
    "removed": {"fg": "red", "strikethrough": True},
    "added": {"fg": "green"},
    "masked": {"fg": "yellow"},
    "invisible": {"fg": "magenta"},
    "folded": {"dim": True},
    "label": {"dim": True},
}

MAX_WIDTH, INDENT = 120, "    "

N_SORTED = 20
"""Proposals that are asked about in the order of the queue; then a person's decisions may have changed it."""

N_ALIKE = 3
"""Equal memories that are listed; the others are counted."""

MIN_SHOWN = 2
"""Memories that are shown however small the terminal is: the one that stays, and one that goes."""

N_OTHER_LINES = 12
"""Lines of a screen for what is not about one memory: counts, heading, reason, effect, bound, question."""

N_BESIDE_TEXT = 2
"""Lines beside each text: those of its facts, and the one that says that it goes on."""

MAX_PARAGRAPH = 2_000
"""Characters of what is printed about a memory beside its texts, such as its tags."""

NEW_LIST = ("q", "g", "a", "A", "R", "/", "u")
"""Keys after which the queue is listed anew."""


@click.command("review")
@request_option(required=False)
@click.option("--plan", "plan_path", type=FILE, help="Review a saved plan.")
@click.option(
    "--audit", "audit_path", type=FILE, help="Review the proposals of a saved audit of the --request."
)
@click.option(
    "--file", "foreign", type=LocalPath(exists=True), help="Review a file of another memory system."
)
@click.option("--decisions", type=FILE, help="File that keeps your decisions; the first one creates it.")
@policy_option
@click.option("--list", "is_list", is_flag=True, help="List the proposals without deciding.")
@click.option(
    "--stats", is_flag=True, help="Show how often each check was right, according to your decisions."
)
@click.option("--accept", multiple=True, metavar="NAME", help="Accept proposals by id, check, or check/kind.")
@click.option("--reject", multiple=True, metavar="NAME", help="Reject proposals by id, check, or check/kind.")
@click.option(
    "--note",
    default="",
    show_default=False,
    help="Reason, kept with the decisions of --accept and --reject.",
)
@click.option("--until", metavar="DAY", help="Last day on which the decisions of --accept and --reject hold.")
@click.option("--out", type=LocalPath(), help="Save a plan of what you accepted, encrypted for you.")
@click.option("--html", type=FILE, help="Write the decisions as an HTML page, after the last one.")
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
    policy: Path | None,
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

    Proposals come in groups, the most useful first. A rejected proposal comes back only if its text changes. --list,
    --accept, --reject, --stats and --json are for scripts: they ask nothing.
    """
    if sum(one is not None for one in (plan_path, audit_path, foreign)) > 1:
        raise click.UsageError("Give one of --plan, --audit and --file.")
    if plan_path is None and foreign is None and request_id is None:
        raise click.UsageError("Choose what to review: --request ID, --plan FILE or --file PATH.")
    if decisions is None and out is None and (accept or reject):
        raise click.UsageError("Your decisions would be lost: give --decisions FILE or --out PLAN.")
    with ExitStack() as stack:
        is_needed = foreign is None and (plan_path is None or out is not None)
        access = stack.enter_context(open_request(request_id)) if request_id and is_needed else None
        rules = read_policy(policy)
        desk = review(
            _read_origin(access, plan_path, audit_path, foreign, rules), decisions=decisions, policy=rules
        )
        for call, given, accepting in ((desk.accept, accept, True), (desk.reject, reject, False)):
            if chosen := [one for text in given for one in _choose(desk, text, accepting=accepting)]:
                call(chosen, note=note, until=until)
        if not (is_list or stats or accept or reject or wants_json()):
            decide_all(desk)
        if html is not None:
            desk.to_html(html)
        _report(desk, access, out, is_list=is_list, stats=stats)


def _read_origin(
    access: Access | None,
    plan_path: Path | None,
    audit_path: Path | None,
    foreign: Path | None,
    rules: Policy | None,
) -> Any:
    if plan_path is not None:
        return Plan.load(plan_path)
    if foreign is not None:
        with warnings.catch_warnings(record=True, action="always", category=UserWarning) as warned:
            memories = read_memories(foreign)
        for warning in warned:
            remark(escape_invisible(str(warning.message)))
        return audit_memories(memories, policy=rules)
    if access is None:
        raise click.UsageError("Give --request ID.")
    if audit_path is not None:
        return audit_again(access, audit_path, policy=rules).audit
    return audit_memories(load_memories(access), tags=load_tags(access), policy=rules)


_ID_CHARACTERS = frozenset("0123456789abcdef")
"""Characters of the ids of proposals, which are hexadecimal: any other name was meant for a check."""


def find_named(desk: Review, text: str, *, accepting: bool) -> list[str]:
    """Find proposals by ids, and the open ones of checks or kinds; several names are separated by commas.

    If they are to be accepted, a check or kind stands only for proposals of which accepting does something.
    """
    found: dict[str, None] = {}
    known = {*CHECKS, *(one.first.check for one in desk.proposals)}
    for name in filter(None, map(str.strip, text.split(","))):
        check, _, kind = name.partition("/")
        if check not in known:
            if not _ID_CHARACTERS.issuperset(name):
                nearest = find_nearest(check, known)
                raise PlanError(f"there is no check {printable(check, 40)!r}: the nearest is {nearest!r}")
            found[desk.find(name).id] = None
            continue
        for one in desk.proposals:
            is_named = one.first.check == check and kind in ("", one.first.kind)
            if is_named and not desk.state(one) and not (accepting and one.action == "none"):
                found[one.id] = None
    return list(found)


def _choose(desk: Review, text: str, *, accepting: bool) -> list[str]:
    if found := find_named(desk, text, accepting=accepting):
        return found
    raise PlanError(f"there is no open proposal of {printable(text, 60)}; --list shows them")


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
        request_id = "ID" if access is None else access.request_id
        n_changes = number_of(len(plan), "change", "changes")
        lines.append(f"Saved to {out}: {n_changes}. {describe_next_step(plan, out, request_id)}")
    values = {
        "left": n_left,
        "queue": json.loads(queue.to_json(orient="records")),
        "progress": json.loads(progress.to_json(orient="records")),
        "plan": None if plan is None else {"path": str(out), "changes": len(plan)},
    }
    print_result(values, map(escape_invisible, lines))


def _stat(row: dict[Any, Any]) -> str:
    kind = f"{row['check']}/{row['kind']}"
    judged = (
        f"{100 * row['right'] / row['judged']:.0f} % of {row['judged']:,} right"
        if row["judged"]
        else "none judged"
    )
    n_together = row["accepted"] + row["edited"] + row["rejected"] - row["judged"]
    others = f", {n_together:,} decided together" if n_together else ""
    return f"{kind:<32} {judged}{others}, {row['left']:,} left"


# ---- one by one


def decide_all(desk: Review) -> None:
    """Ask about each open proposal, until none is left or the person quits.

    The queue is sorted once for some proposals, not at each key; then a person's own share of right ones may have
    changed the order, and what remains of a kind may be offered.
    """
    if desk.decisions.path is None:
        remark("Your decisions are not kept for the next time: to keep them, add --decisions FILE.")
    filters, words = Filters(desk), ""
    passed: set[str] = set()
    decided: list[str] = []
    answer = ""
    while answer != "q":
        listed = filters.find({"decision": ["open", "later"]}, words)
        if not listed and not words:
            if not answer or not _undo_last(desk):
                break
            continue
        if not listed:
            click.echo("There is no open proposal with these words; all are asked about again.")
            words = ""
            continue
        ids = [one.id for one in listed]
        if passed.issuperset(ids):
            passed.clear()  # from the beginning
        first = [one for one in listed if one.id not in passed][:N_SORTED]
        desk.texts.hidden_of(i for one in first for i in shown_ids(one))
        last = decided.pop() if answer == "u" and decided else None
        due = [one.id for one in reversed(first) if one.id != last] + ([last] if last in ids else [])
        offers = {
            kind: desk.remaining(*kind) for kind in {(one.first.check, one.first.kind) for one in first}
        }
        n_left, answer = len(ids), ""
        while due and answer not in NEW_LIST:
            one = due.pop()
            where = f" with {printable(words, 60)!r}" if words else ""
            click.echo(f"\n{number_of(n_left, 'proposal', 'proposals')} left{where}")
            _echo_effects(desk, decided)
            kind = desk.find(one).first
            offer = [i for i in offers.get((kind.check, kind.kind), ()) if not desk.state(desk.find(i))]
            answer = _ask(desk, one, offer, ids)
            if answer == "/":
                words = click.prompt(
                    "Words, such as stale/expired or a source; nothing for all",
                    default="",
                    show_default=False,
                )
                passed.clear()
            decided += [one] if answer in ("y", "n", "e", "l") else []
            passed |= {one} if answer in ("l", "j") else set()
            n_left -= answer in ("y", "n", "e")
    _echo_effects(desk, decided)


def _echo_effects(desk: Review, decided: Sequence[str]) -> None:
    if decided:
        _echo(f"The plan so far: {desk.count_effects()}")


def _undo_last(desk: Review) -> bool:
    """Ask if the decision after which nothing was left is to be undone."""
    click.echo("\nNothing is left. u: undo the last decision")
    is_undone = _read_key(["u", "q"]) == "u"
    if is_undone:
        desk.undo()
    return is_undone


def _ask(desk: Review, proposal: str, offer: Sequence[str], listed: Sequence[str]) -> str:
    """Show a proposal, and ask until it is decided; return the key."""
    shown = show_proposal(desk, proposal, whole=not sys.stdout.isatty())
    is_folded = _print(shown)
    if bound := desk.explain_bound(shown.id):
        _echo(bound)
    has_more = len(offer) > 1  # of one, `y` accepts as much
    if has_more:
        _echo(f"a: accept {len(offer):,} of this kind. {OFFER_WARNING}")
    idle = {*_idle_keys(shown), *([] if has_more else ["a"]), *([] if is_folded else ["w"])}
    keys = [key for key in KEYS if key not in idle]
    while True:
        key = _read_key(keys)
        try:
            if key in ("s", "w") and key in keys:
                _print(show_proposal(desk, shown.id, reveal=key == "s", whole=True), whole=True)
            elif key in ("A", "R"):
                if _decide_listed(desk, key, listed):
                    return key
            elif key in keys and key != "?":
                _act(desk, shown, key, offer)
                return key
            else:
                for name in keys:
                    click.echo(f"{name}  {KEYS[name]}")
        except PlanError as error:
            click.echo(click.style(escape_invisible(error.for_shell()), fg="red"), err=True)


def _read_key(keys: Sequence[str]) -> str:
    _drop_typed_ahead()
    question = click.style(f"[{','.join(keys)}]", bold=True)
    try:
        answer = click.prompt(question, prompt_suffix=" ", default="?", show_default=False)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        return "q"  # the end of piped keys
    key = str(answer).strip()[:1]
    return key if key in keys else key.lower()


def _decide_listed(desk: Review, key: str, listed: Sequence[str]) -> bool:
    """Accept or reject all that would be asked about, once the person has confirmed it; return True if so."""
    open_ones = [one for one in map(desk.find, listed) if desk.state(one) in ("", "later")]
    chosen = open_ones
    if key == "A":
        chosen = [desk.find(one) for one in desk.find_acceptable([one.id for one in open_ones])]
    about, lines = describe_choice(desk, chosen, len(open_ones))
    for line in lines:
        _echo(line, "  ")
    if not chosen:
        click.echo("None of them can be accepted at once.")
        return False
    _drop_typed_ahead()
    if not click.confirm(f"{'Accept' if key == 'A' else 'Reject'} {about}?", default=False):
        return False
    (desk.accept if key == "A" else desk.reject)([one.id for one in chosen])
    click.echo(f"{'Accepted' if key == 'A' else 'Rejected'} {len(chosen):,}; u undoes it.")
    return True


def _drop_typed_ahead() -> None:
    """Drop what was typed before the question stood on the screen: it cannot be an answer to it."""
    if sys.platform != "win32" and sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _idle_keys(shown: Detail) -> Iterator[str]:
    """Yield the keys that do nothing for a proposal."""
    if shown.action == "none":
        yield "y"
    if not isinstance(shown.editable.get("content"), str):
        yield "e"
    if not shown.has_secrets:
        yield "s"
    if not shown.can_split:
        yield "g"


def _act(desk: Review, shown: Detail, key: str, offer: Sequence[str]) -> None:
    if key == "e":
        text = click.edit(str(shown.editable["content"]), extension=".txt")
        if text is None:
            raise PlanError("the text was not saved, so nothing has changed")
        desk.edit(shown.id, content=text.rstrip("\n"))
    elif key == "g":
        desk.split(shown.id)
    elif key == "a":
        desk.accept(offer)
        click.echo(f"Accepted {len(offer):,}; u undoes it.")
    elif key == "u":
        desk.undo()
        click.echo("Undone: the last decision.")
    elif call := {"y": desk.accept, "n": desk.reject, "l": desk.later}.get(key):
        call(shown.id)


def _width() -> int:
    return max(20, min(shutil.get_terminal_size().columns, MAX_WIDTH))


def _print(shown: Detail, *, whole: bool = False) -> bool:
    """Print a proposal; return True if not all of it fits into the terminal, and it is not to be ``whole``.

    Texts of memories are in pieces whose invisible characters are spelled out.
    """
    _echo(f"{shown.heading}  {shown.id}", bold=True)
    _echo(shown.reason)
    has_room = whole or not sys.stdout.isatty()
    room = 0 if has_room else max(8, shutil.get_terminal_size().lines - N_OTHER_LINES)
    n_texts = sum(len(member.fields) for member in shown.members)
    max_lines = None if has_room else max(3, room // max(1, min(3, n_texts)) - N_BESIDE_TEXT)
    is_folded, n_more = False, shown.n_more
    for number, member in enumerate(shown.members):
        lines = [*_lines_of(member, max_lines)]
        is_folded |= None in lines
        if not has_room and number >= MIN_SHOWN and len(lines) > room:
            n_left = sum(len(one.ids) for one in shown.members[number:])
            n_more, is_folded = n_more + n_left, True
            break
        room -= len(lines)
        for line in lines:
            click.echo(f"{INDENT}{click.style('… (w: the whole)', dim=True)}" if line is None else line)
        is_folded |= any(piece.kind == "folded" for field in member.fields for piece in field.pieces)
    if n_more:
        _echo(f"and {number_of(n_more, 'other memory', 'other memories')}", "  ")
    for sentence in shown.others:
        _echo(f"also: {sentence}", "  ")
    _echo(shown.accepting)
    if shown.losses:
        _echo(shown.losses, fg="red")
    return is_folded


def _lines_of(member: ShownMemory, max_lines: int | None) -> Iterator[str | None]:
    """Yield the lines of a memory; None stands for those of a field beyond ``max_lines``."""
    n = len(member.facts)
    role = f"{member.role}{f' ({n} with this text)' if n > 1 else ''}"
    yield from _paragraph(f"{role}: {member.facts[0]}", "  ", dim=True)
    for facts in member.facts[1:N_ALIKE]:
        yield from _paragraph(facts, INDENT * 2, dim=True)
    if n > N_ALIKE:
        yield from _paragraph(f"and {n - N_ALIKE:,} more of these", INDENT * 2, dim=True)
    for field in member.fields:
        is_alone = field.name == "content" and len(member.fields) == 1
        label = [] if is_alone else [("label", f"{field.name}: ")]
        pieces = [(piece.kind, piece.text) for piece in field.pieces]
        lines = [*_wrap([*label, *pieces], _width() - len(INDENT))]
        is_cut = max_lines is not None and len(lines) > max_lines + 1  # a line that says so takes as much
        yield from (INDENT + line for line in (lines[:max_lines] if is_cut else lines))
        if is_cut:
            yield None


def _echo(text: str, indent: str = "", **style: Any) -> None:
    for line in _paragraph(text, indent, **style):
        click.echo(line)


def _paragraph(text: str, indent: str, **style: Any) -> Iterator[str]:
    """Yield a paragraph, its invisible characters spelled out, in lines of the terminal's width."""
    for line in _wrap([("same", printable(text, MAX_PARAGRAPH))], _width() - len(indent)):
        yield indent + click.style(line, **style)


def _wrap(pieces: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Break kinds and texts of pieces into lines between words; a word that is longer than a line is broken within."""
    line: list[tuple[str, str]] = []
    n = 0
    for kind, piece in pieces:
        text = _marked(kind, piece).replace("\t", " ")
        for word in re.findall(r"\n|[^\S\n]+|\S+", text):
            if word == "\n" or (n and n + _count_columns(word) > width):
                yield _color(line)
                line, n = [], 0
                if word.isspace():
                    continue
            for part in _break(word, width):
                if n and n + _count_columns(part) > width:
                    yield _color(line)
                    line, n = [], 0
                line.append((kind, part))
                n += _count_columns(part)
    yield _color(line)


def _break(word: str, width: int) -> Iterator[str]:
    """Break a word into parts that each fit into a line.

    >>> list(_break("memory", 4)), list(_break("記憶力", 4))
    (['memo', 'ry'], ['記憶', '力'])
    """
    start = n = 0
    for place, letter in enumerate(word):
        columns = _count_columns(letter)
        if n + columns > width:
            yield word[start:place]
            start, n = place, 0
        n += columns
    yield word[start:]


def _count_columns(text: str) -> int:
    """Count the columns that a text takes in a terminal: wide letters take two, marks on a letter none.

    >>> _count_columns("tea"), _count_columns("茶"), _count_columns("e\u0301")
    (3, 2, 1)
    """
    if text.isascii():
        return len(text)
    marks = sum(unicodedata.category(letter) in ("Mn", "Me") for letter in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)


def _color(line: Iterable[tuple[str, str]]) -> str:
    """Join the parts of a line, those of one kind in one colour."""
    parts = ((kind, "".join(text for _, text in some)) for kind, some in groupby(line, key=itemgetter(0)))
    return "".join(click.style(text, **STYLES[kind]) if STYLES[kind] else text for kind, text in parts)


def _marked(kind: str, text: str) -> str:
    """Mark in words what colours say where there are none."""
    if sys.stdout.isatty() or kind not in ("removed", "added"):
        return text
    return f"[-{text}-]" if kind == "removed" else f"{{+{text}+}}"
