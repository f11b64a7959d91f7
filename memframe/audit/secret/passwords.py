"""Passwords, keys for machines and security answers: whether a value is one, and how far it goes."""

from __future__ import annotations

import re

from memframe.audit.secret.plain_words import is_function, is_plain
from memframe.audit.secret.randomness import is_placeholder, looks_random
from memframe.audit.secret.values import LOOSE, Judged, Value, is_amount

_BARE = re.compile(r"[^\s\"“”«»`<>]{1,200}")
_CLOSED = re.compile(
    r"[\"”»`']?\s*(?:[.,;:!?)\]}|]|$|\n|[–—-]\s|\((?!\w+\))"
    r"|(?:and|but|so|on|for|in|as|which|und|aber|et|mais|y|pero|en|e|ma)\b)"
)
"""What comes after a password that is a word: the end of a clause."""

_SIGN = re.compile(r"[!@#$%^&*+=~?|\\_]")
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://|www\.|mailto:|!(?:vault|ref|secret|env\w*|sub|getatt)$|enc\[|[~.]{0,2}/"
    r"|\w:\\|[\w.+-]+@[\w-]+\.\w|\w+\([^)]*\)?$|\$[A-Z_]+$|(?:os|process|var|local|data|env|self|config"
    r"|settings|secrets|args)\.[A-Za-z_]",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"[0-9]{1,3}(?:st|nd|rd|th|x|h|am|pm|%|k|\+)?(?:-\w+)?|\(?(?:19|20)[0-9]{2}\)?"
    r"|[0-9.,]+(?:chf|eur|usd|gbp|km|kg|mm|cm|mb|gb|min|sek|hz|px|bits?|mbit)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*!?")
_PHRASE = re.compile(r"[^\W\d_]{2,}(?:[ -][^\W\d_]{2,}){1,11}(?=[\"”»`']?\s*(?:[.,;!?)\n]|$))")
_PAIR = re.compile(
    r"[\"'`]?[^\s\"'`/|,;]{2,64}?[\"'`]?(?:\s*[/|:]\s*|,\s*|\s+(?:and|with|und)\s+"
    r"|\s+)[\"'`]?(?P<word>[^\s\"'`]{4,128})"
)
_GLUED = re.compile(r"(?P<user>[A-Za-z][\w.@+-]{1,63})[/:](?P<word>[^\s\"'`/:]{4,128})(?!\w)")
_NO_USER = frozenset({"user", "username", "email", "name", "login", "and"})
_FIRST = re.compile(
    r"\b(?:network|ssid|user(?:name)?|login|e-?mail|wi-?fi|wlan|benutzer|usuario"
    r"|identifiant)\b[^.;?!]{2,60}[,/|]\s*(?:and\s|the\s)*\Z"
)
_NETWORK = re.compile(r"wi-?fi|wlan|network|hotspot|\bwpa|ssid")
_NETWORK_DEVICE = re.compile(rf"{_NETWORK.pattern}|router")
_DIGIT_GROUPS = re.compile(r"[0-9]{4}(?: [0-9]{4}){2,5}(?!\w)")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NO_KEY = re.compile(
    r"(?:public[ _-]?(?:key)?|cache|sort|primary|foreign|partition|idempotency|recv|pub|map|row|object)[ _-]?s?\Z"
)
_SHORT_KEY = re.compile(r"keys?|schlüssel|cl[ée]|chiave|chave")
"""Words for a key that may be one of a document or a door."""

_ANSWER = re.compile(r"(?:[^\W\d_][\w'’-]*|[0-9]+)(?: [^\W\d_a-zà-ÿ][\w'’-]*| [0-9]+){0,3}")
_FOREIGN_TAIL = re.compile(r"(?<=[!-~])[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,12}\Z")
"""The rest of a sentence of a language that sets no spaces, after a password of ASCII."""

_STOPS, _BRACKETS = ".,;:'’", {")": "(", "]": "[", "}": "{"}
_HIDDEN = frozenset("*•·.xX-_?")
_LONGEST_WORD, _LONGEST_PASSWORD = 32, 100
_MIN_DIGITS, _MIN_DIGITS_LOOSE, _SHORTEST_KEY = 4, 6, 10
_KEY_ENTROPY = 2.5
_SHORTEST_SENTENCE = 4
_NAMES_PHRASE = re.compile(r"pass[ -]?phrase")
_CLOSE = 40
"""Characters before a key in which a network makes it the key of one."""


def password(value: Value) -> Judged | None:
    """A password, pass phrase or network key: mixed characters, or a word that describes nothing."""
    if value.quoted is not None:
        text = value.quoted.strip()
        is_phrase = value.keyword.replace(" ", "").replace("-", "").startswith("passphrase")
        is_password = _may_be_password(text) and (is_phrase or not _is_speech(text))
        return Judged(0, len(value.quoted), 0.95) if is_password else None
    text = _trimmed(_bare(value))
    if not 3 <= len(text) <= _LONGEST_PASSWORD or is_amount(value, len(text)):
        return None
    is_loose = value.link in LOOSE
    if _NETWORK_DEVICE.match(value.keyword) and (digits := _DIGIT_GROUPS.match(value.rest)):
        return Judged(0, digits.end(), 0.9)
    if not is_loose and (
        phrase := _passphrase(value.rest, is_named=_NAMES_PHRASE.match(value.keyword) is not None)
    ):
        return phrase
    if not _may_be_password(text):
        return None
    if text.isdecimal():
        at_least = _MIN_DIGITS_LOOSE if is_loose and "code" not in value.keyword else _MIN_DIGITS
        return Judged(0, len(text), 0.9) if len(text) >= at_least else None
    if _is_mixed(text):
        return Judged(0, len(text), 0.95)
    is_word = (not is_loose or _is_second(value)) and _is_word(text, value.rest[len(text) :])
    return Judged(0, len(text), 0.75) if is_word else None


def _is_second(value: Value) -> bool:
    """Whether a name was told just before, so that the word beside "password" is the other half of it."""
    return value.link == "beside" and _FIRST.search(value.before) is not None


def loose_password(value: Value) -> Judged | None:
    """A password after a word that means other things as well: mixed characters, or four digits and more."""
    text = _trimmed(_bare(value))
    if value.link in ("is", "colon") and text.isdecimal() and len(text) >= _MIN_DIGITS:
        return None if is_amount(value, len(text)) else Judged(0, len(text), 0.8)
    return password(value._replace(link="named"))


def is_strong(text: str) -> bool:
    """Whether a text can hardly be anything but a password: letters with digits or signs, six characters and more."""
    return len(text) >= _MIN_DIGITS_LOOSE and _is_mixed(text) and _may_be_password(text)


def login(value: Value) -> Judged | None:
    """The second half of a pair "name / password"."""
    if value.link == "beside":
        match = _GLUED.match(value.rest)
        is_pair = match is not None and not is_plain(match["user"]) and match["user"] not in _NO_USER
        match = match if is_pair else None
    else:
        match = _PAIR.match(value.quoted or value.rest) if value.link in ("is", "colon", "dash") else None
    if match is None:
        return None
    text = _trimmed(match["word"])
    has_shape = _is_mixed(text) or (text.isdecimal() and len(text) >= _MIN_DIGITS_LOOSE)
    has_shape = has_shape or (value.link == "beside" and value.keyword.startswith("cred"))
    start = match.start("word")
    return Judged(start, start + len(text), 0.85) if has_shape and _may_be_password(text) else None


def key(value: Value) -> Judged | None:
    """A key for machines, which is long and drawn at random; or the key of a network, which is a password."""
    if _NETWORK.search(value.before[-_CLOSE:] + value.purpose):
        digits = _DIGIT_GROUPS.match(value.rest)
        return Judged(0, digits.end(), 0.9) if digits else password(value)
    text = _bare(value).rstrip(_STOPS + ")]}") if value.quoted is None else value.quoted
    if _NO_KEY.search(value.before):
        return None
    is_named = _UUID.fullmatch(text) is not None and not _SHORT_KEY.fullmatch(value.keyword)
    is_random = len(text) >= _SHORTEST_KEY and looks_random(text, min_entropy=_KEY_ENTROPY)
    if not is_random and not is_named:
        return None
    return None if is_placeholder(text) or _ADDRESS.match(text) else Judged(0, len(text), 0.9)


def answer(value: Value) -> Judged | None:
    """The answer to a question that only its owner can answer."""
    match = _ANSWER.match(value.rest)
    if match is None or value.link in ("beside", "reversed") or is_plain(match[0].split()[0]):
        return None
    if value.quoted is not None:
        return Judged(0, len(value.quoted), 0.9)
    is_name = match[0][0].isupper()
    is_closed = value.link != "comma" and _CLOSED.match(value.rest, match.end())
    return Judged(0, match.end(), 0.85) if is_name or is_closed else None


def _bare(value: Value) -> str:
    match = _BARE.match(value.rest)
    return match[0] if match else ""


def _trimmed(text: str) -> str:
    """A value without the punctuation of the sentence around it."""
    text = _FOREIGN_TAIL.sub("", text.rstrip(_STOPS))
    while text[-1:] in _BRACKETS and text.count(text[-1]) > text.count(_BRACKETS[text[-1]]):
        text = text[:-1].rstrip(_STOPS)
    return text[:-1] if text.endswith("?") and not _SIGN.search(text[:-1]) else text


def _may_be_password(text: str) -> bool:
    is_hidden = _HIDDEN.issuperset(text)
    return not (is_hidden or is_placeholder(text) or is_plain(text) or _ADDRESS.match(text))


def _is_speech(text: str) -> bool:
    words = text.split()
    return len(words) > 1 and sum(map(is_plain, words)) * 3 >= len(words)


def _is_mixed(text: str) -> bool:
    """Whether letters come with digits or signs."""
    if len(text) < 4 or _AMOUNT.fullmatch(text) or not any(map(str.isalpha, text)):
        return False
    return any(map(str.isdecimal, text)) or _SIGN.search(text.rstrip("!?")) is not None


def _is_word(text: str, tail: str) -> bool:
    is_short = len(text) <= _LONGEST_WORD
    return is_short and _WORD.fullmatch(text) is not None and _CLOSED.match(tail) is not None


def _passphrase(rest: str, *, is_named: bool) -> Judged | None:
    """Two words or more up to the end of a clause, none of which holds a sentence together.

    Where it is called a phrase, such words may stand within it, but do not begin it.
    """
    match = _PHRASE.match(rest)
    words = re.split(r"[ -]", match[0]) if match else []
    if match and is_named and len(words) >= _SHORTEST_SENTENCE and not is_plain(words[0]):
        return Judged(0, match.end(), 0.8)
    if match is None or any(map(is_function, words)) or sum(map(is_plain, words)) > max(0, len(words) - 3):
        return None
    return Judged(0, match.end(), 0.8)
