"""``Idempotency-Key`` on creates: what makes a repeated request recognisable, and only that.

The key is noted in the transaction that makes the record, so that both are there or neither. For 24 hours
the same key with the same body gets the first answer again, and with another body a refusal (422). While
the first request is still under way, a second one with its key is told so (409), and may come again; of two
processes that share a database, the second one waits instead, and then gets the first answer.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from memframe.service import rules
from memframe.service.api.exchange import ApiRequest, deployment_of
from memframe.service.store.replays import Attempt, still_in_flight
from memframe.wire import RESTORES

IDEMPOTENCY_HEADER = "idempotency-key"


def attempt_of(request: ApiRequest, body: bytes) -> Attempt | None:
    """The attempt that a request is; None where it has no key."""
    key = request.headers.get(IDEMPOTENCY_HEADER)
    if key is None:
        return None
    if not 0 < len(key) <= rules.MAX_IDEMPOTENCY_KEY_CHARS:
        message = f"Idempotency-Key must have 1 to {rules.MAX_IDEMPOTENCY_KEY_CHARS} characters"
        raise rules.invalid(message, "invalid_idempotency_key")
    hash_key = deployment_of(request).master_key.first.derive("idempotency")
    restores = request.headers.get(RESTORES)
    asked = body if restores is None else b"\0".join((body, restores.encode()))  # no JSON has a NUL
    return Attempt(keyed_hash(hash_key, key.encode()), keyed_hash(hash_key, asked))


def keyed_hash(hash_key: bytes, value: bytes) -> str:
    """A hash that tells nothing about plaintext to whoever has the database alone."""
    return hmac.digest(hash_key, value, "sha256").hex()


def in_flight_of(request: ApiRequest) -> InFlight:
    """The attempts that this process is working on."""
    in_flight: InFlight = request.app.state.in_flight
    return in_flight


class InFlight:
    """Attempts that are being worked on in one process."""

    def __init__(self) -> None:
        self._keys: set[tuple[str, str]] = set()
        self._lock = Lock()

    @contextmanager
    def alone(self, developer_id: str, attempt: Attempt | None) -> Iterator[None]:
        """A block in which no second request of the developer with this key is worked on."""
        if attempt is None:
            yield
            return
        key = (developer_id, attempt.key_hash)
        with self._lock:
            if key in self._keys:
                raise still_in_flight()
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.remove(key)
