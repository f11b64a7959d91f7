"""Pieces of HTML for the panel: whatever comes from outside is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Literal

from memframe.showing import moment, printable
from memframe.signin import Step
from memframe.wire import AccessRequest

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
