"""The five sections of the panel, one for each step: the head is always shown, the body while the step is due."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar, NamedTuple
from urllib.parse import urlsplit

import pandas as pd
from ipywidgets import HTML, Button, HBox, Text, Textarea, VBox, Widget

from memframe.audit.evidence import make_mask
from memframe.display import number_of, printable, table, tag
from memframe.oauth import can_listen
from memframe.panel import widgets
from memframe.panel.controller import PanelController, ViewState
from memframe.panel.widgets import (
    LABELS,
    EnterKey,
    SecretField,
    SectionStatus,
    button,
    button_row,
    name_as_labels,
    show,
    text_field,
    text_of,
)
from memframe.secret import Secret
from memframe.signin.state import POLLING_STEPS
from memframe.wire import AccessRequest, RequestStatus


class Section(ABC):
    """One step of the panel: `body` and `buttons` are shown while it is due, `heading_buttons` are next to its head."""

    number: ClassVar[int]
    title: ClassVar[str]

    def __init__(
        self,
        controller: PanelController,
        body: Sequence[Widget],
        buttons: Sequence[Button],
        heading_buttons: Sequence[Widget] = (),
    ) -> None:
        self.controller = controller
        self._head, self._message = HTML(), HTML()
        self._buttons = buttons
        self.back = button(controller, "Back", controller.go_back)
        self._cancel = button(controller, "Cancel", controller.cancel)
        self._body = VBox([*body, button_row(*buttons, self.back, self._cancel), self._message])
        self._body.add_class("mf-body")
        heading = HBox([self._head, *heading_buttons])
        heading.add_class("mf-heading")
        self.box = VBox([heading, self._body])
        self.box.add_class("mf-section")

    def draw(self, view: ViewState, due: int) -> None:
        """Show a view; `due` is the number of the section that is due."""
        status: SectionStatus = "ahead"
        if self.number <= due:
            status = "active" if self.number == due else "done"
        summary = self.summary(view) if status == "done" else ""
        is_over = view.snapshot.state == "loaded"
        self._head.value = widgets.head(self.number, self.title, "done" if is_over else status, summary)
        if status == "active":
            for each in (*self._buttons, self.back):
                each.disabled = view.is_busy
            show(self._cancel, view.is_busy)
            self.draw_body(view)
            self._message.value = self.message_html(view)
        # Last, because changes reach the screen one by one: nothing should appear just before it is hidden.
        show(self._body, status == "active")

    @abstractmethod
    def draw_body(self, view: ViewState) -> None:
        """Update the body."""

    def summary(self, view: ViewState) -> str:  # noqa: ARG002 - the last section has none
        """Return the result of the step in words."""
        return ""

    def status_html(self, view: ViewState) -> str:
        """Return the status, as HTML, while there is no error."""
        return (
            widgets.status_note(widgets.DOING[view.snapshot.doing])
            if view.snapshot.doing and view.is_busy
            else ""
        )

    def message_html(self, view: ViewState) -> str:
        """Return the error, or else the status, as HTML."""
        if view.hint:
            return widgets.alert(name_as_labels(view.hint))
        failure = view.snapshot.failure
        if failure and failure.is_transient and failure.step in POLLING_STEPS and view.is_watching:
            return widgets.status_note(f"{failure.text} {next_check(view)}", is_spoken=False)
        if failure:
            return widgets.alert(name_as_labels(failure.text), failure.next_step)
        return self.status_html(view)

    def submit_on_enter(self, enter: EnterKey, submit: Button, *fields: Widget) -> None:
        """Let Enter in these fields click a button, if that is shown and enabled."""

        def click() -> None:
            is_shown = "none" not in {self._body.layout.display, submit.layout.display}
            if is_shown and not submit.disabled:
                submit.click()

        for field in fields:
            enter.watch(field, click)

    def are_filled(self, *fields: Text | SecretField, why: str = "") -> bool:
        """Return True if no field is empty; otherwise ask for the first empty one, and put the cursor there."""
        for field in fields:
            widget, is_empty = (
                (field.widget, field.is_empty)
                if isinstance(field, SecretField)
                else (field, not text_of(field))
            )
            if is_empty:
                self.controller.ask_for(f"Fill in “{widget.description}” first{why}.")
                widget.focus()
                return False
        return True

    def ask_access(self, field: Text) -> None:
        """Send the request with the reason of a field, which must not be empty."""
        if self.are_filled(field, why=": the user bases the decision on it"):
            reason = text_of(field) or ""
            self.controller.start(lambda: self.controller.sign_in.ask(reason))

    def use_secret(self, field: SecretField, step: Callable[[Secret | None], object]) -> None:
        """Run a step with the typed secret, and forget it unless the step may succeed later."""
        secret = field.take()
        try:
            step(secret)
        finally:
            failure = self.controller.sign_in.failure
            if failure and failure.is_transient:
                field.put_back(secret)


def next_check(view: ViewState) -> str:
    """Say when the next poll is."""
    if view.next_check_at is None:
        return "" if view.is_watching else "Checking has stopped."
    return f"Next check at {widgets.to_the_second(view.next_check_at)}."


class SignInSection(Section):
    """Ask for address and API key, unless the settings have them."""

    number, title = 1, "Sign in"

    def __init__(self, controller: PanelController, enter: EnterKey) -> None:
        self._intro = HTML()
        self._address = text_field(LABELS["base_url"], "https://memory.example/api/v1")
        self._key = SecretField(LABELS["api_key"])
        self._sign_in = button(controller, "Sign in", self._clicked, "primary")
        self._sign_out = button(controller, "Sign out", controller.sign_out, "quiet")
        super().__init__(
            controller, [self._intro, self._address, self._key.widget], [self._sign_in], [self._sign_out]
        )
        self.submit_on_enter(enter, self._sign_in, self._address, self._key.widget)

    def draw(self, view: ViewState, due: int) -> None:
        super().draw(view, due)
        show(self._sign_out, view.snapshot.client is not None)

    def draw_body(self, view: ViewState) -> None:
        show(self.back, False)
        known = view.origins
        has_failed = view.snapshot.failure is not None
        for name, field in (("base_url", self._address), ("api_key", self._key.widget)):
            show(field, known is not None and (name in view.missing or has_failed))
        show(self._sign_in, known is not None)
        if known is None:
            self._intro.value = widgets.status_note("Looking for your settings …")
        elif "api_key" in view.missing:
            self._intro.value = widgets.paragraph(
                "Use the developer's API key, which stays in the memory of this kernel. To store it in the keyring of "
                "your computer, run `memframe login` there."
            )
        else:
            self._intro.value = widgets.paragraph(f"The key comes from {known['api_key']}.")

    def summary(self, view: ViewState) -> str:
        client = view.snapshot.client
        origin = (view.origins or {}).get("api_key")
        key = f", with the key from {origin}" if origin else ""
        return f"At {urlsplit(client.base_url).netloc}{key}." if client else ""

    def _clicked(self) -> None:
        needed = {"base_url": self._address, "api_key": self._key}
        missing = self.controller.view.missing
        if self.are_filled(*(field for name, field in needed.items() if name in missing)):
            address = text_of(self._address)
            self.controller.start(
                lambda: self.use_secret(self._key, lambda key: self.controller.sign_in_and_list(key, address))
            )


N_SHOWN = 6
"""Requests that are shown at first; each click shows as many more."""

_ORDER: dict[RequestStatus, int] = {"approved": 0, "pending": 1, "rejected": 2, "revoked": 2}
_LIVE: tuple[RequestStatus, ...] = ("approved", "pending")
_BUTTON_LABELS: dict[RequestStatus, str] = {
    "approved": "Open",
    "pending": "Wait",
    "rejected": "Ask again",
    "revoked": "Ask again",
}


class RequestRow(NamedTuple):
    """The widgets of one request."""

    box: HBox
    line: HTML
    go: Button


class RequestList:
    """Show existing requests, the usable ones first, with a button for each."""

    def __init__(self, controller: PanelController) -> None:
        self._controller = controller
        self._rows: list[RequestRow] = []
        self._shown: list[AccessRequest] = []
        self._n_shown = N_SHOWN
        self._more = button(controller, "Show more", self._more_clicked, "quiet")
        self.box = VBox([self._more])
        self.box.add_class("mf-requests")

    def draw(self, requests: Sequence[AccessRequest], now: datetime) -> None:
        """Show requests; a user with a live request cannot be asked again."""
        self._shown = sorted(requests, key=lambda request: _ORDER[request.status])[: self._n_shown]
        while len(self._rows) < len(self._shown):
            self._add_row()
        live = [request.memory_key for request in requests if request.status in _LIVE]
        for row, request in zip(self._rows, self._shown, strict=False):
            can_ask = request.memory_key is not None and request.memory_key not in live
            words = _BUTTON_LABELS[request.status] if request.status in _LIVE or can_ask else ""
            row.line.value = widgets.request_line(request, now)
            row.go.description = words or "Over"
            row.go.tooltip = f"{words} {widgets.shorten_reason(request.reason)}"
            show(row.go, bool(words))
        for place, row in enumerate(self._rows):
            show(row.box, place < len(self._shown))
        n_more = len(requests) - len(self._shown)
        show(self.box, bool(requests))
        show(self._more, n_more > 0)
        if n_more:
            self._more.description = f"Show more ({n_more})"

    def _add_row(self) -> None:
        place, line = len(self._rows), HTML()
        go = button(self._controller, "Open", lambda: self._row_clicked(place))
        box = HBox([line, go])
        box.add_class("mf-request")
        self._rows.append(RequestRow(box, line, go))
        self.box.children = [*(row.box for row in self._rows), self._more]

    def _row_clicked(self, place: int) -> None:
        request_id = self._shown[place].id
        self._controller.start(lambda: self._controller.resume_request(request_id))

    def _more_clicked(self) -> None:
        self._n_shown += N_SHOWN
        self._controller.redraw()


class ConnectSection(Section):
    """Choose a request; or open the authorization page and paste the redirected address."""

    number, title = 2, "Connect a user"

    def __init__(self, controller: PanelController, enter: EnterKey) -> None:
        self._list = RequestList(controller)
        self._intro, self._guide = HTML(), HTML()
        self._fields = {
            "auth_url": text_field(LABELS["auth_url"], "https://memory.example"),
            "client_id": text_field(LABELS["client_id"]),
            "redirect_uri": text_field(LABELS["redirect_uri"], "http://127.0.0.1/callback"),
        }
        self._client_secret = SecretField(LABELS["client_secret"], "Leave empty if the application has none")
        self._answer = SecretField(_ANSWER, hidden=False)
        self._prepare = button(controller, "Connect a user", self._prepare_clicked, "primary")
        self._finish = button(controller, "Continue", self._finish_clicked, "primary")
        self._paste = button(controller, "Paste the answer instead", controller.paste, title=_PASTE)
        self._receive = button(
            controller,
            "Receive the answer here",
            lambda: controller.start(controller.receive),
            title=_RECEIVE,
        )
        address, client_id, redirect_uri = self._fields.values()
        fields = [address, client_id, self._client_secret.widget, redirect_uri]
        # In the order of the steps, because the keyboard focus moves on from a button that disappears.
        super().__init__(
            controller,
            [
                self._list.box,
                self._intro,
                *fields,
                button_row(self._prepare),
                self._guide,
                self._answer.widget,
            ],
            [self._finish, self._paste, self._receive],
        )
        self.submit_on_enter(enter, self._prepare, *fields)
        self.submit_on_enter(enter, self._finish, self._answer.widget)

    def draw_body(self, view: ViewState) -> None:
        snapshot, is_waiting = view.snapshot, view.snapshot.state == "authorizing"
        self._list.draw(() if is_waiting else snapshot.requests, view.now)
        is_live = any(request.status in _LIVE for request in snapshot.requests)
        intro = widgets.paragraph(_CHOOSE if is_live else _CONNECT)
        self._intro.value = "" if is_waiting else intro
        for name, field in self._fields.items():
            show(field, not is_waiting and name in view.missing)
        show(self._client_secret.widget, not is_waiting and "client_secret" in view.missing)
        show(self._prepare, not is_waiting)
        self._prepare.disabled = view.is_busy
        is_pasted = is_waiting and not snapshot.is_listening
        for widget in (self._answer.widget, self._finish):
            show(widget, is_pasted)
        is_local = snapshot.flow is not None and can_listen(snapshot.flow.redirect_uri, os.environ)
        show(self._paste, snapshot.is_listening)
        show(self._receive, is_pasted and is_local)
        show(self.back, is_waiting)
        self._guide.value = "" if snapshot.address is None else self._guide_html(view, snapshot.address)

    def status_html(self, view: ViewState) -> str:
        return widgets.status_note(_LISTENING) if view.snapshot.is_listening else super().status_html(view)

    def summary(self, view: ViewState) -> str:
        request = view.snapshot.request
        if view.snapshot.tokens is None and request is not None:
            return "An existing request was chosen."
        return "The user allowed the connection."

    def _guide_html(self, view: ViewState, address: str) -> str:
        page = widgets.link(address, "Open the authorization page")
        if view.snapshot.is_listening:
            return widgets.paragraph(page, _CONTINUES)
        todo = tag(
            "li", page, ", where the user signs in and allows the connection.", widgets.copyable(address)
        )
        return tag("ol", todo, tag("li", _COPY))

    def _prepare_clicked(self) -> None:
        missing = self.controller.view.missing
        fields = {name: field for name, field in self._fields.items() if name in missing}
        if self.are_filled(*fields.values()):
            given = {name: text_of(field) for name, field in fields.items()}
            self.controller.start(
                lambda: self.use_secret(
                    self._client_secret, lambda secret: self.controller.connect(client_secret=secret, **given)
                )
            )

    def _finish_clicked(self) -> None:
        if self.are_filled(self._answer, why=": the address to which the link leads"):
            self.controller.start(lambda: self.use_secret(self._answer, self.controller.finish))


_CHOOSE = "Continue with one of these requests, or connect another user."
_CONNECT = "A user allows your application to ask for access. This does not share anything yet."
_CONTINUES = (
    " in a browser on this computer. The user signs in there and allows the connection; the panel then continues "
    "automatically."
)
_COPY = (
    "Copy the address of the page to which the browser is then redirected, even if that page does not load, and paste "
    "it here:"
)
_ANSWER = "Redirected address, or its code"
_LISTENING = "Waiting for the answer on this computer …"
_PASTE = "If the next page does not load because the browser runs on another computer"
_RECEIVE = "If the browser runs on the same computer as this notebook, the answer arrives automatically"


class RequestSection(Section):
    """Ask for the reason, and show earlier requests to the same user."""

    number, title = 3, "Ask for access"

    def __init__(self, controller: PanelController, reason: str) -> None:
        self._list = RequestList(controller)
        self._earlier = HTML(
            widgets.paragraph("You have asked this user before. Continue with that request, or ask again:")
        )
        self._reason = text_field("Your reason", "What the user reads before deciding", reason, kind=Textarea)
        self._send = button(controller, "Send the request", lambda: self.ask_access(self._reason), "primary")
        super().__init__(controller, [self._earlier, self._list.box, self._reason], [self._send])

    def draw_body(self, view: ViewState) -> None:
        key = view.snapshot.tokens and view.snapshot.tokens.memory_key
        live = [
            request
            for request in view.snapshot.requests
            if request.memory_key == key and request.status in _LIVE
        ]
        show(self._earlier, bool(live))
        self._list.draw(live, view.now)

    def summary(self, view: ViewState) -> str:
        request = view.snapshot.request
        asked = widgets.when(request.created_at, view.now) if request else ""
        return f"“{widgets.shorten_reason(request.reason)}”, asked {asked}." if request else ""


class DecisionSection(Section):
    """Show the status of the request, which is polled in the background."""

    number, title = 4, "Wait for the decision"

    def __init__(self, controller: PanelController, dashboard_url: str | None) -> None:
        self._dashboard_url = dashboard_url
        self._status = HTML()
        self._reason = text_field("Your new reason", "What the user reads before deciding", kind=Textarea)
        self._declined: str | None = None
        self._check = button(
            controller, "Check now", lambda: controller.start(controller.sign_in.check), "primary"
        )
        self._stop = button(controller, "Stop checking", controller.poller.stop)
        self._ask = button(controller, "Ask again", lambda: self.ask_access(self._reason), "primary")
        super().__init__(controller, [self._status, self._reason], [self._check, self._stop, self._ask])

    def draw_body(self, view: ViewState) -> None:
        is_pending = view.snapshot.state == "pending"
        self._status.value = self._pending_html(view) if is_pending else _refused_html(view)
        show(self._check, is_pending)
        show(self._stop, is_pending and view.is_watching)
        self.back.description = "Back" if is_pending else "Choose again"
        can_ask = not is_pending and view.snapshot.memory_key is not None
        show(self._reason, can_ask)
        show(self._ask, can_ask)
        request = view.snapshot.request
        if can_ask and request and self._declined != request.id:  # begin with the reason that was declined
            self._declined, self._reason.value = request.id, request.reason or ""

    def summary(self, view: ViewState) -> str:
        request = view.snapshot.request
        return f"Approved {widgets.when(request.updated_at, view.now)}." if request else ""

    def status_html(self, view: ViewState) -> str:
        if view.snapshot.state != "pending":
            return ""
        checked_at = view.snapshot.checked_at
        checked = f"Checked at {widgets.to_the_second(checked_at)}. " if checked_at else ""
        return widgets.status_note(checked + next_check(view), is_spoken=False)

    def _pending_html(self, view: ViewState) -> str:
        request = view.snapshot.request
        at = f" {widgets.when(request.created_at, view.now)}" if request else ""
        asked = widgets.paragraph(f"Asked{at}. The user decides on the dashboard of the service.")
        return asked + (
            widgets.link(self._dashboard_url, "Open the dashboard") if self._dashboard_url else ""
        )


def _refused_html(view: ViewState) -> str:
    request = view.snapshot.request
    at = widgets.when(request.updated_at, view.now) if request else ""
    if view.snapshot.state == "rejected":
        return widgets.alert(f"The user declined {at}. Nothing was shared.")
    loaded = "The memories loaded earlier are still in `panel.memories`."
    kept = loaded if view.snapshot.memories is not None else ""
    return widgets.alert(f"The user revoked the approval {at}. No more memories can be read.", kept)


N_PREVIEWED = 5
MAX_CELL = 80


class LoadSection(Section):
    """Load, and show counts; a preview only on demand, because it is saved with the notebook like any output."""

    number, title = 5, "Load the memories"

    def __init__(self, controller: PanelController) -> None:
        self._loaded_html, self._preview = HTML(), HTML()
        self._is_previewed = False
        self._load = button(
            controller, "Load the memories", lambda: controller.start(controller.open), "primary"
        )
        self._preview_button = button(controller, "Show a preview", self._toggle_preview)
        super().__init__(controller, [self._loaded_html, self._preview], [self._load, self._preview_button])

    def draw_body(self, view: ViewState) -> None:
        memories = view.snapshot.memories
        is_loaded = memories is not None
        self._is_previewed = self._is_previewed and is_loaded
        self._load.description = "Load again" if is_loaded else "Load the memories"
        self._preview_button.description = "Hide the preview" if self._is_previewed else "Show a preview"
        show(self._preview_button, is_loaded)
        self._preview.value = _preview(memories) if memories is not None and self._is_previewed else ""
        if memories is not None:
            self._loaded_html.value = _loaded_html(memories, view.snapshot.tags)
        elif view.snapshot.access:
            self._loaded_html.value = widgets.paragraph("The access is open, as `panel.access`.")
        else:
            approved = "The user has approved. The memories are decrypted here, in this kernel."
            self._loaded_html.value = widgets.paragraph(approved)

    def status_html(self, view: ViewState) -> str:
        if view.snapshot.doing == "load":
            words = f"Loading: {number_of(view.n_loaded, 'memory', 'memories')} so far …"
            bar = tag("div", class_="mf-bar", role="progressbar", aria_label=words)
            return bar + widgets.status_note(words, is_spoken=False)
        return super().status_html(view)

    def _toggle_preview(self) -> None:
        self._is_previewed = not self._is_previewed
        self.controller.redraw()


def _loaded_html(memories: pd.DataFrame, tags: pd.DataFrame | None) -> str:
    """Count memories and tags, and the memories that could not be decrypted."""
    years = memories.created_at.dropna().dt.year
    span = ""
    if len(years):
        first, last = years.min(), years.max()
        span = f" of {first}" if first == last else f" of {first} to {last}"
    n_tags = number_of(0 if tags is None else len(tags), "tag", "tags")
    loaded = number_of(len(memories), "memory", "memories")
    counts = widgets.paragraph(f"{loaded}{span} in `panel.memories`, and {n_tags} in `panel.tags`.")
    counts += widgets.paragraph("Audit and review them: `mf.review(mf.audit_memories(panel.memories))`.")
    n_damaged = int(memories.content_error.notna().sum())
    if not n_damaged:
        return counts
    damaged = f"{n_damaged:,} of {len(memories):,} could not be decrypted:"
    return counts + widgets.alert(damaged, "content_error says why.")


def _preview(memories: pd.DataFrame) -> str:
    """Tabulate the first memories; secrets are masked, because a preview is saved with the notebook."""
    shown = memories.head(N_PREVIEWED)
    mask = make_mask(shown)

    def cell(memory_id: str, text: object) -> str:
        return printable(mask(memory_id, text), MAX_CELL) if isinstance(text, str) else ""

    rows = zip(shown.id, shown.created_at, shown.title, shown.content, strict=True)
    return table(
        ["created", "title", "content"],
        (
            tag(
                "tr",
                tag("td", "" if pd.isna(time) else f"{time:%Y-%m-%d}"),
                *(tag("td", cell(memory_id, text)) for text in texts),
            )
            for memory_id, time, *texts in rows
        ),
    )
