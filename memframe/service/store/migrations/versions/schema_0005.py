"""From schema 2, the earliest that is upgraded and which has no number of alembic's, to schema 5."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Add what a database of schema 2 lacks; refuse versions of memframe that do not know alembic."""
    op.add_column("connections", sa.Column("generation", sa.Integer, nullable=False, server_default="1"))
    op.add_column("connections", _time("ended_at", nullable=True))
    op.add_column("developers", sa.Column("token_epoch", sa.Integer, nullable=False, server_default="0"))
    must_change = sa.Column("must_change_password", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("users", must_change)
    op.create_index("access_requests_by_developer", "access_requests", ["developer_id", "seq"])
    op.create_table(
        "tombstones",
        _id("memory_id", primary_key=True),
        _id("user_id", "users", nullable=False, index=True),
        _id("developer_id", "developers", nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        _time("created_at"),
        _time("updated_at"),
        _time("deleted_at", index=True),
    )
    op.create_table(
        "attempts",
        sa.Column("key_hash", sa.String(64), primary_key=True),
        sa.Column("n", sa.Integer, nullable=False),
        _time("began_at"),
        _time("last_at", index=True),
    )
    op.create_table(
        "access_counts",
        _id("user_id", "users", primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        _id("developer_id", "developers", primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("reads", "creates", "patches", "deletes")),
    )
    op.create_table(
        "imports",
        _id("id", primary_key=True),
        _id("user_id", "users", nullable=False, index=True),
        sa.Column("file_digest", sa.String(64), nullable=False),
        _time("started_at"),
        _time("finished_at", nullable=True),
    )
    op.create_table(
        "imported_memories",
        _id("user_id", "users", primary_key=True),
        sa.Column("digest", sa.String(64), primary_key=True),
        _id("import_id", "imports", nullable=False, index=True),
        _id("memory_id", nullable=False),
        _time("updated_at"),
    )
    op.create_table("erasures", sa.Column("digest", sa.String(64), primary_key=True), _time("erased_at"))
    op.execute("UPDATE meta SET value = '4' WHERE name = 'schema_version'")


def _id(name: str, table: str | None = None, **options: Any) -> sa.Column[str]:
    references = [sa.ForeignKey(f"{table}.id", ondelete="CASCADE" if table == "users" else None)]
    return sa.Column(name, sa.String(36), *(references if table else []), **options)


def _time(name: str, *, nullable: bool = False, index: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(27), nullable=nullable, index=index)
