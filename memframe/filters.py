"""The filters of a list call, checked before they travel."""

from __future__ import annotations

from collections.abc import Iterable

from memframe.errors import ConfigError


def memory_query(
    user_id: str,
    *,
    tags: Iterable[str] | None = None,
    search: str | None = None,
    min_importance: float | None = None,
) -> dict[str, str]:
    """The filters of a list call as query parameters.

    Raises
    ------
    ConfigError
        A tag name is empty or holds a comma, or ``min_importance`` is not within 0 to 1.

    Examples
    --------
    >>> memory_query("u1", tags=["work", "home"], min_importance=0.5)
    {'user_id': 'u1', 'tags': 'work,home', 'importance': '0.5'}
    """
    query = {"user_id": user_id}
    if tags is not None:
        query["tags"] = ",".join(_tag_names(tags))
    if search is not None:
        query["searchQuery"] = search
    if min_importance is not None:
        if not 0 <= min_importance <= 1:
            raise ConfigError(
                f"min_importance={min_importance!r} is outside 0 to 1, the range of this filter"
            )
        query["importance"] = str(float(min_importance))
    return query


def _tag_names(tags: Iterable[str]) -> list[str]:
    names = [tags] if isinstance(tags, str) else list(tags)
    for name in names:
        if not name.strip() or "," in name:
            raise ConfigError(
                f"tags={names!r}: {name!r} cannot be filtered by, as names travel separated by commas"
            )
    return names
