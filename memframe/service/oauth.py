"""The OAuth 2.0 authorization server, on oauthlib: the code grant without its web pages.

In addition to RFC 6749: redirect addresses match exactly, except for the port of a loopback address (RFC 9700, RFC 8252
section 7.3); PKCE is S256 or absent (RFC 7636); answers name the issuer (RFC 9207); codes live 60 seconds and work
once; each use of a refresh token replaces it (RFC 9700 section 4.14.2). Using a code or refresh token twice revokes
everything that was issued for the same consent. Scopes are ignored: the user decides in the dashboard what an
application may read. A client authenticates by the form or by HTTP Basic.
"""

from __future__ import annotations

import base64
import logging
import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

import msgspec
from litestar.datastructures import Headers
from oauthlib.common import Request
from oauthlib.oauth2 import (
    AccessDeniedError,
    AuthorizationCodeGrant,
    AuthorizationEndpoint,
    BearerToken,
    FatalClientError,
    InvalidClientError,
    InvalidGrantError,
    InvalidRequestError,
    OAuth2Error,
    RefreshTokenGrant,
    RequestValidator,
    TokenEndpoint,
    UnsupportedResponseTypeError,
)

from memframe.errors import InvalidError
from memframe.secret import Secret
from memframe.service.deployment import Deployment
from memframe.service.logs import log_event
from memframe.service.store.accounts import AuthorizationCode, Developer, User, UserToken
from memframe.service.throttle import TooManyCallsError
from memframe.service.tokens import is_secret_of, new_secret, secret_hash
from memframe.wire import OAUTH_AUTHORIZE, OAUTH_TOKEN

CODE_LIFETIME = timedelta(seconds=60)
ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)
CONSENT_LIFETIME = timedelta(days=180)
"""Time after which tokens are no longer refreshed: the application must ask for consent again."""

MAX_CLIENT_ID_CHARS = 64
FORM_TYPE = "application/x-www-form-urlencoded"

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)
_NO_SECRET_HASH = secret_hash(Secret(""))
"""Hash that an unknown client's secret is compared with, so that it takes as long as for a known client."""

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

_REASONS = {
    "invalid_client": "The client_id or the client_secret is wrong.",
    "invalid_grant": (
        "The code or refresh token is unknown, expired or used already, or it was given to another client, "
        "for another redirect_uri, or with another code_challenge."
    ),
    "unsupported_grant_type": "The grant_type must be authorization_code or refresh_token.",
}
"""Descriptions of errors that oauthlib leaves empty."""

_STATUSES = {"invalid_client": 401, "too_many_requests": 429}

logging.getLogger("oauthlib").setLevel(logging.INFO)  # it writes codes and tokens at the level DEBUG


class InvalidClientLink(Exception):  # noqa: N818 - a page for the user, not an error of the program
    """The client is unknown, or the redirect address is not its own: answer with a page, redirect nowhere."""


class RedirectInstead(Exception):  # noqa: N818 - control flow, not an error of the program
    """Redirect to ``address``: that of the client, with an error, or that of a page that must come first."""

    def __init__(self, address: str) -> None:
        super().__init__("the request is answered at another address")
        self.address = address


class ConsentRequest(NamedTuple):
    client: Developer
    redirect_uri: str


class TokenAnswer(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str] = {}  # noqa: RUF012 - of a tuple, which nobody changes


def _always(value: object) -> Callable[..., Any]:
    """Make a callback that always returns a value."""
    return lambda *_: value


class AuthorizationServer(RequestValidator):  # type: ignore[misc]  # oauthlib has no types
    """Check authorization requests, record consents, exchange codes and refresh tokens.

    `issuer` is the public address of the authorization server. The callbacks of oauthlib read the database; they store
    the code or refresh token that a request redeems as ``request.redeems``.
    """

    def __init__(self, deployment: Deployment, *, issuer: str) -> None:
        super().__init__()
        self._deployment = deployment
        self._accounts = deployment.store.accounts
        self._authorizations = deployment.store.authorizations
        self._now = deployment.now
        self.issuer = issuer
        code_grant = _CodeGrant(self, issuer=issuer, pre_auth=[_check_strictly])
        refresh_grant = RefreshTokenGrant(self)
        for grant in (code_grant, refresh_grant):
            grant.register_token_modifier(self._finish_tokens)
        bearer = BearerToken(
            self,
            token_generator=lambda _: new_secret("mfa_").reveal(),
            refresh_token_generator=lambda _: new_secret("mfr_").reveal(),
            expires_in=int(ACCESS_LIFETIME.total_seconds()),
        )
        self._authorizing = AuthorizationEndpoint("code", bearer, {"code": code_grant})
        grants = {"authorization_code": code_grant, "refresh_token": refresh_grant}
        self._exchanging = TokenEndpoint("authorization_code", bearer, grants)

    def check_request(self, query: bytes) -> ConsentRequest:
        """Check an authorization request; `InvalidClientLink` or `RedirectInstead` where it is refused."""
        _, details = self._run(self._authorizing.validate_authorization_request, query)
        return ConsentRequest(details["request"].client, details["redirect_uri"])

    def allow(self, query: bytes, user: User) -> str:
        headers, _, _ = self._run(
            self._authorizing.create_authorization_response, query, credentials={"user": user}
        )
        return str(headers["Location"])

    def deny(self, query: bytes, user: User) -> str:
        """Return the redirect address with the user's refusal."""
        _, details = self._run(self._authorizing.validate_authorization_request, query)
        log_event("consent refused", developer_id=details["request"].client.id, user_id=user.id)
        return self._refusal(AccessDeniedError("The user did not allow it.", request=details["request"]))

    def exchange(self, form: bytes, headers: Headers, *, address: str) -> TokenAnswer:
        """Answer a call of the token endpoint, given its form, its headers and the network address."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
            return _refuse("invalid_request", f"The body must be {FORM_TYPE}.")
        try:
            fields = read_form(form)
            _add_basic_credentials(fields, headers.get("authorization"))
            self._deployment.count_token_call(address, fields.get("client_id", "")[:MAX_CLIENT_ID_CHARS])
            if "grant_type" not in fields:
                return _refuse("invalid_request", "The field grant_type is missing.")
            _, body, status = self._exchanging.create_token_response(OAUTH_TOKEN, body=urlencode(fields))
        except InvalidError as error:
            return _refuse("invalid_request", str(error))
        except TooManyCallsError as refused:
            words = f"Too many calls; try again in {refused.retry_after_s} s."
            return _refuse("too_many_requests", words, {"Retry-After": str(refused.retry_after_s)})
        except OAuth2Error as error:
            return _refuse(error.error, error.description)
        if status == HTTPStatus.OK:
            return TokenAnswer(status, body.encode())
        refusal = msgspec.json.decode(body)
        return _refuse(refusal["error"], refusal.get("error_description", ""))

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": self.issuer + OAUTH_AUTHORIZE,
            "token_endpoint": self.issuer + OAUTH_TOKEN,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _run(self, endpoint: Any, query: bytes, **arguments: Any) -> Any:
        try:
            return endpoint(f"{OAUTH_AUTHORIZE}?{urlencode(read_form(query))}", **arguments)
        except InvalidError as error:
            raise InvalidClientLink(str(error)) from None
        except FatalClientError as error:
            raise InvalidClientLink(error.description) from None
        except OAuth2Error as error:
            raise RedirectInstead(self._refusal(error)) from None

    def _refusal(self, error: OAuth2Error) -> str:
        return _extend(error.redirect_uri, [*error.twotuples, ("iss", self.issuer)])

    get_default_scopes = get_original_scopes = _always([])
    validate_scopes = is_within_original_scope = _always(True)  # scopes are ignored
    is_pkce_required = _always(False)  # all clients have a secret
    client_authentication_required = _always(True)
    get_code_challenge_method = _always("S256")
    confirm_redirect_uri = _always(True)  # `validate_code` refuses with invalid_grant (RFC 6749 section 5.2)
    invalidate_authorization_code = _always(None)  # `save_token` does it, together with storing the tokens

    # The authorization endpoint

    def validate_client_id(self, client_id: str, request: Request) -> bool:
        client = self._accounts.developer(client_id=client_id)
        request.client = client
        return client is not None and not client.disabled

    def validate_redirect_uri(self, _: str, redirect_uri: str, request: Request) -> bool:
        return any(redirect_matches(registered, redirect_uri) for registered in request.client.redirect_uris)

    def get_default_redirect_uri(self, _: str, request: Request) -> str | None:
        """Return the address of a client that has only one."""
        registered = request.client.redirect_uris
        return registered[0] if len(registered) == 1 else None

    def validate_response_type(self, _: str, response_type: str, *__: Any) -> bool:
        """Issue codes only, never tokens in an address."""
        return response_type == "code"

    def save_authorization_code(self, _: str, code: dict[str, str], request: Request) -> None:
        """Store a code with everything that its exchange must repeat."""
        self._authorizations.add_code(
            code_hash=secret_hash(Secret(code["code"])),
            developer_id=request.client.id,
            user_id=request.user.id,
            redirect_uri=None if request.using_default_redirect_uri else request.redirect_uri,
            code_challenge=request.code_challenge,
            expires_at=self._now() + CODE_LIFETIME,
        )
        log_event("consent given", developer_id=request.client.id, user_id=request.user.id)

    # The token endpoint

    def authenticate_client(self, request: Request) -> bool:
        """Check the client secret."""
        client = self._accounts.developer(client_id=request.client_id or "")
        secret = Secret(request.client_secret or "")
        fits = is_secret_of(secret, client.client_secret_hash if client else _NO_SECRET_HASH)
        if client is None or client.disabled or not fits:
            log_event("client refused", developer_id=client.id if client else None)
            return False
        request.client, request.client_id = client, client.client_id
        return True

    def validate_grant_type(self, _: str, grant_type: str, *__: Any) -> bool:
        """Accept codes and refresh tokens, never passwords."""
        return grant_type in {"authorization_code", "refresh_token"}

    def validate_code(self, _: str, code: str, client: Developer, request: Request) -> bool:
        """Return True if the code may be exchanged; a second use revokes what was issued for it."""
        found = self._authorizations.code(code_hash=secret_hash(Secret(code)))
        if found is None or found.developer_id != client.id:
            return False
        if found.used_at is not None:
            self._revoke(found.id, found)
            return False
        request.redeems, verifier = found, request.code_verifier  # oauthlib itself refuses a missing one
        return (
            found.expires_at > self._now()
            and _repeats_redirect(found, request.redirect_uri, client)
            and (verifier is None or bool(found.code_challenge and _VERIFIER.fullmatch(verifier)))
            and self._is_active(found.user_id)
        )

    def get_code_challenge(self, _: str, request: Request) -> str | None:
        challenge: str | None = request.redeems.code_challenge
        return challenge

    def validate_refresh_token(self, refresh_token: str, client: Developer, request: Request) -> bool:
        """Return True if the token may be exchanged; a second use revokes its whole family."""
        found = self._authorizations.token(secret_hash(Secret(refresh_token)))
        if found is None or (found.kind, found.developer_id) != ("refresh", client.id):
            return False
        if found.revoked_at is not None:
            self._revoke(found.code_id, found)
            return False
        request.redeems = found
        return found.expires_at > self._now() and self._is_active(found.user_id)

    def save_token(self, token: dict[str, str], request: Request) -> None:
        """Redeem a code or refresh token and store its tokens; of two calls at once one succeeds."""
        redeems: AuthorizationCode | UserToken = request.redeems
        code = self._authorizations.code(id=redeems.code_id) if isinstance(redeems, UserToken) else redeems
        if code is None:
            raise InvalidGrantError(request=request)
        issued = tuple(
            UserToken(
                token_hash=secret_hash(Secret(token[f"{kind}_token"])),
                kind=kind,
                code_id=code.id,
                developer_id=code.developer_id,
                user_id=code.user_id,
                expires_at=min(self._now() + lifetime, code.created_at + CONSENT_LIFETIME),
            )
            for kind, lifetime in (("access", ACCESS_LIFETIME), ("refresh", REFRESH_LIFETIME))
        )
        if not self._authorizations.redeem(redeems, issued):
            raise InvalidGrantError(request=request)
        kind = "refresh token" if isinstance(redeems, UserToken) else "code"
        log_event(f"{kind} exchanged", developer_id=code.developer_id, user_id=code.user_id)

    def _finish_tokens(self, token: dict[str, Any], _: BearerToken, request: Request) -> dict[str, Any]:
        pair = {"user_id": request.redeems.user_id, "developer_id": request.redeems.developer_id}
        return {
            "access_token": token["access_token"],
            "token_type": "bearer",
            "expires_in": token["expires_in"],
            "refresh_token": token["refresh_token"],
            "memory_key": self._deployment.memory_key(**pair).reveal(),
        }

    def _revoke(self, code_id: str, replayed: AuthorizationCode | UserToken) -> None:
        self._authorizations.revoke_tokens(code_id)
        log_event("replayed: tokens revoked", developer_id=replayed.developer_id, user_id=replayed.user_id)

    def _is_active(self, user_id: str) -> bool:
        user = self._accounts.user(user_id)
        return user is not None and not user.disabled


class _CodeGrant(AuthorizationCodeGrant):  # type: ignore[misc]  # oauthlib has no types
    """Name the issuer in redirects, and leave the registered address unchanged otherwise."""

    issuer: str

    def create_authorization_code(self, request: Request) -> dict[str, str]:
        code = {"code": new_secret().reveal()}
        return code if request.state is None else code | {"state": request.state}

    def prepare_authorization_response(
        self, request: Request, token: dict[str, str], headers: dict[str, str], body: None, status: int
    ) -> tuple[dict[str, str], None, int]:
        location = _extend(request.redirect_uri, [*token.items(), ("iss", self.issuer)])
        return headers | {"Location": location}, body, status


def _check_strictly(request: Request) -> dict[str, str]:
    """Refuse response types, response modes and challenges that oauthlib would accept."""
    if request.response_type not in (None, "code"):
        raise UnsupportedResponseTypeError(request=request)
    if request.response_mode not in (None, "query"):
        raise InvalidRequestError("Only response_mode=query is supported.", request=request)
    if (request.code_challenge, request.code_challenge_method) == (None, None):
        return {}
    if request.code_challenge_method != "S256":
        raise InvalidRequestError("code_challenge_method must be S256.", request=request)
    if not _CHALLENGE.fullmatch(request.code_challenge or ""):
        raise InvalidRequestError("code_challenge must be 43 characters of base64url.", request=request)
    return {}


def _extend(uri: str, fields: list[tuple[str, str]]) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(fields)}"


def _refuse(code: str, description: str = "", headers: dict[str, str] | None = None) -> TokenAnswer:
    """Make the answer of the token endpoint to a call that is refused."""
    words = re.sub(r"[^ !#-\[\]-~]", "?", description or _REASONS.get(code, "The request is refused."))
    body = {"error": code, "error_description": words}
    if code == "invalid_client":
        headers = {"WWW-Authenticate": 'Basic realm="memframe"'}
    return TokenAnswer(_STATUSES.get(code, 400), msgspec.json.encode(body), headers or {})


def _add_basic_credentials(fields: dict[str, str], authorization: str | None) -> None:
    """Add the client's id and secret of an ``Authorization`` header to the form, which must not hold a secret."""
    if authorization is None or authorization[:6].lower() != "basic ":
        return
    if "client_secret" in fields:
        raise InvalidRequestError("Send the client secret in one place, not in two.")
    try:
        text = base64.b64decode(authorization[6:], validate=True).decode()
    except ValueError:
        raise InvalidClientError("The Basic credentials are malformed.") from None
    client_id, _, client_secret = map(unquote_plus, text.partition(":"))
    if "\0" in client_id:  # PostgreSQL cannot look for it
        raise InvalidClientError("The Basic credentials have the character NUL.")
    if fields.get("client_id", client_id) != client_id:
        raise InvalidClientError("The client_id of the form is not that of the header.")
    fields |= {"client_id": client_id, "client_secret": client_secret}


def _repeats_redirect(code: AuthorizationCode, sent: str | None, client: Developer) -> bool:
    if code.redirect_uri is None:  # the authorization request omitted it, so the exchange may omit it, too
        return sent is None or (sent,) == client.redirect_uris
    return sent == code.redirect_uri


# Redirect addresses

_LOOPBACK = re.compile(
    r"(http://(?:127\.0\.0\.1|\[::1\]))(?::([0-9]{1,5}))?((?:[/?].*)?)", re.ASCII | re.DOTALL
)


def redirect_matches(registered: str, sent: str) -> bool:
    """Return True if a redirect address is the registered one; the port of a loopback address may differ.

    >>> redirect_matches("http://127.0.0.1/callback", "http://127.0.0.1:51004/callback")
    True
    >>> redirect_matches("https://app.example/callback", "https://app.example/callback/")
    False
    """
    if sent == registered:
        return True
    loopback = _without_port(registered)
    return loopback is not None and loopback == _without_port(sent)


def _without_port(uri: str) -> str | None:
    match = _LOOPBACK.fullmatch(uri)
    if match is None or not 0 < int(match[2] or 80) <= 65_535:
        return None
    return match[1] + match[3]


def form_target(uri: str) -> str:
    """Return the origin of a redirect address as a source of a content security policy.

    The policy's grammar has no IPv6 addresses: only the scheme can be named for them.

    >>> form_target("https://app.example:8443/callback?from=memframe")
    'https://app.example:8443'
    >>> form_target("http://[::1]:51004/callback")
    'http:'
    """
    parts = urlsplit(uri)
    return f"{parts.scheme}:" if "[" in parts.netloc else f"{parts.scheme}://{parts.netloc}"


# Queries and forms

MAX_FIELDS = 64


def read_form(encoded: bytes) -> dict[str, str]:
    """Parse a query or a form body (``application/x-www-form-urlencoded``).

    A field without a value counts as not sent (RFC 6749 section 3.1). `InvalidError` if a field is malformed or comes
    twice.

    >>> read_form(b"state=a%20b&scope=&response_type=code")
    {'state': 'a b', 'response_type': 'code'}
    """
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise _malformed(f"it cannot be read; percent-encode UTF-8, at most {MAX_FIELDS} fields") from None
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise _malformed(f"the field {name[:64]!a} comes more than once")
    if "\0" in "".join(value for _, value in pairs):
        raise _malformed("it has the character NUL")
    return {name: value for name, value in pairs if value}


def _malformed(reason: str) -> InvalidError:
    return InvalidError(f"the query or form is malformed: {reason}", status=400, code="invalid_request")
