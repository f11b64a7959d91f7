"""The master key: it wraps users' encryption keys, and HKDF (RFC 5869) derives all other keys from it.

It has 256 bits and is kept apart from the database. Derived are the signing key of bearer tokens, the key of page
cursors and the memory keys. After a rotation, what applications hold (memory keys) and stored digests still derive
from the first master key, which the database keeps wrapped by the current one.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memframe.errors import ConfigError
from memframe.files import atomic_file
from memframe.secret import Secret

KEY_FILE = "master.key"

_KEY_BYTES = 32
_NONCE_BYTES = 12
_FIRST = "the first master key"  # in the place of a user id, which never looks like that
_HEX_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)


class MasterKey:
    """Wrap user keys and derive purpose keys.

    Parameters
    ----------
    text : Secret
        64 hexadecimal characters.

    Attributes
    ----------
    first : MasterKey
        The first master key of the service; it is this one until a rotation.

    Examples
    --------
    >>> master = MasterKey.generate()
    >>> wrapped = master.wrap(bytes(32), user_id="u-1", version=1)
    >>> master.unwrap(wrapped, user_id="u-1", version=1) == bytes(32)
    True
    """

    def __init__(self, text: Secret) -> None:
        if not _HEX_KEY.fullmatch(text.reveal()):
            raise ConfigError(
                "the master key must be 64 hexadecimal characters; restore the file from a backup"
            )
        self._text = text
        self.first = self
        self._wrapping = AESGCM(self.derive("wrap user keys"))

    def __repr__(self) -> str:
        return "MasterKey(••••••)"

    @classmethod
    def generate(cls) -> MasterKey:
        """Generate a random key."""
        return cls(Secret(secrets.token_hex(_KEY_BYTES)))

    @classmethod
    def load(cls, path: Path) -> MasterKey:
        """Load a key file; `ConfigError` if other users can read it, or it is damaged."""
        try:
            if is_open_to_others(path):
                raise ConfigError(
                    f"the master key file {path} is open to other users; close it: chmod 600 {path}"
                )
            return cls(Secret(path.read_text("ascii").strip()))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ConfigError(f"the master key file {path} cannot be read: {reason}") from None

    def save(self, path: Path, *, may_replace: bool = False) -> None:
        """Write a key file of mode 0600 atomically; `FileExistsError` where there is one."""
        with atomic_file(path, may_replace=may_replace) as file:
            file.write(self._text.reveal().encode() + b"\n")

    def save_for_rotation(self, path: Path) -> None:
        """Write this key beside a key file, until `complete_rotation` replaces the file."""
        self.save(_path_of_next(path), may_replace=True)

    def complete_rotation(self, path: Path) -> None:
        """Replace a key file by this key; keep the old one as ``*.old``."""
        before = MasterKey.load(path)
        if before.fingerprint() != self.fingerprint():
            with suppress(FileExistsError):
                before.save(path.with_name(f"{path.name}.{before.fingerprint()[:8]}.old"))
        self.save(path, may_replace=True)
        _path_of_next(path).unlink(missing_ok=True)

    def derive(self, *purpose: str, n_bytes: int = _KEY_BYTES) -> bytes:
        """Derive a key for one purpose, deterministically."""
        info = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in ("memframe", *purpose))
        return HKDF(SHA256(), n_bytes, salt=None, info=info).derive(bytes.fromhex(self._text.reveal()))

    def fingerprint(self) -> str:
        """Return a public identifier of this key."""
        return self.derive("fingerprint", n_bytes=16).hex()

    def memory_key(self, *, user_id: str, developer_id: str, generation: int = 1) -> Secret:
        """Derive the memory key of a user and a developer; `generation` counts their disconnections."""
        later = [str(generation)] if generation > 1 else []
        return Secret("mk_" + self.first.derive("memory key", user_id, developer_id, *later).hex())

    def wrap_first(self, former: MasterKey) -> str:
        """Take over the first master key from the former one, and wrap it for the database."""
        self.first = former.first
        raw = bytes.fromhex(self.first._text.reveal())  # noqa: SLF001 - of the same class
        return self.wrap(raw, user_id=_FIRST, version=0).hex()

    def unwrap_first(self, wrapped: str) -> None:
        """Unwrap the first master key."""
        raw = self.unwrap(bytes.fromhex(wrapped), user_id=_FIRST, version=0)
        self.first = MasterKey(Secret(raw.hex()))

    def new_user_key(self, *, user_id: str, version: int) -> bytes:
        """Generate a user's encryption key, wrapped."""
        return self.wrap(os.urandom(_KEY_BYTES), user_id=user_id, version=version)

    def wrap(self, key: bytes, *, user_id: str, version: int) -> bytes:
        """Encrypt a user's key, bound to user id and version."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._wrapping.encrypt(nonce, key, _associated_data(user_id, version))

    def unwrap(self, wrapped: bytes, *, user_id: str, version: int) -> bytes:
        """Decrypt a user's key; `ConfigError` if this master key did not wrap it for this user and version."""
        try:
            nonce, sealed = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
            return self._wrapping.decrypt(nonce, sealed, _associated_data(user_id, version))
        except InvalidTag:
            raise ConfigError(
                f"the encryption key of user {user_id}, version {version}, does not open with this "
                "master key; restore the master key that belongs to this database"
            ) from None


def load_next_key(path: Path) -> MasterKey | None:
    """Load the key that an interrupted rotation left beside a key file; None where there is none."""
    return MasterKey.load(_path_of_next(path)) if _path_of_next(path).exists() else None


def _path_of_next(path: Path) -> Path:
    return path.with_name(f"{path.name}.next")


def is_open_to_others(path: Path, *, system: str = os.name) -> bool:
    """Return True where mode bits let other users reach a file or folder; they mean nothing on Windows."""
    return system == "posix" and bool(path.stat().st_mode & 0o077)


def _associated_data(user_id: str, version: int) -> bytes:
    return f"user key|{user_id}|{version}".encode()
