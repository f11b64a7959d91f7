"""Candidates: for each memory the older ones of the same user that it may repeat, replace or contradict.

Similarity finds the memory that an update refers to, and cannot tell an update from a second fact about the same
thing. Candidates are therefore read by a person or a judge (`memframe.audit.judge`); no change is proposed by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.keeper import Rows, age_order, copies_of, owners_of
from memframe.audit.lexicon import TOPICS
from memframe.audit.rules import load_rules
from memframe.audit.similarity.minhash import distinct
from memframe.audit.text import text_column, without_long_contents
from memframe.audit.tokenize import Words, words_of
from memframe.errors import ConfigError

N_OLDER = 5
MIN_SCORE = 0.15
"""Cosine similarity below which texts have little more in common than the person."""

Embed = Callable[[list[str]], Any]
"""Texts to vectors: an array with one row a text, such as ``SentenceTransformer(...).encode``."""

Scores = NDArray[np.float64]

_N_WORDS = 16
"""Words of a newer text, the rarest first, by which older texts are looked up."""

_N_POSTINGS = 100
"""Most older texts looked up for a word, the latest first, so that time stays linear."""

_N_SCORED = 40
"""Texts that share the most weight, for which the similarity is computed over all words."""

_AT_ONCE = 256
_PAIRS_AT_ONCE = 20_000
"""Pairs whose words are laid out side by side: of 100,000 pairs those took 100 MB."""
_BLOCK_CELLS = 8_000_000
_TOPIC_WEIGHT = 0.6
_COLUMNS = {"newer": "str", "older": "str", "rank": "int64", "score": "float64", "cue": "str"}


class Nearest(NamedTuple):
    """Pairs of texts as three arrays of the same length, by newer text, the most similar older one first."""

    newer: Rows
    older: Rows
    score: Scores


def find_candidates(
    memories: pd.DataFrame, *, embed: Embed | None = None, n: int = N_OLDER, min_score: float = MIN_SCORE
) -> pd.DataFrame:
    """Rank for each memory the older ones of the same user that are most similar to it.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them. Of several memories with the same text, one is compared.
    embed : callable, optional
        Vectors of texts, by which similarity is measured together with that of words. Texts of memories are passed
        to it as they are, secrets included: use a model on this machine.
    n, min_score
        How many for each memory, and how similar at least.

    Returns
    -------
    DataFrame
        Columns ``newer older rank score cue``: two ids, 1 for the most similar, the cosine similarity, and the words
        by which the newer memory says that something has changed, if there are any.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> texts = ["Ada lives in Leeds.", "Ada likes green tea.", "Ada no longer lives in Leeds."]
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": texts}, columns=list(MEMORY_KINDS))
    >>> find_candidates(memories)[["newer", "older", "rank", "cue"]]
      newer older  rank        cue
    0    m3    m1     1  no longer
    """
    memories = without_long_contents(memories)
    rows = np.flatnonzero(copies_of(memories) == np.arange(len(memories)))
    chosen = memories.iloc[rows]
    texts = text_column(chosen, "content")
    owners, age = owners_of(chosen), age_order(chosen)
    vectors = None if embed is None else vectors_of(texts.to_pylist(), embed)
    found = nearest_older(words_of(texts), owners, age, n=n, min_score=min_score, vectors=vectors)
    ids = chosen["id"].to_numpy(object)
    quotes = {row: cues[0].quote for row, cues in find_cues(texts)}
    columns = {
        "newer": ids[found.newer],
        "older": ids[found.older],
        "rank": np.arange(len(found.newer)) - np.searchsorted(found.newer, found.newer) + 1,
        "score": np.minimum(found.score, 1.0),
        "cue": [quotes.get(row) for row in found.newer.tolist()],
    }
    return pd.DataFrame({name: pd.Series(columns[name], dtype=kind) for name, kind in _COLUMNS.items()})


def nearest_older(
    words: Words,
    owners: Rows,
    age: Rows,
    *,
    n: int = N_OLDER,
    min_score: float = MIN_SCORE,
    newer: Rows | None = None,
    vectors: NDArray[np.float32] | None = None,
    n_words: int = _N_WORDS,
    n_postings: int = _N_POSTINGS,
    n_scored: int = _N_SCORED,
) -> Nearest:
    """Find for each text the older ones of the same owner with the highest cosine similarity.

    Words count by how rare they are in the store; a topic (home, work, ...) that two texts speak of in other words
    counts as a word that they share. With vectors, the mean of both similarities is taken.

    Parameters
    ----------
    words : Words
        Of the texts, in their order.
    owners, age : array of int
        A number for the owner of each text, and its place in time.
    newer : array of int, optional
        The texts to find older ones for; by default all.
    vectors : array of float, optional
        One row a text, of length 1.
    n_words, n_postings, n_scored : int
        How many words of a text are looked up, in how many texts each, and how many of these are compared.
    """
    terms = _Terms.of(words)
    is_asked = np.ones(len(age), bool) if newer is None else np.isin(np.arange(len(age)), newer)
    pairs = _by_words(terms, owners, age, is_asked, n_words, n_postings, n_scored)
    if vectors is not None:
        pairs = np.union1d(pairs, _by_vectors(vectors, owners, age, is_asked))
    later, older = np.divmod(pairs, max(1, len(age)))
    score = terms.similarity(later, older)
    if vectors is not None:
        score = (score + np.einsum("ij,ij->i", vectors[later], vectors[older], dtype=np.float64)) / 2
    order = np.lexsort((-age[older], -score, later))  # of two as similar the later one comes first
    order = order[score[order] >= min_score]
    order = order[np.arange(len(order)) - np.searchsorted(later[order], later[order]) < n]
    return Nearest(later[order], older[order], score[order])


def vectors_of(texts: Sequence[str], embed: Embed) -> NDArray[np.float32]:
    """Return the vectors of texts, each of length 1.

    Raises
    ------
    ConfigError
        What `embed` returned is not one vector a text.
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


class _Terms(NamedTuple):
    """Distinct heavy words and topics of all texts, as (text, term) pairs in that order."""

    rows: Rows
    terms: Rows
    starts: Rows
    weight: Scores
    """Inverse document frequency of each term."""
    norm: Scores
    """Norm of each text."""

    @classmethod
    def of(cls, words: Words) -> _Terms:
        heavy = words.heavy()
        class_ids, rows = words.class_ids[heavy].astype(np.int64), words.rows()[heavy]
        topics = {
            topic: len(words.classes) + place for place, topic in enumerate(sorted(set(TOPICS.values())))
        }
        topic_of = np.array([topics.get(TOPICS.get(name, ""), -1) for name in words.classes], np.int64)
        of_topic = topic_of[class_ids]
        n_terms = len(words.classes) + len(topics)
        keys = np.concatenate([rows * n_terms + class_ids, (rows * n_terms + of_topic)[of_topic >= 0]])
        rows, terms = np.divmod(distinct(keys), n_terms)
        n_texts = len(words)
        n_having = np.bincount(terms, minlength=n_terms)
        weight = np.log1p(n_texts / np.maximum(1, n_having))
        weight[len(words.classes) :] *= _TOPIC_WEIGHT
        squares = np.bincount(rows, weights=weight[terms] ** 2, minlength=n_texts)
        starts = np.searchsorted(rows, np.arange(n_texts + 1))
        return cls(rows, terms, starts, weight, np.sqrt(np.maximum(squares, 1e-12)))

    def similarity(self, newer: Rows, older: Rows) -> Scores:
        """Return the cosine similarity of pairs of texts."""
        n_terms = len(self.weight)
        keys = self.rows * n_terms + self.terms
        score = np.zeros(len(newer))
        for start in range(0, len(newer), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            of, places = _ranges(self.starts[newer[part]], self.starts[newer[part] + 1])
            wanted = older[part][of] * n_terms + self.terms[places]
            found = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
            shared = np.where(keys[found] == wanted, self.weight[self.terms[places]] ** 2, 0.0)
            score[part] = np.bincount(of, weights=shared, minlength=len(newer[part]))
        return score / (self.norm[newer] * self.norm[older])


def _ranges(starts: Rows, ends: Rows) -> tuple[Rows, Rows]:
    """Return the numbers of some ranges one after the other, and of which range each is."""
    lengths = ends - starts
    of = np.repeat(np.arange(len(starts)), lengths)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(lengths) - ends, lengths)


def _by_words(
    terms: _Terms,
    owners: Rows,
    age: Rows,
    is_asked: NDArray[np.bool_],
    n_words: int,
    n_postings: int,
    n_scored: int,
) -> Rows:
    """Look older texts up by the rarest words of each text; return pairs, as ``newer * n_texts + older``."""
    n_texts, n_terms = len(age), len(terms.weight)
    by_owner = (owners[terms.rows] * n_terms + terms.terms) * n_texts
    index = np.sort(by_owner + age[terms.rows])  # by owner, word and age: what is older stands before
    of_age = np.argsort(age)
    order = np.lexsort((-terms.weight[terms.terms], terms.rows))
    is_rare = np.arange(len(order)) - terms.starts[terms.rows[order]] < n_words
    asked = order[is_rare & is_asked[terms.rows[order]]]
    ends = np.searchsorted(index, by_owner[asked] + age[terms.rows[asked]])
    begins = np.maximum(np.searchsorted(index, by_owner[asked]), ends - n_postings)
    newer_of = terms.rows[asked]
    bounds = np.searchsorted(newer_of, np.arange(0, n_texts + _AT_ONCE, _AT_ONCE))
    pairs = []
    for first, last in pairwise(bounds):
        of, places = _ranges(begins[first:last], ends[first:last])
        keys = newer_of[first:last][of] * n_texts + of_age[index[places] % n_texts]
        weights = terms.weight[terms.terms[asked[first:last]]][of] ** 2
        pairs.append(_heaviest(keys, weights, n_texts, n_scored))
    return np.concatenate([np.zeros(0, np.int64), *pairs])


def _heaviest(keys: Rows, weights: Scores, n_texts: int, n_scored: int) -> Rows:
    """Return for each newer text the pairs with the highest sums of weights."""
    if not len(keys):
        return keys
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    shared, keys = np.add.reduceat(weights[order], begins), keys[begins]
    newer = keys // n_texts
    ranked = np.lexsort((-shared, newer))
    rank = np.arange(len(ranked)) - np.searchsorted(newer, newer[ranked])
    return keys[ranked[rank < n_scored]]


def _by_vectors(vectors: NDArray[np.float32], owners: Rows, age: Rows, is_asked: NDArray[np.bool_]) -> Rows:
    """Compare each text with all older ones of its owner, a block of the matrix at a time; return pairs as above."""
    order = np.lexsort((age, owners))
    bounds = np.flatnonzero(np.diff(owners[order], prepend=-1, append=-1))
    pairs = [np.zeros(0, np.int64)]
    for first, last in pairwise(bounds):
        mine = order[first:last]
        step = max(1, _BLOCK_CELLS // len(mine))
        for start in range(0, len(mine), step):
            places = np.arange(start, min(start + step, len(mine)))
            places = places[is_asked[mine[places]]]
            alike = vectors[mine[places]] @ vectors[mine].T
            alike[places[:, None] <= np.arange(len(mine))] = -np.inf
            best = np.argpartition(-alike, min(_N_SCORED, len(mine)) - 1, axis=1)[:, :_N_SCORED]
            keys = mine[places][:, None] * len(age) + mine[best]
            pairs.append(keys[np.isfinite(np.take_along_axis(alike, best, axis=1))])
    return np.concatenate(pairs)


# ---- cues: phrases by which a memory says that something has changed, from rules/superseded.toml

_MAX_CUED_CHARACTERS = 2_000
"""Characters of a text in which cues are looked for: a cue stands in a sentence, and what is longer is a document."""


class Cue(NamedTuple):
    """Phrase by which a memory says that something has changed."""

    kind: str
    strength: float
    quote: str
    """The words of the cue, as they are written."""
    old: str
    """Former state in the words of the memory; empty where it does not name one."""
    new: str


def find_cues(texts: pa.Array) -> Iterator[tuple[int, list[Cue]]]:
    """Yield the place of each text of a column that has cues, with those, the strongest first.

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
