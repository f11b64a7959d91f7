"""Candidates: for each memory the older ones of the same user that it may repeat, replace or contradict.

Similarity finds the memory that an update refers to, but does not distinguish an update from a second fact about the
same thing. Candidates are therefore for a person or a judge (`memframe.audit.judge`); they propose no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.keeper import age_order, copies_of, owners_of
from memframe.audit.lexicon import TOPICS
from memframe.audit.rules import load_rules
from memframe.audit.similarity.minhash import distinct
from memframe.audit.text import Memories, MemoryTexts, Rows, without_long_contents
from memframe.audit.tokenize import Words, words_of
from memframe.errors import ConfigError

N_OLDER = 5
"""Candidates for each memory."""
MIN_SCORE = 0.15
"""Least cosine similarity of a candidate; below it, texts have little more in common than the person."""

Embed = Callable[[list[str]], Any]
"""Function from texts to an array with one row per text, such as ``SentenceTransformer(...).encode``."""

Scores = NDArray[np.float64]


class Reach(NamedTuple):
    """Bounds of the search for older texts, which keep its time in proportion to the number of texts."""

    n_words: int = 16
    """Words of a newer text by which older texts are looked up, the rarest first."""
    n_postings: int = 100
    """Most older texts that one word leads to, the latest first."""
    n_scored: int = 40
    """Older texts of each newer one for which the similarity over all words is computed."""


_TEXTS_AT_ONCE = 256
"""Newer texts whose lookups are in one array: at most 256 x 16 x 100 numbers of 8 bytes, 3 MB."""

_PAIRS_AT_ONCE = 20_000
"""Pairs whose words are in one array; those of 100,000 pairs took 100 MB."""

_MATRIX_CELLS = 8_000_000
"""Most similarities of vectors that are in memory at once: 32 MB."""

_TOPIC_WEIGHT = 0.6
"""Weight of a topic relative to a word of the same frequency; two texts about homes may be about different homes."""

_COLUMNS = {"newer": "str", "older": "str", "rank": "int64", "score": "float64", "cue": "str"}


class Nearest(NamedTuple):
    """Pairs of texts as three arrays of the same length, by newer text, the most similar older one first."""

    newer: Rows
    older: Rows
    score: Scores


def find_candidates(
    memories: Memories, *, embed: Embed | None = None, n: int = N_OLDER, min_score: float = MIN_SCORE
) -> pd.DataFrame:
    """Rank for each memory the older ones of the same user that are most similar to it.

    Parameters
    ----------
    memories : DataFrame
        Frame with the columns of `load_memories`. Of several memories with the same text, one is compared.
    embed : callable, optional
        Function that returns vectors of texts, whose similarity then counts as much as that of words. It gets the
        texts of memories unmasked, with their secrets: use a model on this machine.
    n, min_score
        Most candidates for each memory, and their least similarity.

    Returns
    -------
    DataFrame
        Columns ``newer older rank score cue``: two ids, 1 for the most similar, the cosine similarity, and the words
        of the newer memory that state a change, if there are any.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> texts = ["Ada lives in Leeds.", "Ada likes green tea.", "Ada no longer lives in Leeds."]
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": texts}, columns=list(MEMORY_KINDS))
    >>> find_candidates(memories)[["newer", "older", "rank", "cue"]]
      newer older  rank        cue
    0    m3    m1     1  no longer
    """
    prepared = without_long_contents(MemoryTexts.of(memories).whole)
    chosen = prepared.take(np.flatnonzero(copies_of(prepared) == np.arange(len(prepared))))
    texts = chosen.column("content")
    owners, time_order = owners_of(chosen), age_order(chosen)
    vectors = None if embed is None else vectors_of(texts.to_pylist(), embed)
    found = nearest_older(words_of(texts), owners, time_order, n=n, min_score=min_score, vectors=vectors)
    ids = np.array(chosen.ids, dtype=object)
    quotes = {row: cues[0].quote for row, cues in find_cues(texts)}
    columns = {
        "newer": ids[found.newer],
        "older": ids[found.older],
        "rank": _rank_in_runs(found.newer) + 1,
        "score": np.minimum(found.score, 1.0),
        "cue": [quotes.get(row) for row in found.newer.tolist()],
    }
    return pd.DataFrame({name: pd.Series(columns[name], dtype=kind) for name, kind in _COLUMNS.items()})


def nearest_older(
    words: Words,
    owners: Rows,
    time_order: Rows,
    *,
    n: int = N_OLDER,
    min_score: float = MIN_SCORE,
    newer: Rows | None = None,
    vectors: NDArray[np.float32] | None = None,
    reach: Reach = Reach(),  # noqa: B008 - it is frozen
) -> Nearest:
    """Find for each text the older ones of the same owner with the highest cosine similarity.

    Words are weighted by how rare they are in the store. If two texts name the same topic (home, work, ...) in
    different words, the topic counts as a shared word. With vectors, the score is the mean of both similarities.

    Parameters
    ----------
    words : Words
        Words of the texts, in their order.
    owners, time_order : array of int
        Number of the owner of each text, and its place in time, which is unique and higher for later texts.
    newer : array of int, optional
        Texts to find older ones for; by default all.
    vectors : array of float, optional
        One row of length 1 per text.
    reach : Reach
        Bounds of the search.
    """
    terms = _Terms.of(words)
    is_asked = np.ones(len(time_order), bool) if newer is None else np.isin(np.arange(len(time_order)), newer)
    pairs = _pairs_by_words(terms, owners, time_order, is_asked, reach)
    if vectors is not None:
        pairs = np.union1d(pairs, _pairs_by_vectors(vectors, owners, time_order, is_asked, reach))
    later, older = _unpack_pairs(pairs, len(time_order))
    score = terms.similarity(later, older)
    if vectors is not None:
        score = (score + np.einsum("ij,ij->i", vectors[later], vectors[older], dtype=np.float64)) / 2
    is_near = score >= min_score
    later, older, score = later[is_near], older[is_near], score[is_near]
    # of two older texts with the same score the later one comes first
    order = _order(later, _rank(-score), len(time_order) - time_order[older])
    order = order[_rank_in_runs(later[order]) < n]
    return Nearest(later[order], older[order], score[order])


def vectors_of(texts: Sequence[str], embed: Embed) -> NDArray[np.float32]:
    """Return the vectors of texts, each of length 1.

    Raises
    ------
    ConfigError
        The result of `embed` is not one vector of finite numbers per text.
    """
    try:
        vectors = np.asarray(embed(list(texts)), np.float32)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"embed= returned no array of numbers: {type(error).__name__}") from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise ConfigError(
            f"embed= returned an array of shape {vectors.shape}: it takes a list of {len(texts):,} texts and returns "
            "one vector of finite numbers for each"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = vectors / lengths
    return unit


# ---- similarity by words


class _Terms(NamedTuple):
    """Terms of all texts, which are words with a value and topics: one row for each term of a text, sorted by both."""

    texts: Rows
    """Text of each row."""
    terms: Rows
    """Number of the word or topic of each row."""
    starts: Rows
    """First row of each text, and at the end the number of rows."""
    weight: Scores
    """Inverse document frequency of each term."""
    norm: Scores
    """Norm of each text: the root of the sum of its squared weights."""

    @classmethod
    def of(cls, words: Words) -> _Terms:
        heavy = words.heavy()
        class_ids, texts = words.class_ids[heavy].astype(np.int64), words.rows()[heavy]
        names = sorted(set(TOPICS.values()))
        topics = {topic: len(words.classes) + place for place, topic in enumerate(names)}
        topic_of = np.array([topics.get(TOPICS.get(name, ""), -1) for name in words.classes], np.int64)
        topic_ids = topic_of[class_ids]
        n_texts, n_terms = len(words), len(words.classes) + len(topics)
        of_words = texts * n_terms + class_ids
        of_topics = (texts * n_terms + topic_ids)[topic_ids >= 0]
        texts, terms = np.divmod(distinct(np.concatenate([of_words, of_topics])), n_terms)
        n_having = np.bincount(terms, minlength=n_terms)
        weight = np.log1p(n_texts / np.maximum(1, n_having))
        weight[len(words.classes) :] *= _TOPIC_WEIGHT
        squares = np.bincount(texts, weights=weight[terms] ** 2, minlength=n_texts)
        starts = np.searchsorted(texts, np.arange(n_texts + 1))
        return cls(texts, terms, starts, weight, np.sqrt(np.maximum(squares, 1e-12)))

    def similarity(self, newer: Rows, older: Rows) -> Scores:
        """Return the cosine similarity of pairs of texts."""
        n_terms = len(self.weight)
        keys = self.texts * n_terms + self.terms
        score = np.zeros(len(newer))
        for start in range(0, len(newer), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            pair, row = _expand(self.starts[newer[part]], self.starts[newer[part] + 1])
            wanted = older[part][pair] * n_terms + self.terms[row]
            found = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
            shared = np.where(keys[found] == wanted, self.weight[self.terms[row]] ** 2, 0.0)
            score[part] = np.bincount(pair, weights=shared, minlength=len(newer[part]))
        return score / (self.norm[newer] * self.norm[older])


def _pairs_by_words(
    terms: _Terms, owners: Rows, time_order: Rows, is_asked: NDArray[np.bool_], reach: Reach
) -> Rows:
    """Pair each text that is asked with the older ones of its owner that share the most weight of rare words.

    The rows of `_Terms` are sorted by owner, term and time. Each row then has the older texts of its owner with its
    term directly before it, back to the row with which the list of that owner and term begins. With two postings at
    most::

        place       0      1      2      3      4      5
        owner       0      0      0      0      0      1
        term        leeds  leeds  leeds  leeds  tea    leeds
        time_order  0      2      3      6      1      5
        list_start  0      0      0      0      4      5
        begin       0      0      0      1      4      5

    The text at 6 is looked up from `begin` to its own place: it is paired with those at 2 and 3. A dict of lists in
    place of the sorted rows takes 2.6 times as long for 20,000 texts.

    >>> words = words_of(pa.array(["Rain in Leeds.", "Tea at noon.", "Leeds again.", "Tea in Leeds."]))
    >>> everybody, time_order = np.zeros(4, np.int64), np.arange(4)
    >>> pairs = _pairs_by_words(_Terms.of(words), everybody, time_order, np.ones(4, bool), Reach())
    >>> [pair.tolist() for pair in _unpack_pairs(pairs, 4)]
    [[2, 3, 3, 3], [0, 1, 0, 2]]
    """
    order = _order(owners[terms.texts], terms.terms, time_order[terms.texts])
    texts, weight = terms.texts[order], terms.weight[terms.terms[order]]
    begin = _begin_lists(_is_first(owners[texts]) | _is_first(terms.terms[order]), reach.n_postings)

    rank = _rank(-terms.weight)[terms.terms[order]]  # terms are ranked, because they are far fewer than rows
    lookups = _choose_lookups(texts, rank, reach.n_words)
    lookups = lookups[is_asked[texts[lookups]]]
    bounds = np.searchsorted(texts[lookups], np.arange(0, len(time_order) + _TEXTS_AT_ONCE, _TEXTS_AT_ONCE))
    found = [np.zeros(0, np.int64)]
    for first, last in pairwise(bounds):
        part = lookups[first:last]
        lookup, older = _expand(begin[part], part)
        pairs = _pack_pairs(texts[part][lookup], texts[older], len(time_order))
        found.append(_keep_heaviest(pairs, weight[part][lookup] ** 2, len(time_order), reach.n_scored))
    return np.concatenate(found)


def _begin_lists(is_first: NDArray[np.bool_], n_postings: int) -> Rows:
    """Return for each row of some lists the row with which its own list begins, or the nth before it if that is later.

    >>> _begin_lists(np.array([True, False, False, False, True]), n_postings=2).tolist()
    [0, 0, 0, 1, 4]
    """
    place = np.arange(len(is_first))
    return np.maximum(np.maximum.accumulate(np.where(is_first, place, 0)), place - n_postings)


def _choose_lookups(texts: Rows, rank: Rows, n_words: int) -> Rows:
    """Return the rows of the heaviest words of each text, by text; the heaviest has the lowest rank.

    >>> _choose_lookups(np.array([0, 1, 0, 0]), np.array([2, 3, 0, 1]), n_words=2).tolist()
    [2, 3, 1]
    """
    order = _order(texts, rank)
    return order[_rank_in_runs(texts[order]) < n_words]


def _keep_heaviest(pairs: Rows, weights: Scores, n_texts: int, n_scored: int) -> Rows:
    """Add up the weights of each pair, and keep for each newer text those with the highest sums.

    >>> pairs = _pack_pairs(np.array([3, 3, 3, 3]), np.array([0, 1, 0, 2]), 4)
    >>> kept = _keep_heaviest(pairs, np.array([2.0, 3.0, 2.0, 1.0]), 4, n_scored=2)
    >>> [pair.tolist() for pair in _unpack_pairs(kept, 4)]
    [[3, 3], [0, 1]]
    """
    if not len(pairs):
        return pairs
    order = _order(pairs)
    starts = np.flatnonzero(_is_first(pairs[order]))
    pairs, sums = pairs[order][starts], np.add.reduceat(weights[order], starts)
    newer, _ = _unpack_pairs(pairs, n_texts)
    ranked = _order(newer, _rank(-sums))
    return pairs[ranked[_rank_in_runs(newer[ranked]) < n_scored]]


# ---- similarity by vectors


def _pairs_by_vectors(
    vectors: NDArray[np.float32], owners: Rows, time_order: Rows, is_asked: NDArray[np.bool_], reach: Reach
) -> Rows:
    """Pair each text that is asked with the nearest older ones of its owner, a block of the matrix at a time."""
    order = np.lexsort((time_order, owners))
    bounds = np.flatnonzero(np.diff(owners[order], prepend=-1, append=-1))
    pairs = [np.zeros(0, np.int64)]
    n_best = reach.n_scored
    for first, last in pairwise(bounds):
        texts = order[first:last]  # all of one owner, the oldest first
        step = max(1, _MATRIX_CELLS // len(texts))
        for start in range(0, len(texts), step):
            places = np.arange(start, min(start + step, len(texts)))
            places = places[is_asked[texts[places]]]
            similarity = vectors[texts[places]] @ vectors[texts].T
            similarity[places[:, None] <= np.arange(len(texts))] = -np.inf  # not older
            best = np.argpartition(-similarity, min(n_best, len(texts)) - 1, axis=1)[:, :n_best]
            found = _pack_pairs(texts[places][:, None], texts[best], len(time_order))
            pairs.append(found[np.isfinite(np.take_along_axis(similarity, best, axis=1))])
    return np.concatenate(pairs)


# ---- arrays


def _pack_pairs(newer: Rows, older: Rows, n_texts: int) -> Rows:
    """Pack each pair of texts into one number, so that pairs can be sorted and compared."""
    return newer * n_texts + older


def _unpack_pairs(pairs: Rows, n_texts: int) -> tuple[Rows, Rows]:
    """Return the newer and the older text of each pair."""
    return np.divmod(pairs, max(1, n_texts))


def _expand(starts: Rows, ends: Rows) -> tuple[Rows, Rows]:
    """Lay ranges side by side: for each number in one of them, which range it is of, and the number.

    >>> [each.tolist() for each in _expand(np.array([4, 0]), np.array([6, 3]))]
    [[0, 0, 1, 1, 1], [4, 5, 0, 1, 2]]
    """
    lengths = ends - starts
    ranges = np.repeat(np.arange(len(starts)), lengths)
    return ranges, np.arange(len(ranges)) - np.repeat(np.cumsum(lengths) - ends, lengths)


def _order(*keys: Rows) -> Rows:
    """Return the places of rows in the order of some keys, none of them negative; equal rows stay in their order.

    Keys and place are packed into one number, as far as it has room: `numpy.lexsort` takes five times as long.

    >>> _order(np.array([1, 0, 1, 0]), np.array([5, 7, 2, 7])).tolist()
    [1, 3, 2, 0]
    """
    places = np.arange(len(keys[0]))
    n_values = [int(key.max(initial=0)) + 1 for key in (*keys, places)]
    if prod(n_values) > np.iinfo(np.int64).max:
        return np.lexsort(keys[::-1])
    packed = np.zeros(len(places), np.int64)
    for key, n in zip((*keys, places), n_values, strict=True):
        packed = packed * n + key
    packed.sort()
    return packed % n_values[-1]


def _rank(values: Scores) -> Rows:
    """Number values by their size, from 0; equal ones have the same number."""
    return np.unique(values, return_inverse=True)[1]


def _is_first(values: Rows) -> NDArray[np.bool_]:
    """Return which values differ from the one before.

    >>> _is_first(np.array([7, 7, 8, 7])).tolist()
    [True, False, True, True]
    """
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def _rank_in_runs(values: Rows) -> Rows:
    """Count the values before each one that are equal to it, in a sorted array.

    >>> _rank_in_runs(np.array([4, 4, 7, 7, 7])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(len(values)) - np.searchsorted(values, values)


# ---- cues: phrases of a memory that state a change, from rules/superseded.toml

_MAX_CUED_CHARACTERS = 2_000
"""Characters at the beginning of a text in which cues are looked for; a longer text is a document."""


class Cue(NamedTuple):
    """Phrase of a memory that states a change."""

    kind: str
    strength: float
    quote: str
    """Words of the cue as they are written."""
    old: str
    """Former state in the words of the memory; empty if it names none."""
    new: str
    """Present state, likewise."""


def find_cues(texts: pa.Array) -> Iterator[tuple[int, list[Cue]]]:
    """Yield the place and the cues of each text of a column that has some, the strongest cue first.

    >>> next(find_cues(pa.array(["Ada switched from tea to coffee in May.", "Ada likes tea."])))
    (0, [Cue(kind='switched', strength=1, quote='switched from', old='tea', new='coffee in May'), ...])
    """
    beginnings = pc.utf8_slice_codeunits(texts, 0, _MAX_CUED_CHARACTERS)
    for place, matches in load_rules("superseded").search(beginnings):
        cues = []
        for rule, found in matches:
            parts = {name: text for name, text in found.groupdict().items() if text}
            end = min(map(found.start, parts), default=found.end())
            quote = found.string[found.start() : end].strip(" ,;:(") or found[0].strip(" ,;:(")
            cues.append(Cue(rule.group, rule.weight, quote, parts.get("old", ""), parts.get("new", "")))
        yield place, sorted(cues, key=lambda cue: (-cue.strength, not cue.old))
