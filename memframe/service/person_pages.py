"""Pages with which people look through their memories, take them along, delete them, and see who used them.

Each deletion has a page of its own that says what will go: of all memories it asks for their number, which has to be
right still, and of the account for the password.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.params import FromPath, RawBody
from litestar.response import Stream

from memframe.service import person
from memframe.service.api import deployment_of
from memframe.service.logs import log_event
from memframe.service.pages import ACCOUNT, ACTIVITY, MEMORIES, TAGS, Visit, WebRequest, page_headers
from memframe.service.store.memories import MemoryFilter
from memframe.service.validation import check_text

MEMORIES_PER_PAGE = 20
TAGS_PER_PAGE = 100
DAYS_PER_PAGE = 50

_MEDIA_TYPES = {".json": "application/json", ".md": "text/markdown; charset=utf-8"}


@get(MEMORIES, include_in_schema=False)
async def show_memories(request: WebRequest) -> Response[Any]:
    """Show memories, all or those that a search or a tag chooses, the latest first."""
    visit = await sync_to_thread(Visit, request)
    user = visit.require_user(then=MEMORIES)
    if not request.query_params.get("q"):
        return await sync_to_thread(_memories_page, visit, request)
    searches = request.app.state.searches  # it may take long
    page: Response[Any] = await searches.run(f"user {user.id}", partial(_memories_page, visit, request))
    return page


def _memories_page(visit: Visit, request: WebRequest) -> Response[Any]:
    user, asked = visit.require_user(), request.query_params
    words, tag = (check_text(asked.get(name, ""), "the search").strip() for name in ("q", "tag"))
    cursors = visit.site.deployment.cursors
    chosen = MemoryFilter(user.id, (tag,) if tag else (), words.casefold(), newest_first=True)
    after = cursors.open(asked["after"], chosen) if asked.get("after") else chosen.start
    page, has_more = person.list_memories(visit.site.deployment, chosen, after=after, limit=MEMORIES_PER_PAGE)
    kept = {name: value for name, value in (("q", words), ("tag", tag)) if value}
    further = urlencode({**kept, "after": cursors.seal(page[-1][0], chosen)}) if has_more else None
    return visit.page(
        "memories.html",
        memories=[memory for _, memory in page],
        total=person.count_memories(visit.site.deployment, user.id),
        words=words,
        tag=tag,
        is_later="after" in asked,
        first=urlencode(kept),
        further=further,
    )


@get(f"{MEMORIES}.json", include_in_schema=False, sync_to_thread=True)
def download_json(request: WebRequest) -> Response[Any]:
    """Send all memories and tags as JSON."""
    return _download(request, ".json")


@get(f"{MEMORIES}.md", include_in_schema=False, sync_to_thread=True)
def download_markdown(request: WebRequest) -> Response[Any]:
    """Send all memories as Markdown."""
    return _download(request, ".md")


def _download(request: WebRequest, ending: str) -> Response[Any]:
    """Send a file that is made while it is sent."""
    user = Visit(request).require_user(then=ACCOUNT)
    headers = page_headers() | {"Content-Disposition": f'attachment; filename="memories{ending}"'}
    made = person.EXPORTS[ending](deployment_of(request), user)
    return Stream(made, media_type=_MEDIA_TYPES[ending], headers=headers)


@get(f"{MEMORIES}/{{memory_id:str}}/delete", include_in_schema=False, sync_to_thread=True)
def ask_deletion(request: WebRequest, memory_id: FromPath[str]) -> Response[Any]:
    """Show a memory, and ask whether it shall be deleted."""
    visit = Visit(request)
    user = visit.require_user(then=MEMORIES)
    memory = person.find_memory(deployment_of(request), user.id, check_text(memory_id, "the memory id"))
    return visit.page("delete_memory.html", memory=memory)


@post(f"{MEMORIES}/{{memory_id:str}}/delete", include_in_schema=False, sync_to_thread=True)
def delete_memory(request: WebRequest, memory_id: FromPath[str], body: RawBody) -> Response[Any]:
    """Delete a memory for good."""
    visit = Visit(request)
    visit.read_form(body)
    user = visit.require_user()
    person.delete_memory(deployment_of(request), user.id, check_text(memory_id, "the memory id"))
    log_event("memory deleted by its user", user_id=user.id, address=visit.address)
    return visit.redirect(MEMORIES)


@get(f"{MEMORIES}/delete-all", include_in_schema=False, sync_to_thread=True)
def ask_deletion_of_all(request: WebRequest) -> Response[Any]:
    """Ask whether all memories and tags shall be deleted."""
    visit = Visit(request)
    visit.require_user(then=MEMORIES)
    return _delete_all_page(visit)


@post(f"{MEMORIES}/delete-all", include_in_schema=False, sync_to_thread=True)
def delete_memories(request: WebRequest, body: RawBody) -> Response[Any]:
    """Delete all memories and tags, if the number of memories is the one that was typed."""
    visit = Visit(request)
    form, user = visit.read_form(body), visit.require_user()
    typed = re.sub(r"[\s,.]", "", form.get("number", ""))
    if not (typed.isascii() and typed.isdecimal() and len(typed) < 20):
        return _delete_all_page(visit, refusal="Type the number of your memories.")
    if not person.delete_memories(deployment_of(request), user.id, expected=int(typed)):
        refusal = "That is not the number of your memories; it may have changed in the meantime. Nothing was deleted."
        return _delete_all_page(visit, refusal=refusal)
    log_event("all memories deleted by their user", user_id=user.id, address=visit.address)
    return visit.redirect(MEMORIES)


def _delete_all_page(visit: Visit, *, refusal: str | None = None) -> Response[Any]:
    total = person.count_memories(visit.site.deployment, visit.require_user().id)
    return visit.page("delete_all.html", status=403 if refusal else 200, total=total, refusal=refusal)


@get(TAGS, include_in_schema=False, sync_to_thread=True)
def show_tags(request: WebRequest) -> Response[Any]:
    """Show tags, by name."""
    visit = Visit(request)
    user, number = visit.require_user(then=TAGS), _page_number(request)
    tags = person.list_tags(deployment_of(request), user.id)
    some = tags[(number - 1) * TAGS_PER_PAGE : number * TAGS_PER_PAGE]
    has_more = len(tags) > number * TAGS_PER_PAGE
    return visit.page("tags.html", tags=some, total=len(tags), number=number, has_more=has_more)


@get(ACTIVITY, include_in_schema=False, sync_to_thread=True)
def show_activity(request: WebRequest) -> Response[Any]:
    """Show how many memories each application has read and changed, by day, the latest first."""
    visit = Visit(request)
    user, number = visit.require_user(then=ACTIVITY), _page_number(request)
    offset = (number - 1) * DAYS_PER_PAGE
    found, has_more = visit.store.activity.of_user(user.id, offset=offset, limit=DAYS_PER_PAGE)
    return visit.page("activity.html", days=found, number=number, has_more=has_more)


def _page_number(request: WebRequest) -> int:
    """Return the page that is asked for, from 1 on."""
    asked = request.query_params.get("page", "1")
    return int(asked) if re.fullmatch("[1-9][0-9]{0,5}", asked, re.ASCII) else 1


@get(ACCOUNT, include_in_schema=False, sync_to_thread=True)
def show_account(request: WebRequest) -> Response[Any]:
    """Show what people can do with their account."""
    visit = Visit(request)
    user = visit.require_user(then=ACCOUNT)
    total = person.count_memories(visit.site.deployment, user.id)
    return visit.page("account.html", created_at=user.created_at, total=total)


@get(f"{ACCOUNT}/delete", include_in_schema=False, sync_to_thread=True)
def ask_erasure(request: WebRequest) -> Response[Any]:
    """Say what the deletion of an account deletes, and ask for the password."""
    visit = Visit(request)
    visit.require_user(then=ACCOUNT)
    return visit.page("delete_account.html", refusal=None)


@post(f"{ACCOUNT}/delete", include_in_schema=False)
async def erase_account(request: WebRequest, body: RawBody) -> Response[Any]:
    """Delete the account and answer with the receipt; few at once, as argon2id takes memory."""
    async with request.app.state.site.password_checks.slot():
        return await sync_to_thread(_erase_account, request, body)


def _erase_account(request: WebRequest, body: bytes) -> Response[Any]:
    visit = Visit(request)
    form, user = visit.read_form(body), visit.require_user()
    if not visit.check_password(user.email, form.get("password", ""), user.password_hash):
        log_event("deletion of an account refused", user_id=user.id, address=visit.address)
        refusal = "The password is wrong. Nothing was deleted."
        return visit.page("delete_account.html", status=403, refusal=refusal)
    receipt = deployment_of(request).erase_user(user.id)
    visit.sign_out()
    answer = visit.page("receipt.html", receipt=receipt, email_of_erased=user.email)
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'
    return answer


PERSON_ROUTES = [
    show_memories, download_json, download_markdown, ask_deletion, delete_memory, ask_deletion_of_all, delete_memories,
    show_tags, show_activity, show_account, ask_erasure, erase_account,
]  # fmt: skip
