"""Stale memories: what was to come when they were written has passed, or nobody has touched them for years."""

from __future__ import annotations

from collections import defaultdict
from datetime import date

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.findings import findings_frame, joined
from memframe.audit.language.timewords import RULES, Expiry, Rule, expiries
from memframe.audit.text import first_characters, text_column


def find_stale(memories: pd.DataFrame, *, now: pd.Timestamp, old_after_days: float = 730.0) -> pd.DataFrame:
    """Memories that speak of a time to come which has passed, and apart from them those that nobody has changed.

    Kind ``expired``: an expression of time that lay ahead when the memory was created («tomorrow», «next week», «on
    Friday», «until March 2022», a day of the calendar) and is over now; ``start`` and ``end`` say where it stands,
    ``evidence`` which day it meant. Dates that begin something («from 1 May»), recur («every Friday», birthdays) or are
    told of as past are left alone. Expressions are understood in English, weekdays, months, «tomorrow» and a few
    others also in German, French and Spanish; of «5/6/2024» the later one of the two days counts. Titles and sayings
    between quotation marks are left alone. The time of day and the zone in which somebody said «today» are not known:
    it counts in UTC. It does not see that an event without any date is over.

    Kind ``never_updated``: older than ``old_after_days`` and as it was written. That is no fault, and proposes nothing:
    an audit has their number alone.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content or ``created_at`` are left out.
    now : Timestamp
        The moment from which to look; without a zone it is UTC.
    old_after_days : float
        From which age on a memory that was never changed is named, in days.

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
    return joined([_expired(memories, now), _never_updated(memories, now, old_after_days)])


def _expired(memories: pd.DataFrame, now: pd.Timestamp) -> pd.DataFrame:
    today = now.date()
    written, contents = (
        memories["created_at"].dt.date.tolist(),
        first_characters(text_column(memories, "content")).to_pylist(),
    )
    found: list[tuple[int, Expiry]] = []
    for row, rules in _rules_by_row(memories).items():
        passed = [expiry for expiry in expiries(contents[row], written[row], rules) if expiry.until < today]
        if passed:
            found.append((row, max(passed, key=lambda expiry: (expiry.score, -expiry.start, expiry.end))))
    return findings_frame(
        check="stale",
        kind="expired",
        severity="low",
        id=memories["id"].iloc[[row for row, _ in found]].tolist(),
        field="content",
        start=[expiry.start for _, expiry in found],
        end=[expiry.end for _, expiry in found],
        score=[expiry.score for _, expiry in found],
        evidence=[_told(contents[row], expiry, today) for row, expiry in found],
        action="review",
    )


def _rules_by_row(memories: pd.DataFrame) -> dict[int, list[Rule]]:
    """The rules that may find something, for the rows in which any does; RE2 looks a column at a time."""
    content = first_characters(text_column(memories, "content"))
    dated = memories["created_at"].notna().to_numpy()
    by_row: dict[int, list[Rule]] = defaultdict(list)
    for rule in RULES:
        speaks = pc.fill_null(pc.match_substring_regex(content, rule.core), False).to_numpy(
            zero_copy_only=False
        )
        for row in np.flatnonzero(speaks & dated).tolist():
            by_row[row].append(rule)
    return dict(sorted(by_row.items()))


def _told(text: str, expiry: Expiry, today: date) -> str:
    days = (today - expiry.until).days
    ago = (
        f"{days} days ago"
        if days < 60
        else f"{days // 30} months ago"
        if days < 730
        else f"{days // 365} years ago"
    )
    return f"«{text[expiry.start : expiry.end]}» passed {ago} ({expiry.until.isoformat()})"


def _never_updated(memories: pd.DataFrame, now: pd.Timestamp, old_after_days: float) -> pd.DataFrame:
    """Memories that are older than that and as they were written; a second of difference is the service's."""
    readable = memories["content"].notna().to_numpy()
    age = (now - memories["created_at"]).dt.total_seconds().to_numpy() / 86_400
    touched = (memories["updated_at"] - memories["created_at"]).dt.total_seconds().to_numpy() > 1
    rows = np.flatnonzero(readable & (age > old_after_days) & ~touched)
    years: NDArray[np.float64] = age[rows] / 365.25
    return findings_frame(
        check="stale",
        kind="never_updated",
        severity="info",
        id=memories["id"].iloc[rows].tolist(),
        score=np.minimum(1.0, years / 10).tolist(),
        evidence=f"older than {old_after_days:,.0f} days and never changed",
        action="none",
    )
