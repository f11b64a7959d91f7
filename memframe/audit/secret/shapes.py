"""Shapes: what in a sentence may be a secret by its looks, and does not stand where other things stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from memframe.audit.personal_data.ibans import find_ibans
from memframe.audit.secret.passwords import is_strong
from memframe.audit.secret.plain_words import is_plain
from memframe.audit.secret.randomness import is_placeholder

_CANDIDATE = re.compile(
    r"(?<![\w@./#*-])(?:"
    r"(?P<turns>(?:left|right|l|r)\s[0-9]{1,2}(?:,?\s(?:left|right|l|r)\s[0-9]{1,2}){1,3}"
    r"|[0-9]{1,2}\s(?:left|right)(?:,?\s[0-9]{1,2}\s(?:left|right)){1,3})"
    r"|(?P<groups>[0-9]{1,2}(?:(?:\s?[-–]\s?[0-9]{1,2}){2,4}|(?:\s[0-9]{2}){2,3})(?![\w-]|\s[0-9]))"
    r"|(?P<spaced>[0-9](?:[ -][0-9]){3,7}(?![\w-]))"
    r"|(?P<digits>[#*]?[0-9]{4,8}[#*]?(?![\w-])(?![.,:/][0-9])|[0-9]{3}[ -][0-9]{3}(?![\w-])(?![ -][0-9]))"
    r"|(?P<sent>[A-Z]-[0-9]{4,8}(?![\w-]))"
    r"|(?P<blocks>(?=[A-Z-]*[0-9])(?:[A-Z0-9]{4,8}-){1,8}[A-Z0-9]{2,8}(?![\w-]))"
    r"|(?P<short>(?=[A-Z]*[0-9])[A-Z0-9]{4,7}(?![\w-]))"
    r"|(?P<word>(?=[^\s0-9!#$%^&*+=~_<>|@?]{0,40}[0-9!#$%^&*+=~_<>|@?])[^\s\"“”„«»`(),;]{5,64}))"
)
_SHAPES = {"turns": 3, "groups": 3, "spaced": 3, "digits": 2, "blocks": 4, "short": 1, "sent": 4}
_LOOSE, _KEYS = frozenset({"word", "digits", "short", "blocks"}), frozenset("#*")
"""Shapes that much else has, too; and keys beside the digits, which nothing else has."""

_SIGN = re.compile(r"[!@#$%^&*+=~|<>?]")

_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_NO_WORD = re.compile(
    r"[\w.+-]+@[\w-]+\.\w.*|[a-z][a-z0-9+.-]*://.*|www\..*|[0-9.,:/-]+|[0-9].{0,3}"
    r"|[0-9]+(?:[.,x][0-9]+)?[a-zA-Z%€$°]{1,5}(?:/[a-z]+)?"
    r"|(?:sha|md|wpa|aes|rsa|utf|base|http|ipv|oauth|mp|web|bcrypt|pbkdf|argon|usb|win|office|windows"
    r"|python)-?[0-9]+\w*"
    r"|[0-9]?1?password|fritz!box\w*|[\w-]+\.(?:com|org|net|de|io|md|py|js|txt|pdf|json)\b.*"
    r"|.*[\[({].*|\$.*|[\w.-]+[=:].*|--.*|.*[\],].*|.*(?:=|\.\w+)\(.*|[\w'’]+-(?:free"
    r"|based|time|only|step|factor|digit)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[A-Z]{1,6}-?[0-9]{1,6}[A-Z+]{0,3}|[A-Z_]+")
"""Names of models and of settings."""

_SNAKE = re.compile(r"[a-z]+(?:_[a-z]+)+")
_TECHNICAL = re.compile(
    r"pass|token|key|user|name|id\b|secret|url|env|file|path|hash|type|value|field|var"
    r"|config|get_|set_|is_|_at$"
)
"""Names in programs; other words between such signs may be a password."""

_UNIT = re.compile(
    r"\s(?!is|was|as|this|has|opens|unlocks|works|lets|gets|does|always|thanks|sometimes)[a-z]{3,}s\b|\s?(?:%|€|\$|£|(?:euros?|dollars?|francs?|forints?|chf|usd|gbp|kg|km|mm|cm|mb|gb|tb|mbit|points?"
    r"|people|participants|pages?|steps"
    r"|rows|lines|times|hours?|minutes?|days?|years?|users|members|am|pm|uhr|h|meters?|calories|views|copies"
    r"|euro|digits?|characters?"
    r"|shares|street|main|road|lane|ave\w*)\b)"
)
_OTHER = re.compile(
    r"(?<!\w)(?:(?:user|username|user name|network|network name|ssid|name|version|model|id|account"
    r"|handle) is|user|users"
    r"|username|user name|login|name|account|acct|id|room|flight|order|version|model|no|nr|part|bus|line|page|floor"
    r"|zip|area|bib|ticket|since|seit|depuis|desde|(?<!punch )(?<!type )(?<!typed )(?<!key )in|im|on|at|um|from|by"
    r"|until|bis|call|called|named|heißt|ssid|network|port|host"
    r"|section|chapter|episode|level|invoice|case|claim|tracking|serial|street|born|number|via|against"
    r"|like|about|over|than"
    r"|costs?|channel|area code|country code|postal code|plz|error|status|ending|ends in|article|extension"
    r"|ext|build|release)"
    r"[\s:.#]*[\"“'(]*\Z"
)
"""What a number or a name stands behind that is no secret."""

_MAX_CANDIDATES, _STOPS = 12, ".,;:!?'’"


class Place(NamedTuple):
    """Where something that may be a secret stands."""

    shape: str
    weight: int
    """How much it looks like one."""
    before: str
    """What stands before it in its sentence, in small letters."""
    start: int
    end: int


def find_places(text: str, small: str, begin: int, end: int) -> Iterator[Place]:
    """What has the shape of a secret in a sentence, and does not stand behind the name of something else."""
    for found in islice(_CANDIDATE.finditer(text, begin, end), _MAX_CANDIDATES):
        shape, value = str(found.lastgroup), found[0].rstrip(_STOPS)
        weight = _weight_of_shape(shape, value)
        place = Place(shape, weight, small[begin : found.start()], found.start(), found.start() + len(value))
        is_other = shape in _LOOSE and _OTHER.search(place.before)
        if weight and not is_other and not _UNIT.match(small, place.end):
            yield place


def _weight_of_shape(shape: str, value: str) -> int:
    """How much something looks like a secret; 0 where it is none."""
    if is_placeholder(value):
        return 0
    if shape != "word":
        if value[0] in _KEYS or value[-1] in _KEYS:
            return 3
        return 1 if _YEAR.fullmatch(value) else _SHAPES[shape]
    if not is_strong(value) or is_plain(value) or _NO_WORD.fullmatch(value) or _NAMED.fullmatch(value):
        return 0
    if any(find_ibans(value)):  # the number of a bank account, which is personal data
        return 0
    if _SNAKE.fullmatch(value):
        return 0 if _TECHNICAL.search(value) else 2
    return 3 + (_SIGN.search(value) is not None and any(map(str.isdecimal, value)))
