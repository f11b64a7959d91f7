"""Effects of accepted proposals: counts of changes, and the values that no memory would hold any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import pandas as pd

from memframe.access import Access
from memframe.audit import Audit
from memframe.audit.merge import Relations, read_relations
from memframe.audit.policy import Policy
from memframe.audit.text import MemoryTexts
from memframe.cleanup import change_accepted
from memframe.cleanup.plan import AuditedMemories
from memframe.plan import Plan, plan_of
from memframe.plan.change import Change
from memframe.plan.losses import Loss, find_losses
from memframe.plan.permitted import leave_out_protected
from memframe.review.corrections import Edited, correct_plan
from memframe.review.proposals import LAST_EFFECTS, Point
from memframe.review.texts import ReviewTexts


class Taken(NamedTuple):
    """Accepted points, split into those after which a memory is gone and others, and edits."""

    gone: list[Point]
    changed: list[Point]
    edits: list[Edited]

    def join(self, points: Iterable[Point]) -> Taken:
        """Return the accepted points together with further ones."""
        joined = Taken([*self.gone], [*self.changed], self.edits)
        for item in points:
            if item.action != "none":
                (joined.gone if item.action in LAST_EFFECTS else joined.changed).append(item)
        return joined

    def leave_out(self, points: Iterable[Point]) -> Taken:
        """Return the accepted points without some of them."""
        rows = {item.row for item in points}
        gone, changed = (
            [item for item in some if item.row not in rows] for some in (self.gone, self.changed)
        )
        return Taken(gone, changed, self.edits)


class Effects(NamedTuple):
    """Counts of the effects of a plan; ``n_memories`` is 0 if the number of memories is not known.

    >>> str(Effects(n_memories=389, n_deleted=38, n_changed=12, n_lost=0))
    '389 to 351 memories, 12 changed, losses 0'
    """

    n_memories: int
    n_deleted: int
    n_changed: int
    n_lost: int

    def __str__(self) -> str:
        remaining = f"{self.n_memories:,} to {self.n_memories - self.n_deleted:,} memories"
        deleted = remaining if self.n_memories else f"{self.n_deleted:,} deleted"
        return f"{deleted}, {self.n_changed:,} changed, losses {self.n_lost:,}"


def complete_plan(plan: Plan, taken: Taken, access: Access | None, memories: pd.DataFrame) -> Plan:
    """Return the plan of accepted points with the edits, and without deletes that were not accepted.

    If only a part of a cluster was accepted, a cleanup may keep another memory than the person saw as the kept one.
    """
    gone = {item.id for item in taken.gone}
    not_accepted = [str(one.id) for one in plan.records if one.action == "delete" and one.id not in gone]
    if not_accepted:
        plan = plan.leave_out(not_accepted, reason="would delete a memory whose delete was not accepted")
    return correct_plan(plan, access, memories, taken.edits)


class AuditEffects:
    """Losses of the plan of accepted points of an audit, computed without the whole plan.

    Only points about a value that no other memory holds are planned, because a whole plan takes too long after each key
    that a person presses.
    """

    def __init__(self, audit: Audit, texts: ReviewTexts, policy: Policy | None) -> None:
        self._audit = audit
        self._texts = texts
        self._policy = policy
        self._known: dict[tuple[tuple[int, ...], str], list[Change]] = {}

    def find_losses(self, taken: Taken, held_by: Collection[str] | None = None) -> dict[str, Loss]:
        """Return the values that no memory would hold any more, by key; with `held_by`, only those of some memories."""
        values = self._texts.values
        losing = {item.id for item in taken.gone if item.id}
        losing |= {item.id for item in taken.changed if item.id and item.action == "strip"}
        losing |= {edit.id for edit in taken.edits}
        # a redacted value is no loss, but a redacted memory may be the only one that still holds a value
        redacted = {item.id for item in taken.changed if item.id and item.action == "redact"}
        id_at = {place: i for i in losing | redacted if (place := self._texts.place_of(i)) is not None}
        asked = {*chain.from_iterable(values.keys_of(losing).values())}
        if held_by is not None:
            # also values that are part of another memory's value: "4 May" is in "4 May 2024"
            own = {self._texts.place_of(memory_id) for memory_id in held_by}
            asked = {key for key in asked if not own.isdisjoint(values.holders(key))}
        near: set[str] = set()
        for key in asked:
            holders = {id_at.get(place) for place in values.holders(key)}
            if None not in holders and not losing.isdisjoint(holders):
                near.update(filter(None, holders))
        if not near:
            return {}
        parts = _split(taken, near)
        records = [change for part in parts for change in self._plan(part)]
        records.sort(key=lambda change: self._texts.place_of(change.id or "") or 0)
        concerned = near.union(change.id for change in records if change.id)
        stated = {*chain.from_iterable(values.keys_of(concerned).values())}
        held = {key: len(values.holders(key) - id_at.keys()) for key in stated}
        lost = find_losses([*records, *self._list_kept(records, near)], held)
        return {key: loss for key, loss in lost.items() if held_by is None or key in asked}

    def find_added_losses(self, points: Sequence[Point], taken: Taken) -> list[Loss]:
        """Return the losses of a proposal that are not among those of the other accepted points."""
        before, own = taken.leave_out(points), {item.id for item in points if item.id}
        lost = self.find_losses(before.join(points), own)
        known = self.find_losses(before, own) if lost else {}
        return [loss for key, loss in lost.items() if key not in known]

    def _plan(self, part: Taken) -> list[Change]:
        """Return the changes of a part as a plan would have them; equal parts are planned once."""
        rows = tuple(sorted(item.row for item in (*part.gone, *part.changed)))
        key = rows, repr(part.edits)
        if key not in self._known:
            alone = part.gone[0] if len(part.gone) == 1 and not (part.changed or part.edits) else None
            if alone is not None and alone.action == "delete" and not self._is_protected(alone):
                self._known[key] = [self._delete(alone)]
            else:
                self._known[key] = self._plan_wholly(part)
        return self._known[key]

    def _is_protected(self, item: Point) -> bool:
        protect = self._policy.protect if self._policy else None
        return protect is not None and bool(
            protect.find_reason(str(item.id), self._texts.fields_of(str(item.id)))
        )

    def _delete(self, item: Point) -> Change:
        """Return the delete of a memory that is in no group, without a plan, because a review has thousands of them."""
        hidden = self._texts.hidden_of(filter(None, (item.id, item.keeps)))
        texts_of = self._texts.values.texts_of
        return Change(
            action="delete",
            id=item.id,
            before=texts_of(str(item.id)),
            keeps={item.keeps: str(texts_of(item.keeps).get("content"))} if item.keeps else {},
            hidden=tuple(frozenset().union(*hidden.values())),
        )

    def _plan_wholly(self, part: Taken) -> list[Change]:
        points = sorted((*part.gone, *part.changed), key=lambda item: item.row)
        ids = {i for item in points for i in (item.id, item.keeps) if i} | {edit.id for edit in part.edits}
        memories = self._audited.memories[self._audited.memories["id"].isin(ids)]
        rows = [item.row for item in points]
        findings = self._audit.findings.iloc[rows]
        findings = findings.assign(action=pd.array([item.action for item in points], dtype="str"))
        plan = plan_of(
            memories,
            change_accepted(
                findings, self._audited, self._prepared, relations=self._relations, merged=merged_ids(part)
            ),
        )
        gone = {item.id for item in part.gone}
        edits = [edit for edit in part.edits if edit.id not in gone]  # `correct_plan` refuses others
        plan = complete_plan(plan, part._replace(edits=edits), None, memories)
        if self._policy is not None:
            plan = leave_out_protected(plan, self._policy, lambda i: (self._texts.fields_of(i),))
        return list(plan.records)

    @cached_property
    def _audited(self) -> AuditedMemories:
        return AuditedMemories(None, self._audit.memories)

    @cached_property
    def _prepared(self) -> MemoryTexts:
        return MemoryTexts.of(self._audited.memories)

    @cached_property
    def _relations(self) -> Relations:
        return read_relations(self._audit.findings)

    def _list_kept(self, records: Sequence[Change], near: Iterable[str]) -> Iterator[Change]:
        """Yield the texts of memories after the changes as patches of all fields, for memories that stay."""
        change_of = {change.id: change for change in records}
        for memory_id in {*near, *filter(None, change_of)}:
            change = change_of.get(memory_id)
            if change is None or change.action == "patch":
                texts = self._texts.values.texts_of(memory_id)
                yield Change(action="patch", id=memory_id, after=texts | (change.after if change else {}))


def merged_ids(taken: Taken) -> set[str]:
    """Return the accepted copies that a cleanup would not merge by default."""
    return {
        item.id for item in taken.gone if item.id and item.action == "merge" and item.proposed == "review"
    }


def _split(taken: Taken, near: Collection[str]) -> Iterator[Taken]:
    """Yield the parts of accepted points that are connected by their memories, if one of these is in `near`."""
    by_id: defaultdict[str | None, Taken] = defaultdict(lambda: Taken([], [], []))
    linked: defaultdict[str | None, set[str]] = defaultdict(set)
    for item in taken.gone:
        by_id[item.id].gone.append(item)
        if item.id and item.keeps:
            linked[item.id].add(item.keeps)
            linked[item.keeps].add(item.id)
    for item in taken.changed:
        by_id[item.id].changed.append(item)
    for edit in taken.edits:
        by_id[edit.id].edits.append(edit)
    unvisited = {*near}
    while unvisited:
        part, due = Taken([], [], []), [unvisited.pop()]
        seen = {*due}
        while due:
            memory_id = due.pop()
            own = by_id[memory_id]
            part.gone.extend(own.gone)
            part.changed.extend(own.changed)
            part.edits.extend(own.edits)
            due += linked[memory_id] - seen
            seen |= linked[memory_id]
        unvisited -= seen
        yield part
