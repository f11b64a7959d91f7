"""What an audit found: how much of which kind, and how often memories repeat each other."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from memframe.columns import texts
from memframe.errors import FrameError, check_kind
from memframe.plot.paper import (
    BLUE,
    GREY,
    SERIES,
    SMALL,
    SOFT,
    VERMILION,
    blank,
    count_axis,
    legend,
    note,
    prepare,
)

SEVERITIES = {"high": VERMILION, "medium": SERIES[1], "low": BLUE, "info": GREY}
"""From the worst to the least, and the colour of each."""

_DUPLICATES = {"exact_duplicate": BLUE, "near_duplicate": SERIES[1], "changed_value": VERMILION}
_SIZES = (2, 3, 4, 5, 10, 20, 50)
"""Smallest cluster of each bar."""

_FEWEST_BARS = 4


@runtime_checkable
class Audited(Protocol):
    """What holds findings: an `memframe.audit.Audit`."""

    @property
    def findings(self) -> pd.DataFrame: ...
    @property
    def by_memory(self) -> pd.DataFrame: ...


def findings(audit: Audited | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """How many memories each check concerns, by the worst severity that it gives them.

    Parameters
    ----------
    audit : Audit or DataFrame
        The audit, or findings: needs ``check``, ``severity`` and ``id``. Of findings alone, rows without an id are
        left out: what they count only the audit knows.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes

    Examples
    --------
    >>> found = pd.DataFrame({"check": ["junk"], "severity": ["low"], "id": ["m1"]})
    >>> findings(found).get_title(loc="left")
    'Memories by check'
    """
    check_kind("audit", audit, Audited, pd.DataFrame, error=FrameError)
    frame = _checked(audit if isinstance(audit, pd.DataFrame) else audit.by_memory)
    frame = frame[frame["id"].notna()]
    title = "Memories by check"
    if frame.empty:
        return blank(ax, title, "No findings")
    table = _worst_by_check(frame)
    ax = prepare(ax, title)
    left = np.zeros(len(table))
    bars = []
    for severity in (name for name in SEVERITIES if name in table.columns):
        widths = table[severity].to_numpy(dtype=np.float64)
        bars.append((severity, ax.barh(range(len(table)), widths, 0.7, left, color=SEVERITIES[severity])))
        left += widths
    names = [name.replace("_", " ") for name in table.index]
    ax.set_yticks(range(len(table)), labels=names)
    ax.set_ylim(max(len(names), 6) - 0.4, -0.6)  # few bars stay slim
    ax.set_xlim(0, 1.15 * left.max())
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    for row, total in enumerate(left):
        ax.annotate(
            f"{total:,.0f}",
            (total, row),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            alpha=SOFT,
        )
    legend(ax, [bar for _, bar in bars], [severity for severity, _ in bars])
    return ax


def duplicates(audit: Audited | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """How many memories say the same: clusters of duplicates by their size.

    Parameters
    ----------
    audit : Audit or DataFrame
        The audit, or its findings: needs ``check``, ``group`` and ``id``.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes
    """
    check_kind("audit", audit, Audited, pd.DataFrame, error=FrameError)
    frame = _checked(audit if isinstance(audit, pd.DataFrame) else audit.findings)
    title = "Clusters of duplicates by size"
    frame = frame[frame["check"].isin(list(_DUPLICATES)) & frame["group"].notna()]
    sizes = frame.groupby(["check", "group"])["id"].nunique().reset_index(name="size").query("size > 1")
    if sizes.empty:
        return blank(ax, title, "No duplicates")
    ax = prepare(ax, f"{title}, n = {len(sizes):,}", grid="y")
    shown = [check for check in _DUPLICATES if check in set(sizes["check"])]
    width = 0.8 / len(shown)
    n_bars = max(_FEWEST_BARS, int(np.flatnonzero(_by_size(sizes["size"].to_numpy()))[-1]) + 1)
    bars = []
    for place, check in enumerate(shown):
        heights = _by_size(sizes["size"][sizes["check"] == check].to_numpy())[:n_bars]
        offsets = np.arange(n_bars) + (place - (len(shown) - 1) / 2) * width
        bars.append(ax.bar(offsets, heights, 0.92 * width, color=_DUPLICATES[check]))
    ax.set_xticks(range(n_bars), labels=_size_labels()[:n_bars])
    ax.set_xlim(-0.6, n_bars - 0.4)
    count_axis(ax)
    note(ax, axis="memories in a cluster")
    legend(ax, bars, [check.replace("_", " ") for check in shown])
    return ax


def _checked(findings: pd.DataFrame) -> pd.DataFrame:
    if "check" not in findings:
        raise FrameError("the frame holds no findings: pass an Audit, which audit_memories(memories) makes")
    return findings


def _worst_by_check(frame: pd.DataFrame) -> pd.DataFrame:
    """Memories by check and their worst severity there; the checks with the worst on top."""
    order = list(SEVERITIES)
    ranks = texts(frame, "severity").map({name: rank for rank, name in enumerate(order)})
    worst = ranks.groupby([frame["check"], frame["id"]]).min()
    table: pd.DataFrame = worst.groupby(level=0).value_counts().unstack(fill_value=0)
    table = table.reindex(columns=[rank for rank in range(len(order)) if rank in table.columns])
    table.columns = pd.Index([order[int(rank)] for rank in table.columns])
    return table.sort_values(list(table.columns), ascending=False)


def _by_size(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(_SIZES, sizes, side="right") - 1, minlength=len(_SIZES))


def _size_labels() -> list[str]:
    spans = zip(_SIZES, (*_SIZES[1:], 0), strict=True)
    return [
        f"{low}" if high == low + 1 else f"{low}+" if not high else f"{low}-{high - 1}" for low, high in spans
    ]
