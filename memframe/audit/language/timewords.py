"""Time words: when what a text speaks of as to come will have passed, seen from the day it was written."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

_MONTH_NAMES = """
    january|jan|januar|janvier|enero february|feb|februar|février|febrero march|mar|märz|mars|marzo
    april|apr|avril|abril may|mai|mayo june|jun|juni|juin|junio july|jul|juli|juillet|julio
    august|aug|août|agosto september|sept|sep|septembre|septiembre october|oct|oktober|octobre|octubre
    november|nov|novembre|noviembre december|dec|dezember|décembre|diciembre
"""
_WEEKDAY_NAMES = """
    monday|montag|lundi|lunes tuesday|dienstag|mardi|martes wednesday|mittwoch|mercredi|miércoles
    thursday|donnerstag|jeudi|jueves friday|freitag|vendredi|viernes saturday|samstag|samedi|sábado
    sunday|sonntag|dimanche|domingo
"""
_COUNTED = "one two three four five six seven eight nine ten"
_NUMBER_WORDS = {"a": 1, "an": 1} | {word: n for n, word in enumerate(_COUNTED.split(), 1)}
_FAR_AHEAD_DAYS = 270
"""A day without a year that would be further off than that was meant as the last one, not as the next."""

_SEASON_ENDS = {"spring": 6, "summer": 9, "autumn": 12, "fall": 12, "winter": 3}


def _numbered(names: str) -> Mapping[str, int]:
    return {name: number for number, group in enumerate(names.split()) for name in group.split("|")}


_MONTHS, _WEEKDAYS = _numbered(_MONTH_NAMES), _numbered(_WEEKDAY_NAMES)
_MONTH, _WEEKDAY = "|".join(sorted(_MONTHS, key=len, reverse=True)), "|".join(_WEEKDAYS)
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"


class Expiry(NamedTuple):
    """A time that a text speaks of as to come, and the last day on which it is."""

    start: int
    end: int
    until: date
    score: float


class Rule(NamedTuple):
    """One way of speaking of a time to come."""

    core: str
    """Matches, as RE2 and whatever the case, every text that the rule finds something in, and some others."""
    pattern: re.Pattern[str]
    score: float
    until: Callable[[re.Match[str], date], date | None]


def _in_days(n_days: int) -> Callable[[re.Match[str], date], date]:
    return lambda _, day: day + timedelta(days=n_days)


def _end_of_month(year: int, month: int) -> date:
    """The last day of a month, counted from 1; months beyond December are of the next year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, monthrange(year, month)[1])


def _end_of_period(match: re.Match[str], day: date) -> date | None:
    """This week, next month, the coming year: its last day."""
    ahead = 0 if match["which"].lower() in {"this", "diese", "dieses", "cette", "ce", "esta", "este"} else 1
    unit = match["unit"].lower()
    if unit in {"week", "weekend", "woche", "wochenende", "semaine", "semana"}:
        return day + timedelta(days=6 - day.weekday() + 7 * ahead)
    if unit in {"month", "monat", "mois", "mes"}:
        return _end_of_month(day.year, day.month + ahead)
    if unit in _SEASON_ENDS:
        end = _end_of_month(day.year, _SEASON_ENDS[unit])
        passed = end < day or (ahead and (end - day).days < 60)
        return _end_of_month(day.year + 1, _SEASON_ENDS[unit]) if passed else end
    if unit in {"quarter", "term", "semester"}:
        return _end_of_month(day.year, day.month + (3 if unit == "quarter" else 6) * (ahead + 1))
    return date(day.year + ahead, 12, 31)


def _after_units(match: re.Match[str], day: date) -> date:
    n = int(match["n"]) if match["n"].isdigit() else _NUMBER_WORDS[match["n"].lower()]
    return day + timedelta(days=min(n, 1000) * {"d": 1, "w": 7, "m": 31}[match["unit"][0].lower()] + 1)


def _next_weekday(match: re.Match[str], day: date) -> date:
    ahead = (_WEEKDAYS[match["weekday"].lower()] - day.weekday()) % 7
    return day + timedelta(days=ahead + (7 if match["which"].lower() == "next" else 0))


def _calendar_day(match: re.Match[str], day: date) -> date | None:
    """A day or a month of the calendar; without a year the next one from the day on."""
    parts = match.groupdict()
    name = parts["month"].lower()
    month = _MONTHS[name] + 1 if name in _MONTHS else int(name)
    year = int(parts["year"]) if parts.get("year") else None
    found = _dated(year or day.year, month, parts.get("day"))
    if found is not None and year is None and found < day:
        found = _dated(day.year + 1, month, parts.get("day"))
        return found if found is not None and (found - day).days < _FAR_AHEAD_DAYS else None
    return None if found == day else found


def _day_in_digits(match: re.Match[str], day: date) -> date | None:
    """A day as «15/04/2024»; of the two days that it may be in Europe and in America the later one."""
    year, one, other = (int(match[name]) for name in ("year", "day", "month"))
    may_be = (_dated(year, other, str(one)), _dated(year, one, str(other)))
    found = max((date_ for date_ in may_be if date_ is not None), default=None)
    return None if found == day else found


def _dated(year: int, month: int, day: str | None) -> date | None:
    if not 1 <= month <= 12:
        return None
    if day is None:
        return _end_of_month(year, month)
    return date(year, month, int(day)) if 1 <= int(day) <= monthrange(year, month)[1] else None


def _rule(
    core: str,
    score: float,
    until: Callable[[re.Match[str], date], date | None],
    before: str = "",
    after: str = "",
) -> Rule:
    pattern = re.compile(f"{before}{core}{after}", re.IGNORECASE)
    return Rule("(?i)" + re.sub(r"\?P<\w+>", "?:", core), pattern, score, until)


_UNITS = (
    "weekend|week|month|year|quarter|term|semester|spring|summer|autumn|fall|winter|wochenende|woche|monat|jahr|"
    "semaine|mois|semana|mes|año"
)
_THIS = "this|next|the coming|nächste[ns]?|dieses?|kommende[ns]?|cette|ce|esta|este|la próxima|el próximo"
RULES: tuple[Rule, ...] = (
    _rule(r"(?:\bthe day after tomorrow|übermorgen|\baprès-demain|\bpasado mañana)\b", 0.95, _in_days(2)),
    _rule(r"\b(?:tomorrow|demain)\b", 0.95, _in_days(1), before="(?<!day after )(?<!après-)"),
    _rule(  # not «guten Morgen», «am Morgen», «por la mañana»
        r"(?-i:\bmorgen\b)|(?:^|[.!?] )morgen\b",
        0.9,
        _in_days(1),
        before=r"(?<!guten )(?<!am )(?<!jeden )(?<!der )(?<!den )",
    ),
    _rule(
        r"\bmañana\b",
        0.9,
        _in_days(1),
        before="(?<!la )(?<!esta )(?<!cada )(?<!una )(?<!media )(?<!pasado )(?<!las )",
    ),
    _rule(
        r"\b(?:tonight|later today|this (?:morning|afternoon|evening)|heute abend|ce soir|esta noche)\b",
        0.95,
        _in_days(0),
    ),
    _rule(rf"\b(?P<which>{_THIS}) (?P<unit>{_UNITS})\b", 0.85, _end_of_period),
    _rule(r"\b(?P<which>la) (?P<unit>semaine|semana) (?:prochaine|que viene)\b", 0.85, _end_of_period),
    _rule(
        rf"\bin (?:about |around )?(?P<n>\d{{1,3}}|{'|'.join(_NUMBER_WORDS)}) (?P<unit>days?|weeks?|months?)\b",
        0.75,
        _after_units,
        after="(?!['\u2019])",
    ),
    _rule(
        rf"\b(?P<which>on|by|until|till|before|this|next|am|bis|nächsten|le|el|ce) (?P<weekday>{_WEEKDAY})\b",
        0.8,
        _next_weekday,
        after=r"(?! ?(?:to|through|bis|[-\u2013/]) ?\w)(?! (?:morning|evening|afternoon|night)s\b)",
    ),
    _rule(rf"\b(?P<weekday>{_WEEKDAY}) (?P<which>prochaine?|que viene|próximo)\b", 0.85, _next_weekday),
    _rule(
        rf"\b(?:due|expected|planned|scheduled|booked) (?:back )?(?:in|for|on) (?P<month>{_MONTH})\b",
        0.8,
        _calendar_day,
        after=r"(?! ?\d)",
    ),
    _rule(
        rf"\b(?P<day>[0-3]?\d)(?:[./])(?P<month>[0-3]?\d)[./]{_YEAR}\b",
        0.85,
        _day_in_digits,
        before=r"(?<![\d./])",
        after=r"(?![\d/])",
    ),
    _rule(rf"\b{_DAY} (?:of |de )?(?P<month>{_MONTH})\b(?:\.?,? (?:de )?{_YEAR}\b)?", 0.85, _calendar_day),
    _rule(rf"\b(?P<month>{_MONTH})\.? {_DAY}\b(?:,? {_YEAR}\b)?", 0.85, _calendar_day, after="(?!:)"),
    _rule(rf"\b{_YEAR}-(?P<month>[01]\d)-(?P<day>[0-3]\d)\b", 0.85, _calendar_day),
    _rule(
        rf"\b(?:until|till|by|in|before|to|end of|bis|jusqu'en|hasta) (?P<month>{_MONTH}) {_YEAR}\b",
        0.85,
        _calendar_day,
    ),
    _rule(
        rf"\b(?:until|till|by|before|end of|bis|jusqu'en|hasta) (?P<month>{_MONTH})\b",
        0.7,
        _calendar_day,
        after=r"(?! ?\d)",
    ),
)

_OPEN_ENDED = re.compile(
    r"\b(?:from|since|after|starting|as of|ab|seit|depuis|dès|desde|(?:begins?|began|starts?|started)(?: on)?|"
    r"on or after) *(?:the )?$",
    re.IGNORECASE,
)
_RECURRING = re.compile(
    r"\b(?:every|each|annual|annually|yearly|weekly|monthly|daily|birthday|born|anniversary|always|usually|jede[nrs]?|"
    r"never|nie|jamais|nunca|any other day|"
    r"geburtstag|geboren|chaque|anniversaire|cada|cumpleaños|nacid[oa]|recurring|tradition)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were|went|had|did|got|came|saw|met|bought|took|made|gave|said|told|found|felt|ran|ate|sold|won|sent|"
    r"lost|spent|began|wrote|read|heard|thought|died|left|war|waren|wurde|hatte|ging|kam|était|étaient|avait|fue|"
    r"fueron|tuvo|estaba|(?<!is )(?<!are )(?<!be )(?<!not )\w{3,}(?<!ne)ed)\b",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"\b(?:will|shall|going to|plans?|planned|planning|appointment|meeting|deadline|due|expires?|valid|booked|"
    r"scheduled|reminder|remind|remember to|must|needs? to|has to|have to|should|flight|delivered|delivery|"
    r"reservation|upcoming|intends?|wants to|hopes to|looking forward|termin|frist|fällig|gültig|rendez-vous|cita|"
    r"until|by|before)\b",
    re.IGNORECASE,
)
_OPENING_MARKS, _CLOSING_MARKS = "“„«", "”“»"
_SENTENCE_MARKS = (". ", "! ", "? ", "; ", "\n")


def looks_back(sentence: str) -> bool:
    """Whether a sentence tells of something past."""
    return _PAST.search(sentence) is not None


def expiries(text: str, written: date, rules: Iterable[Rule] = RULES) -> Iterator[Expiry]:
    """Times that a text speaks of as to come, seen from the day on which it was written.

    What recurs, what began, and what a sentence tells of as past does not expire.

    >>> text = "Call the vet on Friday."
    >>> [(text[found.start : found.end], found.until.isoformat()) for found in expiries(text, date(2024, 3, 5))]
    [('on Friday', '2024-03-08')]
    """
    for rule in rules:
        for match in rule.pattern.finditer(text):
            day = rule.until(match, written)
            if day is None or day < written or _is_quoted(text, match.start()):
                continue
            if not _is_open_ended(text, match.start()):
                trust = _trust(_sentence(text, match))
                if trust:
                    yield Expiry(match.start(), match.end(), day, rule.score * trust)


def _is_open_ended(text: str, start: int) -> bool:
    """Whether what begins there goes on: «from 1 September»."""
    return _OPEN_ENDED.search(text, max(0, start - 20), start) is not None


def _is_quoted(text: str, start: int) -> bool:
    """Whether what begins there is part of a title or a saying, between quotation marks after other words."""
    before = text[:start]
    opened = before.rfind('"') if before.count('"') % 2 else max(map(before.rfind, _OPENING_MARKS))
    return opened > 0 and not any(mark in text[opened + 1 : start] for mark in _CLOSING_MARKS)


def _sentence(text: str, match: re.Match[str]) -> str:
    start = max(text.rfind(mark, 0, match.start()) for mark in _SENTENCE_MARKS) + 1
    ends = [end for mark in _SENTENCE_MARKS if (end := text.find(mark, match.end())) >= 0]
    return text[start : min(ends, default=len(text))]


@lru_cache(maxsize=1 << 12)
def _trust(sentence: str) -> float:
    """How far a sentence may be taken to look ahead: from 0, it does not, to 1."""
    if _RECURRING.search(sentence):
        return 0.0
    ahead = _AHEAD.search(sentence) is not None
    if looks_back(sentence):
        return 0.7 if ahead else 0.0
    return 1.0 if ahead else 0.9
