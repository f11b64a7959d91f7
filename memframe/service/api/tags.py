"""``/tags``: the labels of a user's memories, to read."""

from __future__ import annotations

from litestar import Response, get
from litestar.params import FromPath

from memframe import wire
from memframe.service.api.exchange import (
    ApiRequest,
    answer,
    bearer_of,
    deployment_of,
    needed_query,
    quick_read,
    route,
)
from memframe.service.rules import checked_text


@get(route(wire.LIST_TAGS))
@quick_read
def list_tags(request: ApiRequest) -> Response[bytes]:
    """All tags of a user, by name."""
    developer_id, user_id = bearer_of(request), needed_query(request, "user_id")
    memories = deployment_of(request).store.granted(developer_id=developer_id, user_id=user_id)
    return answer(wire.TagList(memories.tags.all()))


@get(route(wire.TAG))
@quick_read
def get_tag(request: ApiRequest, tag_id: FromPath[str]) -> Response[bytes]:
    """One tag of a user."""
    developer_id, user_id = bearer_of(request), needed_query(request, "user_id")
    memories = deployment_of(request).store.granted(developer_id=developer_id, user_id=user_id)
    return answer(memories.tags.get(checked_text(tag_id, "the tag id")))


TAG_ROUTES = [list_tags, get_tag]
