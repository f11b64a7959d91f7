"""Schema 2, the earliest that is upgraded: nothing to do. It has no number of alembic's yet."""

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Begin here."""
