"""What differs between two texts, word by word, and either of them shortened around that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from memframe.change import Value

CONTEXT_CHARS = 60
"""How much of what is the same is left beside a difference."""

MAX_CHANGED_CHARS = 400
"""How much is shown of one stretch that differs."""

MAX_PLAIN_CHARS = 240
"""How much is shown of a text that is not compared with another."""

MAX_COMPARED = 2_000_000
"""Pairs of words beyond which comparing would take too long; then all between the equal ends counts as changed."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class Span(NamedTuple):
    """A stretch of text, and whether the other side has something else in its place."""

    text: str
    is_changed: bool = False


Sides = tuple[list[Span], list[Span]]


def spans_of(before: Value, after: Value) -> Sides:
    """Both values as text, cut where they differ.

    >>> was, becomes = spans_of("Ada likes tea", "Ada loves tea")
    >>> [span.text for span in was if span.is_changed], [span.text for span in becomes if span.is_changed]
    (['likes'], ['loves'])
    >>> spans_of(("tea", "home"), ("home",))[0]
    [Span(text='tea', is_changed=True), Span(text=', ', is_changed=False), Span(text='home', is_changed=False)]
    """
    if isinstance(before, tuple) and isinstance(after, tuple):
        return _name_spans(before, after), _name_spans(after, before)
    if isinstance(before, float) or isinstance(after, float):
        return _whole(before), _whole(after)
    return _text_spans(text_of(before), text_of(after))


def text_of(value: Value) -> str:
    """A value as people read it; None is empty.

    >>> text_of(3.0), text_of(("tea", "home")), text_of(None)
    ('3', 'tea, home', '')
    """
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return ", ".join(value) if isinstance(value, tuple) else value or ""


def _whole(value: Value) -> list[Span]:
    return [] if value is None else [Span(text_of(value), True)]


def _name_spans(names: Sequence[str], others: Sequence[str]) -> list[Span]:
    pairs = ((Span(", "), Span(name, name not in others)) for name in names)
    return [span for pair in pairs for span in pair][1:]


def _text_spans(before: str, after: str) -> Sides:
    was, becomes = _WORD.findall(before), _WORD.findall(after)
    first = _n_equal(was, becomes)
    last = _n_equal(reversed(was[first:]), reversed(becomes[first:]))
    ends = len(was) - last, len(becomes) - last
    cuts = [
        (first, first, False),
        *_cuts(was[first : ends[0]], becomes[first : ends[1]]),
        (last, last, False),
    ]
    return _spans(was, [(n_was, is_changed) for n_was, _, is_changed in cuts]), _spans(
        becomes, [(n_becomes, is_changed) for _, n_becomes, is_changed in cuts]
    )


def _n_equal(some: Iterable[str], others: Iterable[str]) -> int:
    """How many words are the same from the beginning on."""
    n_equal = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        n_equal += 1
    return n_equal


def _cuts(was: Sequence[str], becomes: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Stretches of both sides: how many words on each, and whether they differ; a lone blank joins its neighbours."""
    if len(was) * len(becomes) > MAX_COMPARED:
        yield len(was), len(becomes), True
        return
    matcher = SequenceMatcher(None, was, becomes, autojunk=False)
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        is_same = tag == "equal" and not "".join(was[begin:end]).isspace()
        yield end - begin, other_end - other_begin, not is_same


def _spans(words: Sequence[str], cuts: Iterable[tuple[int, bool]]) -> list[Span]:
    spans, begin = [], 0
    for is_changed, stretch in groupby(cuts, key=itemgetter(1)):
        end = begin + sum(n_words for n_words, _ in stretch)
        if end > begin:
            spans.append(Span("".join(words[begin:end]), is_changed))
        begin = end
    return spans


def shortened(spans: Sequence[Span]) -> list[Span]:
    """Long stretches cut: of what is the same, all but the ends beside a difference; of what differs, the middle.

    >>> [span.text for span in shortened([Span("so " * 40), Span("tea", True)])]
    ['… so so so so so so so so so so so so so so so so so so so ', 'tea']
    """
    last = len(spans) - 1
    return [
        span._replace(text=_cut_changed(span.text))
        if span.is_changed
        else span._replace(text=_cut_same(span.text, is_first=place == 0, is_last=place == last))
        for place, span in enumerate(spans)
    ]


def _cut_changed(text: str) -> str:
    n_cut = len(text) - MAX_CHANGED_CHARS
    if n_cut <= CONTEXT_CHARS:
        return text
    half = MAX_CHANGED_CHARS // 2
    return f"{text[:half]} […{n_cut:,} characters…] {text[-half:]}"


def _cut_same(text: str, *, is_first: bool, is_last: bool) -> str:
    if is_first and is_last:  # nothing differs: the beginning says most
        return text if len(text) <= MAX_PLAIN_CHARS else f"{_head(text, MAX_PLAIN_CHARS)}…"
    head = "" if is_first else _head(text, CONTEXT_CHARS)
    tail = "" if is_last else _tail(text, CONTEXT_CHARS)
    is_short = len(text) <= len(head) + len(tail) + CONTEXT_CHARS // 4
    return text if is_short else f"{head}{'…' if is_last else ' … ' if head else '… '}{tail}"


def _head(text: str, n_chars: int) -> str:
    """The beginning, cut between words where there is a gap."""
    return re.sub(r"(?<=\s)\S*$", "", text[:n_chars]) if len(text) > n_chars else text


def _tail(text: str, n_chars: int) -> str:
    return re.sub(r"^\S*\s+", "", text[-n_chars:]) if len(text) > n_chars else text
