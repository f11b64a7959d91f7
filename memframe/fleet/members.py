"""Members of a fleet: the users who have approved, each once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from memframe.wire import AccessRequest, Status


class Member(Struct, frozen=True):
    """One user, and the access request by which their memories are reached.

    Attributes
    ----------
    request_id : str
    user_id : str or None
        None where the service does not say whom a request concerns; then it comes with the credentials.
    """

    request_id: str
    user_id: str | None


def members_with(requests: Iterable[AccessRequest], status: Status) -> list[Member]:
    """Users with a request in this state, each with the newest of them, in the order of the listing.

    >>> requests = [AccessRequest(id=id, status="approved", user_id="u1") for id in ("r1", "r2")]
    >>> members_with(requests, "approved")
    [Member(request_id='r2', user_id='u1')]
    """
    newest: dict[str, AccessRequest] = {}
    for request in requests:
        name = key_of(request.user_id or request.id)
        if request.status == status and _decided_at(request) >= _decided_at(newest.get(name)):
            newest[name] = request
    return [Member(request.id, request.user_id) for request in newest.values()]


def approved_and_revoked(requests: Iterable[AccessRequest]) -> tuple[list[Member], list[Member]]:
    """Users who let us in, and users who did once and have no approved request left."""
    requests = list(requests)
    approved = members_with(requests, "approved")
    open_to_us = {key_of(member.user_id) for member in approved if member.user_id}
    revoked = members_with(requests, "revoked")
    return approved, [member for member in revoked if key_of(member.user_id or "") not in open_to_us]


def key_of(user_id: str) -> str:
    """One spelling of a user's id, as UUIDs have several."""
    return user_id.lower()


def _decided_at(request: AccessRequest | None) -> datetime:
    return (request and (request.updated_at or request.created_at)) or datetime.min.replace(tzinfo=UTC)
