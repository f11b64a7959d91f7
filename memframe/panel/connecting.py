"""The second section: an existing request is chosen, or a user allows the application to ask."""

from __future__ import annotations

import os
from collections.abc import Sequence

from memframe.loopback import can_listen
from memframe.panel import markup
from memframe.panel.desk import Desk, Moment
from memframe.panel.fields import SecretField, button, button_row, html, show, text_field, text_of
from memframe.panel.requests import RequestList
from memframe.panel.section import Section
from memframe.wire import AccessRequest


class Connecting(Section):
    """The list of requests; or the link, and the field for what it leads to."""

    number, title = 2, "Connect a user"

    def __init__(self, desk: Desk) -> None:
        self._list = RequestList(desk)
        self._intro, self._guide = html(), html()
        self._fields = {
            "auth_url": text_field("Address of the OAuth server", "https://memory.example"),
            "client_id": text_field("Client id"),
            "redirect_uri": text_field("Redirect address, as registered", "http://127.0.0.1/callback"),
        }
        self._client_secret = SecretField("Client secret", "Leave empty if the application has none")
        self._answer = SecretField("Redirected address, or its code", hidden=False)
        self._prepare = button(desk, "Connect a user", self._prepare_clicked, "primary")
        self._finish = button(desk, "Continue", self._finish_clicked, "primary")
        self._receive = button(desk, "Receive the answer here", self._receive_clicked, title=_RECEIVE)
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
            [self._finish, self._receive, self._back],
        )

    def draw_body(self, moment: Moment) -> None:
        stand, is_waiting = moment.stand, moment.stand.state == "authorizing"
        self._list.draw(() if is_waiting else stand.requests, moment.now)
        self._intro.value = "" if is_waiting else _choice(stand.requests)
        for name, field in self._fields.items():
            show(field, not is_waiting and name in moment.lacking)
        show(self._client_secret.widget, not is_waiting and "client_secret" in moment.lacking)
        show(self._prepare, not is_waiting)
        self._prepare.disabled = moment.is_busy
        for widget in (self._answer.widget, self._finish, self._back):
            show(widget, is_waiting)
        is_local = stand.flow is not None and can_listen(stand.flow.redirect_uri, os.environ)
        show(self._receive, is_waiting and is_local and stand.doing != "receive")
        self._guide.value = _way_through(stand.address) if stand.address else ""

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
            self.desk.ask_for(f"Type the {self._fields[missing[0]].description.lower()} first.")
            return
        given = {name: text for name, text in typed.items() if name in lacking}
        self.desk.start(
            lambda: self.spend(
                self._client_secret, lambda secret: self.desk.way.authorize(client_secret=secret, **given)
            )
        )

    def _finish_clicked(self) -> None:
        if self._answer.is_empty:
            self.desk.ask_for("Paste the address to which the link led, or the code in it, first.")
        else:
            self.desk.start(lambda: self.spend(self._answer, self.desk.finish))

    def _receive_clicked(self) -> None:
        self.desk.start(self.desk.way.receive)


_RECEIVE = "Where the browser runs on the same computer as this notebook, the answer comes by itself"


def _choice(requests: Sequence[AccessRequest]) -> str:
    if any(request.status in {"approved", "pending"} for request in requests):
        return markup.paragraph("Go on with one of these requests, or connect another user.")
    return markup.paragraph(
        "A user allows your application to ask for access. Nothing is shared by that yet."
    )


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
