"""Secrets that are assigned: ``DB_PASSWORD=...``, ``"client_secret": "..."``, ``X-Api-Key: ...``.

What is assigned must look like a secret, not like the name of one, code that reads it, or a note that it is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memframe.audit.language.vocabulary import one_of
from memframe.audit.secret.passwords import is_strong
from memframe.audit.secret.plain_words import is_plain
from memframe.audit.secret.randomness import entropy, is_placeholder, looks_random
from memframe.audit.text import Span

_ASSIGNED = re.compile(
    r"""(?<![\w.-])(?P<name>_?[A-Za-z][\w.-]{1,60})["'`]?\s{0,3}(?:=>|:=|[:=])\s{0,3}(?:(?:Bearer|Basic|Token)\s+)?"""
    r"""(?:(?P<mark>["'`])(?P<quoted>[^"'`\n]{4,400})(?P=mark)|(?P<bare>[a-z]{4}(?:\ [a-z]{4}){3}(?![\w ])"""
    r"""|[^\s"'`,;<>(){}\[\]]{6,400}))""",
    re.IGNORECASE,
)
_PASSWORD = re.compile(
    one_of(
        anywhere="passw(?:or)?d, passwd, passphrase, passcode",
        last="(?:^|[_.-])(?:pwd|pass|psk)$",
    ),
    re.IGNORECASE,
)
_NO_PASSWORD = re.compile(
    one_of(
        rules="timeout, expir, policy, length, attempt, (?:^|[_-])(?:age|min|max)(?:$|[_-])",
        places="hash, field, reset, file, path",
    ),
    re.IGNORECASE,
)
_OF_A_KEY = one_of(
    for_what="api, access, auth, private, pre-?shared, signing, encryption, master, hmac, webhook, deploy, license",
    of_whom="service, account, storage, feed, app, session, client, admin, db, bot",
)
_KEY = re.compile(
    one_of(
        anywhere=rf"secret, token, credential, bearer, {_OF_A_KEY}[_.-]?key",
        last="(?:^|[_.-])(?:key|apikey|auth|sig|signature|sas)$",
        alone="^authorization$",
    ),
    re.IGNORECASE,
)
_ABOUT_A_KEY = one_of(
    "id, name, code, word, path, file, board, space, frame, size, type, length, version, hash, vault, store"
)
_ABOUT_A_TOKEN = one_of(
    "url, uri, type, endpoint, count, limit, s$, name, path, file, expir, life, len, budget"
)
_NO_KEY = re.compile(
    one_of(
        public="public, _?pub(?:_|$), publickeytoken",
        about=rf"key[_-]?{_ABOUT_A_KEY}, token[_-]?{_ABOUT_A_TOKEN}, secret[_-]?(?:name|path|file|ref|id$|arn)",
        counted="max_?tokens, tokens$, tokeni[sz]er",
        databases="primary, foreign, sort, partition, cache, recv, [_-]id$, (?<=[a-z])ids?$",
        digests="hash, checksum, integrity, etag, nonce, csrf, idempotency",
        others="keyboard, expires, accessor, author(?!iz), _class$, classifier",
    ),
    re.IGNORECASE,
)
_OWN_SECRET = re.compile(r"secret(?:[_.-]?key)?$|secret[_.-]?key[_.-]?base$", re.IGNORECASE)
"""Names of secrets that people make up themselves."""

_OBJECT = one_of(
    settings="env, config, settings, secrets, vault, options, params, args",
    scopes="os, process, var, self, this, ctx, locals?, module, system, app",
    values="data, request, response, input, string, util\\w*, key",
)
_CODE = re.compile(
    one_of(
        addresses=r"[a-z][a-z0-9+.-]*://, arn:, ref\b",
        paths=r"[~.]{0,2}/[\w./-]+$, \w:\\",
        variables=rf"{_OBJECT}\b[.\[(], \$, %\(, @, \{{\{{, !, &",
        calls=r"[\w.]+\([^)]*\)?$",
        names=r"[\w-]+(?:\.[A-Za-z_-]{2,})+$",
    ),
    re.IGNORECASE,
)
"""Where a value is read from, and not the value."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MIN_ENTROPY = 2.8
_HEADER, _SHORTEST_IN_HEADER = re.compile(r"^authorization$", re.IGNORECASE), 16

_NAME = one_of(
    passwords="passw, passphrase, passcode, pwd, pass, psk",
    keys="secret, token, credential, key, auth[a-z]*, bearer, sig[a-z]*, sas",
)
MARKS = rf"(?i){_NAME}[\w.-]{{0,60}}[\"'`]?\s{{0,3}}(=>|:=|[:=])"
"""A pattern of RE2 that every text with an assigned secret matches."""


def find_assigned(text: str) -> Iterator[Span]:
    """Values of fields, variables and headers that have the name of a secret, and look like one."""
    for match in _ASSIGNED.finditer(text):
        group = "quoted" if match["quoted"] else "bare"
        value = match[group] if group == "quoted" else match[group].rstrip(".,;:!?")
        kind = _kind_of(match["name"], value, is_quoted=group == "quoted")
        if kind:
            yield Span(kind, match.start(group), match.start(group) + len(value), 0.85)


def _kind_of(name: str, value: str, *, is_quoted: bool) -> str | None:
    if is_placeholder(value) or is_plain(value) or _CODE.match(value):
        return None
    if _PASSWORD.search(name) and not _NO_PASSWORD.search(name):
        is_mixed = any(map(str.isdecimal, value)) or not value.isalnum()
        return "password" if is_mixed or (is_quoted and len(value) >= 6) else None
    if _KEY.search(name) and not _NO_KEY.search(name):
        is_header = _HEADER.search(name) is not None and _is_mixed_case(value)
        return (
            "key" if is_header or _is_key(value) or (_OWN_SECRET.search(name) and is_strong(value)) else None
        )
    return None


def _is_key(value: str) -> bool:
    if len(value) < 10 or " " in value:
        return False
    return (
        _UUID.fullmatch(value) is not None
        or looks_random(value, min_entropy=_MIN_ENTROPY)
        or _is_letters(value)
    )


def _is_mixed_case(value: str) -> bool:
    """What stands in a header for signing in: sixteen letters and more, of both sizes."""
    is_mixed = value != value.lower() and value != value.upper() and "-" not in value
    return len(value) >= _SHORTEST_IN_HEADER and is_mixed and entropy(value) >= _MIN_ENTROPY


def _is_letters(value: str) -> bool:
    """Thirty letters and more without a sign are no name of anything."""
    return len(value) >= 30 and value.isalnum() and entropy(value) >= 3.5
