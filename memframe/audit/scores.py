"""Scores: importance on two scales at once, values out of range, sources that are always equally sure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from memframe.audit.findings import findings_frame, joined
from memframe.frames import numbers, texts

HIGHEST = 5.0
"""Of the scale from 1 to 5 that the specification allows beside that from 0 to 1."""

MIN_ROWS = 10
"""Memories of a source from which on one and the same confidence is no accident."""

_NO_SOURCE = "(no source)"


def find_scores(memories: pd.DataFrame) -> pd.DataFrame:
    """Importance above 1 among importance of 0 to 1, scores that cannot be, and confidence that never changes.

    Whether an importance of exactly 1 is the most of the one scale or the least of the other nobody can tell; it
    is named for review where its source scored from 1 to 5 just before and just after. In a store that holds
    nothing below 1 and something above, importance is on one scale, of which 1 is the least; that is said once for
    each memory as information.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id``; looks at ``importance`` and ``confidence``, by ``source`` and ``created_at``.

    Returns
    -------
    DataFrame
        Findings of the kinds ``mixed_scale`` and ``scale_1_to_5`` (rescale to `rescaled`), ``ambiguous_scale``,
        ``out_of_range`` and ``constant_confidence`` (a ``group`` for each source).

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "importance": [0.4, 4.0, 7.0]})
    >>> find_scores(memories)[["kind", "id", "evidence", "action"]]
               kind  id                                         evidence   action
    0  out_of_range  m3             importance is 7, beyond both scales   review
    1   mixed_scale  m2  importance is 4, where others are at most 1: 0.8  rescale
    """
    return joined(_all(memories))


def rescaled(importance: float) -> float:
    """Importance of the scale up to 5 on that from 0 to 1.

    >>> rescaled(4.0)
    0.8
    """
    return round(importance / HIGHEST, 4)


def _all(memories: pd.DataFrame) -> Iterator[pd.DataFrame]:
    if "importance" in memories.columns:
        importance = numbers(memories, "importance")
        yield _out_of_range(memories, "importance", importance, HIGHEST)
        yield _other_scale(memories, importance)
        yield _ambiguous(memories, importance)
    if "confidence" in memories.columns:
        confidence = numbers(memories, "confidence")
        yield _out_of_range(memories, "confidence", confidence, 1.0)
        yield _constant(memories, confidence)


def _out_of_range(
    memories: pd.DataFrame, field: str, values: NDArray[np.float64], highest: float
) -> pd.DataFrame:
    rows = np.flatnonzero((values < 0) | (values > highest))
    words = "beyond both scales" if highest > 1 else "not within 0 to 1"
    return findings_frame(
        check="scores",
        kind="out_of_range",
        severity="medium",
        id=memories["id"].iloc[rows].tolist(),
        field=field,
        score=1.0,
        evidence=[f"{field} is {value:g}, {words}" for value in values[rows]],
        action="review",
    )


def _other_scale(memories: pd.DataFrame, importance: NDArray[np.float64]) -> pd.DataFrame:
    is_above = (importance > 1) & (importance <= HIGHEST)
    is_mixed = bool((importance < 1).any())
    is_least = (importance == 1) & (not is_mixed and bool(is_above.any()))
    rows = np.flatnonzero(is_above | is_least)
    where = "where others are at most 1" if is_mixed else "as all of them are from 1 up"
    return findings_frame(
        check="scores",
        kind="mixed_scale" if is_mixed else "scale_1_to_5",
        severity="medium" if is_mixed else "info",
        id=memories["id"].iloc[rows].tolist(),
        field="importance",
        score=1.0,
        evidence=[f"importance is {value:g}, {where}: {rescaled(value):g}" for value in importance[rows]],
        action="rescale",
    )


def _ambiguous(memories: pd.DataFrame, importance: NDArray[np.float64]) -> pd.DataFrame:
    """Importance of 1 between two neighbours of the same source, by time, that are both above 1."""
    if not {"source", "created_at"} <= set(memories.columns) or not (importance < 1).any():
        return findings_frame(id=[])
    scored = pd.DataFrame(
        {
            "source": texts(memories, "source").fillna(_NO_SOURCE).to_numpy(),
            "created_at": memories["created_at"].to_numpy(),
            "importance": importance,
        }
    ).dropna(subset=["importance"])
    by_source = scored.sort_values("created_at", kind="stable").groupby("source")["importance"]
    before, after = by_source.shift(1).reindex(scored.index), by_source.shift(-1).reindex(scored.index)
    rows = scored.index[(scored["importance"] == 1) & (before > 1) & (after > 1)]
    return findings_frame(
        check="scores",
        kind="ambiguous_scale",
        severity="low",
        id=memories["id"].iloc[rows].tolist(),
        field="importance",
        score=0.5,
        evidence="importance is 1 between scores of 1 to 5: the least of one scale, or the most of the other",
        action="review",
    )


def _constant(memories: pd.DataFrame, confidence: NDArray[np.float64]) -> pd.DataFrame:
    """Memories of sources whose confidence tells nothing, as it is always the same."""
    source = (
        texts(memories, "source").fillna(_NO_SOURCE).to_numpy()
        if "source" in memories.columns
        else np.full(len(memories), _NO_SOURCE)
    )
    scored = pd.DataFrame({"source": source, "confidence": confidence}).dropna()
    by_source = scored.groupby("source")["confidence"].agg(["nunique", "size", "first"])
    constant = by_source[(by_source["nunique"] == 1) & (by_source["size"] >= MIN_ROWS)]
    group = pd.Series(range(len(constant)), index=constant.index)
    rows = scored.index[scored["source"].isin(constant.index)]
    words = {
        name: f"confidence is {row['first']:g} in all {row['size']:,.0f} memories of this source"
        for name, row in constant.iterrows()
    }
    return findings_frame(
        check="scores",
        kind="constant_confidence",
        severity="info",
        id=memories["id"].iloc[rows].tolist(),
        field="confidence",
        group=group.reindex(source[rows]).tolist(),
        score=1.0,
        evidence=[words[name] for name in source[rows]],
        action="none",
    )
