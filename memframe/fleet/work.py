"""What is done for one user, on whatever machine: the same in threads here and in a worker of a cluster.

Whatever happens to one user is a row of the outcome table, never the end of the run.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from traceback import extract_tb
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access, open_access
from memframe.archive import places
from memframe.archive.parquet import in_parts
from memframe.archive.sealing import Plain, Sealed
from memframe.archive.stream import tables_of_access
from memframe.archive.table import frame_of
from memframe.audit import audit_memories
from memframe.audit.findings import Check
from memframe.client import Client
from memframe.errors import AccessError, MemframeError
from memframe.fleet.haul import Haul, Outcome, joined
from memframe.fleet.members import Member
from memframe.load import load_tags
from memframe.showing import number_of

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
            client.forget(access.credentials)
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
