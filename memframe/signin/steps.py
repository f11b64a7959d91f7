"""The steps on the way to open access: each leads from one stand to the next, and asks the service for it."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from msgspec.structs import replace

from memframe.access import ContentFormat, open_access
from memframe.client import Client
from memframe.errors import AccessError, ConfigError, MemframeError, NotFoundError
from memframe.load import load_memories, load_tags
from memframe.oauth import OAuthFlow
from memframe.progress import ProgressOption
from memframe.secret import Secret
from memframe.signin.stand import Stand
from memframe.signin.trouble import Step, trouble_of
from memframe.wire import AccessRequest, OAuthTokens

T = TypeVar("T")

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def signed_in(stand: Stand, client: Client) -> Stand:
    """The key is good: it gave a token."""
    return Stand(state="signed_in", flow=stand.flow, client=client, lookout=client.without_repeats())


def back(stand: Stand) -> Stand:
    """Signed in, and nothing more."""
    return replace(
        stand,
        state="signed_in",
        address=None,
        is_listening=False,
        tokens=None,
        request=None,
        access=None,
        memories=None,
        tags=None,
    )


def refreshed(stand: Stand, now: datetime) -> Stand:
    """All requests of the developer are known."""
    requests = sorted(brought(stand.lookout).access_requests(), key=_when, reverse=True)
    return replace(stand, requests=tuple(requests), looked_at=now)


def _when(request: AccessRequest) -> datetime:
    return request.created_at or _LONG_AGO


def flow_of(
    stand: Stand,
    client_id: str | None = None,
    client_secret: str | Secret | None = None,
    *,
    auth_url: str | None = None,
    redirect_uri: str | None = None,
) -> OAuthFlow:
    """The flow that was made before, or one of what is given and of the settings."""
    if stand.flow and not any((client_id, client_secret, auth_url, redirect_uri)):
        return stand.flow
    server = auth_url or brought(stand.client).auth_url
    return OAuthFlow(client_id, client_secret, auth_url=server, redirect_uri=redirect_uri)


def authorizing(stand: Stand, flow: OAuthFlow, address: str) -> Stand:
    """An attempt waits for its answer."""
    return replace(back(stand), state="authorizing", flow=flow, address=address)


def authorized(stand: Stand, tokens: OAuthTokens) -> Stand:
    """The user allowed the connection."""
    return replace(back(stand), state="authorized", tokens=tokens)


def exchanged(stand: Stand, answer: str | Secret) -> Stand:
    """The pasted answer was good for tokens."""
    return authorized(stand, brought(stand.flow).exchange(answer))


def asked(stand: Stand, reason: str, now: datetime) -> Stand:
    """Send a request, which the user then finds on the dashboard.

    Raises
    ------
    ConfigError
        The request that was chosen comes without its memory key.
    """
    if stand.memory_key is None:
        raise ConfigError(
            "the service tells no memory key with this request: authorize() the user again, and then ask()"
        )
    return following(stand, brought(stand.client).create_access_request(stand.memory_key, reason), now)


def chosen(stand: Stand, request_id: str, now: datetime) -> Stand:
    """An existing request is the one."""
    return following(back(stand), brought(stand.lookout).access_request(request_id), now)


def checked(stand: Stand, now: datetime) -> Stand:
    """The status of the request is known again."""
    return following(stand, brought(stand.lookout).access_request(brought(stand.request).id), now)


def following(stand: Stand, request: AccessRequest, now: datetime) -> Stand:
    """Where the status of the request leads; an access stays open only while the request is approved."""
    stand = replace(stand, request=request, looked_at=now)
    if stand.access is not None and request.status == "approved":
        return stand
    return replace(stand, state=request.status, access=None)


def opened(stand: Stand, content_format: ContentFormat) -> Stand:
    """The keys to the memories are here."""
    access = open_access(brought(stand.client), brought(stand.request).id, content_format=content_format)
    return replace(stand, state="ready", access=access)


def loaded(stand: Stand, progress: ProgressOption) -> Stand:
    """The memories and tags are here."""
    access = brought(stand.access)
    memories = load_memories(access, progress=progress)
    return replace(stand, state="loaded", memories=memories, tags=load_tags(access))


def failed(step: Step, stand: Stand, error: Exception, now: datetime) -> Stand:
    """As it was, with the trouble.

    A used-up attempt is replaced by a new one, a revocation is noticed, and a user whose memory key is not
    accepted any more is to be connected again.
    """
    if step in {"open", "load"} and isinstance(error, AccessError):
        with suppress(MemframeError):  # then the first error is all that is known
            looked = checked(stand, now)
            if looked.state != stand.state:
                return looked
    if step == "ask" and stand.state != "authorized" and isinstance(error, AccessError | NotFoundError):
        return replace(back(stand), trouble=trouble_of(step, error, memory_key_is_old=True))
    if stand.flow and (step == "receive" or (step == "finish" and not stand.flow.is_open)):
        stand = authorizing(stand, stand.flow, stand.flow.authorization_url())
    return replace(stand, trouble=trouble_of(step, error))


def brought(value: T | None) -> T:
    """What an earlier step has brought: without it no state allows the step that needs it."""
    assert value is not None  # noqa: S101 - see above
    return value
