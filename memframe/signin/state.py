"""States and steps of a sign-in, and what the steps have brought."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import pandas as pd
from msgspec import Struct

from memframe.access import Access
from memframe.client import Client
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
