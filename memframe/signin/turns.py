"""Turns: whose step counts, when several threads take steps at once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from msgspec.structs import replace

from memframe.errors import ConfigError
from memframe.signin.stand import ALLOWED, DUE, LOOKS, Stand
from memframe.signin.trouble import Step, Trouble

AfterFailure = Callable[[Step, Stand, Exception], Stand]


class Turns:
    """One step at a time: a later step overtakes an earlier one, whose outcome is then dropped.

    Parameters
    ----------
    stand : Stand
        Where to begin.
    after_failure : callable
        Where a step leads that failed: ``after_failure(step, stand, error)``.

    Attributes
    ----------
    stand : Stand
        Where one stands at this moment.
    subscribers : list of callable
        Called after each change.
    """

    def __init__(self, stand: Stand, after_failure: AfterFailure) -> None:
        self.stand = stand
        self.subscribers: list[Callable[[], object]] = []
        self._after_failure = after_failure
        self._lock = Lock()

    def take(self, step: Step, work: Callable[[Stand], Stand]) -> Stand:
        """Carry a step out, and keep what it brings unless another one has come in between."""
        before = self._begin(step)
        if before is None:
            return self.stand
        after = before
        try:
            after = work(before)
        except Exception as error:  # whatever it is, the stand shows it and the caller gets it
            if before.turn == self.stand.turn:
                known = replace(before, flow=self.stand.flow)  # which a listener has shown already
                after = self._after_failure(step, known, error)
            raise
        finally:
            is_kept = self.put(before.turn, after)
        if not is_kept:
            raise ConfigError(f"another step has overtaken {step}(), so that nothing of it was kept")
        return after

    def _begin(self, step: Step) -> Stand | None:
        """The stand that the step starts from; None for a look that would be in the way."""
        with self._lock:
            stand = self.stand
            if stand.state not in ALLOWED[step]:
                raise ConfigError(
                    f"{step}() is out of turn: the sign-in is {stand.state}; next is {DUE[stand.state]}"
                )
            if step in LOOKS and stand.doing:
                return None
            shown = stand.trouble if step in LOOKS else None
            self.stand = replace(stand, turn=stand.turn + 1, doing=step, trouble=shown, is_listening=False)
            before = replace(self.stand, doing=None, trouble=_outlasting(step, shown))
        self._tell()
        return before

    def put(self, turn: int, stand: Stand) -> bool:
        """Stand here, if it is still this turn."""
        with self._lock:
            is_due = turn == self.stand.turn
            if is_due:
                self.stand = replace(stand, turn=turn)
        if is_due:
            self._tell()
        return is_due

    def go(self, stand: Stand) -> None:
        """Stand here, whatever is under way."""
        with self._lock:
            turn = self.stand.turn + 1
            self.stand = replace(stand, turn=turn, doing=None, trouble=None, is_listening=False)
        self._tell()

    def _tell(self) -> None:
        for changed in self.subscribers:
            changed()


def _outlasting(step: Step, trouble: Trouble | None) -> Trouble | None:
    """What a look leaves as it is: the trouble of a step, which somebody may be reading, but not that of a look."""
    return trouble if step in LOOKS and trouble and trouble.step not in LOOKS else None
