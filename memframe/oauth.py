"""The user's authorization: address, PKCE, pasted or loopback answer, code exchange.

An attempt is one call of `OAuthFlow.authorization_url`: it makes a fresh ``state`` and a fresh PKCE
verifier, and only the newest attempt can be finished, once. Where the answer comes back by hand, the
whole redirected address is the better thing to paste, as its state proves that it belongs to this
attempt; a bare code is accepted too and rests on PKCE.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import webbrowser
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from memframe import wire
from memframe.answers import Answer, decoded, printable
from memframe.errors import AuthError, ConfigError, OAuthError
from memframe.loopback import await_redirect
from memframe.secret import Secret
from memframe.settings import find_oauth_settings
from memframe.transport import Transport
from memframe.wire import OAuthTokens


class Attempt(NamedTuple):
    """What must be remembered between sending the user away and the answer."""

    state: str
    verifier: Secret | None
    redirect_uri: str
    issuer: tuple[str, str]
    """Scheme and host of the server that was asked."""


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
    transport : Transport, optional
        How requests travel.

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
        transport: Transport | None = None,
    ) -> None:
        settings = find_oauth_settings(client_id, client_secret, auth_url=auth_url, redirect_uri=redirect_uri)
        self.client_id = settings.client_id
        self.auth_url = settings.auth_url
        self.redirect_uri = _required(settings.redirect_uri)
        self.authorize_url = authorize_url or settings.auth_url + wire.OAUTH_AUTHORIZE
        self.pkce = pkce
        self._client_secret = settings.client_secret
        self._transport = transport or Transport()
        if settings.client_secret:
            self._transport.keep_out(settings.client_secret)
        self._attempt: Attempt | None = None

    def __repr__(self) -> str:
        return f"<memframe.OAuthFlow {self.client_id} at {self.auth_url}>"

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
        issuer = urlsplit(self.authorize_url)[:2]
        self._attempt = Attempt(state or secrets.token_urlsafe(24), verifier, redirect_uri, issuer)
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "state": self._attempt.state,
        }
        if verifier is not None:
            query |= {"code_challenge": challenge_of(verifier), "code_challenge_method": "S256"}
        return f"{self.authorize_url}{'&' if '?' in self.authorize_url else '?'}{urlencode(query)}"

    def exchange(self, code_or_redirected_url: str) -> OAuthTokens:
        """Finish the attempt: exchange the code for the user's tokens and memory key.

        Parameters
        ----------
        code_or_redirected_url : str
            The code, or the whole address that the browser was sent back to.

        Raises
        ------
        OAuthError
            The user denied, the address belongs to another attempt, or the code is used or expired.
        AuthError, InvalidError
            The OAuth server refuses the client.
        """
        attempt = self._attempt
        code = _code_in(code_or_redirected_url.strip(), attempt)
        form = {
            "grant_type": "authorization_code",
            "code": code.reveal(),
            "client_id": self.client_id,
            "redirect_uri": attempt.redirect_uri if attempt else self.redirect_uri,
        }
        if self._client_secret:
            form["client_secret"] = self._client_secret.reveal()
        if attempt and attempt.verifier:
            form["code_verifier"] = attempt.verifier.reveal()
        self._transport.keep_out(code)
        answer = self._transport.exchange("POST", self.auth_url + wire.OAUTH_TOKEN, data=form)
        self._attempt = None  # used up, whatever the answer: a code works once
        return self._tokens(answer)

    def _tokens(self, answer: Answer) -> OAuthTokens:
        what = f"POST {wire.OAUTH_TOKEN}"
        if answer.status == 401:
            raise AuthError(
                f"{what}: {answer.host} does not know this client: check client_id and client_secret, "
                "and that they belong to this auth_url",
                status=401,
                code="invalid_client",
                endpoint=what,
            )
        if answer.status == 400 and (refusal := _refusal_of(answer, self._transport)):
            raise refusal
        tokens = decoded(self._transport.checked(answer, what), OAuthTokens, what=what)
        self._transport.keep_out(tokens.memory_key, tokens.access_token)
        return tokens

    def run_local(self, open_browser: bool = False, timeout_s: float = 300) -> OAuthTokens:
        """The whole flow with a listener on this machine (RFC 8252): print the address, wait, exchange.

        For a browser on the same machine as Python; on a hub or over SSH paste the address into
        `exchange` instead. Listens on 127.0.0.1 only, for one answer.

        Parameters
        ----------
        open_browser : bool
            Whether to open the address as well as to print it.
        timeout_s : float
            How long to wait for the user, in seconds.

        Raises
        ------
        ConfigError
            ``redirect_uri`` is not an address of this machine, or its port is taken.
        OAuthError
            Nobody answered in time, and what `exchange` raises.
        """
        with await_redirect(self.redirect_uri, timeout_s) as listener:
            address = self._begin(listener.redirect_uri)
            print(f"Open this address to allow access:\n{address}")  # noqa: T201 - the one thing a person must read
            if open_browser:
                webbrowser.open(address)
            return self.exchange(listener.wait())


def _required(redirect_uri: str | None) -> str:
    if redirect_uri is None:
        raise ConfigError(
            "redirect_uri is missing: pass the address that is registered for this client_id, or set "
            "MEMFRAME_REDIRECT_URI"
        )
    return redirect_uri


def challenge_of(verifier: Secret) -> str:
    """The S256 challenge of RFC 7636.

    >>> challenge_of(Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    digest = hashlib.sha256(verifier.reveal().encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


_ADDRESS = re.compile(r"://|^[?/]|\b(code|state|error)=")


def _code_in(pasted: str, attempt: Attempt | None) -> Secret:
    if not pasted:
        raise OAuthError("nothing was pasted: paste the redirected address, or its code", code="code_missing")
    if not _ADDRESS.search(pasted):
        return Secret(pasted)
    answer = parse_qs(urlsplit(pasted).query or pasted.lstrip("?"))
    _check_state(answer.get("state", []), attempt)
    _check_issuer(answer.get("iss", []), attempt)
    if "error" in answer:
        raise _refused(printable(answer["error"][0]), printable(answer.get("error_description", [""])[0]))
    codes = answer.get("code", [])
    if len(codes) != 1:
        raise OAuthError(
            "the pasted address has no code in it: copy the address of the page that you were sent to after "
            "you allowed access, as a whole",
            code="code_missing",
        )
    return Secret(codes[0])


def _check_state(states: list[str], attempt: Attempt | None) -> None:
    if len(states) != 1:
        raise OAuthError(
            "the pasted address has no state, so it may be the answer to someone else's attempt; "
            "open the link again and paste the whole address",
            code="state_missing",
        )
    if attempt is None or not hmac.compare_digest(states[0].encode(), attempt.state.encode()):
        raise OAuthError(
            "the pasted address belongs to another attempt (its state differs, or that attempt is used up); "
            "open the newest link again",
            code="state_mismatch",
        )


def _check_issuer(issuers: list[str], attempt: Attempt | None) -> None:
    """RFC 9207: an answer that names its server must name the one that was asked."""
    if attempt and issuers and urlsplit(issuers[0])[:2] != attempt.issuer:
        raise OAuthError(
            "the pasted address comes from another OAuth server than the one that was asked; "
            "open the link again, and check auth_url",
            code="issuer_mismatch",
        )


class _Refusal(msgspec.Struct):
    """The error body of a token endpoint (RFC 6749, section 5.2)."""

    error: str
    error_description: str = ""


_REFUSALS = {
    "access_denied": "the user chose not to allow access; nothing was shared",
    "invalid_grant": "this code was already used, has expired or was made for another address; open the link again",
    "temporarily_unavailable": "the OAuth server is busy; open the link again in a minute",
}


def _refused(error: str, description: str) -> OAuthError:
    text = _REFUSALS.get(error) or f"the OAuth server answered {error!r}: {description or 'no reason given'}"
    return OAuthError(f"{text} ({error})" if error in _REFUSALS else text, code=error)


def _refusal_of(answer: Answer, transport: Transport) -> OAuthError | None:
    """The OAuth error of an answer, or None where the body is something else."""
    try:
        refusal = msgspec.json.decode(answer.body, type=_Refusal)
    except msgspec.DecodeError:
        return None
    if refusal.error == "invalid_client":
        return None
    return _refused(transport.scrubbed(refusal.error), transport.scrubbed(refusal.error_description))
