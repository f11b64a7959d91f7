"""Where one stands on the way to open access: states, steps and what they have brought."""

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
from memframe.signin.trouble import Step, Trouble
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
"""Step -> states in which it may be taken."""

LOOKS: frozenset[Step] = frozenset({"check", "refresh"})
"""Steps that only look: they never get in the way of another one."""


class Stand(Struct, frozen=True, eq=False, kw_only=True):
    """What the steps have brought so far.

    Attributes
    ----------
    turn : int
        Number of the step that led here.
    state : str
        See the picture in `memframe.signin`.
    doing : str or None
        The step that is under way.
    trouble : Trouble or None
        Why the last step failed.
    client, lookout : Client or None
        The developer's; the second one tells of a busy service at once.
    requests : tuple of AccessRequest
        All of this developer's, the newest first.
    flow, address : OAuthFlow or None, str or None
        The attempt to connect a user, and what the user opens for it.
    is_listening : bool
        Whether a listener on this machine waits for the answer to `address`.
    tokens, request, access : OAuthTokens or None, AccessRequest or None, Access or None
        What came of it.
    memories, tags : DataFrame or None
    looked_at : datetime or None
        When the service last told the status of the request, or of all requests.
    """

    turn: int = 0
    state: State = "signed_out"
    doing: Step | None = None
    trouble: Trouble | None = None
    client: Client | None = None
    lookout: Client | None = None
    requests: tuple[AccessRequest, ...] = ()
    flow: OAuthFlow | None = None
    address: str | None = None
    is_listening: bool = False
    tokens: OAuthTokens | None = None
    request: AccessRequest | None = None
    access: Access | None = None
    memories: pd.DataFrame | None = None
    tags: pd.DataFrame | None = None
    looked_at: datetime | None = None

    @property
    def memory_key(self) -> Secret | None:
        """The user's key for further requests: of the exchange, or as the service tells it with the request."""
        if self.tokens is not None:
            return self.tokens.memory_key
        return None if self.request is None else self.request.memory_key

    def __repr__(self) -> str:
        return f"<Stand {self.state}>"  # its fields hold what must not print
