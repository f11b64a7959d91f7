"""Searching sealed content: batches are opened and looked through, in order, until there are enough.

A hit is a text that has the words whatever their case. Nothing that was opened is kept.
"""

from __future__ import annotations

from memframe.envelope import Envelope
from memframe.service.cursors import Filter
from memframe.service.store import Memories
from memframe.service.store.memories import MAX_PAGE_BYTES
from memframe.wire import MemoryBlob

BATCH = 1000


def search_page(
    memories: Memories, envelope: Envelope, chosen: Filter, *, after: int, limit: int
) -> tuple[list[tuple[int, MemoryBlob]], bool]:
    """Return records behind a place that have the words of a filter, each with its own place; True if there are more.

    They are bounded like any page.

    Parameters
    ----------
    memories : Memories
    envelope : Envelope
        Opens their content; content that it does not open has no words.
    chosen : Filter
        Its search is case-folded.
    after, limit : int
    """
    words, ascii_words = chosen.search, chosen.search.encode()
    found: list[tuple[int, MemoryBlob]] = []
    n_bytes, are_more = 0, True
    while are_more:
        batch, are_more = memories.texts(chosen, after=after, limit=BATCH)
        contents = envelope.open_many([content for *_, content in batch]).plain
        hits = [
            (place, len(sealed) + len(title or "") + len(summary or ""))
            for (place, title, summary, sealed), content in zip(batch, contents, strict=True)
            if (content and _has(content, words, ascii_words))
            or (title and words in title.casefold())
            or (summary and words in summary.casefold())
        ]
        for place, size in hits:
            if len(found) == limit or n_bytes >= MAX_PAGE_BYTES:
                return found, True
            found.append((place, memories.at(place)))
            n_bytes += size
        after = batch[-1][0] if batch else after
    return found, False


def _has(content: bytes, words: str, encoded: bytes) -> bool:
    """Whether UTF-8 has the words; where all of it is ASCII, without decoding it."""
    if content.isascii():
        return encoded in content.lower()
    return words in content.decode().casefold()
