"""Fields and buttons of the panel.

A secret is in a widget only while it is typed: the moment the front end hands it over, it moves to a
`Secret` of this process and the widget is emptied. Whoever saves the notebook with its widget state, at
any moment, saves an empty field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ipywidgets import HTML, Button, DOMWidget, HBox, IntText, Password, Text, Textarea, Widget, jsdlink

from memframe.panel.desk import Desk
from memframe.secret import Secret, as_secret

LABELS: Mapping[str, str] = {
    "base_url": "Address of the API",
    "api_key": "API key",
    "auth_url": "Address of the OAuth server",
    "client_id": "Client id",
    "client_secret": "Client secret",
    "redirect_uri": "Redirect address, as registered",
}
"""Labels of the fields of the panel, by the name of the setting."""

_SETTING = re.compile(
    rf"\b(pass )?({'|'.join(LABELS)})(=\.\.\.| \(from the argument\))?(?!\w)", re.IGNORECASE
)


def name_as_labels(message: str) -> str:
    """Return a message of an error in which settings are called as their fields are.

    >>> name_as_labels("base_url (from the argument) has no host: write it as https://host/path.")
    '“Address of the API” has no host: write it as https://host/path.'
    >>> name_as_labels("pass api_key=..., or set MEMFRAME_API_KEY")
    'fill in “API key”, or set MEMFRAME_API_KEY'
    """
    return _SETTING.sub(
        lambda found: f"{'fill in ' if found[1] else ''}“{LABELS[found[2].lower()]}”", message
    )


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


class EnterKey:
    """Click a button when Enter is pressed in a field, after the text of the field has arrived.

    A field reports Enter first and its text right after, and no text at all where that is unchanged. So each
    Enter sends a number to the front end, which a link there copies into another number: when that one comes
    back, everything that was sent before it has been read. `Text.on_submit` is deprecated for its order, and
    observing ``value`` instead cannot tell Enter from leaving the field.
    """

    def __init__(self) -> None:
        self._sent, self._returned = IntText(), IntText()
        self._link = jsdlink((self._sent, "value"), (self._returned, "value"))
        self._click: Callable[[], object] | None = None
        self._returned.observe(self._arrive, "value")

    def watch(self, field: Widget, click: Callable[[], object]) -> None:
        """Call `click` whenever Enter was pressed in a field; of two at a time the later one counts."""

        def receive(_: Widget, content: Any, __: object) -> None:
            if content.get("event") == "submit":
                self._click = click
                self._sent.value += 1

        field.on_msg(receive)

    def close(self) -> None:
        """Close the widgets behind it."""
        for widget in (self._link, self._sent, self._returned):
            close_children(widget)
            widget.close()

    def _arrive(self, change: dict[str, Any]) -> None:
        if change["new"] == self._sent.value and self._click is not None:
            click, self._click = self._click, None
            click()


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
    parts = (getattr(widget, "layout", None), getattr(widget, "style", None))
    for part in (*getattr(widget, "children", ()), *parts):
        if part is not None:
            if isinstance(part, DOMWidget):
                close_children(part)
            part.close()


def show(widget: Widget, is_shown: bool) -> None:
    """Show or hide a widget; hidden ones are out of reach of the keyboard, too."""
    widget.layout.display = None if is_shown else "none"
