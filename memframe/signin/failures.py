"""Put errors of a sign-in into words for people: one sentence for the cause, and one for the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

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

Step = Literal[
    "sign_in", "refresh", "authorize", "receive", "finish", "ask", "choose", "check", "open", "load"
]

Kind = Literal[
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
    "no_answer",
    "no_access",
    "gone",
    "other",
    "fault",
]

TEXTS: Mapping[Kind, tuple[str, str]] = {
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
    "no_answer": (
        "No answer arrived at this computer.",
        "Open the link and decide, or paste the address to which it leads.",
    ),
    "gone": ("The service no longer knows this request.", "Choose another one, or ask again."),
}
"""Cause and next step by kind; for the other kinds the message of the error says both."""

_OF_CODE: Mapping[str, Kind] = {
    "access_denied": "denied",
    "invalid_grant": "used_code",
    "state_mismatch": "state_mismatch",
    "issuer_mismatch": "state_mismatch",
    "link_pasted": "link_pasted",
    "code_missing": "no_code",
    "no_answer": "no_answer",
}

_REFUSED: Mapping[Step, Kind] = {
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

    kind: Kind
    step: Step
    text: str
    next_step: str
    retry_after_s: float | None = None

    @property
    def is_transient(self) -> bool:
        """True if the same step may succeed later by itself."""
        return self.kind in {"unreachable", "busy"}


def describe_failure(step: Step, error: BaseException, *, memory_key_is_old: bool = False) -> Failure:
    """Classify the error of a step; an old memory key is one of an earlier connection.

    >>> describe_failure("finish", OAuthError("...", code="access_denied")).text
    'The user chose not to allow the connection. Nothing was shared.'
    """
    kind = "refused_memory_key" if memory_key_is_old else _kind_of(step, error)
    text, next_step = TEXTS.get(kind) or _message_of(error)
    wait_s = getattr(error, "retry_after_s", None)
    if kind == "busy" and wait_s:
        next_step = f"Try again in {wait_s:.0f} s."
    return Failure(kind, step, text, next_step, wait_s)


def _kind_of(step: Step, error: BaseException) -> Kind:
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
        is_name = "_" in words.partition(" ")[0]  # of a setting, which stays as it is written
        return f"{words if is_name else words[:1].upper() + words[1:]}.", ""
    text = f"An unexpected error occurred ({type(error).__name__})."
    return text, "Try again; logging at level DEBUG shows more."
