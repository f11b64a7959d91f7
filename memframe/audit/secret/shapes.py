"""Shapes: what in a sentence may be a secret by its looks, and does not stand where other things stand.

Each shape has a weight. A word has one only if it is strong as a password is, and is no name of a file, a model or a
setting. What is counted in a unit ("4711 steps") or stands behind the name of something else ("flight 4711") is left
out, where its shape is one that much else has, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from memframe.audit.language.vocabulary import one_of
from memframe.audit.personal_data.ibans import find_ibans
from memframe.audit.secret.passwords import is_strong
from memframe.audit.secret.plain_words import is_plain
from memframe.audit.secret.randomness import is_placeholder

_SIDE = "(?:left|right|l|r)"
_NO_DIGIT_OR_SIGN, _DIGIT_OR_SIGN = r"[^\s0-9!#$%^&*+=~_<>|@?]", r"[0-9!#$%^&*+=~_<>|@?]"
_CANDIDATE = re.compile(
    rf"""(?<![\w@./#*-])(?:
    (?P<turns>                              # of the dial of a safe: "left 12, right 7", "12 left 7 right"
        {_SIDE}\s[0-9]{{1,2}}(?:,?\s{_SIDE}\s[0-9]{{1,2}}){{1,3}}
        |[0-9]{{1,2}}\s(?:left|right)(?:,?\s[0-9]{{1,2}}\s(?:left|right)){{1,3}})
    |(?P<groups>                            # "12-34-56", "12 34 56"
        [0-9]{{1,2}}(?:(?:\s?[-–]\s?[0-9]{{1,2}}){{2,4}}|(?:\s[0-9]{{2}}){{2,3}})(?![\w-]|\s[0-9]))
    |(?P<spaced>                            # "4 7 1 1"
        [0-9](?:[ -][0-9]){{3,7}}(?![\w-]))
    |(?P<digits>                            # "4711", "#4711*", "471 147"
        (?<![0-9]\s)[\#*]?[0-9]{{4,8}}[\#*]?(?![\w-])(?![.,:/][0-9])
        |[0-9]{{3}}[ -][0-9]{{3}}(?![\w-])(?![ -][0-9]))
    |(?P<sent>                              # "G-471147", as some senders write it
        [A-Z]-[0-9]{{4,8}}(?![\w-]))
    |(?P<blocks>                            # "7FQ2-88KD-A1"
        (?=[A-Z-]*[0-9])(?:[A-Z0-9]{{4,8}}-){{1,8}}[A-Z0-9]{{2,8}}(?![\w-]))
    |(?P<short>                             # "7FQ2"
        (?<![0-9]\s)(?=[A-Z]*[0-9])[A-Z0-9]{{4,7}}(?![\w-]))
    |(?P<word>                              # "Rechnung!0815": anything that holds a digit or a sign
        (?={_NO_DIGIT_OR_SIGN}{{0,40}}{_DIGIT_OR_SIGN})[^\s\"“”„«»`(),;]{{5,64}})
    )""",
    re.VERBOSE,
)
_MAX_CANDIDATES = 12
"""Of one sentence; one that has more is a table."""

_STOPS = ".,;:!?'’"
"""What ends a sentence or a quotation rather than a secret."""

_WEIGHTS = {"turns": 3, "groups": 3, "spaced": 3, "digits": 2, "blocks": 4, "short": 1, "sent": 4}
"""How much each shape looks like a secret; that of a word depends on the word."""

_YEAR, _YEARS_WEIGHT = re.compile(r"(?:19|20)[0-9]{2}"), 1
_KEYS, _WEIGHT_WITH_KEY = frozenset("#*"), 3
"""Keys beside the digits, which stand in codes and nowhere else."""

_STRONG_WORD, _SNAKE_WORD = 3, 2
"""What a word weighs that is strong as a password is, one more with digit and sign; and words between low lines."""

_LOOSE = frozenset({"word", "digits", "short", "blocks"})
"""Shapes that much else has, too."""

_SIGN = re.compile(r"[!@#$%^&*+=~|<>?]")

_ENDING = one_of("com, org, net, de, io, md, py, js, txt, pdf, json")
_STANDARD = one_of(
    ciphers="sha, md, wpa, aes, rsa, bcrypt, pbkdf, argon",
    networks="base, http, ipv, oauth, web, utf",
    devices="mp, usb, win, office, windows, python",
)
_NO_WORD = re.compile(
    one_of(
        addresses=r"[\w.+-]+@[\w-]+\.\w.*, [a-z][a-z0-9+.-]*://.*, www\..*",
        numbers=r"[0-9.,:/-]+, [0-9].{0,3}, [0-9]+(?:[.,x][0-9]+)?[a-zA-Z%€$°]{1,5}(?:/[a-z]+)?",
        standards=rf"{_STANDARD}-?[0-9]+\w*",
        products=r"[0-9]?1?password, fritz!box\w*",
        files=rf"[\w-]+\.{_ENDING}\b.*",
        code=r".*[\[({].*, \$.*, [\w.-]+[=:].*, --.*, .*[\],].*, .*(?:=|\.\w+)\(.*",
        paths=r"(?-i:[.~]{0,2}/?(?:[a-z]{2}[\w.@-]*/){2}\S*), [\w.@~/-]+/[\w@-]+\.[a-z]{1,5}(?::[0-9]+)*",
        versions=r"[\w.-]*[a-z]_v[0-9]{1,2}",
        adjectives=r"[\w'’]+-(?:free|based|time|only|step|factor|digit)",
    ),
    re.IGNORECASE,
)
"""What holds a digit or a sign and is no password."""

_NAMED = re.compile(r"[A-Z]{1,6}-?[0-9]{1,6}[A-Z+]{0,3}|[A-Z_]+")
"""Names of models and of settings."""

_SNAKE = re.compile(r"[a-z]+(?:_[a-z]+)+")
_TECHNICAL = re.compile(
    one_of(
        secrets="pass, token, key, secret, hash",
        people=r"user, name, id\b",
        places="url, env, file, path",
        values=r"type, value, field, var, config",
        verbs="get_, set_, is_, _at$",
    )
)
"""Names in programs; other words between low lines may be a password."""

_VERBS = one_of("is, was, as, this, has, opens, unlocks, works, lets, gets, does, always, thanks, sometimes")
_UNITS = one_of(
    signs=r"%, €, \$, £",
    words=one_of(
        money="euros?, dollars?, francs?, forints?, chf, usd, gbp, euro",
        measures="kg, km, mm, cm, mb, gb, tb, mbit, meters?, calories",
        times="times, hours?, minutes?, days?, years?, am, pm, uhr, h",
        people="people, participants, users, members",
        pieces="points?, pages?, steps, rows, lines, views, copies, digits?, characters?, shares",
        streets=r"street, main, road, lane, ave\w*",
    )
    + r"\b",
)
_UNIT = re.compile(rf"\s(?!{_VERBS})[a-z]{{3,}}s\b|\s?{_UNITS}")
"""What a number is a number of: any plural, or one of the units."""

_OTHER = re.compile(
    r"(?<!\w)"
    + one_of(
        named=one_of(
            "user, username, user name, network, network name, ssid, name, version, model, id, account, handle"
        )
        + " is",
        people="user, users, username, user name, login, name, nick, nickname",
        called="account, acct, call, called, named, born",
        elsewhere="heißt, heisst, nennt sich, s['’]appelle, se llama, si chiama",
        networks="ssid, network, port, host, channel",
        numbered="s?id, meeting, room, flight, order, no, nr, number, part, ticket, serial",
        filed="invoice, case, claim, tracking",
        travel="bus, line, street, floor, extension, ext",
        writings="page, section, article, chapter, episode, level",
        software="version, model, error, status, build, release",
        regions="zip, area, bib, area code, country code, postal code, plz",
        times="since, until, seit, bis, depuis, desde, ending, ends in",
        places="(?<!punch )(?<!type )(?<!typed )(?<!key )in, im, on, at, um, from, by, via",
        amounts="about, over, than, costs?, like, against",
    )
    + r"[\s:.#]*[\"“'(]*\Z"
)
"""What a number or a name stands behind that is no secret."""


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
    if shape == "word":
        return _weight_of_word(value)
    if value[0] in _KEYS or value[-1] in _KEYS:
        return _WEIGHT_WITH_KEY
    return _YEARS_WEIGHT if _YEAR.fullmatch(value) else _WEIGHTS[shape]


def _weight_of_word(word: str) -> int:
    if not is_strong(word) or is_plain(word) or _NO_WORD.fullmatch(word) or _NAMED.fullmatch(word):
        return 0
    if any(find_ibans(word)):  # the number of a bank account, which is personal data
        return 0
    if _SNAKE.fullmatch(word):
        return 0 if _TECHNICAL.search(word) else _SNAKE_WORD
    return _STRONG_WORD + (_SIGN.search(word) is not None and any(map(str.isdecimal, word)))
