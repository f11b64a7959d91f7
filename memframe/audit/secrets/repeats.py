"""Find the other occurrences of secrets: in all texts, sources and tags of a store."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

import pandas as pd

from memframe.audit.secrets.values import is_distinctive, looks_drawn
from memframe.audit.text import Memories, MemoryTexts, Span, Text, TextSearch, fold

_MAX_CHARS = 500
"""Most characters of a secret that is searched for."""

_AT_ONCE = 200
"""Secrets that are searched for in one pass; the automaton of RE2 for so many fits its memory."""

Spans = Mapping[tuple[int, str], list[Span]]
"""Spans by row and field, sorted by their start."""


def find_repeats(
    memories: Memories, found: Sequence[tuple[Text, Span]], *, sure: frozenset[str]
) -> Iterator[tuple[Text, Span]]:
    """Find further occurrences of secrets in texts, sources and tags.

    Words, short numbers and dates are not searched for, because in other texts they are no secrets. The occurrence of a
    secret with a basis among `sure` is as sure if it is a whole word, or if it looks drawn at random.

    >>> memories = pd.DataFrame({"id": ["m1"], "title": ["Uses blau77hd now"], "content": ["Password: blau77hd"]})
    >>> first = (Text(0, "content", "Password: blau77hd"), Span("password", 10, 18, 0.9, basis="label"))
    >>> repeats = find_repeats(memories, [first], sure=frozenset({"label"}))
    >>> [(text.field, span.start, span.basis) for text, span in repeats]
    [('title', 5, 'repeat')]
    """
    secrets: dict[str, Span] = {}
    taken: defaultdict[tuple[int, str], list[Span]] = defaultdict(list)
    for text, span in found:
        taken[text.row, text.field].append(span)
        value = text.text[span.start : span.end].strip()
        if len(value) <= _MAX_CHARS and is_distinctive(value):
            known = secrets.setdefault(value, span)
            if known.basis not in sure:
                secrets[value] = span
    yield from _search_store(MemoryTexts.of(memories), secrets, taken, sure)


_GIVEN = "given"
"""Basis of a value that the caller gives as a secret."""


def find_memories_showing(memories: Memories, values: Iterable[str]) -> list[int]:
    """Return the rows of memories with an occurrence of one of the values; words and short numbers are left out."""
    texts = (fold(value).text for value in values)
    secrets = {text: Span("", 0, 0, 1.0, basis=_GIVEN) for text in texts if is_distinctive(text)}
    found = _search_store(MemoryTexts.of(memories), secrets, defaultdict(list), frozenset({_GIVEN}))
    return sorted({text.row for text, _ in found})


def _search_store(
    texts: MemoryTexts, secrets: Mapping[str, Span], taken: Spans, sure: frozenset[str]
) -> Iterator[tuple[Text, Span]]:
    """Find secrets in texts, sources and tags."""
    if not secrets:
        return
    yield from _search(texts.search(), secrets, taken, sure)
    if "source" in texts.memories.columns:
        cells = [text if isinstance(text, str) else None for text in texts.memories["source"]]
        sources = MemoryTexts(pd.DataFrame({"source": pd.array(cells, "str")}))
        yield from _search(sources.search(["source"]), secrets, taken, sure)
    rows_of = _rows_by_tag(texts.memories)
    tags = MemoryTexts(pd.DataFrame({"tag": pd.array([*rows_of], "str")}))
    for text, span in _search(tags.search(["tag"]), secrets, defaultdict(list), sure):
        for row in rows_of[text.original or text.text]:
            yield Text(row, "tags", text.text), span


def _search(
    search: TextSearch, secrets: Mapping[str, Span], taken: Spans, sure: frozenset[str]
) -> Iterator[tuple[Text, Span]]:
    """Find secrets in texts, the longest first; occurrences that overlap an earlier span are left out."""
    values = sorted(secrets, key=lambda value: (-len(value), value))
    for first in range(0, len(values), _AT_ONCE):
        pattern = "|".join(map(re.escape, values[first : first + _AT_ONCE]))
        any_of_them = re.compile(pattern)
        for text in search.find(pattern):
            places = taken[text.row, text.field]
            for match in any_of_them.finditer(text.text):
                after = bisect_left(places, match.end(), key=attrgetter("start"))
                is_free = after == 0 or places[after - 1].end <= match.start()
                if is_free and (span := _repeat(secrets[match[0]], match, sure)):
                    places.insert(after, span)
                    yield text, span


_JOINTS = frozenset("@/+-")
"""Signs next to a value that make it a part of an address, a path or a name."""


def _repeat(first: Span, match: re.Match[str], sure: frozenset[str]) -> Span | None:
    """Return the span of another occurrence of a secret; None within a word or a name that may be another thing.

    A secret that rests on its sentence may be a person's name, so it must be a whole word, or look drawn at random.
    """
    start, end = match.span()
    neighbours = match.string[max(0, start - 1) : start] + match.string[end : end + 1]
    is_alone, is_drawn = not any(sign.isalnum() or sign == "_" for sign in neighbours), looks_drawn(match[0])
    if first.basis not in sure and not is_drawn and not (is_alone and _JOINTS.isdisjoint(neighbours)):
        return None
    is_sure = first.basis in sure and (is_alone or is_drawn)
    return first._replace(start=start, end=end, basis="repeat" if is_sure else "sentence")


def _rows_by_tag(memories: pd.DataFrame) -> Mapping[str, Sequence[int]]:
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    for row, tags in enumerate(memories.get("tags", ())):
        for tag in dict.fromkeys(tags) if isinstance(tags, tuple | list) else ():
            if isinstance(tag, str):
                rows_of[tag].append(row)
    return rows_of
