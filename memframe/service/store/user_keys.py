"""The encryption keys of one user, wrapped by the master key, inside one transaction.

Every version stays: what was sealed with an earlier one is to be recognised. Only the present one is
ever given out.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, insert, select, update

from memframe.service.store.schema import user_keys, users

_KEYS = select(user_keys.c.version, user_keys.c.wrapped_key).where(
    user_keys.c.user_id == bindparam("user_id")
)
_PRESENT = _KEYS.join(users, users.c.id == user_keys.c.user_id).where(
    users.c.key_version == user_keys.c.version
)
_EARLIER = (
    _KEYS.join(users, users.c.id == user_keys.c.user_id)
    .where(user_keys.c.version < users.c.key_version)
    .order_by(user_keys.c.version.desc())
)


class WrappedKey(NamedTuple):
    """One version of a user's key, as it is stored."""

    version: int
    wrapped: bytes


class UserKeys:
    """The versions of one user's key."""

    def __init__(self, connection: Connection, user_id: str, *, now: datetime) -> None:
        self._connection = connection
        self._user = {"user_id": user_id}
        self._now = now

    def present(self) -> WrappedKey:
        """The one that content is sealed with."""
        return WrappedKey(*self._connection.execute(_PRESENT, self._user).one())

    def earlier(self) -> list[WrappedKey]:
        """Those before it, the latest first."""
        return [WrappedKey(*row) for row in self._connection.execute(_EARLIER, self._user)]

    def replace(self, new: WrappedKey) -> None:
        """Make a new version the present one."""
        row = {"version": new.version, "wrapped_key": new.wrapped, "created_at": self._now}
        self._connection.execute(insert(user_keys).values(**self._user, **row))
        user = users.c.id == self._user["user_id"]
        self._connection.execute(update(users).where(user).values(key_version=new.version))
