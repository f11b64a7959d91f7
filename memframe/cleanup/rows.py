"""The rows of an audit beside the service: what was judged, what is there now, and what has moved in between."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

import pandas as pd
from msgspec import Struct

from memframe.access import Access
from memframe.change import FIELDS, Label, Value, same_value
from memframe.client.responses import same_id
from memframe.current import Stored, read_stored
from memframe.errors import PlanError
from memframe.plan.cells import cells_of, read_cell
from memframe.plan.sheet import label_of
from memframe.plan.wording import listed

Values = Mapping[str, Value]


class Row(Struct, frozen=True, kw_only=True, dict=True):
    """One audited memory.

    Attributes
    ----------
    id : str
    place : int
        In the audited frame.
    label : str, int, float or None
        Of the row there.
    seen : mapping of str to value
        What was judged: the fields that the frame has.
    stored : Stored or None
        As the service holds it now; None where it is gone.
    is_closed : bool
        Whether its content could not be read as it is, by the audit or now.
    """

    id: str
    place: int
    label: Label
    seen: dict[str, Value]
    stored: Stored | None
    is_closed: bool

    @cached_property
    def now(self) -> dict[str, Value]:
        """All fields as the service holds them."""
        return {name: self.stored.value(name) for name in FIELDS} if self.stored else {}

    def moved(self, fields: Iterable[str]) -> tuple[str, ...]:
        """Those of some fields that the service holds otherwise than the audit saw them."""
        now = self.now
        return tuple(
            name
            for name in FIELDS
            if name in set(fields) & self.seen.keys() and not same_value(name, self.seen[name], now.get(name))
        )


class Rows:
    """The memories of one user in an audited frame, each once.

    Raises
    ------
    PlanError
        The frame holds other users' memories alone, or one memory in two states.
    """

    def __init__(self, access: Access, memories: pd.DataFrame) -> None:
        self._frame = _once_each(_of_user(access, memories))
        self._access = access
        ids = self._frame["id"].tolist()
        self._place = {memory_id: place for place, memory_id in enumerate(ids)}

    def __len__(self) -> int:
        return len(self._frame)

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._place

    @property
    def memories(self) -> pd.DataFrame:
        """The rows of this user."""
        return self._frame

    def read(self, ids: Collection[str]) -> dict[str, Row]:
        """Chosen memories beside what the service holds now, in the order of the frame."""
        ids = sorted(ids, key=self._place.__getitem__)
        frame = self._frame.iloc[[self._place[memory_id] for memory_id in ids]]
        stored = read_stored(self._access, ids, n_known=len(self)) if ids else {}
        names = [name for name in FIELDS if name in frame.columns]
        columns = [[read_cell(name, cell).value for cell in cells_of(frame[name])] for name in names]
        has_error = frame.get("content_error", pd.Series(None, index=frame.index, dtype="str")).notna()
        rows = {}
        for number, (memory_id, closed) in enumerate(zip(ids, has_error, strict=True)):
            now = stored.get(memory_id)
            rows[memory_id] = Row(
                id=memory_id,
                place=self._place[memory_id],
                label=label_of(frame.index[number]),
                seen={name: column[number] for name, column in zip(names, columns, strict=True)},
                stored=now,
                is_closed=bool(closed) or (now is not None and now.error is not None),
            )
        return rows


def _of_user(access: Access, memories: pd.DataFrame) -> pd.DataFrame:
    """The rows of the user of an access; rows that name no user count as theirs."""
    if "user_id" not in memories.columns:
        return memories
    users = memories["user_id"].dropna().unique()
    foreign = [user for user in users if not same_id(str(user), access.user_id)]
    own = memories[~memories["user_id"].isin(foreign)]
    if foreign and own.empty:
        raise PlanError(
            f"the audit is of memories of user {listed([str(user) for user in foreign])}, the access is to "
            f"{access.user_id}: open that user's access"
        )
    return own


def _once_each(memories: pd.DataFrame) -> pd.DataFrame:
    """The first of rows that repeat a memory; such as disagree leave open what was judged."""
    memories = memories[memories["id"].notna()]
    repeated = memories[memories["id"].duplicated(keep=False)]
    names = [name for name in FIELDS if name in memories.columns]
    states = repeated[["id", *names]].astype(str).drop_duplicates()
    odd = states["id"][states["id"].duplicated()].unique().tolist()
    if odd:
        raise PlanError(
            f"the audited frame holds memories in more than one state ({listed(odd)}): "
            "keep the newest row of each, and audit again"
        )
    return memories.drop_duplicates("id")
