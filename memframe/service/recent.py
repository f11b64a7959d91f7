"""Values that cost something to make: those that were asked for last stay in memory, within a bound."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Values by key, for all threads; beyond the bound the one that was asked for longest ago goes.

    Parameters
    ----------
    size : int
        How many at most.

    Examples
    --------
    >>> squares = Recent[int, int](size=2)
    >>> [squares.get(number, lambda: print("made") or number**2) for number in (3, 3)]
    made
    [9, 9]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, made now if it is not at hand; one that cannot be made is not held."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        value = make()
        with self._lock:
            self._held[key] = value
            if len(self._held) > self._size:
                self._held.popitem(last=False)
        return value
