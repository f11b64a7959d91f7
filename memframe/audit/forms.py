"""Forms: texts that a machine fills in again and again, with another time and other numbers each.

«Heartbeat 14:00, cost alerts none» says something once; thirty of them are a log. They are told by their beginnings,
which are the same once times, numbers, paths and identifiers are masked, and differ without the mask. What people
write down regularly («80.2 kg», «took 400 mg ibuprofen») begins alike, too: a form speaks of what machines have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from memframe.audit.rules import load_words

MIN_MEMBERS = 5
"""Texts of one beginning from which on they are a log, and no accident of a few days."""

_N_SAME = 28
"""Masked characters that are the same. Measured on 39 sources: at 24 headings over notes are taken for forms; at 32 the
heartbeats of one agent fall apart into five."""

_N_BEGINNING = 60
"""Characters in which a form has its time and its numbers, and names what it is about."""

_N_SHORT = 80
"""Characters of a text that may have its time anywhere («... clean runs through 15:41Z.»). So many characters of longer
texts find messages with a stamp (2 groups on 28 stores)."""

_MIN_DIFFERENT = 0.6
"""Share of members with their own numbers; notes under one heading («Fixes, 22:27: ...») have those of the heading."""

_TIMED = r"(?i)\d[:\x{ff1a}]\d\d|20\d\d-\d\d-\d\d|\d ?[ap]m\b"
"""A time of day or a date, for RE2."""

_MASKS = (
    (r"https?://\S+|(?:~?/)?[\w.-]+(?:/[\w.-]+)+/?", "/"),
    (r"\b[0-9a-f]{7,}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "#"),
    (r"\d+(?:[.,:/T -]+\d+)*", "0"),
    (r"[^\pL\pN#/]+", " "),
)
"""Patterns for RE2, in their order, and what stands for what they match."""

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_OF_MACHINES = frozenset().union(*(load_words("junk")[name] for name in ("subjects", "pulses", "things")))
_SIGNS = load_words("junk")["signs"]
"""The same in languages that leave no blanks between words."""


class Form(NamedTuple):
    """Texts of one form."""

    beginning: str
    """Beginning that all of them have, masked."""
    places: Sequence[int]


def find_forms(texts: Sequence[str], owners: Sequence[str]) -> Iterator[Form]:
    """Yield the forms among the different texts of each owner, in the order of their first texts.

    >>> texts = [f"Nightly backup {day} May 03:00: {12 + day} files copied to the archive" for day in range(1, 7)]
    >>> [(form.beginning, form.places) for form in find_forms([*texts, "Likes tea"], ["ada"] * 7)]
    [('nightly backup 0 may 0 files', [0, 1, 2, 3, 4, 5])]
    """
    if len(texts) < MIN_MEMBERS:
        return
    column = pc.utf8_slice_codeunits(pa.array(texts, pa.large_string()), 0, 10 * _N_SAME)
    is_short = pc.less_equal(pc.utf8_length(column), _N_SHORT)
    beginnings = pc.if_else(is_short, column, pc.utf8_slice_codeunits(column, 0, _N_BEGINNING))
    timed = pc.indices_nonzero(pc.match_substring_regex(beginnings, _TIMED))
    together: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, masked in zip(timed.to_pylist(), _mask(column.take(timed)), strict=True):
        together[owners[place], masked[:_N_SAME].strip()].append(place)
    for (_, beginning), places in together.items():
        raw = [beginnings[place].as_py().lower() for place in places]
        if len(places) >= MIN_MEMBERS and _is_filled_in(raw) and _is_of_machines(raw):
            yield Form(beginning, places)


def _mask(texts: pa.Array) -> Iterable[str]:
    masked = pc.utf8_lower(texts)
    for pattern, sign in _MASKS:
        masked = pc.replace_substring_regex(masked, pattern, sign)
    return pc.utf8_trim_whitespace(masked).to_pylist()  # type: ignore[no-any-return]


def _is_filled_in(beginnings: Sequence[str]) -> bool:
    """Return True if most beginnings have numbers of their own."""
    return len({tuple(_NUMBER.findall(text)) for text in beginnings}) >= _MIN_DIFFERENT * len(beginnings)


def _is_of_machines(beginnings: Sequence[str]) -> bool:
    """Return True if all of them name something that machines have, beside whatever else they say."""
    return all(
        not _OF_MACHINES.isdisjoint(_WORD.findall(text)) or any(sign in text for sign in _SIGNS)
        for text in beginnings
    )
