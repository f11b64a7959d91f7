"""The user's authorization: address, PKCE, pasted or loopback answer, code exchange.

An attempt is one call of `OAuthFlow.authorization_url`: it makes a fresh ``state`` and a fresh PKCE
verifier, and only the newest attempt can be finished, once. Where the answer comes back by hand, the
whole redirected address is the better thing to paste, as its state proves that it belongs to this
attempt; a bare code is accepted too and rests on PKCE.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import webbrowser
from collections.abc import Callable, Mapping
from os import PathLike
from urllib.parse import urlencode

from memframe import wire
from memframe.address import check_redirect_uri
from memframe.answers import Answer, decoded
from memframe.errors import ConfigError
from memframe.loopback import await_redirect
from memframe.redirected import Attempt, code_in, origin_of, refusal_of
from memframe.secret import Secret, SecretBytes, as_secret, closed, hide_frames
from memframe.settings import find_oauth_settings
from memframe.transport import FORM_BODY, Transport
from memframe.wire import OAuthTokens


class OAuthFlow:
    """The OAuth 2.0 authorization-code flow of one developer application.

    Parameters
    ----------
    client_id : str, optional
        Else ``MEMFRAME_CLIENT_ID``, the keyring or the config file, as for all below.
    client_secret : str or Secret, optional
    auth_url : str, optional
        Address of the OAuth server: codes are exchanged at ``{auth_url}/oauth/token``.
    redirect_uri : str, optional
        Where the user is sent back to, exactly as registered.
    authorize_url : str, optional
        The page that asks the user; ``{auth_url}/oauth/authorize`` by default.
    pkce : bool
        Whether to send a PKCE S256 challenge (RFC 7636). Leave it on unless the server refuses it.
    ca_bundle : str or path, optional
        As in `connect`.
    transport : Transport, optional
        How requests travel, otherwise.

    Examples
    --------
    >>> flow = OAuthFlow("app", "secret", auth_url="https://auth.example", redirect_uri="https://app.example/cb")
    >>> flow.authorization_url(state="s1").split("&")[0]
    'https://auth.example/oauth/authorize?response_type=code'
    """

    def __init__(
        self,
        client_id: str | None = None,
        client_secret: str | Secret | None = None,
        *,
        auth_url: str | None = None,
        redirect_uri: str | None = None,
        authorize_url: str | None = None,
        pkce: bool = True,
        ca_bundle: str | PathLike[str] | None = None,
        transport: Transport | None = None,
    ) -> None:
        client_secret = closed(client_secret)
        settings = find_oauth_settings(client_id, client_secret, auth_url=auth_url, redirect_uri=redirect_uri)
        self.client_id = settings.client_id
        self.auth_url = settings.auth_url
        self.redirect_uri = _required(settings.redirect_uri)
        self.authorize_url = (
            settings.auth_url + wire.OAUTH_AUTHORIZE
            if authorize_url is None
            else check_redirect_uri("authorize_url", authorize_url)
        )
        self.pkce = pkce
        self._client_secret = settings.client_secret
        self._transport = transport or Transport(ca_bundle=ca_bundle)
        if settings.client_secret:
            self._transport.keep_out(settings.client_secret)
        self._attempt: Attempt | None = None

    def __repr__(self) -> str:
        return f"<memframe.OAuthFlow {self.client_id} at {self.auth_url}>"

    @property
    def is_open(self) -> bool:
        """Whether an attempt waits for its answer; each is used up by one exchange."""
        return self._attempt is not None

    def authorization_url(self, state: str | None = None) -> str:
        """Begin an attempt: the address to open in the user's browser.

        Parameters
        ----------
        state : str, optional
            A value of your own that comes back unchanged; at least 128 random bits if it is to protect.
        """
        return self._begin(self.redirect_uri, state)

    def _begin(self, redirect_uri: str, state: str | None = None) -> str:
        verifier = Secret(secrets.token_urlsafe(48)) if self.pkce else None
        issuers = frozenset({origin_of(self.authorize_url), origin_of(self.auth_url)})
        self._attempt = Attempt(state or secrets.token_urlsafe(24), verifier, redirect_uri, issuers)
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "state": self._attempt.state,
        }
        if verifier is not None:
            query |= {"code_challenge": challenge_of(verifier), "code_challenge_method": "S256"}
        return f"{self.authorize_url}{'&' if '?' in self.authorize_url else '?'}{urlencode(query)}"

    def exchange(self, code_or_redirected_url: str | Secret) -> OAuthTokens:
        """Finish the attempt: exchange the code for the user's tokens and memory key.

        Parameters
        ----------
        code_or_redirected_url : str or Secret
            The code, or the whole address that the browser was sent back to.

        Raises
        ------
        OAuthError
            The user denied, the address belongs to another attempt, or the code is used or expired.
        AuthError, InvalidError
            The OAuth server refuses the client.
        """
        code_or_redirected_url = as_secret(code_or_redirected_url)
        attempt = self._attempt
        code = code_in(code_or_redirected_url, attempt)
        form: dict[str, str | Secret | None] = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": attempt.redirect_uri if attempt else self.redirect_uri,
            "client_secret": self._client_secret,
            "code_verifier": attempt and attempt.verifier,
        }
        self._transport.keep_out(code, attempt and attempt.verifier)
        url = self.auth_url + wire.OAUTH_TOKEN
        answer = self._transport.exchange("POST", url, data=_encoded(form), headers=FORM_BODY)
        self._attempt = None  # used up, whatever the answer: a code works once
        return self._tokens(answer)

    def _tokens(self, answer: Answer) -> OAuthTokens:
        what = f"POST {wire.OAUTH_TOKEN}"
        if 400 <= answer.status < 500:
            raise refusal_of(answer, what=what, said=self._transport.scrubbed)
        tokens = decoded(self._transport.checked(answer, what), OAuthTokens, what=what)
        self._transport.keep_out(tokens.memory_key, tokens.access_token, tokens.refresh_token)
        return tokens

    def run_local(
        self,
        open_browser: bool = False,
        timeout_s: float = 300,
        *,
        show: Callable[[str], object] | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> OAuthTokens:
        """The whole flow with a listener on this machine (RFC 8252): print the address, wait, exchange.

        For a browser on the same machine as Python; on a hub or over SSH paste the address into
        `exchange` instead. Listens on 127.0.0.1 only, for one answer.

        Parameters
        ----------
        open_browser : bool
            Whether to open the address as well as to print it.
        timeout_s : float
            How long to wait for the user, in seconds.
        show : callable, optional
            Gets the address in place of standard output.
        is_wanted : callable
            Asked now and then; after False it gives up, as it does when the time is over.

        Raises
        ------
        ConfigError
            ``redirect_uri`` is not an address of this machine, or its port is taken.
        OAuthError
            Nobody answered in time, and what `exchange` raises.
        """
        with await_redirect(self.redirect_uri, timeout_s) as listener:
            state = secrets.token_urlsafe(24)
            address = self._begin(listener.redirect_uri, state)
            (show or _print_address)(address)
            if open_browser:
                webbrowser.open(address)
            return self.exchange(listener.wait(state, is_wanted=is_wanted))


def _print_address(address: str) -> None:
    print(f"Open this address to allow access:\n{address}", flush=True)  # noqa: T201 - a person must read it


def _required(redirect_uri: str | None) -> str:
    if redirect_uri is None:
        raise ConfigError(
            "redirect_uri is missing: pass the address that is registered for this client_id, or set "
            "MEMFRAME_REDIRECT_URI"
        )
    return redirect_uri


@hide_frames
def _encoded(form: Mapping[str, str | Secret | None]) -> SecretBytes:
    """A form as it is sent, secrets in the open, without the fields that are None."""
    texts = {name: as_secret(value).reveal() for name, value in form.items() if value is not None}
    return SecretBytes(urlencode(texts).encode("ascii"))


def challenge_of(verifier: Secret) -> str:
    """The S256 challenge of RFC 7636.

    >>> challenge_of(Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    digest = hashlib.sha256(verifier.reveal().encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
