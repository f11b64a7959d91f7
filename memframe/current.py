"""The service's state of chosen memories, by one listing or one by one, whichever is sooner."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Container, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice

from msgspec import Struct

from memframe.access import Access
from memframe.change import Value
from memframe.client.validation import memory_query
from memframe.errors import NotFoundError
from memframe.frames import to_encodable
from memframe.listing import PAGE_SIZES, MemoryPages
from memframe.wire import MemoryBlob

N_READERS = 8
"""Memories that are read at the same time, where they are read one by one: so many cost what a page does."""


class Stored(Struct, frozen=True):
    """One memory as the service holds it now, and as people read it.

    Attributes
    ----------
    blob : MemoryBlob
        As it came.
    content : str or None
        Plain; None where there is none or it cannot be opened.
    error : str or None
        Why a plan must leave it as it is: what would stand in ``content_error``.
    """

    blob: MemoryBlob
    content: str | None = None
    error: str | None = None

    def __repr__(self) -> str:
        return f"<memory {self.blob.id} as it is stored>"

    @property
    def id(self) -> str:
        """Of the memory."""
        return self.blob.id

    def value(self, field: str) -> Value:
        """What stands in a field, in the form in which changes hold it.

        >>> Stored(MemoryBlob(id="m1", user_id="u1", tags=("tea", "home", "tea"))).value("tags")
        ('tea', 'home')
        """
        if field == "content":
            return self.content
        value: Value = to_encodable(getattr(self.blob, field))
        return tuple(dict.fromkeys(value or ())) if field == "tags" else value  # type: ignore[arg-type]  # names

    @property
    def sealed_digest(self) -> str:
        """SHA-256, hexadecimal, of the content as it is stored."""
        return digest_of(self.blob.content or "")


def digest_of(content: str) -> str:
    """SHA-256, hexadecimal, of content as it is sent or stored."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def iter_stored(access: Access) -> Iterator[Stored]:
    """Every memory of the user, by one listing, page by page.

    Whoever gets to the end has seen all: a chain that breaks is an error.

    Raises
    ------
    ProtocolError
        The listing breaks the specification: another user's memories, a cursor that repeats.
    """
    for page in _pages(access):
        yield from page


def read_stored(access: Access, ids: Iterable[str], *, n_known: int | None = None) -> dict[str, Stored]:
    """Chosen memories as they are now, by id; an id that the service has not is no key.

    Parameters
    ----------
    access : Access
    ids : iterable of str
    n_known : int, optional
        How many memories the user has, as far as one knows.
    """
    wanted = dict.fromkeys(ids)
    n_turns = math.ceil(len(wanted) / N_READERS)
    if math.ceil((n_known or len(wanted)) / PAGE_SIZES[0]) >= n_turns:
        return _read_one_by_one(access, wanted)
    found: dict[str, Stored] = {}
    with closing(_pages(access, wanted)) as pages:
        for page in islice(pages, n_turns):  # from then on, asking for each is sooner, however many there are
            found |= {stored.id: stored for stored in page}
            if len(found) == len(wanted):
                return found
        is_whole = next(pages, None) is None
    return found if is_whole else found | _read_one_by_one(access, wanted.keys() - found.keys())


def _pages(access: Access, wanted: Container[str] | None = None) -> Generator[list[Stored]]:
    """Page by page; with nothing but what is wanted, so that only that is opened."""
    listing = MemoryPages(access, "mark")
    with closing(listing.records(memory_query(access.user_id))) as pages:
        for blobs, is_odd in pages:
            chosen = blobs if wanted is None else [blob for blob in blobs if blob.id in wanted]
            yield _opened(listing, chosen, is_odd)


def read_one(access: Access, memory_id: str) -> Stored | None:
    """One memory as it is now; None where the service has none of this id."""
    blob = _blob(access, memory_id)
    return None if blob is None else _opened(MemoryPages(access, "mark"), [blob], is_odd=True)[0]


def _read_one_by_one(access: Access, ids: Collection[str]) -> dict[str, Stored]:
    if len(ids) <= 1:  # not worth a thread
        found = [read_one(access, memory_id) for memory_id in ids]
        return {stored.id: stored for stored in found if stored}
    with ThreadPoolExecutor(N_READERS, thread_name_prefix="memframe-read") as readers:
        blobs = [blob for blob in readers.map(partial(_blob, access), ids) if blob]
    return {stored.id: stored for stored in _opened(MemoryPages(access, "mark"), blobs, is_odd=True)}


def _blob(access: Access, memory_id: str) -> MemoryBlob | None:
    try:
        return access.client.memory_blob(access.user_id, memory_id)
    except NotFoundError:
        return None


def _opened(listing: MemoryPages, blobs: Sequence[MemoryBlob], is_odd: bool) -> list[Stored]:
    columns = listing.open(blobs, is_odd)
    return [
        Stored(blob, None if content is None else content.decode(), error)
        for blob, content, error in zip(blobs, columns["content"], columns["content_error"], strict=True)
    ]
