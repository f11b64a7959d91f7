"""Paraphrases: memories that a model of the caller's holds for alike, and that contradict each other in no value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from memframe.audit.exact_duplicate import owners_of
from memframe.audit.language.lexicon import NEGATIONS
from memframe.audit.language.resemblance import class_of, is_number
from memframe.audit.likeness.clusters import Clusters
from memframe.audit.likeness.reader import Reader
from memframe.audit.likeness.similar import SimilarPairs

_ROWS_AT_ONCE = 1024
_MOST_ALIKE = 5

Embed = Callable[[list[str]], NDArray[Any]]


def with_paraphrases(
    memories: pd.DataFrame, pairs: SimilarPairs, embed: Embed, least_cosine: float
) -> Clusters:
    """The clusters of the pairs, joined further where the model sees the same and no value differs.

    Parameters
    ----------
    embed
        Turns texts into vectors, one row each, of any length; called once, with one text for each cluster.
    least_cosine
        How alike two vectors have to be, from -1 to 1.
    """
    clusters = pairs.clusters.copy()
    chosen = sorted(
        {max(clusters.members(place), key=pairs.reader.fullness) for place in range(len(pairs.rows))}
    )
    texts = memories["content"].to_numpy(object)[pairs.rows[chosen]].tolist()
    owners = owners_of(memories)[pairs.rows[chosen]]
    vectors = _unit(np.asarray(embed(texts), np.float32)) if texts else np.zeros((0, 1), np.float32)
    if len(vectors) != len(texts):
        raise ValueError(
            f"embed gave {len(vectors)} vectors for {len(texts)} texts; it has to give one for each"
        )
    found = sorted(_alike(vectors, owners, least_cosine), key=lambda pair: (-pair[0], pair[1], pair[2]))
    for _, a, b in found:
        left, right = chosen[a], chosen[b]
        if all(
            agree(pairs.reader, x, y) for x in clusters.members(left)[:3] for y in clusters.members(right)[:3]
        ):
            clusters.join(left, right)
    return clusters


def agree(reader: Reader, row: int, other: int) -> bool:
    """Whether two texts have the same numbers and deny equally often, and neither has another value for the other."""
    if reader.difference(row, other).verdict == "changed":
        return False
    values, others = (_values(reader.words.of(place)) for place in (row, other))
    return values == others


def _values(words: Sequence[str]) -> tuple[list[str], bool]:
    numbers = sorted({class_of(word) for word in words if is_number(class_of(word))})
    return numbers, sum(word in NEGATIONS for word in words) % 2 == 1


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _alike(
    vectors: NDArray[np.float32], owners: NDArray[np.int64], least: float
) -> Iterator[tuple[float, int, int]]:
    """Cosine and places of pairs of one owner, for each text the likest few."""
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        cosines = vectors[start : start + _ROWS_AT_ONCE] @ vectors.T
        cosines[owners[start : start + _ROWS_AT_ONCE, None] != owners] = -1
        for row, line in enumerate(cosines, start):
            line[: row + 1] = -1
            likest = np.argpartition(line, -min(_MOST_ALIKE, len(line)))[-_MOST_ALIKE:]
            yield from ((float(line[other]), row, int(other)) for other in likest if line[other] >= least)
