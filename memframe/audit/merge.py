"""Merging: keep one of several memories with the same statement, and give it the fields that only the others have.

Memories are not merged if the kept one cannot hold all of them: two sources, a word of a title, a name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from rapidfuzz.distance import OSA

from memframe.audit.findings import ENDING, PROPOSALS, Proposal, plain_columns
from memframe.audit.keeper import FILLED, precedence, wording_penalty
from memframe.audit.lexicon import (
    CALENDAR,
    CLASSES,
    LIGHT,
    QUALIFYING,
    class_of,
    is_number,
    is_slip,
    without_accents,
)
from memframe.audit.planted import with_hidden
from memframe.audit.rules import load_rules
from memframe.audit.similarity.cluster import Clusters
from memframe.audit.spelling import find_respelled
from memframe.audit.text import Memories, MemoryTexts, with_all_columns
from memframe.audit.tokenize import contents_of, words_of
from memframe.fields import MEMORY_FIELDS, TEXT_FIELDS
from memframe.frames import MEMORY_KINDS, read_names, read_numbers, read_texts, read_times
from memframe.wire import MAX_TAG_CHARS, MAX_TAGS

TextKey = Hashable
"""Key of a text: its memory and its field."""

FieldValues = Mapping[str, Any]
"""Fields of a memory by name; None for an empty one."""

COPYING = frozenset({"exact_duplicate", "near_duplicate"})
"""Checks whose findings relate a memory to another one with the same statement."""

_KEEP_BOTH, _JOINED, _TAKE_HIGHEST = (
    tuple(field.name for field in MEMORY_FIELDS if field.is_editable and field.on_merge == on_merge)
    for on_merge in ("keep both", "join", "take highest")
)

_LETTERS = re.compile(r"[^\W\d_]+")
_IDENTIFIER = re.compile(r"`[^`\n]{1,100}`|(?<!\S)(?=\S*\d)\S*[^\W_][-./_:@][^\W_]\S*")
"""Identifiers: spans of code, and words with a digit whose parts are joined by signs."""
_CAPITALISED = re.compile(r"(?<![^\W\d_])[^\W\d_a-z][^\W\d_]*")
"""Words that do not begin with a small letter of ASCII: a quick test for words with a capital."""
_STARTS_SENTENCE = re.compile(r"(?:^|[.!?:;\n\u2026\u2013\u2014-]\s*|[\"'\u201c\u00ab(\[*#>]\s*)$")
"""End of the text before a word with which a sentence begins."""

_MAX_SLIPS = 30
"""Most words that are compared as typing errors, halves of words, or words written apart; more are another text."""

_MAX_HOLDERS = 20
"""Memories of one cluster into which all others are tried: thousands of equal texts may each have a title of their own,
and each with each would take hours."""

_MAX_RUN = 8
"""Most consecutive words that are compared with one word of another text."""

_NAMES_TOO = frozenset({"will", "ella", "elle", "per", "das", "ai", "dal", "my"})
"""Words that carry no value in most texts, but are also names."""


class Statements:
    """Words, names and signs of some texts taken together; each is computed on first use."""

    def __init__(self, texts: Iterable[tuple[str, Sequence[str]]]) -> None:
        self._texts = [(text, words) for text, words in texts if words or _signs_of(text)]
        """Texts with their words; those without words and signs are left out."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words in their order, without case and accents."""
        return tuple(word for _, words in self._texts for word in words)

    @cached_property
    def classes(self) -> frozenset[str]:
        """Classes of the words that carry a value."""
        return frozenset([class_of(word) for word in {*self.words} - LIGHT])

    @cached_property
    def written(self) -> frozenset[str]:
        """Words and runs of letters, without case and accents."""
        return frozenset(self.words).union(*(_fold_words(text) for text, _ in self._texts))

    @cached_property
    def names(self) -> frozenset[str]:
        """Words that are written like names."""
        return frozenset([name for name in self._capitals[0] if len(name) > 1 and name not in CLASSES])

    @cached_property
    def first(self) -> frozenset[str]:
        """First words of sentences; their capital does not show whether they are names."""
        return frozenset(
            [name for name in self._capitals[1] if name not in CLASSES and name not in LIGHT - _NAMES_TOO]
        )

    @cached_property
    def signs(self) -> frozenset[str]:
        """Pictures and signs of mathematics."""
        return frozenset().union(*(_signs_of(text) for text, _ in self._texts))

    @cached_property
    def last(self) -> frozenset[str]:
        """The last word of each text."""
        return frozenset(word for text, _ in self._texts for word in _fold_words(text)[-1:])

    @cached_property
    def parts(self) -> frozenset[str]:
        """Runs of letters in identifiers, where another letter is no typing error («glm-4.7-flashx»)."""
        return frozenset(
            word for text, _ in self._texts for word in _fold_words(" ".join(_IDENTIFIER.findall(text)))
        )

    @cached_property
    def _capitals(self) -> tuple[set[str], set[str]]:
        """Words with a capital within a sentence, and first words of sentences."""
        names: set[str] = set()
        first: set[str] = set()
        for text, words in self._texts:
            counted = set(words)  # without the words of a wrapper, such as "User said that"
            for match in _CAPITALISED.finditer(text):
                word = _fold_word(match[0])
                if match[0][0].isupper() and word in counted:
                    is_first = _STARTS_SENTENCE.search(text[max(0, match.start() - 4) : match.start()])
                    (first if is_first else names).add(word)
        return names, first


def _signs_of(text: str) -> frozenset[str]:
    if text.isascii():
        return frozenset()
    return frozenset(sign for sign in {*text} if sign > "\x7f" and unicodedata.category(sign) in {"So", "Sm"})


def _fold_words(text: str) -> list[str]:
    return [_fold_word(word) for word in _LETTERS.findall(text)]


@lru_cache(maxsize=1 << 16)
def _fold_word(word: str) -> str:
    return without_accents(unicodedata.normalize("NFKC", word).lower())


_ROWS_AT_ONCE = 10_000
"""Contents that are split into words at once, because one list of all words would be large."""


class WordCounts:
    """Counts of words in all memories, and the words that occur in lower case; each is computed on first use."""

    def __init__(self, memories: Memories) -> None:
        self._texts = MemoryTexts.of(memories)

    @cached_property
    def n_times(self) -> dict[str, int]:
        """Number of occurrences of each word in the contents; of equal contents one is counted."""
        words, numbers = self._texts.once(contents_of)
        is_content = np.zeros(len(words), bool)
        is_content[numbers[numbers >= 0]] = True
        # by a mask of words, because `take` would copy the words of the whole store
        tokens = words.tokens[np.repeat(is_content, np.diff(words.starts))]
        counts = np.bincount(tokens, minlength=len(words.vocabulary)).tolist()
        return dict(zip(words.vocabulary, counts, strict=True))

    @cached_property
    def common(self) -> frozenset[str]:
        """Words that some memory has in lower case, so that they are no names."""
        contents, parts = self._texts.column("content"), set[str]()
        for start in range(0, len(contents), _ROWS_AT_ONCE):
            split = pc.utf8_split_whitespace(contents.slice(start, _ROWS_AT_ONCE))
            parts.update(split.flatten().unique().to_pylist())
        words = {word for part in parts for word in _LETTERS.findall(part)}
        return frozenset(_fold_word(word) for word in words if word[0].islower())


class StatementsByKey:
    """Statements of texts by key, computed on first use."""

    def __init__(self, texts: Mapping[TextKey, str]) -> None:
        self._texts = texts
        self._place = {key: place for place, key in enumerate(texts)}
        # equal texts are split into words once
        encoded = pc.dictionary_encode(pa.array(list(texts.values()), pa.large_string()))
        self._words = words_of(encoded.dictionary).take(encoded.indices.to_numpy().astype(np.int64))
        self._n_heavy = self._words.n_of(self._words.heavy_classes())
        self._statements: dict[tuple[TextKey, ...], Statements] = {}

    def n_values(self, key: TextKey) -> int:
        """Count the words of a text that carry a value."""
        return int(self._n_heavy[self._place[key]])

    def statements(self, *keys: TextKey) -> Statements:
        """Return the statements of some texts taken together."""
        if keys not in self._statements:
            texts = ((self._texts[key], self._words.of(self._place[key])) for key in keys)
            self._statements[keys] = Statements(texts)
        return self._statements[keys]

    def forget(self) -> None:
        """Drop the computed statements, because no other cluster has the same memories."""
        self._statements.clear()


def find_lost(
    removed: Statements, kept: Statements, store: WordCounts, *, breaks_off: bool = False
) -> list[str]:
    """Find the words and signs of a removed memory that the kept texts do not hold.

    They are not for display, because they may be secrets. If the removed text `breaks_off`, it is the beginning of a
    kept one, and its last word may be half of a word there.

    >>> texts = StatementsByKey({"m1": "Ada likes tea", "m2": "Ada from Leeds likes tea since 2019."})
    >>> short, full = texts.statements("m1"), texts.statements("m2")
    >>> store = WordCounts(pd.DataFrame({"content": ["Ada likes tea", "Ada from Leeds likes tea"]}))
    >>> find_lost(short, full, store), find_lost(full, short, store)
    ([], ['leeds', '2019'])
    """
    capitals = (removed.names | removed.first) - kept.written
    parts = removed.parts - kept.written
    values = [
        word
        for word in removed.words
        if word not in LIGHT and (class_of(word) not in kept.classes or word in parts)
    ]
    # a sign that the kept texts merely lack is an ornament; if they have another one, it may change the meaning
    has_other_signs = bool(kept.signs - removed.signs)
    signs = removed.signs - kept.signs if has_other_signs else frozenset[str]()
    # «is coming» and «is probably coming» differ; a text that breaks off may do so before the qualifying word
    qualifying, kept_qualifying = (QUALIFYING.intersection(one.words) for one in (removed, kept))
    signs |= qualifying - kept_qualifying if breaks_off else qualifying ^ kept_qualifying
    if not (capitals or values or signs):
        return []
    if len(values) > _MAX_SLIPS:
        return values  # so many words are no typing errors, and comparing each with each would take long
    held = _find_joined(removed.words, kept.words)
    if breaks_off:
        held |= {word for word in removed.last if any(whole.startswith(word) for whole in kept.written)}
    # the first word of a sentence is hardly a name if it occurs in lower case in the store
    sure_names = removed.names | _NAMES_TOO
    names = (word for word in capitals - held if word in sure_names or word not in store.common)
    only_kept = dict.fromkeys(kept.words).keys() - removed.words
    words = (
        word
        for word in values
        if word not in held and (word in parts or not _is_slip_of_any(word, only_kept, store))
    )
    return list(dict.fromkeys([*sorted(names), *words, *sorted(signs)]))


def _is_slip_of_any(word: str, others: Iterable[str], store: WordCounts) -> bool:
    """Return True if a word is one of the others with a typing error; a number never is."""
    if is_number(word) or word in CALENDAR:
        return False
    near = (other for other in others if OSA.distance(word, other, score_cutoff=2) <= 2)
    return any(
        is_slip(word, store.n_times.get(word, 1), other, store.n_times.get(other, 1)) for other in near
    )


def _find_joined(removed: Sequence[str], kept: Sequence[str]) -> set[str]:
    """Return removed words that the kept text splits into several words, or joins with others into one.

    >>> sorted(_find_joined(["iban", "de89", "3704", "overnight"], ["iban", "de893704", "over", "night"]))
    ['3704', 'de89', 'overnight']
    """
    only_removed, only_kept = set(removed) - set(kept), set(kept) - set(removed)
    split = _find_runs(kept, only_removed)
    joined = _find_runs(removed, only_kept).values()
    return {*split, *(part for run in joined for part in run)}


def _find_runs(words: Sequence[str], wholes: Collection[str]) -> dict[str, Sequence[str]]:
    """Return for each whole word that consecutive words make when they are joined, those words."""
    found = {}
    for start in range(len(words)):
        whole = words[start]
        for end in range(start + 1, min(start + _MAX_RUN, len(words))):
            whole += words[end]
            if whole in wholes:
                found[whole] = words[start : end + 1]
    return found


_RANKS = {"near_duplicate": 0, "exact_duplicate": 1, "junk": 2}
"""Ranks of checks: if they chose several keepers, that of the lowest rank is kept, as it compares most texts."""
_LAST = 9
"""Rank of all other checks."""

_MAX_PENALTY = 1000
"""Divisor that makes any penalty less than one word, so that it decides only between texts with as many words."""


class Copy(NamedTuple):
    """Finding that a memory has the same statement as its keeper."""

    id: str
    keeper: str
    check: str
    kind: str
    action: str


class Merge(Struct, frozen=True, kw_only=True):
    """One memory that is kept, and the copies that are merged into it."""

    keeper: str
    copies: tuple[str, ...]
    values: dict[str, Any]
    """Fields of the keeper after the merge."""
    actions: dict[str, Proposal]
    """Action for each copy: "delete" for one that adds nothing to the keeper, "merge" for any other."""


class Relations(NamedTuple):
    """Relations of memories that decide which merges lose nothing."""

    apart: frozenset[frozenset[str]] = frozenset()
    """Groups of versions of one memory: each may have a value that the others lack."""
    broken_off: frozenset[str] = frozenset()
    """Memories whose text is the beginning of another one."""


class Merging:
    """Find the merges that lose nothing.

    Parameters
    ----------
    memories : DataFrame or MemoryTexts
        All audited memories.
    values : mapping
        Fields of the memories that may be merged, by id, as the plan will leave them.
    taken : collection of str
        Actions to plan: "delete" for copies that add nothing to the keeper, "merge" for the others.
    relations : Relations
        Relations of memories that forbid merges.
    accepted : collection of str
        Copies that a person has accepted: they are merged although values are lost.
    """

    def __init__(
        self,
        memories: Memories,
        values: Mapping[str, FieldValues],
        *,
        taken: Collection[str],
        relations: Relations,
        accepted: Collection[str] = (),
    ) -> None:
        texts = MemoryTexts.of(memories)
        self._prepared = texts
        self._values = values
        self._taken = taken
        self._accepted = accepted
        # by group instead of by pair: thousands of versions of one status are millions of pairs
        self._apart: defaultdict[str, set[int]] = defaultdict(set)
        for number, group in enumerate(relations.apart):
            for member in group:
                self._apart[member].add(number)
        self._store = texts.once(WordCounts)
        self._copies: dict[str, Copy] = {}
        self._texts = StatementsByKey({})
        self._conditions: dict[str, _Conditions] = {}
        # an exact copy of a text that breaks off breaks off as well
        ids, contents = texts.memories["id"], texts.memories["content"]
        self._broken_off = {*contents[ids.isin(relations.broken_off)]}
        self.why_left: dict[str, str] = {}
        """Reasons for which memories that repeat another one stay, by id."""

    def merges(self, copies: Iterable[Copy]) -> Iterator[Merge]:
        """Yield the merges; memories that have to stay are in none, and `why_left` has the reasons."""
        found = sorted(
            {copy for copy in copies if copy.id != copy.keeper},
            key=lambda copy: (_RANKS.get(copy.check, _LAST), copy.id, copy.keeper, copy.kind),
            reverse=True,
        )
        self._copies = {copy.id: copy for copy in found}  # of several findings, the one of the lowest rank
        groups = _group_copies(found)
        self._conditions = _read_conditions(
            self._prepared, [member for group in groups for member in group if member in self._values]
        )
        clusters = [
            [
                member
                for member in group
                if member in self._conditions and not self._conditions[member].is_planted
            ]
            for group in groups
        ]
        self.why_left = {copy.id: _NOTHING_KEEPS for copy in found}
        self.why_left |= {member: _PLANTED for member, one in self._conditions.items() if one.is_planted}
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
            if cluster:
                # the rank decides on the keeper alone. The others are taken in by their place, because a plan of some
                # of the findings has other ranks, and must come to the merges that the audit proposes
                keeper = min(cluster, key=order.__getitem__)
                others = sorted(set(cluster) - {keeper}, key=lambda member: order[member][1])
                yield from self._merge_cluster([keeper, *others])
                self._texts.forget()

    def _order(self, members: Sequence[str], copies: Sequence[Copy]) -> dict[str, tuple[int, int]]:
        """Return rank and place of each candidate for keeper: the checks' choice first, then the fullest memory."""
        chosen = {(copy.keeper, copy.check) for copy in copies} - {(copy.id, copy.check) for copy in copies}
        rank: dict[str, int] = {}
        for keeper, check in chosen:
            rank[keeper] = min(rank.get(keeper, _LAST), _RANKS.get(check, _LAST))
        memories = self._prepared.memories
        rows = memories.drop_duplicates("id").set_index("id", drop=False).reindex(list(members))
        n_values = np.array([self._texts.n_values((member, "content")) for member in members], np.float64)
        penalty = wording_penalty([str(self._values[member].get("content") or "") for member in members])
        places = precedence(with_all_columns(rows), n_values - np.floor(penalty) / _MAX_PENALTY, penalty)
        return {
            member: (rank.get(member, _LAST), place)
            for member, place in zip(members, places.tolist(), strict=True)
        }

    def _merge_cluster(self, members: Sequence[str]) -> Iterator[Merge]:
        """Merge into the first member all others that lose nothing, then likewise the rest.

        An earlier keeper with its copies is then merged into a later one that loses nothing of them: a text on tea
        holds the words of a title «Tea». So the result does not depend on which member is first, which an edit may
        change.
        """
        # if only one action is planned, a copy that is not asked for might go with its keeper
        are_all_asked = ENDING.issubset(self._taken)
        holders: list[_Holder] = []
        rest = list(members)
        for _ in range(_MAX_HOLDERS):
            if not rest:
                break
            holder = self._hold(rest[0])
            rest = self._fill(holder, rest[1:])
            for other in [*holders]:
                grown = holder.copy()
                if are_all_asked and self._take_in_all(other.members, grown):
                    holders.remove(other)
                    holder = grown
                    rest = self._fill(holder, rest)
            holders.append(holder)
        equal: defaultdict[str, list[str]] = defaultdict(list)
        for member in rest:
            equal[self._describe(member)].append(member)
        for first, *others in equal.values():
            holder = self._hold(first)
            self._fill(holder, others)
            holders.append(holder)
        for holder in holders:
            if len(holder.members) > 1:
                copies = tuple(holder.members)[1:]
                yield Merge(keeper=holder.id, copies=copies, values=holder.values, actions=holder.actions)

    def _hold(self, member: str) -> _Holder:
        return _Holder(member, self._values[member], self._apart.get(member, ()))

    def _describe(self, member: str) -> str:
        """Return what is the same for two memories only if nothing of either would be lost in the other."""
        own = self._conditions[member]
        day = own.day if self._may_be_another_event(member) else None
        return repr((sorted(self._values[member].items()), day, sorted(own.cells.items())))

    def _may_be_another_event(self, member: str) -> bool:
        """Return True if an equal text of another day may tell of another event: «Took a pill», twice."""
        content = self._values[member]["content"]
        n_words = len(self._texts.statements((member, "content")).words)
        return n_words < _MIN_WORDS_ONCE and may_recur(content)

    def _fill(self, holder: _Holder, members: Sequence[str]) -> list[str]:
        """Take in all members that lose nothing in a holder, and return the others."""
        rest, n_before = [*members], 0
        # repeated, because a member may lose nothing once the holder has the fields of another one
        while len(holder.members) > n_before:
            n_before = len(holder.members)
            for member in rest:
                if why := self._find_obstacle(member, holder):
                    self.why_left[member] = why
                else:
                    self._take_in(member, holder)
            rest = [member for member in rest if member not in holder.members]
        return rest

    def _take_in_all(self, members: Iterable[str], holder: _Holder) -> bool:
        """Take in members until there is an obstacle; return True if there is none."""
        # the copies before their keeper, which is the first member and has no reason to stay
        for member in [*members][::-1]:
            if self._find_obstacle(member, holder):
                return False
            self._take_in(member, holder)
        return True

    def _find_obstacle(self, member: str, holder: _Holder) -> str | None:
        """Return the reason why a memory cannot be merged; None if it can.

        A value that only the copy has is no obstacle if the kept memory can take it over and the service accepts it.
        """
        values, copy = self._values[member], self._copies.get(member)
        gains = holder.gains(values)
        is_plain = values["content"] == holder.values["content"] and not gains
        is_asked = "merge" in self._taken and (not is_plain or (copy is not None and copy.action == "merge"))
        if not (is_asked or (is_plain and "delete" in self._taken)):
            return "this action was not asked for"
        if member in self._accepted:
            return None
        if not holder.apart.isdisjoint(self._apart.get(member, ())):
            return "the two differ in a value"
        own, kept = self._conditions[member], self._conditions[holder.id]
        # two equal short texts of different days may be two events: «Took a pill»
        is_other_day = own.day != kept.day and None not in (own.day, kept.day)
        if is_other_day and self._may_be_another_event(member):
            return "it may be another event, of another day"
        grown = {**holder.values, **gains}
        differing = [name for name, cell in own.cells.items() if cell not in (None, kept.cells[name])]
        differing += [
            name for name in _KEEP_BOTH if not _is_empty(values.get(name)) and values[name] != grown[name]
        ]
        if differing:
            return f"the two differ in {', '.join(differing)}"
        if not all(_is_sendable(name, value) for name, value in gains.items()):
            return "the kept memory cannot take over a value of this one"
        written = {**holder.written, **dict.fromkeys(gains, member)}
        # all texts of both are compared together, because the title of one may be in the content of the other
        if any(values.get(name) not in (None, grown[name]) for name in TEXT_FIELDS):
            breaks_off = values["content"] in self._broken_off
            if any(
                find_respelled(str(values.get(name) or ""), str(grown[name] or ""), breaks_off=breaks_off)
                for name in TEXT_FIELDS
            ):
                return (
                    "it is spelled differently (a sign, an accent or a capital), which may change the meaning"
                )
            removed = self._texts.statements(*((member, name) for name in TEXT_FIELDS))
            held = self._texts.statements(*((written[name], name) for name in TEXT_FIELDS))
            if find_lost(removed, held, self._store, breaks_off=breaks_off):
                return "a word of it would be lost (a name, a number or another value)"
        return None

    def _take_in(self, member: str, holder: _Holder) -> None:
        values = self._values[member]
        gains = holder.gains(values)
        is_plain = values["content"] == holder.values["content"] and not gains
        holder.actions[member] = "delete" if is_plain else "merge"
        holder.members[member] = None
        holder.apart.update(self._apart.get(member, ()))
        holder.values |= gains
        holder.written |= dict.fromkeys(gains, member)
        self.why_left.pop(member, None)


_PLANTED = "it has hidden characters, which may change its meaning"
_NOTHING_KEEPS = "the memory that it repeats is deleted, cannot be opened, or may not be kept"


class _Conditions(NamedTuple):
    """Properties of a memory that may forbid a merge, besides its fields."""

    is_planted: bool
    day: int | None
    cells: dict[str, Any]
    """Cells of columns that no service has, so that a kept memory cannot take them over."""


_IDENTITY = frozenset([*MEMORY_KINDS, "origin_id", "place", "file", "line", "content_error"])
"""Columns that are not among `_Conditions.cells`: fields of memories, and columns that differ in every row."""


def _read_conditions(texts: MemoryTexts, ids: Sequence[str]) -> dict[str, _Conditions]:
    all_ids = texts.memories["id"]
    chosen = texts.take(np.flatnonzero((~all_ids.duplicated() & all_ids.isin(set(ids))).to_numpy(bool)))
    rows = chosen.memories
    names = [name for name in rows.columns if name not in _IDENTITY]
    columns = [[None if _is_missing(cell) else repr(cell) for cell in rows[name].tolist()] for name in names]
    cells = zip(*columns, strict=True) if names else ((),) * len(rows)
    return {
        memory_id: _Conditions(is_planted, day, dict(zip(map(str, names), row, strict=True)))
        for memory_id, is_planted, day, row in zip(
            rows["id"], with_hidden(chosen).tolist(), _days_of(rows), cells, strict=True
        )
    }


def _is_missing(cell: Any) -> bool:
    """Return True for a missing cell (None, NaN, NaT or NA) and for an empty text."""
    return cell is None or pd.isna(cell) is True or (isinstance(cell, str) and not cell.strip())


def _days_of(memories: pd.DataFrame) -> list[int | None]:
    if "created_at" not in memories.columns:
        return [None] * len(memories)
    times = pd.Series(read_times(memories, "created_at"))
    return [None if pd.isna(time) else time.toordinal() for time in times]


def _is_sendable(name: str, value: Any) -> bool:
    """Return True if the service accepts a value to take over; a memory from elsewhere may hold one that it refuses."""
    if isinstance(value, tuple):
        is_name = (0 < len(one.strip()) == len(one) <= MAX_TAG_CHARS and "," not in one for one in value)
        return len(value) <= MAX_TAGS and all(is_name) and "\0" not in "".join(value)
    if isinstance(value, float):
        return 0 <= value <= (_HIGHEST[name] or value)
    return "\0" not in value


_HIGHEST = {field.name: field.highest for field in MEMORY_FIELDS}


# ---- equal events of several days

_DAY, _STANDING, _PASSING = map(load_rules("standing").only, ("day", "standing", "passing"))
_MIN_WORDS_ONCE = 25
"""Fewest words of a text that is not written again for another event."""


def may_recur(text: str) -> bool:
    """Return True for a short text that may tell of another event if it was written on another day.

    A text that names its day, or that states something lasting, is about the same thing on any day.

    >>> [may_recur(text) for text in ("Took 400 mg ibuprofen.", "Ada likes tea.", "Took a pill on 3 May 2026.")]
    [True, False, False]
    """
    return not any(_DAY.find(text)) and (not any(_STANDING.find(text)) or any(_PASSING.find(text)))


class _Holder:
    """Memory that is kept, with the memories that were merged into it so far."""

    def __init__(self, memory_id: str, values: FieldValues, apart: Iterable[int] = ()) -> None:
        self.id = memory_id
        self.actions: dict[str, Proposal] = {}
        self.members = {memory_id: None}
        """The memory itself, then the merged ones in their order."""
        self.apart = {*apart}
        """Numbers of the groups of versions that these memories are of; no other of these may be merged."""
        self.values = dict(values)
        self.written: dict[str, str] = dict.fromkeys(TEXT_FIELDS, memory_id)
        """Id of the memory that each field was taken from."""

    def copy(self) -> _Holder:
        """Return an independent copy of the holder."""
        copy = _Holder(self.id, self.values, self.apart)
        copy.actions, copy.members, copy.written = {**self.actions}, {**self.members}, {**self.written}
        return copy

    def gains(self, other: FieldValues) -> dict[str, Any]:
        """Return the fields that it would take over from another memory."""
        gains = {name: other.get(name) for name in FILLED if _is_empty(self.values.get(name))}
        gains = {name: value for name, value in gains.items() if not _is_empty(value)}
        for name in _JOINED:
            names = dict.fromkeys([*(self.values.get(name) or ()), *(other.get(name) or ())])
            if names.keys() != set(self.values.get(name) or ()):
                gains[name] = tuple(names)
        for name in _TAKE_HIGHEST:
            own, others = self.values.get(name), other.get(name)
            if own is not None and others is not None and others > own:
                gains[name] = others
        return gains


def _group_copies(copies: Sequence[Copy]) -> list[list[str]]:
    """Group memories with the same statement; copies of one memory are copies of each other."""
    ids = sorted({memory_id for copy in copies for memory_id in (copy.id, copy.keeper)})
    place = {memory_id: number for number, memory_id in enumerate(ids)}
    clusters = Clusters(len(ids))
    for copy in copies:
        clusters.join(place[copy.id], place[copy.keeper])
    return sorted(sorted(ids[member] for member in group) for group in clusters.groups())


def _is_empty(value: Any) -> bool:
    return value is None or value == () or (isinstance(value, str) and not value.strip())


# ---- proposals of findings: only what a cleanup will do


def read_copies(findings: pd.DataFrame) -> list[Copy]:
    """Return the findings that a memory repeats another one."""
    columns = plain_columns(findings, "id", "related_id", "check", "kind", "action")
    return [
        Copy(memory_id, keeper, check, kind, action)
        for memory_id, keeper, check, kind, action in zip(*columns, strict=True)
        if keeper is not None and (action == "merge" or check == "exact_duplicate")
    ]


def read_relations(findings: pd.DataFrame) -> Relations:
    """Return the relations of memories, from all findings of an audit, also those without a proposal."""
    check, kind = findings["check"], findings["kind"]
    versions = findings[(check == "version") & findings["group"].notna()]
    groups = versions.groupby("group")["id"] if len(versions) else ()
    return Relations(
        apart=frozenset(frozenset(ids) for _, ids in groups),
        broken_off=frozenset(findings["id"][(check == "near_duplicate") & (kind == "truncated")]),
    )


def join_fields(keeper: FieldValues, copies: Iterable[FieldValues]) -> dict[str, Any]:
    """Return the fields of a memory after it took over those of its copies."""
    holder = _Holder("", keeper)
    for copy in copies:
        holder.values |= holder.gains(copy)
    return holder.values


def settle_proposals(findings: pd.DataFrame, memories: Memories) -> pd.DataFrame:
    """Return findings that propose a delete or a merge only if a cleanup would do it, and once for each memory.

    The merges are computed as for a plan. A finding about a memory that stays is for review, with the reason in its
    evidence. The ``related_id`` of a memory that goes is the memory that is kept in its place.
    """
    ids, checks, actions, related, evidence = plain_columns(
        findings, "id", "check", "action", "related_id", "evidence"
    )
    is_ending = [
        action in ENDING and memory_id is not None for memory_id, action in zip(ids, actions, strict=True)
    ]
    if not any(is_ending):
        return findings
    is_copy = [
        ends and keeper is not None and (check in COPYING or action == "merge")
        for ends, keeper, check, action in zip(is_ending, related, checks, actions, strict=True)
    ]
    deleted = {ids[row] for row, ends in enumerate(is_ending) if ends and not is_copy[row]}
    copies = [copy for copy in read_copies(findings[np.array(is_copy)]) if copy.id not in deleted]
    merged, why_left = (
        _find_merges(copies, findings, MemoryTexts.of(memories), deleted) if copies else ({}, {})
    )
    proposed = set(deleted)
    # the finding that a merge rests on comes first
    for row in sorted(
        range(len(ids)), key=lambda row: (not is_ending[row], _RANKS.get(checks[row], _LAST), row)
    ):
        if ids[row] in proposed:
            if is_copy[row]:
                actions[row] = "none"
        elif ids[row] in merged and (is_ending[row] or checks[row] in _RANKS):
            proposed.add(ids[row])
            related[row], actions[row] = merged[ids[row]]
        elif is_ending[row]:
            keeper, _ = merged.get(related[row], (related[row], None))
            if keeper == ids[row]:  # the keeper was merged into this memory
                actions[row] = "none"
                continue
            related[row], actions[row] = keeper, "review"
            evidence[row] = f"{evidence[row]}; left to you: {why_left.get(ids[row], _NOTHING_KEEPS)}"
    columns = {"action": actions, "related_id": related, "evidence": evidence}
    return findings.assign(**{name: pd.array(cells, "str") for name, cells in columns.items()})


def _find_merges(
    copies: Sequence[Copy], findings: pd.DataFrame, texts: MemoryTexts, deleted: Collection[str]
) -> tuple[dict[str, tuple[str, Proposal]], dict[str, str]]:
    """Return the memories to merge, each with its keeper and action, and the reasons for which others stay."""
    merged: dict[str, tuple[str, Proposal]] = {}
    why_left: dict[str, str] = {}
    is_repeated = texts.memories["id"].duplicated().to_numpy()
    if is_repeated.any():
        texts = texts.take(np.flatnonzero(~is_repeated))
    memories = texts.memories
    named = {memory_id for copy in copies for memory_id in (copy.id, copy.keeper)} - set(deleted)
    concerned = memories[memories["id"].isin(named)]
    if "content_error" in concerned.columns:
        concerned = concerned[concerned["content_error"].isna()]
    values = _read_values(concerned)
    owners = memories["user_id"] if "user_id" in memories.columns else pd.Series("", memories.index)
    owner_of = dict(zip(memories["id"], owners, strict=True))
    by_owner: defaultdict[Any, list[Copy]] = defaultdict(list)
    for copy in copies:
        by_owner[owner_of.get(copy.id)].append(copy)
    relations = read_relations(findings)
    for owner, own in by_owner.items():
        store = (
            texts
            if len(by_owner) == 1 and owners.nunique() <= 1
            else texts.take(np.flatnonzero((owners == owner).to_numpy(bool)))
        )
        merging = Merging(store, values, taken=frozenset(PROPOSALS), relations=relations)
        for merge in merging.merges(own):
            merged |= {copy: (merge.keeper, merge.actions[copy]) for copy in merge.copies}
        why_left |= merging.why_left
    return merged, why_left


def _read_values(memories: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the fields of memories as a plan reads them, by id."""
    columns: dict[str, list[Any]] = {}
    for field in MEMORY_FIELDS:
        if not field.is_editable:
            continue
        if field.name not in memories.columns:
            columns[field.name] = [() if field.kind == "names" else None] * len(memories)
        elif field.kind == "names":
            columns[field.name] = [tuple(dict.fromkeys(cell)) for cell in read_names(memories, field.name)]
        elif field.kind == "number":
            numbers = read_numbers(memories, field.name).tolist()
            columns[field.name] = [None if number != number else number for number in numbers]
        else:
            texts = read_texts(memories, field.name)
            columns[field.name] = texts.astype(object).where(texts.notna(), None).tolist()
    rows = zip(*columns.values(), strict=True)
    return {one: dict(zip(columns, row, strict=True)) for one, row in zip(memories["id"], rows, strict=True)}
