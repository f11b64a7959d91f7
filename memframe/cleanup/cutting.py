"""Cutting: texts without the stretches that are to go, and with a short mark in the place of each."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memframe.audit.masks import redacted
from memframe.plan.change import Value

FIELDS = ("title", "summary", "content", "source", "tags")
"""Fields in which a secret may stand."""

_MIN_ALONE = 4
"""Characters from which on a secret without a digit is looked for in the rest of its memory, too."""


class Stretch(NamedTuple):
    """Part of a text that is to go, up to and without ``end``."""

    start: int
    end: int
    kind: str
    score: float = 1.0


Found = Mapping[str, Sequence[Stretch]]
"""What was found in a memory, by field."""


class Redacted(NamedTuple):
    """A memory without its secrets."""

    values: dict[str, Value]
    """The fields that have changed."""
    secrets: frozenset[str]
    """What was cut out."""


def cut(text: str, stretches: Iterable[Stretch]) -> str:
    """The text with a mark in the place of each stretch; such as share characters become one.

    >>> cut("pin 4711, or 4711#", [Stretch(4, 8, "pin"), Stretch(13, 17, "pin"), Stretch(13, 18, "access_code", 0.5)])
    'pin [redacted: pin], or [redacted: pin]'
    """
    done, place = [], 0
    for stretch in _merged(text, stretches):
        done += [text[place : stretch.start], redacted(stretch.kind)]
        place = stretch.end
    return "".join([*done, text[place:]])


def _merged(text: str, stretches: Iterable[Stretch]) -> list[Stretch]:
    """Stretches that share no character, each under the name of the surest that it is made of."""
    merged: list[Stretch] = []
    for stretch in sorted(stretches):
        whole = stretch._replace(end=_whole(text, stretch.end))
        merged.append(_joined(merged.pop(), whole) if merged and whole.start < merged[-1].end else whole)
    return merged


def _joined(one: Stretch, other: Stretch) -> Stretch:
    surest = max(one, other, key=lambda stretch: (stretch.score, stretch.end - stretch.start))
    return surest._replace(start=one.start, end=max(one.end, other.end))


def _whole(text: str, end: int) -> int:
    """The end of a stretch, behind the accents and variants that belong to its last character."""
    while end < len(text) and (unicodedata.category(text[end])[0] == "M" or text[end] == "\u200d"):
        end += 1
    return end


class Round(NamedTuple):
    """What goes from a memory at once."""

    found: Found
    """By field."""
    names: dict[str, str]
    """Of each text that goes, what its mark calls it."""


class Cutting:
    """A memory on its way to be without its secrets."""

    def __init__(self, memory: Mapping[str, Value], found: Found) -> None:
        self.memory = memory
        self.rounds = [Round(found, secrets_in(found, memory))]
        self._values: dict[str, Value] | None = None

    def values(self) -> Mapping[str, Value]:
        """All fields, without what was found in them, and without the same wherever else it stands."""
        if self._values is None:
            self._values = dict(self.memory)
            for some in self.rounds:
                self._values = _cut_all(self._values, some)
        return self._values

    def go_on(self, found: Found) -> None:
        """Cut out what was found in the values as they are."""
        self.rounds.append(Round(found, secrets_in(found, self.values())))
        self._values = None

    def number(self, numbers: Mapping[str, Mapping[str, int]]) -> None:
        """Number the marks of kinds of which there are several secrets."""
        for some in self.rounds:
            for secret, kind in some.names.items():
                if len(numbers[kind]) > 1:
                    some.names[secret] = f"{kind} {numbers[kind][secret]}"
                    self._values = None

    def redacted(self) -> Redacted:
        """The fields that have changed, and what was cut out."""
        changed = {name: value for name, value in self.values().items() if value != self.memory[name]}
        return Redacted(changed, frozenset(secret for some in self.rounds for secret in some.names))


def secrets_in(found: Found, memory: Mapping[str, Value]) -> dict[str, str]:
    """The texts that are to go, and of which kind each is."""
    stretches = [(stretch, str(memory[field])) for field, some in found.items() for stretch in some]
    return {
        text[stretch.start : stretch.end]: stretch.kind
        for stretch, text in sorted(stretches, key=lambda pair: pair[0].score)
    }


def _cut_all(memory: Mapping[str, Value], some: Round) -> dict[str, Value]:
    new: dict[str, Value] = dict(memory)
    for name in FIELDS:
        value = memory.get(name)
        if isinstance(value, str):
            found = (
                stretch._replace(kind=some.names[value[stretch.start : stretch.end]])
                for stretch in some.found.get(name, ())
            )
            new[name] = cut(value, [*found, *_again(value, some.names)])
        elif isinstance(value, tuple):
            new[name] = tuple(dict.fromkeys(cut(tag, _again(tag, some.names)) for tag in value))
    return new


def _again(text: str, secrets: Mapping[str, str]) -> Iterator[Stretch]:
    """Where secrets stand in a text by themselves, not as a part of other words."""
    for secret, kind in secrets.items():
        bare = secret.strip()
        if len(bare) >= _MIN_ALONE or any(map(str.isdecimal, bare)):
            yield from (Stretch(start, start + len(bare), kind) for start in _places_alone(text, bare))


def _places_alone(text: str, part: str) -> Iterator[int]:
    """Where a part of a text begins that touches no letter, digit or underscore; a pattern for each would cost more.

    >>> list(_places_alone("4711, 47110, «4711»", "4711"))
    [0, 14]
    """
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        is_alone = not any(
            sign.isalnum() or sign == "_" for sign in (*text[max(0, start - 1) : start], *text[end : end + 1])
        )
        if is_alone:
            yield start
        start = text.find(part, end if is_alone else start + 1)
