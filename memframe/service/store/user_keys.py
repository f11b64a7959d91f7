"""The encryption keys of one user, wrapped by the master key, inside one transaction.

Every version stays: what was sealed with an earlier one is to be recognised. Only the present one is
ever given out.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, insert, select, update

from memframe.service.store.schema import user_keys, users
from memframe.service.store.statements import Queries, Statement
from memframe.service.times import instant_text

_KEYS = (
    select(user_keys.c.version, user_keys.c.wrapped_key)
    .join(users, users.c.id == user_keys.c.user_id)
    .where(user_keys.c.user_id == bindparam("user_id"))
)
_PRESENT = Statement(_KEYS.where(user_keys.c.version == users.c.key_version))
_EARLIER = Statement(
    _KEYS.where(user_keys.c.version < users.c.key_version).order_by(user_keys.c.version.desc())
)
_ADD = Statement(insert(user_keys))
_SET_PRESENT = Statement(
    update(users).where(users.c.id == bindparam("user_id")).values(key_version=bindparam("version"))
)


class WrappedKey(NamedTuple):
    """One version of a user's key, as it is stored."""

    version: int
    wrapped: bytes


class UserKeys:
    """The versions of one user's key."""

    def __init__(self, queries: Queries, user_id: str, *, now: datetime) -> None:
        self._queries = queries
        self._user_id = user_id
        self._now = now

    def present(self) -> WrappedKey:
        """The one that content is sealed with."""
        ((version, wrapped),) = self._queries.rows(_PRESENT, user_id=self._user_id)
        return WrappedKey(version, wrapped)

    def earlier(self) -> list[WrappedKey]:
        """Those before it, the latest first."""
        return [WrappedKey(*row) for row in self._queries.rows(_EARLIER, user_id=self._user_id)]

    def replace(self, new: WrappedKey) -> None:
        """Make a new version the present one."""
        row = {"version": new.version, "wrapped_key": new.wrapped, "created_at": instant_text(self._now)}
        self._queries.run(_ADD, user_id=self._user_id, **row)
        self._queries.run(_SET_PRESENT, user_id=self._user_id, version=new.version)
