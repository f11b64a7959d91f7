"""Single memories, as many to a statement as are asked for at the time, each behind its own live grant.

For a database that is waited for. Going to another thread and back, and to the database and back, costs
several times what it takes to find a memory; so those who come while a statement is on its way share the next.
It begins after all of them have come: a grant that was revoked before is not seen any more.

What they ask for travels as JSON: of that PostgreSQL believes that it is always as much, and plans the statement
once. With arrays, whose length it knows, it plans each time anew, which takes longer than to answer it.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import JSON, Integer, Text, bindparam, column, func, select, true

from memframe.service.store.lanes import Lanes, settle
from memframe.service.store.memories import COLUMNS, as_memory
from memframe.service.store.readers import Readers
from memframe.service.store.requests import grant_of
from memframe.service.store.schema import memories, users
from memframe.service.store.statements import Row, Statement
from memframe.wire import MemoryBlob

_KEYS = ("developer_id", "user_id", "memory_id")


class Lookup(NamedTuple):
    """Which memory of whom is looked for by whom, and whoever waits for the outcome."""

    keys: dict[str, str]
    answer: Future[MemoryBlob | None]


def _found() -> Statement:
    given = bindparam("looks", type_=Text).cast(JSON)
    columns: list[Any] = [column("place", Integer), *(column(key, Text) for key in _KEYS)]
    looks = func.json_to_recordset(given).table_valued(*columns).render_derived("looks", with_types=True)
    granted = grant_of(looks.c.developer_id, looks.c.user_id)
    this = (memories.c.user_id == users.c.id) & (memories.c.id == looks.c.memory_id)
    one = granted.with_only_columns(*COLUMNS).join(memories, this).lateral("one")
    return Statement(select(looks.c.place, one).join_from(looks, one, true()))


_FOUND = _found()


class Lookups:
    """The lookups of one store, done by a thread that starts with the first.

    Parameters
    ----------
    readers : Readers
        Where the connection comes from.
    """

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._lanes = Lanes("memframe-lookup", self._answer)

    def submit(self, memory_id: str, *, developer_id: str, user_id: str) -> Future[MemoryBlob | None]:
        """Look for a memory; the future has it, or None where there is none or it is not open."""
        keys = {"developer_id": developer_id, "user_id": user_id, "memory_id": memory_id}
        lookup = Lookup(keys, Future())
        self._lanes.put(lookup)
        return lookup.answer

    def close(self) -> None:
        """Answer whoever waits, and end the thread."""
        self._lanes.close()

    def _answer(self, lookups: list[Lookup]) -> None:
        found = self._rows(lookups)
        for place, lookup in enumerate(lookups):
            settle(lookup.answer, partial(_memory_of, found.get(place)))

    def _rows(self, lookups: list[Lookup]) -> dict[int, Row]:
        """What was found, by its place in the line."""
        looks = [{"place": place, **lookup.keys} for place, lookup in enumerate(lookups)]
        rows = self._readers.queries().rows(_FOUND, looks=msgspec.json.encode(looks).decode())
        return {row[0]: row[1:] for row in rows}


def _memory_of(row: Row | None) -> MemoryBlob | None:
    return None if row is None else as_memory(row)
