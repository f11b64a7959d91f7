"""Widgets of the panel: fields that keep no secret, buttons, and pieces of HTML.

A secret is in a widget only while it is typed: as soon as the front end sends it, it moves to a `Secret` of this
process and the widget is emptied. A notebook that is saved with its widget state saves an empty field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from ipywidgets import Button, DOMWidget, HBox, IntText, Password, Text, Textarea, Widget, jsdlink

from memframe.display import Markup, format_time, join, printable, tag
from memframe.panel.controller import PanelController
from memframe.secret import Secret, as_secret
from memframe.signin import SignInStep
from memframe.wire import AccessRequest

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
    """Replace names of settings in an error message by the labels of their fields.

    >>> name_as_labels("base_url (from the argument) has no host: write it as https://host/path.")
    '“Address of the API” has no host: write it as https://host/path.'
    >>> name_as_labels("pass api_key=..., or set MEMFRAME_API_KEY")
    'fill in “API key”, or set MEMFRAME_API_KEY'
    """
    return _SETTING.sub(
        lambda found: f"{'fill in ' if found[1] else ''}“{LABELS[found[2].lower()]}”", message
    )


class SecretField:
    """Read a secret, without leaving it in the widget; `hint` is shown while the widget is empty."""

    def __init__(self, label: str, hint: str = "", *, hidden: bool = True) -> None:
        kind = Password if hidden else Text
        self._hint = hint
        self._secret: Secret | None = None
        # continuous_update would send every letter, and leave the last state of an unfinished text behind.
        self.widget: Widget = kind(description=label, placeholder=hint, continuous_update=False)
        self.widget.observe(self._capture, "value")

    @property
    def is_empty(self) -> bool:
        """True if nothing was typed since the last `take`."""
        return self._secret is None

    def take(self) -> Secret | None:
        """Return the typed secret, if any, and forget it."""
        secret, self._secret = self._secret, None
        self.widget.placeholder = self._hint
        return secret

    def put_back(self, secret: Secret | None) -> None:
        """Put a taken secret back, unless another one was typed meanwhile."""
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

    A field reports Enter first and its text afterwards, or no text if it is unchanged. So each Enter sends a
    number to the front end, where a link copies it into another number. When that one comes back, everything
    that was sent before it has been read. `Text.on_submit` is deprecated because of this order, and an observer of
    ``value`` cannot distinguish Enter from leaving the field.
    """

    def __init__(self) -> None:
        self._sent, self._returned = IntText(), IntText()
        self._link = jsdlink((self._sent, "value"), (self._returned, "value"))
        self._click: Callable[[], object] | None = None
        self._returned.observe(self._receive_echo, "value")

    def watch(self, field: Widget, click: Callable[[], object]) -> None:
        """Call `click` whenever Enter is pressed in a field; if two are waiting, the later one counts."""

        def receive(_: Widget, content: Any, __: object) -> None:
            if content.get("event") == "submit":
                self._click = click
                self._sent.value += 1

        field.on_msg(receive)

    def close(self) -> None:
        """Close its hidden widgets."""
        for widget in (self._link, self._sent, self._returned):
            close_children(widget)
            widget.close()

    def _receive_echo(self, change: dict[str, Any]) -> None:
        if change["new"] == self._sent.value and self._click is not None:
            click, self._click = self._click, None
            click()


def text_field(label: str, hint: str = "", value: str = "", *, kind: type[Text] = Text) -> Text:
    """Make a field of one line, or of a few lines with `Textarea`."""
    rows = {"rows": 2} if kind is Textarea else {}
    return kind(description=label, placeholder=hint, value=value, continuous_update=False, **rows)


def text_of(field: Text) -> str | None:
    """Return the text of a field, or None."""
    return str(field.value).strip() or None


def button(
    controller: PanelController,
    words: str,
    clicked: Callable[[], object],
    look: str = "plain",
    title: str = "",
) -> Button:
    """Make a button; `look` is primary, plain or quiet."""
    made = Button(description=words, tooltip=title or None)
    made.add_class(f"mf-{look}")
    made.on_click(lambda _: controller.run_action(clicked))
    return made


def button_row(*buttons: Button) -> HBox:
    """Put buttons side by side, or below each other if there is no room."""
    row = HBox(buttons)
    row.add_class("mf-buttons")
    return row


def close_children(widget: Widget) -> None:
    """Close the parts of a widget, but not the widget itself."""
    parts = (getattr(widget, "layout", None), getattr(widget, "style", None))
    for part in (*getattr(widget, "children", ()), *parts):
        if part is not None:
            if isinstance(part, DOMWidget):
                close_children(part)
            part.close()


def show(widget: Widget, is_shown: bool) -> None:
    """Show or hide a widget; the keyboard does not reach hidden ones either."""
    widget.layout.display = None if is_shown else "none"


SectionStatus = Literal["done", "active", "ahead"]

MAX_REASON = 160

_CODE = re.compile("`([^`]*)`")


DOING: Mapping[SignInStep, str] = {
    "sign_in": "Signing in …",
    "refresh": "Fetching your requests …",
    "authorize": "Preparing the link …",
    "receive": "Preparing the link …",
    "finish": "Exchanging the code …",
    "ask": "Sending the request …",
    "choose": "Fetching the request …",
    "check": "Checking …",
    "open": "Fetching the keys …",
    "load": "Loading …",
}
"""Words for the step that is running."""


def top(number: int, n_steps: int, title: str) -> str:
    """Build the line above all sections, which announces each new step to screen readers."""
    spoken = tag("span", f": {title}", class_="mf-unseen")
    step = tag("span", f"Step {number} of {n_steps}", spoken, class_="mf-soft", role="status")
    return str(tag("div", tag("b", "Memory access"), step, class_="mf-top"))


def head(number: int, title: str, status: SectionStatus, summary: str = "") -> str:
    """Build the head of a section."""
    current = "step" if status == "active" else None
    mark = tag("span", number, class_="mf-mark", aria_hidden="true")
    label = tag("span", title, class_="mf-title", aria_label=f"Done: {title}" if status == "done" else title)
    about = tag("div", text(summary), class_="mf-soft") if summary else None
    return str(
        tag("div", mark, tag("div", label, about), class_=f"mf-head mf-{status}", aria_current=current)
    )


def text(words: str) -> Markup:
    """Escape words; text between backticks becomes code.

    >>> print(text("as `panel.access` <b>"))
    as <code>panel.access</code> &lt;b&gt;
    """
    parts = _CODE.split(words)
    return join(tag("code", part) if at % 2 else part for at, part in enumerate(parts))


def paragraph(*content: str) -> Markup:
    """Build a paragraph of words and elements."""
    return tag("p", *(part if isinstance(part, Markup) else text(part) for part in content))


def status_note(words: str, *, is_spoken: bool = True) -> Markup:
    """Build a status line, which screen readers read out unless it changes too often for that."""
    return tag("p", text(words), class_="mf-note", role="status" if is_spoken else None)


def alert(words: str, next_step: str = "") -> Markup:
    """Build an error with its next step."""
    return tag("div", text(f"{words} {next_step}".strip()), class_="mf-alert", role="alert")


def link(address: str, words: str) -> Markup:
    """Build a link that opens another page; that page learns nothing about this one."""
    return tag("a", text(words), class_="mf-go", href=address, target="_blank", rel="noopener noreferrer")


def copyable(address: str) -> Markup:
    """Build a folded address to copy."""
    summary = tag("summary", "Or send this address to the user")
    return tag("details", summary, tag("code", address, class_="mf-address"))


def request_line(request: AccessRequest, now: datetime) -> str:
    """Build the line of a request: status and reason; user, and when it was made and decided."""
    status = tag("span", request.status.capitalize(), class_=f"mf-status mf-{request.status}")
    reason = tag("span", shorten_reason(request.reason), dir="auto")
    facts = [f"user {request.user_id[:8]}"] if request.user_id else []
    if request.created_at:
        facts.append(f"asked {when(request.created_at, now)}")
    if request.status != "pending" and request.updated_at:
        facts.append(f"{request.status} {when(request.updated_at, now)}")
    return str(status + reason + tag("div", ", ".join(facts), class_="mf-soft"))


def shorten_reason(reason: str | None) -> str:
    """Put a reason on one line.

    >>> shorten_reason("Weekly\\n review"), shorten_reason(None)
    ('Weekly review', 'No reason given')
    """
    return printable(reason or "", MAX_REASON) or "No reason given"


def when(at: datetime | None, now: datetime) -> str:
    """Write a time in words: today's without the date.

    >>> noon = datetime(2026, 3, 9, 12, tzinfo=UTC)
    >>> when(noon, noon), when(noon, noon.replace(month=4))
    ('at 12:00 UTC', 'on 9 March 2026, 12:00 UTC')
    """
    if at is None:
        return "at an unknown time"
    utc = at.astimezone(UTC)
    return f"at {utc:%H:%M} UTC" if utc.date() == now.date() else f"on {format_time(at)}"


def to_the_second(at: datetime) -> str:
    """Write a time of today with its seconds.

    >>> to_the_second(datetime(2026, 3, 9, 12, 5, 7, tzinfo=UTC))
    '12:05:07 UTC'
    """
    return f"{at.astimezone(UTC):%H:%M:%S} UTC"
