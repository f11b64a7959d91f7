"""Memories as pictures: when they came, under which tags, from where, with what scores, how long.

Every function takes a frame of memories and draws into one matplotlib ``Axes``, a new one or the one
that is passed as ``ax``; `overview` returns a ``Figure`` with all of them. `findings` and `duplicates`
take an audit, and draw what it found. Nothing goes through
``matplotlib.pyplot``: no global state, no figure that stays open. What is returned shows itself when it
is the last expression of a notebook cell (``display(...)`` elsewhere in it), and is saved by
``ax.figure.savefig(path)`` or ``figure.savefig(path)``.

The colours of ink and paper follow the matplotlib style in use; the data are drawn in colours of Okabe
and Ito's palette, which colour-blind people can tell apart. What comes out of memories, the names of
tags and sources, is drawn as plain text: no mathematics, no control characters, shortened.

Values that are missing are not drawn but counted below the picture. Times are shown in UTC.
"""

from memframe.plot.charts import duplicates, findings, lengths, overview, scores, sources, tags, timeline

__all__ = ["duplicates", "findings", "lengths", "overview", "scores", "sources", "tags", "timeline"]


def __dir__() -> list[str]:
    """Return the plots alone, for tab completion: the modules beside them are not for callers."""
    return sorted(__all__)
