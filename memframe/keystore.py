"""Local encryption of journals and saved plans, with a data key of this user on this machine.

Journals and saved plans outlive the process that wrote them, and hold what people said. They are not sealed with the
key of the memories, which the service can rotate and the user can revoke, but with a data key. It is in the keyring of
the operating system, or, if that is not secure, in a file of mode 0600 in the user's state folder.

Sealed data names its key. A `LocalCipher` holds every data key that it finds, and seals with the keyring's.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memframe.errors import JournalError
from memframe.files import atomic_file, is_open_to_others, private_folder, process_lock, raise_os_errors_as
from memframe.secret import Secret
from memframe.settings import KEYRING_SERVICE, open_secure_keyring, open_system_keyring, read_keyring

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SEALED_MAGIC = b"mfv1"
KEYRING_ENTRY = "data_key"
KEY_FILE = "data.key"

CREATING_S = 20.0
"""Seconds to wait for another process that is creating the key; its keyring may be prompting the user."""

_KEY_BYTES, _ID_BYTES, _NONCE_BYTES = 32, 8, 12
_HEAD_BYTES = len(SEALED_MAGIC) + _ID_BYTES


class DataKey:
    """One data key, of 64 hexadecimal characters."""

    def __init__(self, text: Secret) -> None:
        key = bytes.fromhex(text.reveal())
        if len(key) != _KEY_BYTES:
            raise ValueError(f"a data key has {_KEY_BYTES} bytes")
        self.id = hashlib.sha256(b"memframe data key" + key).digest()[:_ID_BYTES]
        self.cipher = AESGCM(key)
        self.digest_key = hmac.digest(key, b"memframe digests of texts", "sha256")
        """Key for digests of texts, so that nobody without it can guess a text by its digest."""

    def __repr__(self) -> str:
        return f"<DataKey {self.id.hex()}>"


@dataclass(frozen=True)
class LocalCipher:
    """Encrypt what memframe keeps on disk, and decrypt it. Made by `open_local_cipher`.

    Seals with the first key, and opens with the key that the sealed bytes name. ``searched`` names the places in which
    the keys were looked for.

    >>> cipher = LocalCipher((DataKey(Secret("0f1e" * 16)),))
    >>> sealed = cipher.seal(b"likes tea", associated_data="run 1, row 4")
    >>> cipher.open(sealed, associated_data="run 1, row 4")
    b'likes tea'
    """

    keys: tuple[DataKey, ...]
    searched: str = field(default="the keyring and the state folder", repr=False)

    def seal(self, data: bytes, *, associated_data: str, extra_associated_data: bytes = b"") -> bytes:
        """Encrypt bytes, bound to the text ``associated_data`` and the bytes ``extra_associated_data``."""
        key = self.keys[0]
        head, nonce = SEALED_MAGIC + key.id, os.urandom(_NONCE_BYTES)
        return (
            head
            + nonce
            + key.cipher.encrypt(nonce, data, head + associated_data.encode() + extra_associated_data)
        )

    def open(self, sealed: bytes, *, associated_data: str, extra_associated_data: bytes = b"") -> bytes:
        """Decrypt bytes.

        Raises
        ------
        JournalError
            The bytes were changed or belong to something else, or their key is not in this cipher.
        """
        head, nonce = sealed[:_HEAD_BYTES], sealed[_HEAD_BYTES : _HEAD_BYTES + _NONCE_BYTES]
        if not head.startswith(SEALED_MAGIC):
            raise JournalError(
                f"{associated_data}: memframe did not write it, or it is damaged; restore a copy"
            )
        key_id = head.removeprefix(SEALED_MAGIC)
        key = next((key for key in self.keys if key.id == key_id), None)
        if key is None:
            raise JournalError(
                f"{associated_data}: sealed with the data key {key_id.hex()}, which is not here (looked in "
                f"{self.searched}). Open it as the user and on the machine that wrote it, with the same keyring "
                "unlocked"
            )
        try:
            return key.cipher.decrypt(
                nonce,
                sealed[_HEAD_BYTES + _NONCE_BYTES :],
                head + associated_data.encode() + extra_associated_data,
            )
        except (InvalidTag, ValueError):
            raise JournalError(
                f"{associated_data}: it was changed, or belongs to something else; restore a copy"
            ) from None


def open_local_cipher(
    folder: Path | None = None, *, open_keyring: Callable[[], KeyringBackend] | None = open_system_keyring
) -> LocalCipher:
    """Return the cipher of this user on this machine; make its key if there is none yet.

    ``folder`` has the key file; it is the user's state folder by default. If ``open_keyring`` is None, only ``folder``
    is searched.

    Raises
    ------
    JournalError
        A key cannot be read or stored.
    """
    folder = state_folder() if folder is None else folder
    found = _search(folder, open_keyring)
    if not found.keys:
        with raise_os_errors_as(
            JournalError, f"the folder {folder} cannot be used", "correct its permissions"
        ):
            private_folder(folder)
        with process_lock(folder / f"{KEY_FILE}.lock", what="the data key", wait_s=CREATING_S):
            if not _search(folder, open_keyring).keys:
                _create(folder, open_keyring)
        found = _search(folder, open_keyring)
    return found


def state_folder() -> Path:
    """Return the folder for data keys and journals."""
    return platformdirs.user_state_path("memframe")


def _search(folder: Path, open_keyring: Callable[[], KeyringBackend] | None) -> LocalCipher:
    """Find the data keys, that of the keyring first; there may be none."""
    path = folder / KEY_FILE
    stored, fault = read_keyring(open_keyring, KEYRING_ENTRY) if open_keyring else (None, "")
    keys = []
    for place, text in (("the OS keyring", stored), (str(path), _read(path))):
        try:
            keys += [] if text is None else [DataKey(text)]
        except ValueError:
            raise JournalError(
                f"the data key in {place} is damaged: restore it from a backup. Without it, nothing that it "
                "sealed can be opened; to start over, delete it"
            ) from None
    keyring = "the OS keyring" + (f" (which did not open: {fault})" if fault else "")
    return LocalCipher(tuple(keys), f"{keyring} and {path}" if open_keyring else str(path))


def _read(path: Path) -> Secret | None:
    try:
        is_open, text = is_open_to_others(path), Secret(path.read_text("ascii").strip())
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as fault:
        raise JournalError(
            f"the data key file {path} cannot be read ({type(fault).__name__}): correct or remove it"
        ) from None
    if is_open:
        raise JournalError(f"the data key file {path} is open to other users; close it: chmod 600 {path}")
    return text


def _create(folder: Path, open_keyring: Callable[[], KeyringBackend] | None) -> None:
    """Make a key, and store it in the keyring, or in the file if the keyring does not return it: some forget."""
    key = Secret(secrets.token_hex(_KEY_BYTES))
    if open_keyring is not None:
        with suppress(Exception):  # a keyring that is insecure, or did not open: use the file
            open_secure_keyring(open_keyring).set_password(KEYRING_SERVICE, KEYRING_ENTRY, key.reveal())
            if read_keyring(open_keyring, KEYRING_ENTRY)[0] == key:
                return
    with atomic_file(folder / KEY_FILE) as file:
        file.write(key.reveal().encode() + b"\n")
