"""The encryption keys of one user, wrapped by the master key, inside one transaction.

Every version stays: what was sealed with an earlier one is to be recognised. Only the present one is
ever given out.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, literal, select, tuple_, update

from memframe.service.store.schema import user_keys, users
from memframe.service.store.statements import Queries, Statement
from memframe.service.times import instant_text

Rewrap = Callable[[str, int, bytes], bytes]
"""Makes the new wrapping of a user's key out of the old one, for the user's id and the version."""

BATCH = 1000

_WRAPPED = Statement(
    select(user_keys.c.wrapped_key)
    .where(user_keys.c.user_id == bindparam("user_id"))
    .where(user_keys.c.version == bindparam("version"))
)
_ADD = Statement(insert(user_keys))
_SET_PRESENT = Statement(
    update(users).where(users.c.id == bindparam("user_id")).values(key_version=bindparam("version"))
)


def rewrap_keys(connection: Connection, rewrap: Rewrap) -> int:
    """Replace the wrapping of every key of every user; return their number."""
    n_keys, place = 0, tuple_(user_keys.c.user_id, user_keys.c.version)
    some = select(user_keys.c.user_id, user_keys.c.version, user_keys.c.wrapped_key).order_by(
        user_keys.c.user_id, user_keys.c.version
    )
    rows = connection.execute(some.limit(BATCH)).all()
    while rows:
        for user_id, version, wrapped in rows:
            this = (user_keys.c.user_id == user_id) & (user_keys.c.version == version)
            new = rewrap(user_id, version, bytes(wrapped))
            connection.execute(update(user_keys).where(this).values(wrapped_key=new))
        n_keys += len(rows)
        after = place > tuple_(literal(rows[-1][0]), literal(rows[-1][1]))
        rows = connection.execute(some.where(after).limit(BATCH)).all()
    return n_keys


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
