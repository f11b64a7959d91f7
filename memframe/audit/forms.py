"""Forms: texts that a machine writes again and again with another time and other numbers.

One «Heartbeat 14:00, cost alerts none» may be a fact; thirty of them are a log. The texts of a form begin alike once
times, numbers, paths and identifiers are masked, and differ without the masks. Texts that people write regularly
(«80.2 kg», «took 400 mg ibuprofen») begin alike as well, so all texts of a form must have a word about machines.
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
"""Fewest texts with one beginning that are a form; fewer may be notes of a few days that begin alike by chance."""

_N_SAME = 28
"""Masked characters of the beginning that all texts of a form share. Measured on 39 sources: with 24, headings over
notes are taken for forms; with 32, the heartbeats of one agent fall apart into five forms."""

_N_BEGINNING = 60
"""Characters at the beginning of a long text in which its time, its numbers and a word about machines must be."""

_N_SHORT = 80
"""Characters of a short text, in which these may be anywhere («... clean runs through 15:41Z.»). With 80 characters of
long texts as well, messages with a time stamp are taken for forms (2 groups on 28 stores)."""

_MIN_DIFFERENT = 0.6
"""Smallest share of texts with numbers of their own. Notes under one heading («Fixes, 22:27: ...») all have the numbers
of the heading."""

_TIMED = r"(?i)\d[:\x{ff1a}]\d\d|20\d\d-\d\d-\d\d|\d ?[ap]m\b"
"""A time of day or a date, for RE2."""

_MASKS = (
    (r"https?://\S+|(?:~?/)?[\w.-]+(?:/[\w.-]+)+/?", "/"),
    (r"\b[0-9a-f]{7,}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "#"),
    (r"\d+(?:[.,:/T -]+\d+)*", "0"),
    (r"[^\pL\pN#/]+", " "),
)
"""Patterns for RE2 in the order in which they are applied, each with its mask."""

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_OF_MACHINES = frozenset().union(*(load_words("junk")[name] for name in ("subjects", "pulses", "things")))
"""Words about machines and their jobs."""
_SIGNS = load_words("junk")["signs"]
"""Such words in languages without blanks between words."""


class Form(NamedTuple):
    """Texts of one form."""

    beginning: str
    """Masked beginning that all of them share."""
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
    places_of: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, masked in zip(timed.to_pylist(), _mask(column.take(timed)), strict=True):
        places_of[owners[place], masked[:_N_SAME].strip()].append(place)
    for (_, beginning), places in places_of.items():
        raw = [beginnings[place].as_py().lower() for place in places]
        if len(places) >= MIN_MEMBERS and _is_filled_in(raw) and _is_of_machines(raw):
            yield Form(beginning, places)


def _mask(texts: pa.Array) -> Iterable[str]:
    masked = pc.utf8_lower(texts)
    for pattern, mask in _MASKS:
        masked = pc.replace_substring_regex(masked, pattern, mask)
    return pc.utf8_trim_whitespace(masked).to_pylist()  # type: ignore[no-any-return]


def _is_filled_in(beginnings: Sequence[str]) -> bool:
    """Return True if most beginnings have numbers of their own."""
    return len({tuple(_NUMBER.findall(text)) for text in beginnings}) >= _MIN_DIFFERENT * len(beginnings)


def _is_of_machines(beginnings: Sequence[str]) -> bool:
    """Return True if each beginning has a word about machines."""
    return all(
        not _OF_MACHINES.isdisjoint(_WORD.findall(text)) or any(sign in text for sign in _SIGNS)
        for text in beginnings
    )
