"""Similar pairs and their clusters: which memories of one person say the same, or the same with another value.

What the checks on near-duplicates and changed values share, so that it is found once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from memframe.audit.keeper import copies_of, owners_of
from memframe.audit.lexicon import CALENDAR, class_of
from memframe.audit.similarity.compare import Comparer, Difference, Verdict
from memframe.audit.similarity.minhash import distinct, promising_pairs
from memframe.audit.text import text_column, without_long_contents
from memframe.audit.tokenize import Words, words_of
from memframe.frames import gc_paused

_TEXTS_AT_ONCE = 50_000
_PAIRS_AT_ONCE = 1 << 16
_MOST_PARTNERS = 3
_MOST_FILLING = 2
_LOOKS = (0, 64, 1024)
"""Texts with a word are looked at up to these: of a template the first few will do."""
_MIN_SHARED = 4
"""Words with a value that two texts have in common, so that another value in one of them is a change."""

Rows = NDArray[np.int64]


class Pair(NamedTuple):
    """Two texts and what they differ in."""

    left: int
    right: int
    difference: Difference


_KINDS: tuple[tuple[Verdict, str], ...] = (
    *(("near", kind) for kind in ("spelling", "order", "typing", "truncated")),
    *(("changed", kind) for kind in ("number", "date", "word", "polarity")),
)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}


class Pairs(NamedTuple):
    """Many pairs, a column for each thing that is known of them, but for the words in which they differ."""

    left: Rows
    right: Rows
    kind: NDArray[np.int8]
    score: NDArray[np.float64]
    n_shared: NDArray[np.int32]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Pairs:
        """Build the columns of pairs that are near or changed."""
        left, right, differences = zip(*pairs, strict=True) if pairs else ((), (), ())
        return cls(
            np.array(left, np.int64),
            np.array(right, np.int64),
            np.array([_NUMBER[one.verdict, one.kind] for one in differences], np.int8),
            np.array([one.score for one in differences], np.float64),
            np.array([one.n_shared for one in differences], np.int32),
        )

    def those(self, chosen: NDArray[np.bool_] | Rows) -> Pairs:
        """Choose some of them."""
        return Pairs._make(column[chosen] for column in self)

    def that_are(self, verdict: Verdict, *kinds: str) -> Pairs:
        """Choose those that have this verdict, and are of one of these kinds if there are any."""
        wanted = [
            number
            for kind, number in _NUMBER.items()
            if kind[0] == verdict and (not kinds or kind[1] in kinds)
        ]
        return self.those(np.isin(self.kind, wanted))

    def each(self) -> Iterator[Pair]:
        """Yield one after the other."""
        for left, right, kind, score, n_shared in zip(*(column.tolist() for column in self), strict=True):
            yield Pair(left, right, Difference(_KINDS[kind][0], _KINDS[kind][1], score, n_shared))


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Texts, pairs of them that are alike, and clusters of those that say the same."""

    rows: Rows
    """The row of the frame for each text. Of memories with the same text it is the one to keep."""
    owners: Rows
    """A number for the user of each text."""
    pairs: Pairs
    """Of places in ``rows``; of texts with the same words the first alone."""
    clusters: Clusters
    comparer: Comparer

    @cached_property
    def changed(self) -> list[Pair]:
        """The pairs that are the same statement with another value, one for each two clusters."""
        changed = _changed_pairs(self.comparer.words, self.owners, self.pairs, self.clusters)
        return [Pair(left, right, self.comparer.compare(left, right)) for left, right, _ in changed]


def similar_pairs(memories: pd.DataFrame) -> SimilarPairs:
    """Compare each memory with those of the same user that may say the same.

    Time and memory grow with the number of memories, not with its square, also where thousands share a template.
    What is found does not depend on the order of the rows.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.
    """
    memories = without_long_contents(memories)
    column = text_column(memories, "content")
    rows = np.flatnonzero(copies_of(memories) == np.arange(len(memories)))
    owners = owners_of(memories)[rows]
    order = np.lexsort((_hashes(column, rows), owners))
    rows, owners = rows[order], owners[order]
    texts = column.take(pa.array(rows))
    with gc_paused():
        words = words_of(texts)
        comparer, clusters = Comparer(words, texts), Clusters(len(rows))
        first = _join_same_words(words, owners, comparer, clusters)
        left, right = promising_pairs(words.take(first), owners[first])
        pairs = _compare_all(comparer, first[left], first[right])
        _join_near(comparer, pairs, clusters)
    return SimilarPairs(rows, owners, pairs, clusters, comparer)


def _hashes(texts: pa.Array, rows: Rows) -> NDArray[np.uint64]:
    """Return a number for each of some texts."""
    hashes = [np.zeros(0, np.uint64)]
    for start in range(0, len(rows), _TEXTS_AT_ONCE):
        some = texts.take(pa.array(rows[start : start + _TEXTS_AT_ONCE]))
        hashes.append(pd.util.hash_array(some.to_numpy(zero_copy_only=False)))
    return np.concatenate(hashes)


def _compare_all(comparer: Comparer, left: Rows, right: Rows) -> Pairs:
    """Keep those pairs of texts that are near, or changed."""
    parts = [Pairs.of([])]
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        rows, others = (side[start : start + _PAIRS_AT_ONCE].tolist() for side in (left, right))
        found = (Pair(a, b, comparer.compare(a, b)) for a, b in zip(rows, others, strict=True))
        parts.append(Pairs.of([pair for pair in found if pair.difference.verdict != "apart"]))
    return Pairs._make(map(np.concatenate, zip(*parts, strict=True)))


# ---- clusters


class Clusters:
    """Sets of rows that grow together; each row begins alone."""

    def __init__(self, n_rows: int) -> None:
        self._of = list(range(n_rows))
        self._members: dict[int, list[int]] = {}

    def groups(self) -> Iterator[list[int]]:
        """Yield the clusters of more than one row."""
        yield from self._members.values()

    def numbers(self) -> Rows:
        """Return the number of the cluster of each row."""
        return np.array(self._of, np.int64)

    def of(self, row: int) -> int:
        """Return the number of the cluster of a row."""
        return self._of[row]

    def members(self, row: int) -> list[int]:
        """Return the rows of the cluster of a row."""
        return self._members.get(self._of[row], [row])

    def join(self, row: int, other: int) -> None:
        """Make one cluster of two, under the number of the larger."""
        if self._of[row] == self._of[other]:
            return
        kept, gone = sorted((self.members(row), self.members(other)), key=len, reverse=True)
        number = self._of[kept[0]]
        self._members.pop(self._of[gone[0]], None)
        self._members[number] = kept + gone
        for member in gone:
            self._of[member] = number


def _join_same_words(words: Words, owners: Rows, comparer: Comparer, clusters: Clusters) -> Rows:
    """Join texts of one owner with the same words in the same order, and return the first of each such cluster."""
    if not len(words):
        return np.zeros(0, np.int64)
    hashes = pd.util.hash_array(np.array(words.classes, dtype=object))
    keys = np.zeros(len(words), np.uint64)
    filled = np.diff(words.starts) > 0
    places = (np.arange(len(words.said)) - np.repeat(words.starts[:-1], np.diff(words.starts))).astype(
        np.uint64
    )
    mixed = hashes[words.said] * (places * np.uint64(2) + np.uint64(0x9E3779B97F4A7C15))
    if filled.any():
        keys[filled] = np.add.reduceat(mixed, words.starts[:-1][filled])
    order = np.lexsort((keys, owners))
    same = (keys[order[1:]] == keys[order[:-1]]) & (owners[order[1:]] == owners[order[:-1]])
    is_first = np.ones(len(words), bool)
    first = 0
    for place, row in enumerate(order.tolist()):
        if place and same[place - 1] and filled[row] and comparer.is_same(first, row):
            clusters.join(first, row)
            is_first[row] = False
        else:
            first = row
    return np.flatnonzero(is_first)


def _join_near(comparer: Comparer, pairs: Pairs, clusters: Clusters) -> None:
    """Join texts that say the same, but no two clusters of which as many texts have another value.

    First come pairs that say all of each other, the most similar first. Then the beginning of a longer text joins that,
    if all texts that it may be the beginning of are one cluster.
    """
    near = pairs.that_are("near")
    order = np.lexsort((near.right, near.left, -near.score))
    links = _links(pairs)
    parts: dict[int, list[int]] = defaultdict(list)
    for left, right, difference in near.those(order).each():
        if difference.kind != "truncated":
            _join_unless_changed(clusters, links, left, right)
        else:
            part, whole = sorted((left, right), key=comparer.fullness)
            parts[part].append(whole)
    for part in sorted(parts, key=lambda row: (comparer.fullness(row), row), reverse=True):
        wholes = parts[part]
        if len({clusters.of(whole) for whole in wholes} - {clusters.of(part)}) == 1 or all(
            comparer.compare(*sorted(two)).verdict == "near" for two in pairwise(wholes)
        ):
            for whole in wholes:
                _join_unless_changed(clusters, links, part, whole)


def _links(pairs: Pairs) -> Mapping[int, list[tuple[int, int]]]:
    """Map each text to those that it is near, as 1, and those that have another number or date, or deny it, as -1."""
    links: dict[int, list[tuple[int, int]]] = defaultdict(list)
    near = pairs.that_are("near")
    is_near = set(near.left.tolist()) | set(near.right.tolist())  # only these can come to a cluster
    for left, right, difference in pairs.each():
        if difference.kind != "word" and left in is_near and right in is_near:
            sign = 1 if difference.verdict == "near" else -1
            links[left].append((right, sign))
            links[right].append((left, sign))
    return links


def _join_unless_changed(
    clusters: Clusters, links: Mapping[int, list[tuple[int, int]]], row: int, other: int
) -> None:
    few, many = sorted((clusters.members(row), clusters.members(other)), key=len)
    number = clusters.of(many[0])
    signs = Counter(
        sign for member in few for linked, sign in links.get(member, ()) if clusters.of(linked) == number
    )
    if signs[-1] < max(1, signs[1]):
        clusters.join(row, other)


# ---- changed values


def _changed_pairs(words: Words, owners: Rows, pairs: Pairs, clusters: Clusters) -> list[Pair]:
    """Choose pairs of texts that differ in a value, one for each two clusters, and of each text the closest few.

    That Ada likes tea, and jazz, and Graz, are three facts; that her rent is 640, and that it is 665, is one that
    changed. What tells them apart is how many memories share all that the two have in common: a sentence that many
    fill in their own way is a list, a log or a template. What a memory denies is a change all the same.
    """
    changed = pairs.that_are("changed")
    closest = _closest(changed.those(changed.n_shared >= _MIN_SHARED), clusters.numbers())
    templates = _Templates(words, owners, clusters)
    taken: Counter[int] = Counter()
    kept = []
    for pair in sorted(closest.each(), key=lambda pair: (-pair.difference.score, pair.left, pair.right)):
        if max(taken[pair.left], taken[pair.right]) < _MOST_PARTNERS and (
            pair.difference.kind == "polarity" or not templates.is_filled(pair)
        ):
            taken.update(pair[:2])
            kept.append(pair)
    return kept


def _closest(pairs: Pairs, cluster: Rows) -> Pairs:
    """Choose of the pairs between the same two clusters the closest."""
    a, b = cluster[pairs.left], cluster[pairs.right]
    one, other = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((pairs.right, pairs.left, -pairs.score, other, one))
    one, other = one[order], other[order]
    is_first = (np.diff(one, prepend=-1) != 0) | (np.diff(other, prepend=-1) != 0)
    return pairs.those(order[is_first & (one != other)])


class _Templates:
    """Which texts have which words, so that it is quickly counted how many have all of some."""

    def __init__(self, words: Words, owners: Rows, clusters: Clusters) -> None:
        self._words, self._owners, self._clusters = words, owners, clusters
        heavy = words.heavy()
        n_rows = max(len(words), 1)
        codes = distinct(words.said[heavy].astype(np.int64) * n_rows + words.rows()[heavy])
        self._rows = codes % n_rows
        self._n_times = np.bincount(codes // n_rows, minlength=len(words.classes))
        self._starts = np.concatenate([[0], np.cumsum(self._n_times)])
        days = frozenset(map(class_of, CALENDAR))
        self._are_values = np.array([name[0].isdigit() or name in days for name in words.classes], bool)

        self._filled: set[tuple[int, bytes]] = set()
        """Owners with the words of templates that were found to be filled."""

    def is_filled(self, pair: Pair) -> bool:
        """Tell whether many clusters of the user's texts have all words that both have, but for numbers and days."""
        shared = self._shared(pair)
        template = int(self._owners[pair.left]), shared.tobytes()
        if template in self._filled:
            return True
        clusters = {self._clusters.of(row) for row in pair[:2]}
        rows = self._having(shared[0]) if len(shared) else np.zeros(0, np.int64)
        for start, end in pairwise((*_LOOKS, len(rows))):
            filling = self._with_all(rows[start:end], shared[1:])
            own = filling[self._owners[filling] == self._owners[pair.left]]
            clusters.update(map(self._clusters.of, own.tolist()))
            if len(clusters) > _MOST_FILLING:
                self._filled.add(template)
                return True
            if end >= len(rows):
                break
        return False

    def _with_all(self, rows: Rows, names: Rows) -> Rows:
        """Choose those of the rows that have all of these words."""
        for name in names:
            if not len(rows):
                break
            others = self._having(name)
            places = np.minimum(np.searchsorted(others, rows), len(others) - 1)
            rows = rows[others[places] == rows]
        return rows

    def _shared(self, pair: Pair) -> Rows:
        """Return the classes of words of both texts that carry a value, the rarest first."""
        words = self._words
        left, right = (words.said[words.starts[row] : words.starts[row + 1]].tolist() for row in pair[:2])
        shared: Rows = np.array(sorted(set(left) & set(right)), np.int64)
        shared = shared[(self._n_times[shared] > 0) & ~self._are_values[shared]]
        return np.asarray(shared[np.argsort(self._n_times[shared], kind="stable")], np.int64)

    def _having(self, name: int) -> Rows:
        return self._rows[self._starts[name] : self._starts[name + 1]]
