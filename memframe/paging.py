"""The chain of pages of one listing: page size negotiated, next page under way, nothing skipped or repeated.

The cursor of the next page is only known from this one, so the chain cannot be fetched in parallel;
but it stands at the end of the JSON and is found without decoding the page. When pages take longer to
come than to be worked on, a thread follows the chain and keeps a few pages ahead. When they come at
once, that thread would only fight the worker for the interpreter lock (it made loads slower by 40 %),
so then the two take turns.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Literal, NamedTuple, TypeVar

import msgspec

from memframe.answers import decoded
from memframe.errors import ConfigError, InvalidError, ProtocolError
from memframe.wire import LIST_MEMORIES

T = TypeVar("T")

PAGE_SIZES = (1000, 500, 250, 100, 50, 20, 10)
"""What "auto" asks for, from the top, until the service does not refuse."""

PROBED_PAGES = 2
"""Pages fetched in turn, to see how long one keeps us waiting; the first may be slow for its own reasons."""

WAIT_WORTH_A_THREAD_S = 0.004
"""Idle time a page from which on fetching ahead pays: near the interval at which threads are switched."""

HEAD_START_S = 0.002
"""How long to let the thread alone, which is more than it takes to build and send a request."""

FetchPage = Callable[[int, str | None], bytes]
"""(page size, cursor) -> JSON of the page"""


class Clock(NamedTuple):
    """Two clocks in seconds: of the wall, and of the work that this thread does."""

    wall: Callable[[], float] = time.perf_counter
    work: Callable[[], float] = time.thread_time


class _Cursor(msgspec.Struct):
    next_cursor: str | None = None


_CURSOR_AT_END = re.compile(rb'[,{]\s*"next_cursor"\s*:\s*(null|"(?:[^"\\]|\\.)*")\s*}\s*$')


def cursor_of(body: bytes) -> str | None:
    """The next cursor of a page, without decoding its memories where the cursor stands last; empty is none.

    >>> cursor_of(b'{"memoryBlobs": [], "next_cursor": "c2"}')
    'c2'
    >>> cursor_of(b'{"next_cursor": null, "memoryBlobs": []}') is None
    True
    """
    last = _CURSOR_AT_END.search(body, max(0, len(body) - 4096))
    found = b'{"next_cursor":%b}' % last[1] if last else body
    return decoded(found, _Cursor, what=LIST_MEMORIES).next_cursor or None


def iter_pages(
    fetch: FetchPage,
    *,
    page_size: int | Literal["auto"] = "auto",
    limit: int | None = None,
    clock: Clock = Clock(),  # noqa: B008 - frozen
) -> Generator[bytes]:
    """The JSON of every page of a listing, from the first to the last.

    Parameters
    ----------
    fetch : callable
        Gets one page.
    page_size : int or "auto"
        Memories a page. "auto" asks for 1,000 and for less where the service refuses; where it clamps,
        the pages are simply smaller.
    limit : int, optional
        How many memories are wanted in all; it makes a short listing's page no larger than that.

    Raises
    ------
    ProtocolError
        A cursor repeats.
    """
    size, body, waited = _first_page(fetch, page_size, limit, clock)
    seen: set[str] = set()
    with ThreadPoolExecutor(1, thread_name_prefix="memframe-pages") as ahead:
        for n_pages in range(1, 1 << 62):
            cursor = cursor_of(body)
            if cursor is None:
                yield body
                return
            _refuse_repeated(cursor, seen)
            upcoming = partial(_timed, fetch, size, cursor, clock)
            is_slow = n_pages >= PROBED_PAGES and waited >= WAIT_WORTH_A_THREAD_S
            under_way = _started(ahead, upcoming) if is_slow else None
            yield body
            body, idle = under_way.result() if under_way else upcoming()
            waited = min(waited, idle) if n_pages < PROBED_PAGES else waited


def _started(ahead: ThreadPoolExecutor, fetch: Callable[[], T]) -> Future[T]:
    """Give the thread the time to send its request: whoever decodes a page holds the lock for milliseconds."""
    under_way = ahead.submit(fetch)
    wait([under_way], timeout=HEAD_START_S)
    return under_way


def _refuse_repeated(cursor: str, seen: set[str]) -> None:
    if cursor in seen:
        raise ProtocolError(
            f"{LIST_MEMORIES}: page {len(seen) + 1} points back to a page that was there before, so the listing "
            "has no end; nothing was returned, as it could not be complete"
        )
    seen.add(cursor)


def _timed(fetch: FetchPage, size: int, cursor: str | None, clock: Clock) -> tuple[bytes, float]:
    """A page, and the seconds that it left this thread idle."""
    began, worked = clock.wall(), clock.work()
    body = fetch(size, cursor)
    return body, (clock.wall() - began) - (clock.work() - worked)


def _first_page(
    fetch: FetchPage, page_size: int | Literal["auto"], limit: int | None, clock: Clock
) -> tuple[int, bytes, float]:
    """Page size, first page and the wait for it; "auto" steps down while the size is refused."""
    sizes = list(PAGE_SIZES) if page_size == "auto" else [_checked_size(page_size)]
    if limit is not None:
        sizes = sorted({min(size, limit) for size in sizes}, reverse=True)
    for n_refused, size in enumerate(sizes, 1):
        try:
            return size, *_timed(fetch, size, None, clock)
        except InvalidError:
            if n_refused == len(sizes):
                raise
    raise AssertionError("unreachable: the last size returns or raises")


def _checked_size(page_size: object) -> int:
    if not isinstance(page_size, int) or isinstance(page_size, bool) or page_size < 1:
        raise ConfigError(f"page_size={page_size!r}: give a whole number from 1, or 'auto'")
    return page_size
