"""Load memories and tags from the service into decrypted frames; the only module that does.

A load is complete or raises an error: an interrupted chain of pages never gives a silently short frame. A
damaged row never ends a load: it is kept, without its content, and ``content_error`` says why.

``frame.attrs["memframe"]`` holds counts: ``n_rows``, ``n_undecryptable``, ``n_plain`` (stored
unsealed), ``n_repeated`` (rows dropped because their id came before), ``complete`` (False after ``limit``) and
``base_url`` (the address of the service, without user or query).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import pandas as pd

from memframe.access import Access
from memframe.client import Client
from memframe.client.validation import memory_query
from memframe.errors import check_kind
from memframe.frames import MEMORY_KINDS, FrameBuilder, gc_paused, requests_frame, tags_frame
from memframe.listing import MemoryPages, OnUndecryptable, PageSize, check_count
from memframe.progress import Progress, ProgressOption


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
    """Load all memories of the user, or those that match, into one decrypted frame.

    Parameters
    ----------
    access : Access
    tags : iterable of str, optional
        Names; a memory must have at least one of them.
    search : str, optional
        Text in title, summary or content; the service matches it.
    min_importance : float, optional
        From 0 to 1.
    limit : int, optional
        Maximum number of rows; None loads all.
    page_size : int or "auto"
        Memories per request; "auto" starts at 1,000 and steps down if the service refuses.
    on_undecryptable : {"mark", "raise"}
        Mark a row that cannot be decrypted in ``content_error``, or raise an error.
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
        The listing violates the specification, so the load could be incomplete.
    NoAnswerError
        The connection failed before the load was complete.
    SealError
        With ``on_undecryptable="raise"``, if rows cannot be decrypted.

    Examples
    --------
    >>> memories = load_memories(access)
    >>> memories.loc[:2, ["title", "source", "importance"]]
             title source  importance
    0  Who Ilka is   chat        0.90
    1    Home city   chat        0.90
    2          Job   chat        0.85
    >>> load_memories(access, tags=["travel"], min_importance=0.8).title.tolist()
    ['Japan in April', 'Japan trip cancelled', 'Holiday hut', 'The bench']
    """
    check_kind("access", access, Access)
    pages = MemoryPages(access, on_undecryptable)
    query = memory_query(access.user_id, tags=tags, search=search, min_importance=min_importance)
    builder = FrameBuilder(MEMORY_KINDS)
    with Progress(progress, text="memories") as bar, gc_paused():
        # `map`, because a loop variable would keep a page alive while the next one is decoded, which takes longer
        for n_rows in map(builder.add, pages.columns(query, limit=limit, page_size=page_size)):
            bar.step(n_rows)
    frame = builder.frame(pages.report())
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
    """Load memories in frames of ``chunk_rows`` rows, for accounts larger than memory.

    Keeps no baselines: a plan for such rows compares them with the service. ``attrs`` counts the rows so far,
    and is ``complete`` only on the last frame. The other parameters and the errors are those of
    `load_memories`; an error after some frames means that the rest is missing.

    Parameters
    ----------
    chunk_rows : int
        Rows per frame; the last frame may be shorter. Without memories there is no frame.

    Examples
    --------
    >>> [len(frame) for frame in iter_memories(access, chunk_rows=150)]
    [150, 150, 89]
    """
    check_kind("access", access, Access)
    chunk_rows = check_count("chunk_rows", chunk_rows, 1)
    pages = MemoryPages(access, on_undecryptable)
    query = memory_query(access.user_id, tags=tags, search=search, min_importance=min_importance)
    return _iter_chunks(pages, query, limit, page_size, chunk_rows, progress)


def _iter_chunks(
    pages: MemoryPages,
    query: Mapping[str, str],
    limit: int | None,
    page_size: PageSize,
    chunk_rows: int,
    progress: ProgressOption,
) -> Iterator[pd.DataFrame]:
    builder = FrameBuilder(MEMORY_KINDS)
    with Progress(progress, text="memories") as bar:
        for columns in pages.columns(query, limit=limit, page_size=page_size):
            n_rows = len(columns["id"])
            first = chunk_rows - builder.n_rows or chunk_rows  # completes the chunk that was begun
            for begin, end in pairwise([0, *range(first, n_rows, chunk_rows), n_rows]):
                if builder.n_rows == chunk_rows:
                    yield builder.frame(pages.report())
                    builder = FrameBuilder(MEMORY_KINDS)
                builder.add({name: cells[begin:end] for name, cells in columns.items()})
            bar.step(n_rows)
    if builder.n_rows:
        yield builder.frame(pages.report())


def load_memory(access: Access, memory_id: str) -> pd.DataFrame:
    """Load one memory as a frame of one row, which becomes its baseline.

    Raises
    ------
    NotFoundError
        This user has no such memory.

    Examples
    --------
    >>> oldest = load_memories(access, limit=1)
    >>> load_memory(access, oldest.id[0]).title.tolist()
    ['Who Ilka is']
    """
    check_kind("access", access, Access)
    pages = MemoryPages(access)
    builder = FrameBuilder(MEMORY_KINDS)
    builder.add(pages.open([access.client.memory_blob(access.user_id, memory_id)]))
    pages.complete = True
    frame = builder.frame(pages.report())
    access.keep_baseline(frame)
    return frame


def load_tags(access: Access) -> pd.DataFrame:
    """Load all tags of the user: columns ``id name color description is_enabled created_at updated_at``.

    Examples
    --------
    >>> load_tags(access).loc[:1, ["name", "is_enabled"]]
        name  is_enabled
    0  birds        True
    1   boat        True
    """
    check_kind("access", access, Access)
    return tags_frame(access.client.tags(access.user_id))


def load_tag(access: Access, tag_id: str) -> pd.DataFrame:
    """Load one tag as a frame of one row.

    Examples
    --------
    >>> tags = load_tags(access)
    >>> load_tag(access, tags.id[0]).name.tolist()
    ['birds']
    """
    check_kind("access", access, Access)
    return tags_frame([access.client.tag(access.user_id, tag_id)])


def load_access_requests(client: Client) -> pd.DataFrame:
    """Load the developer's access requests as a frame.

    Columns are ``id status reason user_id ai_connector_id created_at updated_at``.
    Memory keys are left out; `Client.access_requests` has them.

    Examples
    --------
    >>> requests = load_access_requests(client)
    >>> requests.loc[requests.id == request_id, ["status", "reason"]].to_dict("records")
    [{'status': 'approved', 'reason': 'a test'}]
    """
    check_kind("client", client, Client)
    return requests_frame(client.access_requests())
