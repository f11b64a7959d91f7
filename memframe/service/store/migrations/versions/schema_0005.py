"""From schema 2, the earliest that can be upgraded, to schema 5; schema 2 has no alembic revision."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Add what a database of schema 2 lacks; refuse versions of memframe that do not know alembic."""
    op.add_column("connections", _integer("generation", server_default="1"))
    op.add_column("connections", _time("ended_at", nullable=True))
    op.add_column("developers", _integer("token_epoch", server_default="0"))
    must_change = sa.Column("must_change_password", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("users", must_change)
    op.create_index("access_requests_by_developer", "access_requests", ["developer_id", "seq"])
    for name, columns in TABLES.items():
        op.create_table(name, *columns)
    op.execute("UPDATE meta SET value = '4' WHERE name = 'schema_version'")


def _id(name: str, table: str | None = None, **options: Any) -> sa.Column[str]:
    references = [sa.ForeignKey(f"{table}.id", ondelete="CASCADE" if table == "users" else None)]
    return sa.Column(name, sa.String(36), *(references if table else []), nullable=False, **options)


def _integer(name: str, **options: Any) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, **options)


def _digest(name: str, *, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(64), nullable=False, primary_key=primary_key)


def _time(name: str, *, nullable: bool = False, index: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(27), nullable=nullable, index=index)


TABLES: dict[str, list[sa.Column[Any]]] = {
    "tombstones": [
        _id("memory_id", primary_key=True),
        _id("user_id", "users", index=True),
        _id("developer_id", "developers"),
        _digest("digest"),
        _time("created_at"),
        _time("updated_at"),
        _time("deleted_at", index=True),
    ],
    "attempts": [
        _digest("key_hash", primary_key=True),
        _integer("n"),
        _time("began_at"),
        _time("last_at", index=True),
    ],
    "access_counts": [
        _id("user_id", "users", primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        _id("developer_id", "developers", primary_key=True),
        *(_integer(name) for name in ("reads", "creates", "patches", "deletes")),
    ],
    "imports": [
        _id("id", primary_key=True),
        _id("user_id", "users", index=True),
        _digest("file_digest"),
        _time("started_at"),
        _time("finished_at", nullable=True),
    ],
    "imported_memories": [
        _id("user_id", "users", primary_key=True),
        _digest("digest", primary_key=True),
        _id("import_id", "imports", index=True),
        _id("memory_id"),
        _time("updated_at"),
    ],
    "erasures": [_digest("digest", primary_key=True), _time("erased_at")],
}
