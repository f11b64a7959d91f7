"""The requirements of the specification, in the order in which they are tried, each with a sentence and its check.

``must``: the specification says it. ``needed``: it follows from a standard that the specification names, or no client
can work without it. ``free``: the specification is silent, and the check reports what it found.

The section of a requirement is a heading of the specification, and its sentence is a quotation from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import msgspec
import pybase64

from memframe import wire
from memframe.client import Client, wait_for_decision
from memframe.client.auth import BearerAuth
from memframe.conformance.probe import (
    BLOB_FIELDS,
    BLOB_RESPONSE_FIELDS,
    CREDENTIALS_FIELDS,
    MAX_PAGES,
    PAGE,
    REQUEST_FIELDS,
    TAG_FIELDS,
    TOKEN_FIELDS,
    JsonObject,
    NotTriedError,
    Probe,
    Reply,
    UnmetError,
    require_same,
)
from memframe.display import number_of, printable
from memframe.errors import AuthError, DecisionTimeout, OAuthError
from memframe.secret import Secret

Level = Literal["must", "needed", "free"]
RequirementCheck = Callable[[Probe], str]


class Requirement(NamedTuple):
    """One row of the table: the check returns what it found, or raises `UnmetError` or `NotTriedError`."""

    id: str
    level: Level
    section: str
    sentence: str
    check: RequirementCheck


REQUIREMENTS: dict[str, Requirement] = {}
"""Requirements by id, in the order in which they are tried: earlier ones find facts that later ones need."""


def requirement(level: Level, section: str, sentence: str) -> Callable[[RequirementCheck], RequirementCheck]:
    """Add a check to the table, under its own name with hyphens."""

    def register(check: RequirementCheck) -> RequirementCheck:
        name = check.__name__.replace("_", "-")
        REQUIREMENTS[name] = Requirement(name, level, section, sentence, check)
        return check

    return register


# -- the address, the token

POST_TOKEN_SECTION = "POST /auth/token"


@requirement("must", "Versioning", "the version is part of the base path `/api/v1` inside {base_url}")
def version_in_address(probe: Probe) -> str:
    if not probe.base_url.endswith("/api/v1"):
        raise UnmetError("the address does not end with /api/v1")
    return "the address ends with /api/v1"


def _issue_token(probe: Probe, **more: Any) -> Reply:
    body = {"api_key": probe.api_key.reveal(), **more}
    return probe.send(wire.ISSUE_TOKEN, body=body, is_anonymous=True)


@requirement("must", POST_TOKEN_SECTION, "Response: the token response (token, expires_at, token_type).")
def token_response(probe: Probe) -> str:
    answer = _issue_token(probe).require_success()
    token = Secret(answer.record(TOKEN_FIELDS)["token"])
    probe.transport.mask(token)
    if not re.fullmatch(r"[\x21-\x7e]+", token.reveal()):
        raise UnmetError("the token has characters that a header must not have")
    probe.bearer = BearerAuth(token)
    return f"answered {answer.status} with all three fields"


@requirement("must", "Authentication", "Every other API endpoint uses the scheme HTTP bearer with format JWT")
def token_is_jwt(probe: Probe) -> str:
    header, _, rest = probe.token_auth.token.reveal().partition(".")
    try:
        fields = msgspec.json.decode(_from_base64url(header))
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or "alg" not in fields or rest.count(".") != 1:
        raise UnmetError("the token is not a JWT of three parts")
    if str(fields["alg"]).lower() == "none":
        raise UnmetError("the token is not signed (alg none)")
    return f"alg {probe.transport.printable(str(fields['alg']))}"


def _from_base64url(text: str) -> bytes:
    return pybase64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


@requirement("needed", POST_TOKEN_SECTION, "Expiry time of the token.")
def token_expires_later(probe: Probe) -> str:
    left_s = _lifetime_s(probe)
    if left_s <= 0:
        raise UnmetError(
            "expires_at is not in the future: the clock of the service or of this machine is wrong"
        )
    return f"in about {left_s:,.0f} s"


def _lifetime_s(probe: Probe, **more: Any) -> float:
    """Return the lifetime of a new token in seconds; `NotTriedError` if the first token could not be issued."""
    _ = probe.token_auth
    token = _issue_token(probe, **more).require_success().record(TOKEN_FIELDS)
    expires_at = datetime.fromisoformat(token["expires_at"].upper())
    return (expires_at - datetime.now(UTC)).total_seconds()


@requirement("needed", POST_TOKEN_SECTION, "the developer sends the permanent `api_key` to POST /auth/token")
def wrong_api_key(probe: Probe) -> str:
    body = {"api_key": f"wrong-{uuid4().hex}"}
    return probe.send(wire.ISSUE_TOKEN, body=body, is_anonymous=True).require_refusal()


@requirement("free", POST_TOKEN_SECTION, "Bounds of `expires_in` and its unit")
def token_lifetime(probe: Probe) -> str:
    try:
        left_s = _lifetime_s(probe, expires_in=1800)
    except UnmetError as refused:
        return f"expires_in 1800: {refused}"
    return f"expires_in 1800 gives a token for about {left_s:,.0f} s"


# -- the bearer

READS = (wire.LIST_REQUESTS, wire.GET_REQUEST, wire.GET_CREDENTIALS, wire.LIST_MEMORIES, wire.GET_MEMORY)
READS_OF_TAGS = (wire.LIST_TAGS, wire.TAG)


@requirement(
    "must", "Authentication", "each endpoint needs the header `Authorization: Bearer <ACCESS_TOKEN>`"
)
def token_required(probe: Probe) -> str:
    ids: dict[str, Any] = {"request_id": probe.request_id or "1", "memory_id": "1", "tag_id": "1"}
    params = {"user_id": str(uuid4())}
    endpoints = (*READS, *READS_OF_TAGS)
    answers = {
        endpoint: probe.send(endpoint, params=params, is_anonymous=True, **ids) for endpoint in endpoints
    }
    _refuse_open({str(endpoint): answer for endpoint, answer in answers.items()})
    statuses = sorted({answer.status for answer in answers.values()})
    return f"{len(answers)} reads without it are refused with {' or '.join(map(str, statuses))}"


def _refuse_open(answers: dict[str, Reply]) -> None:
    refused = (401, 403)
    unrefused = [
        f"{named} answered {answer.status}"
        for named, answer in answers.items()
        if answer.status not in refused
    ]
    if unrefused:
        raise UnmetError(f"without a token {', '.join(unrefused)}")


def _send_forged(probe: Probe) -> dict[str, Reply]:
    """Read a request with tokens that this service has not issued."""
    header, payload, signature = (*probe.token_auth.token.reveal().split("."), "", "")[:3]
    other = ("A" if signature[:1] != "A" else "B") + signature[1:]
    unsigned = pybase64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    forged = {
        "not a JWT": "not-a-token",
        "another signature": f"{header}.{payload}.{other}",
        "alg none": f"{unsigned}.{payload}.",
    }
    request_id = probe.request_id or str(uuid4())
    return {
        kind: probe.send(wire.GET_REQUEST, auth=BearerAuth(Secret(token)), request_id=request_id)
        for kind, token in forged.items()
    }


@requirement("must", "Errors", "JWT invalid or expired.")
def invalid_token(probe: Probe) -> str:
    answers = _send_forged(probe)
    other_answers = [f"{kind}: {answer.status}" for kind, answer in answers.items() if answer.status != 401]
    if other_answers:
        raise UnmetError(f"not answered with 401 - {', '.join(other_answers)}")
    return f"401 for {', '.join(answers)}"


@requirement("needed", "Authentication", "uses the scheme HTTP bearer")
def challenge(probe: Probe) -> str:
    answer = probe.send(wire.LIST_REQUESTS, is_anonymous=True)
    found = answer.headers.get("WWW-Authenticate", "")
    if "bearer" not in found.lower():
        raise UnmetError(
            f"WWW-Authenticate of the {answer.status} does not name Bearer, as RFC 6750, section 3, asks"
        )
    return "WWW-Authenticate names Bearer"


# -- access requests

GET_REQUESTS_SECTION = "GET /access-requests"
GET_REQUEST_SECTION = "GET /access-requests/{requestId}"
GET_CREDENTIALS_SECTION = "GET /access-requests/{requestId}/credentials"
POST_REQUEST_SECTION = "POST /access-requests"


@requirement("must", "POST {auth_url}/oauth/token", "Response: the OAuth code-exchange response.")
def oauth_exchange(probe: Probe) -> str:
    if probe.flow is None or probe.redirected is None:
        raise NotTriedError("a user has to authorize the application: give --authorize")
    tokens = probe.flow.exchange(probe.redirected)
    probe.memory_key = tokens.memory_key
    probe.transport.mask(tokens.memory_key)
    missing = [name for name in ("expires_in", "refresh_token") if not getattr(tokens, name)]
    if missing:
        raise UnmetError(f"{' and '.join(missing)} missing")
    return "all five fields"


@requirement("needed", "POST {auth_url}/oauth/token", "OAuth 2.0 code exchange")
def oauth_wrong_code(probe: Probe) -> str:
    if probe.flow is None:
        raise NotTriedError("it needs the client's id and secret: give --authorize")
    try:
        probe.flow.exchange(f"wrong-{uuid4().hex}")
    except (OAuthError, AuthError):
        return "a wrong code is refused as RFC 6749, section 5.2, says"
    raise UnmetError("a wrong code gets tokens")


@requirement("must", POST_REQUEST_SECTION, "Response: AccessRequest with `status` `pending`.")
def request_created(probe: Probe) -> str:
    probe.require_writing()
    if probe.memory_key is None:
        raise NotTriedError("it makes a request that stays: give --memory-key-file or --authorize")
    body = {"memoryKey": probe.memory_key.reveal(), "reason": "Conformance check of the service"}
    answer = probe.send(wire.CREATE_REQUEST, body=body).require_success()
    created = answer.record(REQUEST_FIELDS)
    probe.new_request_id = created["id"]
    shown = probe.transport.printable(created["id"])
    probe.left_behind.append(f"the access request {shown} stays: no call of the protocol withdraws one")
    if created["status"] != "pending":
        raise UnmetError("its status is not pending")
    if created["memoryKey"] != body["memoryKey"] or created.get("reason") != body["reason"]:
        raise UnmetError("memoryKey or reason differ from those that were sent")
    return f"answered {answer.status}"


@requirement("must", "States and transitions", "`updatedAt` changes; credentials become retrievable.")
def approval(probe: Probe) -> str:
    if probe.wait_s is None or probe.new_request_id is None:
        raise NotTriedError(
            "a user has to approve a new request: give --wait, with --write and --memory-key-file"
        )
    request_id = probe.new_request_id
    before = probe.send(wire.GET_REQUEST, request_id=request_id).require(200).record(REQUEST_FIELDS)
    client = Client(probe.base_url, probe.api_key, transport=probe.transport)
    try:
        wait_for_decision(client, request_id, timeout_s=probe.wait_s)
    except DecisionTimeout:
        raise NotTriedError(f"nobody has decided within {probe.wait_s:g} s") from None
    after = probe.send(wire.GET_REQUEST, request_id=request_id).require(200).record(REQUEST_FIELDS)
    if before["status"] == "pending" and before["updatedAt"] == after["updatedAt"]:
        raise UnmetError("updatedAt has not changed")
    probe.request_id = probe.request_id or request_id
    return f"{after['status']}, with another updatedAt"


@requirement(
    "must",
    GET_REQUESTS_SECTION,
    "Response: object with `items` (array of AccessRequest) and `total` (integer).",
)
def requests_listed(probe: Probe) -> str:
    answer = probe.send(wire.LIST_REQUESTS).require(200)
    probe.requests = answer.records("items", REQUEST_FIELDS)
    total = answer.record({"total": "integer"})["total"]
    if total < len(probe.requests):
        raise UnmetError(f"total is {total}, below the number of items, {len(probe.requests)}")
    return f"{number_of(len(probe.requests), 'request', 'requests')}, total {total}"


@requirement("must", GET_REQUEST_SECTION, "Response 200: AccessRequest.")
def request_read(probe: Probe) -> str:
    approved = (each["id"] for each in probe.requests or () if each["status"] == "approved")
    request_id = probe.request_id or next(approved, None)
    if request_id is None:
        raise NotTriedError("there is no approved access request: give --request ID once a user has approved")
    answer = probe.send(wire.GET_REQUEST, request_id=request_id).require(200)
    found = require_same(answer.record(REQUEST_FIELDS), id=request_id)
    if found["status"] == "approved":
        probe.access_request = found
    return f"status {found['status']}"


@requirement("must", "Errors", "No access request with that id.")
def unknown_request(probe: Probe) -> str:
    probe.send(wire.GET_REQUEST, request_id=str(uuid4())).require(404)
    return "answered 404"


@requirement("must", "Errors", "The request does not belong to the authenticated developer.")
def foreign_request(probe: Probe) -> str:
    if probe.other_request_id is None:
        raise NotTriedError("it needs the id of another developer's request: give --other-request ID")
    probe.send(wire.GET_REQUEST, request_id=probe.other_request_id).require(403)
    return "answered 403"


@requirement("must", "States and transitions", "for `pending`, `rejected` or `revoked` it answers 403")
def credentials_withheld(probe: Probe) -> str:
    undecided = {each["status"]: each["id"] for each in probe.requests or () if each["status"] != "approved"}
    if not undecided:
        raise NotTriedError("the developer has no request that is pending, rejected or revoked")
    for request_id in undecided.values():
        probe.send(wire.GET_CREDENTIALS, request_id=request_id).require(403)
    return f"403 for {', '.join(sorted(undecided))}"


@requirement("must", GET_CREDENTIALS_SECTION, "Response 200: credentials object.")
def credentials_given(probe: Probe) -> str:
    request_id = probe.request["id"]
    answer = probe.send(wire.GET_CREDENTIALS, request_id=request_id).require(200)
    found = answer.record(CREDENTIALS_FIELDS)
    probe.transport.mask(Secret(found["memory_key"]), Secret(found["encryption_key"]))
    probe.credentials = found
    n_bits = len(found["encryption_key"]) * 4
    return f"an encryption_key of {n_bits} bits, key_version {found['key_version']}"


@requirement("must", "Resources and their fields", "The user's memory key; the same as in the request.")
def credentials_of_request(probe: Probe) -> str:
    request, keys = probe.request, probe.keys
    if keys["memory_key"] != request["memoryKey"]:
        raise UnmetError("memory_key differs from the memoryKey of the request")
    if request.get("user_id") is None:
        raise UnmetError("the approved request has no user_id")
    require_same(request, user_id=keys["user_id"])
    return "memory_key and user_id are those of the request"


# -- create

POST_MEMORY_SECTION = "POST /memory-blobs"


def _create(probe: Probe, **fields: Any) -> Reply:
    """Create a memory with scores and a source."""
    sent = {"source": "memframe-check", "importance": 0.75, "confidence": 0.5, **fields}
    return probe.create({**probe.identity, **sent})


@requirement("must", POST_MEMORY_SECTION, "Response 201: MemoryBlobResponse (no content).")
def created(probe: Probe) -> str:
    probe.require_writing()
    tags = probe.send(wire.LIST_TAGS, params=probe.user)
    names = [each["name"] for each in tags.records("items", {"name": "text"})] if tags.is_success else []
    probe.tag_names = [name for name in names if "," not in name][:2]
    sealed = probe.envelope().seal(f"{probe.marker}content drinks green tea")
    texts = {"title": f"{probe.marker}title", "summary": f"{probe.marker}summary", "content": sealed}
    answer = _create(probe, **texts, tags=probe.tag_names[:1])
    for importance in (0.25, 0.5):
        more = _create(
            probe, title=f"{probe.marker} {importance}", content="Likes plain tea", importance=importance
        )
        more.require(201)
    record = answer.require(201).record(BLOB_RESPONSE_FIELDS)
    require_same(record, **probe.user)
    if "content" in record:
        raise UnmetError("the answer has content")
    if record["id"] not in probe.created:
        raise UnmetError("the id of the answer does not lead to the memory that was created")
    _require_fields(record, probe.created[record["id"]])
    return "three memories created, to be deleted again"


def _require_fields(record: JsonObject, sent: JsonObject) -> None:
    """Refuse a record whose fields differ from those that were sent; content is compared elsewhere."""
    different = [name for name in sent if name != "content" and record.get(name) != sent[name]]
    if different:
        raise UnmetError(f"{', '.join(sorted(different))} not as sent")


@requirement(
    "must", POST_MEMORY_SECTION, "Plaintext or content pre-encrypted with the user's `encryption_key`"
)
def created_is_read(probe: Probe) -> str:
    sent = probe.own_memory
    record = _read_own(probe)
    _require_fields(record, sent)
    if record["content"] == sent["content"]:
        return "sealed content comes back as it was sent"
    if probe.envelope().open(record["content"]) in {sent["content"], probe.envelope().open(sent["content"])}:
        return "sealed content was sealed again by the service"
    raise UnmetError("the content that comes back is not the one that was sent")


def _read_own(probe: Probe) -> JsonObject:
    answer = probe.send(wire.GET_MEMORY, params=probe.user, memory_id=probe.own_memory["id"])
    return require_same(answer.require(200).record(BLOB_FIELDS), id=probe.own_memory["id"], **probe.user)


@requirement("must", POST_MEMORY_SECTION, "names that do not exist are created")
def tag_created(probe: Probe) -> str:
    probe.require_writing()
    if probe.new_tag is None:
        raise NotTriedError("it makes a tag that stays, as no call deletes one: give --new-tag NAME")
    answer = _create(probe, title=f"{probe.marker} tag", content="Likes tagged tea", tags=[probe.new_tag])
    record = answer.require(201).record(BLOB_RESPONSE_FIELDS)
    listed = probe.send(wire.LIST_TAGS, params=probe.user).require(200).records("items", TAG_FIELDS)
    probe.left_behind.append(f"the tag {printable(probe.new_tag)} stays: no call of the protocol deletes one")
    if record.get("tags") != [probe.new_tag] or probe.new_tag not in {tag["name"] for tag in listed}:
        raise UnmetError("the memory or the list of tags does not have it")
    return "the tag is on the memory and in the list"


@requirement("must", POST_MEMORY_SECTION, "user_id | string (uuid) | yes")
def create_requires(probe: Probe) -> str:
    probe.require_writing()
    whole = {**probe.identity, "content": "Likes tea", "title": f"{probe.marker} incomplete"}
    taken = []
    for name in ("user_id", "memoryKey", "content"):
        body = {field: value for field, value in whole.items() if field != name}
        if probe.create(body).is_success:
            taken.append(name)
    if taken:
        raise UnmetError(f"a body without {', '.join(taken)} is accepted")
    return "refused without user_id, without memoryKey and without content"


@requirement("needed", POST_MEMORY_SECTION, "The user's memory key.")
def wrong_memory_key(probe: Probe) -> str:
    probe.require_writing()
    body = {
        **probe.identity,
        "memoryKey": f"wrong-{uuid4().hex}",
        "content": "x",
        "title": f"{probe.marker} key",
    }
    return probe.create(body).require_refusal()


@requirement("must", "Authentication", "Every other API endpoint uses the scheme HTTP bearer")
def token_required_to_write(probe: Probe) -> str:
    memory_id = probe.own_memory["id"]
    body = {**probe.identity, "title": f"{probe.marker} no token"}
    answers = {
        str(wire.CREATE_MEMORY): probe.create({**body, "content": "x"}, is_anonymous=True),
        str(wire.UPDATE_MEMORY): probe.send(
            wire.UPDATE_MEMORY, body=body, is_anonymous=True, memory_id=memory_id
        ),
        str(wire.DELETE_MEMORY): probe.send(
            wire.DELETE_MEMORY, params=probe.user, is_anonymous=True, memory_id=memory_id
        ),
    }
    _refuse_open(answers)
    return "writes without it are refused"


# -- list

LIST = "GET /memory-blobs"
LIMITS = "Limits"


@requirement(
    "must", LIST, "object with `memoryBlobs` (array of MemoryBlob, content encrypted) and `next_cursor`"
)
def listed(probe: Probe) -> str:
    answer = probe.list_page().require(200)
    records = answer.records("memoryBlobs", BLOB_FIELDS)
    if "next_cursor" not in answer.document:
        raise UnmetError("next_cursor is missing; it is null on the last page")
    answer.record({"next_cursor": "text?"})
    probe.memories = records
    return f"{number_of(len(records), 'memory', 'memories')}, all fields of their kinds"


@requirement("must", LIST, "User whose memories are listed.")
def listed_of_user(probe: Probe) -> str:
    strange = [
        each for each in probe.known_memories if each["user_id"].lower() != probe.keys["user_id"].lower()
    ]
    if strange:
        raise UnmetError(f"{number_of(len(strange), 'memory', 'memories')} of another user in the list")
    return f"{number_of(len(probe.known_memories), 'memory', 'memories')}, all of this user"


@requirement("must", "Authentication", "Access to a user's memory requires an approved access request.")
def other_user(probe: Probe) -> str:
    answer = probe.send(wire.LIST_MEMORIES, params={"user_id": str(uuid4())})
    if answer.is_success and answer.record({"memoryBlobs": "list"})["memoryBlobs"]:
        raise UnmetError("memories are listed for a user who has approved nothing")
    return "lists nothing" if answer.is_success else answer.require_refusal()


@requirement("must", LIST, "user_id | string | yes")
def list_requires_user(probe: Probe) -> str:
    return probe.send(wire.LIST_MEMORIES, params={}).require_refusal()


@requirement("must", LIMITS, "Default page size of GET /memory-blobs (`limit`) | 10")
def default_limit(probe: Probe) -> str:
    n_listed = len(probe.known_memories)
    if n_listed > wire.DEFAULT_LIMIT:
        raise UnmetError(f"{n_listed} memories on a page without limit")
    return f"{n_listed} on a page without limit"


@requirement("must", LIST, "Maximum results per page; default 10.")
def limit(probe: Probe) -> str:
    if len(probe.known_memories) < 2:
        raise NotTriedError("the user has fewer than two memories; --write creates some")
    n_listed = len(probe.list_page(limit="1").require(200).records("memoryBlobs", {"id": "text"}))
    if n_listed != 1:
        raise UnmetError(f"limit=1 gives {n_listed}")
    return "limit=1 gives one"


@requirement("must", LIST, "null when there is no further page")
def cursors_end(probe: Probe) -> str:
    size = max(1, min(PAGE, len(probe.known_memories) // 2))
    paged = [*probe.pages(size)]
    if len(paged) < 2:
        raise NotTriedError("all memories are on one page; --write creates some")
    probe.paged, sizes = paged, [len(page) for page in paged]
    if any(n_listed > size for n_listed in sizes):
        raise UnmetError(f"limit={size} gives {max(sizes)}")
    return f"{len(sizes)} pages of {size}{', not read to the end' if len(sizes) == MAX_PAGES else ''}"


@requirement("needed", LIST, "Pagination cursor from a previous response.")
def each_memory_once(probe: Probe) -> str:
    if probe.paged is None:
        raise NotTriedError("the pages could not be read, or there is only one")
    ids = [each["id"] for page in probe.paged for each in page]
    if len(ids) != len(set(ids)):
        raise UnmetError(f"{len(ids) - len(set(ids))} of {len(ids)} memories come twice over the pages")
    missing = {each["id"] for each in probe.known_memories} - set(ids)
    if missing and len(probe.paged) < MAX_PAGES:
        raise UnmetError(f"{number_of(len(missing), 'memory', 'memories')} of the first page left out")
    return f"{number_of(len(ids), 'memory', 'memories')}, each once"


@requirement("must", LIST, "Comma-separated tag names to filter by.")
def tags_filter(probe: Probe) -> str:
    tagged = [name for each in probe.known_memories for name in each.get("tags") or () if "," not in name]
    if not tagged:
        raise NotTriedError("no memory of the first page has a tag")
    found = probe.find(tags=tagged[0])
    if not found:
        raise UnmetError("a tag that a memory has finds none")
    n_others = sum(tagged[0] not in (each.get("tags") or ()) for each in found)
    if n_others:
        raise UnmetError(f"{n_others} of {len(found)} memories do not have the tag")
    return f"finds {number_of(len(found), 'memory', 'memories')}, all with the tag"


@requirement("must", LIST, "Minimum importance score, 0.0 to 1.0.")
def importance_filter(probe: Probe) -> str:
    scores = [each["importance"] for each in probe.known_memories if each.get("importance") is not None]
    lowest = max((score for score in scores if score <= 1), default=None)
    if lowest is None:
        raise NotTriedError("no memory of the first page has an importance of 0 to 1")
    found = probe.find(importance=f"{lowest:g}")
    n_below = sum((each.get("importance") or 0) < lowest for each in found)
    if not found or n_below:
        raise UnmetError(f"{n_below} of {len(found)} memories are below" if found else "it finds none")
    return f"finds {number_of(len(found), 'memory', 'memories')}, none below"


@requirement("must", LIST, "Search term matched against title, summary and content.")
def search(probe: Probe) -> str:
    if probe.find(searchQuery=f"nowhere{uuid4().hex}"):
        raise UnmetError("a word that no memory has finds some")
    if not probe.writes:
        words = re.findall(r"\w{4,}", " ".join(each.get("title") or "" for each in probe.known_memories))
        if not words:
            raise NotTriedError("no memory of the first page has a title; --write creates some")
        if not probe.find(searchQuery=max(words, key=len)):
            raise UnmetError("a word of a title finds none")
        return "finds a word of a title; --write tries summary and content"
    own_id = probe.own_memory["id"]
    missed = [
        field
        for field in ("title", "summary", "content")
        if own_id not in {each["id"] for each in probe.find(searchQuery=f"{probe.marker}{field}")}
    ]
    if missed:
        raise UnmetError(f"words are not found in {', '.join(missed)}")
    return "finds words of title, summary and content"


@requirement(
    "must", "Resources and their fields", "Encrypted on reads; decrypt with the user's `encryption_key`."
)
def content_is_sealed(probe: Probe) -> str:
    opened = probe.envelope().open_many([each["content"] for each in probe.known_memories])
    if opened.n_plain:
        raise UnmetError(f"{opened.n_plain} of {len(opened.plain)} contents are plain text")
    return f"{len(opened.plain)} contents, none in plain text"


@requirement("needed", "Resources and their fields", "Hexadecimal text of the user's symmetric key")
def content_opens(probe: Probe) -> str:
    envelope = probe.envelope()
    contents = [each["content"] for each in probe.known_memories]
    opened = envelope.open_many(contents)
    if opened.errors:
        raise UnmetError(
            f"{len(opened.errors)} of {len(contents)} contents open in no recognised layout: clients must know the "
            "layout, or how to open it"
        )
    return f"{len(contents)} contents open, in the layout {envelope.layout or 'of plain text'}"


# -- one memory

GET_MEMORY_SECTION = "GET /memory-blobs/{blobId}"
PATCH_SECTION = "PATCH /memory-blobs/{blobId}"
DELETE_SECTION = "DELETE /memory-blobs/{blobId}"


@requirement("must", GET_MEMORY_SECTION, "Response 200: one MemoryBlob (content encrypted).")
def memory_read(probe: Probe) -> str:
    known = probe.known_memories[0]
    answer = probe.send(wire.GET_MEMORY, params=probe.user, memory_id=known["id"])
    record = require_same(answer.require(200).record(BLOB_FIELDS), id=known["id"], **probe.user)
    different = sorted(
        name for name in BLOB_FIELDS if name != "content" and record.get(name) != known.get(name)
    )
    if different:
        raise UnmetError(f"{', '.join(different)} not as in the list")
    return "the same fields as in the list"


@requirement("needed", GET_MEMORY_SECTION, "blobId")
def unknown_memory(probe: Probe) -> str:
    return probe.send(wire.GET_MEMORY, params=probe.user, memory_id=str(uuid4())).require_refusal()


def _patch(probe: Probe, **fields: Any) -> tuple[JsonObject, JsonObject]:
    """Change fields of the check's own memory; return it as read before and after."""
    memory_id = probe.own_memory["id"]
    before = _read_own(probe)
    answer = probe.send(wire.UPDATE_MEMORY, body={**probe.identity, **fields}, memory_id=memory_id).require(
        200
    )
    record = require_same(answer.record(BLOB_RESPONSE_FIELDS), id=memory_id, **probe.user)
    if "content" in record:
        raise UnmetError("the answer has content")
    return before, _read_own(probe)


def _require_kept(probe: Probe, before: JsonObject, after: JsonObject, *changed: str) -> None:
    """Refuse a memory in which other fields than these have changed."""
    names = BLOB_FIELDS.keys() - {"content", "updated_at", *changed}
    lost = sorted(name for name in names if after.get(name) != before.get(name))
    if "content" not in changed:
        envelope = probe.envelope()
        if envelope.open(after["content"]) != envelope.open(before["content"]):
            lost.append("content")
    if lost:
        raise UnmetError(f"fields that were not sent have changed: {', '.join(lost)}")


@requirement("must", PATCH_SECTION, "Only fields sent are modified.")
def patch_keeps_others(probe: Probe) -> str:
    title = f"{probe.marker} another title"
    before, after = _patch(probe, title=title)
    if after.get("title") != title:
        raise UnmetError("the title that was sent is not read back")
    _require_kept(probe, before, after, "title")
    sealed = probe.envelope().seal("Drinks black tea")
    before, after = _patch(probe, content=sealed)
    if probe.envelope().open(after["content"]) not in {"Drinks black tea", sealed}:
        raise UnmetError("the content that was sent is not read back")
    _require_kept(probe, before, after, "content")
    return "the title alone, then the content alone"


@requirement("must", PATCH_SECTION, "A `tags` array replaces the whole existing tag list.")
def patch_replaces_tags(probe: Probe) -> str:
    probe.require_writing()
    names = probe.tag_names or [name for name in [probe.new_tag] if name]
    if not names:
        raise NotTriedError("the user has no tags, and a new one would stay: give --new-tag NAME")
    for tags in ([], names[-1:]):
        before, after = _patch(probe, tags=tags)
        if (after.get("tags") or []) != tags:
            raise UnmetError("the tags that were sent are not read back")
        _require_kept(probe, before, after, "tags", "tag_ids")
    return "with none, and with another"


@requirement("must", PATCH_SECTION, "Body: `user_id` and `memoryKey` required")
def patch_requires(probe: Probe) -> str:
    memory_id = probe.own_memory["id"]
    identity = probe.identity
    taken = [
        name
        for name in identity
        if probe.send(
            wire.UPDATE_MEMORY,
            body={"source": "memframe-check", **{each: identity[each] for each in identity if each != name}},
            memory_id=memory_id,
        ).is_success
    ]
    if taken:
        raise UnmetError(f"a body without {', '.join(taken)} is accepted")
    return "refused without user_id and without memoryKey"


@requirement("must", DELETE_SECTION, "Permanent and irreversible. Response: 200 or 204")
def deleted(probe: Probe) -> str:
    memory_id = probe.own_memory["id"]
    answer = probe.send(wire.DELETE_MEMORY, params=probe.user, memory_id=memory_id).require(200, 204)
    if answer.document is not None:
        answer.record({"success": "true"})
    again = probe.send(wire.GET_MEMORY, params=probe.user, memory_id=memory_id)
    if again.is_success:
        raise UnmetError("the memory can still be read")
    if memory_id in {each["id"] for each in probe.find(searchQuery=probe.marker)}:
        raise UnmetError("the memory is still listed")
    del probe.created[memory_id]
    return f"answered {answer.status}; a read of it is refused with {again.status}"


# -- tags

GET_TAGS_SECTION = "GET /tags"
GET_TAG_SECTION = "GET /tags/{tagId}"


@requirement("must", GET_TAGS_SECTION, "Response 200: object with `items` (array of Tag).")
def tags_listed(probe: Probe) -> str:
    probe.tags = probe.send(wire.LIST_TAGS, params=probe.user).require(200).records("items", TAG_FIELDS)
    return number_of(len(probe.tags), "tag", "tags")


@requirement("must", GET_TAG_SECTION, "Response 200: Tag.")
def tag_read(probe: Probe) -> str:
    if not probe.tags:
        raise NotTriedError("the user has no tags")
    known = probe.tags[0]
    answer = probe.send(wire.TAG, params=probe.user, tag_id=known["id"]).require(200)
    record = require_same(answer.record(TAG_FIELDS), id=known["id"])
    different = sorted(name for name in TAG_FIELDS if record.get(name) != known.get(name))
    if different:
        raise UnmetError(f"{', '.join(different)} not as in the list")
    return "the same fields as in the list"


@requirement("needed", "Resources and their fields", "Tag ids on the blob.")
def tag_ids_listed(probe: Probe) -> str:
    if probe.tags is None:
        raise NotTriedError("the tags could not be listed")
    names = {tag["id"]: tag["name"] for tag in probe.tags}
    tagged = [each for each in probe.known_memories if each.get("tag_ids")]
    if not tagged:
        raise NotTriedError("no memory of the first page has a tag")
    for each in tagged:
        if [names.get(tag_id) for tag_id in each["tag_ids"]] != list(each.get("tags") or ()):
            raise UnmetError("tag_ids of a memory are not the ids of its tags")
    return f"those of {number_of(len(tagged), 'memory', 'memories')} are the ids of their tags"


# -- where the specification is silent


@requirement("free", "Errors", "Error body shape, machine-readable error codes")
def error_body(probe: Probe) -> str:
    bodies = [answer for answer in probe.refusals if isinstance(answer.document, dict)]
    if not bodies:
        return "refusals have no JSON object"
    kinds = {answer.headers.get("Content-Type", "no type").partition(";")[0] for answer in bodies}
    names = sorted({name for answer in bodies for name in answer.document})
    return probe.transport.printable(f"{', '.join(sorted(kinds))}: {', '.join(names)}")


@requirement("free", LIMITS, "Maximum `limit`")
def greatest_limit(probe: Probe) -> str:
    answer = probe.list_page(limit="1000")
    return f"limit=1000 is {'accepted' if answer.is_success else f'refused with {answer.status}'}"


@requirement("free", LIMITS, "Rate limits")
def rate_limits(probe: Probe) -> str:
    headers = probe.send(wire.LIST_REQUESTS).headers
    named = sorted(name for name in headers if "ratelimit" in name.lower() or name.lower() == "retry-after")
    return f"headers {', '.join(map(probe.transport.printable, named))}" if named else "no headers about them"


@requirement(
    "free", "POST /access-requests", "Moves into `rejected` and `revoked`, and moves out of `approved`"
)
def statuses(probe: Probe) -> str:
    if probe.requests is None:
        raise NotTriedError("the access requests could not be listed")
    found = sorted({each["status"] for each in probe.requests})
    return f"requests of this developer are {', '.join(found)}" if found else "the developer has no requests"


@requirement("free", GET_TAGS_SECTION, "Query parameters of the tag list")
def tags_without_user(probe: Probe) -> str:
    answer = probe.send(wire.LIST_TAGS)
    return f"without user_id answered {answer.status}"
