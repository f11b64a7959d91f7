"""A copy of a service that serves: a data folder like its own, whole and of one moment.

The copy of the database is made by SQLite itself (``VACUUM INTO``), in one read transaction: nobody has to
wait meanwhile, and nothing that is written meanwhile is in it by half. Who looks after PostgreSQL has tools
for it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from memframe.errors import ConfigError
from memframe.files import atomic_folder
from memframe.service.deployment import DATABASE_FILE, Deployment
from memframe.service.keys import KEY_FILE


def back_up(deployment: Deployment, folder: Path, *, with_key: bool = True) -> list[Path]:
    """Copy the service into a new folder, from which `memframe serve` could start; the files in it.

    Parameters
    ----------
    deployment : Deployment
    folder : Path
        Must not be there yet. It is closed to others, and there whole or not at all.
    with_key : bool
        Whether the master key goes into it too. Without it the copy can be kept in a less safe place, and
        is of use only together with the key.

    Raises
    ------
    ConfigError
        Where the folder is there, or the database is not SQLite's, or the copy is not sound.
    """
    source = deployment.store.sqlite_file()
    if source is None:
        raise ConfigError(
            "the database is not SQLite's; back it up with its own tools, such as pg_dump, and the master key "
            "file, without which nobody reads it"
        )
    if folder.exists():
        raise ConfigError(f"{folder} is there already; name a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as filling:
        _copy_database(source, filling / DATABASE_FILE)
        if with_key:
            deployment.master_key.save(filling / KEY_FILE)
    return sorted(folder.iterdir())


def _copy_database(source: Path, copy: Path) -> None:
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    copy.chmod(0o600)
    with closing(sqlite3.connect(copy)) as connection:
        (found,) = connection.execute("PRAGMA integrity_check").fetchone()
    if found != "ok":
        raise ConfigError(f"the copy of {source} is not sound: {found}; look at the disk")
