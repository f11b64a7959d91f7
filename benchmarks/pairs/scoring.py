"""What the checks that relate memories found in a labelled store, against what was planted there."""

from collections import Counter, defaultdict
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from memframe.audit.changed_values import find_value_changes
from memframe.audit.similarity.cluster import similar_pairs
from memframe.audit.superseded import find_replacements
from tests.audit.figures import Figures


class Merged(NamedTuple):
    """Pairwise figures of clusters of duplicates; a pair with a changed value in one cluster is a false one."""

    figures: Figures
    lost: Counter
    """Copies that are not in the cluster of their original, by how they were made."""
    false: list[tuple[int, int]]
    n_changed_merged: int


def related(findings):
    """Pairs of ids that the findings relate."""
    return {
        frozenset(pair)
        for pair in zip(findings["id"], findings["related_id"], strict=True)
        if isinstance(pair[1], str)
    }


def copies(near):
    """Those of the findings of `find_near_duplicates` that are merged, without those that a person decides on."""
    groups = near["group"][near["action"] == "merge"]
    return near[(near["action"] != "review") & near["group"].isin(groups)].reset_index(drop=True)


def labels_of(*findings):
    """For each id that is in any cluster the name of its cluster, over all the checks."""
    parent = {}

    def root(memory_id):
        while parent.setdefault(memory_id, memory_id) != memory_id:
            memory_id = parent[memory_id]
        return memory_id

    for one, other in (pair for frame in findings for pair in related(frame)):
        parent[root(one)] = root(other)
    return {memory_id: root(memory_id) for memory_id in list(parent)}


def merged(corpus, *findings):
    """How well the clusters of `find_exact_duplicates` and `find_near_duplicates` are those of a `Corpus`."""
    labels = labels_of(*findings)
    label = [labels.get(memory_id, memory_id) for memory_id in corpus.memories["id"]]
    clusters = defaultdict(list)
    for row, name in enumerate(label):
        clusters[name].append(row)
    together = [pair for rows in clusters.values() for pair in combinations(rows, 2)]
    false = [(a, b) for a, b in together if corpus.origin[a] != corpus.origin[b]]
    n_true = sum(len(rows) * (len(rows) - 1) // 2 for rows in corpus.duplicates())
    n_hits = len(together) - len(false)
    lost = Counter(
        corpus.made[row] for row, origin in enumerate(corpus.origin) if label[row] != label[origin]
    )
    n_changed = sum(label[a] == label[b] for a, b in map(tuple, corpus.changed))
    figures = Figures(Counter(pair=n_hits), Counter(pair=len(false)), Counter(pair=n_true - n_hits))
    return Merged(figures, lost, false, n_changed)


def changed(corpus, findings):
    """How many of the planted changes were found; two texts that happen to differ in one value count neither way."""
    found = {
        frozenset(corpus.origin[int(memory_id[1:])] for memory_id in pair): pair for pair in related(findings)
    }
    planted = {frozenset(corpus.origin[row] for row in pair) for pair in corpus.changed}
    false = [
        pair
        for origins, pair in found.items()
        if origins not in planted and corpus.n_values_apart(*(int(memory_id[1:]) for memory_id in pair)) != 1
    ]
    hits = planted & found.keys()
    return Figures(
        Counter(change=len(hits)), Counter(change=len(false)), Counter(change=len(planted) - len(hits))
    ), false


def value_changes(memories, *, pairs=None):
    """The links of `find_value_changes`, as rows of findings."""
    return _linked(find_value_changes, memories, pairs)


def replacements(memories, *, pairs=None):
    """The links of `find_replacements`, as rows of findings."""
    return _linked(find_replacements, memories, pairs)


def _linked(find, memories, pairs):
    pairs = similar_pairs(memories) if pairs is None else pairs
    chosen = memories.iloc[pairs.rows]
    ids = chosen["id"].tolist()
    rows = [
        (ids[link.older], ids[link.newer], link.kind, link.severity, link.score)
        for link in find(chosen, pairs)
    ]
    columns = ["id", "related_id", "kind", "severity", "score"]
    return (
        pd.DataFrame(rows, columns=columns)
        .assign(action="review")
        .sort_values(["id", "related_id"], ignore_index=True)
    )


class Ranked(NamedTuple):
    """Suggestions of what is superseded."""

    cued: Figures
    """Of those proposed for review: recall over updates that carry a cue; any replaced memory counts as right."""
    first_three: float
    """Share of the updates with a cue whose replaced memory is among the suggestions, which are three at most."""
    uncued_recall: float
    beside: int
    """How many of those proposed are still true beside the newer one."""


def ranked(updates, findings):
    """How well the suggestions of `find_replacements` are the updates of an `Updates`."""
    found = set(zip(findings["id"], findings["related_id"], strict=True))
    review = findings[findings["action"] == "review"]
    proposed = set(zip(review["id"], review["related_id"], strict=True))
    cued, uncued, beside = (set(pairs) for pairs in (updates.cued, updates.uncued, updates.beside))
    right = cued | uncued
    figures = Figures(
        Counter(update=len(proposed & cued)),
        Counter(update=len(proposed - right)),
        Counter(update=len(cued - proposed)),
    )
    return Ranked(
        figures,
        len(found & cued) / max(1, len(cued)),
        len(proposed & uncued) / max(1, len(uncued)),
        len(proposed & beside),
    )
