"""Checks of filters, ids and values before they are sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, SupportsFloat

from memframe.errors import ConfigError
from memframe.secret import Secret


def memory_query(
    user_id: str,
    *,
    tags: Iterable[str] | None = None,
    search: str | None = None,
    min_importance: float | None = None,
) -> dict[str, str]:
    """Make the query parameters of a list call; a filter that the service would misread is a `ConfigError`.

    >>> memory_query("u1", tags=["work", "home"], min_importance=0.5)
    {'user_id': 'u1', 'tags': 'work,home', 'importance': '0.5'}
    """
    query = of_user(user_id)
    if tags is not None:
        names = [tags] if isinstance(tags, str) else list(tags)
        if not names:
            raise ConfigError(
                "tags is empty, which no memory matches: name at least one tag, or leave tags out"
            )
        for name in names:
            if not _check_text("a tag name", name).strip() or "," in name:
                raise ConfigError(
                    f"tags={names!r}: {name!r} cannot be a filter, because names are sent separated by commas: leave "
                    "it out, and filter the frame"
                )
        query["tags"] = ",".join(names)
    if search is not None:
        query["searchQuery"] = _check_text("search", search)
    if min_importance is not None:
        given: object = min_importance
        if isinstance(given, bool) or not isinstance(given, SupportsFloat) or not 0 <= float(given) <= 1:
            raise ConfigError(
                f"min_importance={min_importance!r} is outside 0 to 1, the range of this filter: pass a number in it"
            )
        query["importance"] = str(float(given))
    return query


def of_user(user_id: str) -> dict[str, Any]:
    """Return the field of a query or body that names the user."""
    return {"user_id": check_id("user_id", user_id)}


def check_id(name: str, value: object) -> str:
    """Refuse an id that would change the path of a call: an empty one would mean all, and dots another endpoint.

    >>> check_id("memory_id", "..")
    Traceback (most recent call last):
    memframe.errors.ConfigError: memory_id='..' is not the id of anything: pass the id as the service gave it
    """
    if not isinstance(value, str):
        raise ConfigError(f"{name} is text, not {type(value).__name__}: pass the id as the service gave it")
    if not value.strip() or value in {".", ".."}:
        raise ConfigError(f"{name}={value!r} is not the id of anything: pass the id as the service gave it")
    return _check_text(name, value)


def refuse_unsendable(fields: Mapping[str, object]) -> None:
    """Refuse fields that JSON cannot express, or would change: NaN would become null, which clears a field."""
    for name, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{name}={value!r} is not a JSON number: pass one, or None to clear the field")
        if name == "tags" and isinstance(value, str):
            raise ConfigError("tags is one text: pass a list of names")
        if isinstance(value, Secret) and not (value and _is_unicode(value.reveal())):
            raise ConfigError(f"{name} is empty or not Unicode: pass it as the service gave it")
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str):
                _check_text(name, text)


def _check_text(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise ConfigError(f"{name} is text, not {type(text).__name__}: pass a str")
    if not _is_unicode(text):
        raise ConfigError(
            f"{name} contains half of a surrogate pair, which is not valid Unicode: correct the text"
        )
    return text


def _is_unicode(text: str) -> bool:
    return text.encode("utf-8", "replace").decode() == text  # half a surrogate pair became "?"
