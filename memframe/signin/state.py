"""The state of a sign-in: its steps and their results, and failures in words for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import pandas as pd
from msgspec import Struct

from memframe.access import Access
from memframe.client import Client
from memframe.errors import (
    AccessError,
    AuthError,
    MemframeError,
    NoAnswerError,
    NotFoundError,
    OAuthError,
    RateLimitError,
    ServiceError,
)
from memframe.oauth import OAuthFlow
from memframe.secret import Secret
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

SignInStep = Literal[
    "sign_in", "refresh", "authorize", "receive", "finish", "ask", "choose", "check", "open", "load"
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
    "loaded": "nothing more: `memories` and `tags` are loaded",
}

_SIGNED_IN = frozenset(DUE) - {"signed_out"}

ALLOWED: Mapping[SignInStep, frozenset[State]] = {
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

POLLING_STEPS: frozenset[SignInStep] = frozenset({"check", "refresh"})
"""Steps that only read a status: they give way to every other step."""


# -- failures

FailureKind = Literal[
    "refused_key",
    "refused_client",
    "refused_token",
    "refused_memory_key",
    "unreachable",
    "busy",
    "state_mismatch",
    "used_code",
    "denied",
    "link_pasted",
    "no_code",
    "not_an_answer",
    "no_answer",
    "no_access",
    "gone",
    "other",
    "fault",
]

FAILURE_WORDS: Mapping[FailureKind, tuple[str, str]] = {
    "refused_key": (
        "The service does not accept this API key.",
        "Check it where it was issued, and that it belongs to this address; then try again.",
    ),
    "refused_client": (
        "The service does not know this application.",
        "Go back, and check “Client id” and “Client secret”, and that they belong to this address.",
    ),
    "refused_token": (
        "The sign-in has expired, and the API key is no longer accepted.",
        "Sign out, and sign in with a valid key.",
    ),
    "refused_memory_key": (
        "The service no longer accepts the key of this user's earlier connection.",
        "Connect the user again, then ask for access.",
    ),
    "busy": ("The service is busy.", "Try again in a minute."),
    "state_mismatch": (
        "This address belongs to another attempt.",
        "Open the link again, and paste the address to which it leads.",
    ),
    "used_code": ("This code was already used, or has expired.", "Open the link again: it is a new one."),
    "denied": (
        "The user chose not to allow the connection. Nothing was shared.",
        "Open the link again, or choose another request.",
    ),
    "link_pasted": (
        "This is the link itself.",
        "Open it, and paste the address of the page to which the browser is redirected after the user has allowed it.",
    ),
    "no_code": (
        "This contains no code.",
        "Copy the whole address of the page to which the browser was redirected after the user allowed it.",
    ),
    "not_an_answer": (
        "This is neither an address nor a code.",
        "Copy the whole address of the page to which the browser was redirected after the user allowed it.",
    ),
    "no_answer": (
        "No answer arrived at this computer.",
        "Open the link and decide, or paste the address to which it leads.",
    ),
    "gone": ("The service no longer knows this request.", "Choose another one, or ask again."),
}
"""Cause and next step by kind; for the other kinds the message of the error says both."""

_OF_CODE: Mapping[str, FailureKind] = {
    "access_denied": "denied",
    "invalid_grant": "used_code",
    "state_mismatch": "state_mismatch",
    "issuer_mismatch": "state_mismatch",
    "link_pasted": "link_pasted",
    "code_missing": "no_code",
    "not_an_answer": "not_an_answer",
    "no_answer": "no_answer",
}

_REFUSED: Mapping[SignInStep, FailureKind] = {
    "sign_in": "refused_key",
    "finish": "refused_client",
    "receive": "refused_client",
}
"""Kinds of a 401, by step."""


class Failure(Struct, frozen=True):
    """A failed step, in words for people.

    Attributes
    ----------
    kind : str
        For programs: ``refused_key``, ``unreachable``, ``used_code`` and so on.
    step : str
        The step that failed.
    text, next_step : str
        Cause and next step, without a secret.
    retry_after_s : float or None
        Seconds that the service asked to wait, if it did.
    """

    kind: FailureKind
    step: SignInStep
    text: str
    next_step: str
    retry_after_s: float | None = None

    @property
    def is_transient(self) -> bool:
        """True if the same step may succeed later without another input."""
        return self.kind in {"unreachable", "busy"}


def describe_failure(step: SignInStep, error: BaseException, *, memory_key_is_old: bool = False) -> Failure:
    """Describe the error of a step; an old memory key is one of an earlier connection.

    >>> describe_failure("finish", OAuthError("...", code="access_denied")).text
    'The user chose not to allow the connection. Nothing was shared.'
    """
    kind = "refused_memory_key" if memory_key_is_old else _kind_of(step, error)
    text, next_step = FAILURE_WORDS.get(kind) or _message_of(error)
    wait_s = getattr(error, "retry_after_s", None)
    if kind == "busy" and wait_s:
        next_step = f"Try again in {wait_s:.0f} s."
    return Failure(kind, step, text, next_step, wait_s)


def _kind_of(step: SignInStep, error: BaseException) -> FailureKind:
    if isinstance(error, OAuthError):
        return _OF_CODE.get(error.code, "other")
    if isinstance(error, AuthError):
        return _REFUSED.get(step, "refused_token")
    if isinstance(error, NoAnswerError):
        return "unreachable"
    if isinstance(error, RateLimitError) or (isinstance(error, ServiceError) and (error.status or 0) >= 500):
        return "busy"
    if isinstance(error, NotFoundError) and step in {"choose", "check", "open"}:
        return "gone"
    if isinstance(error, AccessError):
        return "no_access"
    return "other" if isinstance(error, MemframeError) else "fault"


def _message_of(error: BaseException) -> tuple[str, str]:
    if isinstance(error, MemframeError):
        words = str(error).rstrip(". ")
        is_name = "_" in words.partition(" ")[0]  # a setting keeps its spelling
        return f"{words if is_name else words[:1].upper() + words[1:]}.", ""
    text = f"An unexpected error occurred ({type(error).__name__})."
    return text, "Try again; logging at level DEBUG shows more."


# -- results


class SignInState(Struct, frozen=True, eq=False, kw_only=True):
    """A sign-in at one moment: its state, and the results of the steps.

    Attributes
    ----------
    step_number : int
        Number of the step that led here.
    doing : str or None
        The step that is running.
    client, polling_client : Client or None
        The developer's clients; the second one does not retry, so that a busy service is reported at once.
    requests : tuple of AccessRequest
        All requests of this developer, the newest first.
    address : str or None
        The address that the user opens for the current attempt.
    is_listening : bool
        True while a listener on this machine waits for the redirect.
    checked_at : datetime or None
        When the status of the request, or of all requests, was last read.
    """

    step_number: int = 0
    state: State = "signed_out"
    doing: SignInStep | None = None
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
        return f"<SignInState {self.state}>"  # some fields must not be printed
