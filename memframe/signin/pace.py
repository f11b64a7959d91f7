"""Pace: when to look again while nothing is known to have changed."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from memframe.signin.trouble import Trouble

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
