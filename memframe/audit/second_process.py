"""A second process for checks that look at each text by itself, beside those that relate memories.

It is a plain interpreter that reads what to do from its standard input and answers on its standard output. So
nothing is written to a disk; the caller's script is not run again, as `multiprocessing` would do without a guard
around its main part; and it works the same in a notebook, in a thread, and on every system.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import current_process
from pathlib import Path
from threading import Thread
from typing import IO, cast

import pandas as pd

from memframe.audit.findings import Check
from memframe.collector import collector_paused

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
    """A process that runs some checks. It is killed, if it still runs, when the block is left."""

    def __init__(self, functions: Mapping[Check, CheckFunction], memories: pd.DataFrame) -> None:
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
        self._found: dict[Check, pd.DataFrame] = {}
        self._exchange = Thread(target=self._ask, args=(dict(functions), memories), daemon=True)
        self._exchange.start()

    def _ask(self, functions: dict[Check, CheckFunction], memories: pd.DataFrame) -> None:
        # what it does not bring back is done here, where it fails, if it has to, before the caller's eyes
        with suppress(OSError, EOFError, pickle.PickleError, AttributeError, TypeError, ValueError):
            with self._questions:
                pickle.dump((functions, memories), self._questions, pickle.HIGHEST_PROTOCOL)
            self._found = pickle.load(self._answers)  # noqa: S301 - of a process of ours

    def found(self) -> Mapping[Check, pd.DataFrame]:
        """What it found, by check; nothing if it failed."""
        self._exchange.join()
        return self._found

    def end(self) -> None:
        """Leave no process behind."""
        self._process.kill()
        self._process.wait()
        self._exchange.join()
        for pipe in (self._questions, self._answers):
            with suppress(OSError):  # what could not be sent any more
                pipe.close()


@contextmanager
def beside(
    functions: Mapping[Check, CheckFunction], memories: pd.DataFrame
) -> Iterator[Callable[[], Mapping[Check, pd.DataFrame]]]:
    """Run checks in another process as long as the block lasts; what is given waits for their findings.

    Parameters
    ----------
    functions
        That can be pickled; of none no process is started.
    memories
        What they look at.
    """
    if not functions:
        yield dict
        return
    second = SecondProcess(functions, memories)
    try:
        yield second.found
    finally:
        second.end()


def answer() -> None:
    """What the second process does: run the checks that it is given, and tell what they found."""
    with os.fdopen(os.dup(1), "wb") as answers, collector_paused():
        os.dup2(2, 1)  # nothing that is printed may stand among the findings
        functions, memories = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
        found = {check: function(memories) for check, function in functions.items()}
        pickle.dump(found, answers, pickle.HIGHEST_PROTOCOL)
