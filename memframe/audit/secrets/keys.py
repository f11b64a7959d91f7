"""Find secrets of machines: issued tokens, private keys, seed phrases, and what stands where programs keep a secret.

Tokens are a table of makers (`rules/tokens.txt`); addresses, command lines, files and assignments are patterns of
`rules/secret_places.toml`, each with a test of what the value must look like.
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
"""Makers of tokens, what each token holds (for most how it begins), and what follows or, after an "=", the whole."""
_PATTERNS = [f"({rest[1:] if rest.startswith('=') else mark + rest})" for _, mark, rest in _SHAPES]
TOKEN = re.compile(rf"(?<![A-Za-z0-9_-])(?=[\w.~:/@+=-]{{16}})(?:{'|'.join(_PATTERNS)})(?![A-Za-z0-9])")
TOKEN_MARK = re.compile("|".join(mark for _, mark, _ in _SHAPES))
PEM = re.compile(r"-----(?P<side>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
PUTTY = re.compile(r"\bPrivate-Lines: ?[0-9]{1,3}\r?\n(?P<body>[A-Za-z0-9+/=\s]{40,8000})")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=:,.\s\\-]*+")
_SHORTEST_PEM_BODY = 40


def find_tokens(text: str) -> Iterator[Span]:
    """Find keys and tokens of known makers, each by the maker's name.

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
    """Find private keys in PEM, also where their end was cut off, and those of PuTTY."""
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
"""Text before a value that a quotation mark closes: the mark, and the name of a user at most."""

_LONGEST = 200

_BASES = {
    "connection": "address",
    "record": "label",
    "wallet": "label",
    "command": "label",
    "option": "label",
    "pair": "sentence",
}
"""Basis on which the value of a place is a secret, by the group of its rule."""


def find_in_places(text: str, rules: Sequence[Rule] = PLACES) -> Iterator[Span]:
    """Find passwords and keys in addresses, connection strings, command lines, records and beside a user's name.

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
    """Return where a value ends: where its quotation marks close, if it has any."""
    opened = _QUOTED.search(text[max(0, start - _LONGEST) : start])
    closed = text.find(opened[0][0], end, end + _LONGEST) if opened else -1
    return end if closed < 0 or "\n" in text[end:closed] else closed


_REFERENCE = re.compile(r"\$.*|[-@<%][\w./-]*[>%]?|%[(\w].*|<.*>")
"""A variable, an option, a file or a blank to fill in, which stand where a password would."""


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


# ---- what is assigned to names

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
_SHORTEST_KEY, _MIN_ENTROPY = 10, 2.8
_SHORTEST_DIGITS = 8
"""Digits that are assigned to the name of a secret, and are no limit or number of one."""

_LONGEST_JUDGED = 4_000
"""Characters of a value by which its kind is told."""

_GOES_ON = re.compile(rf"[^\s\"'`,;<>(){{}}\[\]{WIDE_STOPS}]*+")
"""The rest of a value that is longer than what a pattern counts."""


def find_assigned(text: str) -> Iterator[Span]:
    """Find values of fields, variables and headers that have the name of a secret, and look like one.

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
            if (
                match.end() > end_of_run
            ):  # else a value within one that goes on for longer than a pattern counts
                end_of_run = _GOES_ON.match(text, match.end()).end()  # type: ignore[union-attr]
            value = text[match.start(group) : max(match.end(), end_of_run)].rstrip(".,;:!?")
        end = match.start(group) + len(value)
        if is_elided(text, end) or (group == "quoted" and closes_code(text, match.start(group) - 1)):
            continue
        kind = _kind_of_assigned(match["name"], value[:_LONGEST_JUDGED], is_quoted=group == "quoted")
        if kind:
            is_whole = not any(map(str.isspace, value)) and (
                kind == "key" or is_mixed(value) or value.isdecimal()
            )
            yield Span(kind, match.start(group), end, 0.85, basis="label" if is_whole else "sentence")


def _kind_of_assigned(name: str, value: str, *, is_quoted: bool) -> str | None:
    def is_named(group: str) -> bool:
        return _NAMES[group].search(name) is not None

    if _NAMES["no_value"].match(value) or is_placeholder(value) or is_plain(value):
        return None
    if is_named("password_name") and not is_named("no_password_name"):
        has_shape = any(map(str.isdecimal, value)) or not value.isalnum() or (is_quoted and len(value) >= 6)
        return "password" if has_shape else None
    if not is_named("key_name") or is_named("no_key_name"):
        return None
    is_number = value.isdecimal() and len(value) >= _SHORTEST_DIGITS
    return (
        "key" if is_key(value) or (is_named("own_secret_name") and (is_strong(value) or is_number)) else None
    )


def is_key(value: str) -> bool:
    """Return True if a value is long and drawn at random; thirty letters without a sign are no name of anything."""
    if len(value) < _SHORTEST_KEY or " " in value or is_public_address(value):
        return False
    is_long = len(value) >= 30 and value.isalnum() and entropy(value) >= 3.5
    return _UUID.fullmatch(value) is not None or is_random(value, min_entropy=_MIN_ENTROPY) or is_long


_NEXT_COMMAND = _RULES.only("next_command").rules[0].regex
_NEXT_ASSIGNED = _RULES.only("next_command_assigned").rules[0].regex
_SHORTEST = 3


def cut_at_next_command(text: str, span: Span) -> Span:
    """Cut off the command or the field that follows a secret in a command line.

    >>> text = "DB_PASSWORD=Blue!Whale88;psql -h db"
    >>> cut = cut_at_next_command(text, Span("password", 12, 29, 0.9))
    >>> text[cut.start : cut.end]
    'Blue!Whale88'
    """
    before = text[max(0, span.start - _LONGEST) : span.start]
    if _QUOTED.search(before):
        return span
    pattern = _NEXT_ASSIGNED if before.endswith("=") else _NEXT_COMMAND
    following = pattern.search(text, span.start + _SHORTEST, span.end + _LONGEST)
    return span._replace(end=following.start()) if following and following.start() < span.end else span


# ---- seed phrases of wallets

_SHORTEST_PHRASE, _SHORTEST_NAMED_PHRASE, _MIN_DIFFERENT = 12, 10, 7
"""Words of the list in a row that are a seed phrase; where the text names one, two may be missing."""

_MIN_LISTED = 0.6
"""Share of words of the list in a row that is named a seed phrase."""

NAMED_PHRASE = re.compile(
    r"\b(?:seed|recovery|mnemonic|wallet|semilla)\b[^.:=\n]{0,40}?(?::|=|\bis\b|\bare\b)\s{0,3}[\"'“]?"
    r"(?P<words>(?:[a-z]{3,10}[\s,]{1,3}){9,23}[a-z]{3,10})\b",
    re.IGNORECASE,
)
_NAME_OF_PHRASE = re.compile(
    r"\b(?:seed|recover\w*|mnemo\w*|wallet|backup|semilla|wiederherstell\w*)\b", re.IGNORECASE
)
_NAMED_WITHIN = 120
_WORD = re.compile(r"[A-Za-z]+")
_BETWEEN = re.compile(r"[\s,;|]{0,6}(?:[0-9]{1,2}[.):]?\s{0,2})?")

PHRASE_PREFILTER = r"(?i)(?:\b[a-z]{3,8}\b[\s,;|0-9.):]{1,8}){9}[a-z]{3,8}"
"""A pattern of RE2 that every text with a seed phrase matches."""


def find_seed_phrases(text: str) -> Iterator[Span]:
    """Find a dozen words or more out of the 2,048 of BIP 39 in a row, whatever numbers and commas are between."""
    listed = seed_words()
    for named in NAMED_PHRASE.finditer(text):  # with words of another list, or misspelt
        words = _WORD.findall(named["words"].lower())
        if sum(map(listed.__contains__, words)) >= _MIN_LISTED * len(words):
            yield Span("seed_phrase", *named.span("words"), 0.95, basis="sentence")
    if bytes([True] * _SHORTEST_NAMED_PHRASE) not in bytes(w in listed for w in _WORD.findall(text.lower())):
        return
    run: list[re.Match[str]] = []
    for word in (*_WORD.finditer(text), None):
        is_listed = word is not None and word[0].lower() in listed
        if word and is_listed and (not run or _BETWEEN.fullmatch(text, run[-1].end(), word.start())):
            run.append(word)
            continue
        if len(run) >= _SHORTEST_NAMED_PHRASE and len({one[0] for one in run}) >= _MIN_DIFFERENT:
            start = run[0].start()
            is_named = _NAME_OF_PHRASE.search(text, max(0, start - _NAMED_WITHIN), start) is not None
            if is_named or len(run) >= _SHORTEST_PHRASE:
                is_whole = is_named and len(run) >= _SHORTEST_PHRASE
                score, basis = (1.0 if is_named else 0.9), ("shape" if is_whole else "sentence")
                yield Span("seed_phrase", start, run[-1].end(), score, basis=basis)
        run = [word] if word and is_listed else []


@cache
def seed_words() -> frozenset[str]:
    """Read the English list, part of BIP 39 and free to use (MIT, Pavol Rusnak); hardly anybody uses another."""
    return frozenset(files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split())
