"""Tables of the service, the same for SQLite and PostgreSQL.

No secret is stored in the open: API keys, client secrets, tokens and session cookies as SHA-256, passwords as
argon2id, users' encryption keys wrapped by the master key, content sealed, memory keys (which the master key derives)
as hashes, e-mail and network addresses of sign-ins as keyed hashes.

Every change of the tables needs a script in `migrations/versions`, and its number here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, String, Table, Text, TypeDecorator

from memframe.fields import MEMORY_FIELDS
from memframe.service.clock import format_instant, parse_instant

REVISION = "0006"
"""The newest alembic revision; a database of another one is upgraded at start-up, or refused if it is newer."""

metadata = sa.MetaData()

Id = String(36)
Hash = String(64)
Instant = String(27)
TagName = Text().with_variant(Text(collation="C"), "postgresql")
"""Sorted by code point in every database."""


class Time(TypeDecorator[datetime]):
    """An aware datetime, stored as the text of `memframe.service.clock`."""

    impl = Instant
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: sa.Dialect) -> str | None:
        return None if value is None else format_instant(value)

    def process_result_value(self, value: Any, _: sa.Dialect) -> datetime | None:
        return None if value is None else parse_instant(value)


class Texts(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts, stored as JSON."""

    impl = sa.JSON
    cache_ok = True

    def process_result_value(self, value: Any, _: sa.Dialect) -> tuple[str, ...]:
        return tuple(value)


alembic_version = Table(
    "alembic_version",
    sa.MetaData(),  # apart from `metadata`, whose tables alembic compares with the database
    Column("version_num", String(32), primary_key=True),
)

meta = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

developers = Table(
    "developers",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("api_key_hash", Hash, nullable=False, unique=True),
    Column("client_id", String(64), nullable=False, unique=True),
    Column("client_secret_hash", Hash, nullable=False),
    Column("redirect_uris", Texts, nullable=False),
    Column("disabled", Boolean, nullable=False, default=False),
    Column(
        "token_epoch", Integer, nullable=False, server_default="0"
    ),  # tokens of earlier epochs are invalid
    Column("created_at", Time, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("email", String(320), nullable=False, unique=True),
    Column("password_hash", Text, nullable=False),
    Column("must_change_password", Boolean, nullable=False, server_default=sa.false()),
    Column("key_version", Integer, nullable=False),
    Column("disabled", Boolean, nullable=False, default=False),
    Column("created_at", Time, nullable=False),
)

user_keys = Table(
    "user_keys",
    metadata,
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("wrapped_key", sa.LargeBinary, nullable=False),
    Column("created_at", Time, nullable=False),
)

connections = Table(
    "connections",
    metadata,
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    Column("developer_id", Id, ForeignKey("developers.id"), primary_key=True),
    Column("memory_key_hash", Hash, nullable=False, unique=True),
    Column("generation", Integer, nullable=False, server_default="1"),  # of the memory key
    Column("created_at", Time, nullable=False),
    Column("ended_at", Time),
)

access_requests = Table(
    "access_requests",
    metadata,
    Column("seq", sa.BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", Id, nullable=False, unique=True),
    Column("developer_id", Id, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("reason", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    sa.ForeignKeyConstraint(["user_id", "developer_id"], ["connections.user_id", "connections.developer_id"]),
    Index("access_requests_by_grant", "developer_id", "user_id", "status"),
    Index("access_requests_by_user", "user_id", "seq"),
    Index("access_requests_by_developer", "developer_id", "seq"),
)

memories = Table(
    "memories",
    metadata,
    Column("seq", sa.BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", Id, nullable=False, unique=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("content", Text, nullable=False),
    Column("tags", Text, nullable=False),  # names and ids of the tags, as JSON, in their order
    Column("tag_ids", Text, nullable=False),
    *(
        Column(field.name, sa.Double if field.kind == "number" else Text)
        for field in MEMORY_FIELDS
        if field.is_optional
    ),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Index("memories_by_user", "user_id", "seq", "importance"),
    sqlite_autoincrement=True,  # a deleted record's seq is never used again: cursors stay valid
)

tags = Table(
    "tags",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("name", TagName, nullable=False),
    Column("color", String(7), nullable=False),
    Column("description", Text, nullable=False),
    Column("is_enabled", Boolean, nullable=False, default=True),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    sa.UniqueConstraint("user_id", "name"),
)

memory_tags = Table(
    "memory_tags",
    metadata,
    Column("tag_id", Id, ForeignKey("tags.id"), primary_key=True),
    Column("memory_seq", ForeignKey("memories.seq", ondelete="CASCADE"), primary_key=True),
    Index("memory_tags_by_memory", "memory_seq"),
    sqlite_with_rowid=False,  # the entries of a tag are adjacent in the key
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("developer_id", Id, ForeignKey("developers.id"), primary_key=True),
    Column("key_hash", Hash, primary_key=True),
    Column("body_hash", Hash, nullable=False),
    Column("memory_id", Id, nullable=False),
    Column("created_at", Time, nullable=False, index=True),
    Column("user_id", Id),  # NULL only in rows of schema 5 whose memory had been deleted
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("memory_id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("developer_id", Id, ForeignKey("developers.id"), nullable=False),
    Column("digest", Hash, nullable=False),  # keyed hash of the fields
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("deleted_at", Instant, nullable=False, index=True),
)

access_counts = Table(
    "access_counts",
    metadata,
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("day", String(10), primary_key=True),  # UTC
    Column("developer_id", Id, ForeignKey("developers.id"), primary_key=True),
    Column("reads", Integer, nullable=False),
    Column("creates", Integer, nullable=False),
    Column("patches", Integer, nullable=False),
    Column("deletes", Integer, nullable=False),
)

imports = Table(
    "imports",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("file_digest", Hash, nullable=False),  # keyed
    Column("started_at", Time, nullable=False),
    Column("finished_at", Time),  # NULL: running or interrupted; it continues under the same id
)

imported_memories = Table(
    "imported_memories",
    metadata,
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", Hash, primary_key=True),  # keyed, of origin and text
    Column("import_id", Id, ForeignKey("imports.id"), nullable=False, index=True),
    Column("memory_id", Id, nullable=False),
    Column("updated_at", Instant, nullable=False),
)

erasures = Table(
    "erasures",
    metadata,
    Column("digest", Hash, primary_key=True),  # keyed, of the user id: all that is kept of the account
    Column("erased_at", Time, nullable=False),
)

authorization_codes = Table(
    "authorization_codes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("code_hash", Hash, nullable=False, unique=True),
    Column("developer_id", Id, ForeignKey("developers.id"), nullable=False),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("redirect_uri", Text),  # NULL: the client left it out, as it has only one
    Column("code_challenge", String(128)),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False, index=True),
    Column("used_at", Time),
)

user_tokens = Table(
    "user_tokens",
    metadata,
    Column("token_hash", Hash, primary_key=True),
    Column("kind", String(16), nullable=False),  # access, refresh
    Column("code_id", Id, ForeignKey("authorization_codes.id"), nullable=False, index=True),
    Column("developer_id", Id, ForeignKey("developers.id"), nullable=False),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False, index=True),
    Column("revoked_at", Time),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", Hash, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False, index=True),
)

attempts = Table(
    "attempts",
    metadata,
    Column("key_hash", Hash, primary_key=True),  # keyed, so that it reveals no e-mail or network address
    Column("n", Integer, nullable=False),
    Column("began_at", Time, nullable=False),
    Column("last_at", Time, nullable=False, index=True),
)
