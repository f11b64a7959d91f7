"""Run the steps of a sign-in in a background thread, and poll for changes.

There is one thread at a time, which never prints and blocks no cell. A new task replaces the current one: the old
thread ends when its HTTP request does, and its result is dropped.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event, RLock, Thread

from memframe.client import bound_poll
from memframe.errors import MemframeError
from memframe.signin import SignIn
from memframe.signin.state import POLLING_STEPS, Failure, State

GROWTH = 1.5
MAX_WAIT_S = 30.0
SLOW_DOWN_S = 5.0
"""Seconds added to the wait after a 429 without Retry-After."""

JITTER = 0.1
"""Relative jitter of waits, so that many panels do not poll in step."""


def next_wait_s(wait_s: float, first_s: float, failure: Failure | None = None) -> float:
    """Return the seconds to wait after a poll that found nothing new, or that failed.

    Waits grow from `first_s`, and are never less than a busy service asks for.

    >>> next_wait_s(5, 5), next_wait_s(25, 5)
    (7.5, 30.0)
    """
    longer_s = min(wait_s * GROWTH, max(MAX_WAIT_S, first_s))
    if failure and failure.kind == "busy":
        asked_s = failure.retry_after_s
        longer_s = max(longer_s, wait_s + SLOW_DOWN_S if asked_s is None else asked_s)
    return longer_s


WATCH_S = 8 * 3600.0
"""Polling ends after this time."""

_logger = logging.getLogger(__name__)

_POLLS: Mapping[State, Callable[[SignIn], None]] = {
    "signed_in": SignIn.refresh,
    "pending": SignIn.check,
    "approved": SignIn.check,
    "ready": SignIn.check,
    "loaded": SignIn.check,
}
"""The poll of each state that may change without a step."""

_IDLE_FACTOR = 6
"""Factor by which polls are rarer while no decision is pending."""


class Poller:
    """Run steps of a `SignIn` in the background, and poll.

    `changed` is called when `next_check_at` or `is_watching` has changed. The first two polls of a pending request are
    `poll_s` apart, and none comes later than `watch_s`. The event `idle` is set while no task is running, apart from a
    listener that waits for a redirect.
    """

    def __init__(
        self,
        sign_in: SignIn,
        changed: Callable[[], object],
        *,
        poll_s: float = 5,
        watch_s: float = WATCH_S,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.idle = Event()
        self.idle.set()
        self.is_watching = False
        self.next_check_at: datetime | None = None
        self._sign_in = sign_in
        self._changed = changed
        self._poll_s = bound_poll(poll_s)
        self._watch_s = watch_s
        self._clock = clock
        self._random = random
        self._lock = RLock()
        self._cancelled = Event()
        self._is_stopped = False
        sign_in.subscribe(self._follow)

    def start(self, task: Callable[[], object] | None = None) -> None:
        """Run a task in place of the current one, and poll afterwards."""
        with self._lock:
            self._cancelled.set()
            self._cancelled = cancelled = Event()
            self._is_stopped = False
            self.is_watching = True
            self.idle.clear()
            # In the context of the caller, which holds the state of ipykernel 7.0.
            run = copy_context().run
            Thread(target=run, args=(self._work, task, cancelled), name="memframe-panel", daemon=True).start()

    def stop(self) -> None:
        """Drop the current task, and stop polling."""
        with self._lock:
            self._cancelled.set()
            self._is_stopped = True
            self._stop_watching()
            self.idle.set()

    def _follow(self) -> None:
        """Start to poll after a step that was taken elsewhere."""
        with self._lock:
            if self._sign_in.snapshot.is_listening:
                self.idle.set()
            if not (self.is_watching or self._is_stopped) and self._sign_in.state in _POLLS:
                self.start()

    def _work(self, task: Callable[[], object] | None, cancelled: Event) -> None:
        if task is not None:
            self._attempt(task)
        with self._lock:
            if cancelled.is_set():
                return
            self.idle.set()
        self._watch(cancelled)

    def _attempt(self, task: Callable[[], object]) -> None:
        try:
            task()
        except Exception as error:  # the state shows it
            is_foreseen = isinstance(error, MemframeError)
            _logger.debug("a step failed: %s", type(error).__name__, exc_info=not is_foreseen)

    def _watch(self, cancelled: Event) -> None:
        """Poll until nothing can change any more, or time is over."""
        give_up_at = self._clock() + self._watch_s
        state = self._sign_in.state
        wait_s = first_s = self._first_wait_s(state)
        while not self._stop_if_over(cancelled, give_up_at):
            jittered_s = wait_s * (1 + JITTER * (2 * self._random() - 1))
            self._notify(datetime.now(UTC) + timedelta(seconds=jittered_s))
            if cancelled.wait(jittered_s):
                return
            if poll := _POLLS.get(self._sign_in.state):
                self._attempt(partial(poll, self._sign_in))
            failure = self._sign_in.failure
            failure = failure if failure and failure.step in POLLING_STEPS else None
            if failure and not failure.is_transient:
                give_up_at = self._clock()
            wait_s = next_wait_s(wait_s, first_s, failure)
            if self._sign_in.state != state:
                state = self._sign_in.state
                wait_s = first_s = self._first_wait_s(state)

    def _stop_if_over(self, cancelled: Event, give_up_at: float) -> bool:
        """Stop watching if nothing can change any more, or time is over; return True if polling is to end."""
        with self._lock:
            if cancelled.is_set():
                return True
            may_change = self._sign_in.state in _POLLS
            if may_change and self._clock() < give_up_at:
                return False
            self._is_stopped = may_change
            self._stop_watching()
        return True

    def _first_wait_s(self, state: State) -> float:
        return self._poll_s * (1 if state == "pending" else _IDLE_FACTOR)

    def _stop_watching(self) -> None:
        self.is_watching = False
        self._notify(None)

    def _notify(self, next_check_at: datetime | None) -> None:
        self.next_check_at = next_check_at
        self._changed()
