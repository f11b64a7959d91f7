"""Find secrets of machines: issued tokens, private keys, seed phrases, values in places where programs keep secrets.

Tokens are listed by maker in `rules/tokens.txt`. Addresses, command lines, files and assignments are patterns of
`rules/secret_places.toml`, each with a test of the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest

from memframe.audit.rules import Rule, load_rules
from memframe.audit.secrets.values import (
    WIDE_STOPS,
    closes_code,
    entropy,
    is_elided,
    is_identifier,
    is_mixed,
    is_placeholder,
    is_plain,
    is_public_address,
    is_random,
    is_strong,
    is_token,
)
from memframe.audit.text import Span

# ---- issued tokens and private keys


_LINES = files("memframe.audit").joinpath("rules", "tokens.txt").read_text("utf-8").splitlines()
_SHAPES = [line.split() for line in _LINES if line and not line.startswith("#")]
"""Makers of tokens, each with the beginning of its tokens (or another part) and the pattern of the rest; after "=" the
pattern is that of the whole token."""
_PATTERNS = [f"({rest[1:] if rest.startswith('=') else mark + rest})" for _, mark, rest in _SHAPES]
TOKEN = re.compile(rf"(?<![A-Za-z0-9_-])(?=[\w.~:/@+=-]{{16}})(?:{'|'.join(_PATTERNS)})(?![A-Za-z0-9])")
TOKEN_MARK = re.compile("|".join(mark for _, mark, _ in _SHAPES))
PEM = re.compile(r"-----(?P<side>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
PUTTY = re.compile(r"\bPrivate-Lines: ?[0-9]{1,3}\r?\n(?P<body>[A-Za-z0-9+/=\s]{40,8000})")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=:,.\s\\-]*+")
_SHORTEST_PEM_BODY = 40


def find_tokens(text: str) -> Iterator[Span]:
    """Find keys and tokens of known makers, with the maker's name as label.

    >>> list(find_tokens("use ghp_" + "4Jt0wZkQ" * 4 + "9aB2"))
    [Span(kind='token', start=4, end=44, score=1.0, label='GitHub', basis='shape')]
    """
    for match in TOKEN.finditer(text):
        if is_token(match[0]) and not is_elided(text, match.end()):
            maker = _SHAPES[(match.lastindex or 1) - 1][0].replace("_", " ")
            yield Span("token", match.start(), match.end(), 1.0, maker, "shape")


def is_token_alone(text: str) -> bool:
    """Return True if a text is the key or token of a known maker, and nothing else.

    >>> is_token_alone(" ghp_" + "4Jt0wZkQ" * 4 + "9aB2"), is_token_alone("tea")
    (True, False)
    """
    bare = text.strip()
    return any((span.start, span.end) == (0, len(bare)) for span in find_tokens(bare))


def find_private_keys(text: str) -> Iterator[Span]:
    """Find private keys of PEM, also with the end cut off, and of PuTTY."""
    lines = list(PEM.finditer(text))
    for line, following in zip_longest(lines, lines[1:]):
        if line["side"] == "BEGIN":
            limit = following.start() if following else len(text)
            body = _PEM_BODY.match(text, line.end(), limit)
            if body and len(body[0]) >= _SHORTEST_PEM_BODY:
                is_whole = following and following["side"] == "END" and body.end() == limit
                end = following.end() if is_whole else body.start() + len(body[0].rstrip())
                yield Span("private_key", line.start(), end, 1.0, basis="shape")
    for key in PUTTY.finditer(text):
        start = key.start("body")
        yield Span("private_key", start, start + len(key["body"].rstrip()), 1.0, basis="shape")


# ---- places where programs take or keep a secret

_RULES = load_rules("secret_places")
PLACES = _RULES.only("connection", "wallet", "option", "record").rules
PAIRS, COMMAND_RULES = _RULES.only("pair").rules, _RULES.only("command").rules
_QUOTED = re.compile(r"[\"'][^\s\"'=]{0,64}\Z")
"""Text before a quoted value: the opening quotation mark, perhaps with the name of a user behind it."""

_MAX_QUOTED_CHARS = 200
"""Characters before and after a value in which its quotation marks, or the next command, are searched."""

_BASES = {
    "connection": "address",
    "record": "label",
    "wallet": "label",
    "command": "label",
    "option": "label",
    "pair": "sentence",
}
"""Basis of the finding, by the group of its rule."""


def find_in_places(text: str, rules: Sequence[Rule] = PLACES) -> Iterator[Span]:
    """Find passwords and keys in addresses, connection strings, command lines, records and pairs with a user's name.

    >>> text = "psql postgres://app:hunter2@db/prod; docker login -u bot -p plum-tree"
    >>> [text[span.start : span.end] for rules in (PLACES, COMMAND_RULES) for span in find_in_places(text, rules)]
    ['hunter2', 'plum-tree']
    """
    for rule in rules:
        for match in rule.regex.finditer(text):
            start, end = match.span("word")
            if rule.group in ("command", "option"):
                end = _end_of_quoted(text, start, end)
            if _TESTS[str(rule.options["test"])](text[start:end]):
                yield Span(rule.kind, start, end, 0.9, basis=_BASES[rule.group])


def _end_of_quoted(text: str, start: int, end: int) -> int:
    """Return the end of a value, which is its closing quotation mark if it has an opening one."""
    opened = _QUOTED.search(text[max(0, start - _MAX_QUOTED_CHARS) : start])
    closed = text.find(opened[0][0], end, end + _MAX_QUOTED_CHARS) if opened else -1
    return end if closed < 0 or "\n" in text[end:closed] else closed


_REFERENCE = re.compile(r"\$.*|[-@<%][\w./-]*[>%]?|%[(\w].*|<.*>")
"""A variable, an option, a file or a placeholder in the place of a password."""


def _is_password(word: str) -> bool:
    return not (
        is_placeholder(word) or is_plain(word) or _REFERENCE.fullmatch(word) or is_public_address(word)
    )


_TESTS: dict[str, Callable[[str], bool]] = {
    "password": _is_password,
    "strong": is_strong,
    "evident": lambda word: (
        _is_password(word)
        and not is_identifier(word)
        and (is_strong(word) or (word[1:] != word[1:].lower() and not word.isupper()))
    ),
    "strong_or_digits": lambda word: is_strong(word) or (word.isdecimal() and len(word) >= 8),
    "random": lambda word: _is_password(word) and is_random(word),
}
"""Tests of values, by the name that a rule has as its option ``test``."""


# ---- values that are assigned to names

ASSIGNED = _RULES.only("assignment").rules[0].regex
ASSIGNED_PREFILTER = (
    r"(?i)(?:passw|passphrase|passcode|pwd|pass|psk|secret|token|credential|key|auth|bearer|sig|sas)[\w.-]{0,60}"
    r"[\"'`]?\s{0,3}[:=]"
)
"""A pattern of RE2 that every text with an assigned secret matches."""

_NAMES = {
    name: _RULES.only(name).rules[0].regex
    for name in (
        "password_name",
        "no_password_name",
        "key_name",
        "no_key_name",
        "own_secret_name",
        "no_value",
    )
}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MIN_KEY_CHARS = 10
"""Fewest characters of a key."""
_MIN_ENTROPY = 2.8
"""Least entropy of a key, in bits per character."""
_MIN_DIGITS = 8
"""Fewest digits of a secret that is a number; shorter numbers are limits and counts."""

_MAX_JUDGED_CHARS = 4_000
"""Characters at the beginning of a value by which its kind is decided."""

_GOES_ON = re.compile(rf"[^\s\"'`,;<>(){{}}\[\]{WIDE_STOPS}]*+")
"""Rest of a value behind the part that a pattern matches; patterns have a bound."""


def find_assigned(text: str) -> Iterator[Span]:
    """Find values of fields, variables and headers whose name is that of a secret, and that look like one.

    >>> text = "DB_PASSWORD=hunter2boat, api_key: os.environ['KEY'], max_tokens=128000"
    >>> [text[span.start : span.end] for span in find_assigned(text)]
    ['hunter2boat']
    """
    end_of_run = 0
    for match in ASSIGNED.finditer(text):
        if text[max(0, match.start() - 7) : match.start()].lower() == "public ":
            continue
        group = "quoted" if match["quoted"] else "bare"
        value = match[group]
        if group == "bare":
            # a match within the rest of an earlier value ends where that ends
            if match.end() > end_of_run:
                end_of_run = _GOES_ON.match(text, match.end()).end()  # type: ignore[union-attr]
            value = text[match.start(group) : max(match.end(), end_of_run)].rstrip(".,;:!?")
        end = match.start(group) + len(value)
        if is_elided(text, end) or (group == "quoted" and closes_code(text, match.start(group) - 1)):
            continue
        kind = _kind_of_assigned(match["name"], value[:_MAX_JUDGED_CHARS], is_quoted=group == "quoted")
        if kind:
            is_whole = not any(map(str.isspace, value)) and (
                kind == "key" or is_mixed(value) or value.isdecimal()
            )
            yield Span(kind, match.start(group), end, 0.85, basis="label" if is_whole else "sentence")


def _kind_of_assigned(name: str, value: str, *, is_quoted: bool) -> str | None:
    """Return "password" or "key" for a secret, by its name and its characters; None for any other value."""

    def is_named(group: str) -> bool:
        return _NAMES[group].search(name) is not None

    if _NAMES["no_value"].match(value) or is_placeholder(value) or is_plain(value):
        return None
    if is_named("password_name") and not is_named("no_password_name"):
        has_shape = any(map(str.isdecimal, value)) or not value.isalnum() or (is_quoted and len(value) >= 6)
        return "password" if has_shape else None
    if not is_named("key_name") or is_named("no_key_name"):
        return None
    is_number = value.isdecimal() and len(value) >= _MIN_DIGITS
    is_secret = is_key(value) or (is_named("own_secret_name") and (is_strong(value) or is_number))
    return "key" if is_secret else None


def is_key(value: str) -> bool:
    """Return True if a value is a UUID, is drawn at random, or has thirty varied letters and digits without a sign."""
    if len(value) < _MIN_KEY_CHARS or " " in value or is_public_address(value):
        return False
    is_long = len(value) >= 30 and value.isalnum() and entropy(value) >= 3.5
    return _UUID.fullmatch(value) is not None or is_random(value, min_entropy=_MIN_ENTROPY) or is_long


_NEXT_COMMAND = _RULES.only("next_command").rules[0].regex
_NEXT_ASSIGNED = _RULES.only("next_command_assigned").rules[0].regex
_MIN_CUT_CHARS = 3
"""Fewest characters that are left of a secret."""


def cut_at_next_command(text: str, span: Span) -> Span:
    """Cut off the next command or field that was read as the end of a secret.

    >>> text = "DB_PASSWORD=Blue!Whale88;psql -h db"
    >>> cut = cut_at_next_command(text, Span("password", 12, 29, 0.9))
    >>> text[cut.start : cut.end]
    'Blue!Whale88'
    """
    before = text[max(0, span.start - _MAX_QUOTED_CHARS) : span.start]
    if _QUOTED.search(before):
        return span
    pattern = _NEXT_ASSIGNED if before.endswith("=") else _NEXT_COMMAND
    following = pattern.search(text, span.start + _MIN_CUT_CHARS, span.end + _MAX_QUOTED_CHARS)
    return span._replace(end=following.start()) if following and following.start() < span.end else span


# ---- seed phrases of wallets

_MIN_PHRASE_WORDS = 12
"""Fewest consecutive words of the list that are a seed phrase: the shortest phrase of BIP 39."""
_MIN_NAMED_PHRASE_WORDS = 10
"""Fewest such words behind a word for seed phrases; two may be missing or misspelt."""
_MIN_DISTINCT = 7
"""Fewest distinct words among them."""

_MIN_LISTED = 0.6
"""Least share of words of the list in a row of words that is called a seed phrase."""

NAMED_PHRASE = re.compile(
    r"\b(?:seed|recovery|mnemonic|wallet|semilla)\b[^.:=\n]{0,40}?(?::|=|\bis\b|\bare\b)\s{0,3}[\"'“]?"
    r"(?P<words>(?:[a-z]{3,10}[\s,]{1,3}){9,23}[a-z]{3,10})\b",
    re.IGNORECASE,
)
_NAME_OF_PHRASE = re.compile(
    r"\b(?:seed|recover\w*|mnemo\w*|wallet|backup|semilla|wiederherstell\w*)\b", re.IGNORECASE
)
_NAMED_WITHIN = 120
"""Characters before a phrase in which its name is searched."""
_WORD = re.compile(r"[A-Za-z]+")
_BETWEEN = re.compile(r"[\s,;|]{0,6}(?:[0-9]{1,2}[.):]?\s{0,2})?")

PHRASE_PREFILTER = r"(?i)(?:\b[a-z]{3,8}\b[\s,;|0-9.):]{1,8}){9}[a-z]{3,8}"
"""A pattern of RE2 that every text with a seed phrase matches."""


def find_seed_phrases(text: str) -> Iterator[Span]:
    """Find twelve or more consecutive words of the 2,048 of BIP 39; numbers and commas may be between them."""
    listed = seed_words()
    for named in NAMED_PHRASE.finditer(text):  # some words may be misspelt, or of another list
        words = _WORD.findall(named["words"].lower())
        if sum(map(listed.__contains__, words)) >= _MIN_LISTED * len(words):
            yield Span("seed_phrase", *named.span("words"), 0.95, basis="sentence")
    listed_flags = bytes(word in listed for word in _WORD.findall(text.lower()))
    if bytes([True] * _MIN_NAMED_PHRASE_WORDS) not in listed_flags:  # a quick test for so many in a row
        return
    run: list[re.Match[str]] = []
    for word in (*_WORD.finditer(text), None):
        is_listed = word is not None and word[0].lower() in listed
        if word and is_listed and (not run or _BETWEEN.fullmatch(text, run[-1].end(), word.start())):
            run.append(word)
            continue
        if len(run) >= _MIN_NAMED_PHRASE_WORDS and len({one[0] for one in run}) >= _MIN_DISTINCT:
            start = run[0].start()
            is_named = _NAME_OF_PHRASE.search(text, max(0, start - _NAMED_WITHIN), start) is not None
            if is_named or len(run) >= _MIN_PHRASE_WORDS:
                is_whole = is_named and len(run) >= _MIN_PHRASE_WORDS
                score, basis = (1.0 if is_named else 0.9), ("shape" if is_whole else "sentence")
                yield Span("seed_phrase", start, run[-1].end(), score, basis=basis)
        run = [word] if word and is_listed else []


@cache
def seed_words() -> frozenset[str]:
    """Read the English word list of BIP 39 (MIT licence, Pavol Rusnak); lists of other languages are hardly used."""
    return frozenset(files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split())
