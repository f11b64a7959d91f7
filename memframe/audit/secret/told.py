"""Secrets that people tell an assistant in a sentence: passwords, PINs, door codes, recovery codes, answers.

A keyword opens, a few words may say what it is for, a link ("is", a colon, "changed to") follows, and then
comes a value that must look like one: "my password for the bakery is hunter2". Words may also come the other
way round: "uses hunter2 as the wifi password". Only what stands near a keyword is ever looked at, so that
the time grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memframe.audit.secret import codes, passwords
from memframe.audit.secret.keywords import ABOUT, KEYWORD, SMALL
from memframe.audit.secret.links import BE, places_after
from memframe.audit.secret.values import Judged, Link, Value
from memframe.audit.text import Span

_AHEAD, _BEHIND = 240, 120
"""Characters from a value on, and before a keyword, that may belong to it."""

_QUOTED = re.compile(r"[\"“„«`‘'](?P<quoted>[^\"“”„«»`\n]{1,120}?)[\"”“»`’'](?!\w)")
_THE = r"(?:the|my|his|her|their|our|your|its|a|an|mein|meine|sein|ihr|das|die|mon|ma|mi|su|il|mijn|het)"
_BEFORE = re.compile(
    r"(?:^|[\s(,;:])(?:[\"“„«`‘'](?P<quoted>[^\"“”„«»`\n]{1,80})[\"”“»`’']"
    r"|(?P<bare>[0-9]{1,2}(?:[ -][0-9]{1,2}){2,3}|[^\s\"“”«»`]{3,80}))\s+"
    rf"(?:(?:{BE}(?:\s+also)?(?:\s+what\s+(?:i|we|he|she|they)\s+(?:chose|use|set|picked|took)\s+(?:as|for))?|[-–—]?\s?(?:that|it|which)(?:['’]s|\sis)|for|as|als|como"
    rf"|comme)\s+{_THE}\s+(?:[\w'’-]+\s+){{0,4}}|(?:as|als|como|comme)\s+)\Z",
)
_CHOSEN = re.compile(
    r"\b(?:keeps?|kept|chose|chosen|picked|agreed on|settled on|took|as|with|decided on)\s+\Z(?<!such as )"
)
"""What people do with a word that becomes their password: such a word need not look like one."""

_OF_ALL = re.compile(
    r"\s+(?:anyone|anybody|people|you can|one (?:can|could)|of all|ever|in the world|there is)\b"
)
"""After a password that nobody has, but anybody could choose."""

_REVERSIBLE = frozenset({"password", "pin", "code"})
_JUDGES: dict[str, tuple[str, Callable[[Value], Judged | None]]] = {
    "password": ("password", passwords.password),
    "foreign": ("password", passwords.password),
    "loose": ("password", passwords.loose_password),
    "login": ("password", passwords.login),
    "key": ("key", passwords.key),
    "answer": ("security_answer", passwords.answer),
    "pin": ("pin", codes.pin),
    "code": ("access_code", codes.access_code),
    "lock": ("access_code", codes.access_code),
    "recovery": ("recovery_code", codes.recovery_code),
    "once": ("one_time_code", codes.one_time_code),
    "totp": ("key", codes.shared_secret),
}
"""Group of keywords -> kind of the finding, and what tells whether a value is one."""


def find_told(text: str) -> Iterator[Span]:
    """Secrets that stand near a keyword.

    >>> text = "Her password for the bakery is hunter2, as she forgot the old one."
    >>> [text[span.start : span.end] for span in find_told(text)]
    ['hunter2']
    """
    small = text.translate(SMALL)
    for match in KEYWORD.finditer(small):
        if not ABOUT.match(small, match.end()):
            keyword = _Keyword(text, small, match.start(), match.end(), str(match.lastgroup))
            yield from _after(keyword)
            yield from _ahead_of(keyword)


class _Keyword(NamedTuple):
    """A word that announces a secret, in its text."""

    text: str
    small: str
    """The text in small letters."""
    start: int
    end: int
    group: str

    @property
    def before(self) -> str:
        return self.small[max(0, self.start - _BEHIND) : self.start]

    def judged(self, begin: int, link: Link, purpose: str) -> Span | None:
        """The secret that begins here, if it is one."""
        quoted = _QUOTED.match(self.text, begin)
        begin += quoted is not None
        kind, judge = _JUDGES[self.group]
        found = judge(
            Value(
                rest=self.text[begin : begin + _AHEAD],
                quoted=quoted and quoted["quoted"],
                link=link,
                keyword=self.small[self.start : self.end],
                purpose=purpose,
                before=self.before,
            )
        )
        return found and Span(kind, begin + found.start, begin + found.end, found.score)


def _after(keyword: _Keyword) -> Iterator[Span]:
    """What follows a keyword, at once or after some words and a link; and what it was changed to afterwards."""
    end = 0
    for link, purpose, begin in places_after(
        keyword.small, keyword.end, group=keyword.group, before=keyword.before
    ):
        span = keyword.judged(begin, link, purpose) if not end or (link == "set" and begin > end) else None
        if span is not None:
            yield span
            end = span.end


def _ahead_of(keyword: _Keyword) -> Iterator[Span]:
    """What stands before a keyword: "hunter2 is the wifi password", "uses hunter2 as a password"."""
    before = keyword.before
    is_reversible = keyword.group in _REVERSIBLE and not _OF_ALL.match(keyword.small, keyword.end)
    match = _BEFORE.search(before) if before[-1:].isspace() and is_reversible else None
    if match is None:
        return
    offset = keyword.start - len(before)
    value = "bare" if match["bare"] else "quoted"
    link: Link = "is" if _CHOSEN.search(before, 0, match.start(value)) else "reversed"
    span = keyword.judged(offset + match.start(value) - (value == "quoted"), link, "")
    if span is not None and span.end == offset + match.end(value):
        yield span
