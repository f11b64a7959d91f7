"""Find secrets that people tell in a sentence: passwords, PINs, door codes, recovery codes, security answers.

A keyword announces a secret ("the wifi password"). Its value follows a link ("is", a colon, "was changed to"), or
stands before the keyword ("uses hunter2 as the password"), or stands anywhere else in the sentence and has the shape of
a secret ("for the lockbox, Maria said try 2710"). Behind a link a value may be a word like any other; elsewhere the
weights of its shape, of the keyword and of what stands between have to add up. Words and weights are data
(`rules/secret_prose.toml`).

Only what stands near a keyword is looked at, so that the time grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Literal, NamedTuple

from stdnum import iban

from memframe.audit.rules import load_rules, prefilter_of
from memframe.audit.secrets.values import (
    closes_code,
    is_amount,
    is_elided,
    is_function_word,
    is_identifier,
    is_mixed,
    is_placeholder,
    is_plain,
    is_public_address,
    is_random,
    is_strong,
    may_be_password,
)
from memframe.audit.text import Span

_RULES = load_rules("secret_prose")
KEYWORDS = {rule.group: rule for rule in _RULES.rules if "read" in rule.options}
_PATTERNS = {
    group: tuple(rule.regex for rule in _RULES.only(group).rules)
    for group in dict.fromkeys(r.group for r in _RULES.rules)
}
_PATTERN = {group: patterns[0] for group, patterns in _PATTERNS.items()}


_WITHIN = {name for name, rule in KEYWORDS.items() if rule.options.get("within")}
"""Groups of keywords that may begin within a word."""


def _by_first_letter(patterns: Iterable[str]) -> str:
    """Join alternatives so that one letter decides which of them are tried, which is much faster."""
    branches: defaultdict[str, list[str]] = defaultdict(list)
    for pattern in patterns:
        depth, some = 0, [""]
        for part in re.findall(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]|[^\\\[()|]+", pattern):
            depth += {"(": 1, ")": -1}.get(part, 0)
            some = [*some, ""] if part == "|" and not depth else [*some[:-1], some[-1] + part]
        for one in some:
            is_plain_letter = one[0].isalnum() and one[1:2] not in ("?", "*", "{")
            branches[one[0] if is_plain_letter else ""].append(one[is_plain_letter:])
    return "|".join(f"{letter}(?:{'|'.join(ends)})" for letter, ends in branches.items())


def _patterns(*, within: bool) -> dict[str, str]:
    return {name: rule.regex.pattern for name, rule in KEYWORDS.items() if (name in _WITHIN) == within}


KEYWORD = re.compile(
    rf"(?<![^\W_])(?:{_by_first_letter(_patterns(within=False).values())})(?!\w)|{'|'.join(_patterns(within=True).values())}"
)
"""Where a keyword begins, in a text of small letters."""

_WHICH = re.compile(
    rf"(?:{'|'.join(f'(?P<{name}>{pattern})' for name, pattern in _patterns(within=False).items())})(?!\w)|"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _patterns(within=True).items())
)
"""Which one begins there, and where it ends."""

PREFILTER = "|".join(
    (
        prefilter_of(*(KEYWORDS[name].regex for name in _WITHIN)),
        rf"(?:\A|[^0-9A-Za-z])(?:{prefilter_of(*(rule.regex for rule in KEYWORDS.values()))})(?:\z|[^0-9A-Za-z_])",
    )
)
"""A pattern of RE2 that every text with a secret near a keyword matches."""

_SMALL = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}
"""For `str.translate`: small letters without a change of any length."""

_PATH = re.compile(
    r"[\w.@$~()\[\]{}:-]{0,80}(?:[/\\][\w.@$~()\[\]{}:-]{0,80}){2,12}"
    r"|[\w.@$~/\\-]{1,100}\.(?:py|tsx?|jsx?|json|md|go|rs|java|ya?ml|toml|txt|env|sh|php|rb|cs|html|css|sql|lock)"
)
_NO_PATH_SIGN = re.compile(r"[^\w.@$~()\[\]{}:/\\-]")
_PATH_AROUND = 100

_SENTENCE = re.compile(
    r"[^.!?\n]+(?:[.!?]+(?:(?=\S)|(?<=i\.e\.)|(?<=\s(?:no|nr)\.)(?=\s)|(?<=\?)(?=\s)|(?=\s\()"
    r"|(?=\s{1,3}(?:it|it['’]s|now|the new one|use|try|type|enter|answer|login|pass\w{0,6}|sie|er|es|c['’]est)\b))"
    r"[^.!?\n]*)*"
)
"""A sentence, and what goes on in a next one about "it"; a dot within a word, a number or an address ends none."""

_LONGEST_SENTENCE, _MAX_KEYWORDS, _MAX_VALUES = 320, 12, 12
"""Of one sentence; one that has more is a table."""


class Keyword(NamedTuple):
    """A word that announces a secret, in its text."""

    group: str
    start: int
    end: int


def find_told(text: str) -> Iterator[Span]:
    """Find secrets that stand near a keyword, and answers to questions of safety.

    >>> text = "Her password for the bakery is hunter2. The PDF is protected, open it with Rechnung!0815"
    >>> sorted({text[span.start : span.end] for span in find_told(text)})
    ['Rechnung!0815', 'hunter2']
    """
    small = text.translate(_SMALL)
    keywords = list(_find_keywords(text, small))
    told: dict[Keyword, int] = {}
    for keyword in keywords:
        for span in (*_find_behind(text, small, keyword), *_find_before(text, small, keyword)):
            told.setdefault(keyword, span.start)
            yield span
    first = 0
    for sentence in _SENTENCE.finditer(small) if keywords else ():
        end = min(sentence.end(), sentence.start() + _LONGEST_SENTENCE)
        while first < len(keywords) and keywords[first].start < sentence.start():
            first += 1
        some = [word for word in islice(keywords, first, first + _MAX_KEYWORDS) if word.end <= end]
        if some:
            yield from _find_within(text, small, sentence.start(), end, some, told)


def _find_keywords(text: str, small: str) -> Iterator[Keyword]:
    for beginning in KEYWORD.finditer(small):
        match = _WHICH.match(small, beginning.start())
        if match is None:
            continue
        start, end = match.span()
        if match.lastgroup == "loose" and text[start:end].isupper():  # "PASS" of a test
            continue
        if not _is_in_path(small, start, end) and not _PATTERN["about"].match(small[end : end + 40]):
            yield Keyword(str(match.lastgroup), start, end)


def _is_in_path(small: str, start: int, end: int) -> bool:
    before, behind = small[max(0, start - _PATH_AROUND) : start], small[end : end + _PATH_AROUND]
    if not any(sign in before or sign in behind for sign in "/\\."):
        return False
    path = _NO_PATH_SIGN.split(before)[-1] + small[start:end] + _NO_PATH_SIGN.split(behind, maxsplit=1)[0]
    return _PATH.fullmatch(path.rstrip(".:")) is not None


# ---- values behind a link, and before a keyword

Link = Literal["is", "colon", "set", "dash", "comma", "beside", "named", "reversed"]
"""What stands between keyword and value: a verb, a colon or equals sign, "changed to", a dash, a comma; nothing, or
names and then a verb ("password Netflix is"); or the value stands first."""

_LOOSE = frozenset({"beside", "dash", "named", "reversed"})
"""Links after which words of all kinds may stand, so that a secret must show by itself that it is one."""

_REACH, _AHEAD, _BEHIND, _MAX_LINKS = 120, 240, 120, 4
"""Characters from a keyword to its link, from a value on, and before a keyword; links that are tried after one."""

_BESIDE = re.compile(
    r"(?:\s\((?:rw|ro|test|live|prod|staging|read|write|admin)\))?[ \t]{1,3}\(?(?=\S)|(?=[\"“„«`‘'])"
)
_QUOTED = re.compile(r"[\"“„«`‘'](?P<quoted>[^\"“”„«»`\n]{1,120}?)[\"”“»`’'](?!\w)")
_NAMED = re.compile(r"(?:\s{1,3}[\w'’~/][\w'’~/-]{0,29}(?:\.[\w'’/-]{1,30}){0,3}){1,3}")
_EXAMPLE = re.compile(r"\b(?:e\.g\.|for example|such as|looks? like)[\s,:]{0,3}[(\"'`]{0,2}\Z")
_REVERSIBLE = frozenset({"password", "pin", "code", "lock_code"})


class Value(NamedTuple):
    """Candidate of a secret, with its surroundings."""

    rest: str
    """Text from the value on."""
    quoted: str | None
    """What stands between quotation marks; None where there are none."""
    link: Link
    keyword: str
    """In small letters, as are purpose and before."""
    purpose: str
    """Words between keyword and link: what the secret is for."""
    before: str
    """Text before the keyword."""


def _find_behind(text: str, small: str, keyword: Keyword) -> Iterator[Span]:
    """Find what follows a keyword, at once or after some words and a link, and what it was changed to afterwards."""
    end = 0
    for link, begin, purpose in _links_behind(small, keyword):
        if not end or (link == "set" and begin > end):
            span = _read(text, small, keyword, begin, link, purpose)
            if span is not None:
                yield span
                end = span.end


def _links_behind(small: str, keyword: Keyword) -> Iterator[tuple[Link, int, str]]:
    """Yield the links behind a keyword, each with the place where its value begins and the purpose before it."""
    end, limit = keyword.end, min(len(small), keyword.end + _REACH)
    before = small[max(0, keyword.start - _BEHIND) : keyword.start]
    beside = _BESIDE.match(small, end, limit)
    closes_quote = small[end : end + 1] in ("'", '"', "`") and before.count(small[end]) % 2 == 1
    if beside and not closes_quote:
        yield "beside", beside.end(), ""
    begin = end
    for _ in range(_MAX_LINKS):
        match = _PATTERN["link"].search(small, begin, limit)
        if match is None:
            return
        purpose = small[end : match.start()]
        link = _kind_of_link(match, purpose, keyword.group, before)
        if link:
            yield link, match.end(), purpose
        begin = match.end() - 1


_MAY_BE_DESCRIBED = frozenset({"password", "pin", "code"})
_KINDS_OF_LINKS: dict[str, Link] = {
    "set": "set",
    "colon": "colon",
    "is": "is",
    "dash": "dash",
    "later": "named",
    "comma": "comma",
    "to": "set",
}


def _kind_of_link(match: re.Match[str], purpose: str, group: str, before: str) -> Link | None:
    """Return what a link is worth; None where it does not belong to the keyword."""
    name = str(match.lastgroup)
    if name == "comma" and group != "answer":  # "is my dog's name, ..."
        return "named" if group in _MAY_BE_DESCRIBED and _PATTERN["described"].match(purpose) else None
    if name == "to" and not _PATTERN["changed"].search(before):
        return None
    if match[0].startswith(("'", "’")) and ":" not in match[0] and purpose:  # "is on the router's label"
        return None
    if name == "later" or _PATTERN["purpose"].match(purpose):
        return _KINDS_OF_LINKS[name]
    return "named" if name in ("is", "colon") and _NAMED.fullmatch(purpose) else None


def _find_before(text: str, small: str, keyword: Keyword) -> Iterator[Span]:
    """Find what stands before a keyword: "hunter2 is the wifi password", "uses hunter2 as a password"."""
    before = small[max(0, keyword.start - _BEHIND) : keyword.start]
    if not before[-1:].isspace() or keyword.group not in _REVERSIBLE:
        return
    match = _PATTERN["reversed"].search(before)
    if match is None or _PATTERN["of_all"].match(small[keyword.end : keyword.end + 40]):
        return
    group = "bare" if match["bare"] else "quoted"
    start, end = (keyword.start - len(before) + place for place in match.span(group))
    link: Link = "is" if _PATTERN["chosen"].search(before[: match.start(group)]) else "reversed"
    span = _read(text, small, keyword, start - (group == "quoted"), link, "")
    if span is not None and span.end == end:
        yield span


def _read(text: str, small: str, keyword: Keyword, begin: int, link: Link, purpose: str) -> Span | None:
    """Return the secret that begins at a place, if one does."""
    rule = KEYWORDS[keyword.group]
    if _EXAMPLE.search(small[max(0, begin - 16) : begin]):
        return None
    quoted = _QUOTED.match(text, begin)
    if quoted and closes_code(text, begin):
        return None
    begin += quoted is not None
    value = Value(
        rest=text[begin : begin + _AHEAD],
        quoted=quoted["quoted"] if quoted else None,
        link=link,
        keyword=small[keyword.start : keyword.end],
        purpose=purpose,
        before=small[max(0, keyword.start - _BEHIND) : keyword.start],
    )
    read = _READERS.get(str(rule.options["read"]))
    found = read(value) if read else None
    if found and is_elided(value.rest, found[1]):
        return None
    return Span(rule.kind, begin + found[0], begin + found[1], found[2]) if found else None


Found = tuple[int, int, float] | None
"""From where to where in the rest of the text a secret goes, and how sure that is."""

_BARE = re.compile(r"[^\s\"“”«»`<>]{1,200}")
_CLOSED = re.compile(
    r"[\"”»`']?\s{0,3}(?:[.,;:!?)\]}|]|$|\n|[–—-]\s|\((?!\w+\))"
    r"|(?:and|but|so|on|for|in|as|which|und|aber|et|mais|y|pero|en|e|ma)\b)"
)
"""What comes after a password that is a word: the end of a clause."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*!?")
_PHRASE = re.compile(r"[^\W\d_]{2,30}(?:[ -][^\W\d_]{2,30}){1,11}(?=[\"”»`']?\s{0,3}(?:[.,;!?)\n]|$))")
_PAIR = re.compile(
    r"[\"'`]?(?P<user>[^\s\"'`/|,;]{2,64}?)[\"'`]?(?:\s{0,3}[/|:]\s{0,3}|,\s{0,3}|\s{1,3}(?:and|with|und)\s{1,3}|\s{1,3})"
    r"[\"'`]?(?P<word>[^\s\"'`]{4,128})"
)
_GLUED_PAIR = re.compile(r"(?P<user>[A-Za-z][\w.@+-]{1,63})[/:](?P<word>[^\s\"'`/:]{4,128})(?!\w)")
_NO_USER = frozenset({"user", "username", "email", "name", "login", "and"})
_NETWORK_KEY = re.compile(r"[0-9]{4}(?: [0-9]{4}){2,5}(?!\w)")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SHORT_KEYWORD = re.compile(r"keys?|schlüssel|cl[ée]|chiave|chave")
_FOREIGN_TAIL = re.compile(r"(?<=[!-~])[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,12}\Z")
"""The rest of a sentence of a language that sets no spaces, after a password of ASCII."""

_STOPS, _BRACKETS = ".,;:'’", {")": "(", "]": "[", "}": "{"}
_LONGEST_WORD, _LONGEST_PASSWORD, _SHORTEST_SENTENCE = 32, 100, 4
_MIN_DIGITS, _MIN_DIGITS_LOOSE, _SHORTEST_KEY, _KEY_ENTROPY = 4, 6, 10, 2.5


def _read_password(value: Value) -> Found:
    """Read a password, pass phrase or network key: mixed characters, or a word that describes nothing."""
    is_phrase = value.keyword.replace(" ", "").replace("-", "").startswith("passphrase")
    if value.quoted is not None:
        words = value.quoted.split()
        is_speech = len(words) > 1 and sum(map(is_plain, words)) * 3 >= len(words) and not is_phrase
        is_password = may_be_password(value.quoted.strip()) and not is_speech
        return (0, len(value.quoted), 0.95) if is_password else None
    text = _trim(_bare(value))
    if not 3 <= len(text) <= _LONGEST_PASSWORD or _is_amount(value, len(text)):
        return None
    is_loose = value.link in _LOOSE
    if digits := _NETWORK_KEY.match(value.rest):
        return 0, digits.end(), 0.9
    if not is_loose and (end := _end_of_phrase(value.rest, is_named=is_phrase)):
        return 0, end, 0.8
    if not may_be_password(text):
        return None
    if text.isdecimal():
        least = _MIN_DIGITS_LOOSE if is_loose and "code" not in value.keyword else _MIN_DIGITS
        return (0, len(text), 0.9) if len(text) >= least else None
    if is_mixed(text):
        return 0, len(text), 0.95
    is_word = len(text) <= _LONGEST_WORD and _WORD.fullmatch(text) and _CLOSED.match(value.rest[len(text) :])
    return (0, len(text), 0.75) if is_word and not is_loose else None


def _read_loose(value: Value) -> Found:
    """Read a password after a word that means other things as well: mixed characters, or four digits and more."""
    text = _trim(_bare(value) if value.quoted is None else value.quoted)
    is_bare_word = value.quoted is not None and (" " in text or not is_mixed(text))
    if is_identifier(text) or is_bare_word or (not text.isdecimal() and _NO_SECRET_WORD.fullmatch(text)):
        return None
    if value.link in ("is", "colon") and text.isdecimal() and len(text) >= _MIN_DIGITS:
        return None if _is_amount(value, len(text)) else (0, len(text), 0.8)
    return _read_password(value._replace(link="named"))


def _read_login(value: Value) -> Found:
    """Read the second half of a pair "name / password"."""
    if value.link == "beside":
        match = _GLUED_PAIR.match(value.rest)
    else:
        match = _PAIR.match(value.quoted or value.rest) if value.link in ("is", "colon", "dash") else None
    if match is None or match["user"] in _NO_USER or (value.link == "beside" and is_plain(match["user"])):
        return None
    text = _trim(match["word"])
    has_shape = is_mixed(text) or (text.isdecimal() and len(text) >= _MIN_DIGITS_LOOSE)
    has_shape = has_shape or (value.link == "beside" and value.keyword.startswith("cred"))
    start = match.start("word")
    is_one = has_shape and may_be_password(text) and (text.isdecimal() or not _NO_SECRET_WORD.fullmatch(text))
    return (start, start + len(text), 0.85) if is_one else None


def _read_key(value: Value) -> Found:
    """Read a key for machines, which is long and drawn at random; or the key of a network, which is a password."""
    if _PATTERN["network_name"].search(_END_OF_CLAUSE.split(value.before[-40:])[-1] + value.purpose):
        return _read_password(value)
    text = _bare(value).rstrip(_STOPS + ")]}") if value.quoted is None else value.quoted
    is_named = _UUID.fullmatch(text) is not None and not _SHORT_KEYWORD.fullmatch(value.keyword)
    is_drawn = len(text) >= _SHORTEST_KEY and is_random(text, min_entropy=_KEY_ENTROPY)
    if not (is_drawn or is_named) or not may_be_password(text) or is_public_address(text):
        return None
    is_other = _PATTERN["no_key"].search(value.before[-20:]) or _PATTERN["not_the_key"].search(value.purpose)
    return None if is_other else (0, len(text), 0.9)


def _read_answer(value: Value) -> Found:
    """Read the answer to a question that only its owner can answer."""
    match = _PATTERN["answer_shape"].match(value.rest)
    if value.quoted is not None:
        return 0, len(value.quoted), 0.9
    if match is None or value.link in ("beside", "reversed") or is_plain(match[0].split()[0]):
        return None
    return (0, match.end(), 0.85) if match["name"] or value.link != "comma" else None


_PIN = re.compile(r"[0-9]{2,4}[ -][0-9]{2,4}(?![\w-])(?![ -][0-9])|[0-9]{3,8}(?![\w-])(?!\.[0-9])")
_POSTAL_DIGITS = 6


def _read_pin(value: Value) -> Found:
    """Read three to eight digits, or four and more in words; six are no Indian postal code, which is called PIN too."""
    match = _PIN.match(value.rest) or _match_spelled(value)
    if match is None or _is_amount(value, match.end()):
        return None
    before = value.before[-60:] + value.purpose
    is_short = (
        len(match[0]) < _MIN_DIGITS and value.link not in ("colon", "set") and value.keyword.startswith("pin")
    )
    may_be_postal = len(match[0]) == _POSTAL_DIGITS and "code" in value.keyword and value.link != "colon"
    is_postal = (may_be_postal and not _PATTERN["card"].search(before)) or (
        len(match[0]) == _POSTAL_DIGITS and _PATTERN["doubt"].search(value.rest[:40].lower())
    )
    return None if is_short or is_postal or _PATTERN["doubt"].search(before) else (0, match.end(), 0.95)


def _read_access_code(value: Value) -> Found:
    """Read the code of a door, an alarm, a safe; a code of something else is none."""
    match = _PATTERN["lock_code_shape"].match(value.rest) or _match_spelled(value)
    if match is None or _is_amount(value, match.end()):
        return None
    clause = _END_OF_CLAUSE.split(value.before[-60:])[-1]
    is_lock = _PATTERN["opened"].search(clause + value.keyword + value.purpose)
    if not is_lock or _PATTERN["doubted_code"].search(clause):
        return None
    is_year = _YEAR.fullmatch(match[0]) or not any(map(str.isdecimal, match[0][-2:]))
    return None if value.link == "beside" and is_year else (0, match.end(), 0.9)


_END_OF_CLAUSE = re.compile(r"[;?\n]|[.!](?=\s)")
_YEAR, _YEARS = re.compile(r"(?:19|20)[0-9]{2}"), re.compile(r"(?:19|20)[0-9]{2}-(?:19|20)?[0-9]{2}")
_GROUP = re.compile(r"[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,12}")
_ROW = re.compile(r"[A-Z0-9]{4,6}(?:[ -][A-Z0-9]{4,6}){3,11}(?![\w-])")
_AND = re.compile(r"\s{0,3}(?:[,;|/]|\band\b)?\s{0,3}")
_ONCE = re.compile(r"(?:[A-Z]-)?[0-9]{4,8}(?![\w-])|[0-9]{3}[ -][0-9]{3}(?![\w-])")
_BASE32 = re.compile(r"(?:[A-Za-z2-7]{4}[ -]?){3,15}[A-Za-z2-7]{4}(?!\w)")


def _read_recovery_codes(value: Value) -> Found:
    """Read codes that let somebody in who has lost the usual way: groups with digits, often several."""
    row = _ROW.match(value.rest)
    if row and sum(map(str.isdecimal, row[0])) >= 3:
        return 0, row.end(), 0.9
    begin = end = 0
    while (group := _GROUP.match(value.rest, begin)) and _is_recovery_code(group[0]):
        end = group.end()
        begin = end + len((_AND.match(value.rest, end) or group)[0])
    return (0, end, 0.9) if end and value.link != "reversed" else None


def _is_recovery_code(group: str) -> bool:
    n_digits = sum(map(str.isdecimal, group))
    return n_digits >= 2 or (n_digits == 1 and len(group) >= 6)


def _read_one_time_code(value: Value) -> Found:
    match = _ONCE.match(value.rest)
    if match is None or _is_amount(value, match.end()):
        return None
    return None if value.link == "beside" and _YEAR.fullmatch(match[0]) else (0, match.end(), 0.7)


def _read_shared_secret(value: Value) -> Found:
    """Read what an authenticator makes its codes of: base 32, often in groups of four."""
    match = _BASE32.match(value.rest)
    letters = re.sub("[ -]", "", match[0]) if match else ""
    is_base32 = letters.isupper() or (letters.islower() and any(map(str.isdecimal, letters)))
    return (0, match.end(), 0.9) if match and is_base32 else None


_READERS: dict[str, Callable[[Value], Found]] = {
    "password": _read_password,
    "loose": _read_loose,
    "login": _read_login,
    "key": _read_key,
    "answer": _read_answer,
    "pin": _read_pin,
    "access_code": _read_access_code,
    "recovery": _read_recovery_codes,
    "once": _read_one_time_code,
    "totp": _read_shared_secret,
}


def _bare(value: Value) -> str:
    match = _BARE.match(value.rest)
    return match[0] if match else ""


def _trim(text: str) -> str:
    """Cut off the punctuation of the sentence around a value."""
    text = _FOREIGN_TAIL.sub("", text.rstrip(_STOPS))
    while text[-1:] in _BRACKETS and text.count(text[-1]) > text.count(_BRACKETS[text[-1]]):
        text = text[:-1].rstrip(_STOPS)
    return text[:-1] if text.endswith("?") and text[:-1].isalnum() else text


def _is_amount(value: Value, end: int) -> bool:
    """Tell whether what ends there is a number of something: "12 characters", "90 days"."""
    return (
        value.rest[:1].isdecimal() and _PATTERN["unit"].match(value.rest[end : end + 40].lower()) is not None
    )


def _end_of_phrase(rest: str, *, is_named: bool) -> int:
    """Return where two words or more end that fill a clause and hold no sentence together; 0 where there are none.

    Where it is called a phrase, such words may stand within it, but do not begin it.
    """
    match = _PHRASE.match(rest)
    words = re.split(r"[ -]", match[0]) if match else []
    if match is None or (is_named and len(words) >= _SHORTEST_SENTENCE and not is_plain(words[0])):
        return match.end() if match else 0
    is_sentence = len(words) >= _SHORTEST_SENTENCE - 1 and match[0][0].isupper() and match[0][1:].islower()
    is_speech = (
        is_sentence or any(map(is_function_word, words)) or sum(map(is_plain, words)) > max(0, len(words) - 3)
    )
    return 0 if is_speech else match.end()


def _match_spelled(value: Value) -> re.Match[str] | None:
    is_loose = value.link in _LOOSE and not (value.link == "beside" and value.keyword.startswith("p"))
    return None if is_loose else _PATTERN["spelled_digits"].match(value.rest)


# ---- values anywhere in the sentence of a keyword

_SIDE = "(?:left|right|l|r)"
_VALUE = re.compile(
    rf"""(?<![\w@./#*-])(?:
    (?P<turns>                              # of the dial of a safe: "left 12, right 7", "12 left 7 right"
        {_SIDE}\s[0-9]{{1,2}}(?:,?\s{_SIDE}\s[0-9]{{1,2}}){{1,3}}
        |[0-9]{{1,2}}\s(?:left|right)(?:,?\s[0-9]{{1,2}}\s(?:left|right)){{1,3}})
    |(?P<groups>                            # "12-34-56", "12 34 56", "4 7 1 1"
        [0-9]{{1,2}}(?:(?:\s?[-–]\s?[0-9]{{1,2}}){{2,7}}|(?:\s[0-9]{{2}}){{2,3}}|(?:\s[0-9]){{3,7}})(?![\w-]|\s[0-9]))
    |(?P<digits>                            # "4711", "#4711*", "471 147"
        (?<![0-9]\s)[\#*]?[0-9]{{4,8}}[\#*]?(?![\w-])(?![.,:/][0-9])
        |[0-9]{{3}}[ -][0-9]{{3}}(?![\w-])(?![ -][0-9]))
    |(?P<blocks>                            # "7FQ2-88KD-A1", "G-471147"
        (?=[A-Z-]{{0,40}}[0-9])(?:[A-Z0-9]{{4,8}}-){{1,8}}[A-Z0-9]{{2,8}}(?![\w-])|[A-Z]-[0-9]{{4,8}}(?![\w-]))
    |(?P<short>                             # "7FQ2"
        (?<![0-9]\s)(?=[A-Z]{{0,6}}[0-9])[A-Z0-9]{{4,7}}(?![\w-]))
    |(?P<word>                              # "Rechnung!0815": anything that holds a digit or a sign
        (?=[^\s0-9!#$%^&*+=~_<>|@?]{{0,40}}[0-9!#$%^&*+=~_<>|@?])[^\s"“”„«»`(),;]{{5,64}})
    )""",
    re.VERBOSE,
)
_WEIGHTS = {"turns": 3, "groups": 3, "digits": 2, "blocks": 4, "short": 1}
"""How much each shape looks like a secret; that of a word depends on the word, and a year looks like none."""

_LOOSE_SHAPES = frozenset({"word", "digits", "short", "blocks"})
"""Shapes that much else has, too."""

_NO_SECRET_WORD = re.compile(
    r"\A(?:[\w.+-]{1,64}@(?:[\w-]{1,60}\.\w.*)?|[a-z][a-z0-9+.-]{1,30}://.*|www\..*|[0-9.,:/+*=-]+|[0-9].{0,3}|\*\*.*|.*[≥≤±].*|[\w-]+/|.*(?:802\.11|wi-?fi[0-9]).*"
    r"|[0-9]+(?:[.,x][0-9]+)?[a-zA-Z%€$°]{0,5}(?:/[a-z]+)?|[0-9]+\.[0-9]+[a-z]*-.*|[A-Za-z]+[0-9]?(?:[+→/|][A-Za-z]+[0-9]?)+"
    r"|(?:sha|md|wpa|aes|rsa|bcrypt|pbkdf|argon|base|http|ipv|oauth|web|utf|mp|usb|win|office|windows|python)-?[0-9]+\w*"
    r"|[0-9]?1?password|git@.*|[\w.+-]{1,64}@[\w.-]{1,60}:[/~].*|[a-z]+(?:-[a-z]+)*-v?[0-9]+(?:\.[0-9]+)+|fritz!box\w*|[\w.-]+\.[a-z]{2,6}|.*→.*"
    r"|.*[\[({}].*|\$.*|@[\w/-]*|[0-9]+\W?[0-9]*(?:px|ms|pt)\**|pp\.[0-9–-]*"
    r"|(?-i:[0-9a-f]{7,8}|[0-9a-f]{40}|[a-z]+(?:_[a-z]+)+(?:_[0-9]{1,4})?)|[\w.-]+[=:].*|--.*|.*[\],].*|(?-i:[.~]{0,2}/?(?:[a-z]{2}[\w.@-]*/){2}\S*)"
    r"|[\w.@~/-]+/[\w@-]+\.[a-z]{1,5}(?::[0-9]+)*|[\w.-]*[a-z]_v[0-9]{1,2}|[\w'’]+-(?:free|based|time|only|step|factor|digit)"
    r"|(?-i:[A-Z]{1,6}-?[0-9]{1,6}[A-Z+]{0,3}|[0-9]+-[A-Z]{2,5}|[A-Z_]+|[a-z]{2,}(?:[A-Z][a-z]+){2,}[0-9]?)|[a-z]+[0-9]{0,2}(?:_[a-z]+[0-9]{0,2})*_(?:id|at|url|key|name|token|type|path|file))",
    re.IGNORECASE,
)
"""What holds a digit or a sign and is no password: addresses, amounts, names of standards, models, files and fields."""

_TICKET = re.compile(r"(?:[A-Z]{2,12}-){1,4}[0-9]{1,4}")
_SIGN = re.compile(r"[!@#$%^&*+=~|<>?]")

_OF_DIGITS = frozenset({"pin", "unlock", "once", "lock", "lock_code", "code", "compound_code", "recovery"})
_OF_WORDS = frozenset({"password", "foreign", "login", "address", "network", "recovery"})
"""Groups of keywords that announce digits, and words with digits and signs."""

_ENOUGH, _DOUBT = 5, 3
"""What a secret, its keyword and what stands between come to; what a word takes away that speaks against one."""

_LED, _CLOSE, _APART = 2, 1, -1
"""What a link weighs that says what the secret is; words about its purpose alone; and anything else between."""

_FAR, _LONG_NUMBER, _SCORE = 60, 6, 0.7
"""Characters between a value and its keyword that take one away; digits from which on a number may be a password."""


class _Place(NamedTuple):
    """Place of a value that has the shape of a secret."""

    shape: str
    weight: int
    before: str
    """What stands before it in its sentence, in small letters."""
    start: int
    end: int


def _find_within(
    text: str, small: str, begin: int, end: int, keywords: list[Keyword], told: Mapping[Keyword, int]
) -> Iterator[Span]:
    """Find secrets of a sentence; what stands before the secret of a keyword is the name of its user."""
    places = list(_find_places(text, small, begin, end))
    doubt = _DOUBT if places and _PATTERN["doubt"].search(small, begin, end) else 0
    for place in places:
        weight, kind = max(
            (
                (_weigh(word, keywords, small, place), KEYWORDS[word.group].kind)
                for word in keywords
                if told.get(word, 0) <= place.start
            ),
            key=lambda pair: pair[0],
            default=(-_ENOUGH, ""),
        )
        if place.weight + weight - doubt >= _ENOUGH:
            yield Span(kind, place.start, place.end, _SCORE)


def _find_places(text: str, small: str, begin: int, end: int) -> Iterator[_Place]:
    """Find what has the shape of a secret in a sentence, and does not stand behind the name of something else."""
    for match in islice(_VALUE.finditer(text, begin, end), _MAX_VALUES):
        shape, value = str(match.lastgroup), match[0].rstrip(_STOPS + "!?")
        start = match.start()
        if shape == "word":  # as it stands, or within marks of Markdown
            value = match[0].rstrip(_STOPS)
            start, value = (start + 2, value.strip("*")) if value.startswith("**") else (start, value)
        place = _Place(shape, _weigh_shape(shape, value), small[begin:start], start, start + len(value))
        is_other = shape in _LOOSE_SHAPES and _PATTERN["other_name"].search(place.before[-60:])
        if place.weight and not is_other and not _PATTERN["unit"].match(small[place.end : place.end + 40]):
            yield place


def _weigh_shape(shape: str, value: str) -> int:
    """Weigh how much something looks like a secret; 0 where it is none."""
    if is_placeholder(value) or (shape == "short" and is_amount(value)) or _TICKET.fullmatch(value):
        return 0
    if shape == "word":
        is_name = is_identifier(value) or _NO_SECRET_WORD.fullmatch(value) is not None
        if is_name or not is_strong(value) or iban.is_valid(value, check_country=False):
            return 0
        return 3 + (_SIGN.search(value) is not None and any(map(str.isdecimal, value)))
    if value[0] == "*" or value[-1] in "#*":
        return 3
    if value[0] == "#" or _YEARS.fullmatch(value):  # the number of an issue
        return 0
    return 1 if _YEAR.fullmatch(value) else _WEIGHTS[shape]


def _weigh(word: Keyword, keywords: list[Keyword], small: str, place: _Place) -> float:
    """Weigh how surely a keyword announces what stands at a place."""
    if not _may_announce(word, place, small):
        return -_ENOUGH
    between = small[min(word.end, place.end) : max(word.start, place.start)]
    groups = {other.group for other in keywords}
    is_supported = bool(groups - {word.group, "code", "lock", "key"}) or (
        word.group == "lock" and "code" in groups
    )
    is_lone_lock = word.group == "lock" and not is_supported
    does = _PATTERN["deed"].search(place.before[-60:]) is not None
    if word.end > place.start:
        link = _LED if does or (not is_lone_lock and _PATTERN["behind"].match(between)) else _APART
    elif is_lone_lock:
        link = _LED if does else _APART
    elif does or _PATTERN["lead"].search(place.before[-60:]) or _PATTERN["beside"].match(between):
        link = _LED
    else:
        link = _CLOSE if _PATTERN["named_for"].match(between) else _APART
    weight = KEYWORDS[word.group].weight
    if place.shape == "word" and weight == 1 and link < _LED:
        return -_ENOUGH  # what a login, a network or an address is beside is mostly a name
    if weight < 0 and _PATTERN["opened"].search(small[max(0, word.start - 16) : word.end]):
        weight = 2
    return weight + is_supported + link - (len(between) > _FAR)


def _may_announce(word: Keyword, place: _Place, small: str) -> bool:
    """Tell whether such a value is announced by such a keyword; one that lies in the keyword itself is not."""
    if word.start < place.end and place.start < word.end:
        return False
    if (word.group == "once" and place.weight == 1) or (word.group == "address" and word.start > place.start):
        return False
    n = place.end - place.start
    is_long_number = place.shape == "digits" and n >= _LONG_NUMBER and word.end <= place.start
    if (
        word.group == "password"
        and place.shape in ("groups", "digits")
        and "code" in small[word.start : word.end]
    ):
        return True
    if place.shape == "word" or (word.group in ("password", "foreign", "recovery") and is_long_number):
        return word.group in _OF_WORDS
    if word.group == "recovery":
        return place.shape == "blocks"
    is_postal = n == _POSTAL_DIGITS and re.match(r"pin[ -]?code", small[word.start : word.end])
    return word.group in _OF_DIGITS and not is_postal


# ---- answers to questions that only their owner can answer

_AROUND, _REACH_OF_ANSWER = 160, 80
"""Characters between what is told of a life and the talk of safety; and from a question to its answer."""

SAFETY, ASKED = _PATTERN["safety"], _PATTERNS["asked"]


def find_answers(text: str) -> Iterator[Span]:
    """Find answers to questions of safety: behind such a question, or told of a life where somebody asks to be sure.

    >>> text = "Security question: first pet. The answer is Biscuit"
    >>> [text[span.start : span.end] for span in find_answers(text)]
    ['Biscuit']
    """
    found = [
        span
        for pattern in ASKED
        for match in pattern.finditer(text)
        if (span := _answer_at(text, match.end(), 0.9))
    ]
    yield from found
    for safety in () if found else islice(SAFETY.finditer(text), _MAX_KEYWORDS):
        begin, end = max(0, safety.start() - _AROUND), safety.end() + _AROUND
        for life in _PATTERN["of_a_life"].finditer(text, begin, end):
            links = _PATTERN["answer_link"].finditer(text, life.end(), life.end() + _REACH_OF_ANSWER)
            for place in (life.end() + 1, *(link.end() for link in links)):
                if span := _answer_at(text, place, 0.8, without_words=True):
                    yield span
                    return


def _answer_at(text: str, place: int, score: float, *, without_words: bool = False) -> Span | None:
    """Return the answer that begins at a place; what describes one ("easy to guess") is none."""
    match = _PATTERN["answer_shape"].match(text[place : place + _REACH_OF_ANSWER])
    if match is None or (without_words and match["word"]):
        return None
    group = str(match.lastgroup)
    if match["quoted"] is None and is_plain(match[group].split(maxsplit=1)[0]):
        return None
    return Span("security_answer", place + match.start(group), place + match.end(group), score)
