"""The records and endpoints of the API, once, as typed structs.

Field names are Python's; each field whose name differs on the wire names it (``memoryKey``, ``aiConnectorId``, but
``user_id``). Times of memories and tags stay text, because frames parse whole columns at once, and a comparison
needs the original spelling.

Client and service both speak through these structs, so that neither can drift from the other.
Unknown fields are ignored when decoding, as a later version of the service may add some.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, TypedDict, get_args
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import force_setattr

from memframe.display import ReprMixin
from memframe.fields import MEMORY_FIELDS
from memframe.secret import Secret, SecretBytes, secret_to_wire

RequestStatus = Literal["pending", "approved", "rejected", "revoked"]
REQUEST_STATUSES: tuple[RequestStatus, ...] = get_args(RequestStatus)

DEFAULT_LIMIT = 10
"""Memories per page if a list call does not state a number."""

MAX_SCORES = {field.name: field.highest for field in MEMORY_FIELDS if field.highest is not None}
MAX_TAGS, MAX_TAG_CHARS = 100, 200
"""Limits of a memory: the embedded service enforces them, and plans expect them of every service."""


class Endpoint(NamedTuple):
    """Method and path of one call, relative to ``base_url``."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str

    def fill(self, **ids: str) -> str:
        """Fill ids into the path, each escaped so that it stays one segment.

        >>> TAG.fill(tag_id="a/../b")
        '/tags/a%2F..%2Fb'
        """
        return self.path.format_map({name: quote(value, safe="") for name, value in ids.items()})

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


ISSUE_TOKEN = Endpoint("POST", "/auth/token")
CREATE_REQUEST = Endpoint("POST", "/access-requests")
LIST_REQUESTS = Endpoint("GET", "/access-requests")
GET_REQUEST = Endpoint("GET", "/access-requests/{request_id}")
GET_CREDENTIALS = Endpoint("GET", "/access-requests/{request_id}/credentials")
LIST_MEMORIES = Endpoint("GET", "/memory-blobs")
GET_MEMORY = Endpoint("GET", "/memory-blobs/{memory_id}")
CREATE_MEMORY = Endpoint("POST", "/memory-blobs")
UPDATE_MEMORY = Endpoint("PATCH", "/memory-blobs/{memory_id}")
DELETE_MEMORY = Endpoint("DELETE", "/memory-blobs/{memory_id}")
LIST_TAGS = Endpoint("GET", "/tags")
TAG = Endpoint("GET", "/tags/{tag_id}")

RESTORES = "Restores"
"""Header of a create, not part of the specification: the id of the deleted memory to restore. A service that still
knows the memory gives it its old id and times; any other service ignores the header."""

RESTORE_DAYS = "Restore-Days"
"""Header of the response to `GET_CREDENTIALS`: for how many days after a delete the service can restore a memory."""

OAUTH_AUTHORIZE = "/oauth/authorize"
OAUTH_TOKEN = "/oauth/token"


class TokenRequest(Struct, frozen=True, omit_defaults=True):
    """Body of `ISSUE_TOKEN`; ``expires_in`` in seconds."""

    api_key: Secret
    expires_in: int | UnsetType = UNSET


class TokenResponse(Struct, frozen=True):
    """A developer's short-lived bearer token."""

    token: Secret
    expires_at: datetime
    token_type: str = "Bearer"

    def __post_init__(self) -> None:
        _to_utc(self, "expires_at")


def _to_utc(record: Struct, *names: str) -> None:
    """Convert times to UTC; a time without a zone is read as UTC, as in frames."""
    for name in names:
        moment = getattr(record, name)
        if moment is not None:
            force_setattr(record, name, moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC))


class OAuthTokens(Struct, frozen=True):
    """Response of the OAuth code exchange: the user's tokens and memory key.

    Attributes
    ----------
    access_token, refresh_token : Secret
        The user's standard OAuth tokens; ``refresh_token`` is None if the service sends none.
    token_type : str
        ``bearer``.
    expires_in : int or None
        Lifetime of the access token in seconds.
    memory_key : Secret
        Key that an access request needs.
    """

    access_token: Secret
    memory_key: Secret
    token_type: str = "bearer"
    expires_in: int | None = None
    refresh_token: Secret | None = None


class AccessRequestCreate(Struct, frozen=True):
    """Body of `CREATE_REQUEST`."""

    memory_key: Secret = field(name="memoryKey")
    reason: str = ""


class AccessRequest(ReprMixin, frozen=True, kw_only=True):
    """A request to one user's memories, and what the user decided.

    Attributes
    ----------
    id : str
    status : {"pending", "approved", "rejected", "revoked"}
    reason : str
        The text that the user reads before deciding.
    memory_key : Secret or None
    user_id : str or None
        Set once the request is linked to a user.
    ai_connector_id : str or None
        Id of the developer application that asks.
    created_at, updated_at : datetime or None
        In UTC; a decision sets ``updated_at``.
    """

    id: str
    status: RequestStatus
    reason: str | None = None
    memory_key: Secret | None = field(name="memoryKey", default=None)
    user_id: str | None = None
    ai_connector_id: str | None = field(name="aiConnectorId", default=None)
    created_at: datetime | None = field(name="createdAt", default=None)
    updated_at: datetime | None = field(name="updatedAt", default=None)

    def __post_init__(self) -> None:
        _to_utc(self, "created_at", "updated_at")


class AccessRequestList(Struct, frozen=True):
    """Response to `LIST_REQUESTS`."""

    items: list[AccessRequest]
    total: int | None = None
    next_cursor: str | None = None


class Credentials(ReprMixin, frozen=True):
    """The keys to one approved user's memories.

    Attributes
    ----------
    user_id : str
    memory_key : Secret
        Goes into the body of creates and updates.
    encryption_key : Secret
        Hexadecimal text of the symmetric key that seals content.
    key_version : int
    """

    user_id: Annotated[str, msgspec.Meta(min_length=1)]
    memory_key: Secret
    encryption_key: Secret
    key_version: Annotated[int, msgspec.Meta(ge=0)]


class MemoryBlobResponse(Struct, frozen=True, gc=False):
    """One record as create and update return it, without ``content``.

    ``gc=False``, here and in `MemoryBlob`, so that the cyclic garbage collector does not walk the thousand records of a
    page, of which none can be part of a reference cycle.
    """

    id: str
    user_id: str
    title: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    tag_ids: tuple[str, ...] | None = None
    importance: float | None = None
    confidence: float | None = None
    source: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class MemoryBlob(MemoryBlobResponse, frozen=True, gc=False):
    """One record as list and get return it, with sealed ``content``."""

    content: str | None = None


class MemoryPage(Struct, frozen=True, gc=False):
    """Response to `LIST_MEMORIES`.

    An empty cursor, by which some services end a listing, is read as None.
    """

    memory_blobs: list[MemoryBlob] = field(name="memoryBlobs")
    next_cursor: str | None = None

    def __post_init__(self) -> None:
        if self.next_cursor == "":
            force_setattr(self, "next_cursor", None)


class MemoryFields(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fields that create and update share; a field that is not set is not sent."""

    user_id: str
    memory_key: Secret = field(name="memoryKey")
    title: str | UnsetType | None = UNSET
    summary: str | UnsetType | None = UNSET
    tags: Sequence[str] | UnsetType | None = UNSET
    importance: float | UnsetType | None = UNSET
    confidence: float | UnsetType | None = UNSET
    source: str | UnsetType | None = UNSET


class MemoryEdits(TypedDict, total=False):
    """`MemoryFields` that a call may set, as keyword arguments."""

    title: str | None
    summary: str | None
    tags: Sequence[str] | None
    importance: float | None
    confidence: float | None
    source: str | None


class MemoryCreate(MemoryFields, frozen=True, kw_only=True, omit_defaults=True):
    """Body of `CREATE_MEMORY`."""

    content: str


class MemoryPatch(MemoryFields, frozen=True, kw_only=True, omit_defaults=True):
    """Body of `UPDATE_MEMORY`: only fields that are set are modified."""

    content: str | UnsetType = UNSET


class Deleted(Struct, frozen=True):
    """Body of the response to `DELETE_MEMORY`, if it has one; ``success`` is then true."""

    success: bool


class Tag(Struct, frozen=True, kw_only=True):
    """A label of the user's memories; read-only in this API."""

    id: str
    name: str
    color: str | None = None
    description: str | None = None
    is_enabled: bool | None = True
    created_at: str | None = None
    updated_at: str | None = None

    def __post_init__(self) -> None:
        if self.is_enabled is None:  # null counts as missing, so the default holds
            force_setattr(self, "is_enabled", True)


class TagList(Struct, frozen=True):
    """Response to `LIST_TAGS`."""

    items: list[Tag]


class Problem(Struct, frozen=True, omit_defaults=True):
    """An error as RFC 9457 writes it (``application/problem+json``)."""

    title: str | None = None
    status: int | None = None
    detail: str | None = None
    code: str | None = None
    type: str | None = None


_encoder = msgspec.json.Encoder(enc_hook=secret_to_wire)


def encode(body: Struct) -> SecretBytes:
    """Encode a struct as the JSON to send, secrets in the open.

    >>> encode(AccessRequestCreate(Secret("mk_1"), "weekly review")).reveal()
    b'{"memoryKey":"mk_1","reason":"weekly review"}'
    """
    return SecretBytes(_encoder.encode(body))
