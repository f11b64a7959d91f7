"""The list of existing requests: status, reason and dates, and a button to go on with each that is alive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ipywidgets import HBox, VBox

from memframe.panel import markup
from memframe.panel.desk import Desk
from memframe.panel.fields import button, html, show
from memframe.secret import Secret
from memframe.wire import AccessRequest, Status

N_SHOWN = 6
"""Requests at first, and more with each click."""

_ORDER: dict[Status, int] = {"approved": 0, "pending": 1, "rejected": 2, "revoked": 2}
_ALIVE: tuple[Status, ...] = ("approved", "pending")
_WORDS: dict[Status, str] = {
    "approved": "Open",
    "pending": "Wait",
    "rejected": "Ask again",
    "revoked": "Ask again",
}


class RequestList:
    """Requests, those that one can go on with first.

    Attributes
    ----------
    box : VBox
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._rows: list[_Row] = []
        self._n_shown = N_SHOWN
        self._more = button(desk, "Show more", self._more_clicked, "quiet")
        self.box = VBox([self._more])
        self.box.add_class("mf-requests")

    def draw(self, requests: Sequence[AccessRequest], now: datetime) -> None:
        """Show these requests."""
        shown = sorted(requests, key=lambda request: _ORDER[request.status])[: self._n_shown]
        while len(self._rows) < len(shown):
            self._rows.append(_Row(self._desk))
            self.box.children = [*(row.box for row in self._rows), self._more]
        alive = [request.memory_key for request in requests if request.status in _ALIVE]
        for row, request in zip(self._rows, [*shown, *[None] * len(self._rows)], strict=False):
            row.draw(request, now, alive)
        n_more = len(requests) - len(shown)
        show(self.box, bool(requests))
        show(self._more, n_more > 0)
        if n_more:
            self._more.description = f"Show more ({n_more})"

    def _more_clicked(self) -> None:
        self._n_shown += N_SHOWN
        self._desk.redraw()


class _Row:
    """One request."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._request: AccessRequest | None = None
        self._line = html()
        self._go = button(desk, "Open", self._clicked)
        self.box = HBox([self._line, self._go])
        self.box.add_class("mf-request")

    def draw(self, request: AccessRequest | None, now: datetime, alive: Sequence[Secret | None]) -> None:
        """Show a request, or nothing; of a user with one that is alive, no other is offered."""
        self._request = request
        show(self.box, request is not None)
        if request is not None:
            is_alive = request.status in _ALIVE
            can_ask = request.memory_key is not None and request.memory_key not in alive
            words = _WORDS[request.status] if is_alive or can_ask else ""
            self._line.value = markup.request_line(request, now)
            self._go.description = words or "Over"
            self._go.tooltip = f"{words} {markup.shortened(request.reason)}"
            show(self._go, bool(words))

    def _clicked(self) -> None:
        if self._request is not None:
            request_id = self._request.id
            self._desk.start(lambda: self._desk.take_up(request_id))
