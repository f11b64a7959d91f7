"""Proposals: what is suggested for one memory, or for a group that one decision settles.

An audit has findings, a plan has changes; both become items, one for each memory and thing to do, and items of
one cluster, value or text become one proposal. What several checks say against the same memory is one question.
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
        "near_duplicate": "delete",  # the copy with less, while the other stays
        "version": "delete",  # the older one, while the newest stays
        "stale": "delete",
        "planted": "delete",  # what can be stripped is proposed as such
        "secret": "redact",
        "personal_data": "redact",
        "junk": "delete",
        "missing": "none",
        "scores": "none",  # which number is meant, only an edit can say
        "tags": "none",
        "sealed": "delete",
    }
)
"""Effect of accepting a finding for review, by check; other findings do what their action says."""

LAST_EFFECTS = frozenset({"delete", "merge"})
"""Actions after which the memory is gone."""

COSMETIC = frozenset({"retag", "rescale", "none"})
"""Actions that lose nothing if they wait."""

ORIGIN_PLAN = "plan"
"""The check of proposals that are changes of a plan."""

_REPEATS = ("repeated", "near_repeat")
"""Kinds of junk that are many equal memories."""

MIN_ID = 8
"""Characters of the shortest id of a proposal."""


def effect_of(check: str, action: str) -> str:
    """Return what accepting a finding does.

    >>> effect_of("stale", "review"), effect_of("secret", "redact"), effect_of("too_long", "review")
    ('delete', 'redact', 'none')
    """
    return REVIEWED.get(check, "none") if action == "review" else action  # type: ignore[call-overload]  # any text


class Point(Struct, frozen=True):
    """One finding, or one change of a plan."""

    row: int
    """Place among the findings, or among the changes."""
    key: str
    check: str
    kind: str
    proposed: str
    """The action that the audit names."""
    action: str
    """Action that accepting takes."""
    id: str | None
    keeps: str | None
    text: str
    """Value or text that is judged, for groups."""
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
        What it consists of; those after the first of a memory are what other checks say against it.
    ids : tuple of str
        Memories that accepting changes or deletes.
    keeps : tuple of str
        Memories that stay, and say what those that go said.
    action : str
        Of the whole: a merge if one of the items is one, and a memory stays.
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
        if not others:  # by far the most
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
        elif action == "merge":  # nothing is kept
            action = "delete"
        return Proposal(proposal, tuple(items), ids, keeps, action)

    @property
    def first(self) -> Point:
        """The item that gives it check, kind and action."""
        return self.items[0]

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the decisions about it."""
        return frozenset(item.key for item in self.items)

    @property
    def n_members(self) -> int:
        """Memories that accepting changes, deletes or creates."""
        return len(self.ids) or len(self.items)


def items_of_audit(audit: Audit, decisions: Decisions) -> list[Point]:
    """Return the findings that a person can decide about; figures are not among them."""
    findings = audit.findings
    # sealed or not, "none" is what a check itself does not propose
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
    return list(_keep_first(points))


def _keep_first(points: Sequence[Point]) -> Iterator[Point]:
    """Let one of equal memories stay: the first one, with which the others are merged.

    It is a finding as well, and copies have another keeper: together they would delete all of them.
    """
    first_of = {item.id: item.keeps for item in points if item.kind in _REPEATS and item.keeps}
    firsts = {*first_of.values()}
    for item in points:
        is_equal = item.kind in _REPEATS or item.check == "exact_duplicate"
        is_first = item.id in firsts
        is_asked = item.check == "exact_duplicate" and item.id in first_of
        yield replace(item, action="none", keeps=None) if is_equal and (is_first or is_asked) else item


def items_of_plan(plan: Plan, decisions: Decisions) -> list[Point]:
    """Return the changes of a plan, each as an item."""
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
    """Group items into proposals; members that were decided on before stay apart from open ones.

    `apart` has the keys of items that a person took out of their group, `states` the decisions by key.
    """
    main, besides = _join_questions(items)
    groups: defaultdict[tuple[object, ...], list[Point]] = defaultdict(list)
    for item in main:
        is_alike = item.action == "rescale"  # a scale is right or wrong for all
        same: object = ""
        if not is_alike:
            same = item.text if item.group is None else item.group
        alone = item.key if item.key in apart else None
        # kinds of one cluster differ, as they say how a copy differs from its keeper
        kind = item.kind if item.group is None else ""
        groups[item.check, kind, effect_class(item), same, alone, states.get(item.key, "")].append(item)
    by_key: defaultdict[str, list[Point]] = defaultdict(list)  # equal texts of a file have equal keys
    owners = {item.key: min(each.key for each in group) for group in groups.values() for item in group}
    for item in main:
        by_key[owners[item.key]].append(item)
    for item in main:
        for one in besides.get(item.row, ()):
            # where the text that stays has the same finding, accepting the copy must not delete that, too
            by_key[owners.setdefault(one.key, owners[item.key])].append(one)
    length = MIN_ID
    while len({key[:length] for key in by_key}) < len(by_key):
        length += 2
    return [Proposal.of(key[:length], group) for key, group in by_key.items()]


def effect_class(item: Point) -> str:
    """Return what can be decided together: deletes and merges of a cluster are one decision."""
    if item.check == ORIGIN_PLAN:
        return "" if item.group is not None else str(item.row)
    return f"{item.proposed == 'review'} gone" if item.action in LAST_EFFECTS else item.action


_Claim = Literal["goes", "stays", "other"]
"""Claim of an item about its memory."""


def _claim_of(item: Point) -> _Claim:
    if item.action in LAST_EFFECTS and item.check != ORIGIN_PLAN and item.id is not None:
        return "goes"
    if item.action == "none" and effect_of(item.check, item.proposed) != "none":
        return "stays"
    return "other"


def _join_questions(items: Sequence[Point]) -> tuple[list[Point], Mapping[int, list[Point]]]:
    """Find which item stands for all that say that a memory should go: the one that is right most often."""
    first: dict[str, Point] = {}
    besides: defaultdict[int, list[Point]] = defaultdict(list)
    by_claim: defaultdict[_Claim, list[Point]] = defaultdict(list)
    for item in items:
        by_claim[_claim_of(item)].append(item)
    main, gone, kept = by_claim["other"], by_claim["goes"], by_claim["stays"]

    def rank(item: Point) -> tuple[float, str]:
        return -PRECISION.get((item.check, item.proposed), UNMEASURED), item.key

    for item in gone:
        known = first.setdefault(str(item.id), item)
        if known is not item and rank(item) < rank(known):
            first[str(item.id)] = item
    for item in gone:
        found = first[str(item.id)]
        if found is item:
            main.append(item)
        else:
            besides[found.row].append(item)
    settles = {item.keeps: item.row for item in reversed(main) if item.kind in _REPEATS}
    for item in kept:  # asked together with a delete of this memory, or of a copy that it keeps
        row = first[item.id].row if item.id in first else settles.get(item.id)
        if row is None:
            main.append(item)
        else:
            besides[row].append(item)
    return sorted(main, key=lambda item: item.row), besides
