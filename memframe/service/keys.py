"""The master key: what it wraps, and what is derived from it.

One key of 256 bits, kept apart from the database. It wraps every user's encryption key, and HKDF
(RFC 5869) derives from it, each for one purpose, whatever else has to be secret and stable: the key
that signs tokens, the one that closes cursors, and the memory key of each user and developer.

Another master key may take its place. What applications hold, and digests that are stored, then still
come from the first one, which is kept in the database, wrapped by the present one.
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
_FIRST = "the first master key"
"""Stands where a user's id does, which never looks like that."""

_HEX_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)


class MasterKey:
    """The key over all keys.

    Parameters
    ----------
    text : Secret
        64 hexadecimal characters.

    Attributes
    ----------
    first : MasterKey
        The one that the service began with; what has to outlive a rotation is derived from it.

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
        """A fresh one."""
        return cls(Secret(secrets.token_hex(_KEY_BYTES)))

    @classmethod
    def load(cls, path: Path) -> MasterKey:
        """The one in a file."""
        try:
            if is_open_to_others(path):
                raise ConfigError(
                    f"the master key file {path} is open to other users; close it: chmod 600 {path}"
                )
            return cls(Secret(path.read_text("ascii").strip()))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ConfigError(f"the master key file {path} cannot be read: {reason}") from None

    def save(self, path: Path) -> None:
        """Write it to a new file that only its owner may read, there whole or not at all."""
        self._write(path, may_replace=False)

    def save_for_rotation(self, path: Path) -> None:
        """Write it beside a key file, whose place `take_place` gives it; one from a broken-off rotation goes."""
        self._write(_next_to(path), may_replace=True)

    def take_place(self, path: Path) -> None:
        """Replace a key file by what `save_for_rotation` wrote; the old file stays under another name."""
        before = MasterKey.load(path)
        kept = path.with_name(f"{path.name}.{before.fingerprint()[:8]}.old")
        if before.fingerprint() != self.fingerprint():
            with suppress(FileExistsError):
                before.save(kept)
        self._write(path, may_replace=True)
        _next_to(path).unlink(missing_ok=True)

    def _write(self, path: Path, *, may_replace: bool) -> None:
        with atomic_file(path, may_replace=may_replace) as file:
            file.write(self._text.reveal().encode() + b"\n")

    def derive(self, *purpose: str, n_bytes: int = _KEY_BYTES) -> bytes:
        """A key for one purpose; the same parts always give the same key."""
        info = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in ("memframe", *purpose))
        return HKDF(SHA256(), n_bytes, salt=None, info=info).derive(bytes.fromhex(self._text.reveal()))

    def fingerprint(self) -> str:
        """What tells this master key from another, and nothing more."""
        return self.derive("fingerprint", n_bytes=16).hex()

    def memory_key(self, *, user_id: str, developer_id: str, generation: int = 1) -> Secret:
        """Return the memory key of a user for one developer: the same until the two are disconnected."""
        later = [str(generation)] if generation > 1 else []
        return Secret("mk_" + self.first.derive("memory key", user_id, developer_id, *later).hex())

    def wrap_first(self, former: MasterKey) -> str:
        """Seal the first master key, which a former one knows, for the database; know it from now on."""
        self.first = former.first
        raw = bytes.fromhex(self.first._text.reveal())  # noqa: SLF001 - of the same class
        return self.wrap(raw, user_id=_FIRST, version=0).hex()

    def unwrap_first(self, wrapped: str) -> None:
        """Open what `wrap_first` sealed, and derive from it what outlives a rotation."""
        raw = self.unwrap(bytes.fromhex(wrapped), user_id=_FIRST, version=0)
        self.first = MasterKey(Secret(raw.hex()))

    def new_user_key(self, *, user_id: str, version: int) -> bytes:
        """A fresh encryption key for a user, wrapped at once."""
        return self.wrap(os.urandom(_KEY_BYTES), user_id=user_id, version=version)

    def wrap(self, key: bytes, *, user_id: str, version: int) -> bytes:
        """Seal a user's encryption key for the database, bound to the user and the version."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._wrapping.encrypt(nonce, key, _place(user_id, version))

    def unwrap(self, wrapped: bytes, *, user_id: str, version: int) -> bytes:
        """What `wrap` sealed; another user's key, or one of another version, does not open."""
        try:
            nonce, sealed = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
            return self._wrapping.decrypt(nonce, sealed, _place(user_id, version))
        except InvalidTag:
            raise ConfigError(
                f"the encryption key of user {user_id}, version {version}, does not open with this "
                "master key; restore the master key that belongs to this database"
            ) from None


def next_key(path: Path) -> MasterKey | None:
    """Return the key that a rotation has written beside a key file; None where there is none."""
    return MasterKey.load(_next_to(path)) if _next_to(path).exists() else None


def _next_to(path: Path) -> Path:
    return path.with_name(f"{path.name}.next")


def is_open_to_others(path: Path, *, system: str = os.name) -> bool:
    """Whether other users may reach a file or folder; Windows' mode bits say nothing about that."""
    return system == "posix" and bool(path.stat().st_mode & 0o077)


def _place(user_id: str, version: int) -> bytes:
    return f"user key|{user_id}|{version}".encode()
