"""The third section: the user is asked for access, with a reason."""

from __future__ import annotations

from memframe.panel import markup
from memframe.panel.desk import Desk, Moment
from memframe.panel.fields import button, html, show, text_area, text_of
from memframe.panel.requests import RequestList
from memframe.panel.section import Section


class Asking(Section):
    """The reason; and what was asked of the same user before."""

    number, title = 3, "Ask for access"

    def __init__(self, desk: Desk, reason: str) -> None:
        self._list = RequestList(desk)
        self._earlier = html(
            markup.paragraph("You have asked this user before. Go on with that, or ask anew:")
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
        asked = markup.when(request.created_at, moment.now) if request else ""
        return markup.text(f"“{markup.shortened(request.reason)}”, asked {asked}.") if request else ""

    def _clicked(self) -> None:
        reason = text_of(self._reason)
        if reason is None:
            self.ask_for("Fill in “Your reason” first: the user decides by it.", self._reason)
        else:
            self.desk.start(lambda: self.desk.way.ask(reason))
