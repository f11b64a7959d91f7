"""The encryption keys of one user, wrapped by the master key, inside one transaction.

Every version stays: what was sealed with an earlier one is to be recognised. Only the present one is
ever given out.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import bindparam, insert, select, update

from memframe.service.store.schema import user_keys, users
from memframe.service.store.statements import Queries, Statement
from memframe.service.times import instant_text

_WRAPPED = Statement(
    select(user_keys.c.wrapped_key)
    .where(user_keys.c.user_id == bindparam("user_id"))
    .where(user_keys.c.version == bindparam("version"))
)
_ADD = Statement(insert(user_keys))
_SET_PRESENT = Statement(
    update(users).where(users.c.id == bindparam("user_id")).values(key_version=bindparam("version"))
)


class UserKeys:
    """The versions of one user's key, from 1 to the present one.

    Attributes
    ----------
    present : int
        The version that content is sealed with.
    """

    def __init__(self, queries: Queries, user_id: str, *, present: int, now: datetime) -> None:
        self.present = present
        self._queries = queries
        self._user_id = user_id
        self._now = now

    def wrapped(self, version: int) -> bytes:
        """A version as it is stored."""
        ((wrapped,),) = self._queries.rows(_WRAPPED, user_id=self._user_id, version=version)
        return bytes(wrapped)

    def add(self, wrapped: bytes) -> None:
        """Make a new version the present one."""
        self.present += 1
        this = {"user_id": self._user_id, "version": self.present}
        self._queries.run(_ADD, **this, wrapped_key=wrapped, created_at=instant_text(self._now))
        self._queries.run(_SET_PRESENT, **this)
