"""What people see of things: times and strangers' words in plain text, and calm cards for notebooks.

Colours are the page's own, and layers over them, so that light and dark themes both do. Secrets need
nothing here: their text is a mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape

from msgspec import Struct
from msgspec.structs import asdict

MAX_PRINTED = 300

NO_FORMULAS = "mathjax_ignore tex2jax_ignore"
"""Classes that keep a notebook from setting what stands between two dollar signs as a formula: MathJax 3 and 4 know the
first, MathJax 2 the second. A text that is a formula to MathJax may hide what it says."""

_CARD = "font-size: 13px; line-height: 1.5; max-width: 42rem"
_GRID = "display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1em 1.2em; margin-top: .3em"


def printable(text: str) -> str:
    r"""A stranger's text as one line of at most 300 marks, without controls that a terminal would obey.

    >>> printable("done\x1b[2J\nnext")
    'done [2J next'
    """
    line = "".join(mark if mark.isprintable() else " " for mark in text)
    return line if len(line) <= MAX_PRINTED else f"{line[: MAX_PRINTED - 1]}…"


def number_of(n_things: int, one: str, many: str) -> str:
    """A count with its noun.

    >>> number_of(2000, "memory", "memories"), number_of(1, "memory", "memories")
    ('2,000 memories', '1 memory')
    """
    return f"{n_things:,} {one if n_things == 1 else many}"


def moment(at: datetime) -> str:
    """A time as people read it.

    >>> moment(datetime(2026, 3, 9, 14, 5, tzinfo=UTC))
    '9 March 2026, 14:05 UTC'
    """
    utc = at.astimezone(UTC)
    return f"{utc.day} {utc:%B %Y, %H:%M} UTC"


def card(title: str, facts: Mapping[str, object]) -> str:
    """A title, and what is known of it, as HTML; what is None is left out.

    >>> card("Client", {"API": "<b>"})
    "<div class='...'><b>Client</b><div style='...'><span ...>API</span><span ...>&lt;b&gt;</span></div></div>"
    """
    rows = "".join(
        f"<span style='opacity: .7'>{escape(name)}</span>"
        f"<span dir='auto' style='overflow-wrap: anywhere'>{escape(_plain(value))}</span>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<div class='{NO_FORMULAS}' style='{_CARD}'><b>{escape(title)}</b><div style='{_GRID}'>{rows}</div></div>"


class Shown(Struct, frozen=True):
    """A record that people look at: fields that are set, in plain words.

    >>> class Visit(Shown, frozen=True):
    ...     id: str
    ...     by: str | None = None
    ...     came_at: datetime | None = None
    >>> Visit("v1", came_at=datetime(2026, 3, 9, 14, 5, tzinfo=UTC))
    <memframe.Visit id: v1, came_at: 9 March 2026, 14:05 UTC>
    """

    def __repr__(self) -> str:
        facts = (f"{name}: {_plain(value)}" for name, value in asdict(self).items() if value is not None)
        return f"<memframe.{type(self).__name__} {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        return card(
            type(self).__name__, {name.replace("_", " "): value for name, value in asdict(self).items()}
        )


def _plain(value: object) -> str:
    return moment(value) if isinstance(value, datetime) else printable(str(value))
