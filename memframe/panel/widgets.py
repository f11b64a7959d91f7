"""Fields and buttons of the panel.

A secret is in a widget only while it is typed: the moment the front end hands it over, it moves to a
`Secret` of this process and the widget is emptied. Whoever saves the notebook with its widget state, at
any moment, saves an empty field.

Pieces of HTML for the panel: whatever comes from outside is escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any, Literal

from ipywidgets import HTML, Button, DOMWidget, HBox, IntText, Password, Text, Textarea, Widget, jsdlink

from memframe.display import moment, printable
from memframe.panel.controller import Desk
from memframe.secret import Secret, as_secret
from memframe.signin import Step
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


Place = Literal["done", "active", "ahead"]

MAX_REASON = 160

_CODE, _AS_CODE = re.compile("`([^`]*)`"), r"<code>\1</code>"


DOING: Mapping[Step, str] = {
    "sign_in": "Signing in …",
    "refresh": "Asking for your requests …",
    "authorize": "Preparing the link …",
    "receive": "Preparing the link …",
    "finish": "Exchanging the code …",
    "ask": "Sending the request …",
    "choose": "Asking for the request …",
    "check": "Checking …",
    "open": "Fetching the keys …",
    "load": "Loading …",
}
"""What is under way, by step."""


def place_of(number: int, due: int) -> Place:
    """Where a section stands to the one that is due."""
    return "active" if number == due else "done" if number < due else "ahead"


def top(number: int, n_steps: int, title: str) -> str:
    """The line above all sections, which tells screen readers of a new step."""
    return (
        f'<div class="mf-top"><b>Memory access</b><span class="mf-soft" role="status">Step {number} of {n_steps}'
        f'<span class="mf-unseen">: {escape(title)}</span></span></div>'
    )


def head(number: int, title: str, place: Place, summary: str = "") -> str:
    """The head of a section; `summary` is HTML."""
    current = ' aria-current="step"' if place == "active" else ""
    said = f'<div class="mf-soft">{summary}</div>' if summary else ""
    done = "Done: " if place == "done" else ""
    return (
        f'<div class="mf-head mf-{place}"{current}><span class="mf-mark" aria-hidden="true">{number}</span>'
        f'<div><span class="mf-title" aria-label="{done}{escape(title)}">{escape(title)}</span>{said}</div></div>'
    )


def text(words: str) -> str:
    """Words, escaped; what stands between backticks is code.

    >>> text("as `panel.access` <b>")
    'as <code>panel.access</code> &lt;b&gt;'
    """
    return _CODE.sub(_AS_CODE, escape(words))


def paragraph(words: str) -> str:
    """A sentence or two."""
    return paragraph_of(text(words))


def paragraph_of(html: str) -> str:
    """A paragraph of HTML."""
    return f"<p>{html}</p>"


def numbered(*items: str) -> str:
    """A list of things to do, each HTML."""
    return f"<ol>{''.join(f'<li>{item}</li>' for item in items)}</ol>"


def note(words: str) -> str:
    """What is going on, told calmly; screen readers say it when they have time."""
    return f'<p class="mf-note" role="status">{text(words)}</p>'


def aside(words: str) -> str:
    """What changes too often to be said aloud."""
    return f'<p class="mf-note">{text(words)}</p>'


def alert(words: str, way_out: str = "") -> str:
    """What went wrong, and what to do."""
    return f'<div class="mf-alert" role="alert">{text(words)} {text(way_out)}</div>'


def link(address: str, words: str) -> str:
    """A link that opens another page, which learns nothing of this one."""
    return f'<a class="mf-go" href="{escape(address)}" target="_blank" rel="noopener noreferrer">{text(words)}</a>'


def copyable(address: str, summary: str) -> str:
    """An address to copy, folded away."""
    return f'<details><summary>{escape(summary)}</summary><code class="mf-address">{escape(address)}</code></details>'


def under_way(words: str) -> str:
    """A bar without an end for work of unknown size, and what is being done."""
    return f'<div class="mf-bar" role="progressbar" aria-label="{escape(words)}"></div>{aside(words)}'


def status_of(request: AccessRequest) -> str:
    """The status of a request, in colour and in words."""
    return f'<span class="mf-status mf-{escape(request.status)}">{escape(request.status.capitalize())}</span>'


def request_line(request: AccessRequest, now: datetime) -> str:
    """A request: status, reason and dates."""
    return (
        f'{status_of(request)}<span dir="auto">{escape(shortened(request.reason))}</span>'
        f'<div class="mf-soft">{escape(dates_of(request, now))}</div>'
    )


def dates_of(request: AccessRequest, now: datetime) -> str:
    """When a request was made, and when it was decided."""
    asked = f"asked {when(request.created_at, now)}" if request.created_at else ""
    is_decided = request.status != "pending" and request.updated_at
    decided = f"{request.status} {when(request.updated_at, now)}" if is_decided else ""
    user = f"user {request.user_id[:8]}" if request.user_id else ""
    return ", ".join(filter(None, (user, asked, decided)))


def shortened(reason: str | None) -> str:
    """A reason on one line.

    >>> shortened("Weekly\\n review"), shortened(None)
    ('Weekly review', 'No reason given')
    """
    line = " ".join(printable(reason or "").split()) or "No reason given"
    return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 1]}…"


def when(at: datetime | None, now: datetime) -> str:
    """A time as people read it: today's without the date.

    >>> noon = datetime(2026, 3, 9, 12, tzinfo=UTC)
    >>> when(noon, noon), when(noon, noon.replace(month=4))
    ('at 12:00 UTC', 'on 9 March 2026, 12:00 UTC')
    """
    if at is None:
        return "at an unknown time"
    utc = at.astimezone(UTC)
    return f"at {utc:%H:%M} UTC" if utc.date() == now.date() else f"on {moment(at)}"


def to_the_second(at: datetime) -> str:
    """A time of today as precisely as somebody who waits wants it.

    >>> to_the_second(datetime(2026, 3, 9, 12, 5, 7, tzinfo=UTC))
    '12:05:07 UTC'
    """
    return f"{at.astimezone(UTC):%H:%M:%S} UTC"


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A small table of text."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"
