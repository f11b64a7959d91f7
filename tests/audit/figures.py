"""Figures of a detector on labelled texts: by span, by record, and what each means."""

from collections import Counter, defaultdict
from typing import NamedTuple

import pandas as pd


class Figures(NamedTuple):
    """Hits, false alarms and misses, by kind."""

    hits: Counter
    false: Counter
    missed: Counter

    def f1(self, *kinds):
        """Of some kinds together, or of all."""
        hits, false, missed = (
            sum(n for kind, n in counter.items() if not kinds or kind in kinds)
            for counter in (self.hits, self.false, self.missed)
        )
        return 2 * hits / max(1, 2 * hits + false + missed)

    def precision(self):
        hits = self.hits.total()
        return hits / max(1, hits + self.false.total())

    def recall(self):
        hits = self.hits.total()
        return hits / max(1, hits + self.missed.total())


def frame_of(texts):
    """Texts as contents of memories whose ids are their places."""
    texts = list(texts)
    return pd.DataFrame({"id": [str(place) for place in range(len(texts))], "content": texts})


def span_figures(labels, findings):
    """Spans of the same kind that share at least half of the characters of both count as found.

    `labels` is a list of lists of (kind, start, end), by place of the text.
    """
    found = defaultdict(list)
    for row in findings.itertuples():
        found[int(row.id)].append((row.kind, row.start, row.end))
    figures = Figures(Counter(), Counter(), Counter())
    for place, expected in enumerate(labels):
        left = found.pop(place, [])
        for label in expected:
            hit = next((span for span in left if is_same(label, span)), None)
            (figures.missed if hit is None else figures.hits)[label[0]] += 1
            if hit is not None:
                left.remove(hit)
        figures.false.update(kind for kind, _, _ in left)
    return figures


def is_same(label, span):
    common = min(label[2], span[2]) - max(label[1], span[1])
    return label[0] == span[0] and common / (max(label[2], span[2]) - min(label[1], span[1])) >= 0.5


def record_figures(is_positive, findings):
    """Texts in which anything was found against those in which something is."""
    found = set(findings["id"])
    figures = Figures(Counter(), Counter(), Counter())
    for place, positive in enumerate(is_positive):
        if positive:
            (figures.hits if str(place) in found else figures.missed)["record"] += 1
        elif str(place) in found:
            figures.false["record"] += 1
    return figures
