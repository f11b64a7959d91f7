"""Clients that are broken on purpose, to see that the oracle would notice.

Each changes one decision of the real one, for the length of a ``with`` block.
"""

from contextlib import contextmanager
from unittest.mock import patch

import msgspec
from msgspec.structs import replace

from memframe import apply
from memframe.apply import verdicts
from memframe.apply.books import Books
from memframe.apply.dispatch import Dispatch
from memframe.secret import SecretBytes
from tests.simulation.scenario import STAGE


@contextmanager
def naive_retry():
    """Sends again whatever was not acknowledged, and after a restart whatever it was about to send."""
    moves = {**verdicts.MOVES, "unclear": dict.fromkeys(("create", "patch", "delete"), "again")}
    with (
        patch.object(verdicts, "MOVES", moves),
        patch.object(verdicts, "released", lambda in_doubt: "planned"),
        patch.object(apply, "_in_doubt", forgetting),
    ):
        yield


def forgetting(books):
    return {op.n: replace(op.standing, state="planned") for op in books if op.state == "sending"}


@contextmanager
def acknowledge_before_send():
    """Writes down that it is done when it is only about to be sent."""

    def hopeful(sending, n):
        return replace(intent(sending, n), state="done")

    intent = Dispatch._intent
    with patch.object(Dispatch, "_intent", hopeful):
        yield


@contextmanager
def seal_again_on_retry():
    """Keeps the plain text, and seals it anew each time that it is sent."""

    def resealed(books, n):
        body = frozen(books, n)
        if body is None or books[n].standing.attempts <= 1:
            return body
        fields = msgspec.json.decode(body.reveal())
        fields["content"] = STAGE.envelopes[1].seal(books[n].change.after["content"])
        return SecretBytes(msgspec.json.encode(fields))

    frozen = Books.request
    with patch.object(Books, "request", resealed):
        yield


BROKEN = (naive_retry, acknowledge_before_send, seal_again_on_retry)
