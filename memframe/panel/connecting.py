"""The second section: an existing request is chosen, or a user allows the application to ask."""

from __future__ import annotations

import os
from collections.abc import Sequence

from memframe.loopback import can_listen
from memframe.panel import markup
from memframe.panel.desk import Desk, Moment
from memframe.panel.fields import (
    LABELS,
    EnterKey,
    SecretField,
    button,
    button_row,
    html,
    show,
    text_field,
    text_of,
)
from memframe.panel.requests import RequestList
from memframe.panel.section import Section
from memframe.signin import Stand
from memframe.wire import AccessRequest


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
        return markup.note(_LISTENING) if moment.stand.is_listening else super().news(moment)

    def summary(self, moment: Moment) -> str:
        request = moment.stand.request
        if moment.stand.tokens is None and request is not None:
            return markup.text("An existing request was chosen.")
        return markup.text("The user allowed the connection.")

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
        return markup.paragraph("Go on with one of these requests, or connect another user.")
    return markup.paragraph(
        "A user allows your application to ask for access. Nothing is shared by that yet."
    )


def _guide(stand: Stand) -> str:
    if stand.address is None:
        return ""
    if stand.is_listening:
        return markup.paragraph_of(
            markup.link(stand.address, "Open the authorization page")
            + markup.text(
                " in a browser on this computer. The user signs in there and allows the connection; then it goes "
                "on here by itself."
            )
        )
    return _way_through(stand.address)


def _way_through(address: str) -> str:
    return markup.numbered(
        markup.link(address, "Open the authorization page")
        + markup.text(", where the user signs in and allows the connection.")
        + markup.copyable(address, "Or send this address to the user"),
        markup.text(
            "Copy the address of the page to which the browser is sent then, even if that page does not load, "
            "and paste it here:"
        ),
    )
