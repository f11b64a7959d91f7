"""Stale memories: those about a time to come that has passed, those that their source calls outdated, and old ones.

The expressions of time are in ``rules/stale.toml``.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from memframe.audit.declared import declared_outdated, declaring
from memframe.audit.findings import Finding, findings_frame, join_findings, list_findings
from memframe.audit.lexicon import MONTHS, WEEKDAYS, without_accents
from memframe.audit.rules import Rule, load_fragment, load_rules
from memframe.audit.text import Memories, MemoryTexts

_TABLE = load_rules("stale")

_FAR_AHEAD_DAYS = 270
"""Most days until a date without a year that is a time to come: in January, «5 December» is the last one."""
_THIS = frozenset(
    {
        "this",
        "diese",
        "dieses",
        "cette",
        "ce",
        "esta",
        "este",
        "nesta",
        "neste",
        "questa",
        "questo",
        "этой",
        "этом",
        "本",
        "这",
        "这个",
        "今",
    }
)
_WEEKS = frozenset(
    {"week", "weekend", "woche", "wochenende", "semaine", "semana", "settimana", "неделе", "周", "週", "星期"}
)
_MONTH = frozenset({"month", "monat", "mois", "mes", "mês", "mese", "месяце", "月"})
_SEASON_ENDS = {"spring": 6, "summer": 9, "autumn": 12, "fall": 12, "winter": 3}


def find_stale(memories: Memories, *, now: pd.Timestamp, old_after_days: float = 730.0) -> pd.DataFrame:
    """Find memories about a time to come that has passed, those that are declared outdated, and old unchanged ones.

    Kind ``expired``: an expression of time was in the future when the memory was created («tomorrow», «next week», «on
    Friday», «until March 2022», a day of the calendar) and is over now. ``start`` and ``end`` are its span,
    ``evidence`` names the day that it meant. Left out are dates that begin something («from 1 May»), that recur («every
    Friday», birthdays), or in a sentence about the past. Expressions are found in English, weekdays and months also in
    German, French, Spanish and Italian, «tomorrow», «next week» and the like also in Portuguese, Russian and Chinese.
    «5/6/2024» is read as the later of its two days, unless another date in the text shows the order of day and
    month. Titles and quotations between quotation marks are left out, and so are times in a minor part of a note:
    the time has to be in the first statement, such as a heading, or in most of them. Days are counted in UTC, because
    the zone of the writer is not known. Events without a date are not found.

    Kind ``declared``: the system that a memory comes from calls it outdated, by a state, a flag, an end that has come
    or a successor (`memframe.audit.declared`), in a column such as ``invalid_at``, ``status`` or ``replaced_by``.

    Kind ``never_updated``: older than ``old_after_days`` and never changed. That is no fault and has no proposal; an
    audit only counts these memories.

    Parameters
    ----------
    memories : DataFrame
        Frame with the columns of `load_memories`; rows without content or ``created_at`` are left out.
    now : Timestamp
        Moment before which times are past; without a zone it is UTC.
    old_after_days : float
        Age in days from which on an unchanged memory is counted.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> created = pd.to_datetime(["2024-03-05T10:00:00Z"])
    >>> memories = pd.DataFrame({"id": ["m1"], "content": "Call the vet on Friday."}, columns=list(MEMORY_KINDS))
    >>> found = find_stale(memories.assign(created_at=created, updated_at=created), now=pd.Timestamp("2024-04-01"))
    >>> found.evidence[0]
    '«on Friday» passed 24 days ago (2024-03-08)'
    """
    now = pd.Timestamp(now)
    now = now.tz_localize("UTC") if now.tz is None else now.tz_convert("UTC")
    texts = MemoryTexts.of(memories)
    return join_findings(
        [
            _find_expired(texts, now),
            _find_declared(texts, now),
            _find_never_updated(texts, now, old_after_days),
        ]
    )


class Expiry(NamedTuple):
    """Span of an expression of a time to come, and the last day of that time."""

    start: int
    end: int
    until: date
    score: float


def _find_expired(prepared: MemoryTexts, now: pd.Timestamp) -> pd.DataFrame:
    today, created = now.date(), prepared.memories["created_at"]
    content = prepared.cut("content")
    dated = np.flatnonzero(created.notna().to_numpy(bool) & content.is_valid().to_numpy(zero_copy_only=False))
    if not len(dated):
        return list_findings(())
    written, texts = created.iloc[dated].dt.date.tolist(), content.take(pa.array(dated))
    mentions = [
        (place, mention)
        for place, rules in _TABLE.only("time").candidates(texts)
        for mention in _find_mentions(texts[place].as_py(), rules, written[place], today)
    ]
    sentences = list(dict.fromkeys(mention.sentence for _, mention in mentions))
    groups = _TABLE.groups_in(pa.array(sentences, pa.large_string()), "recurs", "past", "ahead")
    kinds_of = dict(zip(sentences, groups, strict=True))
    ids, found = prepared.ids, []
    for place, of_text in groupby(mentions, key=itemgetter(0)):
        text = texts[place].as_py()
        passed = [
            expiry
            for _, mention in of_text
            if (expiry := _read_expiry(mention, kinds_of[mention.sentence], written[place]))
        ]
        if passed and _is_subject(text, passed):
            best = max(
                passed, key=lambda expiry: (expiry.score, -expiry.start, expiry.end)
            )  # the first of the surest
            n_days = (today - best.until).days
            n, unit = next(
                (n_days // days, unit)
                for least, days, unit in ((730, 365, "years"), (60, 30, "months"), (0, 1, "days"))
                if n_days >= least
            )
            words = f"«{text[best.start : best.end]}» passed {n} {unit} ago ({best.until.isoformat()})"
            found.append(
                Finding(
                    check="stale",
                    kind="expired",
                    severity="low",
                    id=ids[dated[place]],
                    field="content",
                    start=best.start,
                    end=best.end,
                    score=best.score,
                    evidence=words,
                    action="review",
                )
            )
    return list_findings(found)


def _find_declared(texts: MemoryTexts, now: pd.Timestamp) -> pd.DataFrame:
    memories = texts.memories
    names = declaring(memories.columns)
    if not names:
        return list_findings(())
    filled = memories[names].notna().any(axis=1) & memories["content"].notna()
    ids, found = texts.ids, []
    for row in np.flatnonzero(filled).tolist():
        cells = {name: memories[name].iloc[row] for name in names}
        if reason := declared_outdated(cells, now.to_pydatetime()):
            words = f"its source says {reason}"
            found.append(
                Finding(
                    "stale",
                    "declared",
                    "medium",
                    ids[row],
                    "content",
                    score=1.0,
                    evidence=words,
                    action="review",
                )
            )
    return list_findings(found)


def _find_never_updated(texts: MemoryTexts, now: pd.Timestamp, old_after_days: float) -> pd.DataFrame:
    """Find old memories that were never changed; a service may set both times of a new one up to a second apart."""
    memories = texts.memories
    readable = texts.column("content").is_valid().to_numpy(zero_copy_only=False)
    # a frame of your own may have nanoseconds, in which a difference of three centuries overflows
    created, updated = (memories[name].dt.as_unit("us") for name in ("created_at", "updated_at"))
    age = (now.as_unit("us") - created).dt.total_seconds().to_numpy() / 86_400
    touched = (updated - created).dt.total_seconds().to_numpy() > 1
    rows = np.flatnonzero(readable & (age > old_after_days) & ~touched)
    return findings_frame(
        check="stale",
        kind="never_updated",
        severity="info",
        id=memories["id"].iloc[rows].tolist(),
        score=np.minimum(1.0, age[rows] / 3652.5).tolist(),
        evidence=f"older than {old_after_days:,.0f} days and never changed",
        action="none",
    )


# ---- the last day of an expression of time, given the day on which it was written


def _end_of_period(match: re.Match[str], day: date) -> date:
    """Return the last day of a period such as this week, next month or the coming year."""
    ahead, unit = match["which"].lower() not in _THIS, match["unit"].lower()
    if unit in _WEEKS:
        return day + timedelta(days=6 - day.weekday() + 7 * ahead)
    if unit in _MONTH:
        return _end_of_month(day.year, day.month + ahead)
    if unit in _SEASON_ENDS:
        end = _end_of_month(day.year, _SEASON_ENDS[unit])
        is_over = end < day or (ahead and (end - day).days < 60)
        return _end_of_month(day.year + 1, _SEASON_ENDS[unit]) if is_over else end
    if unit in {"quarter", "term", "semester"}:
        return _end_of_month(day.year, day.month + (3 if unit == "quarter" else 6) * (ahead + 1))
    return date(day.year + ahead, 12, 31)


def _after_units(match: re.Match[str], day: date) -> date:
    count = match["n"].lower()
    # the list begins with "a", "an", "one", "two"
    n = int(count) if count.isdigit() else max(1, load_fragment("counted", "stale").index(count) - 1)
    return day + timedelta(days=min(n, 1000) * {"d": 1, "w": 7, "m": 31}[match["unit"][0].lower()] + 1)


def _next_weekday(match: re.Match[str], day: date) -> date:
    ahead = (WEEKDAYS[without_accents(match["weekday"].lower())] - day.weekday()) % 7
    return day + timedelta(days=ahead + 7 * (match["which"].lower() == "next"))


def _calendar_day(match: re.Match[str], day: date) -> date | None:
    """Read a day or a month of the calendar; without a year it is the next one after the day of writing."""
    parts = match.groupdict()
    name = without_accents(parts["month"].lower())
    month = MONTHS[name] + 1 if name in MONTHS else int(name)
    year = int(parts["year"]) if parts.get("year") else None
    found = _date(year or day.year, month, parts.get("day"))
    if found is not None and year is None and found < day:
        found = _date(day.year + 1, month, parts.get("day"))
        return found if found is not None and (found - day).days < _FAR_AHEAD_DAYS else None
    return None if found == day else found


_N_MONTHS = 12


def _day_in_digits(match: re.Match[str], day: date) -> date | None:
    """Read a day such as «15/04/2024»: in the order of other days in the text, else as the later possible day."""
    year, one, other = (int(match[name]) for name in ("year", "day", "month"))
    is_month_first = any(int(known["month"]) > _N_MONTHS for known in match.re.finditer(match.string))
    dates = (_date(year, one, str(other)), None if is_month_first else _date(year, other, str(one)))
    may_be = [found for found in dates if found]
    return None if day in may_be else max(may_be, default=None)


def _end_of_month(year: int, month: int) -> date:
    """Return the last day of a month, counted from 1; months beyond December are of the next year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, monthrange(year, month)[1])


def _date(year: int, month: int, day: str | None) -> date | None:
    if not 1 <= month <= 12:
        return None
    if day is None:
        return _end_of_month(year, month)
    return date(year, month, int(day)) if 1 <= int(day) <= monthrange(year, month)[1] else None


_UNTIL: Mapping[str, Callable[[re.Match[str], date], date | None]] = {
    "period": _end_of_period,
    "units": _after_units,
    "weekday": _next_weekday,
    "calendar": _calendar_day,
    "digits": _day_in_digits,
}

# ---- texts about a time to come

_OPENING_MARKS, _CLOSING_MARKS = "“„«", "”“»"
_SENTENCE_MARKS = (". ", "! ", "? ", "; ", "\n")
_REACH = 1_000
"""Characters before and after an expression in which the ends of its sentence and quotation are searched."""
_MAX_FRAGMENT_CHARS = 8
"""Most characters of a part of a text that is no statement, such as a number of a list."""
_STATEMENT_END = re.compile(r"\n|[.!?;](?= )")
(_BEGINS,) = _TABLE.only("begins").rules


class _Mention(NamedTuple):
    """Expression of a time that may have been in the future when it was written."""

    rule: Rule
    start: int
    end: int
    until: date
    before: str
    """Text before the expression."""
    sentence: str


def _find_mentions(text: str, rules: Iterable[Rule], written: date, today: date) -> Iterator[_Mention]:
    """Yield expressions of times that were not yet past when written and are now, without quotations and beginnings."""
    for rule in rules:
        until = str(rule.options["until"])
        for match in rule.regex.finditer(text):
            day = (
                written + timedelta(int(rule.options["days"]))
                if until == "days"
                else _UNTIL[until](match, written)
            )
            if day is None or not written <= day < today:
                continue
            before = text[max(0, match.start() - _REACH) : match.start()]
            if _is_quoted(before) or _BEGINS.regex.search(before[-20:]):
                continue
            sentence = _sentence(before, match[0], text[match.end() : match.end() + _REACH])
            yield _Mention(rule, match.start(), match.end(), day, before, sentence)


def _read_expiry(mention: _Mention, kinds: frozenset[str], written: date) -> Expiry | None:
    """Return the expiry of a mention; None if the time recurs, or if the sentence is about the past."""
    options, is_ahead = mention.rule.options, "ahead" in kinds
    if not kinds.isdisjoint({"recurs", "past"}) or (options.get("ahead") and not is_ahead):
        return None
    is_date = options["until"] in _DATES
    if not is_ahead and is_date and _is_day_of_writing(mention.until, written, mention.before):
        return None
    return Expiry(mention.start, mention.end, mention.until, mention.rule.weight * (1.0 if is_ahead else 0.9))


_DATES = ("calendar", "digits")
_HEADING = re.compile(r"(?:\A|\n)#{1,6} [^\n]*\Z|\A[^\n]*\([^()\n]*\Z")


def _is_day_of_writing(day: date, written: date, before: str) -> bool:
    """Return True for a date in brackets or a heading that is the day of writing, perhaps in another time zone.

    >>> _is_day_of_writing(date(2026, 3, 22), date(2026, 3, 21), "## Update 1:16 AM CST (")
    True
    """
    return abs((day - written).days) <= 1 and _HEADING.search(before) is not None


def _is_quoted(before: str) -> bool:
    """Return True if a quotation, such as a title, was opened after other words and is not closed yet."""
    opened = before.rfind('"') if before.count('"') % 2 else max(map(before.rfind, _OPENING_MARKS))
    return opened > 0 and not any(mark in before[opened + 1 :] for mark in _CLOSING_MARKS)


def _is_subject(text: str, passed: Sequence[Expiry]) -> bool:
    """Return True if the first statement of a text has a time that passed, such as a heading, or if most have one."""
    ends = [*(match.start() for match in _STATEMENT_END.finditer(text.rstrip())), len(text.rstrip())]
    with_time = [
        any(start <= expiry.start < end for expiry in passed)
        for start, end in zip([0, *ends], ends, strict=False)
        if end - start > _MAX_FRAGMENT_CHARS
    ]
    return not with_time or any(with_time[:1]) or 2 * sum(with_time) > len(with_time)


def _sentence(before: str, found: str, after: str) -> str:
    start = max(before.rfind(mark) for mark in _SENTENCE_MARKS) + 1
    ends = [end for mark in _SENTENCE_MARKS if (end := after.find(mark)) >= 0]
    return before[start:] + found + after[: min(ends, default=len(after))]
