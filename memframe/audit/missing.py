"""Missing: memories without a title, a summary, a tag, a source or any content."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from memframe.audit.findings import Severity, findings_frame, joined
from memframe.frames import name_cells, texts

_SEVERITIES: dict[str, Severity] = {
    "content": "medium",
    "title": "low",
    "tags": "low",
    "source": "low",
    "summary": "info",
}
"""What may be missing, and how bad that is; a short memory needs no summary."""


def find_missing(memories: pd.DataFrame) -> pd.DataFrame:
    """Fields that are empty: nothing, or white space alone.

    Content that could not be opened is not missing; `find_sealed` tells of it. A column that the frame does not
    have is not missing from its memories either.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id``.

    Returns
    -------
    DataFrame
        Findings, one a memory and field; ``kind`` and ``field`` are the name of the field. An audit counts them,
        and has one for each field.

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "title": ["Tea", None], "tags": [(), ("home",)]})
    >>> find_missing(memories)[["kind", "id", "severity"]]
        kind  id severity
    0  title  m2      low
    1   tags  m1      low
    """
    return joined(_missing(memories, field) for field in _SEVERITIES if field in memories.columns)


def _missing(memories: pd.DataFrame, field: str) -> pd.DataFrame:
    ids = memories["id"][_is_empty(memories, field)]
    return findings_frame(
        check="missing",
        kind=field,
        severity=_SEVERITIES[field],
        id=ids.tolist(),
        field=field,
        score=1.0,
        evidence=f"no {field}",
        action="review" if field == "content" else "none",
    )


def _is_empty(memories: pd.DataFrame, field: str) -> NDArray[np.bool_]:
    if field == "tags":
        return np.array([len(cell) == 0 for cell in name_cells(memories, field)], dtype=bool)
    column = texts(memories, field)
    empty = (column.isna() | (column.str.strip() == "")).to_numpy(dtype=bool)
    if field == "content" and "content_error" in memories.columns:
        return empty & memories["content_error"].isna().to_numpy()
    return empty
