"""Service to archive: all memories of a user as tables of a page each, never all of them at once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from memframe.access import Access
from memframe.archive.table import ARCHIVE_SCHEMA, table_of_page
from memframe.filters import memory_query
from memframe.listing import Listing
from memframe.progress import Progress, ProgressOption

STORED = "stored"
"""Column with the content as the service stores it, beside those of a memory."""


def tables_of_access(access: Access, *, progress: ProgressOption = False) -> Iterator[pa.Table]:
    """The columns of `load_memories`, and `STORED`. Damaged rows are marked as there; no baselines are kept."""
    listing = Listing(access, "mark")
    names = [*ARCHIVE_SCHEMA, STORED]
    with Progress(progress, text="memories") as bar:
        for columns in listing.pages(memory_query(access.user_id), limit=None, page_size="auto"):
            yield table_of_page(columns, names)
            bar.step(len(columns["id"]))
