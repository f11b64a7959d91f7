"""Read the value of a secret from its beginning, by the kind of its keyword: password, PIN, door code and others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from memframe.audit.rules import Rule, load_rules
from memframe.audit.secrets.values import (
    is_function_word,
    is_identifier,
    is_mixed,
    is_plain,
    is_public_address,
    is_random,
    may_be_password,
    names_a_thing,
)


def _first_rule_by_group() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for rule in load_rules("secret_prose").rules:
        rules.setdefault(rule.group, rule)
    return rules


_RULE_OF = _first_rule_by_group()


def pattern_of(group: str) -> re.Pattern[str]:
    """Return the pattern of a group of `rules/secret_prose.toml`, the first if there are several.

    It is compiled at its first use, as all of them take 30 ms, and most commands look for no secrets.
    """
    return _RULE_OF[group].regex


Link = Literal["is", "colon", "set", "dash", "comma", "beside", "named", "reversed"]
"""Link between keyword and value: a verb, a colon or equals sign, "changed to", a dash, a comma; nothing ("beside"); a
name and a verb ("password Netflix is", "named"); "reversed" if the value comes first."""

_LOOSE = frozenset({"beside", "dash", "named", "reversed"})
"""Links that other words may follow as well, so that a value needs the characters of a secret."""


class Candidate(NamedTuple):
    """Candidate of a secret, with the text around it."""

    rest: str
    """Text from the beginning of the value."""
    quoted: str | None
    """Text between quotation marks; None if there are none."""
    bare: str
    """Text up to the next blank or quotation mark."""
    link: Link
    keyword: str
    """Keyword in small letters."""
    purpose: str
    """Words between keyword and link, in small letters: what the secret is for."""
    before: str
    """Text before the keyword, in small letters."""


class Extent(NamedTuple):
    """Start and end of a secret in `Candidate.rest`, and the score of its span."""

    start: int
    end: int
    score: float


_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*!?")
_PHRASE = re.compile(r"[^\W\d_]{2,30}(?:[ -][^\W\d_]{2,30}){1,11}(?=[\"”»`']?\s{0,3}(?:[.,;!?)\n]|$))")
_NO_USER = frozenset({"user", "username", "email", "name", "login", "and"})
_NETWORK_KEY = re.compile(r"[0-9]{4}(?: [0-9]{4}){2,5}(?!\w)")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SHORT_KEYWORD = re.compile(r"keys?|schlüssel|cl[ée]|chiave|chave")
_FOREIGN_TAIL = re.compile(r"(?<=[!-~])[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,12}\Z")
"""End of a sentence directly behind a password of ASCII, in a language without blanks between words."""

STOPS = ".,;:'’"
"""Marks of the sentence at the end of a value."""
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_MAX_WORD_CHARS = 32
"""Most letters of a password that is a word."""

_MAX_PASSWORD_CHARS = 100
"""Most characters of a password."""

_MIN_SENTENCE_WORDS = 4
"""Fewest words of a phrase that may be a sentence. A value that is called a pass phrase may have that many words, some
of them plain ones."""

LAST_LATIN = "\u024f"
"""Last letter of Latin Extended-B. A word with letters beyond it is no password, as hardly any has one."""

_MIN_DIGITS = 4
"""Fewest digits of a password behind a verb or a colon."""

_MIN_DIGITS_LOOSE = 6
"""Fewest digits of a password behind another link, because years and postal codes have four or five."""

_MIN_KEY_CHARS = 10
"""Fewest characters of a key for machines."""
_KEY_ENTROPY = 2.5
"""Least entropy of such a key, in bits per character."""


def _read_password(candidate: Candidate) -> Extent | None:
    """Read a password, pass phrase or network key: mixed characters, or a word that does not describe a password."""
    is_phrase = candidate.keyword.replace(" ", "").replace("-", "").startswith("passphrase")
    if candidate.quoted is not None:
        words = candidate.quoted.split()
        is_speech = len(words) > 1 and sum(map(is_plain, words)) * 3 >= len(words) and not is_phrase
        is_password = may_be_password(candidate.quoted.strip()) and not is_speech
        return Extent(0, len(candidate.quoted), 0.95) if is_password else None
    text = _trim(candidate.bare)
    if not 3 <= len(text) <= _MAX_PASSWORD_CHARS:
        return None
    is_loose = candidate.link in _LOOSE
    if digits := _NETWORK_KEY.match(candidate.rest):
        return Extent(0, digits.end(), 0.9)
    end = 0 if is_loose else _end_of_phrase(candidate.rest, is_named=is_phrase)
    if end and max(candidate.rest[:end]) <= LAST_LATIN:
        return Extent(0, end, 0.8)
    if not may_be_password(text):
        return None
    if text.isdecimal():
        least = _MIN_DIGITS_LOOSE if is_loose and "code" not in candidate.keyword else _MIN_DIGITS
        return Extent(0, len(text), 0.9) if len(text) >= least else None
    if is_mixed(text):
        return Extent(0, len(text), 0.95)
    is_word = (
        len(text) <= _MAX_WORD_CHARS
        and max(text) <= LAST_LATIN
        and _WORD.fullmatch(text)
        and pattern_of("closed").match(candidate.rest[len(text) :])
    )
    return Extent(0, len(text), 0.75) if is_word and not is_loose else None


def _read_loose(candidate: Candidate) -> Extent | None:
    """Read a password after a keyword with other meanings ("pass"): mixed characters, or four and more digits."""
    text = _trim(candidate.bare if candidate.quoted is None else candidate.quoted)
    is_quotation = candidate.quoted is not None and (" " in text or not is_mixed(text))
    if is_identifier(text) or is_quotation or (not text.isdecimal() and names_a_thing(text)):
        return None
    if candidate.link in ("is", "colon") and text.isdecimal() and len(text) >= _MIN_DIGITS:
        return Extent(0, len(text), 0.8)
    return _read_password(candidate._replace(link="named"))


def _read_login(candidate: Candidate) -> Extent | None:
    """Read the password of a pair "name / password"."""
    if candidate.link == "beside":
        match = pattern_of("glued_pair").match(candidate.rest)
    else:
        match = (
            pattern_of("user_and_word").match(candidate.quoted or candidate.rest)
            if candidate.link in ("is", "colon")
            or (candidate.link == "dash" and not candidate.keyword.startswith("@"))
            else None
        )
    if match is None or match["user"] in _NO_USER or (candidate.link == "beside" and is_plain(match["user"])):
        return None
    text = _trim(match["word"])
    has_shape = is_mixed(text) or (text.isdecimal() and len(text) >= _MIN_DIGITS_LOOSE)
    has_shape = has_shape or (candidate.link == "beside" and candidate.keyword.startswith("cred"))
    start = match.start("word")
    is_password = has_shape and may_be_password(text) and (text.isdecimal() or not names_a_thing(text))
    return Extent(start, start + len(text), 0.85) if is_password else None


def _read_key(candidate: Candidate) -> Extent | None:
    """Read a key for machines, which is long and random, or the key of a network, which is a password."""
    if pattern_of("network_name").search(
        _END_OF_CLAUSE.split(candidate.before[-40:])[-1] + candidate.purpose
    ):
        return _read_password(candidate)
    text = candidate.bare.rstrip(STOPS + ")]}") if candidate.quoted is None else candidate.quoted
    is_uuid = _UUID.fullmatch(text) is not None
    if is_uuid and candidate.keyword == "api":  # the id of a service
        return None
    is_named = is_uuid and not _SHORT_KEYWORD.fullmatch(candidate.keyword)
    is_drawn = len(text) >= _MIN_KEY_CHARS and is_random(text, min_entropy=_KEY_ENTROPY)
    if not (is_drawn or is_named) or not may_be_password(text) or is_public_address(text):
        return None
    return None if pattern_of("no_key").search(candidate.before[-20:]) else Extent(0, len(text), 0.9)


def _read_answer(candidate: Candidate) -> Extent | None:
    """Read the answer to a security question."""
    match = pattern_of("answer_shape").match(candidate.rest)
    if candidate.quoted is not None:
        return Extent(0, len(candidate.quoted), 0.9)
    if match is None or candidate.link in ("beside", "reversed") or is_plain(match[0].split()[0]):
        return None
    return Extent(0, match.end(), 0.85) if match["name"] or candidate.link != "comma" else None


_PIN = re.compile(r"[0-9]{2,4}[ -][0-9]{2,4}(?![\w-])(?![ -][0-9])|[0-9]{3,8}(?![\w-])(?!\.[0-9])")
POSTAL_DIGITS = 6
"""Digits of an Indian postal code, which is called a PIN code."""


def _read_pin(candidate: Candidate) -> Extent | None:
    """Read a PIN: three to eight digits, or four and more digits in words; no Indian postal code."""
    match = _PIN.match(candidate.rest) or _match_spelled(candidate)
    if match is None:
        return None
    before = candidate.before[-60:] + candidate.purpose
    is_short = (
        len(match[0]) < _MIN_DIGITS
        and candidate.link not in ("colon", "set")
        and candidate.keyword.startswith("pin")
    )
    may_be_postal = (
        len(match[0]) == POSTAL_DIGITS and "code" in candidate.keyword and candidate.link != "colon"
    )
    is_postal = (may_be_postal and not pattern_of("card").search(before)) or (
        len(match[0]) == POSTAL_DIGITS and pattern_of("doubt").search(candidate.rest[:40].lower())
    )
    return (
        None if is_short or is_postal or pattern_of("doubt").search(before) else Extent(0, match.end(), 0.95)
    )


def _read_access_code(candidate: Candidate) -> Extent | None:
    """Read the code of a door, an alarm or a safe; None for the code of another thing."""
    match = pattern_of("lock_code_shape").match(candidate.rest) or _match_spelled(candidate)
    if match is None:
        return None
    clause = _END_OF_CLAUSE.split(candidate.before[-60:])[-1]
    is_lock = pattern_of("opened").search(clause + candidate.keyword + candidate.purpose)
    if not is_lock or pattern_of("doubted_code").search(clause):
        return None
    is_year = YEAR.fullmatch(match[0]) or not any(map(str.isdecimal, match[0][-2:]))
    return None if candidate.link == "beside" and is_year else Extent(0, match.end(), 0.9)


_END_OF_CLAUSE = re.compile(r"[;?\n]|[.!](?=\s)")
YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_GROUP = re.compile(r"[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,12}")
_ROW = re.compile(r"[A-Z0-9]{4,6}(?:[ -][A-Z0-9]{4,6}){3,11}(?![\w-])")
_AND = re.compile(r"\s{0,3}(?:[,;|/]|\band\b)?\s{0,3}")
_ONCE = re.compile(r"(?:[A-Z]-)?[0-9]{4,8}(?![\w-])|[0-9]{3}[ -][0-9]{3}(?![\w-])")
_BASE32 = re.compile(r"(?:[A-Za-z2-7]{4}[ -]?){3,15}[A-Za-z2-7]{4}(?!\w)")


def _read_recovery_codes(candidate: Candidate) -> Extent | None:
    """Read recovery codes: groups of characters with digits, often several in a row."""
    row = _ROW.match(candidate.rest)
    if row and sum(map(str.isdecimal, row[0])) >= 3:
        return Extent(0, row.end(), 0.9)
    begin = end = 0
    while group := _GROUP.match(candidate.rest, begin):
        n_digits = sum(map(str.isdecimal, group[0]))
        if n_digits < 2 and not (n_digits and len(group[0]) >= 6):
            break
        end = group.end()
        begin = end + len((_AND.match(candidate.rest, end) or group)[0])
    return Extent(0, end, 0.9) if end and candidate.link != "reversed" else None


def _read_one_time_code(candidate: Candidate) -> Extent | None:
    """Read a code for one sign-in: four to eight digits."""
    match = _ONCE.match(candidate.rest)
    if match is None:
        return None
    return None if candidate.link == "beside" and YEAR.fullmatch(match[0]) else Extent(0, match.end(), 0.7)


def _read_shared_secret(candidate: Candidate) -> Extent | None:
    """Read the secret of an authenticator: base 32, often in groups of four."""
    match = _BASE32.match(candidate.rest)
    letters = re.sub("[ -]", "", match[0]) if match else ""
    is_base32 = letters.isupper() or (letters.islower() and any(map(str.isdecimal, letters)))
    return Extent(0, match.end(), 0.9) if match and is_base32 else None


READERS: dict[str, Callable[[Candidate], Extent | None]] = {
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
"""Readers of values, by the option ``read`` of the rule of the keyword."""


def _trim(text: str) -> str:
    """Cut off the punctuation of the sentence around a value."""
    text = text.rstrip(STOPS)
    while text[-1:] in _BRACKETS and text.count(text[-1]) > text.count(_BRACKETS[text[-1]]):
        text = text[:-1].rstrip(STOPS)
    text = _FOREIGN_TAIL.sub("", text).rstrip(STOPS)
    return text[:-1] if text.endswith("?") and text[:-1].isalnum() else text


def _end_of_phrase(rest: str, *, is_named: bool) -> int:
    """Return the end of a pass phrase, which fills a clause and is no sentence; 0 if there is none.

    A value that is called a pass phrase (`is_named`) may have plain and function words, but not as its first word.
    """
    match = _PHRASE.match(rest)
    if match is None:
        return 0
    words = re.split(r"[ -]", match[0])
    if is_named and len(words) >= _MIN_SENTENCE_WORDS and not is_plain(words[0]):
        return match.end()
    begins_like_sentence = match[0][0].isupper() and match[0][1:].islower()
    is_sentence = (
        (len(words) >= _MIN_SENTENCE_WORDS - 1 and begins_like_sentence)
        or any(map(is_function_word, words))
        or sum(map(is_plain, words)) > max(0, len(words) - 3)
    )
    return 0 if is_sentence else match.end()


def _match_spelled(candidate: Candidate) -> re.Match[str] | None:
    """Match spelled digits; directly after a keyword only if it is "PIN" or "PUK" («PIN four seven one one»)."""
    is_loose = candidate.link in _LOOSE and not (
        candidate.link == "beside" and candidate.keyword.startswith("p")
    )
    return None if is_loose else pattern_of("spelled_digits").match(candidate.rest)
