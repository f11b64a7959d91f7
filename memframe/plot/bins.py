"""Bins for times and lengths: as fine as the eye can still tell apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_BINS = 80

FIRST, LAST = np.datetime64("1971-01-01", "us"), np.datetime64("2100-01-01", "us")
"""Between these a time can be one: the zeros of clocks (year 1, 1970) and their infinities lie outside."""

_A_DECADE = 6  # steps of a logarithmic axis between 10 and 100: coarser than whole numbers from 1 on


class _Unit(NamedTuple):
    name: str
    code: str
    step: int
    offset: int = 0


_UNITS = (
    _Unit("day", "D", 1),
    _Unit("week", "D", 7, 3),  # numpy's day 0 is a Thursday
    _Unit("month", "M", 1),
    _Unit("quarter", "M", 3),
    _Unit("year", "Y", 1),
    _Unit("decade", "Y", 10),
)


class TimeBins(NamedTuple):
    """Consecutive stretches of the calendar, and in which of them each time lies."""

    unit: str
    edges: NDArray[np.datetime64]
    """Days; one more than there are bins."""
    place: NDArray[np.int64]
    """The bin of each time."""


def bin_times(times: NDArray[np.datetime64]) -> TimeBins:
    """Days, weeks (from Monday), months and so on: the finest of which at most `MAX_BINS` are needed.

    The times lie from `FIRST` to before `LAST`.

    >>> bins = bin_times(np.array(["2026-03-21T08:11", "2026-04-25T11:20"], "datetime64[us]"))
    >>> bins.unit, len(bins.edges)
    ('day', 37)
    """
    for unit in _UNITS:
        numbers = (times.astype(f"datetime64[{unit.code}]").astype(np.int64) + unit.offset) // unit.step
        n_bins = int(np.ptp(numbers)) + 1
        if n_bins <= MAX_BINS:
            break
    first = numbers.min()
    starts = (first + np.arange(n_bins + 1)) * unit.step - unit.offset
    edges = starts.astype(f"datetime64[{unit.code}]").astype("datetime64[D]")
    return TimeBins(unit.name, edges, numbers - first)


def length_edges(lengths: NDArray[Any]) -> NDArray[np.float64]:
    """Edges of logarithmic bins around whole numbers of at least one.

    >>> length_edges(np.array([1, 4])).round(2)
    array([1.  , 1.47, 2.15, 3.16, 4.64])
    """
    steps = np.floor(_A_DECADE * np.log10([lengths.min(), lengths.max()]) + 1e-9)
    result: NDArray[np.float64] = 10 ** (np.arange(steps[0], steps[1] + 2) / _A_DECADE)
    return result
