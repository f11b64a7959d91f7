"""Words for what a picture does not show; empty where it shows everything."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from memframe.showing import number_of


def nothing(memories: pd.DataFrame, why: str) -> str:
    """Why there is nothing to draw.

    >>> nothing(pd.DataFrame({"tags": [()]}), "none has a tag")
    '1 memory, none has a tag'
    """
    return "No memories" if memories.empty else f"{number_of(len(memories), 'memory', 'memories')}, {why}"


def left_out(rows: NDArray[np.bool_], why: str) -> str:
    """How many of the rows are not drawn.

    >>> left_out(np.array([True, False, True]), "without a time")
    '2 without a time'
    """
    n_rows = int(np.count_nonzero(rows))
    return f"{n_rows:,} {why}" if n_rows else ""


def more(n_hidden: int, thing: str) -> str:
    """How many names had no room.

    >>> more(1, "tag"), more(0, "tag")
    ('1 more tag', '')
    """
    return number_of(n_hidden, f"more {thing}", f"more {thing}s") if n_hidden else ""
