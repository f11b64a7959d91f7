"""NULL: what a cell holds that shall be cleared, whatever the rest of its column means by missing."""

from __future__ import annotations

from typing import Self


class Null(str):
    """The type of `NULL`, its only value.

    Text, so that a column of pandas' ``str`` takes it; with the character NUL in it, which no memory can
    hold, so that it is still known after the column, a file or a process has made plain text of it.
    """

    __slots__ = ()
    _only: Self

    def __new__(cls) -> Self:
        """The one there is."""
        if "_only" not in cls.__dict__:
            cls._only = super().__new__(cls, "\0memframe.NULL")
        return cls._only

    def __repr__(self) -> str:
        return "memframe.NULL"

    def __reduce_ex__(self, protocol: object) -> str:
        return "NULL"


NULL = Null()
"""Put into a cell, it clears that field of the memory.

>>> import pandas as pd
>>> titles = pd.Series(["Tea", "Boat"])
>>> titles[0] = NULL
>>> titles[0] == NULL
True
"""
