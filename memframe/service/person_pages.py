"""Pages on which people browse, download and delete their memories, and see who used them.

The pages need no grant: they are for the signed-in user, and `EXPORTS` also for the operator on the user's behalf. Each
deletion has its own page, which says what will be deleted. To delete all memories, the user types their number, which
must still be right; to delete the account, the password. A memory that the user deletes leaves no tombstone, so that no
application can restore it under its id.

A download is made while it is sent, some memories at a time, so that memories created meanwhile may be missing. Texts
are exported unchanged; in Markdown they are in fences longer than any within them, so that they cannot break out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from litestar.params import FromPath, RawBody
from litestar.response import Stream
from litestar.types import Receive, Scope, Send
from msgspec import structs

from memframe.fields import MEMORY_FIELDS, MemoryField
from memframe.service.clock import format_instant
from memframe.service.deployment import Deployment
from memframe.service.logs import log_event
from memframe.service.pages import (
    ACCOUNT_PAGE,
    ACTIVITY_PAGE,
    MEMORIES_PAGE,
    TAGS_PAGE,
    Visit,
    checks_password,
    page_headers,
)
from memframe.service.store.accounts import User
from memframe.service.store.listing import MemoryFilter
from memframe.service.store.memories import Memories
from memframe.service.throttle import BoundedPool
from memframe.service.validation import check_text
from memframe.wire import MemoryBlob

MEMORIES_PER_PAGE = 20
TAGS_PER_PAGE = 100
DAYS_PER_PAGE = 50

EXPORT_BATCH = 100
EXPORT_BYTES = 2**18
"""A page of a download ends with the memory that makes it this large; the next is read once the client took it."""

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$-])")


EXPORTED = tuple(field.name for field in MEMORY_FIELDS if field.is_exported)
"""Fields in the download of a person."""

_LISTED = tuple(
    field for field in MEMORY_FIELDS if field.is_editable and field.name not in ("title", "content")
)
"""Fields that the Markdown of a memory lists between its heading and its text."""

_DETAILS = tuple(field for field in MEMORY_FIELDS if field.is_editable and not field.is_placed)


class OwnMemory(MemoryBlob, frozen=True):
    """A memory as its owner reads it: `content` is plain, and None if no key opens it."""

    @property
    def details(self) -> list[tuple[str, str]]:
        """Names and values of the fields for which the page has no special place."""
        return [(name, str(value)) for name, value in _label(self, _DETAILS) if value not in (None, "", ())]


def _label(memory: OwnMemory, fields: Iterable[MemoryField]) -> Iterator[tuple[str, Any]]:
    return ((field.label, getattr(memory, field.name)) for field in fields)


def _open(user_store: Memories, memories: list[MemoryBlob]) -> list[OwnMemory]:
    opened = zip(memories, user_store.open_contents(memories), strict=True)
    return [OwnMemory(**structs.asdict(memory) | {"content": content}) for memory, content in opened]


@get(MEMORIES_PAGE)
async def show_memories(visit: NamedDependency[Visit]) -> Response[Any]:
    """Show memories, all or those that a search or a tag chooses, the latest first."""
    user = visit.require_user(then=MEMORIES_PAGE)
    if not visit.asked.get("q"):
        return await sync_to_thread(_memories_page, visit, user)
    searches: BoundedPool = visit.request.app.state.searches  # it may take long
    return await searches.run(f"user {user.id}", partial(_memories_page, visit, user))


def _memories_page(visit: Visit, user: User) -> Response[Any]:
    words, tag = (check_text(visit.asked.get(name, ""), "the search").strip() for name in ("q", "tag"))
    chosen = MemoryFilter(user.id, (tag,) if tag else (), words.casefold(), newest_first=True)
    with visit.store.snapshot_of(user.id) as user_store:
        page = user_store.page(chosen, cursor=visit.asked.get("after"), limit=MEMORIES_PER_PAGE)
        memories, total = _open(user_store, page.memory_blobs), user_store.count()
    kept = {name: value for name, value in (("q", words), ("tag", tag)) if value}
    further = urlencode({**kept, "after": page.next_cursor}) if page.next_cursor else None
    return visit.page(
        "memories.html",
        memories=memories,
        total=total,
        words=words,
        tag=tag,
        is_later="after" in visit.asked,
        first=urlencode(kept),
        further=further,
    )


@get(f"{MEMORIES_PAGE}/{{memory_id:str}}/delete", sync_to_thread=True)
def ask_deletion(visit: NamedDependency[Visit], memory_id: FromPath[str]) -> Response[Any]:
    """Show a memory, and ask whether it shall be deleted."""
    user = visit.require_user(then=MEMORIES_PAGE)
    with visit.store.snapshot_of(user.id) as user_store:
        (memory,) = _open(user_store, [user_store.get(check_text(memory_id, "the memory id"))])
    return visit.page("delete_memory.html", memory=memory)


@post(f"{MEMORIES_PAGE}/{{memory_id:str}}/delete", sync_to_thread=True)
def delete_own_memory(
    visit: NamedDependency[Visit], memory_id: FromPath[str], body: RawBody
) -> Response[Any]:
    _, user = visit.read_form(body), visit.require_user()
    check_text(memory_id, "the memory id")
    with visit.store.transaction_of(user.id) as user_store:
        user_store.delete(memory_id)
    log_event("memory deleted by its user", user_id=user.id, address=visit.address)
    return visit.redirect(MEMORIES_PAGE)


@get(f"{MEMORIES_PAGE}/delete-all", sync_to_thread=True)
def ask_deletion_of_all(visit: NamedDependency[Visit]) -> Response[Any]:
    """Ask whether all memories and tags shall be deleted."""
    return _delete_all_page(visit)


@post(f"{MEMORIES_PAGE}/delete-all", sync_to_thread=True)
def delete_memories(visit: NamedDependency[Visit], body: RawBody) -> Response[Any]:
    """Delete all memories and tags, if the number of memories is the one that was typed."""
    form, user = visit.read_form(body), visit.require_user()
    typed = re.sub(r"[\s,.]", "", form.get("number", ""))
    if not (typed.isascii() and typed.isdecimal() and len(typed) < 20):
        return _delete_all_page(visit, "Type the number of your memories.")
    with visit.store.transaction_of(user.id) as user_store:
        is_right = user_store.count() == int(typed)
        if is_right:
            user_store.delete_all()
    if not is_right:
        refusal = "That is not the number of your memories; it may have changed in the meantime. "
        return _delete_all_page(visit, f"{refusal}Nothing was deleted.")
    log_event("all memories deleted by their user", user_id=user.id, address=visit.address)
    return visit.redirect(MEMORIES_PAGE)


def _delete_all_page(visit: Visit, refusal: str | None = None) -> Response[Any]:
    return visit.form_page("delete_all.html", refusal, total=_count(visit, then=MEMORIES_PAGE))


def _count(visit: Visit, *, then: str) -> int:
    with visit.store.snapshot_of(visit.require_user(then=then).id) as user_store:
        number: int = user_store.count()
        return number


@get(TAGS_PAGE, sync_to_thread=True)
def show_tags(visit: NamedDependency[Visit]) -> Response[Any]:
    user, number = visit.require_user(then=TAGS_PAGE), _page_number(visit)
    with visit.store.snapshot_of(user.id) as user_store:
        tags = user_store.all_tags()
    some = tags[(number - 1) * TAGS_PER_PAGE : number * TAGS_PER_PAGE]
    has_more = len(tags) > number * TAGS_PER_PAGE
    return visit.page("tags.html", tags=some, total=len(tags), number=number, has_more=has_more)


@get(ACTIVITY_PAGE, sync_to_thread=True)
def show_activity(visit: NamedDependency[Visit]) -> Response[Any]:
    """Show how many memories each application has read and changed, by day, the latest first."""
    user, number = visit.require_user(then=ACTIVITY_PAGE), _page_number(visit)
    offset = (number - 1) * DAYS_PER_PAGE
    found, has_more = visit.store.activity.of_user(user.id, offset=offset, limit=DAYS_PER_PAGE)
    return visit.page("activity.html", days=found, number=number, has_more=has_more)


def _page_number(visit: Visit) -> int:
    """Return the page that is asked for, from 1 on."""
    asked = visit.asked.get("page", "1")
    return int(asked) if re.fullmatch("[1-9][0-9]{0,5}", asked, re.ASCII) else 1


@get(ACCOUNT_PAGE, sync_to_thread=True)
def show_account(visit: NamedDependency[Visit]) -> Response[Any]:
    total, user = _count(visit, then=ACCOUNT_PAGE), visit.require_user()
    return visit.page("account.html", created_at=user.created_at, total=total)


@get(f"{ACCOUNT_PAGE}/delete", sync_to_thread=True)
def ask_erasure(visit: NamedDependency[Visit]) -> Response[Any]:
    """Say what the deletion of an account deletes, and ask for the password."""
    visit.require_user(then=ACCOUNT_PAGE)
    return visit.form_page("delete_account.html")


@post(f"{ACCOUNT_PAGE}/delete")
@checks_password
def erase_account(visit: NamedDependency[Visit], body: RawBody) -> Response[Any]:
    """Delete the account and answer with the receipt."""
    form, user = visit.read_form(body), visit.require_user()
    if not visit.check_password(user.email, form.get("password", ""), user.password_hash):
        log_event("deletion of an account refused", user_id=user.id, address=visit.address)
        return visit.form_page("delete_account.html", "The password is wrong. Nothing was deleted.")
    receipt = visit.site.deployment.erase_user(user.id)
    visit.sign_out()
    answer = visit.page("receipt.html", receipt=receipt, email_of_erased=user.email)
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'
    return answer


# Downloads


class Download(Stream):
    """Answer with a file whose pages are made one by one, as the client takes them.

    A download is counted from its first byte to its last, or until the client has left.
    """

    def __init__(self, visit: Visit, user: User, ending: str) -> None:
        self._downloads, self._user = visit.site.downloads, user
        pages = self._downloads.iterate(EXPORTS[ending](visit.site.deployment, user))
        headers = page_headers() | {"Content-Disposition": f'attachment; filename="memories{ending}"'}
        super().__init__(pages, media_type=MEDIA_TYPES[ending], headers=headers)

    def to_asgi_response(self, *args: Any, **options: Any) -> Any:
        response = super().to_asgi_response(*args, **options)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            with self._downloads.admit(self._user.id):
                await response(scope, receive, send)

        return answer


@get([f"{MEMORIES_PAGE}.json", f"{MEMORIES_PAGE}.md"])
async def download(visit: NamedDependency[Visit]) -> Response[Any]:
    """Send all memories as JSON, with the tags, or as Markdown, in a file that is made while it is sent."""
    user, path = visit.require_user(then=ACCOUNT_PAGE), visit.request.scope["path"]
    return Download(visit, user, next(ending for ending in MEDIA_TYPES if path.endswith(ending)))


def export_json(deployment: Deployment, user: User) -> Iterator[bytes]:
    """Yield a JSON document with all memories and tags, a page at a time."""
    head = {"user_id": user.id, "email": user.email, "exported_at": format_instant(deployment.now())}
    with deployment.store.snapshot_of(user.id) as user_store:
        tags = user_store.all_tags()
    yield msgspec.json.encode({**head, "tags": tags})[:-1] + b',"memories":['
    separator = b"\n"
    for memories in _pages_of_all(deployment, user.id):
        exported = ({name: getattr(memory, name) for name in EXPORTED} for memory in memories)
        yield separator + b",\n".join(map(msgspec.json.encode, exported))
        separator = b",\n"
    yield b"\n]}\n"


def export_markdown(deployment: Deployment, user: User) -> Iterator[bytes]:
    """Yield a Markdown document with all memories, a section each, a page at a time."""
    exported_at = format_instant(deployment.now())
    yield f"# Memories of {_escape(user.email)}\n\nExported {exported_at}.\n".encode()
    numbers = count(1)
    for memories in _pages_of_all(deployment, user.id):
        sections = [_as_section(next(numbers), memory) for memory in memories]
        yield "".join(sections).encode("utf-8", "surrogatepass")


EXPORTS: dict[str, Callable[[Deployment, User], Iterator[bytes]]] = {
    ".json": export_json,
    ".md": export_markdown,
}
"""Encoders by the ending of the file's name."""

MEDIA_TYPES = {".json": "application/json", ".md": "text/markdown; charset=utf-8"}


def _pages_of_all(deployment: Deployment, user_id: str) -> Iterator[list[OwnMemory]]:
    cursor: str | None = ""  # the first page
    while cursor is not None:
        with deployment.store.snapshot_of(user_id) as user_store:
            page = user_store.page(
                MemoryFilter(user_id), cursor=cursor, limit=EXPORT_BATCH, max_bytes=EXPORT_BYTES
            )
            memories, cursor = _open(user_store, page.memory_blobs), page.next_cursor
        del page
        if memories:
            yield memories


def _as_section(number: int, memory: OwnMemory) -> str:
    fields: dict[str, Any] = {
        **dict(_label(memory, _LISTED)),
        "Created": memory.created_at,
        "Changed": memory.updated_at if memory.updated_at != memory.created_at else None,
        "Id": memory.id,
    }
    listed = "".join(
        f"- {name}: {_escape(', '.join(value) if isinstance(value, tuple) else str(value))}\n"
        for name, value in fields.items()
        if value not in (None, "", ())
    )
    text = "The content cannot be opened."
    if memory.content is not None:
        fence = "~" * (1 + max([2, *map(len, re.findall("~+", memory.content))]))
        text = f"{fence}\n{memory.content}\n{fence}"
    return f"\n## {number}. {_escape(memory.title or 'Without a title')}\n\n{listed}\n{text}\n"


def _escape(text: str) -> str:
    """Write a text on one line, without a meaning in Markdown.

    >>> print(_escape("# not a *heading*"))
    \\# not a \\*heading\\*
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


PERSON_ROUTES = [
    show_memories, download, ask_deletion, delete_own_memory, ask_deletion_of_all, delete_memories,
    show_tags, show_activity, show_account, ask_erasure, erase_account,
]  # fmt: skip
