"""One user's tags: what memories are labelled with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from sqlalchemy import BindParameter, bindparam, func, insert, select, update

from memframe.errors import ConflictError, NotFoundError
from memframe.service.rules import MAX_USER_TAGS
from memframe.service.store.schema import tags
from memframe.service.store.statements import Queries, Row, Statement
from memframe.wire import Tag

TAG_COLOR = "#6b7280"
"""Of tags that a write has created: a neutral grey, until the user chooses."""

_COLUMNS = [tags.c[name] for name in Tag.__struct_fields__]
_OF_USER = tags.c.user_id == bindparam("user_id")
_ALL = Statement(select(*_COLUMNS).where(_OF_USER).order_by(tags.c.name, tags.c.id))
_ONE = Statement(select(*_COLUMNS).where(_OF_USER, tags.c.id == bindparam("tag_id")))
_NUMBER = Statement(select(func.count()).where(_OF_USER))
_ADD = Statement(insert(tags))
_SET_ENABLED = Statement(
    update(tags)
    .where(_OF_USER, tags.c.name == bindparam("tag_name"))
    .values(is_enabled=bindparam("enabled"), updated_at=bindparam("now"))
    .returning(*_COLUMNS)
)


@cache  # of the numbers of tags that a memory can have
def _named(n_names: int) -> Statement:
    names: list[BindParameter[str]] = [bindparam(f"name_{number}") for number in range(n_names)]
    return Statement(select(tags.c.name, tags.c.id).where(_OF_USER, tags.c.name.in_(names)))


class Tags:
    """The tags of one user, inside one transaction or a statement at a time.

    Parameters
    ----------
    queries : Queries
    user_id : str
    now : str
        An instant as it is stored.
    """

    def __init__(self, queries: Queries, user_id: str, *, now: str) -> None:
        self._queries = queries
        self._user_id = user_id
        self._now = now

    def all(self) -> list[Tag]:
        """All of them, by name."""
        return [_as_tag(row) for row in self._queries.rows(_ALL, user_id=self._user_id)]

    def get(self, tag_id: str) -> Tag:
        """One; `NotFoundError` where the user has none with this id."""
        row = self._queries.row(_ONE, user_id=self._user_id, tag_id=tag_id)
        if row is None:
            raise NotFoundError("this user has no tag with this id", status=404, code="not_found")
        return _as_tag(row)

    def add(self, fields: dict[str, Any]) -> str:
        """A new one of columns by name; its id."""
        new = {
            "color": TAG_COLOR,
            "description": "",
            "is_enabled": True,
            "created_at": self._now,
            "updated_at": self._now,
            **fields,
            "id": str(uuid4()),
            "user_id": self._user_id,
        }
        self._queries.run(_ADD, **new)
        return str(new["id"])

    def ids_of(self, names: Sequence[str]) -> dict[str, str]:
        """Ids by name of those names that the user has a tag for, in the order of the names."""
        if not names:
            return {}
        parameters = {f"name_{number}": name for number, name in enumerate(names)}
        found: dict[str, str] = dict(
            self._queries.rows(_named(len(names)), user_id=self._user_id, **parameters)
        )
        return {name: found[name] for name in names if name in found}

    def ensured(self, names: Sequence[str]) -> dict[str, str]:
        """Ids by name of all names; those that the user has no tag for get one."""
        known: dict[str, str] = self._queries.remembered(("tags", self._user_id), dict)
        known |= self.ids_of([name for name in names if name not in known])
        new = [name for name in names if name not in known]
        if new:
            ((number,),) = self._queries.rows(_NUMBER, user_id=self._user_id)
            if number + len(new) > MAX_USER_TAGS:
                message = f"a user has at most {MAX_USER_TAGS} tags, and this one has {number}; use tags that are there"
                raise ConflictError(message, status=409, code="too_many_tags")
        for name in new:
            known[name] = self.add({"name": name})
        return {name: known[name] for name in names}

    def set_enabled(self, name: str, *, enabled: bool) -> Tag:
        """Switch one on or off; `NotFoundError` where the user has none of this name."""
        change = {"tag_name": name, "enabled": enabled, "now": self._now}
        row = self._queries.row(_SET_ENABLED, user_id=self._user_id, **change)
        if row is None:
            raise NotFoundError(f"this user has no tag {name}", status=404, code="not_found")
        return _as_tag(row)


def _as_tag(row: Row) -> Tag:
    fields = dict(zip(Tag.__struct_fields__, row, strict=True))
    return Tag(**fields | {"is_enabled": bool(fields["is_enabled"])})  # SQLite has no booleans
