"""The chain of pages of one listing: page size negotiated, next page under way, nothing skipped or repeated.

The cursor of the next page is only known from this one, so the chain cannot be fetched in parallel; but
it stands at the end of the JSON and is found without decoding the page. So the next page is asked for as soon as
this one is there, which is worked on while the service prepares the other.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Container, Generator
from contextlib import AbstractContextManager
from itertools import count
from typing import Literal, SupportsIndex, TypeGuard

import msgspec

from memframe.client.responses import decoded
from memframe.errors import AnswerTooLargeError, ConfigError, ProtocolError, ServiceError
from memframe.secret import SecretBytes
from memframe.wire import DEFAULT_LIMIT, LIST_MEMORIES

PAGE_SIZES = (1000, 500, 250, 100, 50, 20, 10, 5, 2, 1)
"""What "auto" asks for, from the top, until the service does not refuse."""

TOO_LARGE = 413
"""Refuses a page for its size, whichever of the listing it is; 400 and 422 may mean that of the first."""

Asked = AbstractContextManager[Callable[[], SecretBytes]]
"""A page that is under way within the block; calling what it gives reads its JSON."""

AskPage = Callable[[int, str | None], Asked]
"""(page size, cursor) -> page"""


class _Cursor(msgspec.Struct):
    next_cursor: str | None = None


_NONE = SecretBytes(b"")

_CURSOR_AT_END = re.compile(rb'[,{]\s*"next_cursor"\s*:\s*(null|"(?:[^"\\]|\\.)*")\s*}\s*$')


def cursor_of(body: SecretBytes) -> str | None:
    """The next cursor of a page, without decoding its memories where the cursor stands last; empty is none.

    >>> cursor_of(SecretBytes(b'{"memoryBlobs": [], "next_cursor": "c2"}'))
    'c2'
    >>> cursor_of(SecretBytes(b'{"next_cursor": null, "memoryBlobs": []}')) is None
    True
    """
    last = _CURSOR_AT_END.search(body.reveal(), max(0, len(body) - 4096))
    found = SecretBytes(b'{"next_cursor":%b}' % last[1]) if last else body
    return decoded(found, _Cursor, what=LIST_MEMORIES).next_cursor or None


def iter_pages(
    ask: AskPage,
    *,
    page_size: int | Literal["auto"] = "auto",
    limit: int | None = None,
) -> Generator[SecretBytes]:
    """The JSON of every page of a listing, from the first to the last.

    Parameters
    ----------
    ask : callable
        Asks for one page.
    page_size : int or "auto"
        Memories a page. "auto" asks for 1,000 and for less where the service refuses; where it clamps,
        the pages are simply smaller. It asks for less also where a later page is too large, for the service (413)
        or for one answer, as its memories are longer.
    limit : int, optional
        How many memories are wanted in all; it makes a short listing's page no larger than that.

    Raises
    ------
    ProtocolError
        A cursor repeats.
    """
    size = PAGE_SIZES[0] if page_size == "auto" else _checked_size(page_size)
    size = size if limit is None else min(size, limit)
    pages = _Pages(ask, size, may_shrink=page_size == "auto")
    first = pages.read(None, refusals={400, TOO_LARGE, 422})
    n_sure = sys.maxsize if limit is None else math.ceil(limit / pages.size)
    yield from _chain(pages, first, n_sure)


class _Pages:
    """Pages by their cursors, of a size that the service does not refuse.

    Attributes
    ----------
    size : int
    """

    def __init__(self, ask: AskPage, size: int, *, may_shrink: bool) -> None:
        self._ask = ask
        self._may_shrink = may_shrink
        self.size = size

    def ahead(self, cursor: str) -> Asked:
        """A page that will be needed next."""
        return self._ask(self.size, cursor)

    def read(self, cursor: str | None, *, refusals: Container[int | None]) -> SecretBytes:
        """A page, which is asked for until it is of a size that is not refused."""
        while True:
            try:
                with self._ask(self.size, cursor) as page:
                    return page()
            except (ServiceError, AnswerTooLargeError) as refused:
                self.shrink(refused, refusals=refusals)

    def shrink(self, refused: ServiceError | AnswerTooLargeError, *, refusals: Container[int | None]) -> None:
        """Take the next smaller size; where it is not about that, or there is none, the refusal is raised."""
        smaller = None
        if not self._may_shrink:
            raise refused
        if isinstance(refused, AnswerTooLargeError):
            smaller = _smaller(self.size, None, "")
        elif refused.status in refusals:
            smaller = _smaller(self.size, refused.status, refused.detail or "")
        if smaller is None:
            raise refused
        self.size = smaller


def _chain(pages: _Pages, page: SecretBytes, n_sure: int) -> Generator[SecretBytes]:
    """The pages one after the other, from the first; beyond those sure to be wanted only as they are asked for."""
    seen: set[str] = set()
    for n_pages in count(1):
        cursor = cursor_of(page)
        is_sure = n_pages < n_sure
        if cursor is None or not is_sure:
            yield page
        if cursor is None:
            return
        _refuse_repeated(cursor, seen)
        with pages.ahead(cursor) as following:
            if is_sure:
                yield page
            page = _NONE  # so that the next one is read into the memory of this one, which is at hand already
            page = _following(following, cursor, pages)


def _following(following: Callable[[], SecretBytes], cursor: str, pages: _Pages) -> SecretBytes:
    """The page that was asked for ahead; where it is too large for the service, a smaller one in its place."""
    try:
        return following()
    except (ServiceError, AnswerTooLargeError) as refused:
        pages.shrink(refused, refusals={TOO_LARGE})
    return pages.read(cursor, refusals={TOO_LARGE})


def _refuse_repeated(cursor: str, seen: set[str]) -> None:
    if cursor in seen:
        raise ProtocolError(
            f"{LIST_MEMORIES}: page {len(seen) + 1} points back to a page that was there before, so the listing "
            "has no end; nothing was returned, as it could not be complete"
        )
    seen.add(cursor)


def _smaller(size: int, status: int | None, said: str) -> int | None:
    """The next size to try: the one that the refusal speaks of ("at most 200"), else the next of ours.

    >>> _smaller(1000, 400, "limit must be between 1 and 200"), _smaller(500, 422, "too many"), _smaller(10, 400, "no")
    (200, 250, 5)
    >>> _smaller(1000, 400, "at most 5"), _smaller(10, 400, "at most 3")  # below 10, the default, nothing is skipped
    (500, 3)
    """
    least = DEFAULT_LIMIT if size > DEFAULT_LIMIT else 1
    numbers = {int(number) for number in re.findall(r"\b\d{1,4}\b", said)} - {status}
    spoken_of = [number for number in numbers if least <= number < size]
    return max(spoken_of or [number for number in PAGE_SIZES if number < size], default=None)


def _checked_size(page_size: object) -> int:
    if is_count(page_size, at_least=1):
        return operator.index(page_size)
    raise ConfigError(f"page_size={page_size!r}: give a whole number from 1, or 'auto'")


def is_count(value: object, *, at_least: int) -> TypeGuard[SupportsIndex]:
    """Whether a value is a whole number, of Python or NumPy, and large enough; True and False are none.

    >>> is_count(3, at_least=1), is_count(3.0, at_least=1), is_count(True, at_least=1)
    (True, False, False)
    """
    return (
        isinstance(value, SupportsIndex) and not isinstance(value, bool) and operator.index(value) >= at_least
    )
