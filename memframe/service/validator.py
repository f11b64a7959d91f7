"""The answers that oauthlib needs of us: who a client is, and what a code or a refresh token is worth.

Every client has a secret and proves it at the token endpoint, in the form or by HTTP Basic. Scopes do
not exist here, as what an application may read is decided in the dashboard; a ``scope`` is ignored.
"""

from __future__ import annotations

import base64
import re
from datetime import timedelta
from typing import Any, TypeGuard
from urllib.parse import unquote_plus

from oauthlib.common import Request
from oauthlib.oauth2 import InvalidClientError, InvalidGrantError, InvalidRequestError, RequestValidator

from memframe.errors import InvalidError
from memframe.secret import Secret
from memframe.service.deployment import Deployment
from memframe.service.forms import read_form
from memframe.service.logs import log_event
from memframe.service.redirects import redirect_matches
from memframe.service.store import AuthorizationCode, Developer, UserToken
from memframe.service.tokens import is_secret_of, secret_hash

CODE_LIFETIME = timedelta(seconds=60)
ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)
CONSENT_LIFETIME = timedelta(days=180)
"""So long tokens may be refreshed after a user's consent; the application asks again then."""

MAX_CLIENT_ID_CHARS = 64

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)
_NO_SECRET_HASH = secret_hash(Secret(""))
"""What an unknown client's secret is compared with, so that it takes as long as a known one's."""


class ClientValidator(RequestValidator):  # type: ignore[misc]  # oauthlib has no types
    """Answers out of the database; oauthlib asks in the order of RFC 6749.

    What a request turned out to redeem, a code or a refresh token, is left on it as ``request.redeems``.
    """

    def __init__(self, deployment: Deployment) -> None:
        super().__init__()
        self._deployment = deployment
        self._accounts = deployment.store.accounts
        self._authorizations = deployment.store.authorizations
        self._now = deployment.now

    # The authorization endpoint

    def validate_client_id(self, client_id: str, request: Request) -> bool:
        """Whether the client is known and may still ask."""
        client = self._accounts.developer_by_client_id(client_id)
        request.client = client
        return client is not None and not client.disabled

    def validate_redirect_uri(self, _: str, redirect_uri: str, request: Request) -> bool:
        """Whether the client has registered the address."""
        return any(redirect_matches(registered, redirect_uri) for registered in request.client.redirect_uris)

    def get_default_redirect_uri(self, _: str, request: Request) -> str | None:
        """The address of a client that has only one, and so need not name it."""
        registered = request.client.redirect_uris
        return registered[0] if len(registered) == 1 else None

    def validate_response_type(self, _: str, response_type: str, *__: Any) -> bool:
        """Only codes are given out, never tokens in an address."""
        return response_type == "code"

    def get_default_scopes(self, *_: Any) -> list[str]:
        """There are none."""
        return []

    def validate_scopes(self, *_: Any) -> bool:
        """Whatever was asked for is ignored."""
        return True

    def is_pkce_required(self, *_: Any) -> bool:
        """A client that has a secret may leave the challenge out."""
        return False

    def save_authorization_code(self, _: str, code: dict[str, str], request: Request) -> None:
        """Note the code, bound to whatever its exchange must repeat."""
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

    def client_authentication_required(self, *_: Any) -> bool:
        """Always: there are no clients without a secret."""
        return True

    def authenticate_client(self, request: Request) -> bool:
        """Whether the secret that was sent is the client's, by the form or by HTTP Basic, not both."""
        client_id, client_secret = _client_credentials(request)
        client = self._accounts.developer_by_client_id(client_id)
        fits = is_secret_of(Secret(client_secret), client.client_secret_hash if client else _NO_SECRET_HASH)
        if client is None or client.disabled or not fits:
            log_event("client refused", developer_id=client.id if client else None)
            return False
        request.client, request.client_id = client, client.client_id
        return True

    def validate_grant_type(self, _: str, grant_type: str, *__: Any) -> bool:
        """Codes and refresh tokens; a password is typed nowhere but into our own page."""
        return grant_type in {"authorization_code", "refresh_token"}

    def validate_code(self, _: str, code: str, client: Developer, request: Request) -> bool:
        """Whether the code may be exchanged; one that comes again takes down what it had brought."""
        found = self._authorizations.code(secret_hash(Secret(code)))
        if found is None or found.developer_id != client.id:
            return False
        if found.used_at is not None:
            self._revoke(found.id, found)
            return False
        request.redeems = found
        return (
            found.expires_at > self._now()
            and _repeats_redirect(found, request.redirect_uri, client)
            and _may_verify(found, request.code_verifier)
            and self._is_active(found.user_id)
        )

    def get_code_challenge(self, _: str, request: Request) -> str | None:
        """The challenge that the authorization request had sent."""
        challenge: str | None = request.redeems.code_challenge
        return challenge

    def get_code_challenge_method(self, *_: Any) -> str:
        """The only one that is accepted."""
        return "S256"

    def confirm_redirect_uri(self, *_: Any) -> bool:
        """Decided by `validate_code` already, which refuses as RFC 6749 section 5.2 wants: invalid_grant."""
        return True

    def validate_refresh_token(self, refresh_token: str, client: Developer, request: Request) -> bool:
        """Whether the token may be exchanged; one that was exchanged before takes its family down."""
        found = self._authorizations.token(secret_hash(Secret(refresh_token)))
        if found is None or (found.kind, found.developer_id) != ("refresh", client.id):
            return False
        if found.revoked_at is not None:
            self._revoke(found.code_id, found)
            return False
        request.redeems = found
        return found.expires_at > self._now() and self._is_active(found.user_id)

    def get_original_scopes(self, *_: Any) -> list[str]:
        """There are none."""
        return []

    def is_within_original_scope(self, *_: Any) -> bool:
        """Whatever was asked for is ignored."""
        return True

    def save_token(self, token: dict[str, str], request: Request) -> None:
        """Use up what was redeemed and note what is given for it; of two who try, one succeeds."""
        redeems: AuthorizationCode | UserToken = request.redeems
        if not self._redeem(redeems, token):
            raise InvalidGrantError(request=request)
        kind = "code" if isinstance(redeems, AuthorizationCode) else "refresh token"
        log_event(f"{kind} exchanged", developer_id=redeems.developer_id, user_id=redeems.user_id)

    def invalidate_authorization_code(self, *_: Any) -> None:
        """Done by `save_token`, in the transaction that notes the tokens."""

    def memory_key(self, request: Request) -> Secret:
        """The memory key that goes with the tokens."""
        redeems: AuthorizationCode | UserToken = request.redeems
        return self._deployment.memory_key(user_id=redeems.user_id, developer_id=redeems.developer_id)

    def _redeem(self, redeems: AuthorizationCode | UserToken, token: dict[str, str]) -> bool:
        code_id = redeems.id if isinstance(redeems, AuthorizationCode) else redeems.code_id
        issued_at = self._authorizations.issued_at(code_id)
        if issued_at is None:
            return False
        issued = tuple(
            UserToken(
                token_hash=secret_hash(Secret(token[f"{kind}_token"])),
                kind=kind,
                code_id=code_id,
                developer_id=redeems.developer_id,
                user_id=redeems.user_id,
                expires_at=min(self._now() + lifetime, issued_at + CONSENT_LIFETIME),
            )
            for kind, lifetime in (("access", ACCESS_LIFETIME), ("refresh", REFRESH_LIFETIME))
        )
        if isinstance(redeems, AuthorizationCode):
            return self._authorizations.redeem_code(code_id, issued)
        return self._authorizations.redeem_token(redeems, issued)

    def _revoke(self, code_id: str, replayed: AuthorizationCode | UserToken) -> None:
        """Revoke what came of a code, as somebody else seems to have it."""
        self._authorizations.revoke_tokens(code_id)
        log_event("replayed: tokens revoked", developer_id=replayed.developer_id, user_id=replayed.user_id)

    def _is_active(self, user_id: str) -> bool:
        user = self._accounts.user(user_id)
        return user is not None and not user.disabled


def client_id_of(form: bytes, authorization: str | None) -> str:
    """The client that a call of the token endpoint claims to be; empty where that cannot be read."""
    try:
        claimed = read_form(form).get("client_id", "")
        if _is_basic(authorization):
            claimed = _basic_credentials(authorization[6:])[0]
    except (InvalidError, InvalidClientError):
        return ""
    return claimed[:MAX_CLIENT_ID_CHARS]


def _client_credentials(request: Request) -> tuple[str, str]:
    header = request.headers.get("Authorization")
    if not _is_basic(header):
        return request.client_id or "", request.client_secret or ""
    if request.client_secret is not None:
        raise InvalidRequestError("Send the client secret in one place, not in two.", request=request)
    client_id, client_secret = _basic_credentials(header[6:])
    if request.client_id not in (None, client_id):
        raise InvalidClientError("The client_id of the form is not that of the header.", request=request)
    return client_id, client_secret


def _is_basic(authorization: str | None) -> TypeGuard[str]:
    return authorization is not None and authorization[:6].lower() == "basic "


def _basic_credentials(encoded: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        raise InvalidClientError("The Basic credentials are malformed.") from None
    client_id, _, client_secret = text.partition(":")
    return unquote_plus(client_id), unquote_plus(client_secret)


def _repeats_redirect(code: AuthorizationCode, sent: str | None, client: Developer) -> bool:
    if code.redirect_uri is None:  # the authorization request had left it out, and so may the exchange
        return sent is None or (sent,) == client.redirect_uris
    return sent == code.redirect_uri


def _may_verify(code: AuthorizationCode, verifier: str | None) -> bool:
    if verifier is None:
        return True  # oauthlib itself refuses this where there is a challenge
    return code.code_challenge is not None and _VERIFIER.fullmatch(verifier) is not None
