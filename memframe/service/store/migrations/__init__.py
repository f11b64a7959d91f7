"""Upgrade a database of an earlier schema with alembic, when the service starts.

To change the tables: change `schema`, add a script to `versions`, and raise `schema.REVISION`. A new database is
made from `schema` at once; a test compares it with an upgraded one.
"""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from memframe.errors import ConfigError
from memframe.service.store.schema import REVISION

BEFORE_ALEMBIC = "2"


def upgrade_schema(connection: Connection, found: str) -> None:
    """Run the scripts after revision `found`, inside the connection's transaction; `ConfigError` if it is unknown."""
    config = Config()
    config.set_main_option("script_location", "memframe.service.store:migrations")
    config.attributes["connection"] = connection
    scripts = ScriptDirectory.from_config(config)
    try:
        if found != BEFORE_ALEMBIC:
            scripts.get_revision(found)
            command.stamp(config, found)
    except CommandError:
        earlier = sorted(int(script.revision) for script in scripts.walk_revisions())[:-1]
        known = ", ".join(map(str, [BEFORE_ALEMBIC, *earlier]))
        raise ConfigError(
            f"the database has schema version {found.lstrip('0')}; this memframe reads {known} and {int(REVISION)}; "
            "install the version of memframe that wrote it"
        ) from None
    command.upgrade(config, "head")
