"""The way from API key to open access as a state machine, without widgets.

::

    signed_out ──sign_in──> signed_in ──authorize──> authorizing ──finish──> authorized
                                │                                                │
                                └────────────────choose──────────┐              ask
                                                                 v               v
                   ready <──open── approved <────check──── pending, rejected, revoked

Panels, scripts and tests drive the same steps. A step that fails raises its error and leaves the state
as it was, so that it can be tried again; a step out of order is refused with the one that is due.
"""

from __future__ import annotations

from typing import Literal

from memframe.access import Access, ContentFormat, open_access
from memframe.client import Client, connect
from memframe.errors import ConfigError
from memframe.oauth import OAuthFlow
from memframe.secret import Secret, closed
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
]

_DUE: dict[State, str] = {
    "signed_out": "sign_in() with the API key",
    "signed_in": "authorize() for a new user, or choose() an existing request",
    "authorizing": "finish() with the redirected address",
    "authorized": "ask() with a reason",
    "pending": "check() until the user has decided",
    "approved": "open() the access",
    "rejected": "authorize() again, or choose() another request",
    "revoked": "authorize() again, or choose() another request",
    "ready": "nothing more: `access` is open",
}

_STEPS: dict[str, frozenset[State]] = {
    "authorize": frozenset(_DUE) - {"signed_out"},
    "choose": frozenset(_DUE) - {"signed_out"},
    "finish": frozenset({"authorizing"}),
    "ask": frozenset({"authorized"}),
    "check": frozenset({"pending", "approved", "rejected", "revoked", "ready"}),
    "open": frozenset({"approved"}),
}
"""Step -> states in which it may be taken; `SignIn.sign_in` and `SignIn.sign_out` always may."""


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

    Attributes
    ----------
    state : str
        Where one stands; see the module's picture.
    client, tokens, request, access
        What the steps have brought so far, else None.

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
        self._flow = flow
        self._content_format = content_format
        self.state: State = "signed_out"
        self.client: Client | None = None
        self.tokens: OAuthTokens | None = None
        self.request: AccessRequest | None = None
        self.access: Access | None = None
        if client is not None:
            self.sign_in(client)

    def __repr__(self) -> str:
        return f"<memframe.SignIn {self.state}: {self.due}>"

    @property
    def due(self) -> str:
        """The next step, in words."""
        return _DUE[self.state]

    def sign_in(self, key: str | Secret | Client | None = None) -> None:
        """Sign the developer in, and prove that the key is good by fetching a token.

        Parameters
        ----------
        key : str, Secret or Client, optional
            The API key, or a client that has it; None takes the key from the settings.
        """
        key = closed(key)
        client = key if isinstance(key, Client) else connect(api_key=key)
        client.sign_in()
        self.sign_out()
        self.client = client
        self.state = "signed_in"

    def sign_out(self) -> None:
        """Forget everything that the steps have brought."""
        self.client = self.tokens = self.request = self.access = None
        self.state = "signed_out"

    def authorize(self) -> str:
        """Begin a user's authorization: the address that the user opens."""
        client = self._at("authorize")
        if self._flow is None:
            self._flow = OAuthFlow(auth_url=client.auth_url)
        address = self._flow.authorization_url()
        self.tokens = self.request = self.access = None
        self.state = "authorizing"
        return address

    def finish(self, code_or_redirected_url: str | Secret) -> None:
        """Take the address that the user was sent back to, and exchange its code."""
        code_or_redirected_url = closed(code_or_redirected_url)
        self._at("finish")
        assert self._flow is not None  # noqa: S101 - authorize made it: no other step leads here
        self.tokens = self._flow.exchange(code_or_redirected_url)
        self.state = "authorized"

    def ask(self, reason: str) -> None:
        """Ask the user for access to the memories."""
        client = self._at("ask")
        assert self.tokens is not None  # noqa: S101 - finish brought them: no other step leads here
        self._follow(client.create_access_request(self.tokens.memory_key, reason))

    def choose(self, request_id: str) -> None:
        """Go on with a request that exists, whatever its status."""
        self._follow(self._at("choose").access_request(request_id))

    def check(self) -> None:
        """Ask for the request's status once; a revoked access is closed."""
        client = self._at("check")
        assert self.request is not None  # noqa: S101 - ask or choose brought it: no other step leads here
        request = client.access_request(self.request.id)
        if self.state == "ready" and request.status == "approved":
            self.request = request
        else:
            self._follow(request)

    def open(self) -> Access:
        """Fetch the keys of the approved request."""
        client = self._at("open")
        assert self.request is not None  # noqa: S101 - ask or choose brought it: no other step leads here
        self.access = open_access(client, self.request.id, content_format=self._content_format)
        self.state = "ready"
        return self.access

    def _follow(self, request: AccessRequest) -> None:
        self.request = request
        self.access = None
        self.state = request.status

    def _at(self, step: str) -> Client:
        """The client, if this step may be taken now."""
        if self.client is None or self.state not in _STEPS[step]:
            raise ConfigError(f"{step}() is out of turn: the sign-in is {self.state}; next is {self.due}")
        return self.client
