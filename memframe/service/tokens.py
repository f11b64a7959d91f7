"""Bearer tokens, API keys and passwords: how they are made and how they are checked.

Whatever a machine made has 256 random bits, so that a plain SHA-256 protects it at rest; passwords,
which people make, are hashed with argon2id.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError
from argon2.low_level import ARGON2_VERSION
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from memframe.errors import AuthError
from memframe.secret import Secret
from memframe.service.recent import Recent
from memframe.service.times import Clock

API_KEY_PREFIX = "mfk_"
CLIENT_ID_PREFIX = "mfc_"
CLIENT_SECRET_PREFIX = "mfs_"

_ALGORITHM = "HS256"
_TYPE = "at+jwt"
_MAX_TOKEN_CHARS = 4096
_LEEWAY_S = 30
"""By so much a token may seem to come from the future: the clock of the machine that made it may be ahead."""

MAX_CHECKED = 10_000
"""Tokens that are known again; some hundred bytes each."""

_BAD_TOKEN = "the bearer token is not valid or has expired; ask POST /auth/token for a new one"


def new_secret(prefix: str = "") -> Secret:
    """256 random bits as text; a prefix lets scanners and people see what it is."""
    return Secret(prefix + secrets.token_urlsafe(32))


def secret_hash(secret: Secret) -> str:
    """What is stored instead of a secret that a machine made."""
    return hashlib.sha256(secret.reveal().encode("utf-8", "surrogatepass")).hexdigest()


def is_secret_of(secret: Secret, stored_hash: str) -> bool:
    """Whether a secret is the one behind a stored hash, in constant time."""
    return hmac.compare_digest(secret_hash(secret), stored_hash)


class Passwords:
    """Passwords of people: hashed with argon2id, checked at one cost for whoever asks.

    Parameters
    ----------
    hasher : PasswordHasher, optional
        The library's defaults follow RFC 9106; tests pass cheap parameters.

    Examples
    --------
    >>> passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    >>> stored = passwords.hash(Secret("correct horse"))
    >>> passwords.matches(Secret("correct horse"), stored), passwords.matches(Secret("wrong"), stored)
    (True, False)
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._nobody = _hash_of_nothing(self._hasher)

    def hash(self, password: Secret) -> str:
        """What is stored."""
        return self._hasher.hash(password.reveal())

    def matches(self, password: Secret, stored_hash: str | None) -> bool:
        """Whether it is the password; for a user who does not exist (None) just as slowly not."""
        try:
            self._hasher.verify(stored_hash or self._nobody, password.reveal())
        except (VerificationError, UnicodeEncodeError):
            return False
        return stored_hash is not None


def _hash_of_nothing(hasher: PasswordHasher) -> str:
    """A hash that no password has, and that takes as long to check as any other."""
    digest = base64.b64encode(secrets.token_bytes(hasher.hash_len)).rstrip(b"=").decode()
    salt = base64.b64encode(secrets.token_bytes(hasher.salt_len)).rstrip(b"=").decode()
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v={ARGON2_VERSION}${costs}${salt}${digest}"


class _Claim(NamedTuple):
    """What a token that was checked says."""

    developer_id: str
    expires_at: float


class BearerTokens:
    """A developer's short-lived tokens: JWTs (RFC 7519, 9068) of one fixed algorithm.

    A token that has passed is known again by its hash, and only its end is looked at: checking one costs
    as much as reading a memory.

    Parameters
    ----------
    key : bytes
        256 bits, derived from the master key.
    issuer, audience : str
        Addresses that a token must name.
    now : Clock
        What tells the time.
    """

    def __init__(self, key: bytes, *, issuer: str, audience: str, now: Clock) -> None:
        self._key = OctKey.import_key(key)
        self._issuer = issuer
        self._audience = audience
        self._now = now
        self._checked = Recent[str, _Claim](MAX_CHECKED)

    def issue(self, developer_id: str, lifetime_s: int) -> tuple[Secret, datetime]:
        """A token and the moment at which it expires."""
        issued_at = self._now().replace(microsecond=0)
        expires_at = issued_at + timedelta(seconds=lifetime_s)
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": developer_id,
            "iat": int(issued_at.timestamp()),
            "exp": int(expires_at.timestamp()),
            "jti": secrets.token_urlsafe(16),
        }
        return Secret(jwt.encode({"alg": _ALGORITHM, "typ": _TYPE}, claims, self._key)), expires_at

    def developer_id(self, token: Secret) -> str:
        """Whose token it is; `AuthError` for one that is expired, foreign, forged or malformed."""
        claimed = self._checked.get(secret_hash(token), lambda: self._claim(token))
        if self._now().timestamp() >= claimed.expires_at:
            raise bad_token()
        return claimed.developer_id

    def _claim(self, token: Secret) -> _Claim:
        try:
            decoded = self._decode(token.reveal())
            self._registry().validate(decoded.claims)
        except (JoseError, ValueError, RecursionError):
            raise bad_token() from None
        if decoded.header.get("typ") != _TYPE:
            raise bad_token()
        return _Claim(str(decoded.claims["sub"]), decoded.claims["exp"])

    def _decode(self, text: str) -> jwt.Token:
        if len(text) > _MAX_TOKEN_CHARS:
            raise bad_token()
        return jwt.decode(text, self._key, algorithms=[_ALGORITHM])

    def _registry(self) -> jwt.JWTClaimsRegistry:
        needed: dict[str, Any] = {name: {"essential": True} for name in ("sub", "iat", "exp", "jti")}
        return jwt.JWTClaimsRegistry(
            now=int(self._now().timestamp()),
            leeway=_LEEWAY_S,  # of the end, too, which `developer_id` looks at without any
            iss={"essential": True, "value": self._issuer},
            aud={"essential": True, "value": self._audience},
            **needed,
        )


def bad_token() -> AuthError:
    """The one refusal of every bearer token that does not pass."""
    return AuthError(_BAD_TOKEN, status=401, code="invalid_token")
