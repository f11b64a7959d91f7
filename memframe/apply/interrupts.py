"""Ctrl-C, heeded where nothing is lost by it.

Python breaks in wherever the main thread is, also where it has just been handed an answer and has not noted it yet:
most often there, as it waits for answers most of the time. What became of that request would then be unknown until
the run is resumed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupts:
    """The first Ctrl-C is put off until it is heeded; the next one breaks in at once.

    Only in the main thread, as no other is ever broken into, and only where a program has not said what else Ctrl-C
    shall do.

    Parameters
    ----------
    puts_off : bool
        False, where there is nothing that could be lost.

    Examples
    --------
    >>> interrupts = Interrupts()
    >>> try:
    ...     with interrupts.put_off():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("noted")
    ...         interrupts.heed()
    ... except KeyboardInterrupt:
    ...     print("stopped")
    noted
    stopped
    """

    def __init__(self, *, puts_off: bool = True) -> None:
        self._puts_off = puts_off
        self._n_asked = 0
        self._are_welcome = False

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Within the block Ctrl-C is put off, and to its end at most."""
        if not (self._puts_off and _breaks_in_here()):
            yield
            return
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
        self.heed()

    @contextmanager
    def welcome(self) -> Iterator[None]:
        """Within the block, which may take long, it breaks in at once; as it does if it was put off before."""
        self._are_welcome = True
        try:
            self.heed()
            yield
        finally:
            self._are_welcome = False

    def heed(self) -> None:
        """Raise KeyboardInterrupt if one was put off."""
        if self._n_asked:
            raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        self._n_asked += 1
        if self._are_welcome or self._n_asked > 1:
            raise KeyboardInterrupt


def _breaks_in_here() -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
