"""Build a frame from the entries of a reader, in the columns of `load_memories`, and count what is left out."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from memframe.archive.bounds import MAX_RATIO, TABLE_BYTES
from memframe.audit.declared import declared_outdated
from memframe.display import number_of, printable
from memframe.errors import ConfigError, FrameError
from memframe.fields import MEMORY_FIELDS, TIME_FIELDS
from memframe.frames import (
    MEMORY_KINDS,
    READ,
    TEXT,
    FrameBuilder,
    read_moment,
    replace_surrogates,
    to_encodable,
)
from memframe.readers.places import Position, lines_of, position_of
from memframe.readers.source import Damage, Input
from memframe.wire import MAX_TAG_CHARS, MAX_TAGS

MAX_COLUMNS = 200
"""Most columns in addition to those of a memory."""

_TEXTS = (
    *(field.name for field in MEMORY_FIELDS if field.is_editable and field.kind == "text"),
    "origin_id",
    "entity",
)
_SCORES = tuple(field.name for field in MEMORY_FIELDS if field.kind == "number")
_COLUMNS = (*_TEXTS, *TIME_FIELDS, *_SCORES, "tags")
_FIRST = (*MEMORY_KINDS, "origin_id", "entity", "place", "file", "outdated")
"""Columns of every frame; ``entity`` is a subject that the text does not name, ``place`` the place in the file."""
_OWN = frozenset([*_FIRST, "line"])

_VECTOR_LENGTH = 32
"""Fewest numbers in a list that counts as an embedding."""

TIME_NAMES: Mapping[str, Sequence[str]] = {
    "created_at": (
        "created_at", "createdat", "created", "timestamp", "ts", "time", "date", "added_at", "addedat", "date_added",
        "created_at_epoch", "created_at_iso",
    ),
    "updated_at": ("updated_at", "updatedat", "updated", "modified", "modified_at", "last_updated", "lastupdated"),
}  # fmt: skip
"""Columns of times, and names that people give them, the most frequent first."""

Item = dict[str, Any]
"""One memory as a reader yields it: cells of `_COLUMNS`, and further ones, which are kept as text.

Tags are a list of names, or one text of names with commas between; times may be text, in which a date alone means its
midnight. A memory without content is left out.
"""

Items = Iterator[tuple[str, Any]]
"""Places for messages, each with an `Item`, a `Damage`, or another value, which is not a memory."""


def read_zone(zone: str | tzinfo | None) -> tzinfo | None:
    """Return the zone for times that name none.

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
    """Collect entries, and build their frame; without a ``zone``, a time that names none is an error.

    ``now`` decides whether an end of validity that an entry states has passed.
    """

    def __init__(self, zone: tzinfo | None, now: datetime) -> None:
        self._zone, self._now = zone, now
        self._columns: dict[str, list[Any]] = {name: [] for name in _FIRST}
        self.places: list[Position] = []
        """Position of each row."""
        self._n_rows = self._n_days = self._n_unreadable = self.n_tags_cut = 0
        self._chars_left = 0
        """Number of characters that further rows may hold."""
        self._units: Counter[str] = Counter()
        """Number of times that were numbers, by unit."""
        self._vectors: Counter[str] = Counter()
        """Number of vectors, which are not kept, by key."""
        self.left_out: Counter[str] = Counter()
        """Number of entries that became no row, by reason."""
        self._first_place: dict[str, str] = {}
        """Place of the first entry with each reason."""

    def take(self, items: Iterable[tuple[str, Item | Damage]], n_chars: int) -> int:
        """Collect what a reader yields, with its places, and return the number of entries.

        ``n_chars`` is the size of the files; texts that a reader repeats in each row must not grow far beyond it.
        """
        self._chars_left = max(TABLE_BYTES, MAX_RATIO * n_chars)
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
        cells: Item = {name: as_text(item.get(name)) for name in _TEXTS}
        if not (cells["content"] or "").strip():
            self._leave_out(place, "without a text")
            return
        cells |= {name: self._time(item.get(name), f"{name} in {place}") for name in TIME_FIELDS}
        cells |= {"tags": self._tags(item.get("tags", ())), "tag_ids": (), "place": place}
        cells |= {name: read_number(item.get(name)) for name in _SCORES}
        others = (key for key in item if key not in _COLUMNS or (key in _SCORES and cells[key] is None))
        extra = {f"origin_{key}" if key in _OWN else key: item[key] for key in others}
        for key, value in extra.items():
            if _is_vector(value):
                self._vectors[printable(key)] += 1
            elif (text := as_text(value)) is not None:
                cells[to_encodable(key)] = text
        cells["outdated"] = declared_outdated(extra, self._now)
        given = {key.casefold().removeprefix("origin_") for key, value in extra.items() if is_filled(value)}
        self._n_unreadable += sum(
            cells[name] is None and bool(given & {*TIME_NAMES[name]}) for name in TIME_FIELDS
        )
        cells = {key: value for key, value in cells.items() if value is not None}
        self._chars_left -= sum(len(value) for value in cells.values() if isinstance(value, str))
        if self._chars_left < 0:
            raise FrameError(
                f"The memories up to {place} repeat a long text, such as the name of an entity, in each row: they take "
                f"more than {MAX_RATIO} times the size of the file. Shorten it."
            )
        for key in cells:
            if key not in self._columns:
                self._columns[key] = [None] * self._n_rows
        for key, column in self._columns.items():
            column.append(cells.get(key))
        self._n_rows += 1
        self.places.append(position_of({name: cells.get(name) for name in _TEXTS}))
        if len(self._columns) > MAX_COLUMNS + len(_OWN):
            raise FrameError(
                f"There are more than {MAX_COLUMNS} columns at {place}: choose some, with pandas."
            )

    def _time(self, value: Any, place: str) -> str | None:
        if value is None or value == "":
            return None
        moment, unit = read_moment(value)
        if moment is None:
            raise FrameError(f"{place} is not a time in ISO 8601: correct it, or leave it out.")
        if unit:
            self._units[unit] += 1
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
        value = _names_in(value) if isinstance(value, str) else value
        given = value if isinstance(value, list | tuple) else [value]
        texts = [text.strip() for text in map(as_text, given) if text and text.strip()]
        names = [part.strip()[:MAX_TAG_CHARS].strip() for text in texts for part in text.split(",")]
        unique = tuple(dict.fromkeys(filter(None, names)))[:MAX_TAGS]
        self.n_tags_cut += len({*texts} - {*unique})
        return unique

    def frame(
        self, form: str, note: str, source: Input, unread: Sequence[str], readable: Sequence[str]
    ) -> pd.DataFrame:
        """Build the frame, with the report in ``attrs``.

        ``unread`` names the documents of other formats, ``readable`` those of them that could be read separately.
        """
        if len(source.documents) == 1:
            name = source.documents[0].name
            self._columns["place"] = [
                None if place == name else place.removesuffix(f" of {name}")
                for place in self._columns["place"]
            ]
        else:
            names = {id(document.original): document.name for document in source.documents}
            self._columns["file"] = [
                place.original and names.get(id(place.original)) for place in self.places
            ]
        columns = replace_surrogates(self._columns)
        for name in _SCORES:
            columns[name] = _known_scores(columns[name], columns.get(f"origin_{name}", ()))
        builder = FrameBuilder({name: MEMORY_KINDS.get(name, TEXT) for name in columns})
        builder.add(columns)
        frame = builder.frame()
        lines = pd.Series(lines_of(self.places), dtype="Int64")
        frame.insert([*frame.columns].index("file") + 1, "line", lines)
        frame.attrs[READ] = self._report(form, note, source, unread, readable, frame)
        return frame

    def _report(
        self,
        form: str,
        note: str,
        source: Input,
        unread: Sequence[str],
        readable: Sequence[str],
        frame: pd.DataFrame,
    ) -> dict[str, Any]:
        report = {
            "format": form,
            "file": source.name,
            "rows": self._n_rows,
            "left_out": dict(self.left_out),
            "times": times_of(frame)
            | {
                "days": self._n_days,
                "zone": None if self._zone is None else str(self._zone),
                "numbers": dict(self._units),
                "unreadable": self._n_unreadable,
            },
            "outdated": int(frame["outdated"].notna().sum()),
            "not_kept": dict(self._vectors),
            "tags_cut": self.n_tags_cut,
            "unread_files": source.unread + len(unread),
        }
        n_broken = int(frame["content_error"].notna().sum())
        return report | {"summary": " ".join(self._sentences(report, note, readable, n_broken))}

    def _sentences(
        self, report: dict[str, Any], note: str, readable: Sequence[str], n_broken: int
    ) -> Iterator[str]:
        yield f"{number_of(self._n_rows, 'memory', 'memories')} read as {report['format']}."
        if self.left_out:
            places = self._first_place
            parts = (f"{reason} ({n:,}, first at {places[reason]})" for reason, n in self.left_out.items())
            yield f"Left out: {'; '.join(parts)}."
        yield from undated(report["times"]["missing"], self._n_rows)
        if self._units:
            units = (f"{number_of(n, 'time', 'times')} as {unit}" for unit, n in self._units.items())
            yield f"Numbers read as times: {', '.join(units)} since 1970."
        if self._vectors:
            kept = (f"{key} ({n:,})" for key, n in self._vectors.items())
            yield f"Lists of numbers that are not kept: {', '.join(kept)}."
        for what, n, noun in (
            (
                "Kept as text, as they are no times such as 2026-02-01",
                self._n_unreadable,
                ("value", "values"),
            ),
            ("Outdated, as their source says", report["outdated"], ("memory", "memories")),
            ("With half a character (a lone surrogate), shown as U+FFFD", n_broken, ("memory", "memories")),
            ("Changed to fit the limits of services", self.n_tags_cut, ("tag", "tags")),
        ):
            if n:
                yield f"{what}: {number_of(n, *noun)}."
        if readable:
            shown = ", ".join(readable[:3]) + (
                f" and {len(readable) - 3:,} more" if len(readable) > 3 else ""
            )
            yield f"Not read, because they have another format: {shown}. Read each separately."
        if n := report["unread_files"] - len(readable):
            yield f"Not opened: {number_of(n, 'other file', 'other files')}."
        if note:
            yield note


def times_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the first and the last time of a frame, and the number of its memories without one."""
    dated = frame["created_at"].dropna()
    return {
        "from": dated.min().isoformat() if len(dated) else None,
        "to": dated.max().isoformat() if len(dated) else None,
        "missing": len(frame) - len(dated),
    }


def undated(n: int, n_rows: int) -> Iterator[str]:
    """Say how many memories have no date, if any.

    >>> [*undated(0, 3), *undated(1, 3), *undated(3, 3)]
    ['1 of them has no date.', 'None of them has a date.']
    """
    if n:
        has = "has" if n == 1 else "have"
        yield "None of them has a date." if n == n_rows else f"{n:,} of them {has} no date."


def _known_scores(scores: Sequence[Any], given: Sequence[Any]) -> Sequence[Any]:
    """Fill scores with the values given for them if their scale is clear: all from 0 to 1, and not all whole."""
    values = [read_number(value) for value in given]
    known = [value for value in values if value is not None]
    is_given = any(value is not None for value in given)
    if not is_given or len(known) < sum(value is not None for value in given):
        return scores
    is_share = all(0 <= value <= 1 for value in known) and any(value % 1 for value in known)
    if not is_share:
        return scores
    return [old if old is not None else new for old, new in zip(scores, values, strict=True)]


def read_number(value: Any) -> float | None:
    """Read a number, also one in text; None for anything else."""
    try:
        number = None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return number if number is not None and math.isfinite(number) else None


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) >= _VECTOR_LENGTH
        and all(isinstance(number, int | float) for number in value)
    )


def is_filled(value: Any) -> bool:
    """Return False for None, NaN, blank text, and empty lists and objects."""
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    return value is not None and value == value and value not in ([], {}, ())


def as_text(value: Any) -> str | None:
    """Return a value as text, lists and objects as JSON; None for a missing or empty value.

    >>> as_text(" a "), as_text(3), as_text({"a": [1]}), as_text(float("nan")), as_text("")
    (' a ', '3', '{"a": [1]}', None, None)
    """
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str) if value else None
    return str(value)


def _names_in(text: str) -> list[Any]:
    """Return the names in a text that is a list in JSON, as in cells of CSV, or has commas between the names."""
    try:
        found = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, list) else text.split(",")


def read_time(value: Any) -> datetime | None:
    """Read a time in ISO 8601; None for anything else.

    >>> read_time("2024-05-01T12:00:00.123456789Z"), read_time("yesterday"), read_time(17)
    (datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=datetime.timezone.utc), None, None)
    """
    moment, unit = read_moment(value)
    return None if unit else moment
