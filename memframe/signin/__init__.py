"""Sign in, connect a user and open the access, as a state machine without widgets.

::

    signed_out ──sign_in──> signed_in ──authorize──> authorizing ──finish──> authorized
                                │                                                │
                                └────────────────choose──────────┐              ask
                                                                 v               v
        loaded <──load── ready <──open── approved <────check──── pending, rejected, revoked

    rejected, revoked ──ask──> pending, with the same memory key

Panels, scripts and tests take the same steps. A step that fails raises its error and leaves the state as it was,
so that it can be repeated; `SignIn.failure` has the error in words for people. A step out of turn is refused, and
the message names the one that is due.

Any thread may take a step. If two run at a time, the later one counts, and the result of the earlier one is dropped.
`SignIn.check` and `SignIn.refresh` only read a status: they give way to any other step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import NoReturn, TypeVar

import pandas as pd
from msgspec.structs import replace

from memframe.access import Access, ContentFormat, open_access
from memframe.client import Client, connect_and_sign_in
from memframe.display import html_card
from memframe.errors import AccessError, ConfigError, MemframeError, NotFoundError
from memframe.load import load_memories, load_tags
from memframe.oauth import OAuthFlow
from memframe.progress import ProgressOption
from memframe.runtime import Runtime
from memframe.secret import Secret, as_secret_if_text
from memframe.signin.state import (
    ALLOWED,
    DUE,
    POLLING_STEPS,
    Failure,
    SignInState,
    SignInStep,
    State,
    describe_failure,
)
from memframe.wire import AccessRequest, OAuthTokens

__all__ = ["Failure", "SignIn", "SignInState", "SignInStep", "State"]

T = TypeVar("T")

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class SignIn:
    """Take the steps from an API key to one user's memories.

    Parameters
    ----------
    client : Client, optional
        Client of a developer who is already signed in; otherwise `sign_in` makes one.
    flow : OAuthFlow, optional
        The application's OAuth flow; otherwise one is made from the settings when it is needed.
    content_format : str, list of str or codec
        As in `open_access`.

    Attributes
    ----------
    snapshot : SignInState
        The state, and all results of the steps, at one moment.

    Examples
    --------
    >>> sign_in = SignIn()
    >>> sign_in.state, sign_in.due
    ('signed_out', 'sign_in() with the API key')
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        flow: OAuthFlow | None = None,
        content_format: ContentFormat = "auto",
    ) -> None:
        self._content_format = content_format
        self._initial = self.snapshot = SignInState(flow=flow)
        self._subscribers: list[Callable[[], object]] = []
        self._lock = Lock()
        if client is not None:
            self.sign_in(client)

    def __repr__(self) -> str:
        return f"<memframe.SignIn {self.state}: {self.due}>"

    def _repr_html_(self) -> str:
        return html_card("Sign-in", {"state": self.state, "next": self.due})

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a sign-in cannot be pickled: it contains keys and belongs to this process")

    @property
    def state(self) -> State:
        """The name of the state; see the picture of the module."""
        return self.snapshot.state

    @property
    def due(self) -> str:
        """The next step, in words."""
        return DUE[self.state]

    @property
    def failure(self) -> Failure | None:
        """The error of the last step, in words for people."""
        return self.snapshot.failure

    @property
    def client(self) -> Client | None:
        """The developer's client."""
        return self.snapshot.client

    @property
    def requests(self) -> tuple[AccessRequest, ...]:
        """All requests of the developer as of the last `refresh`, the newest first."""
        return self.snapshot.requests

    @property
    def tokens(self) -> OAuthTokens | None:
        """The result of the exchange."""
        return self.snapshot.tokens

    @property
    def request(self) -> AccessRequest | None:
        """The request that was sent or chosen."""
        return self.snapshot.request

    @property
    def access(self) -> Access | None:
        """The open access."""
        return self.snapshot.access

    @property
    def memories(self) -> pd.DataFrame | None:
        """The loaded memories; they outlast a revocation, but not `sign_out`."""
        return self.snapshot.memories

    @property
    def tags(self) -> pd.DataFrame | None:
        """The user's tags, loaded with the memories."""
        return self.snapshot.tags

    def subscribe(self, changed: Callable[[], object]) -> None:
        """Call `changed` after each change, in the thread that made it."""
        self._subscribers.append(changed)

    # -- the steps

    def sign_in(
        self,
        key: str | Secret | Client | None = None,
        *,
        base_url: str | None = None,
        auth_url: str | None = None,
    ) -> None:
        """Sign the developer in, and verify the key by fetching a token.

        Parameters
        ----------
        key : str, Secret or Client, optional
            The API key, or a client that has it; None takes the key from the settings.
        base_url, auth_url : str, optional
            As in `connect`; a client has its own.
        """
        key = as_secret_if_text(key)

        def sign_in(_: SignInState) -> SignInState:
            if isinstance(key, Client):
                client = key
                client.sign_in()
            else:
                client = connect_and_sign_in(base_url, api_key=key, auth_url=auth_url)
            return replace(
                self._initial, state="signed_in", client=client, polling_client=client.without_retries()
            )

        self._run("sign_in", sign_in)

    def sign_out(self) -> None:
        """Forget all results of the steps."""
        self._reset(self._initial)

    def go_back(self) -> None:
        """Leave this attempt or request to choose another; an unused flow may be replaced."""
        before = self.snapshot
        if before.client is not None:
            flow = self._initial.flow if before.state == "authorizing" else before.flow
            self._reset(replace(_return_to_signed_in(before), flow=flow))

    def cancel(self) -> None:
        """Drop the step that is running."""
        self._reset(self.snapshot)

    def refresh(self) -> None:
        """Read all requests of this developer."""

        def refresh(before: SignInState) -> SignInState:
            requests = _require(before.polling_client).access_requests()
            newest_first = sorted(requests, key=lambda each: each.created_at or _LONG_AGO, reverse=True)
            return replace(before, requests=tuple(newest_first), checked_at=_now(before))

        self._run("refresh", refresh)

    def authorize(
        self,
        client_id: str | None = None,
        client_secret: str | Secret | None = None,
        *,
        auth_url: str | None = None,
        redirect_uri: str | None = None,
    ) -> str:
        """Start a user's authorization, and return the address that the user opens.

        The parameters are those of `OAuthFlow`. The flow is reused unless one of them is given.
        """
        client_secret = as_secret_if_text(client_secret)

        def authorize(before: SignInState) -> SignInState:
            flow = _choose_flow(
                before, client_id, client_secret, auth_url=auth_url, redirect_uri=redirect_uri
            )
            return _begin_authorization(before, flow, flow.authorization_url())

        return str(self._run("authorize", authorize).address)

    def receive(
        self,
        timeout_s: float = 300,
        *,
        client_id: str | None = None,
        client_secret: str | Secret | None = None,
        auth_url: str | None = None,
        redirect_uri: str | None = None,
    ) -> None:
        """Start a user's authorization, and receive the redirect with a listener on this machine.

        During this time, ``snapshot.address`` is the address for the user to open. See `OAuthFlow.run_local`;
        the other parameters are those of `authorize`.
        """
        client_secret = as_secret_if_text(client_secret)

        def receive(before: SignInState) -> SignInState:
            flow = _choose_flow(
                before, client_id, client_secret, auth_url=auth_url, redirect_uri=redirect_uri
            )

            def show(address: str) -> None:
                listening = replace(
                    _begin_authorization(before, flow, address), doing="receive", is_listening=True
                )
                self._publish(before.step_number, listening)

            tokens = flow.run_local(
                timeout_s=timeout_s,
                show=show,
                is_wanted=lambda: before.step_number == self.snapshot.step_number,
            )
            return replace(_return_to_signed_in(before), state="authorized", tokens=tokens)

        self._run("receive", receive)

    def finish(self, code_or_redirected_url: str | Secret) -> None:
        """Exchange the code in the address to which the user was redirected."""
        answer = as_secret_if_text(code_or_redirected_url)

        def finish(before: SignInState) -> SignInState:
            tokens = _require(before.flow).exchange(answer)
            return replace(_return_to_signed_in(before), state="authorized", tokens=tokens)

        self._run("finish", finish)

    def ask(self, reason: str) -> None:
        """Request access; after a rejection or revocation this sends another request.

        Raises
        ------
        ConfigError
            The chosen request has no memory key.
        """

        def ask(before: SignInState) -> SignInState:
            if before.memory_key is None:
                raise ConfigError(
                    "the service returns no memory key with this request: authorize() the user again, then ask()"
                )
            request = _require(before.client).create_access_request(before.memory_key, reason)
            return _with_request(before, request)

        self._run("ask", ask)

    def choose(self, request_id: str) -> None:
        """Continue with an existing request, whatever its status."""
        self._run(
            "choose",
            lambda before: _with_request(
                _return_to_signed_in(before), _require(before.polling_client).access_request(request_id)
            ),
        )

    def check(self) -> None:
        """Read the status of the request once; a revoked access is closed."""
        self._run("check", _check)

    def open(self) -> Access:
        """Fetch the keys of the approved request."""

        def open_(before: SignInState) -> SignInState:
            request_id = _require(before.request).id
            access = open_access(_require(before.client), request_id, content_format=self._content_format)
            return replace(before, state="ready", access=access)

        return _require(self._run("open", open_).access)

    def load(self, *, progress: ProgressOption = "auto") -> None:
        """Load all memories and tags; `progress` as in `load_memories`."""

        def load(before: SignInState) -> SignInState:
            access = _require(before.access)
            memories = load_memories(access, progress=progress)
            return replace(before, state="loaded", memories=memories, tags=load_tags(access))

        self._run("load", load)

    def _run(self, step: SignInStep, work: Callable[[SignInState], SignInState]) -> SignInState:
        """Run a step, and keep its result unless another step began meanwhile."""
        before = self._begin(step)
        if before is None:
            return self.snapshot
        after = before
        try:
            after = work(before)
        except Exception as error:  # any error: the state shows it, and the caller gets it
            if before.step_number == self.snapshot.step_number:
                known = replace(before, flow=self.snapshot.flow)  # a listener has already published the flow
                after = _recover(step, known, error)
            raise
        finally:
            is_kept = self._publish(before.step_number, after)
        if not is_kept:
            raise ConfigError(f"another step has overtaken {step}(), so that its result was dropped")
        return after

    def _begin(self, step: SignInStep) -> SignInState | None:
        """Return the state that the step starts from; None for a poll while another step runs."""
        is_poll = step in POLLING_STEPS
        with self._lock:
            current = self.snapshot
            if current.state not in ALLOWED[step]:
                raise ConfigError(
                    f"{step}() is out of turn: the sign-in is {current.state}; next is {DUE[current.state]}"
                )
            if is_poll and current.doing:
                return None
            # A poll keeps the error of an earlier step, which the user may be reading, but not that of a poll.
            shown = current.failure if is_poll else None
            kept = shown if shown and shown.step not in POLLING_STEPS else None
            number = current.step_number + 1
            self.snapshot = replace(
                current, step_number=number, doing=step, failure=shown, is_listening=False
            )
            before = replace(self.snapshot, doing=None, failure=kept)
        self._notify()
        return before

    def _publish(self, step_number: int, snapshot: SignInState) -> bool:
        """Set the state on behalf of a step, and return True; False if a later step has begun."""
        with self._lock:
            is_latest = step_number == self.snapshot.step_number
            if is_latest:
                self.snapshot = replace(snapshot, step_number=step_number)
        if is_latest:
            self._notify()
        return is_latest

    def _reset(self, snapshot: SignInState) -> None:
        """Set the state, and drop the step that is running."""
        with self._lock:
            number = self.snapshot.step_number + 1
            self.snapshot = replace(
                snapshot, step_number=number, doing=None, failure=None, is_listening=False
            )
        self._notify()

    def _notify(self) -> None:
        for changed in self._subscribers:
            changed()


def _return_to_signed_in(before: SignInState) -> SignInState:
    """Return the state "signed_in", without the results of later steps."""
    return replace(
        before,
        state="signed_in",
        address=None,
        is_listening=False,
        tokens=None,
        request=None,
        access=None,
        memories=None,
        tags=None,
    )


def _begin_authorization(before: SignInState, flow: OAuthFlow, address: str) -> SignInState:
    return replace(_return_to_signed_in(before), state="authorizing", flow=flow, address=address)


def _choose_flow(
    before: SignInState,
    client_id: str | None,
    client_secret: str | Secret | None,
    *,
    auth_url: str | None,
    redirect_uri: str | None,
) -> OAuthFlow:
    """Return the earlier flow, or make one from the arguments and the settings."""
    if before.flow and not any((client_id, client_secret, auth_url, redirect_uri)):
        return before.flow
    server = auth_url or _require(before.client).auth_url
    return OAuthFlow(client_id, client_secret, auth_url=server, redirect_uri=redirect_uri)


def _with_request(before: SignInState, request: AccessRequest) -> SignInState:
    """Return the state of a request's status; an access stays open only while the request is approved."""
    after = replace(before, request=request, checked_at=_now(before))
    if after.access is not None and request.status == "approved":
        return after
    return replace(after, state=request.status, access=None)


def _check(before: SignInState) -> SignInState:
    return _with_request(before, _require(before.polling_client).access_request(_require(before.request).id))


def _recover(step: SignInStep, before: SignInState, error: Exception) -> SignInState:
    """Return the state after a failed step: as it was, with the error.

    A used attempt is replaced by a new one, a revocation is noticed, and a user whose memory key is no longer
    accepted has to be connected again.
    """
    if step in {"open", "load"} and isinstance(error, AccessError):
        with suppress(MemframeError):  # the first error is then the one to show
            checked = _check(before)
            if checked.state != before.state:
                return checked
    if step == "ask" and before.state != "authorized" and isinstance(error, AccessError | NotFoundError):
        return replace(
            _return_to_signed_in(before), failure=describe_failure(step, error, memory_key_is_old=True)
        )
    if before.flow and (step == "receive" or (step == "finish" and not before.flow.is_open)):
        before = _begin_authorization(before, before.flow, before.flow.authorization_url())
    return replace(before, failure=describe_failure(step, error))


def _now(snapshot: SignInState) -> datetime:
    return (snapshot.client.runtime if snapshot.client else Runtime()).now()


def _require(value: T | None) -> T:
    """Return a result of an earlier step, which the current state guarantees."""
    assert value is not None  # noqa: S101 - see above
    return value
