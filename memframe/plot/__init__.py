"""Plot memories: their times, tags, sources, scores and lengths.

Each function takes a frame of memories and draws into one matplotlib ``Axes``, a new one or ``ax``; `overview`
returns a ``Figure`` with all charts. `findings` and `duplicates` take an audit, and `history` the path of an archive
that keeps its past. Nothing goes through ``matplotlib.pyplot``, so there is no global state and no figure stays open.
The result shows itself as the last expression of a notebook cell (``display(...)`` elsewhere), and is saved by
``ax.figure.savefig(path)`` or ``figure.savefig(path)``.

Ink and paper follow the matplotlib style in use; data have the colours of Okabe and Ito's palette, which colour-blind
people can tell apart. Names of tags and sources are drawn as plain text: no mathematics, no control characters,
shortened.

Missing values are not drawn but counted below the chart. Times are in UTC.
"""

from memframe.plot.charts import duplicates, findings, lengths, overview, scores, sources, tags, timeline
from memframe.plot.snapshots_chart import history

__all__ = [
    "duplicates",
    "findings",
    "history",
    "lengths",
    "overview",
    "scores",
    "sources",
    "tags",
    "timeline",
]


def __dir__() -> list[str]:
    """Return the plots alone, for tab completion: the modules beside them are not for callers."""
    return sorted(__all__)
