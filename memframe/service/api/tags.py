"""``/tags``: the labels of a user's memories, to read."""

from __future__ import annotations

from litestar import Response, get
from litestar.params import FromPath

from memframe import wire
from memframe.service.api.exchange import ApiRequest, answer, deployment_of, developer_of, needed_query, route
from memframe.service.rules import checked_text


@get(route(wire.LIST_TAGS), sync_to_thread=False)
def list_tags(request: ApiRequest) -> Response[bytes]:
    """All tags of a user, by name."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    user_id = needed_query(request, "user_id")
    with deployment.store.granted(developer_id=developer_id, user_id=user_id) as memories:
        return answer(wire.TagList(memories.tags()))


@get(route(wire.TAG), sync_to_thread=False)
def get_tag(request: ApiRequest, tag_id: FromPath[str]) -> Response[bytes]:
    """One tag of a user."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    user_id = needed_query(request, "user_id")
    with deployment.store.granted(developer_id=developer_id, user_id=user_id) as memories:
        return answer(memories.tag(checked_text(tag_id, "the tag id")))


TAG_ROUTES = [list_tags, get_tag]
