"""The master key and the users' encryption keys.

The master key wraps the users' keys, and HKDF (RFC 5869) derives all other keys from it: those of bearer tokens, of
page cursors and the memory keys. It has 256 bits and is kept apart from the database. After a rotation, memory keys
(which applications hold) and stored digests still derive from the first master key. The database stores that key,
wrapped by the current one.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Lock

from cachetools import LRUCache, cached
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memframe.envelope import Envelope
from memframe.envelope.detect import bind
from memframe.errors import ConfigError
from memframe.files import atomic_file, is_open_to_others
from memframe.secret import Secret
from memframe.service.tokens import CURSOR_KEY_BYTES, CursorCipher

MASTER_KEY_FILE = "master.key"

SEALED_SPELLING = re.compile(r"[A-Za-z0-9+/=_:.-]+", re.ASCII)
"""Characters of content in `KNOWN_LAYOUTS`: a text with any other character, such as a blank, is plain."""

KNOWN_LAYOUTS = ("memframe", "gcm-iv-ct-tag", "gcm-iv:tag:ct")
"""Layouts in which clients may send sealed content; it is stored unchanged."""

MAX_UNWRAPPED, MAX_DERIVED = 1000, 1000
"""Numbers of users' keys, and of keys derived from the master key, that are cached."""

_KEY_BYTES = 32
_NONCE_BYTES = 12
_FIRST = "the first master key"  # takes the place of a user id; no user id looks like this
_HEX_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)


class MasterKey:
    """Wrap users' keys, and derive a key for each purpose; made from 64 hexadecimal characters.

    `first` is the first master key of the service. Until a rotation, it is this one.

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
        self._derive = lru_cache(MAX_DERIVED)(partial(_derive, text))
        self._wrapping = AESGCM(self.derive("wrap user keys"))
        cache: LRUCache[tuple[str, int], UserKey] = LRUCache(MAX_UNWRAPPED)
        known_by = lambda user_id, version, _: (user_id, version)  # noqa: E731 - a key for `cached`
        self.user_key = cached(cache, key=known_by, lock=Lock())(self._load_user_key)

    def __repr__(self) -> str:
        return "MasterKey(••••••)"

    @classmethod
    def generate(cls) -> MasterKey:
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
        """Write a key file of mode 0600 atomically; `FileExistsError` if it exists."""
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

    @cached_property
    def cursors(self) -> CursorCipher:
        return CursorCipher(self.derive("cursors", n_bytes=CURSOR_KEY_BYTES))

    def derive(self, *purpose: str, n_bytes: int = _KEY_BYTES) -> bytes:
        return self._derive(purpose, n_bytes)

    def digest(self, purpose: str, value: bytes) -> str:
        """Make a keyed digest of a value, which reveals nothing without the key; rotations do not change it."""
        return hmac.digest(self.first.derive(purpose), value, "sha256").hex()

    def fingerprint(self) -> str:
        """Return a public identifier of this key."""
        return self.derive("fingerprint", n_bytes=16).hex()

    def memory_key(self, *, user_id: str, developer_id: str, generation: int = 1) -> Secret:
        """Derive the memory key of a user and a developer; `generation` counts their connections, from 1."""
        later = [str(generation)] if generation > 1 else []
        return Secret("mk_" + self.first.derive("memory key", user_id, developer_id, *later).hex())

    def wrap_first(self, former: MasterKey) -> str:
        """Take over the first master key from the former master key, and wrap it for the database."""
        self.first = former.first
        raw = bytes.fromhex(self.first._text.reveal())  # noqa: SLF001 - of the same class
        return self.wrap(raw, user_id=_FIRST, version=0).hex()

    def unwrap_first(self, wrapped: str) -> None:
        raw = self.unwrap(bytes.fromhex(wrapped), user_id=_FIRST, version=0)
        self.first = MasterKey(Secret(raw.hex()))

    def new_user_key(self, *, user_id: str, version: int) -> bytes:
        """Generate a user's encryption key, wrapped."""
        return self.wrap(os.urandom(_KEY_BYTES), user_id=user_id, version=version)

    def _load_user_key(self, user_id: str, version: int, load: Callable[[int], bytes]) -> UserKey:
        return self.open_user_key(user_id, version, load(version))

    def open_user_key(self, user_id: str, version: int, wrapped: bytes) -> UserKey:
        """Unwrap a user's key, but do not cache it as `user_key` does: its transaction may be rolled back."""
        return UserKey(version, Secret(self.unwrap(wrapped, user_id=user_id, version=version).hex()), user_id)

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


def _derive(text: Secret, purpose: tuple[str, ...], n_bytes: int) -> bytes:
    info = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in ("memframe", *purpose))
    return HKDF(SHA256(), n_bytes, salt=None, info=info).derive(bytes.fromhex(text.reveal()))


def load_next_key(path: Path) -> MasterKey | None:
    """Load the key that an interrupted rotation left beside a key file; None if there is none."""
    return MasterKey.load(_path_of_next(path)) if _path_of_next(path).exists() else None


def _path_of_next(path: Path) -> Path:
    return path.with_name(f"{path.name}.next")


def _associated_data(user_id: str, version: int) -> bytes:
    return f"user key|{user_id}|{version}".encode()


class UserKey:
    """One version of a user's encryption key, unwrapped; `key` is its hexadecimal text, as credentials give it."""

    def __init__(self, version: int, key: Secret, user_id: str) -> None:
        self.version = version
        self.key = key
        self._user_id = user_id
        self._layouts = [bind(name, key, user_id, version) for name in KNOWN_LAYOUTS]

    @cached_property
    def envelope(self) -> Envelope:
        """Envelope that seals with this key, and opens each of `KNOWN_LAYOUTS`."""
        return Envelope(
            self.key,
            user_id=self._user_id,
            key_version=self.version,
            content_format=list(KNOWN_LAYOUTS),
            write_format=KNOWN_LAYOUTS[0],
        )

    def opens(self, content: str) -> bool:
        """Return True if content is sealed with this key."""
        return any(layout.open(content) is not None for layout in self._layouts)
