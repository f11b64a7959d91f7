"""States and steps of a sign-in, what the steps have brought, and the lock that lets the latest step win."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Literal

import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access
from memframe.client import Client
from memframe.errors import ConfigError
from memframe.oauth import OAuthFlow
from memframe.secret import Secret
from memframe.signin.failures import Failure, Step
from memframe.wire import AccessRequest, OAuthTokens

State = Literal[
    "signed_out",
    "signed_in",
    "authorizing",
    "authorized",
    "pending",
    "approved",
    "rejected",
    "revoked",
    "ready",
    "loaded",
]

DUE: Mapping[State, str] = {
    "signed_out": "sign_in() with the API key",
    "signed_in": "authorize() for a new user, or choose() an existing request",
    "authorizing": "finish() with the redirected address",
    "authorized": "ask() with a reason",
    "pending": "check() until the user has decided",
    "approved": "open() the access",
    "rejected": "ask() again with another reason, or choose() another request",
    "revoked": "ask() again with another reason, or choose() another request",
    "ready": "load() the memories; `access` is open",
    "loaded": "nothing more: `memories` and `tags` are there",
}

_SIGNED_IN = frozenset(DUE) - {"signed_out"}

ALLOWED: Mapping[Step, frozenset[State]] = {
    "sign_in": frozenset(DUE),
    "refresh": _SIGNED_IN,
    "authorize": _SIGNED_IN,
    "receive": _SIGNED_IN,
    "finish": frozenset({"authorizing"}),
    "ask": frozenset({"authorized", "rejected", "revoked"}),
    "choose": _SIGNED_IN,
    "check": frozenset({"pending", "approved", "rejected", "revoked", "ready", "loaded"}),
    "open": frozenset({"approved"}),
    "load": frozenset({"ready", "loaded"}),
}
"""The states in which each step may be taken."""

POLLING_STEPS: frozenset[Step] = frozenset({"check", "refresh"})
"""Steps that only read a status: they give way to every other step."""


class SignInState(Struct, frozen=True, eq=False, kw_only=True):
    """A sign-in at one moment: its state, and what the steps have brought.

    Attributes
    ----------
    step_number : int
        Number of the step that led here.
    doing : str or None
        The step that is under way.
    client, polling_client : Client or None
        The developer's; the second one does not retry, so that a busy service is reported at once.
    requests : tuple of AccessRequest
        All requests of this developer, the newest first.
    address : str or None
        The address that the user opens for the current attempt.
    is_listening : bool
        A listener on this machine waits for the redirect.
    checked_at : datetime or None
        When the status of the request, or of all requests, was last read.
    """

    step_number: int = 0
    state: State = "signed_out"
    doing: Step | None = None
    failure: Failure | None = None
    client: Client | None = None
    polling_client: Client | None = None
    requests: tuple[AccessRequest, ...] = ()
    flow: OAuthFlow | None = None
    address: str | None = None
    is_listening: bool = False
    tokens: OAuthTokens | None = None
    request: AccessRequest | None = None
    access: Access | None = None
    memories: pd.DataFrame | None = None
    tags: pd.DataFrame | None = None
    checked_at: datetime | None = None

    @property
    def memory_key(self) -> Secret | None:
        """The key for further requests to this user: from the exchange, or from the chosen request."""
        if self.tokens is not None:
            return self.tokens.memory_key
        return None if self.request is None else self.request.memory_key

    def __repr__(self) -> str:
        return f"<SignInState {self.state}>"  # its fields hold what must not print


class StepLock:
    """Hold the state, and run one step at a time; a later one overtakes an earlier one, whose result is dropped.

    ``recover(step, before, error)`` returns the state after a step that failed. Subscribers are called after each
    change.
    """

    def __init__(
        self, snapshot: SignInState, recover: Callable[[Step, SignInState, Exception], SignInState]
    ) -> None:
        self.snapshot = snapshot
        self.subscribers: list[Callable[[], object]] = []
        self._recover = recover
        self._lock = Lock()

    def run(self, step: Step, work: Callable[[SignInState], SignInState]) -> SignInState:
        """Run a step, and keep its result unless another step began meanwhile."""
        before = self._begin(step)
        if before is None:
            return self.snapshot
        after = before
        try:
            after = work(before)
        except Exception as error:  # whatever it is, the state shows it and the caller gets it
            if before.step_number == self.snapshot.step_number:
                known = replace(before, flow=self.snapshot.flow)  # which a listener has published already
                after = self._recover(step, known, error)
            raise
        finally:
            is_kept = self.publish(before.step_number, after)
        if not is_kept:
            raise ConfigError(f"another step has overtaken {step}(), so that its result was dropped")
        return after

    def _begin(self, step: Step) -> SignInState | None:
        """Return the state that the step starts from; None for a poll while another step runs."""
        is_poll = step in POLLING_STEPS
        with self._lock:
            now = self.snapshot
            if now.state not in ALLOWED[step]:
                raise ConfigError(
                    f"{step}() is out of turn: the sign-in is {now.state}; next is {DUE[now.state]}"
                )
            if is_poll and now.doing:
                return None
            # A poll keeps the error of an earlier step, which the user may be reading, but not that of a poll.
            shown = now.failure if is_poll else None
            kept = shown if shown and shown.step not in POLLING_STEPS else None
            number = now.step_number + 1
            self.snapshot = replace(now, step_number=number, doing=step, failure=shown, is_listening=False)
            before = replace(self.snapshot, doing=None, failure=kept)
        self._notify()
        return before

    def publish(self, step_number: int, snapshot: SignInState) -> bool:
        """Set the state on behalf of a step, and return True; False if a later step has begun."""
        with self._lock:
            is_latest = step_number == self.snapshot.step_number
            if is_latest:
                self.snapshot = replace(snapshot, step_number=step_number)
        if is_latest:
            self._notify()
        return is_latest

    def reset(self, snapshot: SignInState) -> None:
        """Set the state, and drop the step that is running."""
        with self._lock:
            number = self.snapshot.step_number + 1
            self.snapshot = replace(
                snapshot, step_number=number, doing=None, failure=None, is_listening=False
            )
        self._notify()

    def _notify(self) -> None:
        for changed in self.subscribers:
            changed()
