"""A new encryption key for a user: what the old one had sealed is sealed again with it, all at once.

It is one transaction. Until it ends everybody reads content and credentials of the old version, and if it
is broken off, nothing has happened; from then on everybody reads those of the new one. Reads go on
meanwhile. Writes wait, in SQLite all of them, in PostgreSQL those of the same user: about a second for
50,000 memories.

Content that clients had sealed themselves, in a layout that we know, is opened and sealed again in that
same layout and spelling. What does not open with the old key (damaged, or in a layout of somebody else's)
stays as it is, and is counted. The memories themselves have not changed, so their ``updated_at`` stays too.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from memframe.errors import ConfigError
from memframe.service.deployment import Deployment
from memframe.service.keys import MasterKey
from memframe.service.logs import log_event

BATCH = 1000


class Rotation(Struct, frozen=True):
    """What became of a user's key and content.

    Attributes
    ----------
    user_id : str
    key_version : int
        The new one.
    n_sealed : int
        Memories whose content was sealed again.
    n_unreadable : int
        Memories left as they were, as the old key did not open them.
    """

    user_id: str
    key_version: int
    n_sealed: int
    n_unreadable: int


def rotate_key(deployment: Deployment, user_id: str) -> Rotation:
    """Give a user a new version of the encryption key; `NotFoundError` where there is no such user."""
    n_sealed = n_unreadable = 0
    with deployment.store.owned(user_id) as memories:
        keyring = deployment.keyring(user_id, memories)
        rekeying = keyring.rotate()
        for batch in memories.contents(at_a_time=BATCH):
            resealed = {place: rekeying.reseal(content) for place, content in batch}
            opened = {place: content for place, content in resealed.items() if content is not None}
            memories.replace_contents(opened)
            n_sealed += len(opened)
            n_unreadable += len(resealed) - len(opened)
    log_event("user key rotated", user_id=user_id)
    return Rotation(user_id, keyring.present.version, n_sealed, n_unreadable)


def rotate_master_key(deployment: Deployment, key_file: Path) -> int:
    """Replace the master key, and wrap the keys of all users with the new one; return the number of keys.

    The new key is written beside the old one before the transaction ends, and takes the place of the file after
    that. A rotation that is broken off between the two is completed by whoever opens the service next. The
    deployment is of no use afterwards, but to be closed.

    Raises
    ------
    ConfigError
        The service is running, or the folder of the key file cannot be written to.
    """
    old, new = deployment.master_key, MasterKey.generate()

    def rewrap(user_id: str, version: int, wrapped: bytes) -> bytes:
        raw = old.unwrap(wrapped, user_id=user_id, version=version)
        return new.wrap(raw, user_id=user_id, version=version)

    try:
        n_keys = deployment.store.replace_master_key(
            new.fingerprint(), new.wrap_first(old), rewrap, lambda: new.save_for_rotation(key_file)
        )
        new.take_place(key_file)
    except OSError as error:
        raise ConfigError(f"the master key file {key_file} cannot be replaced: {error.strerror}") from None
    log_event("master key rotated")
    return n_keys
