"""The current state of memories at the service, read by one listing or one by one, whichever is faster."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Container, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice

import pandas as pd
from msgspec import Struct

from memframe.access import Access
from memframe.client.validation import memory_query
from memframe.errors import NotFoundError
from memframe.frames import to_encodable
from memframe.listing import PAGE_SIZES, MemoryPages
from memframe.plan.cells import cells_of, read_cell
from memframe.plan.change import FIELDS, Fields, Value, same_value
from memframe.wire import MemoryBlob

N_PARALLEL_READS = 8
"""Concurrent reads of single memories; together they cost as much as a page."""


class CurrentMemory(Struct, frozen=True):
    """One memory as the service holds it now, with its content opened."""

    blob: MemoryBlob
    """Record as the service returned it."""
    content: str | None = None
    """Plain text; None if there is none or it cannot be opened."""
    error: str | None = None
    """Reason why a plan must not change the memory, as in ``content_error``."""

    def __repr__(self) -> str:
        return f"<current memory {self.blob.id}>"

    @property
    def id(self) -> str:
        """Id of the memory."""
        return self.blob.id

    def value(self, field: str) -> Value:
        """Return a field in the form in which changes hold it.

        >>> CurrentMemory(MemoryBlob(id="m1", user_id="u1", tags=("tea", "home", "tea"))).value("tags")
        ('tea', 'home')
        """
        if field == "content":
            return self.content
        value: Value = to_encodable(getattr(self.blob, field))
        return tuple(dict.fromkeys(value or ())) if field == "tags" else value  # type: ignore[arg-type]  # names

    def find_differences(self, fields: Fields) -> tuple[str, ...]:
        """Find the fields in which the memory has other values."""
        return tuple(name for name, value in fields.items() if not same_value(name, self.value(name), value))

    @property
    def sealed_digest(self) -> str:
        """SHA-256, hexadecimal, of the content as it is stored."""
        return digest_of(self.blob.content or "")


def current_of(memories: pd.DataFrame) -> dict[str, CurrentMemory]:
    """Return the rows of a frame as memories, by id: a file takes the place of the service for its memories.

    >>> memories = pd.DataFrame({"id": ["row 0"], "content": ["Likes tea"]})
    >>> current_of(memories)["row 0"].value("content")
    'Likes tea'
    """
    names = [name for name in (*FIELDS, "content_error") if name in memories.columns]
    columns = {name: cells_of(memories[name]) for name in names}
    errors = columns.pop("content_error", [None] * len(memories))
    fields = {name: [read_cell(name, cell).value for cell in cells] for name, cells in columns.items()}
    found = {}
    for row, memory_id in enumerate(memories["id"]):
        blob = MemoryBlob(id=memory_id, user_id="", **{name: cells[row] for name, cells in fields.items()})  # type: ignore[arg-type]  # as the fields hold them
        error = errors[row] if isinstance(errors[row], str) else None
        found[memory_id] = CurrentMemory(blob, blob.content, error)
    return found


def digest_of(content: str) -> str:
    """Compute the SHA-256, hexadecimal, of content as it is sent or stored."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def iter_current(access: Access) -> Iterator[CurrentMemory]:
    """Iterate over all memories of the user, page by page, and raise an error if the listing is incomplete.

    Raises `ProtocolError` if the listing breaks the specification: another user's memories, a cursor that repeats.
    """
    for page in _pages(access):
        yield from page


def count_current(access: Access) -> int:
    """Count the memories of the user, by one listing."""
    with closing(MemoryPages(access, "mark").records(memory_query(access.user_id))) as records:
        return sum(len(blobs) for blobs, _ in records)


def read_current(
    access: Access, ids: Iterable[str], *, n_known: int | None = None, with_content: bool = True
) -> dict[str, CurrentMemory]:
    """Read the current memories by id; ids that the service does not have are missing in the result.

    ``n_known`` is the number of the user's memories, as far as is known. Opening content takes most of the time.
    """
    wanted = dict.fromkeys(ids)
    n_rounds = math.ceil(len(wanted) / N_PARALLEL_READS)
    if math.ceil((n_known or len(wanted)) / PAGE_SIZES[0]) >= n_rounds:
        return _read_one_by_one(access, wanted, with_content)
    found: dict[str, CurrentMemory] = {}
    with closing(_pages(access, wanted, with_content)) as pages:
        # after these pages reading one by one is faster, however many memories there are
        for page in islice(pages, n_rounds):
            found |= {memory.id: memory for memory in page}
            if len(found) == len(wanted):
                return found
        is_whole = next(pages, None) is None
    return found if is_whole else found | _read_one_by_one(access, wanted.keys() - found.keys(), with_content)


def _pages(
    access: Access, wanted: Container[str] | None = None, with_content: bool = True
) -> Generator[list[CurrentMemory]]:
    """List page by page; of each page only the wanted memories are opened and returned."""
    with closing(MemoryPages(access, "mark").records(memory_query(access.user_id))) as records:
        for blobs, may_hold_surrogates in records:
            chosen = blobs if wanted is None else [blob for blob in blobs if blob.id in wanted]
            yield (
                _open(access, chosen, may_hold_surrogates) if with_content else [*map(CurrentMemory, chosen)]
            )


def _read_one_by_one(access: Access, ids: Collection[str], with_content: bool) -> dict[str, CurrentMemory]:
    if len(ids) <= 1:  # not worth a thread
        blobs = [_blob(access, memory_id) for memory_id in ids]
    else:
        with ThreadPoolExecutor(N_PARALLEL_READS, thread_name_prefix="memframe-read") as readers:
            blobs = [*readers.map(partial(_blob, access), ids)]
    records = [blob for blob in blobs if blob]
    found = _open(access, records) if with_content else map(CurrentMemory, records)
    return {memory.id: memory for memory in found}


def _blob(access: Access, memory_id: str) -> MemoryBlob | None:
    try:
        return access.client.memory_blob(access.user_id, memory_id)
    except NotFoundError:
        return None


def _open(
    access: Access, blobs: Sequence[MemoryBlob], may_hold_surrogates: bool = True
) -> list[CurrentMemory]:
    """Open the contents of memories; halves of surrogate pairs are looked for if ``may_hold_surrogates``."""
    if may_hold_surrogates:
        columns = MemoryPages(access, "mark").open(blobs)
        plain, errors = columns["content"], columns["content_error"]
    else:
        opened = access.envelope.open_many([blob.content for blob in blobs])
        plain, errors = opened.plain, [*map(opened.errors.get, range(len(blobs)))]
    return [
        CurrentMemory(blob, None if content is None else content.decode(), error)
        for blob, content, error in zip(blobs, plain, errors, strict=True)
    ]
