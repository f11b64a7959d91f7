"""Process users in processes of this machine, for work that needs the processor more than it waits.

Each worker is a new interpreter. It receives the API key, the work and one user after the other through a pipe, so that
no key is in its arguments, its environment or a file; variables with a key or secret are removed from its environment.
Results come back through another pipe. A worker fetches tokens and the users' keys itself.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from queue import SimpleQueue
from typing import IO, NamedTuple, cast

import msgspec

from memframe.client import Client, connect
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.errors import ConfigError
from memframe.fleet.work import FleetUser, UserResult, Work, pack, process_user, unpack

_START = (
    "import sys, pickle; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from memframe.fleet.processes import run_worker; run_worker()"
)
_SECRET_VARIABLES = ("MEMFRAME_API_KEY", "MEMFRAME_CLIENT_SECRET")
_LENGTH_BYTES = 8
_PAGES_AHEAD = 4
"""Most concurrent requests of a worker, which processes one user at a time."""
_END_S = 10.0
"""Seconds in which a worker must end by itself, before it is killed."""


@contextmanager
def worker_processes(client: Client, work: Work, n: int) -> Iterator[Callable[[FleetUser], UserResult]]:
    """Yield a function that processes one user in one of ``n`` processes; if that process dies, the user fails.

    Raises
    ------
    ConfigError
        The work cannot be sent to another process, because one of its checks is not in a module.
    """
    setting = _pack_setting(client, work)
    idle: SimpleQueue[_Worker] = SimpleQueue()

    def process(user: FleetUser) -> UserResult:
        worker = idle.get()
        try:
            return worker.process(user)
        finally:
            idle.put(worker)

    with ExitStack() as running:
        for _ in range(n):
            worker = _Worker(setting)
            running.callback(worker.close)
            idle.put(worker)
        yield process


def _pack_setting(client: Client, work: Work) -> bytes:
    try:
        return pickle.dumps({**client.options, "api_key": client.options["api_key"].reveal(), "work": work})
    except (pickle.PicklingError, AttributeError, TypeError) as fault:
        raise ConfigError(
            f"checks: a check of your own cannot be sent to another process ({type(fault).__name__}): put it into a "
            "module, or use threads"
        ) from None


class _Started(NamedTuple):
    """A process, and the pipes to and from it."""

    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    answers: IO[bytes]


class _Worker:
    """One process, started for its first user, and again after it has died."""

    def __init__(self, setting: bytes) -> None:
        self._setting = setting
        self._started: _Started | None = None

    def process(self, user: FleetUser) -> UserResult:
        try:
            started = self._started or self._start()
            _write(started.requests, msgspec.msgpack.encode(user))
            return unpack(_read(started.answers))
        except (EOFError, BrokenPipeError):
            code = self.close()
            lost = f"the process of this user died (exit code {code}): check the memory of the machine; run it again"
            return UserResult(user, "failed", error=lost)

    def _start(self) -> _Started:
        environ = {name: value for name, value in os.environ.items() if name not in _SECRET_VARIABLES}
        process = subprocess.Popen(  # noqa: S603 - this interpreter, and code of this module
            [sys.executable, "-P", "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )
        pipes = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        self._started = started = _Started(process, *pipes)
        pickle.dump(sys.path, started.requests)
        _write(started.requests, self._setting)
        if refusal := _read(started.answers).decode():
            raise ConfigError(
                f"checks: another process cannot read a check of your own ({refusal}): put it into a module, or use "
                "threads"
            )
        return started

    def close(self) -> int | None:
        """Close the input of the process, which ends it, and return its exit code."""
        if self._started is None:
            return None
        worker, requests, answers = self._started
        self._started = None
        with suppress(BrokenPipeError):
            requests.close()
        try:
            return worker.wait(_END_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            return worker.wait()
        finally:
            answers.close()


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(_LENGTH_BYTES))
    pipe.write(data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    """Read one message; EOFError if the other process has ended."""
    head = pipe.read(_LENGTH_BYTES)
    data = pipe.read(int.from_bytes(head))
    if len(head) < _LENGTH_BYTES or len(data) < int.from_bytes(head):
        raise EOFError
    return data


# In a worker


def run_worker() -> None:
    """Process users until there are no more; ignore interruptions, which the parent process handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps what a check prints out of the answers
    try:
        setting = pickle.loads(_read(sys.stdin.buffer))  # noqa: S301 - from the process that started this one
    except (AttributeError, ImportError) as fault:
        _write(answers, str(fault).encode())
        return
    work = setting.pop("work")
    with connect(**setting) as client, client.rate_limited(SharedRateLimiter(RateLimiter(_PAGES_AHEAD))):
        _write(answers, b"")
        with suppress(EOFError, BrokenPipeError):
            while True:
                user = msgspec.msgpack.decode(_read(sys.stdin.buffer), type=FleetUser)
                _write(answers, pack(process_user(client, user, work)))
