"""Fields and buttons of the panel.

A secret is in a widget only while it is typed: the moment the front end hands it over, it moves to a
`Secret` of this process and the widget is emptied. Whoever saves the notebook with its widget state, at
any moment, saves an empty field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipywidgets import HTML, Button, DOMWidget, HBox, Password, Text, Textarea, Widget

from memframe.panel.desk import Desk
from memframe.secret import Secret, as_secret


class SecretField:
    """A field whose text never stays in a widget.

    Parameters
    ----------
    label : str
        What is to be typed.
    hint : str
        Shown while the field is empty.
    hidden : bool
        Whether it shows dots while it is typed.

    Attributes
    ----------
    widget : Widget
    """

    def __init__(self, label: str, hint: str = "", *, hidden: bool = True) -> None:
        kind = Password if hidden else Text
        self._hint = hint
        self._secret: Secret | None = None
        # continuous_update would send every letter, and leave the last state of an unfinished text behind.
        self.widget: Widget = kind(description=label, placeholder=hint, continuous_update=False)
        self.widget.observe(self._capture, "value")

    @property
    def is_empty(self) -> bool:
        """Whether nothing was typed since the last `take`."""
        return self._secret is None

    def take(self) -> Secret | None:
        """What was typed last, if anything; the field has it no more."""
        secret, self._secret = self._secret, None
        self.widget.placeholder = self._hint
        return secret

    def put_back(self, secret: Secret | None) -> None:
        """Have a secret again that was taken, unless another one was typed meanwhile."""
        if secret is not None and self._secret is None:
            self._secret = secret
            n_letters = len(secret.reveal())
            self.widget.placeholder = f"Taken: {n_letters} characters. Type again to replace them."

    def _capture(self, change: dict[str, Any]) -> None:
        typed = as_secret(change["new"])
        if typed:
            self.widget.value = ""
            self._secret = None
            self.put_back(typed)


def text_field(label: str, hint: str = "", value: str = "") -> Text:
    """A field for what may be seen."""
    return Text(description=label, placeholder=hint, value=value, continuous_update=False)


def text_area(label: str, hint: str = "", value: str = "") -> Textarea:
    """A field for a few lines."""
    return Textarea(description=label, placeholder=hint, value=value, rows=2, continuous_update=False)


def text_of(field: Text) -> str | None:
    """What is in a field, or None."""
    return str(field.value).strip() or None


def button(
    desk: Desk, words: str, clicked: Callable[[], object], look: str = "plain", title: str = ""
) -> Button:
    """A button; `look` is primary, plain or quiet."""
    made = Button(description=words, tooltip=title or None)
    made.add_class(f"mf-{look}")
    made.on_click(lambda _: desk.press(clicked))
    return made


def button_row(*buttons: Button) -> HBox:
    """Buttons beside each other, or below where there is no room."""
    row = HBox(buttons)
    row.add_class("mf-buttons")
    return row


def html(value: str = "") -> HTML:
    """A piece of HTML."""
    return HTML(value)


def close_children(widget: Widget) -> None:
    """Close all that a widget is made of, but not the widget itself."""
    for part in (*getattr(widget, "children", ()), widget.layout, getattr(widget, "style", None)):
        if part is not None:
            if isinstance(part, DOMWidget):
                close_children(part)
            part.close()


def show(widget: Widget, is_shown: bool) -> None:
    """Show or hide a widget; hidden ones are out of reach of the keyboard, too."""
    widget.layout.display = None if is_shown else "none"
