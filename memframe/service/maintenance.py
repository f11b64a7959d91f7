"""Rotate keys and make backups, while the service runs (the master key: while it is stopped).

Rotating a user's key is one transaction: until it commits everybody reads content and credentials of the old version.
Meanwhile reads go on; writes wait, in SQLite all of them, in PostgreSQL those of the user. Content that clients have
sealed in a layout that we know keeps that layout and spelling. What the old key does not open stays as it is and is
counted. ``updated_at`` does not change.

A backup of SQLite is made by SQLite itself (``VACUUM INTO``) in one read transaction, so that it is of one moment.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from memframe.errors import ConfigError
from memframe.files import atomic_folder
from memframe.service.deployment import DATABASE_FILE, Deployment
from memframe.service.keys import KEY_FILE, MasterKey
from memframe.service.logs import log_event

RESEAL_BATCH = 1000


class KeyRotation(Struct, frozen=True):
    """Result of the rotation of a user's key.

    Attributes
    ----------
    user_id : str
    key_version : int
        The new one.
    n_sealed : int
        Memories whose content was sealed again.
    n_unreadable : int
        Memories whose content the old key did not open.
    """

    user_id: str
    key_version: int
    n_sealed: int
    n_unreadable: int


def rotate_key(deployment: Deployment, user_id: str) -> KeyRotation:
    """Give a user a new version of the encryption key; `NotFoundError` where there is no such user."""
    n_sealed = n_unreadable = 0
    with deployment.store.owned(user_id) as memories:
        keyring = deployment.keyring(user_id, memories)
        rekeying = keyring.rotate()
        for batch in memories.contents(batch_size=RESEAL_BATCH):
            resealed = {seq: rekeying.reseal(content) for seq, content in batch}
            opened = {seq: content for seq, content in resealed.items() if content is not None}
            memories.replace_contents(opened)
            n_sealed += len(opened)
            n_unreadable += len(resealed) - len(opened)
    log_event("user key rotated", user_id=user_id)
    return KeyRotation(user_id, keyring.present.version, n_sealed, n_unreadable)


def rotate_master_key(deployment: Deployment, key_file: Path) -> int:
    """Replace the master key, and wrap the keys of all users with the new one; return the number of keys.

    The new key is written beside the old one before the transaction commits, and replaces the file afterwards. A
    rotation that is interrupted between the two is completed when the service is opened next. The deployment can only
    be closed afterwards.

    Raises
    ------
    ConfigError
        The service is running, or the folder of the key file is not writable.
    """
    old, new = deployment.master_key, MasterKey.generate()

    def rewrap(user_id: str, version: int, wrapped: bytes) -> bytes:
        raw = old.unwrap(wrapped, user_id=user_id, version=version)
        return new.wrap(raw, user_id=user_id, version=version)

    try:
        n_keys = deployment.store.replace_master_key(
            new.fingerprint(), new.wrap_first(old), rewrap, lambda: new.save_for_rotation(key_file)
        )
        new.complete_rotation(key_file)
    except OSError as error:
        raise ConfigError(f"the master key file {key_file} cannot be replaced: {error.strerror}") from None
    log_event("master key rotated")
    return n_keys


def back_up(deployment: Deployment, folder: Path, *, with_key: bool = True) -> list[Path]:
    """Copy the service into a new folder, from which `memframe serve` could start; return the files in it.

    Parameters
    ----------
    deployment : Deployment
    folder : Path
        Must not exist. It is closed to other users, and made as a whole or not at all.
    with_key : bool
        False leaves the master key out: the copy can then be kept in a less safe place.

    Raises
    ------
    ConfigError
        The folder exists, the database is not SQLite's, or the copy is damaged.
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
