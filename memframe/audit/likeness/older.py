"""Older memories that have most in common with a newer one, found by their words without looking at each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memframe.audit.language.statements import TOPICS
from memframe.audit.language.words import Words
from memframe.audit.likeness.candidates import distinct

_WORDS = 16
_RECENT = 150
"""Of a word that many memories have, only as many of the older ones are looked at, the latest first."""

_AT_ONCE = 200
"""Searches: some hundred thousand words of older texts."""

_ROUNDING = 1e-9

Rows = NDArray[np.int64]


class Search(NamedTuple):
    """What a newer text looks for among the older ones: words by weight, and how many texts at most."""

    newer: int
    weights: Mapping[str, float]
    most: int


class Older:
    """For a memory the older ones of the same user that have most in common with it.

    Parameters
    ----------
    age, owners
        The place of each text in time, and the number of its owner.
    newer
        The texts that may be asked about: by words that none of them has, nothing is found.
    """

    def __init__(self, words: Words, age: Rows, owners: Rows, newer: Rows) -> None:
        self._age, self._owners = age, owners
        topics = sorted(set(TOPICS.values()))
        names = [*words.classes, *topics]
        self._number = {name: number for number, name in enumerate(names)}
        said, rows = _with_topics(
            words, [self._number.get(TOPICS.get(name, ""), -1) for name in words.classes]
        )
        wanted, is_newer = np.zeros(len(names), bool), np.zeros(len(words), bool)
        is_newer[newer] = True
        wanted[said[is_newer[rows]]] = True
        said, rows = said[wanted[said]], rows[wanted[said]]
        self._n_names, self._n_texts = len(names), max(len(words), 1)
        # sorted by owner, word and age, so that what is older than a text is what stands before it
        self._keys = distinct((owners[rows] * self._n_names + said) * self._n_texts + age[rows])
        self._of_age = np.argsort(age)
        # by age, and only valid where it was just written: so a search costs what it finds, not all texts
        self._total, self._last = np.zeros(self._n_texts), np.zeros(self._n_texts, np.int64)

    def likest(self, searches: Sequence[Search]) -> Iterator[list[int]]:
        """For each search the likest few, by the weight of the words that they have; of two such the newer one."""
        for start in range(0, len(searches), _AT_ONCE):
            yield from self._likest(searches[start : start + _AT_ONCE])

    def _likest(self, searches: Sequence[Search]) -> Iterator[list[int]]:
        search, ages, shared = self._having(searches)
        ends = np.searchsorted(search, np.arange(len(searches) + 1)).tolist()
        for one, first, last in zip(searches, ends, ends[1:], strict=False):
            kept = self._about_likest(ages[first:last], shared[first:last], one.most) + first
            yield self._ranked(ages[kept], shared[kept])[: one.most]

    def _about_likest(self, ages: Rows, shared: NDArray[np.float64], most: int) -> Rows:
        """Where those stand that share most, with all that share as much but for rounding."""
        place = np.arange(len(ages))
        self._total[ages] = 0.0
        self._last[ages] = place
        np.add.at(self._total, ages, shared)
        totals = self._total[ages]
        of_each = totals[self._last[ages] == place]
        if len(of_each) <= most:
            return place
        return np.flatnonzero(totals >= np.partition(of_each, -most)[-most] - _ROUNDING)

    def _ranked(self, ages: Rows, shared: NDArray[np.float64]) -> list[int]:
        """Texts of these ages, the one that shares most first, of two that share as much the newer one."""
        if not len(ages):
            return []
        order = np.argsort(ages, kind="stable")
        ages = ages[order]
        begin = np.flatnonzero(np.diff(ages, prepend=-1))
        totals = np.add.reduceat(shared[order], begin)
        rows: list[int] = self._of_age[ages[begin][np.lexsort((-ages[begin], -totals))]].tolist()
        return rows

    def _having(self, searches: Sequence[Search]) -> tuple[Rows, Rows, NDArray[np.float64]]:
        """Texts that have a word that is looked for: by which search, their age, and the weight of the word."""
        words = [
            (search, self._number[name], -weight)
            for search, one in enumerate(searches)
            for weight, name in self._telling(one.weights)
        ]
        search, names = np.array([word[:2] for word in words], np.int64).reshape(-1, 2).T
        newer = np.array([one.newer for one in searches], np.int64)[search]
        keys = (self._owners[newer] * self._n_names + names) * self._n_texts
        ends = np.searchsorted(self._keys, keys + self._age[newer])
        starts = np.maximum(np.searchsorted(self._keys, keys), ends - _RECENT)
        n_having = ends - starts
        of = np.repeat(np.arange(len(words)), n_having)
        places = np.arange(len(of)) - np.repeat(np.cumsum(n_having) - ends, n_having)
        weights = np.array([word[2] for word in words], np.float64)
        return search[of], self._keys[places] % self._n_texts, weights[of]

    def _telling(self, weights: Mapping[str, float]) -> list[tuple[float, str]]:
        """The words that weigh most and that older texts may have, with their weights below zero."""
        return sorted((-weight, name) for name, weight in weights.items() if name in self._number)[:_WORDS]


def _with_topics(words: Words, topic_of: list[int]) -> tuple[Rows, Rows]:
    """The classes of all heavy words and the topics that they speak of, and the text of each."""
    heavy = words.heavy()
    said, rows = words.said[heavy].astype(np.int64), words.rows()[heavy]
    topics = np.array(topic_of, np.int64)[said]
    return np.concatenate([said, topics[topics >= 0]]), np.concatenate([rows, rows[topics >= 0]])
