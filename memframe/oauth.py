"""OAuth 2.0 authorization: address, PKCE, pasted or loopback callback (RFC 8252, section 7.3), code exchange.

An attempt is one call of `OAuthFlow.authorization_url`: it makes a fresh ``state`` and a fresh PKCE verifier. Only the
newest attempt can be finished, once. To finish by hand, paste the whole redirected address, because its state proves
that it belongs to this attempt; a bare code is accepted too, and is protected by PKCE alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import re
import secrets
import socket
import time
import webbrowser
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from os import PathLike
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from memframe import wire
from memframe.address import DEFAULT_PORTS, check_redirect_uri
from memframe.client.connections import TimedBytes
from memframe.client.responses import Response, decode, read_error_texts, to_service_error
from memframe.client.transport import FORM_BODY, Transport
from memframe.display import printable
from memframe.errors import AuthError, ConfigError, Hint, MemframeError, OAuthError
from memframe.secret import Secret, SecretBytes, as_secret, as_secret_if_text, hide_frames
from memframe.settings import find_oauth_settings
from memframe.wire import OAuthTokens

Origin = tuple[str, str | None, int | None]


class Attempt(NamedTuple):
    """State of one attempt, kept from the authorization URL to the callback."""

    state: str
    verifier: Secret | None
    redirect_uri: str
    issuers: frozenset[Origin]
    """Scheme, host and port of the servers that were asked."""


_CODE = re.compile(r"[\x21-\x7e]{1,4096}")
"""Pattern of a code. RFC 6749 allows spaces, too, but then a pasted sentence could pass for a code."""

_ADDRESS = re.compile(r"://|^[?/]|\b(code|state|error)=")


def origin_of(url: str) -> Origin:
    """Return scheme, host and port, normalized.

    >>> origin_of("https://Auth.example:443/tenant") == origin_of("https://auth.example")
    True
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)


def code_in(pasted: Secret, attempt: Attempt | None) -> Secret:
    """Read the code of a redirected address and check that it belongs to the attempt; return a bare code unchanged.

    Raises
    ------
    OAuthError
        The user denied access, or the address does not belong to this attempt.
    """
    if not pasted.reveal().strip():
        raise OAuthError("nothing was pasted: paste the redirected address, or its code", code="code_missing")
    if not _ADDRESS.search(pasted.reveal().strip()):
        return _check_code(Secret(pasted.reveal().strip()))
    codes, fields = _parse(pasted)
    if not (codes or fields.keys() & {"state", "error", "response_type"}):
        raise OAuthError(
            "the pasted address is of another page and has no code in it: copy the address of the page that you were "
            "sent to after you allowed access",
            code="code_missing",
        )
    if "response_type" in fields and not codes and "error" not in fields:
        raise OAuthError(
            "the pasted address is the link itself: open it, and paste the address of the page that you are sent "
            "to after you allowed access",
            code="link_pasted",
        )
    errors, states = fields.get("error"), fields.get("state", [])
    if errors and not codes and not states:  # some servers leave the state out of a refusal
        raise _refusal_error(printable(errors[0]), printable("".join(fields.get("error_description", []))))
    is_ours = attempt and len(states) == 1 and hmac.compare_digest(states[0].encode(), attempt.state.encode())
    if attempt is None or not is_ours:
        raise OAuthError(
            "the pasted address belongs to another attempt (its state is missing or differs, or that attempt is used "
            "up); open the newest link again, and paste the whole address",
            code="state_mismatch",
        )
    if not all(_is_of(issuer, attempt.issuers) for issuer in fields.get("iss", [])):  # RFC 9207
        raise OAuthError(
            "the pasted address comes from a different OAuth server; open the link again, and check auth_url",
            code="issuer_mismatch",
        )
    if errors:
        raise _refusal_error(printable(errors[0]), printable("".join(fields.get("error_description", []))))
    if len(codes) != 1:
        raise OAuthError(
            "the pasted address has no code in it: copy the address of the page that you were sent to after "
            "you allowed access, as a whole",
            code="code_missing",
        )
    return codes[0]


def _check_code(pasted: Secret) -> Secret:
    """Return a bare code; refuse a text that cannot be one."""
    if not _CODE.fullmatch(pasted.reveal()):
        raise OAuthError(
            "what was pasted is neither an address nor a code: copy the address of the page that you were sent to "
            "after you allowed access, as a whole",
            code="not_an_answer",
        )
    return pasted


def _parse(pasted: Secret) -> tuple[list[Secret], dict[str, list[str]]]:
    """Split a redirected address into codes and other fields; never raise, as the code is in the open here."""
    # mail programs and terminals quote and wrap an address
    text = re.sub(r"\s*[\r\n]\s*", "", pasted.reveal().strip()).strip("\"'<>")
    _, mark, query = text.partition("?")
    fields = parse_qs((query if mark else text).partition("#")[0])
    return [Secret(code) for code in fields.pop("code", [])], fields


def _is_of(issuer: str, known: frozenset[Origin]) -> bool:
    try:
        return origin_of(issuer) in known
    except ValueError:  # a broken host or port
        return False


_REFUSALS = {
    "access_denied": "the user did not allow access. Nothing was shared. To try again, open the link again",
    "invalid_grant": "this code was already used, has expired, was issued for another address, or is not a code; open "
    "the link again",
    "temporarily_unavailable": "the OAuth server is busy; open the link again in a minute",
}


def _refusal_of(response: Response, *, what: str, printable: Callable[[str], str]) -> MemframeError:
    """Make the error for a 4xx response of the token endpoint (RFC 6749, section 5.2)."""
    texts = read_error_texts(response.body.reveal())
    error = texts.get("error")
    if response.status == 401 or error in {"invalid_client", "unauthorized_client"}:
        return AuthError(
            f"{what}: {response.host} does not know this client: check client_id and client_secret, "
            "and that they belong to this auth_url",
            status=response.status,
            code=printable(error or "invalid_client"),
            endpoint=what,
        )
    if error is None or response.status == 429:
        return to_service_error(response, what=what, printable=printable)
    return _refusal_error(printable(error), printable(texts.get("error_description", "")))


def _refusal_error(error: str, description: str) -> OAuthError:
    if error in _REFUSALS:
        return OAuthError(f"{_REFUSALS[error]} ({error})", code=error)
    reason = description.rstrip(" .") or "no reason given"
    return OAuthError(
        f"the OAuth server answered {error!r}: {reason}. Open the link again; if this persists, check client_id, "
        "redirect_uri and auth_url",
        code=error,
    )


_PAGE = (
    b"<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
    b"<title>memframe</title><body style='font:1.1rem system-ui;max-width:30rem;margin:20vh auto;padding:0 1rem'>"
    b"<h1 style='font-size:1.3rem'>Thank you.</h1><p>You can close this page. The application can read"
    b" your memories only after you approve its request on your dashboard."
)

_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Length": str(len(_PAGE)),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}


SIGNS_OF_ELSEWHERE = (
    "BINDER_SERVICE_HOST",
    "CODESPACES",
    "COLAB_RELEASE_TAG",
    "DATABRICKS_RUNTIME_VERSION",
    "JUPYTERHUB_API_URL",
    "KAGGLE_KERNEL_RUN_TYPE",
    "KUBERNETES_SERVICE_HOST",
    "SSH_CONNECTION",
)
"""Environment variables of machines on which no browser runs."""

POLL_S = 0.2
"""Seconds between two checks whether a listener's answer is still wanted."""


class RedirectListener(HTTPServer):
    """HTTP server that accepts the first GET of one path with one state; everything else is 404.

    If the address has no port it takes a free one, which OAuth servers must accept (RFC 8252, section 7.3). A request
    without the state, for instance from a page that guesses the path, neither answers nor ends the attempt.
    """

    def __init__(self, redirect_uri: str, timeout_s: float) -> None:
        parts = urlsplit(redirect_uri)
        self._path = parts.path or "/"
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._state = ""
        self.answered: str | None = None
        try:
            super().__init__(("127.0.0.1", parts.port or 0), _Handler)
        except OSError as taken:
            raise ConfigError(
                f"cannot listen on port {parts.port} of redirect_uri ({taken.strerror}): close the program that "
                "holds it, or register http://127.0.0.1/... without a port, which lets memframe take a free one"
            ) from None
        self.redirect_uri = urlunsplit(parts._replace(netloc=f"{parts.hostname}:{self.server_port}"))

    def accepts(self, target: str) -> bool:
        """Return True if a request is the first callback of this attempt."""
        parts = urlsplit(target)
        is_ours = parse_qs(parts.query).get("state") == [self._state]
        return self.answered is None and parts.path == self._path and is_ours

    def wait(self, state: str, *, is_wanted: Callable[[], bool] = lambda: True) -> str:
        """Serve until the callback of an attempt arrives, and return its redirected address.

        Raises
        ------
        OAuthError
            No callback arrived in time, or ``is_wanted``, which is called every `POLL_S`, returned False.
        """
        self._state = state
        while self.answered is None:
            left_s = self._deadline - time.monotonic()
            self.timeout = min(left_s, POLL_S)
            if left_s <= 0 or not is_wanted():
                raise OAuthError(
                    f"no answer within {self._timeout_s:g} s",
                    code="no_answer",
                    hint=Hint(
                        "open the address and decide, or raise timeout_s", "try again, and open the address"
                    ),
                )
            self.handle_request()
        return self.answered


CALLBACK_TIMEOUT_S = 5.0
"""Longest time to read the request of one client, because the person's browser waits meanwhile."""


class _Handler(BaseHTTPRequestHandler):
    server: RedirectListener

    def setup(self) -> None:
        super().setup()
        due_at = time.monotonic() + CALLBACK_TIMEOUT_S
        self.rfile = io.BufferedReader(TimedBytes(self.rfile.detach(), self.connection, due_at))

    def do_GET(self) -> None:
        if not self.server.accepts(self.path):
            self.send_error(404)
            return
        self.server.answered = self.path
        self.send_response(200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is BaseHTTPRequestHandler's
        """Log nothing: the request line holds the code."""


def can_listen(redirect_uri: str, environ: Mapping[str, str]) -> bool:
    """Guess from the environment whether a browser can reach a listener on this machine.

    A listener that no browser reaches does no harm: the answer can still be pasted.

    >>> can_listen("http://127.0.0.1/callback", {}), can_listen("http://127.0.0.1/", {"CODESPACES": "true"})
    (True, False)
    """
    is_elsewhere = any(name in environ for name in SIGNS_OF_ELSEWHERE)
    return _is_of_this_machine(redirect_uri) and not is_elsewhere


def is_port_free(redirect_uri: str) -> bool:
    """Return True if the port of a redirect address is free; without a port a listener takes any.

    >>> is_port_free("http://127.0.0.1/callback")
    True
    """
    try:
        with socket.create_server(("127.0.0.1", urlsplit(redirect_uri).port or 0)):
            return True
    except (OSError, ValueError):
        return False


def _is_of_this_machine(redirect_uri: str) -> bool:
    parts = urlsplit(redirect_uri)
    return parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost"}


class OAuthFlow:
    """The OAuth 2.0 authorization-code flow of one developer application.

    Parameters
    ----------
    client_id : str, optional
        Read by default from ``MEMFRAME_CLIENT_ID``, the keyring or the config file, as are the other settings.
    client_secret : str or Secret, optional
    auth_url : str, optional
        Address of the OAuth server: codes are exchanged at ``{auth_url}/oauth/token``.
    redirect_uri : str, optional
        Address to which the user is redirected, exactly as registered.
    authorize_url : str, optional
        The page that asks the user; ``{auth_url}/oauth/authorize`` by default.
    pkce : bool
        Send a PKCE S256 challenge (RFC 7636). Disable it only if the server refuses it.
    ca_bundle : str or Path, optional
        As in `connect`.
    transport : Transport, optional
        Sends the requests; a new one with ``ca_bundle`` by default.

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
        client_secret = as_secret_if_text(client_secret)
        settings = find_oauth_settings(client_id, client_secret, auth_url=auth_url, redirect_uri=redirect_uri)
        self.client_id = settings.client_id
        self.auth_url = settings.auth_url
        if settings.redirect_uri is None:
            registered = "set MEMFRAME_REDIRECT_URI to the address that is registered for this client_id"
            raise ConfigError(
                "redirect_uri is missing", hint=Hint(f"pass redirect_uri=..., or {registered}", registered)
            )
        self.redirect_uri = settings.redirect_uri
        self.authorize_url = (
            settings.auth_url + wire.OAUTH_AUTHORIZE
            if authorize_url is None
            else check_redirect_uri("authorize_url", authorize_url)
        )
        self.pkce = pkce
        self._client_secret = settings.client_secret
        self._transport = transport or Transport(ca_bundle=ca_bundle)
        if settings.client_secret:
            self._transport.mask(settings.client_secret)
        self._attempt: Attempt | None = None

    def __repr__(self) -> str:
        return f"<memframe.OAuthFlow {self.client_id} at {self.auth_url}>"

    @property
    def is_open(self) -> bool:
        """True while an attempt waits for its callback; one exchange ends it."""
        return self._attempt is not None

    def authorization_url(self, state: str | None = None) -> str:
        """Begin an attempt and return the address to open in the user's browser.

        Parameters
        ----------
        state : str, optional
            Your own value, which comes back unchanged; it needs at least 128 random bits to protect the
            attempt.
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
            The whole address to which the browser was redirected, or its code.

        Raises
        ------
        OAuthError
            The user denied access, the address belongs to another attempt, or the code was used or has expired.
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
        self._transport.mask(code, attempt and attempt.verifier)
        url = self.auth_url + wire.OAUTH_TOKEN
        response = self._transport.send("POST", url, data=_encode_form(form), headers=FORM_BODY)
        self._attempt = None  # used up, whatever the response, because a code works once
        what = f"POST {wire.OAUTH_TOKEN}"
        if 400 <= response.status < 500:
            raise _refusal_of(response, what=what, printable=self._transport.printable)
        tokens = decode(self._transport.require_success(response, what), OAuthTokens, what=what)
        self._transport.mask(tokens.memory_key, tokens.access_token, tokens.refresh_token)
        return tokens

    def run_local(
        self,
        open_browser: bool = False,
        timeout_s: float = 300,
        *,
        show: Callable[[str], object] | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> OAuthTokens:
        """Run the whole flow with a listener on this machine (RFC 8252): print the address, wait, exchange.

        For a browser on the same machine as Python; on a hub or over SSH, pass the address to `exchange`
        instead. Listens on 127.0.0.1 only, for one answer.

        Parameters
        ----------
        open_browser : bool
            Also open the address in the browser.
        timeout_s : float
            Seconds to wait for the user.
        show : callable, optional
            Called with the address instead of printing it.
        is_wanted : callable
            Called regularly; if it returns False, the wait ends as with a timeout.

        Raises
        ------
        ConfigError
            ``redirect_uri`` is not an address of this machine, or its port is taken.
        OAuthError
            No answer arrived in time, or an error of `exchange`.
        """
        if not _is_of_this_machine(self.redirect_uri):
            raise ConfigError(
                f"redirect_uri {self.redirect_uri} is not an http address of this machine, so no listener can receive "
                "its answer: use http://127.0.0.1/callback",
                hint=Hint(
                    "or paste the redirected address into exchange()",
                    "or leave out --local and paste the redirected address",
                ),
            )
        with RedirectListener(self.redirect_uri, timeout_s) as listener:
            state = secrets.token_urlsafe(24)
            address = self._begin(listener.redirect_uri, state)
            if show is None:
                print(f"Open this address to allow access:\n{address}", flush=True)  # noqa: T201 - a person must read it
            else:
                show(address)
            if open_browser:
                webbrowser.open(address)
            return self.exchange(listener.wait(state, is_wanted=is_wanted))


@hide_frames
def _encode_form(form: Mapping[str, str | Secret | None]) -> SecretBytes:
    """Encode a form, secrets in the open, without the fields that are None."""
    texts = {name: as_secret(value).reveal() for name, value in form.items() if value is not None}
    return SecretBytes(urlencode(texts).encode("ascii"))


def challenge_of(verifier: Secret) -> str:
    """Compute the S256 challenge of RFC 7636.

    >>> challenge_of(Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    digest = hashlib.sha256(verifier.reveal().encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
