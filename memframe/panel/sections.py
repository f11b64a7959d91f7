"""A section of the panel: one step, of which the head always shows, and the body while it is due.

The first section: the developer signs in.

The second section: an existing request is chosen, or a user allows the application to ask.

The third section: the user is asked for access, with a reason.

The fourth section: the user decides.

The last section: the access is opened, and the memories are loaded.

The list of existing requests: status, reason and dates, and a button to go on with each that is alive.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pandas as pd
from ipywidgets import Button, HBox, VBox, Widget

from memframe.display import number_of, printable
from memframe.oauth import can_listen
from memframe.panel import widgets
from memframe.panel.controller import Desk, Moment
from memframe.panel.widgets import (
    LABELS,
    EnterKey,
    SecretField,
    button,
    button_row,
    html,
    name_as_labels,
    show,
    text_area,
    text_field,
    text_of,
)
from memframe.secret import Secret
from memframe.signin import Stand
from memframe.signin.state import LOOKS
from memframe.wire import AccessRequest, Status


class Section(ABC):
    """One step.

    Parameters
    ----------
    desk : Desk
        What the buttons ask.
    body : sequence of Widget
        What is there while the step is due.
    buttons : sequence of Button
        Below that.
    beside : sequence of Widget
        Beside the head.

    Attributes
    ----------
    box : VBox
    """

    number: ClassVar[int]
    title: ClassVar[str]

    def __init__(
        self, desk: Desk, body: Sequence[Widget], buttons: Sequence[Button], beside: Sequence[Widget] = ()
    ) -> None:
        self.desk = desk
        self._head, self._message = html(), html()
        self._buttons = buttons
        self._cancel = button(desk, "Cancel", desk.cancel)
        self._body = VBox([*body, button_row(*buttons, self._cancel), self._message])
        self._body.add_class("mf-body")
        heading = HBox([self._head, *beside])
        heading.add_class("mf-heading")
        self.box = VBox([heading, self._body])
        self.box.add_class("mf-section")

    def draw(self, moment: Moment, due: int) -> None:
        """Show this moment; `due` is the number of the section whose turn it is."""
        place = widgets.place_of(self.number, due)
        summary = self.summary(moment) if place == "done" else ""
        is_over = moment.stand.state == "loaded"
        self._head.value = widgets.head(self.number, self.title, "done" if is_over else place, summary)
        if place == "active":
            for each in self._buttons:
                each.disabled = moment.is_busy
            show(self._cancel, moment.is_busy)
            self.draw_body(moment)
            self._message.value = self.said(moment)
        # Last, as changes reach the screen one by one: nobody is to meet what is about to be hidden.
        show(self._body, place == "active")

    @abstractmethod
    def draw_body(self, moment: Moment) -> None:
        """Show what can be done now."""

    def summary(self, moment: Moment) -> str:  # noqa: ARG002 - the last section is never behind one
        """What came of it, as HTML."""
        return ""

    def news(self, moment: Moment) -> str:
        """What is going on, as HTML, while nothing is wrong."""
        return (
            widgets.note(widgets.DOING[moment.stand.doing]) if moment.stand.doing and moment.is_busy else ""
        )

    def said(self, moment: Moment) -> str:
        """What is wrong, or else what is going on, as HTML."""
        if moment.hint:
            return widgets.alert(name_as_labels(moment.hint))
        trouble = moment.stand.trouble
        if trouble and trouble.is_passing and trouble.step in LOOKS and moment.is_watching:
            return widgets.aside(f"{trouble.text} {next_check(moment)}")  # nobody need do anything
        if trouble:
            return widgets.alert(name_as_labels(trouble.text), trouble.way_out)
        return self.news(moment)

    def submit_on_enter(self, enter: EnterKey, submit: Button, *fields: Widget) -> None:
        """Have Enter in these fields do what the button does, where that is shown and enabled."""

        def click() -> None:
            is_shown = "none" not in {self._body.layout.display, submit.layout.display}
            if is_shown and not submit.disabled:
                submit.click()

        for field in fields:
            enter.watch(field, click)

    def ask_for(self, hint: str, field: Widget) -> None:
        """Say what has to be typed first, with the cursor in its field."""
        self.desk.ask_for(hint)
        field.focus()

    def spend(self, field: SecretField, step: Callable[[Secret | None], object]) -> None:
        """Take a step with what was typed, and forget it, unless the same may go well in a minute."""
        secret = field.take()
        try:
            step(secret)
        finally:
            trouble = self.desk.way.trouble
            if trouble and trouble.is_passing:
                field.put_back(secret)


def next_check(moment: Moment) -> str:
    """Return when the worker looks again, as a sentence."""
    if moment.next_look_at is None:
        return "" if moment.is_watching else "Checking has stopped."
    return f"Next check at {widgets.to_the_second(moment.next_look_at)}."


class Signing(Section):
    """Address and API key, or what is known of them."""

    number, title = 1, "Sign in"

    def __init__(self, desk: Desk, enter: EnterKey) -> None:
        self._intro = html()
        self._address = text_field(LABELS["base_url"], "https://memory.example/api/v1")
        self._key = SecretField(LABELS["api_key"])
        self._sign_in = button(desk, "Sign in", self._clicked, "primary")
        self._sign_out = button(desk, "Sign out", desk.sign_out, "quiet")
        super().__init__(
            desk, [self._intro, self._address, self._key.widget], [self._sign_in], [self._sign_out]
        )
        self.submit_on_enter(enter, self._sign_in, self._address, self._key.widget)

    def draw(self, moment: Moment, due: int) -> None:
        super().draw(moment, due)
        show(self._sign_out, moment.stand.client is not None)

    def draw_body(self, moment: Moment) -> None:
        is_known = moment.origins is not None
        has_failed = moment.stand.trouble is not None
        asks = {name: is_known and (name in moment.lacking or has_failed) for name in ("base_url", "api_key")}
        show(self._address, asks["base_url"])
        show(self._key.widget, asks["api_key"])
        show(self._sign_in, is_known)
        self._intro.value = _intro(moment)

    def summary(self, moment: Moment) -> str:
        client = moment.stand.client
        origin = (moment.origins or {}).get("api_key")
        key = f", with the key from {origin}" if origin else ""
        return widgets.text(f"At {urlsplit(client.base_url).netloc}{key}.") if client else ""

    def _clicked(self) -> None:
        address = text_of(self._address)
        lacking = self.desk.moment.lacking
        if "base_url" in lacking and not address:
            self.ask_for(f"Fill in “{LABELS['base_url']}” first.", self._address)
        elif "api_key" in lacking and self._key.is_empty:
            self.ask_for(f"Fill in “{LABELS['api_key']}” first.", self._key.widget)
        else:
            self.desk.start(lambda: self.spend(self._key, lambda key: self.desk.enter(key, address)))


def _intro(moment: Moment) -> str:
    if moment.origins is None:
        return widgets.note("Looking for your settings …")
    if "api_key" in moment.lacking:
        return widgets.paragraph(
            "With the developer's API key, which stays in the memory of this kernel. To have it kept in the "
            "keyring of your computer, run `memframe login` there."
        )
    return widgets.paragraph(f"With the key from {moment.origins['api_key']}.")


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
            self._line.value = widgets.request_line(request, now)
            self._go.description = words or "Over"
            self._go.tooltip = f"{words} {widgets.shortened(request.reason)}"
            show(self._go, bool(words))

    def _clicked(self) -> None:
        if self._request is not None:
            request_id = self._request.id
            self._desk.start(lambda: self._desk.take_up(request_id))


class Connecting(Section):
    """The list of requests; or the link, and the field for what it leads to."""

    number, title = 2, "Connect a user"

    def __init__(self, desk: Desk, enter: EnterKey) -> None:
        self._list = RequestList(desk)
        self._intro, self._guide = html(), html()
        self._fields = {
            "auth_url": text_field(LABELS["auth_url"], "https://memory.example"),
            "client_id": text_field(LABELS["client_id"]),
            "redirect_uri": text_field(LABELS["redirect_uri"], "http://127.0.0.1/callback"),
        }
        self._client_secret = SecretField(LABELS["client_secret"], "Leave empty if the application has none")
        self._answer = SecretField(_ANSWER, hidden=False)
        self._prepare = button(desk, "Connect a user", self._prepare_clicked, "primary")
        self._finish = button(desk, "Continue", self._finish_clicked, "primary")
        self._paste = button(desk, "Paste the answer instead", desk.paste, title=_PASTE)
        self._receive = button(
            desk, "Receive the answer here", lambda: desk.start(desk.listen), title=_RECEIVE
        )
        self._back = button(desk, "Back", desk.go_back)
        address, client_id, redirect_uri = self._fields.values()
        fields = [address, client_id, self._client_secret.widget, redirect_uri]
        # In the order of the steps, as the keyboard goes on from a button that is there no more.
        super().__init__(
            desk,
            [
                self._list.box,
                self._intro,
                *fields,
                button_row(self._prepare),
                self._guide,
                self._answer.widget,
            ],
            [self._finish, self._paste, self._receive, self._back],
        )
        self.submit_on_enter(enter, self._prepare, *fields)
        self.submit_on_enter(enter, self._finish, self._answer.widget)

    def draw_body(self, moment: Moment) -> None:
        stand, is_waiting = moment.stand, moment.stand.state == "authorizing"
        self._list.draw(() if is_waiting else stand.requests, moment.now)
        self._intro.value = "" if is_waiting else _choice(stand.requests)
        for name, field in self._fields.items():
            show(field, not is_waiting and name in moment.lacking)
        show(self._client_secret.widget, not is_waiting and "client_secret" in moment.lacking)
        show(self._prepare, not is_waiting)
        self._prepare.disabled = moment.is_busy
        is_pasted = is_waiting and not stand.is_listening
        for widget in (self._answer.widget, self._finish):
            show(widget, is_pasted)
        is_local = stand.flow is not None and can_listen(stand.flow.redirect_uri, os.environ)
        show(self._paste, stand.is_listening)
        show(self._receive, is_pasted and is_local)
        show(self._back, is_waiting)
        self._guide.value = _guide(stand)

    def news(self, moment: Moment) -> str:
        return widgets.note(_LISTENING) if moment.stand.is_listening else super().news(moment)

    def summary(self, moment: Moment) -> str:
        request = moment.stand.request
        if moment.stand.tokens is None and request is not None:
            return widgets.text("An existing request was chosen.")
        return widgets.text("The user allowed the connection.")

    def _prepare_clicked(self) -> None:
        typed = {name: text_of(field) for name, field in self._fields.items()}
        lacking = self.desk.moment.lacking
        missing = [name for name in typed if name in lacking and not typed[name]]
        if missing:
            field = self._fields[missing[0]]
            self.ask_for(f"Fill in “{field.description}” first.", field)
            return
        given = {name: text for name, text in typed.items() if name in lacking}
        self.desk.start(
            lambda: self.spend(
                self._client_secret, lambda secret: self.desk.connect(client_secret=secret, **given)
            )
        )

    def _finish_clicked(self) -> None:
        if self._answer.is_empty:
            self.ask_for(
                f"Fill in “{_ANSWER}” first: the address to which the link leads.", self._answer.widget
            )
        else:
            self.desk.start(lambda: self.spend(self._answer, self.desk.finish))


_ANSWER = "Redirected address, or its code"
_LISTENING = "Waiting for the answer on this computer …"
_PASTE = "Where the page after that does not load, as the browser runs on another computer"
_RECEIVE = "Where the browser runs on the same computer as this notebook, the answer comes by itself"


def _choice(requests: Sequence[AccessRequest]) -> str:
    if any(request.status in {"approved", "pending"} for request in requests):
        return widgets.paragraph("Go on with one of these requests, or connect another user.")
    return widgets.paragraph(
        "A user allows your application to ask for access. Nothing is shared by that yet."
    )


def _guide(stand: Stand) -> str:
    if stand.address is None:
        return ""
    if stand.is_listening:
        return widgets.paragraph_of(
            widgets.link(stand.address, "Open the authorization page")
            + widgets.text(
                " in a browser on this computer. The user signs in there and allows the connection; then it goes "
                "on here by itself."
            )
        )
    return _way_through(stand.address)


def _way_through(address: str) -> str:
    return widgets.numbered(
        widgets.link(address, "Open the authorization page")
        + widgets.text(", where the user signs in and allows the connection.")
        + widgets.copyable(address, "Or send this address to the user"),
        widgets.text(
            "Copy the address of the page to which the browser is sent then, even if that page does not load, "
            "and paste it here:"
        ),
    )


class Asking(Section):
    """The reason; and what was asked of the same user before."""

    number, title = 3, "Ask for access"

    def __init__(self, desk: Desk, reason: str) -> None:
        self._list = RequestList(desk)
        self._earlier = html(
            widgets.paragraph("You have asked this user before. Go on with that, or ask anew:")
        )
        self._reason = text_area("Your reason", "What the user reads before deciding", reason)
        self._send = button(desk, "Send the request", self._clicked, "primary")
        super().__init__(
            desk,
            [self._earlier, self._list.box, self._reason],
            [self._send, button(desk, "Back", desk.go_back)],
        )

    def draw_body(self, moment: Moment) -> None:
        key = moment.stand.tokens and moment.stand.tokens.memory_key
        alive = [
            request
            for request in moment.stand.requests
            if request.memory_key == key and request.status in {"pending", "approved"}
        ]
        show(self._earlier, bool(alive))
        self._list.draw(alive, moment.now)

    def summary(self, moment: Moment) -> str:
        request = moment.stand.request
        asked = widgets.when(request.created_at, moment.now) if request else ""
        return widgets.text(f"“{widgets.shortened(request.reason)}”, asked {asked}.") if request else ""

    def _clicked(self) -> None:
        reason = text_of(self._reason)
        if reason is None:
            self.ask_for("Fill in “Your reason” first: the user decides by it.", self._reason)
        else:
            self.desk.start(lambda: self.desk.way.ask(reason))


class Deciding(Section):
    """The status of the request, looked at again and again without anybody waiting."""

    number, title = 4, "Wait for the decision"

    def __init__(self, desk: Desk, dashboard_url: str | None) -> None:
        self._dashboard_url = dashboard_url
        self._told = html()
        self._reason = text_area("Your new reason", "What the user reads before deciding")
        self._declined: str | None = None
        self._check = button(desk, "Check now", lambda: desk.start(desk.way.check), "primary")
        self._stop = button(desk, "Stop checking", desk.stop_watching)
        self._ask = button(desk, "Ask again", self._ask_clicked, "primary")
        self._choose = button(desk, "Choose again", desk.go_back)
        self._back = button(desk, "Back", desk.go_back)
        buttons = [self._check, self._stop, self._ask, self._choose, self._back]
        super().__init__(desk, [self._told, self._reason], buttons)

    def draw_body(self, moment: Moment) -> None:
        is_pending = moment.stand.state == "pending"
        self._told.value = self._pending(moment) if is_pending else _over(moment)
        show(self._check, is_pending)
        show(self._stop, is_pending and moment.is_watching)
        show(self._back, is_pending)
        can_ask = not is_pending and moment.stand.memory_key is not None
        show(self._reason, can_ask)
        show(self._ask, can_ask)
        show(self._choose, not is_pending)
        request = moment.stand.request
        if can_ask and request and self._declined != request.id:  # begin with the reason that was declined
            self._declined, self._reason.value = request.id, request.reason or ""

    def _ask_clicked(self) -> None:
        reason = text_of(self._reason)
        if reason is None:
            self.ask_for("Fill in “Your new reason” first: the user decides by it.", self._reason)
        else:
            self.desk.start(lambda: self.desk.way.ask(reason))

    def summary(self, moment: Moment) -> str:
        request = moment.stand.request
        return widgets.text(f"Approved {widgets.when(request.updated_at, moment.now)}.") if request else ""

    def news(self, moment: Moment) -> str:
        return widgets.aside(_looks(moment)) if moment.stand.state == "pending" else ""

    def _pending(self, moment: Moment) -> str:
        request = moment.stand.request
        at = f" {widgets.when(request.created_at, moment.now)}" if request else ""
        told = widgets.paragraph(f"Asked{at}. The user decides on the dashboard of the service.")
        return told + (widgets.link(self._dashboard_url, "Open the dashboard") if self._dashboard_url else "")


def _over(moment: Moment) -> str:
    request = moment.stand.request
    at = widgets.when(request.updated_at, moment.now) if request else ""
    if moment.stand.state == "rejected":
        return widgets.alert(f"The user declined {at}. Nothing was shared.")
    kept = (
        " What was loaded before is still in `panel.memories`." if moment.stand.memories is not None else ""
    )
    return widgets.alert(f"The user took the approval back {at}. Nothing more can be read.{kept}")


def _looks(moment: Moment) -> str:
    looked_at = moment.stand.looked_at
    looked = f"Checked at {widgets.to_the_second(looked_at)}. " if looked_at else ""
    return looked + next_check(moment)


N_PREVIEWED = 5
MAX_CELL = 80


class Loading(Section):
    """Counts, and on demand a preview: what it shows is saved with the notebook, like any output."""

    number, title = 5, "Load the memories"

    def __init__(self, desk: Desk) -> None:
        self._told, self._preview = html(), html()
        self._is_previewed = False
        self._load = button(desk, "Load the memories", lambda: desk.start(desk.open), "primary")
        self._look = button(desk, "Show a preview", self._look_clicked)
        self._back = button(desk, "Back", desk.go_back)
        super().__init__(desk, [self._told, self._preview], [self._load, self._look, self._back])

    def draw_body(self, moment: Moment) -> None:
        stand = moment.stand
        is_loaded = stand.memories is not None
        self._is_previewed = self._is_previewed and is_loaded
        self._told.value = _told(moment)
        self._load.description = "Load again" if is_loaded else "Load the memories"
        self._look.description = "Hide the preview" if self._is_previewed else "Show a preview"
        show(self._look, is_loaded)
        self._preview.value = (
            "" if stand.memories is None or not self._is_previewed else _preview(stand.memories)
        )

    def news(self, moment: Moment) -> str:
        if moment.stand.doing == "load":
            return widgets.under_way(f"Loading: {number_of(moment.n_loaded, 'memory', 'memories')} so far …")
        return super().news(moment)

    def _look_clicked(self) -> None:
        self._is_previewed = not self._is_previewed
        self.desk.redraw()


def _told(moment: Moment) -> str:
    stand = moment.stand
    if stand.memories is None:
        return widgets.paragraph(
            "The access is open, as `panel.access`."
            if stand.access
            else "The user has approved. The memories are decrypted here, in this kernel."
        )
    return widgets.paragraph(_counts(stand.memories, stand.tags)) + _damaged(stand.memories)


def _counts(memories: pd.DataFrame, tags: pd.DataFrame | None) -> str:
    years = memories.created_at.dropna().dt.year.unique()
    span = (
        f" of {min(years)}" if len(years) == 1 else f" of {min(years)} to {max(years)}" if len(years) else ""
    )
    n_tags = 0 if tags is None else len(tags)
    loaded = number_of(len(memories), "memory", "memories")
    return f"{loaded}{span} in `panel.memories`, and {number_of(n_tags, 'tag', 'tags')} in `panel.tags`."


def _damaged(memories: pd.DataFrame) -> str:
    n_damaged = int(memories.content_error.notna().sum())
    if not n_damaged:
        return ""
    return widgets.alert(
        f"{n_damaged:,} of {len(memories):,} could not be decrypted:", "content_error says why."
    )


def _preview(memories: pd.DataFrame) -> str:
    shown = memories.head(N_PREVIEWED)
    rows = zip(shown.created_at, shown.title, shown.content, strict=True)
    return widgets.table(
        ["created", "title", "content"],
        [[_cell(time, "%Y-%m-%d"), *map(_cell, texts)] for time, *texts in rows],
    )


def _cell(value: Any, form: str = "") -> str:
    """A cell as short text; nothing where there is none."""
    text = "" if pd.isna(value) else " ".join(printable(format(value, form)).split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"
