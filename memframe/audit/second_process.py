"""A second process, which makes checks from a list that it shares with this one.

It is a plain interpreter that reads what to do from its standard input and answers on its standard output. So
nothing is written to a disk; the caller's script is not run again, as `multiprocessing` would do without a guard
around its main part; and it works the same in a notebook, in a thread, and on every system.

It takes the first check that waits, and this process the last one when it has nothing else to do: so neither stands
idle, whatever a store is made of.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import current_process
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Any, cast

import pandas as pd

from memframe.audit.findings import Check
from memframe.frames import collector_paused

CheckFunction = Callable[[pd.DataFrame], pd.DataFrame]
"""Memories to findings."""

MIN_ROWS = 5_000
"""Below this many memories a process takes longer to start than it saves."""

_PROGRAM = "from memframe.audit.second_process import answer; answer()"
_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)


def is_worthwhile(n_rows: int) -> bool:
    """Whether a second process may be started here, and would save time.

    Not in a daemonic process, such as a worker of Dask, which has been given its share of the machine; not where
    there is one processor; and not where Python is a part of another program.
    """
    n_processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    is_python = Path(sys.executable or "").stem.lower().startswith(("python", "pypy"))
    may_start = is_python and not getattr(sys, "frozen", False) and not current_process().daemon
    return n_rows >= MIN_ROWS and n_processors > 1 and may_start


class SecondProcess:
    """A process that makes checks as long as any wait. It is killed, if it still runs, when the block is left."""

    def __init__(self, memories: pd.DataFrame) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and a program of ours
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback might quote a memory
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            creationflags=_NO_WINDOW,
        )
        pipes = self._process.stdin, self._process.stdout
        self._questions, self._answers = cast("tuple[IO[bytes], IO[bytes]]", pipes)
        self._waiting: deque[tuple[Check, CheckFunction]] = deque()
        self._is_all, self._changed = False, Condition()
        self._found: dict[Check, pd.DataFrame] = {}
        self._exchange = Thread(target=self._ask, args=(memories,), daemon=True)
        self._exchange.start()

    def _ask(self, memories: pd.DataFrame) -> None:
        # what it does not bring back is done here, where it fails, if it has to, before the caller's eyes
        broken = OSError, EOFError, pickle.PickleError, AttributeError, TypeError, ValueError
        with suppress(*broken), self._questions:
            self._send(memories)
            for check, function in iter(self._first, None):
                self._send(function)
                self._found[check] = pickle.load(self._answers)  # noqa: S301 - of a process of ours

    def _send(self, question: object) -> None:
        pickle.dump(question, self._questions, pickle.HIGHEST_PROTOCOL)
        self._questions.flush()

    def _first(self) -> tuple[Check, CheckFunction] | None:
        """The check to be made next, as soon as there is one; None where no more can come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_all)
            return self._waiting.popleft() if self._waiting else None

    def put_last(self, functions: Mapping[Check, CheckFunction]) -> None:
        """Let checks be made, which can be pickled, after those that wait."""
        with self._changed:
            self._waiting.extend(functions.items())
            self._changed.notify()

    def put_first(self, check: Check, function: CheckFunction) -> None:
        """Let a check be made before all that wait."""
        with self._changed:
            self._waiting.appendleft((check, function))
            self._changed.notify()

    def taken_back(self) -> Iterator[Check]:
        """Checks that still wait, the last one first: they are not made by the other process any more."""
        while True:
            with self._changed:
                if not self._waiting:
                    return
                check, _ = self._waiting.pop()
            yield check

    def found(self) -> Mapping[Check, pd.DataFrame]:
        """What it found, by check, once nothing waits; nothing of those in which it failed."""
        self._end_of_list()
        self._exchange.join()
        return self._found

    def end(self) -> None:
        """Leave no process behind."""
        for _ in self.taken_back():
            pass
        self._end_of_list()
        self._process.kill()
        self._process.wait()
        self._exchange.join()
        for pipe in (self._questions, self._answers):
            with suppress(OSError):  # what could not be sent any more
                pipe.close()

    def _end_of_list(self) -> None:
        with self._changed:
            self._is_all = True
            self._changed.notify()


@contextmanager
def beside(memories: pd.DataFrame) -> Iterator[SecondProcess]:
    """A process that makes checks of some memories, as long as the block lasts."""
    second = SecondProcess(memories)
    try:
        yield second
    finally:
        second.end()


def answer() -> None:
    """What the second process does: make the checks that it is given, and tell what they found."""
    with os.fdopen(os.dup(1), "wb") as answers, collector_paused():
        os.dup2(2, 1)  # nothing that is printed may stand among the findings
        questions = _read(sys.stdin.buffer)
        memories = next(questions)
        for function in questions:
            pickle.dump(function(memories), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _read(pipe: IO[bytes]) -> Iterator[Any]:
    """What the process that started this one sends, until it has nothing more."""
    with suppress(EOFError):
        while True:
            yield pickle.load(pipe)  # noqa: S301 - of the process that started this one
