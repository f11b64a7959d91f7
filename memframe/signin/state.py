"""Where one stands on the way to open access: states, steps and what they have brought.

Turns: whose step counts, when several threads take steps at once.

The steps on the way to open access: each leads from one stand to the next, and asks the service for it.

Trouble: what went wrong on the way to open access, and the way out, in words for people.

The errors of the tree speak to whoever wrote the call. Here they become what a person at a panel needs to
know: one sentence for what happened, and one for what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Literal, TypeVar

import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access, ContentFormat, open_access
from memframe.client import Client
from memframe.errors import (
    AccessError,
    AuthError,
    ConfigError,
    MemframeError,
    NoAnswerError,
    NotFoundError,
    OAuthError,
    RateLimitError,
    ServiceError,
)
from memframe.load import load_memories, load_tags
from memframe.oauth import OAuthFlow
from memframe.progress import ProgressOption
from memframe.secret import Secret
from memframe.wire import AccessRequest, OAuthTokens

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
        "The sign-in has expired, and the API key is not accepted any more.",
        "Sign out, and sign in with a valid key.",
    ),
    "refused_memory_key": (
        "The service does not accept the key of this user's earlier connection any more.",
        "Connect the user again, and then ask.",
    ),
    "busy": ("The service is busy.", "Try again in a minute."),
    "state_mismatch": (
        "That address belongs to another attempt.",
        "Open the link again, and paste the address to which it leads.",
    ),
    "used_code": ("That code was used already, or has expired.", "Open the link again: it is a new one."),
    "denied": (
        "The user chose not to allow the connection. Nothing was shared.",
        "Open the link again, or choose another request.",
    ),
    "link_pasted": (
        "That is the link itself.",
        "Open it, and paste the address of the page to which the browser is sent after the user has allowed it.",
    ),
    "no_code": (
        "There is no code in that.",
        "Copy the whole address of the page to which the browser was sent after the user allowed it.",
    ),
    "no_answer": (
        "No answer came to this computer.",
        "Open the link and decide, or paste the address to which it leads.",
    ),
    "gone": ("The service does not know this request any more.", "Choose another one, or ask again."),
}
"""What happened, and the way out; for the other kinds the error's own words say both."""

_OF_CODE: Mapping[str, Kind] = {
    "access_denied": "denied",
    "invalid_grant": "used_code",
    "state_mismatch": "state_mismatch",
    "state_missing": "state_mismatch",
    "issuer_mismatch": "state_mismatch",
    "link_pasted": "link_pasted",
    "code_missing": "no_code",
    "no_answer": "no_answer",
}

_PASSING: frozenset[Kind] = frozenset({"unreachable", "busy"})


class Trouble(Struct, frozen=True):
    """What went wrong.

    Attributes
    ----------
    kind : str
        For programs: ``refused_key``, ``unreachable``, ``used_code`` and so on.
    step : str
        The step that failed.
    text, way_out : str
        For people: what happened, and what to do. They hold no secret.
    retry_after_s : float or None
        Seconds after which the service wants to be asked again, where it said so.
    """

    kind: Kind
    step: Step
    text: str
    way_out: str
    retry_after_s: float | None = None

    @property
    def is_passing(self) -> bool:
        """Whether the same step may go well later, without anybody doing anything."""
        return self.kind in _PASSING


def trouble_of(step: Step, error: BaseException, *, memory_key_is_old: bool = False) -> Trouble:
    """Return what an error in a step means; an old memory key is one of an earlier connection.

    >>> trouble_of("finish", OAuthError("...", code="access_denied")).text
    'The user chose not to allow the connection. Nothing was shared.'
    """
    kind = "refused_memory_key" if memory_key_is_old else _kind_of(step, error)
    text, way_out = TEXTS.get(kind) or _own_words(error)
    wait_s = getattr(error, "retry_after_s", None)
    if kind == "busy" and wait_s:
        way_out = f"Try again in {wait_s:.0f} s."
    return Trouble(kind, step, text, way_out, wait_s)


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


_REFUSED: Mapping[Step, Kind] = {
    "sign_in": "refused_key",
    "finish": "refused_client",
    "receive": "refused_client",
}
"""What a 401 means, by step."""


def _own_words(error: BaseException) -> tuple[str, str]:
    if isinstance(error, MemframeError):
        words = str(error).rstrip(". ")
        is_name = "_" in words.partition(" ")[0]  # of a setting, which stays as it is written
        return f"{words if is_name else words[:1].upper() + words[1:]}.", ""
    text = f"Something unforeseen went wrong ({type(error).__name__})."
    return text, "Try again; with logging at the level DEBUG, memframe tells more."


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


T = TypeVar("T")

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def signed_in(stand: Stand, client: Client) -> Stand:
    """The key is good: it gave a token."""
    return Stand(state="signed_in", flow=stand.flow, client=client, lookout=client.without_retries())


def back(stand: Stand) -> Stand:
    """Signed in, and nothing more."""
    return replace(
        stand,
        state="signed_in",
        address=None,
        is_listening=False,
        tokens=None,
        request=None,
        access=None,
        memories=None,
        tags=None,
    )


def refreshed(stand: Stand, now: datetime) -> Stand:
    """All requests of the developer are known."""
    requests = sorted(brought(stand.lookout).access_requests(), key=_when, reverse=True)
    return replace(stand, requests=tuple(requests), looked_at=now)


def _when(request: AccessRequest) -> datetime:
    return request.created_at or _LONG_AGO


def flow_of(
    stand: Stand,
    client_id: str | None = None,
    client_secret: str | Secret | None = None,
    *,
    auth_url: str | None = None,
    redirect_uri: str | None = None,
) -> OAuthFlow:
    """The flow that was made before, or one of what is given and of the settings."""
    if stand.flow and not any((client_id, client_secret, auth_url, redirect_uri)):
        return stand.flow
    server = auth_url or brought(stand.client).auth_url
    return OAuthFlow(client_id, client_secret, auth_url=server, redirect_uri=redirect_uri)


def authorizing(stand: Stand, flow: OAuthFlow, address: str) -> Stand:
    """An attempt waits for its answer."""
    return replace(back(stand), state="authorizing", flow=flow, address=address)


def authorized(stand: Stand, tokens: OAuthTokens) -> Stand:
    """The user allowed the connection."""
    return replace(back(stand), state="authorized", tokens=tokens)


def exchanged(stand: Stand, answer: str | Secret) -> Stand:
    """The pasted answer was good for tokens."""
    return authorized(stand, brought(stand.flow).exchange(answer))


def asked(stand: Stand, reason: str, now: datetime) -> Stand:
    """Send a request, which the user then finds on the dashboard.

    Raises
    ------
    ConfigError
        The request that was chosen comes without its memory key.
    """
    if stand.memory_key is None:
        raise ConfigError(
            "the service tells no memory key with this request: authorize() the user again, and then ask()"
        )
    return following(stand, brought(stand.client).create_access_request(stand.memory_key, reason), now)


def chosen(stand: Stand, request_id: str, now: datetime) -> Stand:
    """An existing request is the one."""
    return following(back(stand), brought(stand.lookout).access_request(request_id), now)


def checked(stand: Stand, now: datetime) -> Stand:
    """The status of the request is known again."""
    return following(stand, brought(stand.lookout).access_request(brought(stand.request).id), now)


def following(stand: Stand, request: AccessRequest, now: datetime) -> Stand:
    """Where the status of the request leads; an access stays open only while the request is approved."""
    stand = replace(stand, request=request, looked_at=now)
    if stand.access is not None and request.status == "approved":
        return stand
    return replace(stand, state=request.status, access=None)


def opened(stand: Stand, content_format: ContentFormat) -> Stand:
    """The keys to the memories are here."""
    access = open_access(brought(stand.client), brought(stand.request).id, content_format=content_format)
    return replace(stand, state="ready", access=access)


def loaded(stand: Stand, progress: ProgressOption) -> Stand:
    """The memories and tags are here."""
    access = brought(stand.access)
    memories = load_memories(access, progress=progress)
    return replace(stand, state="loaded", memories=memories, tags=load_tags(access))


def failed(step: Step, stand: Stand, error: Exception, now: datetime) -> Stand:
    """As it was, with the trouble.

    A used-up attempt is replaced by a new one, a revocation is noticed, and a user whose memory key is not
    accepted any more is to be connected again.
    """
    if step in {"open", "load"} and isinstance(error, AccessError):
        with suppress(MemframeError):  # then the first error is all that is known
            looked = checked(stand, now)
            if looked.state != stand.state:
                return looked
    if step == "ask" and stand.state != "authorized" and isinstance(error, AccessError | NotFoundError):
        return replace(back(stand), trouble=trouble_of(step, error, memory_key_is_old=True))
    if stand.flow and (step == "receive" or (step == "finish" and not stand.flow.is_open)):
        stand = authorizing(stand, stand.flow, stand.flow.authorization_url())
    return replace(stand, trouble=trouble_of(step, error))


def brought(value: T | None) -> T:
    """What an earlier step has brought: without it no state allows the step that needs it."""
    assert value is not None  # noqa: S101 - see above
    return value
