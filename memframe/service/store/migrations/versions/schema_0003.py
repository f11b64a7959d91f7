"""Schema 3: tombstones, generations of memory keys, passwords of the operator; it has no number of alembic's yet."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the table, the columns and the index."""
    op.add_column(
        "users", sa.Column("password_of_operator", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column("connections", sa.Column("generation", sa.Integer, nullable=False, server_default="1"))
    op.add_column("connections", sa.Column("ended_at", sa.String(27)))
    op.create_index("access_requests_by_developer", "access_requests", ["developer_id", "seq"])
    op.create_table(
        "tombstones",
        sa.Column("memory_id", sa.String(36), primary_key=True),
        sa.Column(
            "user_id",
            sa.String(36),
            sa.ForeignKey("users.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("developer_id", sa.String(36), sa.ForeignKey("developers.id"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("updated_at", sa.String(27), nullable=False),
        sa.Column("deleted_at", sa.String(27), nullable=False, index=True),
    )
