"""All pictures of memories on one page."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from memframe.columns import times
from memframe.plot.counts import sources, tags, timeline
from memframe.plot.measures import lengths, scores
from memframe.plot.paper import new_figure
from memframe.showing import number_of


def overview(memories: pd.DataFrame) -> Figure:
    """All pictures of memories on one page.

    Parameters
    ----------
    memories : DataFrame
        As `memframe.load_memories` returns them.

    Returns
    -------
    Figure
    """
    figure = new_figure(10.5, 10.5)
    panels = figure.subplot_mosaic(
        [["timeline", "timeline"], ["tags", "sources"], ["scores", "lengths"]],
        height_ratios=[3, 4, 4],
    )
    for draw in (timeline, tags, sources, scores, lengths):
        draw(memories, ax=panels[draw.__name__])
    figure.suptitle(_headline(memories), x=0.01, ha="left", fontsize=14, fontweight="bold")
    return figure


def _headline(memories: pd.DataFrame) -> str:
    moments = times(memories, "created_at")
    days = np.unique(moments[~np.isnat(moments)].astype("datetime64[D]"))
    span = f", {days[0]} to {days[-1]}" if len(days) > 1 else ""
    return f"{number_of(len(memories), 'memory', 'memories')}{span}"
