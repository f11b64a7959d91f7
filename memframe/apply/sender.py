"""What leaves for the service: a frozen body with the memory key put in, and one read before a write."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

import msgspec

from memframe import wire
from memframe.access import Access
from memframe.apply.signs import Seen, seen_in, seen_in_error
from memframe.client.transport import JSON_BODY
from memframe.current import Stored, read_one
from memframe.errors import MemframeError
from memframe.journal import Operation
from memframe.secret import Secret, SecretBytes

ENDPOINTS = {"create": wire.CREATE_MEMORY, "patch": wire.UPDATE_MEMORY, "delete": wire.DELETE_MEMORY}


class Found(NamedTuple):
    """What a read brought: the memory, or None where it is gone."""

    stored: Stored | None


class Sender:
    """Sends the operations of one run; any thread may.

    Parameters
    ----------
    access : Access
        With the credentials of this moment.
    run_id : str
        Begins the idempotency keys.
    """

    def __init__(self, access: Access, run_id: str) -> None:
        self._access, self._run_id = access, run_id

    def send(self, operation: Operation, body: SecretBytes | None) -> Seen:
        """One write, and what was seen of it."""
        action, user_id = operation.action, self._access.user_id
        endpoint, client = ENDPOINTS[action], self._access.client
        target = None if action == "create" else operation.id
        ids = {} if target is None else {"memory_id": target}
        try:
            answer = client.send(endpoint, ids, **self._request(operation, body))
        except MemframeError as error:
            return seen_in_error(error, wrote=True)
        return seen_in(
            answer,
            action=action,
            id=target,
            user_id=user_id,
            error_of=lambda answer: client.to_error(answer, endpoint),
        )

    def read(self, operation: Operation) -> Seen | Found:
        """The memory of a patch or delete as it is now."""
        try:
            return Found(read_one(self._access, str(operation.id)))
        except MemframeError as error:
            return seen_in_error(error, wrote=False)

    def _request(self, operation: Operation, body: SecretBytes | None) -> dict[str, object]:
        headers = {"Idempotency-Key": idempotency_key(self._run_id, operation.n)}
        if operation.change.restores:
            headers[wire.RESTORES] = quote(
                operation.change.restores, safe=""
            )  # whatever an id of theirs is made of
        if body is None:
            return {"params": {"user_id": self._access.user_id}, "headers": headers}
        sent = with_memory_key(body, self._access.credentials.memory_key)
        return {"data": sent, "headers": headers | JSON_BODY}


def idempotency_key(run_id: str, n: int) -> str:
    """The same for every attempt at one operation, and for nothing else."""
    return f"{run_id}-{n}"


def with_memory_key(body: SecretBytes, memory_key: Secret) -> SecretBytes:
    """A frozen body as it is sent. The rest stays as it is, to the byte.

    >>> with_memory_key(SecretBytes(b'{"user_id":"u1"}'), Secret("mk_1")).reveal()
    b'{"memoryKey":"mk_1","user_id":"u1"}'
    """
    return SecretBytes(b'{"memoryKey":' + msgspec.json.encode(memory_key.reveal()) + b"," + body.reveal()[1:])
