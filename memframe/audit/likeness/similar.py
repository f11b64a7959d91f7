"""Similar pairs: which memories of one person say the same, or the same with another value.

What the checks on near-duplicates, changed values and superseded facts share, so that it is found once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from memframe.audit.exact_duplicate import copies_of, owners_of
from memframe.audit.language.words import Words, words_of
from memframe.audit.likeness.candidates import Candidates
from memframe.audit.likeness.clusters import Clusters, near_clusters
from memframe.audit.likeness.pairs import Pair, Pairs, compared
from memframe.audit.likeness.promising import promising_pairs
from memframe.audit.likeness.reader import Reader
from memframe.audit.likeness.templates import changed_pairs
from memframe.audit.text import text_column, without_long_contents
from memframe.frames import gc_paused

_TEXTS_AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class Relations:
    """What texts are to each other, without what it takes to compare more of them: little enough to be sent."""

    rows: NDArray[np.int64]
    """As in `SimilarPairs`, as are the others."""
    words: Words
    clusters: Clusters
    changed: list[Pair]


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Texts, pairs of them that are alike, and clusters of those that say the same."""

    rows: NDArray[np.int64]
    """The row of the frame for each text. Of memories with the same text it is the one to keep."""
    owners: NDArray[np.int64]
    """A number for the user of each text."""
    pairs: Pairs
    """Of places in ``rows``."""
    clusters: Clusters
    reader: Reader

    @cached_property
    def changed(self) -> list[Pair]:
        """Of the pairs those that differ in a value, one for each two clusters, with the words in which they do."""
        changed = changed_pairs(self.reader.words, self.owners, self.pairs, self.clusters)
        return [Pair(left, right, self.reader.difference(left, right)) for left, right, _ in changed]

    @property
    def relations(self) -> Relations:
        """What is known, for checks that compare nothing more."""
        return Relations(self.rows, self.reader.words, self.clusters, self.changed)


def similar_pairs(memories: pd.DataFrame) -> SimilarPairs:
    """Compare each memory with those of the same user that may say the same.

    Time and memory grow with the number of memories, not with its square, also where thousands share a template.
    What is found does not hang on the order of the rows.

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
        reader = Reader(words, texts)
        pairs = compared(reader, *promising_pairs(words, Candidates(words, owners)))
        return SimilarPairs(rows, owners, pairs, near_clusters(reader, pairs, len(rows)), reader)


def _hashes(texts: pa.Array, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number for each of some texts."""
    hashes = [np.zeros(0, np.uint64)]
    for start in range(0, len(rows), _TEXTS_AT_ONCE):
        some = texts.take(pa.array(rows[start : start + _TEXTS_AT_ONCE]))
        hashes.append(pd.util.hash_array(some.to_numpy(zero_copy_only=False)))
    return np.concatenate(hashes)
