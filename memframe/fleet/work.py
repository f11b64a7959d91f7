"""Process one user, in the same way in a thread here and on a worker of a cluster.

An error of one user is a row of the table of outcomes, and never ends the run.
"""

from __future__ import annotations

import hmac
import inspect
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, TypeVar

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access, open_access
from memframe.archive.formats import SEAL_FILE, in_parts
from memframe.archive.sealing import Plain, Sealed, tables_of_access
from memframe.archive.table import ARCHIVE_SCHEMA, frame_of
from memframe.audit import audit_memories
from memframe.audit.findings import Check
from memframe.audit.identity import digest_text, keys_of, texts_judged
from memframe.audit.judge import JUDGE_LIMIT, JudgeFunction
from memframe.audit.policy import Policy
from memframe.audit.run import OwnCheck
from memframe.audit.stale import find_stale
from memframe.audit.text import with_all_columns
from memframe.client import Client
from memframe.client.responses import canonical_id
from memframe.decisions import DecisionsByMemory
from memframe.display import number_of
from memframe.errors import AccessError, MemframeError
from memframe.fleet.per_user import PerUser, decisions_of
from memframe.load import load_tags
from memframe.versions import package_version
from memframe.wire import AccessRequest, RequestStatus


class FleetUser(Struct, frozen=True, repr_omit_defaults=True):
    """A user, and the approved access request.

    The id of the user is None if the request does not name it; then the credentials do.
    """

    request_id: str
    user_id: str | None
    digest: str | None = None
    """Digest of the listing whose audit is in the folder: if it is still the same, the user is not audited again."""
    dated: frozenset[str] = frozenset()
    """Ids of the memories in that listing that mention a time, and may become stale."""


def users_with(requests: Iterable[AccessRequest], status: RequestStatus) -> list[FleetUser]:
    """Return the users with a request of this status, each with the newest one, in the order of the listing.

    >>> requests = [AccessRequest(id=id, status="approved", user_id="u1") for id in ("r1", "r2")]
    >>> users_with(requests, "approved")
    [FleetUser(request_id='r2', user_id='u1')]
    """
    newest: dict[str, AccessRequest] = {}
    for request in requests:
        name = canonical_id(request.user_id or request.id)
        if request.status == status and _decided_at(request) >= _decided_at(newest.get(name)):
            newest[name] = request
    return [FleetUser(request.id, request.user_id) for request in newest.values()]


def approved_and_revoked(requests: Iterable[AccessRequest]) -> tuple[list[FleetUser], list[FleetUser]]:
    """Return users with an approved request, and users who only have revoked ones."""
    requests = list(requests)
    approved = users_with(requests, "approved")
    open_to_us = {canonical_id(user.user_id) for user in approved if user.user_id}
    revoked = users_with(requests, "revoked")
    return approved, [user for user in revoked if canonical_id(user.user_id or "") not in open_to_us]


def _decided_at(request: AccessRequest | None) -> datetime:
    return (request and (request.updated_at or request.created_at)) or datetime.min.replace(tzinfo=UTC)


UserStatus = Literal["done", "revoked", "failed"]


class UserResult(Struct, frozen=True):
    """The result of one user: Parquet `files` by path, such as ``memories/part-00000.parquet``, and `table`.

    `error` is the reason, or the number of memories that could not be opened.
    """

    user: FleetUser
    status: UserStatus
    n_rows: int = 0
    error: str | None = None
    files: Mapping[str, bytes] = {}
    table: pa.Table | None = None
    is_unchanged: bool = False
    """True if the folder already has the audit of the same memories."""


def concat_tables(tables: Iterable[pa.Table]) -> pa.Table:
    """Concatenate tables of memories; return an empty one if there are none."""
    return pa.concat_tables([*tables] or [pa.schema(ARCHIVE_SCHEMA).empty_table()])


def pack(result: UserResult) -> bytes:
    """Serialize a result for another process."""
    return msgspec.msgpack.encode(result, enc_hook=_bytes_of)


def unpack(data: bytes) -> UserResult:
    """Read a serialized result."""
    return msgspec.msgpack.decode(data, type=UserResult, dec_hook=_table_in)


def _bytes_of(table: pa.Table) -> bytes:
    """Encode a table, compressed quickly and in this thread, because most tables are small."""
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(file, table.schema, options=options) as stream:
        stream.write_table(table)
    return file.getvalue()


def _table_in(_: type, data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()


FINDINGS, BEFORE, MEMORIES, PLANS = "findings", "findings-before", "memories", "plans"
"""Folders of the results: the last audit of each user, the one before, archives, and plans."""

RESULT_KINDS = (FINDINGS, BEFORE, MEMORIES, PLANS)
"""All folders of results; findings are deleted first, so that an interrupted deletion leaves nothing complete."""

FINDINGS_FILE = "findings.parquet"

N_ROWS = b"memframe.n_rows"
"""Metadata of findings: the number of audited memories."""

LISTING, NIGHT = b"memframe.listing", b"memframe.night"
"""Metadata of findings: the digest of what was audited, and the start of the run."""

DATED = b"memframe.dated"
"""Metadata of findings: the ids of audited memories that mention a time; later runs check whether they are stale."""

SETTLED_COUNTS = b"memframe.settled"
"""Metadata of findings: the counts of further findings, which are not stored because a person has settled them."""

REJECTED = b"memframe.rejected"
"""Metadata of findings: the identities of those that a person has rejected, which do not count as gone."""

COUNTS = b"memframe.counts"
"""Metadata of findings: their numbers by check, severity and source, so that counting need not read them."""

FindingCount = tuple[str, str, str | None, int]
"""Check, severity, source of the memory, and the number of findings."""

TEXT_DIGEST = "text_digest"
"""Column of stored findings: a digest of the text that each judges, under a key derived from the user's key."""


ArchiveForm = Literal["plain", "sealed"]
"""Forms of archives."""


class Work(Struct, frozen=True):
    """The work for every user; it is sent to workers, and holds no secret."""

    table: bool = False
    """Return the memories as a table."""
    archive: ArchiveForm | None = None
    """Return the memories as the files of an archive."""
    findings: bool = False
    """Audit the memories with `checks`, as of `now`."""
    checks: tuple[Check | OwnCheck, ...] | None = None
    decisions: PerUser[DecisionsByMemory] = PerUser()
    policies: PerUser[Policy] = PerUser()
    judge: JudgeFunction | None = None
    judge_limit: int = JUDGE_LIMIT
    now: datetime | None = None
    night: str = ""
    """Start of the run, which names it."""
    plaintext: bool = False
    """Send results from workers of a cluster unencrypted."""

    @property
    def looks_for_stale(self) -> bool:
        """True if findings depend on the day."""
        return self.checks is None or "stale" in self.checks

    @property
    def kinds(self) -> list[str]:
        """The folders in which every user has results."""
        return [kind for kind, wanted in ((MEMORIES, self.archive), (FINDINGS, self.findings)) if wanted]


Failure = Literal["revoked", "failed"]

R = TypeVar("R")


def with_access(
    client: Client, user: FleetUser, act: Callable[[Access], R], fail: Callable[[Failure, str], R]
) -> R:
    """Open the access to one user, and call ``act`` with it; on an error, return the result of ``fail``."""
    try:
        access = open_access(client, user.request_id)
        try:
            return act(access)
        finally:
            client.unmask(access.credentials)
    except AccessError as refused:
        try:
            is_revoked = client.access_request(user.request_id).status == "revoked"
        except MemframeError:  # the refusal itself is the error to show
            is_revoked = False
        return fail("revoked" if is_revoked else "failed", str(refused))
    except MemframeError as error:
        return fail("failed", str(error))
    except Exception as error:  # a bug fails this user only; its message may quote a memory
        place = extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        return fail("failed", f"{where}: a bug in memframe; report it")


def process_user(client: Client, user: FleetUser, work: Work) -> UserResult:
    """Do the work for one user; errors are in the result."""
    return with_access(
        client,
        user,
        lambda access: _read_and_process(access, user, work),
        lambda outcome, error: UserResult(user, outcome, error=error),
    )


def _read_and_process(access: Access, user: FleetUser, work: Work) -> UserResult:
    tables = list(tables_of_access(access))
    plain = [*map(Plain.of(access).prepare, tables)]
    memories, tags = concat_tables(plain), load_tags(access) if work.findings else None
    is_unchanged = tags is not None and user.digest == digest_listing(
        access, memories, tags, work, user.dated
    )
    files: dict[str, bytes] = {}
    if work.archive and not is_unchanged:
        form = Sealed(access) if work.archive == "sealed" else Plain.of(access)
        files |= {f"{MEMORIES}/{name}": data for name, data in _archive_files(form, tables).items()}
    if tags is not None and not is_unchanged:
        files[f"{FINDINGS}/{FINDINGS_FILE}"] = _findings_file(access, memories, tags, work)
    n_rows = sum(map(len, tables))
    n_closed = n_rows - sum(table["content_error"].null_count for table in tables)
    closed = f"{n_closed:,} of {number_of(n_rows, 'memory', 'memories')} cannot be opened: see content_error"
    return UserResult(
        replace(user, user_id=access.user_id),
        "done",
        n_rows,
        error=closed if n_closed else None,
        files=files,
        table=memories if work.table else None,
        is_unchanged=is_unchanged,
    )


def _digest_key(access: Access) -> bytes:
    """Return a key for digests, derived from the key that opens this user's memories."""
    key = access.credentials.encryption_key.reveal()
    return hmac.digest(key.encode(), b"memframe digests of a fleet", "sha256")


def digest_listing(
    access: Access, memories: pa.Table, tags: pd.DataFrame, work: Work, dated: frozenset[str]
) -> str:
    """Return a digest of everything on which the audit of a user depends: if it is the same, so are the findings.

    It includes all fields of the memories, with content decrypted (some services seal it anew for each answer); the
    tags; the checks, decisions and rules of a policy; the version, whose own rules may differ; and the memories that
    are stale by now. Only ``dated`` memories are searched for those, because the others mention no time.
    """
    stale: list[Any] = []
    if work.looks_for_stale:
        each = find_stale(without_undated(memories, dated), now=pd.Timestamp(work.now or datetime.now(UTC)))
        stale = list(zip(each["kind"], each["id"], each["start"].fillna(-1).tolist(), strict=True))
    decisions, at = (
        decisions_of(work.decisions, access.user_id, memories["id"].to_pylist()),
        datetime.now(UTC),
    )
    decided = [
        (one.key, one.decision, one.holds(at)) for one in (decisions.last.values() if decisions else ())
    ]
    policy = work.policies.of(access.user_id)
    listed = [
        package_version(),
        None if work.checks is None else [*map(_identify, work.checks)],
        work.judge and [*map(_identify, (work.judge, work.judge_limit))],
        stale,
        decided,
        policy.rule if policy else (),
        memories.to_pydict(),
        tags.to_dict("list"),
    ]
    digest = hmac.new(_digest_key(access), digestmod="sha256")
    digest.update(msgspec.json.encode(listed, enc_hook=str))
    return digest.hexdigest()


def _identify(part: object) -> object:
    """Return what distinguishes a check or a judge from others: its name, source text, model, prompt and address.

    Functions that it calls are not included.
    """
    if not callable(part):
        return part
    named = [str(getattr(part, name, "")) for name in ("model", "prompt", "base_url")]
    try:
        text = inspect.getsource(part)
    except (OSError, TypeError):
        text = ""
    return [getattr(part, "__qualname__", type(part).__qualname__), text, *named]


_END_OF_TIME = pd.Timestamp("2900-01-01", tz="UTC")


def find_dated(memories: pa.Table) -> frozenset[str]:
    """Return the ids of the memories that mention a time: those that are stale in a far future."""
    found = find_stale(with_all_columns(frame_of(memories)), now=_END_OF_TIME)
    return frozenset(found["id"][found["kind"] == "expired"])


def without_undated(memories: pa.Table, dated: frozenset[str]) -> pd.DataFrame:
    """Return memories as a frame, with empty texts in place of those that never become stale."""
    frame = with_all_columns(frame_of(memories))
    is_kept = frame["id"].isin(dated) | frame["content"].isna()
    return frame.assign(content=frame["content"].where(is_kept, ""))


def _findings_file(access: Access, table: pa.Table, tags: pd.DataFrame, work: Work) -> bytes:
    """Return the findings of one user as a Parquet file, whose metadata name what was audited, and when."""
    audit = audit_memories(
        frame_of(table),
        tags=tags,
        checks=work.checks,
        now=work.now,
        decisions=decisions_of(work.decisions, access.user_id, table["id"].to_pylist()),
        policy=work.policies.of(access.user_id),
        judge=work.judge,
        judge_limit=work.judge_limit,
    )
    key, dated = _digest_key(access), find_dated(table) if work.looks_for_stale else frozenset()
    listing = digest_listing(access, table, tags, work, dated)

    def digests(findings: pd.DataFrame) -> list[str]:
        return [digest_text(key, one) for one in texts_judged(findings, audit.memories, audit.counted)]

    stored = audit.findings.assign(**{TEXT_DIGEST: pd.array(digests(audit.findings), "str")})
    found = pa.Table.from_pandas(stored, preserve_index=False)
    file = io.BytesIO()
    about: dict[bytes, Any] = {
        DATED: sorted(dated),
        SETTLED_COUNTS: audit.settled,
        REJECTED: keys_of(audit.rejected, digests(audit.rejected)),
        COUNTS: _count_findings(audit.findings, table),
    }
    metadata = {
        **found.schema.metadata,
        N_ROWS: str(len(table)).encode(),
        LISTING: listing.encode(),
        NIGHT: work.night.encode(),
        **{name: msgspec.json.encode(value) for name, value in about.items()},
    }
    pq.write_table(found.replace_schema_metadata(metadata), file, compression="zstd")
    return file.getvalue()


def _count_findings(findings: pd.DataFrame, memories: pa.Table) -> list[FindingCount]:
    source_of = dict(zip(memories["id"].to_pylist(), memories["source"].to_pylist(), strict=True))
    sources = map(source_of.get, findings["id"].tolist())
    counts = Counter(zip(findings["check"].tolist(), findings["severity"].tolist(), sources, strict=True))
    return [(*kind, n) for kind, n in counts.items()]


def _archive_files(form: Plain | Sealed, tables: Iterable[pa.Table]) -> dict[str, bytes]:
    """Build an archive in memory, without the column ``user_id``, because the folder's name has it."""
    form.schema = form.schema.remove(form.schema.get_field_index("user_id"))
    files: dict[str, io.BytesIO] = {}
    for name, part in in_parts(form.schema, map(form.prepare, tables)):
        files[name] = io.BytesIO()
        form.write(files[name], part)
    if isinstance(form, Sealed):
        seal = io.BytesIO()
        form.write_seal(seal, files.values())
        files[SEAL_FILE] = seal
    return {name: file.getvalue() for name, file in files.items()}


OUTCOME_DTYPES = {"user_id": "str", "request_id": "str", "status": "str", "n_rows": "int64", "error": "str"}


def outcomes_frame(results: Iterable[UserResult]) -> pd.DataFrame:
    """Return outcomes as a frame, which has the same dtypes without any user.

    >>> outcomes_frame([UserResult(FleetUser("r1", "u1"), "done", 50)])
      user_id request_id status  n_rows error
    0      u1         r1   done      50   NaN
    """
    rows = [
        (result.user.user_id, result.user.request_id, result.status, result.n_rows, result.error)
        for result in results
    ]
    return pd.DataFrame(rows, columns=[*OUTCOME_DTYPES]).astype(OUTCOME_DTYPES)


def revoked_result(user: FleetUser) -> UserResult:
    """Return the result of a user who revoked the approval before the run."""
    return UserResult(
        user, "revoked", error=f"access request {user.request_id} is revoked, so nothing can be read"
    )
