"""Values that a plan would lose: those that a memory holds now and none would hold afterwards.

A value is a number, a date, a time, an amount, a name, an address or a quotation. A text holds it if it has all of its
words, in any spelling: 3410 g is 3,410 g, 3:26 is 03:26, and 5 May 2024 is 2024-05-05. Words are those that the audit
compares (`memframe.audit.tokenize`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray
from rapidfuzz.distance import OSA

from memframe.audit.junk import find_junk
from memframe.audit.lexicon import (
    CALENDAR,
    LIGHT,
    MONTHS,
    UNITS,
    class_of,
    is_known,
    is_name,
    is_number,
    is_slip,
)
from memframe.audit.text import MAX_CHARACTERS, first_characters, text_column
from memframe.audit.tokenize import Words, words_of
from memframe.fields import TEXT_FIELDS
from memframe.plan.change import WRITES, Change, Value
from memframe.secret import MASK

Held = dict[str, int]
"""Number of texts outside a plan that hold a value, by its key."""


class Loss(Struct, frozen=True):
    """A value that no memory would hold any more.

    Attributes
    ----------
    value : str
        The value as written; masked if the plan hides it.
    kind : {"number", "date", "time", "amount", "name", "address", "quote"}
    field : {"title", "summary", "content"}
    id : str
        Id of the memory that holds it.
    """

    value: str
    kind: str
    field: str
    id: str


class Stated(NamedTuple):
    """A value in a text that a plan changes or deletes."""

    change: Change
    field: str
    text: str
    kind: str
    words: tuple[str, ...]
    ends_text: bool

    @property
    def key(self) -> str:
        """Key of the value, which is the same for all its spellings."""
        return " ".join(sorted({class_of(word) for word in self.words}))


# ---- values of a text

_NUMBER = r"\d{1,30}(?:[.,'\u2019\u00a0\u202f]\d{1,12}){0,8}"
_MONTH = (
    f"(?:{'|'.join(sorted((name for name in MONTHS if len(name) > 2), key=len, reverse=True))})" + r"\b\.?"
)
_UNIT = f"(?:{'|'.join(sorted(filter(str.isalpha, UNITS), key=len, reverse=True))})" + r"\b"
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.)?(?!\d)"
_YEAR = r"(?:,?\s\d{4}(?!\d))"
_CAPITAL = r"(?-i:[^\W\d_a-z][^\W\d_]{0,40})"
_OF = "de|van|von|der|la|di|da|al"
_STREET = "street|st|road|rd|avenue|ave|lane|drive|square|boulevard|way"
_ADDRESS = [
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}",
    r"(?:https?://|www\.)[^\s<>\"'()\[\]]{1,400}",
    r"(?<!\w)@\w{2,40}",
]
_STARTING = "|".join(
    [
        rf"(?P<place>\b\d{{1,5}}[a-z]? (?:{_CAPITAL} ){{1,3}}(?:{_STREET})\b",
        rf"\b{_CAPITAL}(?:stra(?:ss|\u00df)e|str\.|weg|gasse|platz|allee) \d{{1,5}}[a-z]?\b)",
        r"(?P<quote>\"[^\"\n]{2,80}\"|\u201c[^\u201d\n]{2,80}\u201d|\u201e[^\u201c\n]{2,80}\u201c",
        r"\u00ab[^\u00bb\n]{2,80}\u00bb|(?<!\w)['\u2018](?=\w)[^'\u2019\n]{2,60}['\u2019](?!\w))",
        r"(?P<date>\b\d{4}-\d{1,2}(?:-\d{1,2})?(?!\d)|\b\d{1,2}(?P<sep>[./-])\d{1,2}(?P=sep)\d{2,4}\b",
        rf"\b{_DAY} (?:of |de )?{_MONTH}{_YEAR}?|\b{_MONTH} {_DAY}{_YEAR}?|\b{_MONTH}{_YEAR})",
        r"(?P<time>(?<![\d:])\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:\s?[ap]\.?m\b\.?)?|\b\d{1,2}\s?[ap]\.?m\b\.?)",
        rf"(?P<amount>[$\u20ac\u00a3\u00a5]\s?{_NUMBER}(?:(?:k|m|bn)\b)?",
        rf"{_NUMBER}\s?(?:[%\u20ac\u00a3$\u00a5]|{_UNIT}))",
        rf"(?P<number>{_NUMBER})",
        rf"(?P<name>(?<![^\W\d_]){_CAPITAL}(?:[ '\u2019-](?:(?:{_OF}) ){{0,2}}{_CAPITAL}){{0,5}})",
    ]
)
_VALUES = re.compile(rf"(?-i:(?=[^a-z\s,.!?]))(?:{_STARTING})", re.IGNORECASE)
"""Values in a text. The widest pattern comes first, so that the numbers of a date are no separate values. No
value begins with a small letter from a to z, except for an address."""
_VALUES_AND_ADDRESSES = re.compile(rf"(?P<address>{'|'.join(_ADDRESS)})|{_STARTING}", re.IGNORECASE)

_TITLES = ("Dr", "Mr", "Mrs", "Ms", "Prof", "St", "Sr", "Sra", "Hr", "Fr", "Mme", "[A-Z]")
_NO_END = "".join(rf"(?<!\b{title})" for title in _TITLES)
_BEGINS = re.compile(rf"(?:^|{_NO_END}\.\s*|[!?:;\n\u2026\u2013\u2014-]\s*|[\"'\u201c\u00ab(\[*#>]\s*)$")
"""Places at which any word has a capital; after a title («Dr.») or an initial, the next one is a name."""
_REDACTED = re.compile(r"\[redacted: [^\]\n]{1,60}\]")
_WORD = re.compile(r"[^\W\d_]+")


def find_values(text: str, *, is_title: bool = False) -> Iterator[tuple[int, int, str]]:
    """Find the values of a text: where each begins and ends, and its kind.

    >>> text = "Yesterday Maria Lopez paid $1,250 for 'Blue Nights', 5 May 2024."
    >>> [(kind, text[start:end]) for start, end, kind in find_values(text)]
    [('name', 'Maria Lopez'), ('amount', '$1,250'), ('quote', "'Blue Nights'"), ('date', '5 May 2024')]
    """
    has_addresses = "@" in text or "://" in text or "www." in text
    for found in (_VALUES_AND_ADDRESSES if has_addresses else _VALUES).finditer(text[:MAX_CHARACTERS]):
        start, end, kind = found.start(), found.end(), str(found.lastgroup)
        kind = "address" if kind == "place" else kind
        if kind != "name":
            yield start, end, kind
            continue
        is_first = bool(_BEGINS.search(text[max(0, start - 8) : start]))
        words = [word for word in _WORD.finditer(found[0]) if word[0][0].isupper()]
        while words and _is_no_name(words[0][0], is_first=is_first):
            words, is_first = words[1:], is_title
        while words and _is_no_name(words[-1][0], is_first=is_title):
            words.pop()
        if words:
            yield start + words[0].start(), start + words[-1].end(), kind


def _is_no_name(word: str, *, is_first: bool) -> bool:
    """Return True for a word of the calendar, one without meaning, or one with a capital only because of its place."""
    plain = word.lower()
    return len(plain) < 2 or plain in LIGHT or plain in CALENDAR or (is_first and not is_name(plain))


def _find_redacted(before: str, after: str) -> list[tuple[int, int]]:
    """Find the spans that marks of a redaction have replaced; none if anything else was changed.

    >>> _find_redacted("PIN 4711, call Ada", "PIN [redacted: pin], call Ada")
    [(4, 8)]
    """
    spans = []
    first, *parts = _REDACTED.split(after)
    if not before.startswith(first):
        return []
    place = len(first)
    for part in parts:
        end = before.find(part, place) if part else len(before)
        if end < 0:
            return []
        spans.append((place, end))
        place = end + len(part)
    return spans


def count_redactions(value: Value) -> int:
    """Count the marks that a redaction leaves in a text, or in tags.

    >>> count_redactions("PIN [redacted: pin]"), count_redactions(None)
    (1, 0)
    """
    match value:
        case str():
            return len(_REDACTED.findall(value))
        case tuple():
            return sum(len(_REDACTED.findall(name)) for name in value)
        case _:
            return 0


def _read_words(texts: pa.Array) -> Words:
    """Split texts into words; the ``T`` between a date and its time separates them."""
    return words_of(pc.replace_substring_regex(texts, r"(\d-\d{1,2})[Tt](\d)", r"\1 \2"))


# ---- values of a plan


def read_values(records: Iterable[Change]) -> list[Stated]:
    """Read the values of all texts that a plan changes or deletes, but for those that it redacts on purpose."""
    found, spans, texts = [], [], dict[str, int]()
    for change in records:
        if change.action not in WRITES:
            continue
        for field in TEXT_FIELDS:
            text = change.before.get(field)
            if not isinstance(text, str) or (change.after.get(field) == text):
                continue
            redacted = _find_redacted(text, str(change.after.get(field) or ""))
            redacted += [(mark.start(), mark.end()) for mark in _REDACTED.finditer(text)]
            for start, end, kind in find_values(text, is_title=field == "title"):
                if not any(begin < end and start < stop for begin, stop in redacted):
                    found.append((change, field, text, kind, start, end))
                    spans.append(text[start:end])
                    texts.setdefault(text, len(texts))
    words = _read_words(pa.array([*spans, *texts], pa.large_string()))
    classes = [{*words.class_ids_of(len(spans) + place).tolist()} for place in range(len(texts))]
    stated = []
    for number, (change, field, text, kind, start, end) in enumerate(found):
        pairs = zip(words.of(number), words.class_ids_of(number).tolist(), strict=True)
        inside = classes[texts[text]]  # a word alone may be read differently from the same word in its text
        chosen = tuple(word for word, place in pairs if place in inside and _carries(word, kind))
        if chosen:
            stated.append(Stated(change, field, text[start:end], kind, chosen, not text[end:].strip(" .")))
    return stated


def _carries(word: str, kind: str) -> bool:
    """Return True for a word without which a value of this kind would be another value."""
    if kind in ("name", "quote", "address"):
        return word not in LIGHT
    return class_of(word)[0].isdigit() or class_of(word)[0] == "="


def known_texts(records: Iterable[Change]) -> dict[tuple[str, str], str]:
    """Return the texts that a plan changes, deletes or depends on, by memory and field."""
    texts: dict[tuple[str, str], str] = {}
    for change in records:
        states = {change.id or "": change.before, **change.depends_on} if change.action in WRITES else {}
        for memory_id, fields in states.items():
            for name in TEXT_FIELDS:
                if isinstance(text := fields.get(name), str):
                    texts[memory_id, name] = text
    return texts


def find_keys(records: Iterable[Change]) -> set[str]:
    """Find the keys of the values that a plan changes, deletes or depends on."""
    texts = known_texts(records).items()
    states = [Change(action="delete", id=one, before={name: text}) for (one, name), text in texts]
    return {value.key for value in read_values(states)}


def texts_besides(memories: pd.DataFrame, records: Sequence[Change]) -> pa.Array:
    """Return the texts of memories that a plan neither changes nor deletes, nor depends on."""
    deleted = [change.id for change in records if change.action == "delete"]
    known: defaultdict[str, list[str | None]] = defaultdict(lambda: [*deleted])
    for memory_id, name in known_texts(records):
        known[name].append(memory_id)
    for change in records:
        for name in change.after if change.action == "patch" else ():
            known[name].append(change.id)
    parts = []
    for name in TEXT_FIELDS:
        is_other = ~memories["id"].isin(known[name]).to_numpy()
        parts.append(first_characters(text_column(memories, name).filter(pa.array(is_other)).drop_null()))
    return pa.concat_arrays(parts)


class Holders:
    """An index of texts by the values that they hold; their words are read once.

    >>> holders = Holders(pa.array(["It weighs 3,410 g", "3410 tons", "Maria"]))
    >>> holders.find("3410 =gram").tolist(), holders.find("maria").tolist()
    ([0], [2])
    """

    def __init__(self, texts: pa.Array) -> None:
        self._words = _read_words(texts)
        order = np.argsort(self._words.class_ids, kind="stable")
        self._rows = self._words.rows()[order]
        numbers = np.arange(len(self._words.classes) + 1)
        self._starts = np.searchsorted(self._words.class_ids[order], numbers)
        self._number_of = {name: number for number, name in enumerate(self._words.classes)}

    def find(self, key: str) -> NDArray[np.int64]:
        """Return the positions of the texts that hold a value, in order."""
        names = key.split(" ")
        numbers = [self._number_of.get(name) for name in names]
        rows: NDArray[np.int64] | None = None
        for number in numbers:
            if number is None:
                return np.empty(0, np.int64)
            with_word = np.unique(self._rows[self._starts[number] : self._starts[number + 1]])
            rows = with_word if rows is None else np.intersect1d(rows, with_word, assume_unique=True)
        if rows is None:
            return np.empty(0, np.int64)
        if len(names) == 1:
            return rows
        return rows[[_stand_together({*names}, self._values_of(row, names)) for row in rows.tolist()]]

    def _values_of(self, row: int, needed: Collection[str]) -> list[str]:
        names = (self._words.classes[number] for number in self._words.class_ids_of(row).tolist())
        return [name for name in names if name not in _ORDINALS and (name not in LIGHT or name in needed)]


def count_holders(keys: Collection[str], texts: Sequence[str] | pa.Array) -> Held:
    """Count the texts that hold each value.

    >>> count_holders(["3410 =gram", "maria"], ["It weighs 3,410 g", "3410 tons", "Maria"])
    {'3410 =gram': 1, 'maria': 1}
    """
    if not keys or not len(texts):
        return {}
    distinct = pc.value_counts(texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string()))
    holders = Holders(distinct.field("values"))
    n_times = distinct.field("counts").to_numpy()
    counts = {key: int(n_times[holders.find(key)].sum()) for key in keys}
    return {key: n for key, n in counts.items() if n}


_ORDINALS = frozenset({"st", "nd", "rd", "th"})
"""Endings of the number of a day."""

_MAX_BETWEEN = 2
"""Words that may stand between those of a name or a quotation; between those of a date or an amount there are none."""


def _stand_together(names: Collection[str], words: Sequence[str]) -> bool:
    """Return True if a text has all of some words in one place.

    >>> _stand_together({"5", "=euro"}, ["for", "=euro", "5"]), _stand_together({"5", "=euro"}, ["5", "cup", "=euro"])
    (True, False)
    """
    is_numeric = all(name[0].isdigit() or name[0] == "=" for name in names)
    width = len(names) + (0 if is_numeric else _MAX_BETWEEN)
    places = [place for place, word in enumerate(words) if word in names]
    return any(not ({*names} - {*words[place : place + width]}) for place in places)


class MemoryValues:
    """The values of memories, and the memories that hold them; they are read when asked for, and then cached.

    Parameters
    ----------
    memories : DataFrame
        Memories of one user, each once.
    """

    def __init__(self, memories: pd.DataFrame) -> None:
        self._place_of = {memory_id: place for place, memory_id in enumerate(memories["id"].tolist())}
        self._columns = {name: memories[name].tolist() for name in TEXT_FIELDS if name in memories.columns}
        self._keys: dict[str, frozenset[str]] = {}
        self._known: dict[str, frozenset[int]] = {}

    @cached_property
    def _holders(self) -> tuple[Holders, list[int]]:
        places, texts = [], []
        for column in self._columns.values():
            for place, text in enumerate(column):
                if isinstance(text, str):
                    places.append(place)
                    texts.append(text[:MAX_CHARACTERS])
        return Holders(pa.array(texts, pa.large_string())), places

    def texts_of(self, memory_id: str) -> dict[str, Value]:
        """Return the texts of a memory by field."""
        place = self._place_of.get(memory_id)
        if place is None:
            return {}
        cells = ((name, column[place]) for name, column in self._columns.items())
        return {name: cell for name, cell in cells if isinstance(cell, str)}

    def keys_of(self, ids: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return the keys of the values in memories."""
        chosen = list(ids)
        unread = [memory_id for memory_id in chosen if memory_id not in self._keys]
        keys: defaultdict[str, set[str]] = defaultdict(set)
        for value in read_values(
            Change(action="delete", id=memory_id, before=self.texts_of(memory_id)) for memory_id in unread
        ):
            keys[str(value.change.id)].add(value.key)
        self._keys |= {memory_id: frozenset(keys[memory_id]) for memory_id in unread}
        return {memory_id: self._keys[memory_id] for memory_id in chosen}

    def holders(self, key: str) -> frozenset[int]:
        """Return the positions of the memories that hold a value."""
        if key not in self._known:
            holders, places = self._holders
            self._known[key] = frozenset(places[text] for text in holders.find(key).tolist())
        return self._known[key]


def _texts_after(records: Iterable[Change]) -> list[str]:
    """Return the texts that a plan writes, and those that it depends on."""
    texts: dict[str, None] = {}
    for change in records:
        sides = [change.plain, *change.depends_on.values()] if change.action in WRITES else []
        texts |= dict.fromkeys(
            text for fields in sides for field in TEXT_FIELDS if isinstance(text := fields.get(field), str)
        )
    return list(texts)


def find_losses(records: Sequence[Change], held: Mapping[str, int]) -> dict[str, Loss]:
    """Find the values that the memories of a plan hold now, and no memory would hold after it, each once, by its key.

    ``held`` has the values of memories that the plan leaves alone.
    """
    stated: defaultdict[str, list[Stated]] = defaultdict(list)
    for value in read_values(records):
        if not held.get(value.key):
            stated[value.key].append(value)
    kept = count_holders(stated, _texts_after(records))
    lost = {key: values for key, values in stated.items() if key not in kept}
    worthless = _find_worthless(
        {one.change.id: one.change for values in lost.values() for one in values}.values()
    )
    losses = {}
    for key, values in lost.items():
        for value in values:  # one memory may lose it on purpose, and another by the way
            if not (value.change.id in worthless or _is_respelled(value) or _is_redacted(value)):
                losses[key] = Loss(_show(value), value.kind, value.field, str(value.change.id))
                break
    return losses


def _is_respelled(value: Stated) -> bool:
    """Return True if a text that stays has the same value without a typing error, or not cut off at its end.

    A name that is known to be right has no typing error, and none is corrected by a name that stood beside it.
    """
    change = value.change
    after = change.after.get(value.field)
    others = [*change.keeps.values(), *([after] if isinstance(after, str) else [])]
    if value.kind not in ("name", "quote") or not others:
        return False
    kept, own = _count_words(tuple(others)), _count_words((str(change.before[value.field]),))
    classes = {class_of(word) for word in kept}
    missing = [word for word in value.words if class_of(word) not in classes]
    is_cut_off = bool(change.keeps) and value.ends_text and len(missing) == 1
    is_long = value.kind == "quote" and len(missing) * 3 <= len(value.words)
    return "".join(value.words) in kept or all(
        any(
            (
                kept[other] > own[other]
                and not (value.kind == "name" and is_known(word))
                and is_slip(word, 1, other, 1)
            )
            or (is_cut_off and other.startswith(word))
            or (is_long and not is_number(word) and OSA.distance(word, other, score_cutoff=1) <= 1)
            for other in kept
        )
        for word in missing
    )


@lru_cache(maxsize=1_000)
def _count_words(texts: tuple[str, ...]) -> Counter[str]:
    """Count the words of texts; a review asks for the same ones at each key."""
    words = words_of(pa.array(texts))
    return Counter(word for number in range(len(texts)) for word in words.of(number))


def _is_redacted(value: Stated) -> bool:
    """Return True for a secret that a plan removes from a text that stays."""
    change = value.change
    return _is_hidden(value) and (
        change.action != "delete" or any(map(_REDACTED.search, change.keeps.values()))
    )


def _show(value: Stated) -> str:
    return MASK if _is_hidden(value) else value.text


def _is_hidden(value: Stated) -> bool:
    """Return True if a plan hides the value, a part of it, or a text around it."""
    return any(value.text in secret or secret in value.text for secret in filter(None, value.change.hidden))


def _find_worthless(changes: Iterable[Change]) -> set[str | None]:
    """Find deletes of memories that rules recognise as junk, such as a heartbeat with its time."""
    deletes = [change for change in changes if change.action == "delete" and not change.keeps]
    if not deletes:
        return set()
    texts = {name: [change.before.get(name) for change in deletes] for name in (*TEXT_FIELDS, "tags")}
    frame = pd.DataFrame({"id": [change.id for change in deletes], **texts})
    junk = find_junk(frame)
    return {*junk["id"][junk["action"] == "delete"]}
