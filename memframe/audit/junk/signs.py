"""Signs: what a text shows of being junk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, Self

from memframe.audit.findings import Proposal

Kind = Literal[
    "empty",
    "heartbeat",
    "repeated",
    "near_repeat",
    "status_report",
    "system_prompt",
    "feedback_loop",
    "task_state",
    "session_noise",
    "tool_output",
    "template",
    "near_empty",
]

ACTIONS: Mapping[Kind, Proposal] = MappingProxyType(
    {"empty": "delete", "heartbeat": "delete", "repeated": "merge"}
)
"""Proposals for the kinds that show without any understanding of a text.

All the others are told by wording, which limits, decisions and post-mortems share: they are for review.
"""


class Sign(NamedTuple):
    """That a text is junk of some kind, how sure that is, and why."""

    kind: Kind
    score: float
    evidence: str


class Signal(NamedTuple):
    """What counts for or against something; no signal says enough alone."""

    weight: int
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, weight: int, *patterns: str) -> Self:
        """What any of some patterns shows; it counts once, however many of them do."""
        return cls(weight, re.compile("|".join(patterns), re.IGNORECASE | re.MULTILINE))


def weight_of(signals: Iterable[Signal], text: str) -> int:
    """What the signals that a text shows come to.

    >>> weight_of([Signal.of(2, r"\\btea\\b"), Signal.of(3, r"coffee")], "Tea for two")
    2
    """
    return sum(signal.weight for signal in signals if signal.pattern.search(text))


_LONGEST = 60


def quoted(text: str) -> str:
    """The beginning of a text between quotation marks, in one line.

    >>> quoted("You are a\\nhelpful assistant")
    '“You are a helpful assistant”'
    """
    line = " ".join(text[: 2 * _LONGEST].split())
    return f"“{line}”" if len(line) <= _LONGEST else f"“{line[: _LONGEST - 1]}…”"
