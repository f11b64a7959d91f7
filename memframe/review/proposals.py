"""Proposals: the units of a review, each about one memory or about a group that one decision settles.

The findings of an audit, or the changes of a plan, become items (`Point`). Items of one cluster, value or text are
joined into one proposal, and so are the items of several checks that propose to delete or merge the same memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memframe.audit import Audit
from memframe.audit.findings import Check, are_figures
from memframe.audit.identity import decision_keys
from memframe.decisions import Decisions
from memframe.plan import Plan
from memframe.plan.change import mask
from memframe.review.progress import PRECISION, UNMEASURED

REVIEWED: Mapping[Check, str] = MappingProxyType(
    {
        "exact_duplicate": "merge",
        "near_duplicate": "delete",  # the copy with less, while the fuller one stays
        "version": "delete",  # the older one, while the newest stays
        "stale": "delete",
        "planted": "delete",  # what can be stripped is proposed as such
        "secret": "redact",
        "personal_data": "redact",
        "junk": "delete",
        "missing": "none",
        "scores": "none",  # only a person knows the right number
        "tags": "none",
        "sealed": "delete",
    }
)
"""Effect of accepting a finding for review, by check; the effect of other findings is their action."""

LAST_EFFECTS = frozenset({"delete", "merge"})
"""Actions after which the memory is gone."""

COSMETIC = frozenset({"retag", "rescale", "none"})
"""Actions that are last in the queue, because no harm is done until they are decided."""

ORIGIN_PLAN = "plan"
"""The check of proposals that are changes of a plan."""

_REPEATS = ("repeated", "near_repeat")
"""Kinds of junk for many equal memories."""

MIN_ID = 8
"""Characters of the shortest id of a proposal."""


def effect_of(check: str, action: str) -> str:
    """Return the effect of accepting a finding.

    >>> effect_of("stale", "review"), effect_of("secret", "redact"), effect_of("too_long", "review")
    ('delete', 'redact', 'none')
    """
    return REVIEWED.get(check, "none") if action == "review" else action  # type: ignore[call-overload]  # any text


class Point(Struct, frozen=True):
    """One finding, or one change of a plan."""

    row: int
    """Row of the finding, or place of the change in the plan."""
    key: str
    check: str
    kind: str
    proposed: str
    """Action of the finding."""
    action: str
    """Effect of accepting."""
    id: str | None
    keeps: str | None
    """Memory that stays in place of this one."""
    text: str
    """Value or text that is judged; items with the same one are grouped."""
    group: int | None
    reason: str
    severity: str = ""


class Proposal(Struct, frozen=True):
    """Unit of a decision.

    Attributes
    ----------
    id : str
        Beginning of the smallest key of its items; unambiguous among the proposals of a review.
    items : tuple of Point
        The findings or changes that it consists of. Of several items for one memory, the first gives the action.
    ids : tuple of str
        Memories that accepting changes or deletes.
    keeps : tuple of str
        Memories that stay in place of those that go.
    action : str
        Effect of accepting the whole: a merge if one of the items is a merge and a memory stays.
    """

    id: str
    items: tuple[Point, ...]
    ids: tuple[str, ...]
    keeps: tuple[str, ...]
    action: str

    @staticmethod
    def of(proposal: str, items: Sequence[Point]) -> Proposal:
        """Join items into a proposal."""
        first, *others = items
        if not others:  # the usual case, in which a review has thousands
            alone = () if first.id is None else (first.id,)
            kept = (first.keeps,) if first.keeps and first.keeps != first.id else ()
            return Proposal(proposal, (first,), alone, kept, first.action)
        acting = [item for item in items if item.action != "none"] or items
        ids = tuple(dict.fromkeys(item.id for item in acting if item.id is not None))
        own = {*ids}
        keeps = tuple(dict.fromkeys(item.keeps for item in items if item.keeps and item.keeps not in own))
        action = first.action
        if keeps and any(item.action == "merge" for item in items):
            action = "merge"
        elif action == "merge":  # without a memory that stays, a merge is a delete
            action = "delete"
        return Proposal(proposal, tuple(items), ids, keeps, action)

    @property
    def first(self) -> Point:
        """The item that gives the proposal its check and kind."""
        return self.items[0]

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the decisions about its items."""
        return frozenset(item.key for item in self.items)

    @property
    def n_members(self) -> int:
        """Number of memories that accepting changes, deletes or creates."""
        return len(self.ids) or len(self.items)


def items_of_audit(audit: Audit, decisions: Decisions) -> list[Point]:
    """Return the findings that a person can decide about; figures are not among them."""
    findings = audit.findings
    # findings with the action "none" have no proposal
    is_open = (findings["action"] != "none") & findings["id"].notna() & ~are_figures(findings)
    rows = np.flatnonzero(is_open.to_numpy())
    chosen = findings.iloc[rows]
    keys, texts = decision_keys(chosen, audit.memories, audit.counted, decisions, is_stored=audit.is_stored)
    names = ("check", "kind", "action", "id", "related_id", "group", "evidence", "severity")
    columns = [chosen[name].astype(object).where(chosen[name].notna(), None).tolist() for name in names]
    points = [
        Point(
            row, key, check, kind or "", action, effect_of(check, action), memory_id, related, text,
            None if group is None else int(group), evidence or "", severity,
        )
        for row, key, text, check, kind, action, memory_id, related, group, evidence, severity in zip(
            rows.tolist(), keys, texts, *columns, strict=True
        )
    ]  # fmt: skip
    return list(_keep_first_of_repeats(points))


def _keep_first_of_repeats(points: Sequence[Point]) -> Iterator[Point]:
    """Take the proposal from the first of equal memories, with which the others are merged, and from their copies.

    The first is a finding as well, and the check on copies may keep another one: accepting all of these findings would
    delete every one of the memories.
    """
    first_of = {item.id: item.keeps for item in points if item.kind in _REPEATS and item.keeps}
    firsts = {*first_of.values()}
    for item in points:
        is_repeat = item.kind in _REPEATS or item.check == "exact_duplicate"
        is_first = item.id in firsts
        has_repeat = item.check == "exact_duplicate" and item.id in first_of
        yield replace(item, action="none", keeps=None) if is_repeat and (is_first or has_repeat) else item


def items_of_plan(plan: Plan, decisions: Decisions) -> list[Point]:
    """Return the changes of a plan as items."""
    items = []
    for row, change in enumerate(plan.records):
        judged = msgspec.json.encode([change.action, change.before, change.after], order="sorted").decode()
        key = decisions.key(
            ORIGIN_PLAN, change.action, "", change.id or change.restores or str(change.row), judged
        )
        keeper = next(iter(change.depends_on), None)
        items.append(
            Point(row, key, ORIGIN_PLAN, change.action, change.action, change.action, change.id, keeper, str(row),
                 change.group, mask(change).reason or "")
        )  # fmt: skip
    return items


def make_proposals(
    items: Sequence[Point], *, apart: Collection[str] = (), states: Mapping[str, str]
) -> list[Proposal]:
    """Group items into proposals; items with a decision are not grouped with open ones.

    `apart` has the keys of items that a person took out of their group, `states` the decisions by key.
    """
    main, supporting = _join_questions(items)
    groups: defaultdict[tuple[object, ...], list[Point]] = defaultdict(list)
    for item in main:
        shared: object = item.text if item.group is None else item.group
        if item.action == "rescale":
            shared = ""  # one decision settles the scale of all memories
        own_key = item.key if item.key in apart else None
        # kinds within a cluster differ, because each describes how a copy differs from its keeper
        kind = item.kind if item.group is None else ""
        groups[item.check, kind, effect_class(item), shared, own_key, states.get(item.key, "")].append(item)
    by_key: defaultdict[str, list[Point]] = defaultdict(list)  # equal texts of a file have equal keys
    owners: dict[str, str] = {}
    for group in groups.values():
        owner = min(item.key for item in group)
        owners |= dict.fromkeys([item.key for item in group], owner)
    for item in main:
        by_key[owners[item.key]].append(item)
    for item in main:
        for support in supporting.get(item.row, ()):
            # a finding with the key of another proposal stays there: accepting this one must not carry it out
            by_key[owners.setdefault(support.key, owners[item.key])].append(support)
    length = MIN_ID
    while len({key[:length] for key in by_key}) < len(by_key):
        length += 2
    return [Proposal.of(key[:length], group) for key, group in by_key.items()]


def effect_class(item: Point) -> str:
    """Return a name for effects that can be decided together: deletes and merges of a cluster are one decision."""
    if item.check == ORIGIN_PLAN:
        return "" if item.group is not None else str(item.row)
    return f"{item.proposed == 'review'} gone" if item.action in LAST_EFFECTS else item.action


_Claim = Literal["goes", "stays", "other"]
"""Proposal of an item for its memory: it goes, it stays (`_keep_first_of_repeats`), or another one."""


def _claim_of(item: Point) -> _Claim:
    if item.action in LAST_EFFECTS and item.check != ORIGIN_PLAN and item.id is not None:
        return "goes"
    if item.action == "none" and effect_of(item.check, item.proposed) != "none":
        return "stays"
    return "other"


def _join_questions(items: Sequence[Point]) -> tuple[list[Point], Mapping[int, list[Point]]]:
    """Join the items by which one memory would go; return the main item of each memory, and the others by its row.

    The main item is that of the check with the highest precision.
    """
    main_of: dict[str, Point] = {}
    supporting: defaultdict[int, list[Point]] = defaultdict(list)
    by_claim: defaultdict[_Claim, list[Point]] = defaultdict(list)
    for item in items:
        by_claim[_claim_of(item)].append(item)
    main, gone, kept = by_claim["other"], by_claim["goes"], by_claim["stays"]

    def rank(item: Point) -> tuple[float, str]:
        return -PRECISION.get((item.check, item.proposed), UNMEASURED), item.key

    for item in gone:
        known = main_of.setdefault(str(item.id), item)
        if known is not item and rank(item) < rank(known):
            main_of[str(item.id)] = item
    for item in gone:
        main_item = main_of[str(item.id)]
        if main_item is item:
            main.append(item)
        else:
            supporting[main_item.row].append(item)
    row_by_keeper = {item.keeps: item.row for item in reversed(main) if item.kind in _REPEATS}
    for item in kept:  # decided with a delete of this memory, or of a copy that it replaces
        row = main_of[item.id].row if item.id in main_of else row_by_keeper.get(item.id)
        if row is None:
            main.append(item)
        else:
            supporting[row].append(item)
    return sorted(main, key=lambda item: item.row), supporting
