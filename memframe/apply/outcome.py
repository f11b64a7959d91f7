"""Outcome: what happened to one change of a plan."""

from __future__ import annotations

from msgspec import Struct

from memframe.change import Action, Label
from memframe.journal import Operation, Status


class Outcome(Struct, frozen=True, kw_only=True):
    """What happened to one change.

    Attributes
    ----------
    row : label
        As in the plan.
    action : {"create", "patch", "delete"}
    id : str or None
        Of the memory; the new one for a create.
    status : {"done", "recovered", "rejected", "conflict", "unknown", "planned"}
        ``recovered`` is done by a request whose answer got lost.
    http_status : int or None
        Of the last answer.
    attempts : int
        Requests that left for the service, or were about to.
    error : str or None
        Why it is not done.
    restores : str or None
        Of a create, the id of the deleted memory that it brings back: where ``id`` is the same, the service has
        restored that one, else it has made a new one, dated of the day of the run.
    """

    row: Label
    action: Action
    id: str | None
    status: Status
    http_status: int | None
    attempts: int
    error: str | None
    restores: str | None = None


def outcome_of(operation: Operation) -> Outcome:
    """What happened to an operation; one whose request is under way is not known."""
    standing = operation.standing
    return Outcome(
        row=operation.change.row,
        action=operation.action,
        id=operation.id,
        status="unknown" if standing.state == "sending" else standing.state,
        http_status=standing.http_status,
        attempts=standing.attempts,
        error=standing.error,
        restores=operation.change.restores or None,
    )
