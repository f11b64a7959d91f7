"""Sealed hauls of a cluster, opened in this process with keys that it fetches itself."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from memframe.access import Access
from memframe.archive.header import Header, header_in
from memframe.archive.sealing import Opener
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.client import Client
from memframe.fleet.members import Member
from memframe.fleet.work import Haul, attempted


def opened(client: Client, hauls: Iterable[Haul], *, workers: int) -> Iterator[Haul]:
    """Hauls with their files as tables in the open; some threads fetch keys while others are awaited."""
    with ThreadPoolExecutor(workers, thread_name_prefix="memframe-open") as pool:
        opening = [pool.submit(_opened, client, haul) for haul in hauls]
        yield from (one.result() for one in opening)


def _opened(client: Client, haul: Haul) -> Haul:
    if not haul.files:
        return haul
    table = pa.concat_tables([_table_in(data, haul.member) for data in haul.files.values()])
    header = header_in(table.schema)
    if header and header.seal:
        return attempted(client, haul.member, partial(_unsealed, haul, table, header))
    return replace(haul, files={}, table=table.replace_schema_metadata())


def _table_in(data: bytes, member: Member) -> pa.Table:
    table = pq.read_table(io.BytesIO(data))
    whole = table.append_column("user_id", pa.repeat(member.user_id, len(table))).select([*ARCHIVE_SCHEMA])
    return whole.cast(pa.schema(ARCHIVE_SCHEMA, metadata=table.schema.metadata))


def _unsealed(haul: Haul, table: pa.Table, header: Header, access: Access) -> Haul:
    opener = Opener(f"What a worker brought of user {access.user_id}", header, access)
    return replace(haul, files={}, table=opener.opened(table).replace_schema_metadata())
