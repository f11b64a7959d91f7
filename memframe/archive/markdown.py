"""Markdown with YAML frontmatter."""

from __future__ import annotations

import re
from typing import Any

import yaml

from memframe.errors import FrameError

MAX_FRONTMATTER = 1 << 16
"""Characters: a parser in Python is slow, and no note needs more."""

_FRONTMATTER = re.compile(r"---[ \t]*\r?\n(.*?\n)??---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class _PlainLoader(yaml.BaseLoader):  # type: ignore[misc]  # the library has no types
    """Load texts, lists and mappings of them; no types are guessed, and nothing is repeated by reference."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a reference")
        return super().compose_node(parent, index)


def split_frontmatter(text: str) -> tuple[str, str]:
    r"""Return the frontmatter, without its marks, and the rest of a text.

    >>> split_frontmatter("---\ntitle: Tea\n---\nLikes it green")
    ('title: Tea\n', 'Likes it green')
    """
    found = _FRONTMATTER.match(text)
    return (found[1] or "", text[found.end() :]) if found else ("", text)


def parse_frontmatter(head: str, place: str) -> dict[str, Any]:
    """Return the keys of a frontmatter; all values are text, or lists and mappings of it."""
    try:
        if len(head) > MAX_FRONTMATTER:
            raise yaml.YAMLError("too long")
        found = _PlainLoader(head).get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError, LookupError):  # their messages quote the text
        raise FrameError(f"The frontmatter of {place} is no YAML that is read here: mend it.") from None
    if not isinstance(found, dict | None):
        raise FrameError(f"The frontmatter of {place} is no list of keys and values: mend it.")
    return found or {}
