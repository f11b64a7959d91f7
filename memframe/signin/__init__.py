"""The way from API key to open access as a state machine, without widgets.

::

    signed_out ──sign_in──> signed_in ──authorize──> authorizing ──finish──> authorized
                                │                                                │
                                └────────────────choose──────────┐              ask
                                                                 v               v
        loaded <──load── ready <──open── approved <────check──── pending, rejected, revoked

    rejected, revoked ──ask──> pending, with the memory key that is known already

Panels, scripts and tests drive the same steps. A step that fails raises its error and leaves the state
as it was, so that it can be tried again; `SignIn.trouble` says in words what went wrong. A step out of
turn is refused with the one that is due.

Any thread may take a step. Of two at a time the later one counts, and what the earlier one brings is
dropped. `SignIn.check` and `SignIn.refresh` only look: they give way to whatever else is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NoReturn

import pandas as pd
from msgspec.structs import replace

from memframe.access import Access, ContentFormat
from memframe.client import Client, connect_and_sign_in
from memframe.oauth import OAuthFlow
from memframe.progress import ProgressOption
from memframe.runtime import Runtime
from memframe.secret import Secret, as_secret_if_text
from memframe.signin import state
from memframe.signin.state import DUE, Stand, State, Step, Trouble, Turns
from memframe.wire import AccessRequest, OAuthTokens

__all__ = ["SignIn", "Stand", "State", "Step", "Trouble"]


def _now(stand: Stand) -> datetime:
    return (stand.client.runtime if stand.client else Runtime()).now()


class SignIn:
    """One person's way to one user's memories.

    Parameters
    ----------
    client : Client, optional
        Of a developer who is known already; else `sign_in` makes one.
    flow : OAuthFlow, optional
        The application's OAuth flow; else one is made from the settings when it is needed.
    content_format : str, list of str or codec
        As in `open_access`.

    Examples
    --------
    >>> way = SignIn()
    >>> way.state, way.due
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
        self._nobody = Stand(flow=flow)
        self._turns = Turns(
            self._nobody, lambda step, stand, error: state.failed(step, stand, error, _now(stand))
        )
        if client is not None:
            self.sign_in(client)

    def __repr__(self) -> str:
        return f"<memframe.SignIn {self.state}: {self.due}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a sign-in is not pickled, as it holds keys and an attempt that is this process's own"
        )

    @property
    def stand(self) -> Stand:
        """All that the steps have brought so far, at one moment."""
        return self._turns.stand

    @property
    def state(self) -> State:
        """Where one stands; see the module's picture."""
        return self.stand.state

    @property
    def due(self) -> str:
        """The next step, in words."""
        return DUE[self.stand.state]

    @property
    def trouble(self) -> Trouble | None:
        """Why the last step failed, in words for people."""
        return self.stand.trouble

    @property
    def client(self) -> Client | None:
        """The developer's client."""
        return self.stand.client

    @property
    def requests(self) -> tuple[AccessRequest, ...]:
        """All requests of the developer when `refresh` last asked, the newest first."""
        return self.stand.requests

    @property
    def tokens(self) -> OAuthTokens | None:
        """What the exchange brought."""
        return self.stand.tokens

    @property
    def request(self) -> AccessRequest | None:
        """The request that was asked or chosen."""
        return self.stand.request

    @property
    def access(self) -> Access | None:
        """The open access."""
        return self.stand.access

    @property
    def memories(self) -> pd.DataFrame | None:
        """What was loaded; it stays after a revocation, and goes with `sign_out`."""
        return self.stand.memories

    @property
    def tags(self) -> pd.DataFrame | None:
        """The user's tags, loaded with the memories."""
        return self.stand.tags

    def subscribe(self, changed: Callable[[], object]) -> None:
        """Have `changed` called after each change, in the thread that made it."""
        self._turns.subscribers.append(changed)

    # -- the steps

    def sign_in(
        self,
        key: str | Secret | Client | None = None,
        *,
        base_url: str | None = None,
        auth_url: str | None = None,
    ) -> None:
        """Sign the developer in, and prove that the key is good by fetching a token.

        Parameters
        ----------
        key : str, Secret or Client, optional
            The API key, or a client that has it; None takes the key from the settings.
        base_url, auth_url : str, optional
            As in `connect`; a client has its own.
        """
        key = as_secret_if_text(key)

        def signed_in(_: Stand) -> Stand:
            if isinstance(key, Client):
                key.sign_in()
                return state.signed_in(self._nobody, key)
            client = connect_and_sign_in(base_url, api_key=key, auth_url=auth_url)
            return state.signed_in(self._nobody, client)

        self._turns.take("sign_in", signed_in)

    def sign_out(self) -> None:
        """Forget everything that the steps have brought."""
        self._turns.go(self._nobody)

    def go_back(self) -> None:
        """Leave this attempt or request, to choose again; a flow that has not proved itself may be given anew."""
        stand = self.stand
        if stand.client is not None:
            flow = self._nobody.flow if stand.state == "authorizing" else stand.flow
            self._turns.go(replace(state.back(stand), flow=flow))

    def cancel(self) -> None:
        """Let go of the step that is under way."""
        self._turns.go(self.stand)

    def refresh(self) -> None:
        """Ask for all requests of this developer."""
        self._turns.take("refresh", lambda stand: state.refreshed(stand, _now(stand)))

    def authorize(
        self,
        client_id: str | None = None,
        client_secret: str | Secret | None = None,
        *,
        auth_url: str | None = None,
        redirect_uri: str | None = None,
    ) -> str:
        """Begin a user's authorization: the address that the user opens.

        The parameters are those of `OAuthFlow`, which is made once and kept; giving any makes another.
        """
        client_secret = as_secret_if_text(client_secret)

        def authorizing(stand: Stand) -> Stand:
            flow = state.flow_of(
                stand, client_id, client_secret, auth_url=auth_url, redirect_uri=redirect_uri
            )
            return state.authorizing(stand, flow, flow.authorization_url())

        return str(self._turns.take("authorize", authorizing).address)

    def receive(
        self,
        timeout_s: float = 300,
        *,
        client_id: str | None = None,
        client_secret: str | Secret | None = None,
        auth_url: str | None = None,
        redirect_uri: str | None = None,
    ) -> None:
        """Make a new attempt, and have a listener on this machine take its answer.

        Meanwhile ``stand.address`` is what the user opens. See `OAuthFlow.run_local`; the other parameters are
        those of `authorize`.
        """
        client_secret = as_secret_if_text(client_secret)

        def received(stand: Stand) -> Stand:
            flow = state.flow_of(
                stand, client_id, client_secret, auth_url=auth_url, redirect_uri=redirect_uri
            )

            def show(address: str) -> None:
                shown = state.authorizing(stand, flow, address)
                self._turns.put(stand.turn, replace(shown, doing="receive", is_listening=True))

            tokens = flow.run_local(
                timeout_s=timeout_s, show=show, is_wanted=lambda: stand.turn == self.stand.turn
            )
            return state.authorized(stand, tokens)

        self._turns.take("receive", received)

    def finish(self, code_or_redirected_url: str | Secret) -> None:
        """Take the address that the user was sent back to, and exchange its code."""
        code_or_redirected_url = as_secret_if_text(code_or_redirected_url)
        self._turns.take("finish", lambda stand: state.exchanged(stand, code_or_redirected_url))

    def ask(self, reason: str) -> None:
        """Ask the user for access to the memories; after a rejection or revocation once more, with another reason."""
        self._turns.take("ask", lambda stand: state.asked(stand, reason, _now(stand)))

    def choose(self, request_id: str) -> None:
        """Go on with a request that exists, whatever its status."""
        self._turns.take("choose", lambda stand: state.chosen(stand, request_id, _now(stand)))

    def check(self) -> None:
        """Ask for the request's status once; a revoked access is closed."""
        self._turns.take("check", lambda stand: state.checked(stand, _now(stand)))

    def open(self) -> Access:
        """Fetch the keys of the approved request."""
        opened = self._turns.take("open", lambda stand: state.opened(stand, self._content_format))
        return state.brought(opened.access)

    def load(self, *, progress: ProgressOption = "auto") -> None:
        """Load all memories and tags; `progress` is as in `load_memories`."""
        self._turns.take("load", lambda stand: state.loaded(stand, progress))
