"""Cues: words by which a memory says that something is no longer as it was.

A cue may say what was («no longer X», «from X to Y», «instead of X») and what is now; the rest of the memory
says what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from memframe.audit.language.cue_rules import RULES, Rule


class Cue(NamedTuple):
    """How a memory says that something has changed."""

    kind: str
    strength: float
    quote: str
    old: str
    """What was so before, in the words of the memory; empty where it does not say so."""
    new: str


_LONGEST = 2_000
"""Characters of a sentence that are searched: what is longer is no sentence, and must not hold up an audit."""

Hints = Sequence[tuple[str, Sequence[int]]]
"""Hints, each with the numbers of the rules that it is of."""


def _hints_of(*kinds: str) -> Hints:
    """The hints of rules of some kinds."""
    numbers: dict[str, list[int]] = {}
    for number, rule in enumerate(RULES):
        if rule.kind in kinds:
            for hint in rule.hints:
                numbers.setdefault(hint, []).append(number)
    return tuple(numbers.items())


_OF_KIND = {rule.kind: _hints_of(rule.kind) for rule in RULES}
_HINTS = _hints_of(*_OF_KIND)

ANY_HINT = "|".join(re.escape(hint) for hint, _ in _HINTS)
"""Matches, as RE2, every text in lower case that has a hint of a cue."""

ANY_CUE = "|".join(dict.fromkeys(rule.sign for rule in RULES))
"""Matches, as RE2, every text in lower case in which `cue_in` finds a cue, and some others."""


def cue_in(text: str) -> Cue | None:
    """The strongest cue of a text, with all that its cues say about before and now.

    >>> cue_in("Ada switched from tea to coffee in May.")
    Cue(kind='switched', strength=1.0, quote='switched from', old='tea', new='coffee in may')
    >>> cue_in("Ada likes tea.") is None
    True
    """
    found = _found(text[:_LONGEST].lower(), _HINTS)
    if not found:
        return None
    rule, match = max(found, key=lambda one: one[0].strength)
    parts = [one.groupdict() for _, one in found]
    old, new = (
        " . ".join(dict.fromkeys(part[name] for part in parts if part.get(name))) for name in ("old", "new")
    )
    ends = [match.start(name) for name in ("old", "new") if match.groupdict().get(name)]
    return Cue(
        rule.kind, rule.strength, text[match.start() : min(ends, default=match.end())].strip(), old, new
    )


@lru_cache(maxsize=1 << 16)
def has_cue(text: str, kind: str) -> bool:
    """Whether a text has a cue of this kind."""
    return bool(_found(text[:_LONGEST].lower(), _OF_KIND[kind]))


def _found(lower: str, hints: Hints) -> list[tuple[Rule, re.Match[str]]]:
    hinted = {number for hint, numbers in hints if hint in lower for number in numbers}
    if not hinted:
        return []
    rules = [RULES[number] for number in sorted(hinted)]
    return [(rule, match) for rule in rules if (match := rule.pattern.search(lower)) is not None]
