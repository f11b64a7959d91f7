"""Records: lines of files and codes that hold a secret in a place of their own, whatever it looks like.

``.pgpass`` and ``.htpasswd``, what a QR code says of a network or an authenticator, the cookies of a session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memframe.audit.language.vocabulary import one_of
from memframe.audit.secret.commands import is_password
from memframe.audit.secret.randomness import is_placeholder, looks_random
from memframe.audit.text import Span

_SESSION = one_of(
    languages=r"PHPSESSID, JSESSIONID, ASP\.NET_SessionId, ASPSESSIONID\w{0,12}, connect\.sid, laravel_session",
    sites="li_at, xoxd, auth_token, sessionid, session_token, remember_user_token",
)
_HASH = one_of(
    crypt=r"\$(?:apr1|2[abxy]|[156y]|7)\$[\w./$=]{12,200}",
    digest=r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{20,120}",
)


class _Record(NamedTuple):
    """A kind of secret, where it stands, and what tells whether it is one."""

    kind: str
    pattern: re.Pattern[str]
    is_one: Callable[[str], bool]


def _is_key(word: str) -> bool:
    return is_password(word) and looks_random(word)


_RECORDS = (
    _Record(
        "password",
        re.compile(
            r"(?<![\w.:-])(?:[\w-]{1,60}(?:\.[\w-]{1,60}){0,6}|\*):(?:[0-9]{4,5}|\*):[\w*-]{1,60}"
            r":[A-Za-z][\w-]{0,60}:(?P<word>[^\s:]{3,100})(?!\S)"
        ),
        is_password,
    ),
    _Record(
        "password",
        re.compile(rf"(?<![\w.-])(?!(?i:hash|bcrypt|sha[0-9]*):)[A-Za-z][\w.@-]{{0,40}}:(?P<word>{_HASH})"),
        lambda word: not is_placeholder(word.partition("}")[2] or word),
    ),
    _Record(
        "password",
        re.compile(r"\bWIFI:(?:[A-Z]:(?:\\.|[^;\\\n]){0,64};){0,4}?P:(?P<word>(?:\\.|[^;\\\n]){3,80});"),
        is_password,
    ),
    _Record(
        "key",
        re.compile(
            r"\botpauth(?:-migration)?://[^\s\"'<>]{1,300}?[?&](?:secret|data)=(?P<word>[A-Za-z0-9%+/=]{12,400})"
        ),
        is_password,
    ),
    _Record(
        "key",
        re.compile(
            rf"(?<![\w.-])(?:{_SESSION}|(?i:(?:set-)?cookie\s?:\s?(?:[^\n]{{0,200}}?[;\s])??)[\w.-]{{2,40}})"
            r"\s?=\s?(?P<word>[\w%+/=.~-]{16,400})"
        ),
        _is_key,
    ),
)

MARKS = (
    r":(?:[0-9]{4,5}|\*):[\w*-]+:[A-Za-z]|:(?:\$[0-9a-z]{1,4}\$|\{S?SHA)|WIFI:|otpauth"
    rf"|(?i:cookie\s?:)|{_SESSION}\s?="
)
"""A pattern of RE2 that every text with such a record matches."""


def find_in_records(text: str) -> Iterator[Span]:
    """Secrets in the place that a record has for them.

    >>> text = "WIFI:T:WPA;S:Heron;P:tiger;; db.example.org:5432:shop:app:elephant"
    >>> [text[span.start : span.end] for span in find_in_records(text)]
    ['elephant', 'tiger']
    """
    for kind, pattern, is_one in _RECORDS:
        for match in pattern.finditer(text):
            if is_one(match["word"]):
                yield Span(kind, match.start("word"), match.end("word"), 0.9)
