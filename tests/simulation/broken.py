"""Clients that are broken on purpose, to see that the oracle would notice.

Each changes one decision of the real one, for the length of a ``with`` block.
"""

from contextlib import contextmanager
from unittest.mock import patch

import msgspec
from msgspec.structs import replace

from memframe.apply import decisions, write
from memframe.apply.operations import OperationLog
from memframe.secret import SecretBytes
from tests.simulation.scenario import STAGE


@contextmanager
def naive_retry():
    """Sends again whatever was not acknowledged, and after a restart whatever it was about to send."""
    table = {**decisions.DECISIONS, "unclear": dict.fromkeys(("create", "patch", "delete"), "again")}
    with (
        patch.object(decisions, "DECISIONS", table),
        patch.object(decisions, "state_unsent", lambda ambiguous: "planned"),
        patch.object(write, "_mark_unknown", forget),
    ):
        yield


def forget(log):
    return [replace(op, state="planned") for op in log if op.state == "sending"]


@contextmanager
def acknowledge_before_send():
    """Writes down that it is done when it is only about to be sent."""

    def write_ahead(log, operations, backups=None):
        done = (replace(op, state="done") if op.state == "sending" else op for op in operations)
        written(log, done, backups)

    written = OperationLog.write
    with patch.object(OperationLog, "write", write_ahead):
        yield


@contextmanager
def seal_again_on_retry():
    """Keeps the plain text, and seals it anew each time that it is sent."""

    def seal(log, places):
        bodies = frozen(log, places)
        for n in [n for n in bodies if log[n].attempts > 1]:
            fields = msgspec.json.decode(bodies[n].reveal())
            fields["content"] = STAGE.envelopes[1].seal(log[n].change.after["content"])
            bodies[n] = SecretBytes(msgspec.json.encode(fields))
        return bodies

    frozen = OperationLog.requests
    with patch.object(OperationLog, "requests", seal):
        yield


BROKEN = (naive_retry, acknowledge_before_send, seal_again_on_retry)
