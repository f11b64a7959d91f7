"""The state machine of a write: decisions after a response, and after reading the memory again.

An operation is ``planned`` until its intent is on the disk; then it is ``sending``. A response moves it on by
`DECISIONS`. If an earlier request of the operation may have been carried out, it is *ambiguous*, and
`DECISIONS_IF_AMBIGUOUS` takes precedence. The memory of a patch or delete is read before sending if its state is no
longer known; then `DECISIONS_AFTER_READING` applies. Creates that are ``unknown`` are looked for in listings
(`memframe.apply.reconcile`).

This module is pure; `memframe.apply.engine` acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from memframe.apply.responses import ResponseKind, WriteResponse
from memframe.frames import to_encodable
from memframe.journal import JournalState, Operation
from memframe.plan import find_stale_fields
from memframe.plan.change import Action, Change, Value, same_value
from memframe.plan.current import CurrentMemory
from memframe.wire import MemoryBlobResponse

Decision = Literal[
    "done",
    "recovered",  # it was done by a request whose answer got lost
    "rejected",
    "conflict",
    "unknown",  # to be reconciled before anything else
    "again",  # nothing was done: the same bytes once more, a little later
    "stop",  # nothing was done, and nothing more is sent
    "send",
]

DECISIONS: Mapping[ResponseKind, Mapping[Action, Decision]] = {
    "done": {"create": "done", "patch": "done", "delete": "done"},
    "unsent": {"create": "again", "patch": "again", "delete": "again"},
    "throttled": {"create": "again", "patch": "again", "delete": "again"},
    "unclear": {"create": "unknown", "patch": "unknown", "delete": "unknown"},
    "missing": {"create": "rejected", "patch": "conflict", "delete": "conflict"},
    "conflict": {"create": "rejected", "patch": "rejected", "delete": "rejected"},
    "already_restored": {"create": "conflict", "patch": "rejected", "delete": "rejected"},
    "idempotency_key_reused": {"create": "conflict", "patch": "rejected", "delete": "rejected"},
    "refused": {"create": "rejected", "patch": "rejected", "delete": "rejected"},
    "access_denied": {"create": "stop", "patch": "stop", "delete": "stop"},
    "key_changed": {"create": "stop", "patch": "stop", "delete": "stop"},
    "wrong_record": {"create": "stop", "patch": "stop", "delete": "stop"},
}
"""Decisions by the kind of the response and of the write."""

DECISIONS_IF_AMBIGUOUS: Mapping[tuple[ResponseKind, Action], Decision] = {
    ("missing", "delete"): "recovered",
    ("conflict", "create"): "unknown",  # the earlier request, with the same key, may still be running
}
"""Decisions that take precedence if an earlier request of the operation may have been carried out."""

AMBIGUOUS: frozenset[ResponseKind] = frozenset({"unclear", "wrong_record"})
"""Responses after which the request may have been carried out."""

Reading = Literal["as planned", "as intended", "moved", "gone"]
"""Comparison of a memory that was read again with the change that is about to be sent."""

DECISIONS_AFTER_READING: Mapping[tuple[Action, Reading], Decision] = {
    ("patch", "as planned"): "send",
    ("patch", "as intended"): "conflict",
    ("patch", "moved"): "conflict",
    ("patch", "gone"): "conflict",  # never recreated
    ("delete", "as planned"): "send",
    ("delete", "moved"): "conflict",
    ("delete", "gone"): "conflict",
}
DECISIONS_AFTER_READING_IF_AMBIGUOUS: Mapping[tuple[Action, Reading], Decision] = {
    ("patch", "as intended"): "recovered",
    ("delete", "gone"): "recovered",
}
"""Decisions that take precedence if an earlier request of the operation may have been carried out."""

STATE_AFTER: Mapping[Decision, JournalState] = {
    "done": "done",
    "recovered": "recovered",
    "rejected": "rejected",
    "conflict": "conflict",
    "unknown": "unknown",
}
"""State of an operation after a decision; after the other decisions it is `state_unsent`."""

_WORDS: Mapping[tuple[Action, Reading], str] = {
    ("patch", "as intended"): "someone else made the same change in the meantime",
    ("patch", "gone"): "deleted in the meantime by someone else; it is not created again",
    ("delete", "gone"): "already deleted by someone else",
}


def decide(operation: Operation, response: WriteResponse) -> tuple[Decision, Operation]:
    """Decide what follows from the response to a write; return the operation in its new state.

    Examples
    --------
    >>> from memframe.errors import NoAnswerError
    >>> sent = Operation(n=0, change=Change(action="delete", id="m1"), state="sending", attempts=1)
    >>> decision, moved = decide(sent, WriteResponse("unclear", error=NoAnswerError("broke off")))
    >>> decision, moved.state, moved.ambiguous, moved.error
    ('unknown', 'unknown', True, 'broke off')
    """
    action, ambiguous = operation.action, operation.ambiguous
    decision = DECISIONS[response.kind][action]
    if ambiguous:
        decision = DECISIONS_IF_AMBIGUOUS.get((response.kind, action), decision)
    ambiguous = ambiguous or response.kind in AMBIGUOUS
    is_written = decision in {"done", "recovered"}
    error = _WORDS.get((action, "gone")) if response.kind == "missing" else None
    return decision, replace(
        operation,
        state=STATE_AFTER.get(decision, state_unsent(ambiguous)),
        new_id=response.id if is_written and action == "create" else operation.new_id,
        ambiguous=ambiguous,
        http_status=response.http_status,
        error=None if is_written else error or (response.error and str(response.error)),
        normalized=_normalized(operation.change, response.record) if is_written else {},
    )


def decide_after_reading(operation: Operation, memory: CurrentMemory | None) -> tuple[Decision, Operation]:
    """Decide what follows from reading the memory of a patch or delete; return the operation in its new state."""
    action, change = operation.action, operation.change
    moved_fields = find_stale_fields(change, memory)
    reading: Reading = "as planned"
    if memory is None:
        reading = "gone"
    elif moved_fields:
        reading = (
            "as intended" if action == "patch" and not memory.find_differences(change.after) else "moved"
        )
    decision = DECISIONS_AFTER_READING[action, reading]
    if operation.ambiguous:
        decision = DECISIONS_AFTER_READING_IF_AMBIGUOUS.get((action, reading), decision)
    if decision == "send":
        return decision, operation
    error = None
    if decision != "recovered":
        moved = f"changed in the meantime by someone else: {', '.join(moved_fields)}; make a new plan for it"
        error = _WORDS.get((action, reading), moved)
    return decision, replace(operation, state=STATE_AFTER[decision], error=error)


def state_unsent(ambiguous: bool) -> JournalState:
    """Return the state of an operation that was not sent after all."""
    return "unknown" if ambiguous else "planned"


def _normalized(change: Change, record: MemoryBlobResponse | None) -> dict[str, Value]:
    """Find the fields that the service has stored in another form than they were sent.

    Null is ignored, because it may stand for a field that the answer leaves out; content is always left out.
    """
    stored = {name: to_encodable(getattr(record, name, None)) for name in change.after if name != "content"}
    return {
        name: value
        for name, value in stored.items()
        if value is not None and not same_value(name, value, change.after[name])
    }
