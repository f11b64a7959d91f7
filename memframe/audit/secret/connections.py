"""Passwords on the way to something: in addresses and connection strings, beside the name they belong to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memframe.audit.secret.passwords import is_strong
from memframe.audit.secret.plain_words import is_plain
from memframe.audit.secret.randomness import is_placeholder, looks_random
from memframe.audit.text import Span

_ADDRESS = re.compile(
    r"(?<![\w+.-])[a-z][a-z0-9+.-]{1,30}://[^\s:@/\"'<>]{0,100}:(?P<word>[^\s@/\"'<>]{1,200})@[\w\[.-]",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"\b(?:AccountKey|SharedAccessKey|SharedSecret|Password|Pwd)\s?=\s?(?P<word>[^;\s\"']{4,200})(?=;|\s"
    r"|\"|'|$)"
)
_PYTHON = re.compile(
    r"\bauth\s?=\s?\(\s?[\"'][^\"'\n]{1,64}[\"'],\s?[\"'](?P<word>[^\"'\n]{4,100})[\"']\s?\)"
)
_SIGNED = re.compile(
    r"[?&](?:sig|X-Amz-Signature|access_token|api_?key|key|token|auth)=(?P<word>[\w%+/=.~-]{16,400})",
    re.IGNORECASE,
)
_AFTER_AWS_ID = re.compile(
    r"(?<![A-Z0-9])A[KS]IA[A-Z2-7]{16}\b[^\n]{0,60}?(?<![\w/+])(?P<word>[A-Za-z0-9/+]{40})(?![\w/+=])"
)
_AFTER_MAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{2,20}){1,3}(?:\s?[:|]\s?|\s/\s)(?P<word>[^\s\"'<>/"
    r"|,;]{6,64})(?![\w/])"
)
_AFTER_NAME = re.compile(
    r"(?:^|[.;\n]\s*)[A-Z][\w.+ ]{1,24}: [A-Za-z][\w.@+-]{1,40} / (?P<word>(?=\S*[a-z])(?=\S*[0-9])\S{8,64})"
)
_AFTER_ADMIN = re.compile(
    r"(?<![\w./-])(?:admin|administrator|root|pi|ubuntu|postgres)\s?(?:[/:]\s?|\|\s)"
    r"(?P<word>[^\s\"'<>/|,;:]{8,64})(?![\w/])"
)
_BESIDE_ADMIN = re.compile(
    r"(?<![\w./-])(?:admin|administrator|root),\s(?P<word>[^\s\"'<>/|,;]{8,64})(?![\w/])"
)
_BESIDE_USER = re.compile(
    r"(?<!\w)u(?:ser(?:name)?|sr|n)?\s?[:=]\s?[^\s,;|/]{2,64}[\s,;|/]{1,3}"
    r"p(?:ass(?:word)?|wd?)?\s?[:=]\s?(?P<word>[^\s\"'<>,;|]{4,64})",
    re.IGNORECASE,
)
_OF_A_WALLET = re.compile(
    r"\b(?:private|priv|secret|signing)[ _-]?keys?\b[^\n]{0,60}?(?<!\w)"
    r"(?P<word>(?:0x)?[0-9a-fA-F]{64}|[5KL][1-9A-HJ-NP-Za-km-z]{50,51})(?!\w)",
    re.IGNORECASE,
)

MARKS = (
    r"://[^\s:@/]{0,100}:[^\s@/]{1,200}@|(AccountKey|SharedAccessKey|SharedSecret|Password|Pwd)\s?="
    r"|auth\s?=\s?\(|(?i:[?&](sig|X-Amz-Signature|access_token|api_?key|key|token"
    r"|auth)=)"
    r"|A[KS]IA[A-Z2-7]{16}|@[\w.-]+(\s?[:|]| /)|\b(admin|administrator|root|pi|ubuntu|postgres)\s?[/:|,]"
    r"|(?i:\bp(ass(word)?|wd?)?\s?[:=])"
    r"|(?i:\b(private|priv|secret|signing)[ _-]?key)|: [A-Za-z][\w.@+-]{1,40} / \S{8}"
)
"""A pattern of RE2 that every text with such a password matches."""


def _is_password(word: str) -> bool:
    return not is_placeholder(word) and not is_plain(word) and not word.startswith("$")


def _is_key(word: str) -> bool:
    return _is_password(word) and looks_random(word)


_PASSES: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("connection_string", _ADDRESS, _is_password),
    ("connection_string", _FIELD, _is_password),
    ("password", _PYTHON, _is_password),
    ("key", _SIGNED, _is_key),
    ("key", _AFTER_AWS_ID, _is_key),
    ("password", _AFTER_MAIL, is_strong),
    ("password", _AFTER_NAME, is_strong),
    ("password", _AFTER_ADMIN, is_strong),
    ("password", _BESIDE_USER, is_strong),
    ("password", _BESIDE_ADMIN, _is_key),
    ("key", _OF_A_WALLET, _is_password),
)


def find_in_connections(text: str) -> Iterator[Span]:
    """Passwords in addresses and connection strings; signed addresses; what follows a name at once.

    >>> text = "psql postgres://app:hunter2@db/prod, or ada@example.org / Moana2016"
    >>> [text[span.start : span.end] for span in find_in_connections(text)]
    ['hunter2', 'Moana2016']
    """
    for kind, pattern, is_one in _PASSES:
        for match in pattern.finditer(text):
            if is_one(match["word"]):
                yield Span(kind, match.start("word"), match.end("word"), 0.9)
