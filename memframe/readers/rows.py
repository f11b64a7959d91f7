"""Build the frame of what a reader yields: texts, tags and times as `load_memories` has them, and what was left out."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from memframe.display import number_of
from memframe.errors import ConfigError, FrameError
from memframe.fields import MEMORY_FIELDS, TIME_FIELDS
from memframe.frames import MEMORY_KINDS, READ, TEXT, FrameBuilder, replace_surrogates, to_encodable
from memframe.readers.source import Damage
from memframe.wire import MAX_TAG_CHARS, MAX_TAGS

MAX_COLUMNS = 200
"""Columns beside those of a memory."""

_TEXTS = (*(field.name for field in MEMORY_FIELDS if field.is_editable and field.kind == "text"), "origin_id")
_SCORES = tuple(field.name for field in MEMORY_FIELDS if field.kind == "number")
_COLUMNS = (*_TEXTS, *TIME_FIELDS, *_SCORES, "tags")
_OWN = frozenset([*MEMORY_KINDS, "origin_id"])


Item = dict[str, Any]
"""One memory as a reader yields it: cells of `_COLUMNS`, and further ones, which are kept as text.

Tags are a list of names, or one text of names with commas between; times may be text, of which a day alone is its
midnight. A memory without a content is left out.
"""

Items = Iterator[tuple[str, Any]]
"""Places for messages, and what is there: an `Item`, a `Damage`, or anything else that is no memory."""


def read_zone(zone: str | tzinfo | None) -> tzinfo | None:
    """Return the zone of times that name none.

    >>> read_zone("Europe/Paris")
    zoneinfo.ZoneInfo(key='Europe/Paris')
    """
    if zone is None or isinstance(zone, tzinfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (LookupError, ValueError, OSError, TypeError, AttributeError):
        raise ConfigError(f"zone={zone!r:.60}: give a name such as 'Europe/Paris' or 'UTC'") from None


class Collector:
    """Collect entries, and build their frame; without a ``zone``, a time that names none is an error."""

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._columns: dict[str, list[Any]] = {name: [] for name in [*MEMORY_KINDS, "origin_id"]}
        self._n_rows = self._n_days = self.n_tags_cut = 0
        self.left_out: Counter[str] = Counter()
        self._first_place: dict[str, str] = {}

    def take(self, items: Iterable[tuple[str, Item | Damage]]) -> int:
        """Collect what a reader yields, with its places, and return the number of entries."""
        n_entries = 0
        for place, item in items:
            if isinstance(item, Damage):
                n_entries += item.is_entry
                self._leave_out(place, item.reason)
            else:
                n_entries += 1
                self._add(place, item)
        return n_entries

    def _leave_out(self, place: str, reason: str) -> None:
        self.left_out[reason] += 1
        self._first_place.setdefault(reason, place)

    def _add(self, place: str, item: Item) -> None:
        cells: Item = {name: text_of(item.get(name)) for name in _TEXTS}
        if not (cells["content"] or "").strip():
            self._leave_out(place, "without a text")
            return
        cells |= {name: self._time(item.get(name), f"{name} in {place}") for name in TIME_FIELDS}
        cells |= {"tags": self._tags(item.get("tags", ())), "tag_ids": ()}
        for name in _SCORES:
            value = item.get(name)
            is_flag = isinstance(value, bool)
            cells[name] = float(value) if isinstance(value, int | float) and not is_flag else None
        extra = {f"origin_{key}" if key in _OWN else key: item[key] for key in item if key not in _COLUMNS}
        cells |= {to_encodable(key): text for key, value in extra.items() if (text := text_of(value))}
        for key in cells:
            if key not in self._columns:
                self._columns[key] = [None] * self._n_rows
        for key, column in self._columns.items():
            column.append(cells.get(key))
        self._n_rows += 1
        if len(self._columns) > MAX_COLUMNS + len(_OWN):
            raise FrameError(
                f"There are more than {MAX_COLUMNS} columns at {place}: choose some, with pandas."
            )

    def _time(self, value: Any, place: str) -> str | None:
        if value is None or value == "":
            return None
        moment = value if isinstance(value, datetime) else read_time(value)
        if moment is None:
            raise FrameError(f"{place} is not a time in ISO 8601: correct it, or leave it out.")
        is_day = isinstance(value, str) and len(value.strip()) <= len("2024-05-01")
        if moment.tzinfo is None:
            self._n_days += is_day
            zone = self._zone or (UTC if is_day else None)
            if zone is None:
                raise FrameError(
                    f"{place} is a time without a zone: pass the zone in which it was written, such as "
                    "zone='Europe/Paris' or zone='UTC' (--zone on the command line)."
                )
            moment = moment.replace(tzinfo=zone)
        try:
            return moment.astimezone(UTC).isoformat()
        except OverflowError:
            raise FrameError(f"{place} is out of the range of times: correct it, or leave it out.") from None

    def _tags(self, value: Any) -> tuple[str, ...]:
        value = value.split(",") if isinstance(value, str) else value
        given = value if isinstance(value, list | tuple) else [value]
        texts = [text.strip() for text in map(text_of, given) if text and text.strip()]
        names = [part.strip()[:MAX_TAG_CHARS].strip() for text in texts for part in text.split(",")]
        unique = tuple(dict.fromkeys(filter(None, names)))[:MAX_TAGS]
        self.n_tags_cut += len({*texts} - {*unique})
        return unique

    def frame(self, form: str, note: str, unread: int) -> pd.DataFrame:
        """Build the frame, with the report in ``attrs``."""
        columns = replace_surrogates(self._columns)
        builder = FrameBuilder({name: MEMORY_KINDS.get(name, TEXT) for name in columns})
        builder.add(columns)
        frame = builder.frame()
        frame.attrs[READ] = self._report(form, note, unread, frame)
        return frame

    def _report(self, form: str, note: str, unread: int, frame: pd.DataFrame) -> dict[str, Any]:
        dated = frame["created_at"].dropna()
        report = {
            "format": form,
            "rows": self._n_rows,
            "left_out": dict(self.left_out),
            "times": {
                "from": dated.min().isoformat() if len(dated) else None,
                "to": dated.max().isoformat() if len(dated) else None,
                "missing": self._n_rows - len(dated),
                "days": self._n_days,
                "zone": None if self._zone is None else str(self._zone),
            },
            "tags_cut": self.n_tags_cut,
            "unread_files": unread,
        }
        return report | {"summary": " ".join(self._sentences(report, note))}

    def _sentences(self, report: Mapping[str, Any], note: str) -> Iterable[str]:
        yield f"{number_of(self._n_rows, 'memory', 'memories')} read as {report['format']}."
        if self.left_out:
            places = self._first_place
            parts = (f"{reason} ({n:,}, first at {places[reason]})" for reason, n in self.left_out.items())
            yield f"Left out: {'; '.join(parts)}."
        if self.n_tags_cut:
            yield f"Changed to what a service takes: {number_of(self.n_tags_cut, 'tag', 'tags')}."
        if report["unread_files"]:
            yield f"Not opened: {number_of(report['unread_files'], 'other file', 'other files')}."
        if note:
            yield note


def is_filled(value: Any) -> bool:
    """Return False for nothing: None, NaN, blanks, empty lists and objects."""
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    return value is not None and value == value and value not in ([], {}, ())


def text_of(value: Any) -> str | None:
    """Return a value as text, None for nothing; lists and objects as JSON.

    >>> text_of(" a "), text_of(3), text_of({"a": [1]}), text_of(float("nan")), text_of("")
    (' a ', '3', '{"a": [1]}', None, None)
    """
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str) if value else None
    return str(value)


def read_time(value: Any) -> datetime | None:
    """Return a time in ISO 8601; None for what is none.

    >>> read_time("2024-05-01T12:00:00.123456789Z"), read_time("yesterday"), read_time(17)
    (datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=datetime.timezone.utc), None, None)
    """
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None


def from_seconds(value: Any) -> Any:
    """Return the time of a number of seconds since 1970; anything else unchanged, to be refused with its place."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        return str(value)
