"""Completed frames: for checks that read many columns, those that a frame does not have, with nothing in them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from memframe.frames import MEMORY_KINDS, FrameBuilder, times

_TIMES, _NAMES = ("created_at", "updated_at"), ("tags", "tag_ids")


def with_all_columns(memories: pd.DataFrame) -> pd.DataFrame:
    """The same rows with every column of memories; times that are text are read.

    >>> with_all_columns(pd.DataFrame({"id": ["m1"], "content": ["Likes tea"]})).isna().sum(axis=1).item()
    9
    """
    nothing = FrameBuilder(MEMORY_KINDS).frame().reindex(range(len(memories))).set_axis(memories.index)
    absent = {name: nothing[name] for name in nothing.columns if name not in memories.columns}
    absent |= {
        name: pd.Series([()] * len(memories), memories.index, object) for name in _NAMES if name in absent
    }
    text = {
        name: _read(memories, name)
        for name in _TIMES
        if name in memories.columns and _is_text(memories, name)
    }
    return memories.assign(**absent, **text) if absent or text else memories


def _is_text(memories: pd.DataFrame, name: str) -> bool:
    return not isinstance(memories[name].dtype, pd.DatetimeTZDtype)


def _read(memories: pd.DataFrame, name: str) -> pd.Series[Any]:
    moments = pd.DatetimeIndex(times(memories, name), tz="UTC")
    return pd.Series(moments, memories.index)
