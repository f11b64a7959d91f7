"""Searching sealed content: batches are opened and looked through, in order, until there are enough.

A hit is a text that has the words whatever their case. Nothing that was opened is kept.
"""

from __future__ import annotations

from memframe.envelope import Envelope
from memframe.service.cursors import Filter
from memframe.service.store import Memories
from memframe.wire import MemoryBlob

BATCH = 1000


def search_page(
    memories: Memories, envelope: Envelope, chosen: Filter, *, after: int, limit: int
) -> list[tuple[int, MemoryBlob]]:
    """Records behind a place that have the words of a filter, each with its own place.

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
    places: list[int] = []
    while len(places) < limit:
        batch = memories.texts(chosen, after=after, limit=BATCH)
        contents = envelope.open_many([content for *_, content in batch]).plain
        places += [
            place
            for (place, title, summary, _), content in zip(batch, contents, strict=True)
            if (content and _has(content, words, ascii_words))
            or (title and words in title.casefold())
            or (summary and words in summary.casefold())
        ]
        if len(batch) < BATCH:
            break
        after = batch[-1][0]
    return [(place, memories.at(place)) for place in places[:limit]]


def _has(content: bytes, words: str, encoded: bytes) -> bool:
    """Whether UTF-8 has the words; where all of it is ASCII, without decoding it."""
    if content.isascii():
        return encoded in content.lower()
    return words in content.decode().casefold()
