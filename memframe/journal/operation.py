"""Operation: one write of a run, with its status; and the header that says what run it is."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

from memframe.plan.change import Action, Change, Label, Value

Status = Literal["done", "recovered", "rejected", "conflict", "unknown", "planned"]
"""Outcome of an operation; ``recovered`` is done by a request whose answer got lost."""

STATUSES: tuple[Status, ...] = get_args(Status)

State = Literal[Status, "sending"]
"""The same while a run goes on: ``sending`` is an operation whose intent is on the disk and whose answer is not."""

SETTLED: frozenset[State] = frozenset({"done", "recovered", "rejected", "conflict"})
"""States that are final."""

WRITTEN: frozenset[State] = frozenset({"done", "recovered"})
"""States in which the service holds what was to be written."""


class Header(Struct, frozen=True, kw_only=True):
    """The run that a journal records."""

    run_id: str
    """Idempotency keys begin with it."""
    base_url: str
    user_id: str
    request_id: str
    """Where the run writes, whose memories, and by which access request."""
    key_version: int
    """Of the key under which content was sealed."""
    plan_id: str
    created_at: datetime
    """UTC."""
    memframe: str
    """Version of memframe that began the run."""
    n_changes: int
    """How many operations there are."""
    encrypt: bool = True
    """Whether content goes out sealed, or plain to a service that seals by itself."""


class OperationState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an operation that changes during a run."""

    state: State = "planned"
    new_id: str | None = None
    """Of the memory that a create has made."""
    attempts: int = 0
    """Requests that left for the service, or were about to."""
    ambiguous: bool = False
    """Whether one of them may have been carried out though its answer got lost."""
    http_status: int | None = None
    """Of the last answer."""
    error: str | None = None
    """Why it is not done, in words for people."""
    normalized: dict[str, Value] = {}
    """Fields that the service stores in its own way, such as tags in small letters, as it answered."""


class Operation(OperationState, frozen=True, kw_only=True):
    """One write of a run: its place ``n``, the change that was planned, and what has become of it."""

    n: int
    change: Change

    def __repr__(self) -> str:
        return f"<{self.action} {self.n}: {self.state}>"

    @property
    def action(self) -> Action:
        """create, patch or delete."""
        return self.change.action

    @property
    def id(self) -> str | None:
        """Of the memory; the new one for a create that is done."""
        return self.change.id or self.new_id

    @property
    def row(self) -> Label:
        """As in the plan."""
        return self.change.row

    @property
    def status(self) -> Status:
        """The state as an outcome: whether an operation was carried out that is being sent is unknown."""
        return "unknown" if self.state == "sending" else self.state

    @property
    def restores(self) -> str | None:
        """Of a create, the id of the deleted memory that it brings back.

        Where ``id`` is the same, the service has restored that one, else it has made a new one, dated of the day of
        the run.
        """
        return self.change.restores
