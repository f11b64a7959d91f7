"""Pages to columns: checked, without repeats, opened, and counted."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import Any, Literal, get_args

from memframe.access import Access
from memframe.client.pagination import Asked, is_count, iter_pages
from memframe.client.responses import decoded, same_id
from memframe.display import number_of
from memframe.errors import ConfigError, ProtocolError, SealError
from memframe.frames import MEMORY_KINDS, columns_of, without_surrogates
from memframe.secret import SecretBytes
from memframe.wire import LIST_MEMORIES, MemoryBlob, MemoryPage

PageSize = int | Literal["auto"]
OnUndecryptable = Literal["mark", "raise"]

MAX_EMPTY_PAGES = 100
"""Pages in a row without a new memory, after which a listing is taken to be endless."""

_ID_OF, _OWNER_OF = attrgetter("id"), attrgetter("user_id")
_FIELDS = tuple(name for name in MEMORY_KINDS if name != "content_error")


class Listing:
    """Pages to columns: checked, without repeats, opened, and counted."""

    def __init__(self, access: Access, on_undecryptable: OnUndecryptable) -> None:
        if on_undecryptable not in get_args(OnUndecryptable):
            raise ConfigError(f"on_undecryptable={on_undecryptable!r}: give 'mark' or 'raise'")
        self._access = access
        self._raises = on_undecryptable == "raise"
        self._ids: set[str] = set()
        self.complete = False
        self.n_rows = 0
        self.n_repeated = 0
        self.n_undecryptable = 0
        self.n_plain = 0

    def report(self) -> dict[str, int | bool | str]:
        """The small dict for ``frame.attrs``."""
        return {
            "n_rows": self.n_rows,
            "n_undecryptable": self.n_undecryptable,
            "n_plain": self.n_plain,
            "n_repeated": self.n_repeated,
            "complete": self.complete,
            "base_url": self._access.client.base_url,
        }

    def pages(
        self, query: dict[str, str], *, limit: int | None, page_size: PageSize
    ) -> Iterator[dict[str, Sequence[Any]]]:
        """Columns of each page that brought something new, until the end or ``limit``."""
        with closing(self.blobs(query, limit=limit, page_size=page_size)) as pages:
            yield from starmap(self._well_formed, pages)

    def _well_formed(self, blobs: list[MemoryBlob], is_odd: bool) -> dict[str, Sequence[Any]]:
        columns = self.columns(blobs)
        return without_surrogates(columns) if is_odd else columns

    def blobs(
        self, query: dict[str, str], *, limit: int | None = None, page_size: PageSize = "auto"
    ) -> Generator[tuple[list[MemoryBlob], bool]]:
        """The records of each such page as they came, and whether they may hold lone surrogates."""
        left = sys.maxsize if limit is None else _checked_limit(limit)
        ask = partial(self._ask, query)
        n_empty = 0
        is_whole = False
        with closing(iter_pages(ask, page_size=page_size, limit=limit)) as bodies:
            while left and (body := next(bodies, None)) is not None:
                page = decoded(body, MemoryPage, what=LIST_MEMORIES)
                fresh = self._new(page.memory_blobs)
                blobs = fresh[:left]
                left -= len(blobs)
                is_whole = not page.next_cursor and len(blobs) == len(fresh)
                n_empty = _refuse_endless(0 if blobs else n_empty + 1)
                is_odd = _may_hold_surrogates(body)
                del body
                if blobs:
                    yield blobs, is_odd
                # the next page is decoded into the memory of this one, warm in the processor's cache
                del page, fresh, blobs
        self.complete = is_whole

    def _ask(self, query: dict[str, str], page_size: int, cursor: str | None) -> Asked:
        return self._access.client.memory_page(query, limit=page_size, cursor=cursor)

    def _new(self, blobs: list[MemoryBlob]) -> list[MemoryBlob]:
        """The memories of a page that no page before had; all of this user, or the load stops."""
        mine = self._access.user_id
        if not all(same_id(owner, mine) for owner in set(map(_OWNER_OF, blobs))):
            raise ProtocolError(
                f"{LIST_MEMORIES}: the service sent memories of another user than {mine}; "
                "nothing of it was kept. Tell the operator of the service"
            )
        n_before = len(self._ids)
        ids = list(map(_ID_OF, blobs))
        fresh = blobs if self._ids.isdisjoint(ids) else [blob for blob in blobs if blob.id not in self._ids]
        self._ids.update(ids)
        if len(self._ids) - n_before < len(fresh):
            first: dict[str, MemoryBlob] = {}
            for blob in fresh:
                first.setdefault(blob.id, blob)
            fresh = list(first.values())
        self.n_repeated += len(blobs) - len(fresh)
        return fresh

    def columns(self, blobs: list[MemoryBlob]) -> dict[str, Sequence[Any]]:
        """Records as columns, content opened or marked; ``stored`` is the content as the service has it."""
        columns = columns_of(blobs, _FIELDS)
        opened = self._access.envelope.open_many(columns["content"])
        if opened.errors and self._raises:
            raise _undecryptable(opened.errors, columns["id"])
        self.n_rows += len(blobs)
        self.n_undecryptable += len(opened.errors)
        self.n_plain += opened.n_plain
        errors = (
            [opened.errors.get(row) for row in range(len(blobs))] if opened.errors else [None] * len(blobs)
        )
        return {
            **columns,
            "stored": columns["content"],
            "content": opened.plain,
            "content_error": errors,
        }


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _may_hold_surrogates(body: SecretBytes) -> bool:
    """Whether JSON escapes a surrogate; the search for a lone backslash runs at the speed of memory."""
    return b"\\" in body.reveal() and _SURROGATE.search(body.reveal()) is not None


def _undecryptable(errors: Mapping[int, str], ids: Sequence[str]) -> SealError:
    """One summary, not a line a row: a wrong key spoils them all in the same way."""
    first = next(iter(errors))
    return SealError(
        f"{len(errors):,} of {number_of(len(ids), 'memory', 'memories')} of a page cannot be opened; "
        f"the first, {ids[first]}: "
        f"{errors[first]}. Load with on_undecryptable='mark' to see all of them in content_error"
    )


def _refuse_endless(n_empty: int) -> int:
    if n_empty > MAX_EMPTY_PAGES:
        raise ProtocolError(
            f"{LIST_MEMORIES}: {n_empty} pages in a row without a new memory, each pointing to a next one; "
            "the listing has no end"
        )
    return n_empty


def _checked_limit(limit: object) -> int:
    if is_count(limit, at_least=0):
        return operator.index(limit)
    raise ConfigError(f"limit={limit!r}: give a whole number from 0, or None for all memories")
