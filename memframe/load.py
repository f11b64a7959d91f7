"""Service to decrypted frames: the one door through which data comes in.

A load is whole or it is an error: an interrupted chain of pages never gives a silently short frame. One
damaged row never ends a load: it is kept, without its content, and ``content_error`` says why.

``frame.attrs["memframe"]`` says what was met: ``n_rows``, ``n_undecryptable``, ``n_plain`` (stored
unsealed), ``n_repeated`` (ids that came twice and were dropped) and ``complete`` (False after ``limit``).
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, Literal, get_args

import pandas as pd

from memframe.access import Access
from memframe.client import Client, memory_query
from memframe.errors import ConfigError, ProtocolError, SealError
from memframe.frames import (
    MEMORY_KINDS,
    FrameBuilder,
    columns_of,
    requests_frame,
    tags_frame,
    without_surrogates,
)
from memframe.paging import iter_pages
from memframe.progress import Progress, ProgressOption
from memframe.transport import decoded
from memframe.wire import LIST_MEMORIES, MemoryBlob, MemoryPage

PageSize = int | Literal["auto"]
OnUndecryptable = Literal["mark", "raise"]

MAX_EMPTY_PAGES = 100
"""Pages in a row without a new memory, after which a listing is taken to be endless."""

_FIELDS = tuple(name for name in MEMORY_KINDS if name != "content_error")


def load_memories(
    access: Access,
    *,
    tags: Iterable[str] | None = None,
    search: str | None = None,
    min_importance: float | None = None,
    limit: int | None = None,
    page_size: PageSize = "auto",
    on_undecryptable: OnUndecryptable = "mark",
    progress: ProgressOption = "auto",
) -> pd.DataFrame:
    """All memories of the user, or those that match, as one decrypted frame.

    Parameters
    ----------
    access : Access
    tags : iterable of str, optional
        Names, of which a memory needs one.
    search : str, optional
        Text in title, summary or content; the service matches it.
    min_importance : float, optional
        From 0 to 1.
    limit : int, optional
        Most rows to load; None loads all.
    page_size : int or "auto"
        Memories asked for at once; see `memframe.paging`.
    on_undecryptable : {"mark", "raise"}
        Whether a row that cannot be opened is marked in ``content_error``, or ends the load.
    progress : "auto", bool or callable
        A bar in notebooks and terminals; True, False, or a callable ``(done, total, text)``.

    Returns
    -------
    DataFrame
        Columns ``id user_id title summary content tags tag_ids importance confidence source created_at
        updated_at content_error`` in the order of the service, with the same dtypes even when empty.
        The rows become the baseline of later plans.

    Raises
    ------
    AccessError
        The access was revoked.
    ProtocolError
        The listing breaks the specification, so that it could not be complete.
    NoAnswerError
        The service went away in the middle.
    SealError
        With ``on_undecryptable="raise"``, when rows could not be opened.
    """
    listing = _Listing(access, on_undecryptable)
    query = memory_query(access.user_id, tags=tags, search=search, min_importance=min_importance)
    builder = FrameBuilder(MEMORY_KINDS)
    with Progress(progress, text="memories") as bar, _collector_paused():
        for columns in listing.pages(query, limit=limit, page_size=page_size):
            builder.add(columns)
            bar.step(len(columns["id"]))
    frame = _reported(builder, listing)
    access.keep_baseline(frame)
    return frame


def iter_memories(
    access: Access,
    *,
    chunk_rows: int = 10_000,
    tags: Iterable[str] | None = None,
    search: str | None = None,
    min_importance: float | None = None,
    limit: int | None = None,
    page_size: PageSize = "auto",
    on_undecryptable: OnUndecryptable = "mark",
    progress: ProgressOption = "auto",
) -> Iterator[pd.DataFrame]:
    """The same memories in frames of ``chunk_rows`` rows, for stores that are larger than memory.

    Keeps no baselines: a plan for such rows compares them with the service. ``attrs`` counts what was
    met so far, and is ``complete`` on the last frame only. The other parameters and the errors are
    those of `load_memories`; an error after some frames says that the rest is missing.

    Parameters
    ----------
    chunk_rows : int
        Rows a frame; the last one may be shorter. No memories give no frame.
    """
    if chunk_rows < 1:
        raise ConfigError(f"chunk_rows={chunk_rows!r}: give a whole number from 1")
    listing = _Listing(access, on_undecryptable)
    query = memory_query(access.user_id, tags=tags, search=search, min_importance=min_importance)
    builder = FrameBuilder(MEMORY_KINDS)
    with Progress(progress, text="memories") as bar:
        for columns in listing.pages(query, limit=limit, page_size=page_size):
            for part in _cut(columns, chunk_rows - builder.n_rows, chunk_rows):
                if builder.n_rows == chunk_rows:
                    yield _reported(builder, listing)
                    builder = FrameBuilder(MEMORY_KINDS)
                builder.add(part)
            bar.step(len(columns["id"]))
    if builder.n_rows:
        yield _reported(builder, listing)


def load_memory(access: Access, memory_id: str) -> pd.DataFrame:
    """One memory as a frame of one row, which becomes its baseline.

    Raises
    ------
    NotFoundError
        There is no such memory of this user.
    """
    listing = _Listing(access, "mark")
    builder = FrameBuilder(MEMORY_KINDS)
    builder.add(listing.columns([access.client.memory_blob(access.user_id, memory_id)]))
    listing.complete = True
    frame = _reported(builder, listing)
    access.keep_baseline(frame)
    return frame


def load_tags(access: Access) -> pd.DataFrame:
    """All tags of the user: columns ``id name color description is_enabled created_at updated_at``."""
    return tags_frame(access.client.tags(access.user_id))


def load_tag(access: Access, tag_id: str) -> pd.DataFrame:
    """One tag as a frame of one row."""
    return tags_frame([access.client.tag(access.user_id, tag_id)])


def load_access_requests(client: Client) -> pd.DataFrame:
    """The developer's access requests, to look at: ``id status reason user_id ai_connector_id created_at updated_at``.

    Memory keys are left out; `Client.access_requests` has them.
    """
    return requests_frame(client.access_requests())


class _Listing:
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

    def report(self) -> dict[str, int | bool]:
        """The small dict for ``frame.attrs``."""
        return {
            "n_rows": self.n_rows,
            "n_undecryptable": self.n_undecryptable,
            "n_plain": self.n_plain,
            "n_repeated": self.n_repeated,
            "complete": self.complete,
        }

    def pages(
        self, query: dict[str, str], *, limit: int | None, page_size: PageSize
    ) -> Iterator[dict[str, Sequence[Any]]]:
        """Columns of each page that brought something new, until the end or ``limit``."""
        left = sys.maxsize if limit is None else _checked_limit(limit)
        fetch = partial(self._fetch, query)
        n_empty = 0
        with closing(iter_pages(fetch, page_size=page_size, limit=limit)) as bodies:
            while left and (body := next(bodies, None)) is not None:
                blobs = self._new(decoded(body, MemoryPage, what=LIST_MEMORIES).memory_blobs)[:left]
                left -= len(blobs)
                n_empty = _refuse_endless(0 if blobs else n_empty + 1)
                if blobs:
                    columns = self.columns(blobs)
                    yield without_surrogates(columns) if _SURROGATE.search(body) else columns
        self.complete = left > 0

    def _fetch(self, query: dict[str, str], page_size: int, cursor: str | None) -> bytes:
        return self._access.client.memory_page_body(query, limit=page_size, cursor=cursor)

    def _new(self, blobs: list[MemoryBlob]) -> list[MemoryBlob]:
        """The memories of a page that no page before had; all of this user, or the load stops."""
        owners = {blob.user_id for blob in blobs}
        if owners - {self._access.user_id}:
            raise ProtocolError(
                f"{LIST_MEMORIES}: the service sent memories of another user than {self._access.user_id}; "
                "nothing of it was kept. Tell the operator of the service"
            )
        n_before = len(self._ids)
        ids = [blob.id for blob in blobs]
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
        """Records as columns, content opened or marked."""
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
        return {**columns, "content": opened.plain, "content_error": errors}


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _reported(builder: FrameBuilder, listing: _Listing) -> pd.DataFrame:
    frame = builder.frame()
    frame.attrs["memframe"] = listing.report()
    return frame


def _undecryptable(errors: Mapping[int, str], ids: Sequence[str]) -> SealError:
    """One summary, not a line a row: a wrong key spoils them all in the same way."""
    first = next(iter(errors))
    return SealError(
        f"{len(errors):,} of {len(ids):,} memories of a page cannot be opened; the first, {ids[first]}: "
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
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise ConfigError(f"limit={limit!r}: give a whole number from 0, or None for all memories")
    return limit


def _cut(columns: dict[str, Sequence[Any]], first: int, size: int) -> Iterator[dict[str, Sequence[Any]]]:
    """Columns cut by rows: the first part fills a chunk that was begun, the others make whole ones."""
    n_rows = len(columns["id"])
    edges = [0, *range(first or size, n_rows, size), n_rows]
    for begin, end in pairwise(edges):
        yield {name: cells[begin:end] for name, cells in columns.items()}


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without the cyclic collector, which would walk each page's fresh objects several times over."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
