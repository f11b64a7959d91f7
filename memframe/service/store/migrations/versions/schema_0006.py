"""To schema 6: an idempotency key belongs to a user, so that nothing of it outlives the account."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Set the user of each key from its memory or tombstone; if both are gone, remove the memory's id."""
    op.add_column("idempotency_keys", sa.Column("user_id", sa.String(36), nullable=True))
    op.execute(
        "UPDATE idempotency_keys SET user_id = coalesce("
        "(SELECT user_id FROM memories WHERE id = memory_id), "
        "(SELECT user_id FROM tombstones WHERE tombstones.memory_id = idempotency_keys.memory_id))"
    )
    op.execute("UPDATE idempotency_keys SET memory_id = '' WHERE user_id IS NULL")
