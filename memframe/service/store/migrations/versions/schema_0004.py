"""Schema 4: counts of attempts, epochs of bearer tokens, passwords that must be changed."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the table and the columns; refuse versions of memframe that do not know alembic."""
    op.execute("ALTER TABLE users RENAME COLUMN password_of_operator TO must_change_password")
    op.add_column("developers", sa.Column("token_epoch", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "attempts",
        sa.Column("key_hash", sa.String(64), primary_key=True),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("began_at", sa.String(27), nullable=False),
        sa.Column("last_at", sa.String(27), nullable=False, index=True),
    )
    op.execute("UPDATE meta SET value = '4' WHERE name = 'schema_version'")
