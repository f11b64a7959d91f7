"""Cues: words by which a memory says that something is no longer as it was, and what it says was so before.

The words are in ``rules/superseded.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from memframe.audit.rules import Match, load_rules

_MAX_CHARACTERS = 2_000
"""Characters of a text in which cues are looked for: a cue stands in a sentence, and what is longer is a document."""


class Cue(NamedTuple):
    """Phrase by which a memory says that something has changed."""

    kind: str
    strength: float
    quote: str
    """The words of the cue, as they are written."""
    old: str
    """What was so before, in the words of the memory; empty where it does not say so."""
    new: str


def find_cues(texts: pa.Array) -> Iterator[tuple[int, list[Cue]]]:
    """Yield the place of each text of a column that has cues, with those, the strongest first."""
    for place, matches in load_rules("superseded").search(pc.utf8_slice_codeunits(texts, 0, _MAX_CHARACTERS)):
        yield place, _sorted_cues(matches)


def cue_in(text: str) -> Cue | None:
    """Return the strongest cue of a text.

    >>> cue_in("Ada switched from tea to coffee in May.")
    Cue(kind='switched', strength=1, quote='switched from', old='tea', new='coffee in May')
    >>> cue_in("Ada likes tea.") is None
    True
    """
    cues = _sorted_cues(list(load_rules("superseded").find(text[:_MAX_CHARACTERS])))
    return cues[0] if cues else None


def _sorted_cues(matches: list[Match]) -> list[Cue]:
    cues = []
    for rule, found in matches:
        parts = {name: text for name, text in found.groupdict().items() if text}
        ends = [found.start(name) for name in parts]
        quote = found.string[found.start() : min(ends, default=found.end())]
        if not quote.strip(" ,;:("):
            quote = found[0]
        cues.append(
            Cue(rule.group, rule.weight, quote.strip(" ,;:("), parts.get("old", ""), parts.get("new", ""))
        )
    return sorted(cues, key=lambda cue: (-cue.strength, not cue.old))
