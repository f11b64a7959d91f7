"""Tokens that say what they are: keys whose makers gave them a shape of their own, and private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import zip_longest
from typing import NamedTuple

from memframe.audit.secret.randomness import is_drawn, is_placeholder
from memframe.audit.text import Span


class _Shape(NamedTuple):
    maker: str
    mark: str
    """What each such token holds, in the words of RE2; for most of them how it begins."""
    pattern: str


def _listed() -> Iterator[_Shape]:
    for line in files(__package__).joinpath("tokens.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            maker, mark, rest = line.split()
            yield _Shape(maker.replace("_", " "), mark, mark + rest)


_SHAPES = (
    *_listed(),
    _Shape("Azure", "Q~", r"[\w.~]{3}[0-9]Q~[\w.~-]{31,34}"),
    _Shape(
        "Teams", r"\.webhook\.office\.com/", r"[\w-]{1,60}\.webhook\.office\.com/webhookb2/[\w@/-]{80,400}"
    ),
    _Shape("Mailgun", r"[0-9a-f]{8}-[0-9a-f]{8}", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
    _Shape("Twitter", "AAAAAAAAAA", r"A{20,24}[\w%]{50,200}"),
    _Shape("Discord", r"\.[\w-]{6}\.[\w-]{16}", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}"),
    _Shape("HashiCorp", r"\.atlasv1\.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,200}"),
    _Shape("Mailchimp", "-us[0-9]", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    _Shape("MaxMind", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    _Shape("product key", r"-[A-Z0-9]{5}-[A-Z0-9]{5}-", r"(?:[A-Z0-9]{5}-){4}[A-Z0-9]{5}"),
    _Shape("Telegram", ":AA", r"[0-9]{8,10}:AA[\w-]{32,33}"),
    _Shape("JSON web token", "eyJ", r"eyJ[\w-]{10,1000}\.eyJ[\w-]{10,4000}\.[\w-]{0,1000}"),
)

_PEM = re.compile(r"-----(?P<side>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY = re.compile(
    r"PuTTY-User-Key-File-[0-9]:[^\0]{0,4000}?\nPrivate-Lines: ?[0-9]{1,3}\r?\n(?P<body>[A-Za-z0-9+/=\s]{40,8000})"
)
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=:,.\s\\-]*+")
_SHORTEST_PEM_BODY = 40

_SHORTEST = 16

_BEGINNINGS = "|".join(dict.fromkeys(shape.mark for shape in _SHAPES))
_ENDINGS = "-us[0-9]|_mmk|[0-9a-f]{12}-[0-9a-f]{8}-[0-9a-f]{8}"

MARKS = rf"(?:{_BEGINNINGS})[\w+/.~@-]{{10}}|{_ENDINGS}|-----BEGIN |PuTTY-User-Key"
"""A pattern of RE2 that every text with a token or a private key matches."""

_TOKEN = re.compile(
    rf"(?<![A-Za-z0-9_-])(?=[\w.~:/@+=-]{{{_SHORTEST}}})(?:"
    + "|".join(f"({shape.pattern})" for shape in _SHAPES)
    + ")(?![A-Za-z0-9])"
)


def find_tokens(text: str) -> Iterator[Span]:
    """Keys and tokens of known makers, each by the maker's name.

    >>> list(find_tokens("use ghp_" + "4Jt0wZkQ" * 4 + "9aB2"))
    [Span(kind='token', start=4, end=44, score=1.0, label='GitHub')]
    """
    for match in _TOKEN.finditer(text):
        if not is_placeholder(match[0]) and is_drawn(match[0]):
            shape = _SHAPES[(match.lastindex or 1) - 1]
            yield Span("token", match.start(), match.end(), 1.0, shape.maker)


def find_private_keys(text: str) -> Iterator[Span]:
    """Private keys in PEM, also where their end was cut off."""
    lines = list(_PEM.finditer(text))
    for line, following in zip_longest(lines, lines[1:]):
        if line["side"] == "BEGIN":
            limit = following.start() if following else len(text)
            body = _PEM_BODY.match(text, line.end(), limit)
            if body and len(body[0]) >= _SHORTEST_PEM_BODY:
                is_whole = following and following["side"] == "END" and body.end() == limit
                end = following.end() if is_whole else body.start() + len(body[0].rstrip())
                yield Span("private_key", line.start(), end, 1.0)
    for key in _PUTTY.finditer(text):
        yield Span("private_key", key.start("body"), key.start("body") + len(key["body"].rstrip()), 1.0)
