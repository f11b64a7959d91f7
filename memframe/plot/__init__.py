"""Plot memories: their times, tags, sources, scores and lengths.

Each function takes a frame of memories and draws into one matplotlib ``Axes``, a new one or ``ax``; `overview`
returns a ``Figure`` with all charts. `findings` and `duplicates` take an audit, and `history` the path of an archive
that keeps its past. Nothing goes through ``matplotlib.pyplot``, so there is no global state and no figure stays open.
The result shows itself as the last expression of a notebook cell (``display(...)`` elsewhere), and is saved by
``ax.figure.savefig(path)`` or ``figure.savefig(path)``.

Text and background follow the matplotlib style in use. Data have the colours of Okabe and Ito's palette, which
colour-blind people can distinguish. Names of tags and sources are drawn as plain text: without mathematics and control
characters, and shortened.

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
    """Return only the plots, for tab completion: the modules are not for callers."""
    return sorted(__all__)
