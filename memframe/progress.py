"""One progress display for notebook, terminal and script.

In a terminal it is a bar on standard error that disappears when the work is done. In a notebook it is one bar with a
line of text, redrawn in place, which ends as plain text: no widget that a saved notebook could not show again, no bar
stuck at 0 %, no elapsed time that differs with every run. Elsewhere (scripts, logs, tests) it shows nothing, unless
asked to.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from types import TracebackType
from typing import Any, Literal, Self

from memframe.display import NO_FORMULAS, tag
from memframe.errors import ConfigError

ProgressCallback = Callable[[int, int | None, str], object]
"""``progress(done, total, text)``; ``total`` is None if it is not known."""

ProgressOption = Literal["auto"] | bool | ProgressCallback
"""Values of the argument ``progress``."""

MIN_INTERVAL_S = 0.1
"""Least time between two redraws, because one takes longer than loading a row."""


_is_hidden = ContextVar("memframe progress is hidden", default=False)


@contextmanager
def hide_progress() -> Iterator[None]:
    """Make "auto" show nothing within the block."""
    token = _is_hidden.set(True)
    try:
        yield
    finally:
        _is_hidden.reset(token)


class Progress:
    """Show how far some work has come, in a notebook or terminal.

    Parameters
    ----------
    progress : {"auto", True, False} or callable
        "auto" shows in notebooks and terminals; True also where standard error is a file; False
        nowhere. A callable is called as ``progress(done, total, text)`` at the start, at most ten times
        a second, and at the end; never by two threads at once.
    total : int, optional
        Number of all steps; can be set later, or never if it is unknown.
    text : str
        Name of the work, such as "Loading memories".
    clock : callable
        A monotonic clock, in seconds.

    Examples
    --------
    >>> def show(done, total, text):
    ...     print(text, done, "of", total)
    >>> with Progress(show, total=3, text="Loading") as bar:
    ...     bar.step(3)
    Loading 0 of 3
    Loading 3 of 3
    """

    def __init__(
        self,
        progress: ProgressOption = "auto",
        *,
        total: int | None = None,
        text: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.text = text
        self.done = 0
        self._clock = clock
        self._lock = RLock()
        self._display = _open_display(progress, total, text)
        self._shown = -1
        self._shown_at = clock()
        self._show()

    def step(self, n: int = 1) -> None:
        """Count `n` more steps as done; any thread may do so."""
        with self._lock:
            self.done += n
            if self._clock() - self._shown_at >= MIN_INTERVAL_S:
                self._show()

    def close(self, *, failed: bool = False) -> None:
        """Show the last state and end the display; a second call does nothing."""
        with self._lock:
            if self.done != self._shown:
                self._show()
            self._display.end(failed)
            self._display = _Nothing()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(failed=kind is not None)

    def _show(self) -> None:
        self._shown, self._shown_at = self.done, self._clock()
        self._display.show(self.done, self.total, self.text)


class _Nothing:
    """A display that shows nothing; the others are based on it."""

    def show(self, done: int, total: int | None, text: str) -> None:
        """Draw the state."""

    def end(self, failed: bool) -> None:
        """End the display; the last state may stay visible."""


class _Callback(_Nothing):
    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback

    def show(self, done: int, total: int | None, text: str) -> None:
        self._callback(done, total, text)


class _Bar(_Nothing):
    """Draw a tqdm bar on standard error."""

    def __init__(self, total: int | None, text: str) -> None:
        from tqdm import tqdm  # noqa: PLC0415 - imported only where a bar is drawn

        # miniters=1: this class decides when to draw, so tqdm need not guess.
        self._bar = tqdm(
            desc=text, total=total, file=sys.stderr, leave=False, miniters=1, unit="", dynamic_ncols=True
        )

    def show(self, done: int, total: int | None, text: str) -> None:
        self._bar.desc = text
        self._bar.total, self._bar.n = total, done
        self._bar.refresh()

    def end(self, failed: bool) -> None:  # noqa: ARG002 - gone either way; the error says the rest
        self._bar.close()


class _Line(_Nothing):
    """Draw one line in a notebook's output, with a bar until the work ends."""

    def __init__(self) -> None:
        from IPython.display import display  # noqa: PLC0415 - imported already where there is a notebook

        self._line = ""
        self._handle: Any = display(  # type: ignore[no-untyped-call]
            {"text/plain": ""}, raw=True, display_id=True
        )

    def show(self, done: int, total: int | None, text: str) -> None:
        count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        self._line = f"{text}: {count}" if text else count
        of_total = {} if total is None else {"max": max(total, 1), "value": done}
        bar = tag("progress", **of_total, style="width: 16em; margin-inline-end: 1em")
        line = f"{self._line} ..."
        html = tag("div", bar, line, class_=NO_FORMULAS, style="font-size: 13px")
        self._write({"text/plain": line, "text/html": html})

    def end(self, failed: bool) -> None:
        self._write({"text/plain": f"{self._line} (stopped)" if failed else self._line})

    def _write(self, forms: dict[str, str]) -> None:
        self._handle.update(forms, raw=True)


def _open_display(progress: ProgressOption, total: int | None, text: str) -> _Nothing:
    if callable(progress):
        return _Callback(progress)
    if not isinstance(progress, bool) and progress != "auto":
        raise ConfigError(f'progress is "auto", True, False or a callable, not {progress!r}.')
    if progress is False or (progress == "auto" and _is_hidden.get()):
        return _Nothing()
    ipython = sys.modules.get("IPython")  # without importing it
    if hasattr(ipython.get_ipython() if ipython else None, "kernel"):
        return _Line()
    if not sys.stderr:  # closed by the shell, or missing in a Windows program without a console
        return _Nothing()
    return _Bar(total, text) if progress is True or sys.stderr.isatty() else _Nothing()
