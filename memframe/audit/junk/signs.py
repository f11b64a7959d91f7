"""Signs: what a text shows of being junk."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "system_prompt",
    "heartbeat",
    "repeated",
    "feedback_loop",
    "task_state",
    "session_noise",
    "tool_output",
    "template",
    "near_empty",
]


class Sign(NamedTuple):
    """That a text is junk of some kind, how sure that is, and why."""

    kind: Kind
    score: float
    evidence: str


def one_of(words: str) -> str:
    """A pattern for one of several words or phrases, which commas set apart; each may be a pattern itself.

    >>> one_of("file, error message, tests?")
    '(?:file|error message|tests?)'
    """
    return f"(?:{'|'.join(' '.join(words.split()).split(', '))})"


_LONGEST = 60


def quoted(text: str) -> str:
    """The beginning of a text between quotation marks, in one line.

    >>> quoted("You are a\\nhelpful assistant")
    '“You are a helpful assistant”'
    """
    line = " ".join(text[: 2 * _LONGEST].split())
    return f"“{line}”" if len(line) <= _LONGEST else f"“{line[: _LONGEST - 1]}…”"
