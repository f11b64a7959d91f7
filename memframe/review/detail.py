"""Show one proposal as plain data, with all that a decision needs; each desk displays these data.

Texts are split into pieces: ``same``, ``found`` (the finding is about this), ``moved``, ``removed``, ``added``,
``masked``, ``invisible`` or ``folded`` (so much of the same is left out). Invisible characters are spelled out, and a
secret is masked unless the caller reveals it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Literal

from msgspec import Struct

from memframe.audit.text import redaction_mark
from memframe.display import escape_invisible, number_of, printable
from memframe.plan import Plan
from memframe.plan.change import Value, mask
from memframe.report.words import check_words_of
from memframe.review.desk import Review
from memframe.review.proposals import LAST_EFFECTS, Point, Proposal
from memframe.secret import MASK

Role = Literal["goes", "stays", "changes"]

MAX_SHOWN_MEMBERS = 20
"""Memories of a group that are shown; a larger group can be split, and decided one by one."""

AROUND = 160
"""Characters around what is marked in a text that are always shown: about two lines of a terminal."""

FOLDED = 240
"""Fewer characters of the same are not worth folding."""

OFFER_WARNING = "Few of them can be wrong, but a wrong one can do harm."
"""Sentence beside every offer to accept proposals without looking at each."""

STAY_OPEN = (
    "too few of their kind were decided one by one, the policy protects them, accepting does nothing, or a memory "
    "holds what no other does."
)
"""Reasons for which proposals are not accepted with all others."""

MAX_KINDS = 12
"""Kinds that are listed before many proposals are decided at once; the others are counted."""

MAX_NAMED_TAGS = 12
"""Tags of a memory that are named; the others are counted."""

MAX_LOSSES = 5
"""Lost values that are listed; the others are counted."""

ACCEPTING = {
    "delete": "Accepting deletes {n}.",
    "merge": "Accepting deletes {n}; the memory that stays takes over what it lacks.",
    "redact": "Accepting replaces the value by a mark in {n}.",
    "strip": "Accepting removes hidden characters from {n}.",
    "retag": "Accepting changes tags of {n}.",
    "rescale": "Accepting converts the importance of {n} to the scale from 0 to 1.",
    "none": "Accepting would do nothing: edit or reject.",
    "patch": "Accepting changes {n}.",
    "create": "Accepting creates {n}.",
    "conflict": "This change cannot be applied as it is.",
    "invalid": "This change cannot be applied as it is.",
}
"""Effect of accepting, by action."""


class Piece(Struct, frozen=True):
    """Piece of a text, and how to show it; ``moved`` words are in another place of the text that stays."""

    text: str
    kind: Literal["same", "found", "moved", "removed", "added", "masked", "invisible", "folded"] = "same"


class ShownField(Struct, frozen=True):
    """One field of a memory."""

    name: str
    pieces: tuple[Piece, ...]


class ShownMemory(Struct, frozen=True):
    """One memory of a proposal, or several with the same texts, which are shown once."""

    ids: tuple[str, ...]
    role: Role
    facts: tuple[str, ...]
    """Place or id, source, times and tags of each memory, as one text."""
    fields: tuple[ShownField, ...]


class Detail(Struct, frozen=True):
    """One proposal, with all that a decision needs."""

    id: str
    heading: str
    action: str
    accepting: str
    reason: str
    decision: str
    note: str
    members: tuple[ShownMemory, ...]
    n_more: int
    losses: str
    """Sentence on the values that no memory would hold any more; empty if there are none."""
    others: tuple[str, ...]
    """Other findings about the same memories, of this proposal and of open ones."""
    has_secrets: bool
    can_split: bool
    editable: dict[str, Value]
    """Unmasked fields of the memory that an edit would change; empty if it would be several memories."""


def shown_ids(one: Proposal) -> tuple[str, ...]:
    """Return the ids of the memories that are shown, those that stay first."""
    return (*one.keeps, *one.ids)[:MAX_SHOWN_MEMBERS]


def show_proposal(review: Review, proposal: str, *, reveal: bool = False, whole: bool = False) -> Detail:
    """Return one proposal as plain data, with its secrets only if ``reveal`` is true, and unfolded if ``whole`` is.

    >>> import pandas as pd
    >>> from memframe import audit_memories
    >>> memories = pd.DataFrame({"id": ["m1"], "content": ["Door code: 2580#"]})
    >>> from memframe.review import review
    >>> desk = review(audit_memories(memories))
    >>> shown = show_proposal(desk, desk.queue.proposal[0])
    >>> shown.accepting
    'Accepting replaces the value by a mark in 1 memory.'
    >>> "".join(piece.text for piece in shown.members[0].fields[0].pieces)
    'Door code: ••••••[redacted: access code]'
    """
    one = review.find(proposal)
    found = review.decision(one)
    item = one.first
    n = number_of(one.n_members, "memory", "memories")
    title = title_of(review, item.check)
    members = _show_changes(review.origin, one, reveal) if isinstance(review.origin, Plan) else None
    ids = [*one.keeps, *one.ids]
    found_in = {} if members is not None else review.texts.hidden_of(shown_ids(one))
    hidden = dict.fromkeys(found_in, frozenset[str]().union(*found_in.values()))
    if members is None:
        members = _show_memories(review, one, shown_ids(one), {} if reveal else hidden)
    targets = one.keeps if one.action in LAST_EFFECTS and one.keeps else one.ids
    fields = review.texts.fields_of(targets[0]) if len(targets) == 1 else {}
    return Detail(
        id=one.id,
        heading=escape_invisible(f"{title} ({item.kind}), {n}"),
        action=one.action,
        accepting=ACCEPTING[one.action].format(n=n),
        reason=escape_invisible(_reason_of(item)),
        decision=found.decision if found else "",
        note=escape_invisible(found.note) if found else "",
        members=tuple(_join_equal(members if whole else map(_fold_member, members), review)),
        n_more=max(0, len(ids) - MAX_SHOWN_MEMBERS),
        losses=_list_losses(review.find_losses(one.id)),
        others=tuple(_list_others(review, one)),
        has_secrets=any(hidden.values()),
        can_split=len(one.ids) > 1
        and len({each.key for each in one.items}) > 1
        and not _is_bound(review, one),
        editable=fields,
    )


def _list_others(review: Review, one: Proposal) -> Iterator[str]:
    """Yield the other findings about the memories of a proposal: first its own, then those of open ones."""
    besides = {(each.check, each.kind): each for each in reversed(one.items)}
    besides.pop((one.first.check, one.first.kind))
    other_proposals = [
        other.first
        for other in review.proposals_of({*one.ids})
        if other.id != one.id and review.state(other) in ("", "later")
    ]
    n_of_sentence = Counter(
        f"{title_of(review, point.check)} ({point.kind}): {escape_invisible(point.reason)}"
        for point in [*reversed(besides.values()), *other_proposals]
    )
    for sentence, n in n_of_sentence.items():
        yield sentence if n == 1 else f"{sentence} ({n:,} times)"


def describe_choice(review: Review, chosen: Sequence[Proposal], n_open: int) -> tuple[str, list[str]]:
    """Name what would be decided at once: in how many memories, of which kinds, and how many would stay open."""
    n_memories = number_of(len({i for one in chosen for i in one.ids}), "memory", "memories")
    kinds = Counter((one.first.check, one.first.kind) for one in chosen)
    lines = [
        f"{title_of(review, check)} ({kind}): {n:,}" for (check, kind), n in kinds.most_common(MAX_KINDS)
    ]
    if len(kinds) > MAX_KINDS:
        n_others = sum(n for _, n in kinds.most_common()[MAX_KINDS:])
        lines.append(f"other kinds: {n_others:,}")
    if n_left := n_open - len(chosen):
        lines.append(f"{n_left:,} {'others ' if chosen else ''}stay open: {STAY_OPEN}")
    n = number_of(len(chosen), "proposal", "proposals")
    return f"{n} about {n_memories}", [escape_invisible(line) for line in lines]


def _is_bound(review: Review, one: Proposal) -> bool:
    """Return True for changes of a plan that hold together."""
    return isinstance(review.origin, Plan) and one.first.group is not None


def _reason_of(item: Point) -> str:
    """Return the reason of a finding as a sentence, where its evidence is a shortened value alone.

    >>> point = Point(0, "k", "secret", "access_code", "redact", "redact", "m1", None, "", None, "(5 characters)")
    >>> _reason_of(point)
    'Found: access code (5 characters)'
    """
    if item.check in ("secret", "personal_data"):
        return f"Found: {item.kind.replace('_', ' ')} {item.reason}"
    is_sentence = item.reason.startswith("one says")  # of polarity, which names both sides as well
    if (item.check, item.kind) == ("version", "value") and " → " in item.reason and not is_sentence:
        return f"The newer memory has another value: {item.reason}"
    return item.reason


def title_of(review: Review, check: str) -> str:
    """Return the title of a check, or that of the changes of a plan."""
    return "Planned" if isinstance(review.origin, Plan) else check_words_of(check).title


def _list_losses(values: Sequence[str]) -> str:
    """List the first of the values that would be lost, and count the others.

    >>> _list_losses(["Leipzig", "3 May"])
    'No other memory holds: Leipzig; 3 May'
    """
    shown = [printable(value, 60) for value in dict.fromkeys(values)]
    return f"No other memory holds: {_list_some(shown, '; ', MAX_LOSSES)}" if shown else ""


def _list_some(texts: Sequence[str], separator: str, most: int) -> str:
    """Join the first texts, and count the others.

    >>> _list_some(["work", "home", "boat"], ", ", 2)
    'work, home, and 1 more'
    """
    more = [f"and {len(texts) - most:,} more"] if len(texts) > most else []
    return separator.join([*texts[:most], *more])


def _join_equal(members: Iterable[ShownMemory], review: Review) -> Iterator[ShownMemory]:
    """Join neighbours with the same texts: two with different secrets look alike as well."""

    def tell_apart(one: ShownMemory) -> tuple[Role, tuple[ShownField, ...], tuple[Value, ...]]:
        is_masked = any(piece.kind == "masked" for field in one.fields for piece in field.pieces)
        texts = review.texts.fields_of(one.ids[0]) if is_masked else {}
        return one.role, one.fields, tuple(texts.get(field.name) for field in one.fields)

    for (role, fields, _), alike in groupby(members, key=tell_apart):
        some = list(alike)
        ids = tuple(memory_id for one in some for memory_id in one.ids)
        yield ShownMemory(ids, role, tuple(fact for one in some for fact in one.facts), fields)


def _show_memories(
    review: Review, one: Proposal, ids: Sequence[str], hidden: Mapping[str, frozenset[str]]
) -> Iterator[ShownMemory]:
    keeper_of = {
        item.id: item.keeps if item.keeps in one.keeps else one.keeps[0] for item in one.items if one.keeps
    }
    keepers = {memory_id: review.texts.fields_of(memory_id) for memory_id in one.keeps}
    is_last = one.action in LAST_EFFECTS
    for memory_id in ids:
        fields = review.texts.fields_of(memory_id)
        own = [item for item in one.items if item.id == memory_id]
        role: Role = "stays"
        if memory_id in one.ids:
            role = "goes" if is_last else "changes"
        values = {item.text: item.kind for item in own if one.action == "redact"}
        shown = []
        keeper = keepers.get(keeper_of.get(memory_id, ""), {})
        for name in ("title", "summary", "content"):
            text = fields.get(name)
            if not isinstance(text, str) or not text:
                continue
            other = keeper.get(name) if role == "goes" else None
            pieces = _compare(text, other) if isinstance(other, str) else [Piece(text)]
            spans = [] if one.action == "redact" else review.texts.find_spans(own, name, text)
            pieces = [part for piece in _mark(pieces, spans) for part in _redact(piece, values)]
            shown.append(ShownField(name, tuple(_spell_out(pieces, hidden.get(memory_id, frozenset())))))
        tags = fields.get("tags")
        facts = [
            review.texts.name_of(memory_id),
            *([str(fields["source"])] if fields.get("source") else []),
            *_show_times(fields.get("created_at"), fields.get("updated_at")),
            *(
                [f"tags: {_list_some(tags, ', ', MAX_NAMED_TAGS)}"]
                if isinstance(tags, tuple) and tags
                else []
            ),
        ]
        yield ShownMemory((memory_id,), role, (escape_invisible(" · ".join(facts)),), tuple(shown))


def _fold_member(member: ShownMemory) -> ShownMemory:
    """Fold what stays whatever is decided: of a text that goes, only what the one that stays has as well."""
    fields = tuple(
        ShownField(field.name, tuple(_fold_same(field.pieces)))
        if member.role != "goes" or any(piece.kind in ("removed", "moved") for piece in field.pieces)
        else field
        for field in member.fields
    )
    return ShownMemory(member.ids, member.role, member.facts, fields)


def _fold_same(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Leave out what is the same far from what is marked; a text without marks stays whole.

    >>> marked = [Piece("a " * 300), Piece("tea", "removed"), Piece(" b")]
    >>> [(piece.kind, len(piece.text)) for piece in _fold_same(marked)]
    [('folded', 20), ('same', 160), ('removed', 3), ('same', 2)]
    """
    is_marked = [piece.kind not in ("same", "masked", "invisible") for piece in pieces]
    for place, piece in enumerate(pieces):
        before = AROUND if any(is_marked[:place]) else 0
        after = AROUND if any(is_marked[place + 1 :]) else 0
        n = len(piece.text) - before - after
        if piece.kind != "same" or n < FOLDED or not before + after:
            yield piece
            continue
        if before:
            yield Piece(piece.text[:before])
        yield Piece(f" … {n:,} characters … ", "folded")
        if after:
            yield Piece(piece.text[-after:])


def _mark(pieces: Sequence[Piece], spans: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Mark what a finding is about, where nothing else is marked.

    >>> [(piece.text, piece.kind) for piece in _mark([Piece("see you on Tuesday, Ada")], [(8, 18)])]
    [('see you ', 'same'), ('on Tuesday', 'found'), (', Ada', 'same')]
    """
    start = 0
    for piece in pieces:
        for left, right, span in _cut(start, start + len(piece.text), spans):
            kind = "found" if span and piece.kind == "same" else piece.kind
            yield Piece(piece.text[left - start : right - start], kind)
        start += len(piece.text)


def _show_times(created_at: Value, updated_at: Value) -> Iterator[str]:
    """Yield the time at which a memory was created, and the time of its last change if it was changed."""
    created, updated = (str(at)[:16] if at else "" for at in (created_at, updated_at))
    if created:
        yield created
    if updated and updated != created:
        yield f"changed {updated}"


def _show_changes(plan: Plan, one: Proposal, reveal: bool) -> Iterator[ShownMemory]:
    for item in one.items[:MAX_SHOWN_MEMBERS]:
        change = plan.records[item.row] if reveal else mask(plan.records[item.row])
        shown = []
        for name in {**change.before, **change.after}:
            sides = ((change.before.get(name), "removed"), (change.after.get(name), "added"))
            pieces = [Piece(str(value), kind) for value, kind in sides if value not in (None, ())]  # type: ignore[arg-type]  # kinds of pieces
            shown.append(ShownField(name, tuple(_spell_out(pieces, ()))))
        role: Role = "goes" if change.action == "delete" else "changes"
        yield ShownMemory((change.id or "",), role, (change.label,), tuple(shown))
        for memory_id, text in change.keeps.items():
            yield ShownMemory(
                (memory_id,),
                "stays",
                (memory_id,),
                (ShownField("content", tuple(_spell_out([Piece(text)], ()))),),
            )


_WORDS = re.compile(r"(\S+)(\s*)")
_EDGES = re.compile(r"^[\"'“‘«(\[]+|[.,;:!?…\"'”’»)\]]+$")
"""Punctuation around a word; signs and units before and after a number are part of it."""

_RUN = 3
"""Fewest consecutive words that are shown as moved; fewer may be in both texts by chance."""


def _compare(text: str, other: str) -> list[Piece]:
    """Split a text into pieces by the words that another text lacks; case and punctuation around words do not count.

    >>> [(piece.text, piece.kind) for piece in _compare("LIKES tea, and rain.", "likes  tea")]
    [('LIKES tea,', 'same'), (' ', 'same'), ('and rain.', 'removed')]
    >>> _compare("Ada rows on Sundays. Ben likes tea", "Ben likes tea. Ada rows on Sundays")[-1]
    Piece(text='Ben likes tea', kind='moved')
    """
    found = _WORDS.findall(text)
    folded = [_fold(word) for word, _ in found]
    other_folded = [_fold(word) for word, _ in _WORDS.findall(other)]
    other_runs = {tuple(other_folded[place : place + _RUN]) for place in range(len(other_folded) - _RUN + 1)}
    kinds: list[Any] = ["removed"] * len(folded)
    for place in range(len(folded) - _RUN + 1):
        if tuple(folded[place : place + _RUN]) in other_runs:
            kinds[place : place + _RUN] = ["moved"] * _RUN
    matcher = SequenceMatcher(None, folded, other_folded, autojunk=len(folded) > 2_000)
    for start, _, n in matcher.get_matching_blocks():
        kinds[start : start + n] = ["same"] * n
    pieces = [Piece(text[: len(text) - len(text.lstrip())])] if text[:1].isspace() else []
    for kind, run in groupby(zip(kinds, found, strict=True), key=itemgetter(0)):
        words = "".join(word + blank for _, (word, blank) in run)
        pieces += [Piece(words.rstrip(), kind), Piece(words[len(words.rstrip()) :])]
    return [piece for piece in pieces if piece.text]


def _fold(word: str) -> str:
    """Return a word without case and punctuation around it, with one form of apostrophes and dashes.

    >>> _fold("“Ada’s”"), _fold("—"), _fold("-5%,")
    ("ada's", '-', '-5%')
    """
    plain = word.replace("’", "'").replace("—", "-").replace("–", "-")
    return _EDGES.sub("", plain).casefold() or word


def _redact(piece: Piece, values: Mapping[str, str]) -> Iterator[Piece]:
    """Split a piece at the values that are redacted, and add the mark of each."""
    found = [value for value in values if value and value in piece.text]
    if not found:
        yield piece
        return
    for part in re.split(f"({'|'.join(map(re.escape, sorted(found, key=len, reverse=True)))})", piece.text):
        if part in values:
            yield Piece(part, "removed")
            yield Piece(redaction_mark(values[part]), "added")
        elif part:
            yield Piece(part, piece.kind)


def _spell_out(pieces: Sequence[Piece], hidden: Collection[str]) -> Iterator[Piece]:
    """Mask what is hidden, also where only a part of it is marked, and spell out what cannot be seen.

    >>> pieces = [Piece("card 4111 "), Piece("1111", "removed"), Piece(", valid")]
    >>> [(piece.text, piece.kind) for piece in _spell_out(pieces, {"4111 1111"})]
    [('card ', 'same'), ('••••••', 'masked'), (', valid', 'same')]
    """
    secrets = sorted(filter(None, hidden), key=len, reverse=True)
    text = "".join(piece.text for piece in pieces if piece.kind != "added")
    found = re.finditer("|".join(map(re.escape, secrets)), text) if secrets else ()
    spans = [match.span() for match in found]
    start = 0
    for piece in pieces:
        if piece.kind == "added":
            yield from _name_invisible(piece.text, piece.kind)
            continue
        for left, right, span in _cut(start, start + len(piece.text), spans):
            if span is None:
                yield from _name_invisible(text[left:right], piece.kind)
            elif left == span[0]:
                yield Piece(MASK, "masked")
        start += len(piece.text)


def _cut(
    start: int, end: int, spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
    """Cut a stretch of a text at the edges of spans; yield each part with the span that it is in.

    >>> [*_cut(0, 9, [(2, 4)])]
    [(0, 2, None), (2, 4, (2, 4)), (4, 9, None)]
    """
    near = [span for span in spans if span[0] < end and span[1] > start]
    edges = sorted({start, end, *(edge for span in near for edge in span if start < edge < end)})
    for left, right in pairwise(edges):
        yield left, right, next((span for span in near if span[0] <= left and right <= span[1]), None)


def _name_invisible(text: str, kind: Any) -> Iterator[Piece]:
    if escape_invisible(text) == text:  # nearly all
        yield Piece(text, kind)
        return
    start = 0
    for place, letter in enumerate(text):
        if (spelled := escape_invisible(letter)) != letter:
            if place > start:
                yield Piece(text[start:place], kind)
            yield Piece(spelled, "invisible")
            start = place + 1
    if start < len(text):
        yield Piece(text[start:], kind)
