"""A section of the panel: one step, of which the head always shows, and the body while it is due."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from ipywidgets import Button, HBox, VBox, Widget

from memframe.panel import markup
from memframe.panel.desk import Desk, Moment
from memframe.panel.fields import EnterKey, SecretField, button, button_row, html, name_as_labels, show
from memframe.secret import Secret
from memframe.signin.stand import LOOKS


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
        place = markup.place_of(self.number, due)
        summary = self.summary(moment) if place == "done" else ""
        is_over = moment.stand.state == "loaded"
        self._head.value = markup.head(self.number, self.title, "done" if is_over else place, summary)
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
        return markup.note(markup.DOING[moment.stand.doing]) if moment.stand.doing and moment.is_busy else ""

    def said(self, moment: Moment) -> str:
        """What is wrong, or else what is going on, as HTML."""
        if moment.hint:
            return markup.alert(name_as_labels(moment.hint))
        trouble = moment.stand.trouble
        if trouble and trouble.is_passing and trouble.step in LOOKS and moment.is_watching:
            return markup.aside(f"{trouble.text} {next_check(moment)}")  # nobody need do anything
        if trouble:
            return markup.alert(name_as_labels(trouble.text), trouble.way_out)
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
    return f"Next check at {markup.to_the_second(moment.next_look_at)}."
