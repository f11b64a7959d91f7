"""Schema 5: counts of what developers did with memories, imports of files, digests of accounts that were erased."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "access_counts",
        _user_id(primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("developer_id", sa.String(36), sa.ForeignKey("developers.id"), primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("reads", "creates", "patches", "deletes")),
    )
    op.create_table(
        "imports",
        sa.Column("id", sa.String(36), primary_key=True),
        _user_id(nullable=False, index=True),
        sa.Column("file_digest", sa.String(64), nullable=False),
        sa.Column("started_at", sa.String(27), nullable=False),
        sa.Column("finished_at", sa.String(27)),
    )
    op.create_table(
        "imported_memories",
        _user_id(primary_key=True),
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("import_id", sa.String(36), sa.ForeignKey("imports.id"), nullable=False, index=True),
        sa.Column("memory_id", sa.String(36), nullable=False),
        sa.Column("updated_at", sa.String(27), nullable=False),
    )
    op.create_table(
        "erasures",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("erased_at", sa.String(27), nullable=False),
    )


def _user_id(**options: Any) -> sa.Column[str]:
    return sa.Column("user_id", sa.String(36), sa.ForeignKey("users.id", ondelete="CASCADE"), **options)
