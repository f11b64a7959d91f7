"""The authorization server without its web pages: OAuth 2.0 by the code grant, on oauthlib.

What is kept, beside RFC 6749: addresses match exactly (RFC 9700, 8252), PKCE is S256 or absent
(RFC 7636), every answer to a client names the issuer (RFC 9207), codes live 60 seconds and work once,
and refresh tokens are replaced by each use (RFC 9700 section 4.14.2); one that comes twice, like a code
that does, revokes whatever came of the same consent. Scopes do not exist and are ignored.
"""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from oauthlib.common import Request
from oauthlib.oauth2 import (
    AccessDeniedError,
    AuthorizationCodeGrant,
    AuthorizationEndpoint,
    BearerToken,
    FatalClientError,
    InvalidRequestError,
    OAuth2Error,
    RefreshTokenGrant,
    TokenEndpoint,
    UnsupportedResponseTypeError,
)

from memframe.errors import InvalidError
from memframe.service.deployment import Deployment
from memframe.service.forms import read_form
from memframe.service.logs import log_event
from memframe.service.store import Developer, User
from memframe.service.tokens import new_secret
from memframe.service.validator import ACCESS_LIFETIME, ClientValidator
from memframe.wire import OAUTH_AUTHORIZE, OAUTH_TOKEN

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

_REASONS = {
    "invalid_client": "The client_id or the client_secret is wrong.",
    "invalid_grant": (
        "The code or refresh token is unknown, expired or used already, or it was given to another client, "
        "for another redirect_uri, or with another code_challenge."
    ),
    "unsupported_grant_type": "The grant_type must be authorization_code or refresh_token.",
}
"""What oauthlib leaves unsaid."""

logging.getLogger("oauthlib").setLevel(logging.INFO)  # it writes codes and tokens at the level DEBUG


class BadLink(Exception):  # noqa: N818 - a page for the user, not an error of the program
    """The client is unknown, or the address is not its own: nobody is sent anywhere."""


class SendBack(Exception):  # noqa: N818 - the way on, not an error of the program
    """The client asked for something that is refused; ``address`` tells it what."""

    def __init__(self, address: str) -> None:
        super().__init__("the request is answered at the client")
        self.address = address


class Question(NamedTuple):
    """What a user is asked to consent to."""

    client: Developer
    redirect_uri: str


class TokenAnswer(NamedTuple):
    """Status and JSON of the token endpoint."""

    status: int
    body: bytes


class AuthorizationServer:
    """Questions, consents and exchanges of one service.

    Parameters
    ----------
    deployment : Deployment
        What is known about clients, users, codes and tokens.
    issuer : str
        The public address of the authorization server.
    """

    def __init__(self, deployment: Deployment, *, issuer: str) -> None:
        self._validator = validator = ClientValidator(deployment)
        self.issuer = issuer
        code_grant = _CodeGrant(validator, issuer=issuer, pre_auth=[_check_question])
        refresh_grant = RefreshTokenGrant(validator)
        for grant in (code_grant, refresh_grant):
            grant.register_token_modifier(self._finish_tokens)
        bearer = BearerToken(
            validator,
            token_generator=lambda _: new_secret("mfa_").reveal(),
            refresh_token_generator=lambda _: new_secret("mfr_").reveal(),
            expires_in=int(ACCESS_LIFETIME.total_seconds()),
        )
        self._authorizing = AuthorizationEndpoint("code", bearer, {"code": code_grant})
        grants = {"authorization_code": code_grant, "refresh_token": refresh_grant}
        self._exchanging = TokenEndpoint("authorization_code", bearer, grants)

    def question(self, query: bytes) -> Question:
        """What an authorization request asks; `BadLink` or `SendBack` if it may not."""
        _, details = self._run(self._authorizing.validate_authorization_request, query)
        return Question(details["request"].client, details["redirect_uri"])

    def allow(self, query: bytes, user: User) -> str:
        """The address that brings the client its code."""
        headers, _, _ = self._run(
            self._authorizing.create_authorization_response, query, credentials={"user": user}
        )
        return str(headers["Location"])

    def deny(self, query: bytes, user: User) -> str:
        """Return the address that brings the client the user's refusal."""
        _, details = self._run(self._authorizing.validate_authorization_request, query)
        log_event("consent refused", developer_id=details["request"].client.id, user_id=user.id)
        return self._refusal(AccessDeniedError("The user did not allow it.", request=details["request"]))

    def exchange(self, form: bytes, *, authorization: str | None = None) -> TokenAnswer:
        """What the token endpoint answers to a form and an ``Authorization`` header."""
        try:
            fields = read_form(form)
            if "grant_type" not in fields:
                return _token_error("invalid_request", "The field grant_type is missing.")
            headers = {} if authorization is None else {"Authorization": authorization}
            _, body, status = self._exchanging.create_token_response(
                OAUTH_TOKEN, body=urlencode(fields), headers=headers
            )
        except InvalidError as error:
            return _token_error("invalid_request", str(error))
        except OAuth2Error as error:
            return _token_error(error.error, error.description)
        if status == HTTPStatus.OK:
            return TokenAnswer(status, body.encode())
        refusal = msgspec.json.decode(body)
        return _token_error(refusal["error"], refusal.get("error_description", ""))

    def metadata(self) -> dict[str, Any]:
        """What a client may want to know beforehand (RFC 8414)."""
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
        except (InvalidError, FatalClientError) as error:
            raise BadLink(error.description if isinstance(error, FatalClientError) else str(error)) from None
        except OAuth2Error as error:
            raise SendBack(self._refusal(error)) from None

    def _refusal(self, error: OAuth2Error) -> str:
        return _extended(error.redirect_uri, [*error.twotuples, ("iss", self.issuer)])

    def _finish_tokens(self, token: dict[str, Any], _: BearerToken, request: Request) -> dict[str, Any]:
        return {
            "access_token": token["access_token"],
            "token_type": "bearer",
            "expires_in": token["expires_in"],
            "refresh_token": token["refresh_token"],
            "memory_key": self._validator.memory_key(request).reveal(),
        }


class _CodeGrant(AuthorizationCodeGrant):  # type: ignore[misc]  # oauthlib has no types
    """The code grant; its answers name the issuer and leave the registered address as it is."""

    issuer: str

    def create_authorization_code(self, request: Request) -> dict[str, str]:
        code = {"code": new_secret().reveal()}
        return code if request.state is None else code | {"state": request.state}

    def prepare_authorization_response(
        self, request: Request, token: dict[str, str], headers: dict[str, str], body: None, status: int
    ) -> tuple[dict[str, str], None, int]:
        location = _extended(request.redirect_uri, [*token.items(), ("iss", self.issuer)])
        return headers | {"Location": location}, body, status


def _check_question(request: Request) -> dict[str, str]:
    """Where oauthlib is more lenient than we are: the kinds of answers and of challenges."""
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


def _extended(uri: str, fields: list[tuple[str, str]]) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(fields)}"


def _token_error(code: str, description: str) -> TokenAnswer:
    status = HTTPStatus.UNAUTHORIZED if code == "invalid_client" else HTTPStatus.BAD_REQUEST
    words = description or _REASONS.get(code, "The request is refused.")
    return TokenAnswer(status, msgspec.json.encode({"error": code, "error_description": words}))
