"""The user's pages as text: templates, and what makes foreign words harmless in them.

No page has a script, loads anything from elsewhere, or may be framed or cached. Names and reasons are
the words of strangers: templates escape them, and `harmless` takes out what escaping leaves alone,
characters that reorder or hide the text around them.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_JOINERS = "\u200c\u200d"
"""Persian, the scripts of India and family emoji need them; they move no other letter."""

_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}


def harmless(text: str) -> str:
    """Text without control characters, bidirectional overrides and other characters that nobody sees.

    Each becomes a replacement mark, so that the reader knows that something was there.

    >>> harmless("invoice\u202egpj.exe")
    'invoice�gpj.exe'
    """
    return "".join(_seen(letter) for letter in text.replace("\r\n", "\n"))


def _seen(letter: str) -> str:
    if letter == "\n" or letter in _JOINERS:
        return letter
    return "\ufffd" if unicodedata.category(letter) in _HIDDEN else letter


def moment(at: datetime) -> Markup:
    """A time as people and programs read it, in UTC.

    >>> print(moment(datetime(2026, 3, 9, 14, 5, tzinfo=UTC)))
    <time datetime="2026-03-09T14:05:00Z">9 March 2026, 14:05 UTC</time>
    """
    utc = at.astimezone(UTC)
    words = f"{utc.day} {utc:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(f"{utc:%Y-%m-%dT%H:%M:%SZ}", words)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("memframe.service"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"harmless": harmless, "moment": moment}
    return environment


_templates = _environment()


def render_page(template: str, *, email: str | None = None, csrf_token: str = "", **values: Any) -> str:
    """The HTML of one page; who is signed in and the form token are in the frame of every page."""
    return _templates.get_template(template).render(email=email, csrf_token=csrf_token, **values)


def page_headers(*, form_target: str | None = None) -> dict[str, str]:
    """The protective headers of every page.

    Parameters
    ----------
    form_target : str, optional
        An origin to which the answer to the page's form redirects: browsers hold that redirect, too,
        against ``form-action``.
    """
    targets = "'self'" if form_target is None else f"'self' {form_target}"
    return {
        "Content-Security-Policy": (
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
            f"frame-ancestors 'none'; form-action {targets}"
        ),
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
