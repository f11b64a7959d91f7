"""Page cursors, and pages of a search through sealed content.

A cursor holds the seq of the last record of a page, sealed with AES-SIV (RFC 5297) for one user and one filter. It
reveals nothing about how many records the service holds; altered ones, and those of another user or filter, do not
open. AES-SIV needs no nonce, so that the same place always gives the same cursor.
"""

from __future__ import annotations

import base64
import binascii

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from memframe.envelope import Envelope
from memframe.errors import InvalidError
from memframe.service.store import Memories
from memframe.service.store.memories import MAX_PAGE_BYTES, MemoryFilter, Page
from memframe.service.validation import invalid
from memframe.wire import MemoryBlob

CURSOR_KEY_BYTES = 64
SEARCH_BATCH = 1000

_SEQ_BYTES = 8


class CursorCipher:
    """Seal and open cursors.

    Parameters
    ----------
    key : bytes
        `CURSOR_KEY_BYTES` of them.

    Examples
    --------
    >>> cursors = CursorCipher(bytes(range(64)))
    >>> everything = MemoryFilter("u-1")
    >>> cursors.open(cursors.seal(4711, everything), everything)
    4711
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)

    def seal(self, seq: int, chosen: MemoryFilter) -> str:
        """Make the cursor of the page after a seq."""
        sealed = self._cipher.encrypt(seq.to_bytes(_SEQ_BYTES), [msgspec.json.encode(chosen)])
        return base64.urlsafe_b64encode(sealed).decode()

    def open(self, cursor: str, chosen: MemoryFilter) -> int:
        """Return the seq in a cursor that was made for this filter; `InvalidError` for any other."""
        try:
            sealed = base64.b64decode(cursor, altchars=b"-_", validate=True)
            seq = int.from_bytes(self._cipher.decrypt(sealed, [msgspec.json.encode(chosen)]))
        except (binascii.Error, ValueError, InvalidTag):
            raise _bad_cursor() from None
        if self.seal(seq, chosen) != cursor:  # another spelling of the same bytes
            raise _bad_cursor()
        return seq


def _bad_cursor() -> InvalidError:
    return invalid(
        "the cursor was not made for this user and these filters; repeat the call that gave it "
        "with the same parameters, or start without a cursor",
        "invalid_cursor",
    )


def search_page(
    memories: Memories, envelope: Envelope, chosen: MemoryFilter, *, after: int, limit: int
) -> Page:
    """Return memories behind a seq whose title, summary or content has the (case-folded) search text.

    Batches are opened and searched in order until the page is full; pages are bounded as those of a list. Content that
    the envelope does not open has no text. Nothing that was opened is kept.
    """
    words, ascii_words = chosen.search, chosen.search.encode()
    found: list[tuple[int, MemoryBlob]] = []
    n_bytes, has_more = 0, True
    while has_more:
        batch, has_more = memories.texts(chosen, after=after, limit=SEARCH_BATCH)
        contents = envelope.open_many([content for *_, content in batch]).plain
        hits = [
            (seq, len(sealed) + len(title or "") + len(summary or ""))
            for (seq, title, summary, sealed), content in zip(batch, contents, strict=True)
            if (content and _contains(content, words, ascii_words))
            or (title and words in title.casefold())
            or (summary and words in summary.casefold())
        ]
        for seq, size in hits:
            if len(found) == limit or n_bytes >= MAX_PAGE_BYTES:
                return found, True
            found.append((seq, memories.at(seq)))
            n_bytes += size
        after = batch[-1][0] if batch else after
    return found, False


def _contains(content: bytes, words: str, encoded: bytes) -> bool:
    """Search in UTF-8, ignoring case; ASCII without decoding it."""
    if content.isascii():
        return encoded in content.lower()
    return words in content.decode().casefold()
