"""The fourth section: the user decides."""

from __future__ import annotations

from memframe.panel import markup
from memframe.panel.desk import Desk, Moment
from memframe.panel.fields import button, html, show, text_area, text_of
from memframe.panel.section import Section, next_check


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
        return markup.text(f"Approved {markup.when(request.updated_at, moment.now)}.") if request else ""

    def news(self, moment: Moment) -> str:
        return markup.aside(_looks(moment)) if moment.stand.state == "pending" else ""

    def _pending(self, moment: Moment) -> str:
        request = moment.stand.request
        at = f" {markup.when(request.created_at, moment.now)}" if request else ""
        told = markup.paragraph(f"Asked{at}. The user decides on the dashboard of the service.")
        return told + (markup.link(self._dashboard_url, "Open the dashboard") if self._dashboard_url else "")


def _over(moment: Moment) -> str:
    request = moment.stand.request
    at = markup.when(request.updated_at, moment.now) if request else ""
    if moment.stand.state == "rejected":
        return markup.alert(f"The user declined {at}. Nothing was shared.")
    kept = (
        " What was loaded before is still in `panel.memories`." if moment.stand.memories is not None else ""
    )
    return markup.alert(f"The user took the approval back {at}. Nothing more can be read.{kept}")


def _looks(moment: Moment) -> str:
    looked_at = moment.stand.looked_at
    looked = f"Checked at {markup.to_the_second(looked_at)}. " if looked_at else ""
    return looked + next_check(moment)
