"""Display values: safe text, times, and HTML that is escaped by type.

All HTML of the package is built by `tag`, which escapes whatever is not `Markup` and spells out characters that
cannot be seen. `notebook_html` adds the stylesheet, whose colours are transparent layers over the page's own, so that
light and dark themes both work. There are no scripts. Secrets need no treatment here, because their text is a mask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

import markupsafe
from msgspec import Struct
from msgspec.structs import asdict

Markup = markupsafe.Markup
"""HTML, whose text is escaped already."""

MAX_PRINTED = 300

NO_FORMULAS = "mathjax_ignore tex2jax_ignore"
"""Classes that keep a notebook from rendering text between two dollar signs as a formula, which could hide words.
MathJax 3 and 4 know the first, MathJax 2 the second."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\u200b\u2028\u2029\u2060-\u2064\ufeff"  # no width, other line ends
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # halves of pairs, tags
)
_GAPS = re.compile(r"[ \t\r\n]+")


def escape_invisible(text: str) -> str:
    r"""Spell out characters that cannot be seen or that steer a display, as Python would write them.

    These are control characters, which a terminal obeys; marks that change the direction of writing, which make a
    text read differently from what it is; and characters without a shape, which can hide instructions to a language
    model.

    >>> print(escape_invisible("done\x1b[2J, \u202eeman"))
    done\x1b[2J, \u202eeman
    """
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable(text: str, max_chars: int = MAX_PRINTED) -> str:
    r"""Put untrusted text on one line of at most `max_chars` characters, the invisible ones spelled out.

    >>> print(printable("done\x1b[2J\n  next"))
    done\x1b[2J next
    >>> printable("one two three", 8)
    'one two…'
    """
    line = escape_invisible(_GAPS.sub(" ", text[: 4 * max_chars]).strip())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def number_of(n_things: int, one: str, many: str) -> str:
    """Write a count with its noun.

    >>> number_of(2000, "memory", "memories"), number_of(1, "memory", "memories")
    ('2,000 memories', '1 memory')
    """
    return f"{n_things:,} {one if n_things == 1 else many}"


def format_memories(n: int) -> str:
    """Write a count of memories.

    >>> format_memories(1), format_memories(1200)
    ('1 memory', '1,200 memories')
    """
    return number_of(n, "memory", "memories")


def format_share(part: int, whole: int) -> str:
    """Write a share in per cent; 0 % and 100 % mean none and all.

    >>> format_share(1, 1000), format_share(999, 1000), format_share(1, 4), format_share(0, 0)
    ('under 1 %', 'over 99 %', '25 %', '0 %')
    """
    per_cent = 100 * part / whole if whole else 0.0
    if 0 < per_cent < 1:
        return "under 1 %"
    return "over 99 %" if 99 < per_cent < 100 else f"{per_cent:.0f} %"


def format_time(at: datetime) -> str:
    """Write a time in words, in UTC.

    >>> format_time(datetime(2026, 3, 9, 14, 5, tzinfo=UTC))
    '9 March 2026, 14:05 UTC'
    """
    utc = at.astimezone(UTC)
    return f"{utc.day} {utc:%B %Y, %H:%M} UTC"


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """Build an element; content and values of attributes are escaped unless they are `Markup`.

    Content and attributes that are None are left out. A name that is reserved in Python ends with an underscore; other
    underscores become hyphens.

    >>> print(tag("td", "a < b", None, tag("br"), class_="n", aria_label='"q"', title=None))
    <td class="n" aria-label="&#34;q&#34;">a &lt; b<br></td>
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(_escape(part) for part in content if part is not None)
    end = "" if name in _VOID else f"</{name}>"
    return Markup(f"<{name}{given}>{inside}{end}")


_VOID = {"br", "col", "meta"}


def _escape(value: object) -> str:
    return value if isinstance(value, Markup) else markupsafe.escape(escape_invisible(str(value)))


def join(parts: Iterable[object]) -> Markup:
    """Escape parts, and join them.

    >>> join([tag("b", 1), " < ", tag("b", 2)])
    Markup('<b>1</b> &lt; <b>2</b>')
    """
    return Markup("").join(_escape(part) for part in parts)


def table(heads: Iterable[object], rows: Iterable[Markup], **attributes: object) -> Markup:
    """Build a table of heads, which are text or ``th`` elements, and of rows, which are ``tr`` elements."""
    cells = (head if isinstance(head, Markup) else tag("th", head) for head in heads)
    return tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows), **attributes)


def notebook_html(*content: object) -> str:
    """Wrap content for a notebook: with the stylesheet, and without formulas."""
    return str(tag("div", tag("style", _stylesheet()), *content, class_=f"memframe {NO_FORMULAS}"))


@cache
def _stylesheet() -> Markup:
    rules = files(__package__).joinpath("display.css").read_text("utf-8")
    # The class three times, so that the rules are more specific than the notebook's own for tables.
    return Markup(rules.replace(".memframe", 3 * ".memframe"))


def html_card(title: str, facts: Mapping[str, object]) -> str:
    """Build a card of a title and named facts, for a notebook; facts that are None are left out.

    >>> html_card("Client", {"API": "<b>", "OAuth": None})
    '<div class="memframe ..."><style>...</style><b>Client</b><div class="facts"><span class="quiet">API</span><span
    dir="auto">&lt;b&gt;</span></div></div>'
    """
    rows = (
        tag("span", name, class_="quiet") + tag("span", _format_value(value), dir="auto")
        for name, value in facts.items()
        if value is not None
    )
    return notebook_html(tag("b", title), tag("div", *rows, class_="facts"))


class ReprMixin(Struct, frozen=True):
    """Give a record a repr and a card that show the fields that are set.

    >>> class Visit(ReprMixin, frozen=True):
    ...     id: str
    ...     by: str | None = None
    ...     came_at: datetime | None = None
    >>> Visit("v1", came_at=datetime(2026, 3, 9, 14, 5, tzinfo=UTC))
    <memframe.Visit id: v1, came_at: 9 March 2026, 14:05 UTC>
    """

    def __repr__(self) -> str:
        facts = (
            f"{name}: {_format_value(value)}" for name, value in asdict(self).items() if value is not None
        )
        return f"<memframe.{type(self).__name__} {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        facts = {name.replace("_", " "): value for name, value in asdict(self).items()}
        return html_card(type(self).__name__, facts)


def _format_value(value: object) -> str:
    return format_time(value) if isinstance(value, datetime) else printable(str(value))
