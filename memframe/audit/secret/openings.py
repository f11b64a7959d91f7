"""Openings: digits that open something, told by the verb alone: "unlocks with 2580", "enter 2468# at the gate"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memframe.audit.secret.codes import is_close_lock, speaks_of_lock
from memframe.audit.secret.keywords import SMALL
from memframe.audit.secret.passwords import is_strong
from memframe.audit.spans import Span

_BEHIND, _AHEAD, _LONG_NUMBER = 120, 60, 6
_DIGITS = r"(?P<digits>[0-9]{4,8}[#*]?)(?![\w.,]*[0-9])(?!\s+\w+s\b)"
_OPENS = re.compile(
    r"(?<!\w)(?:unlock(?:s|ed|ing)?|opens?|opened|disarm(?:s|ed|ing)?)\b[^.;:\n]{0,50}?"
    rf"\s(?:(?:with|using|by\s+(?:typing|entering)|via)\s+(?:the\s+)?(?:(?:code|number|digits)\s+)?{_DIGITS}"
    r"|(?:with|using|at|to)\s+(?P<groups>[0-9]{1,2}(?:-[0-9]{1,2}){2,3})(?![\w-]))",
)
_ENTER = re.compile(rf"(?<!\w)(?:enter|type|punch\s+in|press|use)\s+(?:in\s+)?(?:the\s+code\s+)?{_DIGITS}")

_TAKES = re.compile(
    r"\b(?:alarm|panel|keypad|lock|safe|gate|door|garage|vault)\b[^.;:\n]{0,30}\b(?:takes|accepts|needs|wants"
    rf"|asks\s+for)\s+(?:the\s+code\s+)?{_DIGITS}"
)
_HASHED = re.compile(r"(?<![\w#])(?P<digits>[0-9]{4,8}[#*])(?![\w#*])")
_LOGS_IN = re.compile(
    r"(?<!\w)(?:log(?:s|ged)?|signs?|signed)\s(?:in|on)(?:to)?\b[^.;:\n]{0,60}?\s(?:with|as"
    r"|using)\s+\S{2,64}\s+(?:and|with|/)"
    r"\s+(?P<word>[^\s\"“”,;]{6,64})"
)

MARKS = (
    r"(?i)\b(unlock|open|disarm|enter|type|punch|press|use|take|accept|need|want|ask)\w*\b.*[0-9]{1,2}(-[0-9]|[0-9]{2})"
    r"|[0-9]{4}[#*]|\b(log|sign)\w* (in|on).* (with|as|using) "
)
"""A pattern of RE2 that every text with such a code matches."""


def find_openings(text: str) -> Iterator[Span]:
    """Codes that something is opened with, and passwords that somebody signs in with.

    >>> [span.start for span in find_openings("The phone unlocks with 2580; the shop opens at 0900")]
    [23]
    """
    small = text.translate(SMALL)
    for match in _OPENS.finditer(small):
        group = str(match.lastgroup)
        if speaks_of_lock(small[max(0, match.start() - _BEHIND) : match.start(group)]):
            yield Span("access_code", match.start(group), match.end(group), 0.8)
    for match in (*_ENTER.finditer(small), *_TAKES.finditer(small), *_HASHED.finditer(small)):
        if is_close_lock(small[max(0, match.start() - _AHEAD) : match.end() + _AHEAD]):
            yield Span("access_code", match.start("digits"), match.end("digits"), 0.8)
    for match in _LOGS_IN.finditer(small):
        word = match["word"].rstrip(".)")
        if is_strong(word) or (word.isdecimal() and len(word) >= _LONG_NUMBER):
            yield Span("password", match.start("word"), match.start("word") + len(word), 0.8)
