"""List pages of memories as records and columns: each memory once, content decrypted, problems counted.

Each page names the cursor of the next one, so pages cannot be fetched in parallel. The cursor is at the end of the JSON
and is found without decoding it, so that the next page is requested before this one is decoded.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import Any, Literal, SupportsIndex

import msgspec

from memframe.access import Access
from memframe.client.responses import decode, same_id
from memframe.display import number_of
from memframe.errors import AnswerTooLargeError, ConfigError, ProtocolError, SealError, ServiceError
from memframe.frames import MEMORY_KINDS, columns_of, replace_surrogates
from memframe.secret import SecretBytes
from memframe.wire import DEFAULT_LIMIT, LIST_MEMORIES, MemoryBlob, MemoryPage

PageSize = int | Literal["auto"]
OnUndecryptable = Literal["mark", "raise"]

PAGE_SIZES = (1000, 500, 250, 100, 50, 20, 10, 5, 2, 1)
"""Page sizes that "auto" tries in this order, until the service accepts one."""

MAX_EMPTY_PAGES = 100
"""Pages in a row without a new memory, after which a listing counts as endless."""

_ID_OF, _OWNER_OF = attrgetter("id"), attrgetter("user_id")
_FIELDS = tuple(name for name in MEMORY_KINDS if name != "content_error")


class MemoryPages:
    """The memories of one user, page by page, with the counts so far, as in ``frame.attrs``.

    If content cannot be opened, ``on_undecryptable="mark"`` gives the reason in ``content_error``, and "raise" ends the
    listing.
    """

    def __init__(self, access: Access, on_undecryptable: OnUndecryptable = "mark") -> None:
        if on_undecryptable not in ("mark", "raise"):
            raise ConfigError(f"on_undecryptable={on_undecryptable!r}: give 'mark' or 'raise'")
        self._access = access
        self._raises = on_undecryptable == "raise"
        self._ids: set[str] = set()
        self.complete = False
        self.n_rows = self.n_repeated = self.n_undecryptable = self.n_plain = 0

    def report(self) -> dict[str, int | bool | str]:
        """Return the small dict for ``frame.attrs``."""
        counts = ("n_rows", "n_undecryptable", "n_plain", "n_repeated", "complete")
        return {name: getattr(self, name) for name in counts} | {"base_url": self._access.client.base_url}

    def columns(
        self, query: Mapping[str, str], *, limit: int | None, page_size: PageSize
    ) -> Iterator[dict[str, Sequence[Any]]]:
        """Yield the columns of each page with new memories, until the end or ``limit``."""
        with closing(self.records(query, limit=limit, page_size=page_size)) as pages:
            # as a loop variable a page would outlive the decoding of the next one
            yield from starmap(self.open, pages)

    def records(
        self, query: Mapping[str, str], *, limit: int | None = None, page_size: PageSize = "auto"
    ) -> Generator[tuple[list[MemoryBlob], bool]]:
        """Yield the new records of each page, and whether they may hold lone surrogates."""
        n_left = (
            sys.maxsize if limit is None else check_count("limit", limit, 0, ", or None for all memories")
        )
        request = partial(self._access.client.request_page, query)
        n_empty = 0
        is_whole = False
        with closing(iter_pages(request, page_size=page_size, limit=limit)) as bodies:
            while n_left and (body := next(bodies, None)) is not None:
                page = decode(body, MemoryPage, what=LIST_MEMORIES)
                fresh = self._take_new(page.memory_blobs)
                records = fresh[:n_left]
                n_left -= len(records)
                is_whole = not page.next_cursor and len(records) == len(fresh)
                n_empty = 0 if records else n_empty + 1
                if n_empty > MAX_EMPTY_PAGES:
                    raise ProtocolError(
                        f"{LIST_MEMORIES}: {n_empty} pages in a row without a new memory, each pointing to a next one; "
                        "the listing has no end"
                    )
                may_hold_surrogates = b"\\" in body.reveal() and _SURROGATE.search(body.reveal()) is not None
                del body
                if records:
                    yield records, may_hold_surrogates
                # free this page first, so that the next one is decoded into its memory
                del page, fresh, records
        self.complete = is_whole

    def _take_new(self, records: list[MemoryBlob]) -> list[MemoryBlob]:
        """Return the memories of a page that no earlier page had; refuse memories of another user."""
        own_id = self._access.user_id
        if not all(same_id(owner, own_id) for owner in set(map(_OWNER_OF, records))):
            raise ProtocolError(
                f"{LIST_MEMORIES}: the service sent memories of another user than {own_id}; "
                "nothing was kept. Tell the operator of the service"
            )
        n_before = len(self._ids)
        ids = list(map(_ID_OF, records))
        fresh = (
            records if self._ids.isdisjoint(ids) else [each for each in records if each.id not in self._ids]
        )
        self._ids.update(ids)
        if len(self._ids) - n_before < len(fresh):
            first: dict[str, MemoryBlob] = {}
            for record in fresh:
                first.setdefault(record.id, record)
            fresh = list(first.values())
        self.n_repeated += len(records) - len(fresh)
        return fresh

    def open(
        self, records: Sequence[MemoryBlob], may_hold_surrogates: bool = True
    ) -> dict[str, Sequence[Any]]:
        """Open the content of records and return their columns; ``stored`` is the content as the service stores it."""
        columns: dict[str, Sequence[Any]] = columns_of(records, _FIELDS)
        stored = columns["content"]
        opened = self._access.envelope.open_many(stored)
        if opened.errors and self._raises:
            # one error for all, because a wrong key affects all of them
            first, reason = next(iter(opened.errors.items()))
            raise SealError(
                f"{len(opened.errors):,} of {number_of(len(records), 'memory', 'memories')} of a page cannot be "
                f"opened; the first, {columns['id'][first]}: {reason}. Load with on_undecryptable='mark' to see all "
                "of them in content_error"
            )
        n_rows = len(records)
        self.n_rows += n_rows
        self.n_undecryptable += len(opened.errors)
        self.n_plain += opened.n_plain
        errors = list(map(opened.errors.get, range(n_rows))) if opened.errors else [None] * n_rows
        columns |= {"stored": stored, "content": opened.plain, "content_error": errors}
        return replace_surrogates(columns) if may_hold_surrogates else columns


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Escaped surrogate in JSON. Searched only in pages with a backslash, as the test for one is much quicker."""


# -- the chain of pages

_REFUSALS_OF_SIZE = {400, 413, 422}
"""Statuses that may mean that the first page is too large; for a later page only 413 does."""


RequestPage = Callable[[int, str | None], AbstractContextManager[Callable[[], SecretBytes]]]
"""(page size, cursor) -> a context with a function that waits for the JSON of the page; an unread page is dropped."""


def iter_pages(
    request: RequestPage, *, page_size: PageSize = "auto", limit: int | None = None
) -> Generator[SecretBytes]:
    """Yield the JSON of every page of a listing, in order.

    A ``page_size`` of "auto" asks for 1,000 memories, and for fewer if the service refuses that, or if a later page is
    too large for the service (413) or for one response. A service that clamps the size gives smaller pages. ``limit``
    bounds the size of pages, too, and no page is requested ahead that may not be needed.
    """
    size = PAGE_SIZES[0] if page_size == "auto" else check_count("page_size", page_size, 1, ", or 'auto'")
    size = size if limit is None else min(size, limit)
    may_shrink = page_size == "auto"
    body, size = _read_page(request, size, None, may_shrink)
    n_needed = sys.maxsize if limit is None else math.ceil(limit / size)
    cursors: set[str] = set()
    while (cursor := cursor_of(body)) is not None:
        is_needed = len(cursors) + 1 < n_needed
        if not is_needed:
            yield body
        if cursor in cursors:
            raise ProtocolError(
                f"{LIST_MEMORIES}: the cursor of page {len(cursors) + 1} repeats an earlier one, so the listing "
                "has no end, and the load is not complete. Tell the operator of the service"
            )
        cursors.add(cursor)
        with request(size, cursor) as read:
            if is_needed:
                yield body
            body = _NONE  # free this page, so that the next one is read into its memory
            try:
                body = read()
                continue
            except (ServiceError, AnswerTooLargeError) as refused:
                size = _shrink(size, refused, may_shrink, {413})
        body, size = _read_page(request, size, cursor, may_shrink)
    yield body


def _read_page(
    request: RequestPage, size: int, cursor: str | None, may_shrink: bool
) -> tuple[SecretBytes, int]:
    """Read a page, smaller if its size is refused; return it with its size."""
    while True:
        try:
            with request(size, cursor) as read:
                return read(), size
        except (ServiceError, AnswerTooLargeError) as refused:
            size = _shrink(size, refused, may_shrink, {413} if cursor else _REFUSALS_OF_SIZE)


def _shrink(
    size: int, refused: ServiceError | AnswerTooLargeError, may_shrink: bool, statuses: Container[int | None]
) -> int:
    """Return the next smaller page size; raise the refusal if it is not about the size, or no size is smaller."""
    smaller = None
    if isinstance(refused, AnswerTooLargeError):
        smaller = _smaller(size, None, "")
    elif refused.status in statuses:
        smaller = _smaller(size, refused.status, refused.detail or "")
    if smaller is None or not may_shrink:
        raise refused
    return smaller


def _smaller(size: int, status: int | None, reason: str) -> int | None:
    """Return the size that a refusal names ("at most 200"), else the next of `PAGE_SIZES`.

    >>> _smaller(1000, 400, "limit must be between 1 and 200"), _smaller(500, 422, "too many"), _smaller(10, 400, "no")
    (200, 250, 5)
    >>> _smaller(1000, 400, "at most 5"), _smaller(10, 400, "at most 3")  # a number below 10 counts from size 10 down
    (500, 3)
    """
    least = DEFAULT_LIMIT if size > DEFAULT_LIMIT else 1
    numbers = {int(number) for number in re.findall(r"\b\d{1,4}\b", reason)} - {status}
    named = [number for number in numbers if least <= number < size]
    return max(named or [number for number in PAGE_SIZES if number < size], default=None)


class _Cursor(msgspec.Struct):
    next_cursor: str | None = None


_NONE = SecretBytes(b"")

_CURSOR_AT_END = re.compile(rb'[,{]\s*"next_cursor"\s*:\s*(null|"(?:[^"\\]|\\.)*")\s*}\s*$')


def cursor_of(body: SecretBytes) -> str | None:
    """Read the cursor of the next page, without decoding the memories if it stands last; None if empty or missing.

    >>> cursor_of(SecretBytes(b'{"memoryBlobs": [], "next_cursor": "c2"}'))
    'c2'
    >>> cursor_of(SecretBytes(b'{"next_cursor": null, "memoryBlobs": []}')) is None
    True
    """
    last = _CURSOR_AT_END.search(body.reveal(), max(0, len(body) - 4096))
    cursor = SecretBytes(b'{"next_cursor":%b}' % last[1]) if last else body
    return decode(cursor, _Cursor, what=LIST_MEMORIES).next_cursor or None


def check_count(name: str, value: object, least: int, otherwise: str = "") -> int:
    """Return a whole number, of Python or NumPy, that is at least ``least``; refuse others, and booleans.

    >>> check_count("workers", True, 1)
    Traceback (most recent call last):
    memframe.errors.ConfigError: workers=True: give a whole number from 1
    """
    if isinstance(value, SupportsIndex) and not isinstance(value, bool) and operator.index(value) >= least:
        return operator.index(value)
    raise ConfigError(f"{name}={value!r}: give a whole number from {least}{otherwise}")
