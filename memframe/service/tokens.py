"""Make and check bearer tokens, API keys, passwords and the cursors of pages.

Secrets made here have 256 random bits, so that plain SHA-256 protects them at rest; passwords are hashed with argon2id.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import VerificationError
from cachetools import LRUCache, cached
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from memframe.errors import AuthError
from memframe.secret import Secret
from memframe.service.clock import Clock
from memframe.service.validation import invalid

API_KEY_PREFIX = "mfk_"
CLIENT_ID_PREFIX = "mfc_"
CLIENT_SECRET_PREFIX = "mfs_"

CURSOR_KEY_BYTES = 64
_PLACE_BYTES = 8

_ALGORITHM = "HS256"
_TYPE = "at+jwt"
_MAX_TOKEN_CHARS = 4096
_LEEWAY_S = 30
"""Seconds by which a token may come from the future: the clock of the machine that issued it may be ahead."""

MAX_CHECKED = 10_000
"""Number of checked tokens that are cached, some hundred bytes each."""

_BAD_TOKEN = "the bearer token is not valid or has expired; ask POST /auth/token for a new one"


def new_secret(prefix: str = "") -> Secret:
    """Generate 256 random bits as text; the prefix identifies its kind to scanners and people."""
    return Secret(prefix + secrets.token_urlsafe(32))


def secret_hash(secret: Secret) -> str:
    return hashlib.sha256(secret.reveal().encode("utf-8", "surrogatepass")).hexdigest()


def is_secret_of(secret: Secret, stored_hash: str) -> bool:
    """Compare a secret with a stored hash, in constant time."""
    return hmac.compare_digest(secret_hash(secret), stored_hash)


class Passwords:
    """Hash and check passwords with argon2id, by the library's defaults, which follow RFC 9106.

    >>> passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    >>> stored = passwords.hash(Secret("correct horse"))
    >>> passwords.matches(Secret("correct horse"), stored), passwords.matches(Secret("wrong"), stored)
    (True, False)
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()

    @cached_property
    def _no_password(self) -> str:
        return self._hasher.hash(secrets.token_urlsafe())

    def hash(self, password: Secret) -> str:
        return self._hasher.hash(password.reveal())

    def matches(self, password: Secret, stored_hash: str | None) -> bool:
        """Compare a password with a stored hash; without one (an unknown user), return False after the same time."""
        try:
            self._hasher.verify(stored_hash or self._no_password, password.reveal())
        except (VerificationError, UnicodeEncodeError):
            return False
        return stored_hash is not None


class Bearer(NamedTuple):
    """Developer of a bearer token, and the epoch of its issue, which a query compares with the developer's."""

    developer_id: str
    epoch: int


class BearerTokens:
    """Issue and check developers' short-lived tokens: JWTs (RFC 7519, 9068) of one fixed algorithm.

    A token must name the addresses `issuer` and `audience`. Checked tokens are cached by their hash, because checking
    a signature costs as much as reading a memory.
    """

    def __init__(self, key: bytes, *, issuer: str, audience: str, now: Clock) -> None:
        self._key = OctKey.import_key(key)
        self._issuer = issuer
        self._audience = audience
        self._now = now
        cache: LRUCache[str, tuple[Bearer, float]] = LRUCache(MAX_CHECKED)
        self._verify_once = cached(cache, key=secret_hash, lock=Lock())(self._verify)

    def issue(self, bearer: Bearer, lifetime_s: int) -> tuple[Secret, datetime]:
        """Issue a token; return it and when it expires."""
        issued_at = self._now().replace(microsecond=0)
        expires_at = issued_at + timedelta(seconds=lifetime_s)
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": bearer.developer_id,
            "epoch": bearer.epoch,
            "iat": int(issued_at.timestamp()),
            "exp": int(expires_at.timestamp()),
            "jti": secrets.token_urlsafe(16),
        }
        return Secret(jwt.encode({"alg": _ALGORITHM, "typ": _TYPE}, claims, self._key)), expires_at

    def check(self, token: Secret) -> Bearer:
        """Return the bearer of a token; `AuthError` if it is expired, foreign, forged or malformed."""
        bearer, expires_at = self._verify_once(token)
        if self._now().timestamp() >= expires_at:
            raise bad_token()
        return bearer

    def _verify(self, token: Secret) -> tuple[Bearer, float]:
        try:
            if len(token.reveal()) > _MAX_TOKEN_CHARS:
                raise bad_token()
            decoded = jwt.decode(token.reveal(), self._key, algorithms=[_ALGORITHM])
            needed: dict[str, Any] = {name: {"essential": True} for name in ("sub", "iat", "exp", "jti")}
            registry = jwt.JWTClaimsRegistry(
                now=int(self._now().timestamp()),
                leeway=_LEEWAY_S,  # also for the expiry, which `check` compares without leeway
                iss={"essential": True, "value": self._issuer},
                aud={"essential": True, "value": self._audience},
                **needed,
            )
            registry.validate(decoded.claims)
            epoch = int(decoded.claims.get("epoch", 0))  # earlier versions issued tokens without an epoch
        except (JoseError, ValueError, RecursionError):
            raise bad_token() from None
        if decoded.header.get("typ") != _TYPE:
            raise bad_token()
        return Bearer(str(decoded.claims["sub"]), epoch), decoded.claims["exp"]


def bad_token() -> AuthError:
    """Make the error for a bearer token that is not valid, the same for every reason."""
    return AuthError(_BAD_TOKEN, status=401, code="invalid_token")


class CursorCipher:
    """Seal and open cursors: the place of the last record of a page, for one user and one filter.

    They are sealed with AES-SIV (RFC 5297) and a key of `CURSOR_KEY_BYTES`, so that a cursor does not reveal how many
    records the service holds. Altered cursors, and those of another user or filter, do not open. AES-SIV needs no
    nonce, so that the same place always gives the same cursor.

    >>> cursors = CursorCipher(bytes(range(64)))
    >>> cursors.open(cursors.seal(4711, ["u-1"]), ["u-1"])
    4711
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)

    def seal(self, place: int, chosen: object) -> str:
        """Make the cursor of the page after a place."""
        sealed = self._cipher.encrypt(place.to_bytes(_PLACE_BYTES), [msgspec.json.encode(chosen)])
        return base64.urlsafe_b64encode(sealed).decode()

    def open(self, cursor: str, chosen: object) -> int:
        """Return the place in a cursor that was made for this filter; `InvalidError` for any other."""
        with suppress(ValueError, InvalidTag):
            sealed = base64.b64decode(cursor, altchars=b"-_", validate=True)
            place = int.from_bytes(self._cipher.decrypt(sealed, [msgspec.json.encode(chosen)]))
            if self.seal(place, chosen) == cursor:  # refuses another spelling of the same bytes
                return place
        raise invalid(
            "the cursor was not made for this user and these filters; repeat the call that gave it "
            "with the same parameters, or start without a cursor",
            "invalid_cursor",
        )
