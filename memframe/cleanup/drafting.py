"""Drafting: from findings to what each memory is going to be, and which ones go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd
from msgspec import Struct

from memframe.audit.scores import rescaled
from memframe.cleanup.merging import Copy, Merge, Merging
from memframe.cleanup.redaction import Memories, Search, redact, searched_in
from memframe.cleanup.retagging import retagged, retaggings
from memframe.cleanup.rows import Row
from memframe.plan.cells import normalize
from memframe.plan.change import FIELDS, Value

HOLDING = ("title", "summary", "content", "tags", "source")
"""Fields in which a memory holds what it says; scores are not among them."""

COPYING = frozenset({"exact_duplicate", "near_duplicate"})


class Draft(Struct, frozen=True, kw_only=True):
    """What a cleanup comes to.

    Attributes
    ----------
    rows : mapping of str to Row
        All memories that it is about, by id.
    values : dict of str to dict of str to value
        All fields of the memories that stay, as they are going to be.
    deletes : dict of str to str or None
        Memories that go by themselves, and each time the one that stays and says the same, if there is one.
    merges : tuple of Merge
    conflicts : dict of str to tuple of str
        Memories that have moved since the audit, and in which fields; none of them where it is gone.
    hidden : dict of str to frozenset of str
        What nobody shall see of each memory.
    """

    rows: Mapping[str, Row]
    values: dict[str, dict[str, Value]]
    deletes: dict[str, str | None]
    merges: tuple[Merge, ...]
    conflicts: dict[str, tuple[str, ...]]
    hidden: dict[str, frozenset[str]]


def draft_of(
    findings: pd.DataFrame,
    rows: Mapping[str, Row],
    memories: pd.DataFrame,
    *,
    taken: Iterable[str],
    apart: Iterable[frozenset[str]],
) -> Draft:
    """Settle what the findings ask of each memory.

    Parameters
    ----------
    findings : DataFrame
        Those that something is planned for, by their ``action``.
    rows : mapping of str to Row
        The memories that they name.
    memories : DataFrame
        All memories of the user that were audited.
    taken : iterable of str
        Which actions are asked for at all.
    apart : iterable of set of str
        Pairs of memories that differ in a value.
    """
    may_touch = [
        _may_touch(rows[i], check) for i, check in zip(findings["id"], findings["check"], strict=True)
    ]
    findings = findings[np.array(may_touch, bool)]
    conflicts = _conflicts(findings, rows)
    findings = findings[~findings["id"].isin(conflicts.keys())]
    open_rows = {i: row for i, row in rows.items() if not row.is_closed and i not in conflicts}
    before = {i: row.now for i, row in open_rows.items()}
    apart = frozenset(apart)
    now = {i: row.now for i, row in rows.items() if row.stored is not None}
    searched = searched_in(now)
    search = Search()
    values, secrets = _edited(findings, before, apart, searched, search)
    deletes = _deletes(findings, open_rows)
    staying = {i: some for i, some in values.items() if i not in deletes}
    merging = Merging(memories, staying, taken=frozenset(taken), apart=apart)
    merges = tuple(merging.merges(_copies(findings)))
    for merge in merges:
        staying[merge.keeper] = merge.values
    gone = {copy for merge in merges for copy in merge.copies}
    hidden = _hidden(now, searched, search)
    return Draft(
        rows=rows,
        values={i: some for i, some in staying.items() if i not in gone},
        deletes=deletes,
        merges=merges,
        conflicts=conflicts,
        hidden={i: hidden.get(i, frozenset()) | secrets.get(i, frozenset()) for i in rows},
    )


def _may_touch(row: Row, check: str) -> bool:
    """Whether a finding may change a memory: one whose content nobody can read is deleted for that alone."""
    if check == "sealed":
        return row.is_closed and (row.stored is None or row.stored.content is None)
    return not row.is_closed


def _conflicts(findings: pd.DataFrame, rows: Mapping[str, Row]) -> dict[str, tuple[str, ...]]:
    """Memories of which something moved that the findings have looked at, or that would be lost."""
    looked_at: defaultdict[str, set[str]] = defaultdict(set)
    columns = (findings[name] for name in ("id", "field", "action", "related_id"))
    for memory_id, field, action, related in zip(*columns, strict=True):
        is_last = action in {"delete", "merge"}
        looked_at[memory_id].update(FIELDS if is_last else [field])
        if is_last and related in rows:
            looked_at[related].update(HOLDING)
    moved = {i: rows[i].moved(fields) for i, fields in looked_at.items() if rows[i].stored is not None}
    gone = {i: () for i in looked_at if rows[i].stored is None}
    return {i: fields for i, fields in moved.items() if fields} | gone


def _edited(
    findings: pd.DataFrame,
    before: Mapping[str, dict[str, Value]],
    apart: Iterable[frozenset[str]],
    searched: pd.DataFrame,
    search: Search,
) -> tuple[dict[str, dict[str, Value]], dict[str, frozenset[str]]]:
    """Memories without their secrets, with the tags and on the scale that the audit proposes; and the secrets."""
    findings = findings[findings["id"].isin(before.keys())]
    chosen = findings[findings["action"] == "redact"]
    redacted = redact(chosen, before, apart=apart, searched=searched, search=search)
    values = {i: dict(some) for i, some in before.items()}
    for memory_id, found in redacted.items():
        values[memory_id] |= {
            name: value for name, value in found.values.items() if _is_normalize(name, value)
        }
    for memory_id, names in retaggings(findings[findings["action"] == "retag"]).items():
        tags = retagged(values[memory_id]["tags"] or (), names)  # type: ignore[arg-type]  # names
        if _is_normalize("tags", tags):
            values[memory_id]["tags"] = tags
    for memory_id in findings["id"][(findings["action"] == "rescale") & (findings["field"] == "importance")]:
        importance = before[memory_id]["importance"]
        if isinstance(importance, float):
            values[memory_id]["importance"] = rescaled(importance)
    return values, {memory_id: found.secrets for memory_id, found in redacted.items()}


def _is_normalize(name: str, value: Value) -> bool:
    return normalize(name, value).error is None


def _deletes(findings: pd.DataFrame, may_stay: Collection[str]) -> dict[str, str | None]:
    """Memories that go by themselves; one that goes because another says the same stays, unless that one does."""
    own = findings[(findings["action"] == "delete") & ~findings["check"].isin(COPYING)]
    related = own["related_id"].astype(object).where(own["related_id"].notna(), None)
    wanted = dict(zip(own["id"], related, strict=True))
    return {
        memory_id: other
        for memory_id, other in wanted.items()
        if other is None or (other in may_stay and other not in wanted)
    }


def _copies(findings: pd.DataFrame) -> list[Copy]:
    """What the findings say of memories that another one says, too."""
    is_copy = (findings["action"] == "merge") | findings["check"].isin(COPYING)
    found = findings[is_copy & findings["related_id"].notna()]
    columns = ("id", "related_id", "check", "kind", "action")
    return [Copy(*some) for some in zip(*(found[name] for name in columns), strict=True)]


def _hidden(memories: Memories, searched: pd.DataFrame, search: Search) -> dict[str, frozenset[str]]:
    """Find what no display may show, whatever was looked for and whatever is planned: secrets, and numbers like those
    of cards and identities.
    """
    found = searched[(searched["action"] == "redact") | (searched["severity"] == "high")]
    redacted = redact(found, memories, searched=searched, search=search)
    return {memory_id: some.secrets for memory_id, some in redacted.items()}
