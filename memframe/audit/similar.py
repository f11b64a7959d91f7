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

from memframe.audit.candidates import candidate_pairs
from memframe.audit.clusters import Clusters, Pair, near_clusters
from memframe.audit.exact_duplicate import copies_of, owners_of
from memframe.audit.promising import promising_pairs
from memframe.audit.reader import Reader
from memframe.audit.templates import changed_pairs
from memframe.audit.words import words_of
from memframe.collector import collector_paused


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Texts, pairs of them that are alike, and clusters of those that say the same."""

    rows: NDArray[np.int64]
    """The row of the frame for each text. Of memories with the same text it is the one to keep."""
    owners: NDArray[np.int64]
    """A number for the user of each text."""
    pairs: list[Pair]
    """Pairs of places in ``rows``."""
    clusters: Clusters
    reader: Reader

    @cached_property
    def changed(self) -> list[Pair]:
        """Of the pairs those that differ in a value, one for each two clusters."""
        return changed_pairs(self.reader.words, self.owners, self.pairs, self.clusters)


def similar_pairs(memories: pd.DataFrame) -> SimilarPairs:
    """Compare each memory with those of the same user that may say the same.

    Time and memory grow with the number of memories, not with its square, also where thousands share a template.
    What is found does not hang on the order of the rows.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.
    """
    kept = copies_of(memories)
    rows = np.flatnonzero(kept == np.arange(len(memories)))
    owners = owners_of(memories)
    contents = memories["content"].to_numpy(object)
    rows = rows[np.lexsort((pd.util.hash_array(contents[rows]), owners[rows]))]
    with collector_paused():
        words = words_of(pa.array(contents[rows], pa.large_string()))
        left, right, place = candidate_pairs(words, owners[rows])
        promising = promising_pairs(words, left, right, place)
        reader = Reader(words, contents[rows])
        found = (
            Pair(a, b, reader.difference(a, b))
            for a, b in zip(left[promising].tolist(), right[promising].tolist(), strict=True)
        )
        pairs = [pair for pair in found if pair.difference.verdict != "apart"]
        return SimilarPairs(rows, owners[rows], pairs, near_clusters(reader, pairs, len(rows)), reader)
