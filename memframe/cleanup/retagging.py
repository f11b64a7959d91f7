"""Retagging: near-identical names become the one spelling, and names that nobody wants any more come off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import pandas as pd

from memframe.audit.fields import names_in


def retaggings(findings: pd.DataFrame) -> dict[str, dict[str, str | None]]:
    """For each memory its names and what they become; None for a name that comes off.

    A name stays as it is where the other spelling is one that comes off.

    Parameters
    ----------
    findings : DataFrame
        Of the check `tags`: ``kind id evidence``.
    """
    said = [
        (memory_id, names_in(evidence))
        for memory_id, evidence in zip(findings["id"], findings["evidence"], strict=True)
    ]
    dropped = {names[0] for _, names in said if len(names) == 1}
    becomes = {names[0]: names[1] for _, names in said if len(names) == 2}
    changes: defaultdict[str, dict[str, str | None]] = defaultdict(dict)
    for memory_id, names in said:
        new = _last(names[0], becomes) if names else None
        if len(names) == 2 and new not in dropped:
            changes[memory_id][names[0]] = new
        elif len(names) == 1:
            changes[memory_id].setdefault(names[0], None)
    return dict(changes)


def _last(name: str, becomes: Mapping[str, str]) -> str:
    """Where a chain of spellings ends; a ring of them where it was entered."""
    met = [name]
    while (name := becomes.get(name, name)) not in met:
        met.append(name)
    return met[-1] if name == met[-1] else min(met[met.index(name) :])


def retagged(tags: Iterable[str], changes: Mapping[str, str | None]) -> tuple[str, ...]:
    """Names of one memory after their changes, each once.

    >>> retagged(("Recipes", "stamps", "recipe"), {"Recipes": "recipe", "stamps": None})
    ('recipe',)
    """
    new = (changes.get(name, name) for name in tags)
    return tuple(dict.fromkeys(name for name in new if name is not None))
