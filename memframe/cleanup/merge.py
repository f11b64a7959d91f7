"""Merging: of memories that say the same, keep one, and give it what the others held.

Memories are not merged if one cannot hold all of it, such as a second source, a word of a title or a name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from rapidfuzz.distance import OSA

from memframe.audit.keeper import FILLED, oddness, precedence
from memframe.audit.lexicon import CALENDAR, CLASSES, LIGHT, class_of, is_number, is_slip, without_accents
from memframe.audit.similarity.cluster import Clusters
from memframe.audit.text import text_column
from memframe.audit.tokenize import words_of
from memframe.fields import MEMORY_FIELDS, TEXT_FIELDS
from memframe.frames import MEMORY_KINDS
from memframe.plan.cells import normalize
from memframe.plan.change import Fields, Value, same_value

Key = Hashable

_KEEP_BOTH, _JOINED = (
    tuple(field.name for field in MEMORY_FIELDS if field.is_editable and field.on_merge == on_merge)
    for on_merge in ("keep both", "join")
)

_LETTERS = re.compile(r"[^\W\d_]+")
_CAPITALISED = re.compile(r"(?<![^\W\d_])[^\W\d_a-z][^\W\d_]*")
"""Words of letters that do not begin with one of the small ones that are most frequent."""
_STARTS_SENTENCE = re.compile(r"(?:^|[.!?:;\n\u2026\u2013\u2014-]\s*|[\"'\u201c\u00ab(\[*#>]\s*)$")

_MAX_SLIPS = 30
"""Words of a text that may be slips, halves, or written apart: with more of them it is another text."""

_MAX_RUN = 8
"""Words that may be written together as one."""

_NAMES_TOO = frozenset({"will", "ella", "elle", "per", "das", "ai", "dal", "my"})
"""Words that mostly carry no value, and are names of people besides."""


class Statements(NamedTuple):
    """Statements of a text, or of some texts taken together."""

    words: tuple[str, ...]
    """In their order, without case and accents."""
    classes: frozenset[str]
    """Of the words that carry a value."""
    written: frozenset[str]
    """Words of letters alone, as they are written but for case and accents."""
    names: frozenset[str]
    """Those that are written like names."""
    first: frozenset[str]
    """Those with a capital that a sentence begins with, so that they may be names."""
    signs: frozenset[str]
    """Pictures and signs of mathematics."""
    last: frozenset[str]
    """The last word of each text."""

    @classmethod
    def of(cls, texts: Iterable[Statements]) -> Statements:
        """Join the statements of some texts."""
        texts = [text for text in texts if text.words or text.signs]
        if len(texts) == 1:
            return texts[0]
        words = tuple(word for text in texts for word in text.words)
        sets = (frozenset().union(*(text[place] for text in texts)) for place in range(1, len(cls._fields)))
        return cls(words, *sets)


class WordCounts:
    """Counts of words in all memories, and which ones occur in lower case; computed when needed."""

    def __init__(self, memories: pd.DataFrame) -> None:
        self._memories = memories

    @cached_property
    def n_times(self) -> dict[str, int]:
        """Count each word in the contents."""
        words = words_of(text_column(self._memories, "content"))
        counts = np.bincount(words.tokens, minlength=len(words.vocabulary)).tolist()
        return dict(zip(words.vocabulary, counts, strict=True))

    @cached_property
    def common(self) -> frozenset[str]:
        """Words that some memory writes in lower case within a sentence, and that are therefore no names."""
        words = set(_LETTERS.findall("\n".join(self._memories["content"].dropna())))
        return frozenset(_fold_word(word) for word in words if word[0].islower())


class StatementsByKey:
    """Statements of texts by key; each is computed only when it is asked for."""

    def __init__(self, texts: Mapping[Key, str]) -> None:
        self._texts = texts
        self._place = {key: place for place, key in enumerate(texts)}
        self._words = words_of(pa.array(list(texts.values()), pa.large_string()))
        self._n_heavy = self._words.n_of(self._words.heavy_classes())
        self._statements: dict[Key, Statements] = {}

    def n_values(self, key: Key) -> int:
        """Count the words of a text that carry a value."""
        return int(self._n_heavy[self._place[key]])

    def statements(self, key: Key) -> Statements:
        """Return the statements of a text."""
        if key not in self._statements:
            self._statements[key] = _read_statements(self._texts[key], self._words.of(self._place[key]))
        return self._statements[key]


def _read_statements(text: str, words: Sequence[str]) -> Statements:
    names: set[str] = set()
    first: set[str] = set()
    known = set(words)  # what wraps a text, such as "User said that", is not known
    for match in _CAPITALISED.finditer(text):
        word = _fold_word(match[0])
        if match[0][0].isupper() and word in known:
            is_first = _STARTS_SENTENCE.search(text[max(0, match.start() - 4) : match.start()])
            (first if is_first else names).add(word)
    letters = [_fold_word(word) for word in _LETTERS.findall(text)]
    return Statements(
        words=tuple(words),
        classes=frozenset([class_of(word) for word in known - LIGHT]),
        written=frozenset(known.union(letters)),
        names=frozenset([name for name in names if len(name) > 1 and name not in CLASSES]),
        first=frozenset([name for name in first if name not in CLASSES and name not in LIGHT - _NAMES_TOO]),
        signs=frozenset(c for c in text if c > "\x7f" and unicodedata.category(c) in {"So", "Sm"}),
        last=frozenset(letters[-1:]),
    )


@lru_cache(maxsize=1 << 16)
def _fold_word(word: str) -> str:
    return without_accents(unicodedata.normalize("NFKC", word).lower())


def find_lost(
    removed: Statements, kept: Statements, store: WordCounts, *, breaks_off: bool = False
) -> list[str]:
    """Find what one memory says that the others would not hold; not for display, as it may be a secret.

    A removed text that `breaks_off` is the beginning of one that is kept: its last word may be half a word.

    >>> texts = StatementsByKey({"m1": "Ada likes tea", "m2": "Ada from Leeds likes tea since 2019."})
    >>> tea, more = texts.statements("m1"), texts.statements("m2")
    >>> store = WordCounts(pd.DataFrame({"content": ["Ada likes tea", "Ada from Leeds likes tea"]}))
    >>> find_lost(tea, more, store), find_lost(more, tea, store)
    ([], ['leeds', '2019'])
    """
    capitals = (removed.names | removed.first) - kept.written
    values = [word for word in removed.words if word not in LIGHT and class_of(word) not in kept.classes]
    signs = removed.signs - kept.signs if kept.signs - removed.signs else frozenset[str]()
    if not (capitals or values or signs):
        return []
    if len(values) > _MAX_SLIPS:
        return values  # so many words are no slips, and comparing each with each would take long
    held = _find_joined(removed.words, kept.words)
    if breaks_off:
        held |= {word for word in removed.last if any(whole.startswith(word) for whole in kept.written)}
    # a word that begins a sentence is hardly a name if it occurs in lower case elsewhere
    sure = removed.names | _NAMES_TOO
    names = (word for word in capitals - held if word in sure or word not in store.common)
    others = dict.fromkeys(kept.words).keys() - removed.words
    words = (word for word in values if word not in held and not _is_slip(word, others, store))
    return list(dict.fromkeys([*sorted(names), *words, *sorted(signs)]))


def _is_slip(word: str, others: Iterable[str], store: WordCounts) -> bool:
    """Return True if a word is one of others with a typing error; a number never is."""
    if is_number(word) or word in CALENDAR:
        return False
    near = (other for other in others if OSA.distance(word, other, score_cutoff=2) <= 2)
    return any(
        is_slip(word, store.n_times.get(word, 1), other, store.n_times.get(other, 1)) for other in near
    )


def _find_joined(removed: Sequence[str], kept: Sequence[str]) -> set[str]:
    """Return words that are written as several there, and words of which several are written as one there.

    >>> sorted(_find_joined(["iban", "de89", "3704", "overnight"], ["iban", "de893704", "over", "night"]))
    ['3704', 'de89', 'overnight']
    """
    own, others = set(removed) - set(kept), set(kept) - set(removed)
    parts = _find_runs(removed, others).values()
    return {*_find_runs(kept, own), *(part for run in parts for part in run)}


def _find_runs(words: Sequence[str], wholes: Collection[str]) -> dict[str, Sequence[str]]:
    """Return consecutive words that are one of the wholes once they are written together."""
    found = {}
    for start in range(len(words)):
        whole = words[start]
        for end in range(start + 1, min(start + _MAX_RUN, len(words))):
            whole += words[end]
            if whole in wholes:
                found[whole] = words[start : end + 1]
    return found


_RANKS = {"near_duplicate": 0, "exact_duplicate": 1, "junk": 2}
"""Order of the checks whose keeper is kept if several were chosen: first the check that compares most."""

_LAST, _MANY = 9, 1000


class Copy(NamedTuple):
    """Finding that another memory says the same."""

    id: str
    keeper: str
    check: str
    kind: str
    action: str


class Merge(Struct, frozen=True, kw_only=True):
    """One memory that is kept, those that are in it from then on, and its fields then."""

    keeper: str
    copies: tuple[str, ...]
    values: dict[str, Value]


class Merging:
    """Find what can be merged without a loss.

    `memories` are all that were audited, `values` the fields of those that may take part, by id, as they are going to
    be. `taken` holds "delete" where copies go that hold nothing of their own, "merge" where others are merged. `apart`
    are pairs of memories that differ in a value.
    """

    def __init__(
        self,
        memories: pd.DataFrame,
        values: Mapping[str, Fields],
        *,
        taken: Collection[str],
        apart: Collection[frozenset[str]],
    ) -> None:
        self._memories = memories
        self._values = values
        self._taken = taken
        self._apart_from: defaultdict[str, set[str]] = defaultdict(set)
        for one, other in map(sorted, apart):
            self._apart_from[one].add(other)
            self._apart_from[other].add(one)
        self._store = WordCounts(memories)
        self._copies: dict[str, Copy] = {}
        self._texts = StatementsByKey({})

    def merges(self, copies: Iterable[Copy]) -> Iterator[Merge]:
        """Plan the merges of memories that say the same; those that have to stay are in none."""
        found = sorted(
            {copy for copy in copies if copy.id != copy.keeper},
            key=lambda copy: (_RANKS.get(copy.check, _LAST), copy.id, copy.keeper, copy.kind),
            reverse=True,
        )
        self._copies = {copy.id: copy for copy in found}  # of several the one that compares most
        clusters = [
            [member for member in cluster if member in self._values] for cluster in _group_copies(found)
        ]
        members = [member for cluster in clusters for member in cluster]
        self._texts = StatementsByKey(
            {
                (member, name): str(self._values[member].get(name) or "")
                for member in members
                for name in TEXT_FIELDS
            }
        )
        order = self._order(members, found)
        for cluster in clusters:
            yield from self._of_cluster(sorted(cluster, key=order.__getitem__))

    def _order(self, members: Sequence[str], copies: Sequence[Copy]) -> dict[str, tuple[int, int]]:
        """Order candidates for keeper: what the checks chose, then the memory that says most."""
        chosen = {(copy.keeper, copy.check) for copy in copies} - {(copy.id, copy.check) for copy in copies}
        rank: dict[str, int] = {}
        for keeper, check in chosen:
            rank[keeper] = min(rank.get(keeper, _LAST), _RANKS.get(check, _LAST))
        rows = self._memories.drop_duplicates("id").set_index("id", drop=False).reindex(list(members))
        n_values = np.array([self._texts.n_values((member, "content")) for member in members], np.float64)
        odd = oddness([str(self._values[member].get("content") or "") for member in members])
        places = precedence(rows.reindex(columns=list(MEMORY_KINDS)), n_values - np.floor(odd) / _MANY, odd)
        return {
            member: (rank.get(member, _LAST), place)
            for member, place in zip(members, places.tolist(), strict=True)
        }

    def _of_cluster(self, members: Sequence[str]) -> Iterator[Merge]:
        """Merge into the first member all that it can hold; what is left may still repeat one text."""
        left, is_first = list(members), True
        while left:
            keeper, *others = left
            content = self._values[keeper]["content"]
            holder = _Holder(keeper, self._values[keeper])
            waiting = [member for member in others if is_first or self._values[member]["content"] == content]
            n_before = 0
            while len(holder.members) > n_before:  # again and again, as what was taken in may hold more
                n_before = len(holder.members)
                for member in waiting:
                    if member not in holder.members and self._may_go(member, holder):
                        self._take_in(member, holder)
            if len(holder.members) > 1:
                yield Merge(keeper=keeper, copies=tuple(holder.members)[1:], values=holder.values)
            left, is_first = [member for member in others if member not in holder.members], False

    def _may_go(self, member: str, holder: _Holder) -> bool:
        """Return True if the merge is asked for, and no value is known in which the two differ."""
        values, copy = self._values[member], self._copies.get(member)
        is_plain = values["content"] == holder.values["content"] and not holder.gains(values)
        is_asked = "merge" in self._taken and (not is_plain or (copy is not None and copy.action == "merge"))
        is_asked |= is_plain and "delete" in self._taken
        return is_asked and holder.members.keys().isdisjoint(self._apart_from[member])

    def _take_in(self, member: str, holder: _Holder) -> None:
        """Merge a memory, if no field keeps both, the service accepts what is taken over, and nothing is lost."""
        values, copy = self._values[member], self._copies.get(member)
        gains = holder.gains(values)
        grown = {**holder.values, **gains}
        is_sendable = all(normalize(name, value) == (value, None, False) for name, value in gains.items())
        differs = any(
            not _is_empty(value := values.get(name)) and value != grown[name] for name in _KEEP_BOTH
        )
        if differs or not is_sendable:
            return
        written = {**holder.written, **dict.fromkeys(gains, member)}
        if any(values.get(name) not in (None, grown[name]) for name in TEXT_FIELDS):
            breaks_off = copy is not None and copy.kind == "truncated"
            removed = Statements.of(self._texts.statements((member, name)) for name in TEXT_FIELDS)
            kept = Statements.of(self._texts.statements((written[name], name)) for name in TEXT_FIELDS)
            if find_lost(removed, kept, self._store, breaks_off=breaks_off):
                return
        holder.members[member] = None
        holder.values, holder.written = grown, written


class _Holder:
    """A memory that is kept, and those that were merged into it."""

    def __init__(self, memory_id: str, values: Fields) -> None:
        self.members = {memory_id: None}
        """Itself, and in their order the memories that are in it."""
        self.values = dict(values)
        self.written: dict[str, str] = dict.fromkeys(TEXT_FIELDS, memory_id)
        """Of which memory each field is."""

    def gains(self, other: Fields) -> dict[str, Value]:
        """Return what it would take over from another one."""
        gains = {name: other.get(name) for name in FILLED if _is_empty(self.values.get(name))}
        gains = {name: value for name, value in gains.items() if not _is_empty(value)}
        for name in _JOINED:
            names = dict.fromkeys([*(self.values.get(name) or ()), *(other.get(name) or ())])  # type: ignore[misc]
            if not same_value(name, tuple(names), self.values.get(name)):
                gains[name] = tuple(names)
        return gains


def _group_copies(copies: Sequence[Copy]) -> list[list[str]]:
    """Group memories that say the same, directly or through another one."""
    ids = sorted({memory_id for copy in copies for memory_id in (copy.id, copy.keeper)})
    place = {memory_id: number for number, memory_id in enumerate(ids)}
    clusters = Clusters(len(ids))
    for copy in copies:
        clusters.join(place[copy.id], place[copy.keeper])
    return sorted(sorted(ids[member] for member in group) for group in clusters.groups())


def _is_empty(value: Value) -> bool:
    return value is None or value == () or (isinstance(value, str) and not value.strip())
