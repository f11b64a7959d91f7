"""What is done for one user, on whatever machine: the same in threads here and in a worker of a cluster.

Whatever happens to one user is a row of the outcome table, never the end of the run.

What came of one user, and how it is packed for its way between processes.

Members of a fleet: the users who have approved, each once.

Outcomes: one row a user, whatever came of them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Literal

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access, open_access
from memframe.archive import places
from memframe.archive.parquet import in_parts
from memframe.archive.sealing import Plain, Sealed, tables_of_access
from memframe.archive.table import ARCHIVE_SCHEMA, frame_of
from memframe.audit import audit_memories
from memframe.audit.findings import Check
from memframe.client import Client
from memframe.display import number_of
from memframe.errors import AccessError, MemframeError
from memframe.load import load_tags
from memframe.wire import AccessRequest, Status


class Member(Struct, frozen=True):
    """One user, and the access request by which their memories are reached.

    Attributes
    ----------
    request_id : str
    user_id : str or None
        None where the service does not say whom a request concerns; then it comes with the credentials.
    """

    request_id: str
    user_id: str | None


def members_with(requests: Iterable[AccessRequest], status: Status) -> list[Member]:
    """Users with a request in this state, each with the newest of them, in the order of the listing.

    >>> requests = [AccessRequest(id=id, status="approved", user_id="u1") for id in ("r1", "r2")]
    >>> members_with(requests, "approved")
    [Member(request_id='r2', user_id='u1')]
    """
    newest: dict[str, AccessRequest] = {}
    for request in requests:
        name = key_of(request.user_id or request.id)
        if request.status == status and _decided_at(request) >= _decided_at(newest.get(name)):
            newest[name] = request
    return [Member(request.id, request.user_id) for request in newest.values()]


def approved_and_revoked(requests: Iterable[AccessRequest]) -> tuple[list[Member], list[Member]]:
    """Users who let us in, and users who did once and have no approved request left."""
    requests = list(requests)
    approved = members_with(requests, "approved")
    open_to_us = {key_of(member.user_id) for member in approved if member.user_id}
    revoked = members_with(requests, "revoked")
    return approved, [member for member in revoked if key_of(member.user_id or "") not in open_to_us]


def key_of(user_id: str) -> str:
    """One spelling of a user's id, as UUIDs have several."""
    return user_id.lower()


def _decided_at(request: AccessRequest | None) -> datetime:
    return (request and (request.updated_at or request.created_at)) or datetime.min.replace(tzinfo=UTC)


Outcome = Literal["done", "revoked", "failed"]


class Haul(Struct, frozen=True):
    """What came of one user.

    Attributes
    ----------
    member : Member
        With the user's id, if it came to be known.
    status : {"done", "revoked", "failed"}
    n_rows : int
        Memories that were read.
    error : str or None
        Why it is not done, or how many memories could not be opened.
    files : dict of str to bytes
        Parquet files by their place, such as ``memories/part-00000.parquet``.
    table : pyarrow.Table or None
        Memories, if they were asked for.
    """

    member: Member
    status: Outcome
    n_rows: int = 0
    error: str | None = None
    files: Mapping[str, bytes] = {}
    table: pa.Table | None = None


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of memories as one, of none an empty one."""
    return pa.concat_tables([*tables] or [pa.schema(ARCHIVE_SCHEMA).empty_table()])


def packed(haul: Haul) -> bytes:
    """A haul as it travels between processes."""
    return msgspec.msgpack.encode(haul, enc_hook=_bytes_of)


def unpacked(data: bytes) -> Haul:
    """The haul that was packed."""
    return msgspec.msgpack.decode(data, type=Haul, dec_hook=lambda _kind, data: _table_in(data))


def _bytes_of(table: pa.Table) -> bytes:
    """Compressed in the quickest way, in this thread: most tables are small."""
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(file, table.schema, options=options) as stream:
        stream.write_table(table)
    return file.getvalue()


def _table_in(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()


FINDINGS, MEMORIES = "findings", "memories"
"""Folders of what is brought home."""

FINDINGS_FILE = "findings.parquet"

N_ROWS = b"memframe.n_rows"
"""Metadata of findings: how many memories were audited."""

USER_ID = b"memframe.user_id"
"""Metadata of findings: whose they are, where the name of the folder cannot say it."""


Form = Literal["plain", "sealed"]
"""In which an archive is brought home."""


class Work(Struct, frozen=True):
    """What is to be done for every user; it travels to workers, and holds no secret.

    Attributes
    ----------
    table : bool
        Bring the memories home as a table.
    archive : {"plain", "sealed"} or None
        Bring them home as the files of an archive.
    findings : bool
        Audit them.
    checks : tuple of str or None
        Which checks; None for all.
    now : datetime or None
        The time for the audit.
    plaintext : bool
        Let what a worker of a cluster brings travel in the open.
    """

    table: bool = False
    archive: Form | None = None
    findings: bool = False
    checks: tuple[Check, ...] | None = None
    now: datetime | None = None
    plaintext: bool = False

    @property
    def kinds(self) -> list[str]:
        """The folders in which something of every user is to be."""
        return [kind for kind, wanted in ((MEMORIES, self.archive), (FINDINGS, self.findings)) if wanted]


def carry_out(client: Client, member: Member, work: Work) -> Haul:
    """Do the work for one user; what goes wrong is in the haul."""
    return attempted(client, member, lambda access: _brought(access, member, work))


def attempted(client: Client, member: Member, do: Callable[[Access], Haul]) -> Haul:
    """What comes of one user's memories when they are opened and something is done with them."""
    try:
        access = open_access(client, member.request_id)
        try:
            return do(access)
        finally:
            client.unmask(access.credentials)
    except AccessError as refused:
        return Haul(member, _state_of(client, member), error=str(refused))
    except MemframeError as error:
        return Haul(member, "failed", error=str(error))
    except Exception as error:  # a fault of our own costs this user's row, and no other's
        return Haul(member, "failed", error=_fault(error))


def _state_of(client: Client, member: Member) -> Outcome:
    """Why access is refused: the user took it back, or something else."""
    try:
        return "revoked" if client.access_request(member.request_id).status == "revoked" else "failed"
    except MemframeError:  # what it was refused with is the news
        return "failed"


def _fault(error: Exception) -> str:
    """Where it broke; what an error of others says may quote a memory."""
    place = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: a fault of memframe; report it"


def _brought(access: Access, member: Member, work: Work) -> Haul:
    tables = list(tables_of_access(access))
    files: dict[str, bytes] = {}
    if work.archive:
        files |= {f"{MEMORIES}/{name}": data for name, data in _archived(_form(access, work.archive), tables)}
    plain = [*map(Plain.of(access).stored, tables)]
    if work.findings:
        files[f"{FINDINGS}/{FINDINGS_FILE}"] = _audited(access, joined(plain), work)
    n_rows = sum(map(len, tables))
    n_closed = n_rows - sum(table["content_error"].null_count for table in tables)
    return Haul(
        replace(member, user_id=access.user_id),
        "done",
        n_rows,
        error=f"{n_closed:,} of {number_of(n_rows, 'memory', 'memories')} cannot be opened: see content_error"
        if n_closed
        else None,
        files=files,
        table=joined(plain) if work.table else None,
    )


def _form(access: Access, form: Form) -> Plain | Sealed:
    return Sealed(access) if form == "sealed" else Plain.of(access)


def _audited(access: Access, table: pa.Table, work: Work) -> bytes:
    """Return the findings of one user as a Parquet file, which also says whose, and of how many memories."""
    audit = audit_memories(frame_of(table), tags=load_tags(access), checks=work.checks, now=work.now)
    found = pa.Table.from_pandas(audit.findings, preserve_index=False)
    file = io.BytesIO()
    told = {**found.schema.metadata, N_ROWS: str(len(table)).encode(), USER_ID: access.user_id.encode()}
    pq.write_table(found.replace_schema_metadata(told), file, compression="zstd")
    return file.getvalue()


def _archived(form: Plain | Sealed, tables: Iterable[pa.Table]) -> Iterator[tuple[str, bytes]]:
    """An archive in memory. The folder's name says whose it is: a column that says it again confuses readers."""
    schema = form.schema.remove(form.schema.get_field_index("user_id"))
    stored = (form.stored(table).drop_columns("user_id") for table in tables)
    files = []
    for number, part in enumerate(in_parts(schema, stored, places.PART_ROWS)):
        files.append(file := io.BytesIO())
        form.write_to(file, schema, part)
        yield places.part_name(number), file.getvalue()
    if isinstance(form, Sealed):
        yield places.SEAL_FILE, form.seal_of(schema, files)


DTYPES = {"user_id": "str", "request_id": "str", "status": "str", "n_rows": "int64", "error": "str"}


def outcomes_frame(hauls: Iterable[Haul]) -> pd.DataFrame:
    """Outcomes as a frame; of no users it has the same dtypes.

    >>> outcomes_frame([Haul(Member("r1", "u1"), "done", 50)])
      user_id request_id status  n_rows error
    0      u1         r1   done      50   NaN
    """
    rows = [
        (haul.member.user_id, haul.member.request_id, haul.status, haul.n_rows, haul.error) for haul in hauls
    ]
    return pd.DataFrame(rows, columns=[*DTYPES]).astype(DTYPES)


def revoked(member: Member) -> Haul:
    """The outcome of a user who took the approval back before the run."""
    return Haul(
        member,
        "revoked",
        error=f"access request {member.request_id} is revoked: nothing may be read any more, and what was kept of "
        "this user should go",
    )
