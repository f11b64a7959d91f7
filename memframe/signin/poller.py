"""A worker beside the notebook: takes the steps that last, and looks after what is waited for.

It has one thread at a time, which never prints and holds up no cell. A new errand lets go of the one
before: its thread ends when its request does, and what it brings is dropped.

Pace: when to look again while nothing is known to have changed.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from threading import Event, RLock, Thread

from msgspec import Struct
from msgspec.structs import replace

from memframe.access import MIN_POLL_S, check_wait
from memframe.errors import MemframeError
from memframe.signin import SignIn
from memframe.signin.state import LOOKS, State, Trouble

GROWTH = 1.5
LONGEST_S = 30.0
SLOW_DOWN_S = 5.0
"""Added after a refusal for asking too often that does not say how long to wait."""

JITTER = 0.1
"""Waits vary by so much of themselves, so that many panels do not ask in step."""


class Pace(Struct, frozen=True):
    """Soon after something happened, then ever more slowly, and never before the service wants to be asked.

    Parameters
    ----------
    first_s : float
        Seconds to wait after a change.
    wait_s : float
        Seconds to wait now.

    Examples
    --------
    >>> pace = Pace.of(5)
    >>> pace.wait_s, pace.slower().wait_s, pace.slower().slower().slower().slower().slower().wait_s
    (5, 7.5, 30.0)
    """

    first_s: float
    wait_s: float

    @classmethod
    def of(cls, first_s: float) -> Pace:
        """The pace after a change."""
        return cls(first_s, first_s)

    def slower(self, trouble: Trouble | None = None) -> Pace:
        """The pace after a look that found nothing new, or that failed."""
        wait_s = min(self.wait_s * GROWTH, max(LONGEST_S, self.first_s))
        if trouble and trouble.kind == "busy":
            asked_s = trouble.retry_after_s
            wait_s = max(wait_s, self.wait_s + SLOW_DOWN_S if asked_s is None else asked_s)
        return replace(self, wait_s=wait_s)

    def jittered(self, random: Callable[[], float]) -> float:
        """Seconds to wait this time; `random` gives numbers from 0 to 1."""
        return self.wait_s * (1 + JITTER * (2 * random() - 1))


WATCH_S = 8 * 3600.0
"""How long somebody waits for a decision before the worker does no more."""

_logger = logging.getLogger(__name__)

_LOOK: Mapping[State, Callable[[SignIn], None]] = {
    "signed_in": SignIn.refresh,
    "pending": SignIn.check,
    "approved": SignIn.check,
    "ready": SignIn.check,
    "loaded": SignIn.check,
}
"""What may change by itself, and how to find out."""

_CALM = 6
"""So much more slowly is looked where nobody is waiting for a decision."""


class Worker:
    """Takes steps of a `SignIn` in the background.

    Parameters
    ----------
    way : SignIn
    changed : callable
        Called when `next_look_at` or `is_watching` has changed.
    poll_s : float
        Seconds between two looks at a pending request, at first.
    watch_s : float
        Seconds after which looking ends by itself.
    clock, random : callable
        For tests.

    Attributes
    ----------
    idle : threading.Event
        Set while no errand is under way, other than a listener that waits for somebody to act.
    is_watching : bool
        Whether it looks by itself for what may change.
    next_look_at : datetime or None
        When it will look again.
    """

    def __init__(
        self,
        way: SignIn,
        changed: Callable[[], object],
        *,
        poll_s: float = 5,
        watch_s: float = WATCH_S,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random.random,
    ) -> None:
        check_wait("poll_s", poll_s, least=MIN_POLL_S)
        self.idle = Event()
        self.idle.set()
        self.is_watching = False
        self.next_look_at: datetime | None = None
        self._way = way
        self._changed = changed
        self._poll_s = poll_s
        self._watch_s = watch_s
        self._clock = clock
        self._random = random
        self._lock = RLock()
        self._leave = Event()
        self._is_stopped = False
        way.subscribe(self._follow)

    def start(self, errand: Callable[[], object] | None = None) -> None:
        """Take an errand in place of the one under way, and look around afterwards."""
        with self._lock:
            self._leave.set()
            self._leave = leave = Event()
            self._is_stopped = False
            self.is_watching = True
            self.idle.clear()
            # The context of the caller, as ipykernel 7.0 looks for its own state there.
            run = copy_context().run
            Thread(target=run, args=(self._work, errand, leave), name="memframe-panel", daemon=True).start()

    def stop(self) -> None:
        """Let go of what is under way, and do not look by itself any more."""
        with self._lock:
            self._leave.set()
            self._is_stopped = True
            self._rest()
            self.idle.set()

    def _follow(self) -> None:
        """Somebody else took a step: there may be something to look after now."""
        with self._lock:
            if self._way.stand.is_listening:
                self.idle.set()
            if not (self.is_watching or self._is_stopped) and self._way.state in _LOOK:
                self.start()

    def _work(self, errand: Callable[[], object] | None, leave: Event) -> None:
        if errand is not None:
            self._attempt(errand)
        with self._lock:
            if leave.is_set():
                return
            self.idle.set()
        self._watch(leave)

    def _attempt(self, errand: Callable[[], object]) -> None:
        try:
            errand()
        except Exception as error:  # nobody is there to catch it; as its trouble the stand shows it
            is_foreseen = isinstance(error, MemframeError)
            _logger.debug("a step failed: %s", type(error).__name__, exc_info=not is_foreseen)

    def _watch(self, leave: Event) -> None:
        """Look again and again, until there is nothing to look for, or time is over."""
        give_up_at = self._clock() + self._watch_s
        state = self._way.state
        pace = self._pace_of(state)
        while self._goes_on(leave, give_up_at):
            wait_s = pace.jittered(self._random)
            self._tell(datetime.now(UTC) + timedelta(seconds=wait_s))
            if leave.wait(wait_s):
                return
            trouble = self._look()
            if trouble and not trouble.is_passing:
                give_up_at = self._clock()
            is_new = self._way.state != state
            state = self._way.state
            pace = self._pace_of(state) if is_new else pace.slower(trouble)

    def _goes_on(self, leave: Event, give_up_at: float) -> bool:
        with self._lock:
            if leave.is_set():
                return False
            if self._way.state in _LOOK and self._clock() < give_up_at:
                return True
            self._is_stopped = self._way.state in _LOOK
            self._rest()
        return False

    def _pace_of(self, state: State) -> Pace:
        return Pace.of(self._poll_s * (1 if state == "pending" else _CALM))

    def _look(self) -> Trouble | None:
        look = _LOOK.get(self._way.state)
        if look is not None:
            self._attempt(lambda: look(self._way))
        trouble = self._way.trouble
        return trouble if trouble and trouble.step in LOOKS else None

    def _rest(self) -> None:
        self.is_watching = False
        self._tell(None)

    def _tell(self, next_look_at: datetime | None) -> None:
        self.next_look_at = next_look_at
        self._changed()
