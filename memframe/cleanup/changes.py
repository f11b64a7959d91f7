"""Changes: the draft of a cleanup as the changes of a plan, each with its findings as the reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import pandas as pd
from msgspec.structs import replace

from memframe.change import FIELDS, Change, Value, same_value
from memframe.cleanup.asked import PLANNED
from memframe.cleanup.drafting import COPYING, HOLDING, Draft
from memframe.display import number_of
from memframe.plan.deletes import delete_of
from memframe.plan.wording import listed, name_of

_ENDING = frozenset({"delete", "merge"})


class Writer:
    """Writes a draft down.

    Parameters
    ----------
    draft : Draft
    findings : DataFrame
        That it was made from.
    """

    def __init__(self, draft: Draft, findings: pd.DataFrame) -> None:
        self._draft = draft
        self._actions = {str(i): {*some} for i, some in findings.groupby("id")["action"]}
        self._copies = {*findings["id"][findings["check"].isin(COPYING)]}
        is_ending = findings["action"].isin(_ENDING)
        self._why_patched, self._why_deleted = _reasons(findings[~is_ending]), _reasons(findings[is_ending])
        self._merged_into = {copy: merge.keeper for merge in draft.merges for copy in merge.copies}
        self._held_by = self._merged_into | {
            memory_id: self._merged_into.get(other, other)
            for memory_id, other in draft.deletes.items()
            if other is not None
        }
        self._held: defaultdict[str, list[str]] = defaultdict(list)
        for memory_id, keeper in self._held_by.items():
            self._held[keeper].append(memory_id)
        self._group_of = {keeper: n for n, keeper in enumerate(sorted(self._held, key=self._place_of))}
        self._after = {i: after for i in draft.values if (after := self._changed(i))}

    def changes(self) -> list[Change]:
        """What is to be written, in the order of the audited frame."""
        made = [self._patch(i) for i in self._after]
        made += [self._delete(i) for i in (*self._draft.deletes, *self._merged_into)]
        return sorted(made, key=lambda change: self._place_of(str(change.id)))

    def conflicts(self) -> Iterator[Change]:
        """What cannot be planned, as it was changed or deleted since the audit."""
        for memory_id, fields in self._draft.conflicts.items():
            row = self._draft.rows[memory_id]
            moved = f"{', '.join(fields)} changed" if fields else "it was deleted"
            yield Change(
                action="conflict",
                row=row.label,
                id=memory_id,
                before={name: row.now[name] for name in fields},
                reason=f"{moved} at the service since it was audited",
                hidden=self._hidden(memory_id),
            )

    def notes(self, findings: pd.DataFrame) -> Iterator[str]:
        """Say how many of the memories that an audit proposes to change are changed, and why the others are not.

        Nothing is said where each of them is changed, and no other memory.

        Parameters
        ----------
        findings : DataFrame
            Of the audit, about memories of this user, whatever was asked for.
        """
        changed = {*self._after, *self._draft.deletes, *self._merged_into}
        wanted = {*findings["id"][findings["action"].isin(PLANNED)], *self._actions}
        left, besides = wanted - changed, changed - wanted
        if not left and not besides:
            return
        n_done = len(wanted & changed)
        proposals = number_of(len(wanted), "proposal", "proposals")
        said = f"In memories: of {proposals} {n_done:,} {_are(n_done)} carried out"
        if left:
            counts = Counter(sorted(map(self._why_left, left)))
            reasons = "; ".join(f"{n:,} {why}" for why, n in counts.most_common())
            said += f"; {len(left):,} {_are(len(left))} left for you: {reasons}"
        if besides:
            said += f". {number_of(len(besides), 'other memory takes', 'other memories take')} in what copies held"
        yield f"{said}."

    def _why_left(self, memory_id: str) -> str:
        """Say why a memory stays as it is, after a number of such memories."""
        actions = self._actions.get(memory_id)
        if not actions:
            return "not asked for in actions="
        if memory_id in self._draft.conflicts:
            return "changed or deleted at the service since the audit"
        if self._draft.rows[memory_id].is_closed:
            return "with content that cannot be opened"
        if memory_id in self._copies or "merge" in actions:
            return "whose merge would lose a value (a name, a number, a date, a source, a title)"
        if "delete" in actions:
            return "kept, as the memory that says the same is deleted or may be"
        return "in which nothing is left to change"

    def _place_of(self, memory_id: str) -> int:
        return self._draft.rows[memory_id].place

    def _changed(self, memory_id: str) -> dict[str, Value]:
        now, wanted = self._draft.rows[memory_id].now, self._draft.values[memory_id]
        return {name: wanted[name] for name in FIELDS if not same_value(name, wanted[name], now[name])}

    def _patch(self, memory_id: str) -> Change:
        row, after = self._draft.rows[memory_id], self._after[memory_id]
        held = self._held.get(memory_id, [])
        merged = [copy for copy in held if copy in self._merged_into]
        takes_in = [f"takes in {self._named(merged)}"] if merged else []
        why = [*map(self._why_deleted.get, merged), self._why_patched.get(memory_id)]
        return Change(
            action="patch",
            row=row.label,
            id=memory_id,
            before={name: row.now[name] for name in after},
            after=after,
            reason="; ".join([*takes_in, *dict.fromkeys(filter(None, why))]),
            group=self._group_of.get(memory_id),
            hidden=self._hidden(memory_id, *held),
        )

    def _delete(self, memory_id: str) -> Change:
        row, keeper = self._draft.rows[memory_id], self._held_by.get(memory_id)
        whole = delete_of(row.label, row.stored) if row.stored else Change(action="delete", id=memory_id)
        kept = None if keeper is None else f"{self._named([keeper])} keeps what it says"
        why = self._why_deleted.get(memory_id) or "the same text as others that are merged"
        return replace(
            whole,
            reason="; ".join(filter(None, [kept, why])),
            group=None if keeper is None else self._group_of[keeper],
            hidden=self._hidden(memory_id, *filter(None, [keeper])),
            relies_on={} if keeper is None else {keeper: self._unpatched(keeper)},
        )

    def _unpatched(self, keeper: str) -> dict[str, Value]:
        """What of a keeper holds what others said, and stays as it is: the rest is what its patch compares."""
        now, after = self._draft.rows[keeper].now, self._after.get(keeper, {})
        return {name: now[name] for name in HOLDING if name not in after}

    def _named(self, ids: Sequence[str]) -> str:
        return listed([name_of(Change(action="patch", id=i, row=self._draft.rows[i].label)) for i in ids])

    def _hidden(self, *ids: str) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*(self._draft.hidden[i] for i in ids))))


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _reasons(findings: pd.DataFrame) -> dict[str, str]:
    """The findings of each memory in words, evidence masked as the audit has it."""
    said: defaultdict[str, dict[str, None]] = defaultdict(dict)
    columns = (findings[name] for name in ("id", "check", "kind", "evidence"))
    for memory_id, check, kind, evidence in zip(*columns, strict=True):
        said[memory_id][f"{check} ({kind}): {evidence}"] = None
    return {memory_id: listed(list(parts), "; ") for memory_id, parts in said.items()}
