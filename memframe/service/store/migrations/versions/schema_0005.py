"""Schema 5: counts of what developers did with memories, and digests of accounts that were erased."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the two tables."""
    op.create_table(
        "access_counts",
        sa.Column("user_id", sa.String(36), sa.ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("developer_id", sa.String(36), sa.ForeignKey("developers.id"), primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("reads", "creates", "patches", "deletes")),
    )
    op.create_table(
        "erasures",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("erased_at", sa.String(27), nullable=False),
    )
