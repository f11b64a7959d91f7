"""The key to a sealed archive, in every form in which a caller may have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memframe.access import Access
from memframe.answers import same_id
from memframe.archive.header import Header, Seal
from memframe.envelope import Codec
from memframe.errors import SealError
from memframe.secret import Secret, as_secret
from memframe.wire import Credentials

Key = str | Secret | Credentials | Access | Mapping[int, str | Secret]
"""The ``encryption_key`` itself, what holds it, or several by their ``key_version``."""


class Keys(NamedTuple):
    """What a caller's key comes to for one archive.

    Attributes
    ----------
    key : Secret
        Of the version that the archive is sealed with.
    others : dict of int to Secret
        Other versions, newest first.
    codec : Codec or None
        Of the access that was given.
    """

    key: Secret
    others: Mapping[int, Secret] = {}
    codec: Codec | None = None


def keys_for(path: Path, header: Header, key: Key | None) -> Keys:
    """The key that opens an archive.

    Raises
    ------
    SealError
        There is none, or it is of another user or version; the message says which is needed.
    """
    seal = header.seal
    assert seal is not None  # noqa: S101 - for the type checker: only sealed archives are opened
    if key is None:
        raise SealError(
            f"{_described(path, header, seal)}: pass key=, the Access to that user or its encryption_key."
        )
    if isinstance(key, Access):
        found = key.envelope.content_format
        codec = None if isinstance(found, str | Sequence) else found
        return Keys(_checked(path, header, seal, key.credentials), codec=codec)
    if isinstance(key, Credentials):
        return Keys(_checked(path, header, seal, key))
    if isinstance(key, Mapping):
        return _among(path, header, seal, key)
    return Keys(as_secret(key))


def _described(path: Path, header: Header, seal: Seal) -> str:
    return f"{path} is sealed with key_version {seal.key_version} of user {header.user_id}"


def _checked(path: Path, header: Header, seal: Seal, credentials: Credentials) -> Secret:
    if not same_id(credentials.user_id, header.user_id):
        raise SealError(
            f"{_described(path, header, seal)}, and this is a key of user {credentials.user_id}: pass one of theirs."
        )
    if credentials.key_version != seal.key_version:
        raise SealError(
            f"{_described(path, header, seal)}, and these credentials hold key_version {credentials.key_version}: "
            f"pass the older key as key={{{seal.key_version}: ...}}, or export the archive again."
        )
    return credentials.encryption_key


def _among(path: Path, header: Header, seal: Seal, keys: Mapping[int, str | Secret]) -> Keys:
    closed = {version: as_secret(key) for version, key in sorted(keys.items(), reverse=True)}
    if seal.key_version not in closed:
        held = ", ".join(map(str, closed)) or "none"
        raise SealError(
            f"{_described(path, header, seal)}, and of the versions given ({held}) none is that one."
        )
    return Keys(closed.pop(seal.key_version), closed)
