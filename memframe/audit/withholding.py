"""Withholding: evidence of other checks that would show a secret, or a number of somebody, is masked.

Checks that compare texts quote them. What they quote is looked at here once more, so that no order of checks, and
no choice among them, lets through what `find_secrets` and `find_personal_data` would have masked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pandas as pd

from memframe.audit.findings import Check
from memframe.audit.masks import masked
from memframe.audit.personal_data import find_personal_data
from memframe.audit.secret import find_secrets

QUOTING: frozenset[Check] = frozenset(
    {"exact_duplicate", "near_duplicate", "changed_value", "superseded", "stale", "junk"}
)
"""Checks whose evidence may hold words of memories."""

WITHHELD = "withheld, as it would show a secret or personal data"

_OPEN_KINDS = frozenset({"url", "name", "address"})
"""Personal data that evidence may show: it is what memories are about."""

_N_LETTERS = 4
"""Characters in a row that are too much of a secret to show."""


def withhold(findings: pd.DataFrame, memories: pd.DataFrame) -> pd.DataFrame:
    """Findings whose evidence shows nothing of the secrets and personal data in the memories concerned."""
    rows = findings.index[findings["check"].isin(QUOTING) & findings["evidence"].notna()]
    quoting = findings.loc[rows, ["id", "related_id", "evidence"]]
    concerned = memories[memories["id"].isin({*quoting["id"], *quoting["related_id"]})]
    hidden = _hidden_in(concerned)
    if not hidden:
        return findings
    evidence = [
        _without(text, {*hidden.get(one, ()), *hidden.get(other, ())})
        for one, other, text in quoting.itertuples(index=False)
    ]
    result = findings.copy()
    result.loc[rows, "evidence"] = evidence
    return result


def _hidden_in(memories: pd.DataFrame) -> dict[str, set[str]]:
    """Texts that nobody shall see, by the id of the memory."""
    spans = pd.concat([find_secrets(memories), find_personal_data(memories)])
    spans = spans[~spans["kind"].isin(_OPEN_KINDS)]
    place = {memory_id: row for row, memory_id in enumerate(memories["id"])}
    hidden: defaultdict[str, set[str]] = defaultdict(set)
    for memory_id, field, start, end in zip(
        *(spans[name] for name in ("id", "field", "start", "end")), strict=True
    ):
        hidden[memory_id].add(memories[field].iloc[place[memory_id]][start:end])
    return hidden


def _without(evidence: str, hidden: Iterable[str]) -> str:
    """Evidence with what is hidden masked; nothing of it where a part would still be seen."""
    for text in sorted(hidden, key=len, reverse=True):
        evidence = evidence.replace(text, masked(text))
    shown = evidence.casefold()
    return WITHHELD if any(_is_seen(text.casefold(), shown) for text in hidden) else evidence


def _is_seen(text: str, shown: str) -> bool:
    """Whether more than a mask leaves of a text is to be seen."""
    return any(
        text[start : start + _N_LETTERS] in shown for start in range(1, len(text) - _N_LETTERS + 1)
    ) or (len(text) < _N_LETTERS and text in shown)
