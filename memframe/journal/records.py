"""What a journal holds: the header of a run, and its operations with where each of them stands."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

from memframe.change import Action, Change, Value
from memframe.wire import MemoryBlob

Status = Literal["done", "recovered", "rejected", "conflict", "unknown", "planned"]
"""What became of an operation, as people are told."""

STATUSES: tuple[Status, ...] = get_args(Status)

State = Literal[Status, "sending"]
"""The same with what it is while its request is under way; in a run that has ended that is ``unknown``."""

SETTLED: frozenset[State] = frozenset({"done", "recovered", "rejected", "conflict"})
"""States that nothing changes any more."""

WRITTEN: frozenset[State] = frozenset({"done", "recovered"})
"""States in which the service holds what was to be written."""


class Header(Struct, frozen=True, kw_only=True):
    """What a run is, as the first page of its journal says it.

    Attributes
    ----------
    run_id : str
        Idempotency keys begin with it.
    base_url, user_id, request_id : str
        Where the run writes, whose memories, and by which access request.
    key_version : int
        Of the key under which content was sealed.
    plan_id : str
    created_at : datetime
        UTC.
    memframe : str
        Version of memframe that began the run.
    n_changes : int
        How many operations there are.
    encrypt : bool
        Whether content goes out sealed, or plain to a service that seals by itself.
    """

    run_id: str
    base_url: str
    user_id: str
    request_id: str
    key_version: int
    plan_id: str
    created_at: datetime
    memframe: str
    n_changes: int
    encrypt: bool = True


class Standing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an operation stands.

    Attributes
    ----------
    state : str
    id : str or None
        Of the memory that a create has made.
    attempts : int
        Requests that left for the service, or were about to.
    in_doubt : bool
        Whether one of them may have been carried out without our having heard of it.
    http_status : int or None
        Of the last answer.
    error : str or None
        Why it is not done, in words for people.
    kept : dict of str to value
        Fields that the service stores in its own way, such as tags in small letters, as it answered.
    """

    state: State = "planned"
    id: str | None = None
    attempts: int = 0
    in_doubt: bool = False
    http_status: int | None = None
    error: str | None = None
    kept: dict[str, Value] = {}


class Operation(Struct, frozen=True):
    """One write of a run: the change that was planned, and where it stands."""

    n: int
    change: Change
    standing: Standing = Standing()

    def __repr__(self) -> str:
        return f"<{self.action} {self.n}: {self.state}>"

    @property
    def action(self) -> Action:
        """create, patch or delete."""
        return self.change.action

    @property
    def state(self) -> State:
        """Of the standing."""
        return self.standing.state

    @property
    def id(self) -> str | None:
        """Of the memory, as far as there is one."""
        return self.change.id or self.standing.id


class Draft(Struct, frozen=True):
    """One write as it enters a journal.

    Attributes
    ----------
    change : Change
    request : bytes or None
        The body that is going to be sent, to the byte, but for the memory key; None for a delete.
    backup : MemoryBlob or None
        The memory as it was read before, whole; None for a create.
    """

    change: Change
    request: bytes | None = None
    backup: MemoryBlob | None = None

    def __repr__(self) -> str:
        return f"<Draft of a {self.change.action}>"
