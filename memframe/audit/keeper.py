"""Which of several copies is kept, and which of two memories is the newer one."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FILLED = ("title", "summary", "source", "importance", "confidence")


def precedence(
    memories: pd.DataFrame, said: NDArray[np.float64] | None = None, odd: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """The place of each row among all, the best to keep first.

    The row that says most (``said``, where texts differ), then the one with most fields and tags filled, then the
    plainest (the least ``odd``), then the one updated last, then the smallest id.
    """
    filled = memories[list(FILLED)].notna().sum(axis=1).to_numpy() + _n_tags(memories["tags"])
    keys = pd.DataFrame(
        {
            "said": -said if said is not None else 0.0,
            "filled": -filled,
            "odd": odd if odd is not None else 0.0,
            "updated": -_microseconds(memories["updated_at"].fillna(memories["created_at"])),
            "id": memories["id"].to_numpy(),
        }
    )
    return _places(keys)


def age_order(memories: pd.DataFrame) -> NDArray[np.int64]:
    """The place of each row in time, the oldest first; of the same moment by id, without a time first."""
    created = memories["created_at"].fillna(memories["updated_at"])
    return _places(pd.DataFrame({"created": _microseconds(created), "id": memories["id"].to_numpy()}))


def _n_tags(tags: pd.Series[Any]) -> NDArray[np.int64]:
    return np.array([len(names) if isinstance(names, Sized) else 0 for names in tags], np.int64)


def _microseconds(times: pd.Series[Any]) -> NDArray[np.int64]:
    """Times as numbers; no time is the smallest of all."""
    return pd.to_datetime(times, utc=True).to_numpy("datetime64[us]").astype(np.int64)


def _places(keys: pd.DataFrame) -> NDArray[np.int64]:
    order = keys.reset_index(drop=True).sort_values(list(keys.columns), kind="stable").index.to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
