"""What becomes of an operation: the table of DESIGN, and the two decisions that are made by it.

Pure: from an operation and what was seen or read of it to where it stands then. `memframe.apply.dispatch` acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from memframe.apply.signs import Seen, Sign
from memframe.change import Action, Change, Value, same_value
from memframe.current import Stored
from memframe.frames import to_encodable
from memframe.journal import Operation, Standing, State
from memframe.plan import differs
from memframe.wire import MemoryBlobResponse

Move = Literal[
    "done",
    "recovered",  # it was done by a request whose answer got lost
    "rejected",
    "conflict",
    "unknown",  # to be reconciled before anything else
    "again",  # nothing was done: the same bytes once more, a little later
    "stop",  # nothing was done, and nothing more is sent
    "send",
]

MOVES: Mapping[Sign, Mapping[Action, Move]] = {
    "done": {"create": "done", "patch": "done", "delete": "done"},
    "unsent": {"create": "again", "patch": "again", "delete": "again"},
    "throttled": {"create": "again", "patch": "again", "delete": "again"},
    "unclear": {"create": "unknown", "patch": "unknown", "delete": "unknown"},
    "missing": {"create": "rejected", "patch": "conflict", "delete": "conflict"},
    "taken": {"create": "rejected", "patch": "rejected", "delete": "rejected"},
    "present": {"create": "conflict", "patch": "rejected", "delete": "rejected"},
    "spent": {"create": "conflict", "patch": "rejected", "delete": "rejected"},
    "refused": {"create": "rejected", "patch": "rejected", "delete": "rejected"},
    "unread": {"create": "rejected", "patch": "rejected", "delete": "rejected"},
    "barred": {"create": "stop", "patch": "stop", "delete": "stop"},
    "rekeyed": {"create": "stop", "patch": "stop", "delete": "stop"},
    "foreign": {"create": "stop", "patch": "stop", "delete": "stop"},
}
"""By what was seen, and of which kind of write."""

MOVES_IN_DOUBT: Mapping[tuple[Sign, Action], Move] = {
    ("missing", "delete"): "recovered",
    ("taken", "create"): "unknown",  # the same key may still be at work
    ("unread", "patch"): "unknown",
    ("unread", "delete"): "unknown",
}
"""The same where an earlier request of the operation may have been carried out."""

Reading = Literal["as planned", "as intended", "moved", "gone"]
"""What a memory is like when it is read again, against the change that is about to be sent."""

MOVES_AFTER_READING: Mapping[tuple[Action, Reading], Move] = {
    ("patch", "as planned"): "send",
    ("patch", "as intended"): "conflict",
    ("patch", "moved"): "conflict",
    ("patch", "gone"): "conflict",  # never recreated
    ("delete", "as planned"): "send",
    ("delete", "moved"): "conflict",
    ("delete", "gone"): "conflict",
}
MOVES_AFTER_READING_IN_DOUBT: Mapping[tuple[Action, Reading], Move] = {
    ("patch", "as intended"): "recovered",
    ("delete", "gone"): "recovered",
}
"""The same where an earlier request of the operation may have been carried out."""

_STATE_AFTER: Mapping[Move, State] = {
    "done": "done",
    "recovered": "recovered",
    "rejected": "rejected",
    "conflict": "conflict",
    "unknown": "unknown",
}

_WORDS: Mapping[tuple[Action, Reading], str] = {
    ("patch", "as intended"): "somebody else has made the same change meanwhile",
    ("patch", "gone"): "deleted meanwhile by somebody else; it is not made anew",
    ("delete", "gone"): "deleted before by somebody else",
}


def after_answer(operation: Operation, seen: Seen) -> tuple[Move, Standing]:
    """What follows from an exchange, and where the operation stands then.

    Examples
    --------
    >>> from memframe.errors import NoAnswerError
    >>> sent = Operation(0, Change(action="delete", id="m1"), Standing(state="sending", attempts=1))
    >>> after_answer(sent, Seen("unclear", error=NoAnswerError("broke off")))
    ('unknown', Standing(state='unknown', id=None, attempts=1, in_doubt=True, http_status=None, error='broke off', ...)
    """
    action, standing = operation.action, operation.standing
    move = MOVES[seen.sign][action]
    if standing.in_doubt:
        move = MOVES_IN_DOUBT.get((seen.sign, action), move)
    in_doubt = standing.in_doubt or seen.sign in {"unclear", "foreign"}
    is_written = move in {"done", "recovered"}
    return move, replace(
        standing,
        state=_STATE_AFTER.get(move, released(in_doubt)),
        id=seen.id if is_written and action == "create" else standing.id,
        in_doubt=in_doubt,
        http_status=seen.http_status,
        error=None if is_written else _told(operation, seen),
        kept=_kept(operation.change, seen.record) if is_written else {},
    )


def _kept(change: Change, record: MemoryBlobResponse | None) -> dict[str, Value]:
    """What the service has made of the fields that were sent, where that is something else.

    Null tells nothing: it may stand for a field that the answer leaves out, and all of them do that with content.
    """
    said = {name: to_encodable(getattr(record, name, None)) for name in change.after if name != "content"}
    return {
        name: value
        for name, value in said.items()
        if value is not None and not same_value(name, value, change.after[name])
    }


def released(in_doubt: bool) -> State:
    """The state of an operation that was taken up, and then not gone on with."""
    return "unknown" if in_doubt else "planned"


def _told(operation: Operation, seen: Seen) -> str | None:
    words = _WORDS.get((operation.action, "gone")) if seen.sign == "missing" else None
    return words or (None if seen.error is None else str(seen.error))


def after_reading(operation: Operation, stored: Stored | None) -> tuple[Move, Standing]:
    """What follows from reading a memory right before its patch or delete, and where the operation stands then.

    Parameters
    ----------
    operation : Operation
    stored : Stored or None
        As the service holds it; None where it is gone.
    """
    action, standing = operation.action, operation.standing
    reading = reading_of(operation.change, stored)
    move = MOVES_AFTER_READING[action, reading]
    if standing.in_doubt:
        move = MOVES_AFTER_READING_IN_DOUBT.get((action, reading), move)
    if move == "send":
        return move, standing
    error = None if move == "recovered" else _WORDS.get((action, reading)) or _moved(operation.change, stored)
    return move, replace(standing, state=_STATE_AFTER[move], error=error)


def reading_of(change: Change, stored: Stored | None) -> Reading:
    """What a memory is like against a change of it."""
    if stored is None:
        return "gone"
    if not differs(change, stored):
        return "as planned"
    is_intended = change.action == "patch" and not unlike(change.after, stored)
    return "as intended" if is_intended else "moved"


def unlike(fields: Mapping[str, Value], stored: Stored) -> tuple[str, ...]:
    """Names of the fields that the service holds otherwise."""
    return tuple(name for name, value in fields.items() if not same_value(name, stored.value(name), value))


def _moved(change: Change, stored: Stored | None) -> str:
    return f"changed meanwhile by somebody else: {', '.join(differs(change, stored))}; make a new plan for it"
