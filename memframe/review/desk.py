"""Review: the queue of proposals, and what a person decides about them."""

from __future__ import annotations

import dataclasses
import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache, cached_property
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.audit import Audit
from memframe.audit.policy import Policy
from memframe.cleanup import plan_accepted
from memframe.decisions import Decision, Decisions, Verdict, read_until, read_user_name
from memframe.display import html_card, number_of, printable
from memframe.errors import FrameError, PlanError, check_kind
from memframe.files import write_own_file
from memframe.frames import gc_paused
from memframe.plan import Plan
from memframe.plan.change import list_some
from memframe.plan.permitted import keep_policy
from memframe.review.corrections import Edited, check_fields
from memframe.review.effects import AuditEffects, Effects, Taken, complete_plan, merged_ids
from memframe.review.page import review_html
from memframe.review.progress import ALONE, N_ALONE, THRESHOLD, bound_wrong_share, share_right
from memframe.review.proposals import (
    COSMETIC,
    LAST_EFFECTS,
    Point,
    Proposal,
    items_of_audit,
    items_of_plan,
    make_proposals,
)
from memframe.review.texts import ReviewTexts

QUEUE = {
    "proposal": "str",
    "check": "str",
    "kind": "str",
    "n_memories": "int64",
    "sources": "object",
    "action": "str",
    "before": "str",
    "after": "str",
    "keeps": "object",
    "reason": "str",
    "decision": "str",
    "note": "str",
}
"""Columns of `Review.queue`."""

PROGRESS = (
    *("check", "kind", "proposals", "left", "accepted", "edited", "rejected", "later"),
    *("judged", "right", "bound"),
)
"""Columns of `Review.progress`."""

_PLACE: Mapping[str, int] = {"": 0, "later": 1, "accepted": 2, "edited": 2, "rejected": 3}
"""Order of the queue by decision."""


MAX_SHOWN_BOUND = 0.2
"""Largest bound of the wrong share that is shown; fewer than 14 right decisions give a larger one."""


def has_kernel() -> bool:
    """Return True in a notebook; the IPython of a terminal has no kernel."""
    shell = sys.modules.get("IPython")
    return getattr(shell.get_ipython() if shell else None, "kernel", None) is not None


def _is_by_wording(one: Proposal) -> bool:
    """Return True for a delete that rests on wording alone, so that the audit proposes only a review."""
    return one.action in LAST_EFFECTS and one.first.proposed == "review"


class Review:
    """The proposals of an audit or of a plan, and the decisions about them.

    Made by `memframe.review`. Proposals to decide on are given as rows of `queue`, as a mask over it, or by their ids
    or unambiguous beginnings of ids.

    Attributes
    ----------
    origin : Audit or Plan
    decisions : Decisions
        The decisions, with their file.
    policy : Policy or None
        Protection and limits that decisions do not override.
    """

    def __init__(
        self,
        origin: Audit | Plan,
        decisions: Decisions,
        *,
        policy: Policy | None = None,
        now: datetime | None = None,
        make_desk: Callable[[Review], Any],
    ) -> None:
        self.origin = origin
        self.decisions = decisions
        self.policy = policy
        self._now = now
        self._apart: set[str] = set()
        self._calls: list[dict[str, tuple[Decision | None, Decision]]] = []
        self._make_desk = make_desk
        self._opened: dict[str, Edited] = {}
        self._followers: list[Callable[[], None]] = []
        is_plan = isinstance(origin, Plan)
        with gc_paused():
            self._items = items_of_plan(origin, decisions) if is_plan else items_of_audit(origin, decisions)  # type: ignore[arg-type]  # mypy does not narrow by `is_plan`
        self.texts = ReviewTexts(origin, self._items)
        self._proposals: dict[str, Proposal] = {}
        self._sorted: list[str] = []
        self._group()

    def __repr__(self) -> str:
        n_left = sum(self.state(one) in ("", "later") for one in self._proposals.values())
        return f"<memframe.Review of {number_of(len(self._proposals), 'proposal', 'proposals')}: {n_left:,} left>"

    def _repr_html_(self) -> str:
        counts = Counter(self.state(one) or "open" for one in self._proposals.values())
        return html_card("Review", {"proposals": len(self._proposals), **counts})

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the desk for a notebook with a kernel; IPython adds the card of `_repr_html_` for all others."""
        if not has_kernel():
            return {}
        bundle = self._desk._repr_mimebundle_() or {}
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        return {name: shown for name, shown in data.items() if name != "text/plain"}

    def _display_(self) -> Any:
        """Return the desk as a widget, for marimo."""
        return self._desk

    @cached_property
    def _desk(self) -> Any:
        return self._make_desk(self)

    def on_change(self, follow: Callable[[], None]) -> None:
        """Call a function after each decision, and after proposals were grouped anew."""
        self._followers.append(follow)

    def now(self) -> datetime:
        """Return the time as of which decisions are made."""
        return self._now or datetime.now(UTC)

    def _group(self) -> None:
        with gc_paused():
            at, last = self.now(), self.decisions.last
            states = {
                item.key: found.decision
                for item in self._items
                if item.key in last and (found := self.decisions.find(item.key, at))
            }
            made = make_proposals(self._items, apart=self._apart, states=states)
        self._proposals = {one.id: one for one in made}
        self._sorted = sorted(self._proposals)
        self._by_memory: defaultdict[str, list[Proposal]] | None = None

    # ---- proposals

    @property
    def proposals(self) -> list[Proposal]:
        """All proposals in the order of the queue: open ones by gain, then later, accepted and rejected ones."""
        right: Counter[tuple[str, str]] = Counter()
        wrong: Counter[tuple[str, str]] = Counter()
        states = {one.id: state for one in self._proposals.values() if (state := self.state(one))}
        for proposal, state in states.items():
            item = self._proposals[proposal].first
            if self.decisions.last[item.key].n_together > 1:
                continue
            (right if state == "accepted" else wrong)[item.check, item.kind] += state != "later"

        @cache
        def share_of(check: str, kind: str, proposed: str) -> float:
            return share_right(check, proposed, right[check, kind], wrong[check, kind])

        def order(one: Proposal) -> tuple[Any, ...]:
            item = one.items[0]
            # ids are keyed digests, so that their order is random within a kind, and the same for one file of decisions
            return (
                _PLACE[states.get(one.id, "")],
                one.action in COSMETIC,
                -one.n_members * share_of(item.check, item.kind, item.proposed),
                item.check,
                item.kind,
                one.id,
            )

        return sorted(self._proposals.values(), key=order)

    @property
    def proposals_by_id(self) -> Mapping[str, Proposal]:
        """All proposals by id, in no order; grouping anew makes another mapping."""
        return self._proposals

    def find(self, proposal: str) -> Proposal:
        """Return a proposal by an unambiguous beginning of its id.

        Raises
        ------
        PlanError
            There is none, or several.
        """
        start = bisect_left(self._sorted, proposal)
        found = [one for one in self._sorted[start : start + 2] if one.startswith(proposal)]
        if len(found) == 1 and proposal:
            return self._proposals[found[0]]
        longer = [one for one in self._sorted if proposal.startswith(one)] if proposal else []
        if not found and len(longer) == 1:  # ids were longer when the queue had more proposals
            one = self._proposals[longer[0]]
            if any(item.key.startswith(proposal) for item in one.items):
                return one
        if found and proposal:
            raise PlanError(f"{proposal!r} begins the ids of several proposals: {', '.join(found)}, ...")
        raise PlanError(
            f"there is no proposal {printable(proposal, 40)!r} in the queue; review.queue lists them (in a shell: "
            "memframe review --list)"
        )

    def proposals_of(self, ids: Iterable[str]) -> list[Proposal]:
        """Return the proposals about memories."""
        if self._by_memory is None:
            self._by_memory = defaultdict(list)
            for one in self._proposals.values():
                for memory_id in one.ids:
                    self._by_memory[memory_id].append(one)
        return list({one.id: one for memory_id in ids for one in self._by_memory.get(memory_id, ())}.values())

    def state(self, proposal: Proposal) -> str:
        """Return the decision about a proposal that holds, as a word; empty if it is open."""
        last = self.decisions.last
        if proposal.items[0].key not in last:
            return ""
        first = self._verdict(proposal.first.key)
        return first if all(self._verdict(item.key) == first for item in proposal.items[1:]) else ""

    def decision(self, proposal: Proposal) -> Decision | None:
        """Return the decision about a proposal, with note, person and time; None if it is open."""
        return self.decisions.find(proposal.first.key, self.now()) if self.state(proposal) else None

    def _verdict(self, key: str) -> str:
        found = self.decisions.find(key, self.now())
        return found.decision if found else ""

    @property
    def queue(self) -> pd.DataFrame:
        """The proposals, one row each, the next one to decide on first; decided ones are last.

        Columns ``proposal check kind n_memories sources action before after keeps reason decision note``. Texts are
        shortened, and secrets in them are masked. ``action`` is the effect of accepting.
        """
        with gc_paused():
            return self._queue()

    def _queue(self) -> pd.DataFrame:
        memories, place_of = self.texts.memories, self.texts.place_of
        sources = memories["source"].tolist() if "source" in memories.columns else []
        rows = []
        for one in self.proposals:
            found = self.decision(one)
            item = one.items[0]
            places = [place for i in one.ids if (place := place_of(i)) is not None] if sources else []
            names = dict.fromkeys(sources[place] for place in places if isinstance(sources[place], str))
            before, after = self.texts.sides(one)
            rows.append(
                (one.id, item.check, item.kind, one.n_members, tuple(names), one.action, before, after, one.keeps,
                 item.reason, found.decision if found else "", found.note if found else "")
            )  # fmt: skip
        columns = zip(QUEUE.items(), zip(*rows, strict=True) if rows else [()] * len(QUEUE), strict=True)
        return pd.DataFrame({name: pd.Series(list(cells), dtype=dtype) for (name, dtype), cells in columns})

    @property
    def progress(self) -> pd.DataFrame:
        """Counts of decisions by check and kind, with an upper bound of the share of wrong proposals.

        Columns ``check kind proposals left accepted edited rejected later judged right bound``. ``judged`` counts the
        proposals that were decided one by one, ``right`` those of them that were accepted. ``bound`` is the upper
        bound, at 95 %, of the share of wrong proposals, estimated from the judged ones about a single memory, whose
        order is random; an edited one counts as wrong. It is missing before the first decision. It bounds how many are
        wrong, and not how much harm one does.
        """
        counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for one in self._proposals.values():
            state = self.state(one)
            count = counts[one.first.check, one.first.kind]
            count.update(["proposals", state, *(["left"] if state in ("", "later") else [])])
            is_decided = state in ("accepted", "edited", "rejected")
            if is_decided and self.decisions.last[one.first.key].n_together == 1:
                count.update(["judged", *(["right"] if state == "accepted" else [])])
                if one.n_members == 1:
                    count.update(["sampled", *(["wrong"] if state != "accepted" else [])])
        rows = [
            (*kind, *(count[name] for name in PROGRESS[2:-1]),
             bound_wrong_share(count["sampled"], count["wrong"]) if count["sampled"] else np.nan)
            for kind, count in sorted(counts.items())
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=list(PROGRESS)).astype(
            {"check": "str", "kind": "str", "bound": "float64"}
        )

    def remaining(self, check: str, kind: str, *, threshold: float = THRESHOLD) -> list[str]:
        """Return the open proposals of a kind that may be accepted at once, as `find_acceptable` finds them."""
        return self._find_acceptable(
            (
                one
                for one in map(self._proposals.__getitem__, self._sorted)
                if (one.first.check, one.first.kind) == (check, kind)
            ),
            threshold,
        )

    def find_acceptable(self, which: Any, *, threshold: float = THRESHOLD) -> list[str]:
        """Return those of some proposals that may be accepted at once: open ones of which few can be wrong.

        These are copies that a cleanup deletes or merges by default, as long as none of their kind was rejected or
        edited, and proposals about a single memory of a kind whose ``bound`` is at most the threshold (see `progress`).
        Left out are protected memories, and values that no memory would hold any more if all proposals were accepted
        (see `Plan.losses`). Deletes by wording alone are among them up to the ``delete_share`` of the policy; without
        one, none is.
        """
        return self._find_acceptable(self._select(which), threshold)

    def _find_acceptable(self, proposals: Iterable[Proposal], threshold: float) -> list[str]:
        is_open = [one for one in proposals if one.action != "none" and not self.state(one)]
        bounds = self._bounds_of(is_open)
        chosen = []
        for one in is_open:
            elsewhere, here = bounds[one.id]
            # the bound of this store is estimated from proposals about a single memory
            is_bound = elsewhere <= threshold or (one.n_members == 1 and here <= threshold)
            if is_bound and not self._is_protected(one):
                chosen.append(one)
        by_wording = [one for one in chosen if _is_by_wording(one)]
        beyond_share = {one.id for one in by_wording[self._count_free_deletes() :]}
        chosen = [one for one in chosen if one.id not in beyond_share]
        lossy = self._find_lossy(chosen)
        return [one.id for one in chosen if not lossy.intersection(one.ids)]

    def explain_bound(self, proposal: str) -> str:
        """Describe how many of the proposals like this one can be wrong; empty if nothing is known yet."""
        one = self.find(proposal)
        elsewhere, here = self._bounds_of([one])[one.id]
        if elsewhere < 1 and not here < elsewhere:  # `here` is NaN before the first decision
            return (
                f"A cleanup does this without being asked: of {N_ALONE} in other stores none was wrong, so at most "
                f"{100 * elsewhere:.1f} % are (95 % confidence)."
            )
        if not here <= MAX_SHOWN_BOUND:
            return ""
        return (
            f"By your decisions so far, at most {100 * here:.1f} % of this kind are wrong (95 % confidence)."
        )

    def _bounds_of(self, proposals: Iterable[Proposal]) -> dict[str, tuple[float, float]]:
        """Return two upper bounds of the wrong share of each proposal: as measured elsewhere, and in this store.

        The former is 1 once a proposal of the kind was wrong here, and for kinds that are not `ALONE`; the latter is
        NaN before the first decision.
        """
        frame = self.progress
        n_wrong = frame["rejected"] + frame["edited"]
        known = dict(
            zip(
                zip(frame["check"], frame["kind"], strict=True),
                zip(n_wrong.tolist(), frame["bound"].tolist(), strict=True),
                strict=True,
            )
        )
        bounds = {}
        for one in proposals:
            item = one.first
            n_wrong_here, here = known[item.check, item.kind]
            same_check = (each for each in one.items if each.check == item.check and each.action != "none")
            is_alone = not n_wrong_here and all((each.check, each.proposed) in ALONE for each in same_check)
            bounds[one.id] = (bound_wrong_share(N_ALONE) if is_alone else 1.0, here)
        return bounds

    def _is_protected(self, one: Proposal) -> bool:
        protect = self.policy.protect if self.policy else None
        return protect is not None and any(protect.find_reason(i, self.texts.fields_of(i)) for i in one.ids)

    def _count_free_deletes(self) -> int:
        """Count the further deletes by wording that the ``delete_share`` of the policy allows."""
        share = self.policy.limits.delete_share if self.policy else None
        accepted = (one for one in self._proposals.values() if self.state(one) == "accepted")
        n_taken = sum(one.n_members for one in accepted if _is_by_wording(one))
        return max(0, int((share or 0) * len(self.texts.memories)) - n_taken)

    def _find_lossy(self, chosen: Sequence[Proposal]) -> set[str]:
        """Find memories with values that would be lost if proposals were accepted besides those that already are."""
        if isinstance(self.origin, Plan):
            return {*self._planned_losses}
        together = self._take().join(item for one in chosen for item in one.items)
        return {loss.id for loss in self._effects.find_losses(together).values()}

    def find_losses(self, proposal: str) -> list[str]:
        """Return the values that no memory would hold any more if a proposal were accepted with the accepted ones."""
        one = self.find(proposal)
        if isinstance(self.origin, Plan):
            lost = self.origin.losses
            return lost["value"][lost["id"].isin(one.ids)].tolist()
        return [loss.value for loss in self._effects.find_added_losses(one.items, self._take())]

    @cached_property
    def _effects(self) -> AuditEffects:
        return AuditEffects(self.origin, self.texts, self.policy)  # type: ignore[arg-type]  # of a plan, it is known

    @cached_property
    def _planned_losses(self) -> Counter[str]:
        return Counter(self.origin.losses["id"].tolist() if isinstance(self.origin, Plan) else ())

    # ---- decisions

    def accept(self, which: Any, note: str = "", until: str | date | None = None) -> None:
        """Accept proposals, so that `plan` has them.

        Raises
        ------
        PlanError
            A proposal is not in the queue, or accepting it would do nothing.
        """
        chosen = self._select(which)
        without_effect = [one.id for one in chosen if one.action == "none"]
        if without_effect:
            raise PlanError(
                f"accepting {list_some(without_effect)} would do nothing, because only a person knows what is right: "
                "edit or reject"
            )
        self._decide(chosen, "accepted", note, until)

    def reject(self, which: Any, note: str = "", until: str | date | None = None) -> None:
        """Reject proposals, which are then not asked again until the text changes, or ``until`` a day."""
        self._decide(self._select(which), "rejected", note, until)

    def later(self, which: Any, note: str = "", until: str | date | None = None) -> None:
        """Put proposals off, to the end of the open ones in the queue."""
        self._decide(self._select(which), "later", note, until)

    def reset(self, which: Any) -> None:
        """Open proposals again."""
        self._decide(self._select(which), "open", "", None)

    def edit(self, proposal: str, *, note: str = "", until: str | date | None = None, **fields: Any) -> None:
        """Accept a proposal with other values for the memory that stays.

        This is the memory that is kept in place of a copy or an older version, or the redacted or retagged one. A
        memory that would be deleted although no other one is kept for it stays, with these values.

        Parameters
        ----------
        proposal : str
        note : str
        until : str, date or datetime, optional
        **fields
            ``content title summary tags importance confidence source``, checked like edited cells.

        Raises
        ------
        PlanError
            A value cannot be sent, or the proposal is about several memories that stay.
        """
        (one,) = self._select(proposal)
        values = check_fields(fields)
        targets = one.keeps if one.action in LAST_EFFECTS and one.keeps else one.ids
        if len(targets) != 1:
            raise PlanError(
                f"proposal {one.id} is about {number_of(len(targets), 'memory', 'memories')} that stay: take one out "
                f"with review.split({one.id!r}, memory_id), and edit that"
            )
        self._decide([one], "edited", note, until, Edited(targets[0], values))

    def split(self, proposal: str, memory_id: str | None = None) -> str:
        """Take a memory out of a proposal, to decide on it separately; without an id, separate all of them.

        Return the id of the new proposal of the memory, or of the first memory.
        """
        one = self.find(proposal)
        keys = {item.key for item in one.items if memory_id in (None, item.id)}
        if not keys:
            raise PlanError(
                f"proposal {one.id} does not name memory {memory_id!r}; it names {list_some(one.ids)}"
            )
        if len(one.ids) > 1 and len({item.key for item in one.items if item.check == one.first.check}) == 1:
            raise PlanError(
                f"the memories of proposal {one.id} have the same text and no ids, as they are of a file: decide on "
                "them as a whole"
            )
        if isinstance(self.origin, Plan) and one.first.group is not None:
            raise PlanError(
                f"the changes of proposal {one.id} hold together: accept, edit or reject it as a whole"
            )
        self._apart |= keys
        self._group()
        self._tell()
        return next(
            other.id for other in self._proposals.values() if {item.key for item in other.items} & keys
        )

    def undo(self) -> list[str]:
        """Take back the decisions of the last call on this desk, and return the ids of their proposals.

        Decisions that another desk has made since then stay.

        Raises
        ------
        PlanError
            No decision was made on this desk.
        """
        if not self._calls:
            raise PlanError("there is nothing to undo: no decision was made on this desk")
        before, now = self._calls[-1], self.now()
        self.decisions.refresh()
        lines = []
        for key, (decision, own) in before.items():
            last = self.decisions.last[key]
            if last != own:
                continue
            # the earlier decision is written again unchanged, so that the call that made it can be undone as well
            lines.append(decision or replace(last, decision="open", at=now, edited=None))
        self.decisions.write(lines)
        self._calls.pop()
        self._tell()
        return [one.id for one in self._proposals.values() if not before.keys().isdisjoint(one.keys)]

    def _tell(self) -> None:
        for follow in self._followers:
            follow()

    def _select(self, which: Any) -> list[Proposal]:
        """Find the proposals that `which` names: rows of the queue, a mask over it, or ids."""
        if isinstance(which, str):
            return [self.find(which)]
        if isinstance(which, pd.DataFrame):
            if "proposal" not in which.columns:
                raise PlanError("pass rows of review.queue, with the column proposal")
            which = which["proposal"]
        if isinstance(which, pd.Series | np.ndarray) and pd.api.types.is_bool_dtype(which):
            queue = self.proposals
            if len(which) != len(queue):
                raise PlanError(
                    f"the mask has {len(which):,} rows, review.queue {len(queue):,}: make a new mask"
                )
            return [queue[place] for place in np.flatnonzero(np.asarray(which, bool))]
        if not isinstance(which, Iterable):
            raise PlanError(
                f"pass rows of review.queue, a mask or ids of proposals, not {type(which).__name__}"
            )
        ids = list(which)
        if no_ids := [one for one in ids if not isinstance(one, str)]:
            raise PlanError(f"{no_ids[0]!r} is not the id of a proposal; review.queue lists them")
        return list({(one := self.find(text)).id: one for text in ids}.values())

    def _decide(
        self,
        chosen: Sequence[Proposal],
        verdict: Verdict,
        note: str,
        until: str | date | None,
        edited: Edited | None = None,
    ) -> None:
        check_kind("note", note, str, error=PlanError)
        at, end, by = self.now(), read_until(until), read_user_name()
        lines = {
            item.key: Decision(
                key=item.key, decision=verdict, check=item.check, kind=item.kind,
                id=item.id, by=by, at=at, until=end, note=note, n_together=len(chosen),
            )
            for one in chosen
            for item in one.items
        }  # fmt: skip
        if edited is not None:
            key = chosen[0].first.key
            sealed = self.decisions.seal(key, {"id": edited.id, "fields": edited.fields})
            lines[key] = replace(lines[key], edited=sealed)
        self.decisions.refresh()  # another desk may have decided on the same
        before = {key: (self.decisions.last.get(key), line) for key, line in lines.items()}
        self.decisions.write(lines.values())
        if lines:
            self._calls.append(before)
            self._tell()

    # ---- the plan

    def plan(self, access: Access | None = None) -> Plan:
        """Plan the accepted and edited proposals, and nothing else.

        Parameters
        ----------
        access : Access, optional
            Access to the user whose memories were audited. It may be left out for the review of a plan. A file has
            none: `clean_file` applies its plan.

        Returns
        -------
        Plan
            Its notes count the proposals that are not in it, and name accepted ones that cannot be applied. Changes of
            protected memories are left out, and named in ``Plan.left``.

        Raises
        ------
        PlanError
            A memory was changed since the audit, or edited in one proposal and deleted by another; or the plan
            exceeds the limits of the policy, or has a policy and no access.
        """
        self.decisions.refresh()
        taken = self._take()
        plan = self._plan_of(taken, access)
        if taken.edits and access is None and plan.file is None:
            raise PlanError("an edited proposal needs the access: review.plan(access)")
        plan = complete_plan(plan, taken, access, self.texts.memories)
        if self.policy is not None:
            if access is None and plan.file is None:
                raise PlanError("the policy needs what the service holds now: review.plan(access)")
            plan = keep_policy(self.texts.memories if access is None else access, plan, self.policy)
        note = self._describe_left()
        return replace(plan, notes=(*plan.notes, note)) if note else plan

    def _describe_left(self) -> str:
        """Describe how many proposals a plan leaves out; empty if it has all of them."""
        counts = Counter(self.state(one) or "not decided" for one in self._proposals.values())
        left = [f"{counts[name]:,} {name}" for name in ("not decided", "later", "rejected") if counts[name]]
        n_all = number_of(len(self._proposals), "proposal", "proposals")
        return f"Of {n_all} in the review, this plan leaves out: {', '.join(left)}." if left else ""

    def _take(self) -> Taken:
        """Return the points that are accepted now, and the edits."""
        taken = Taken([], [], [])
        for item, found, is_done in self._find_accepted():
            if found.edited is not None:
                taken.edits.append(self._open_edit(found))
            if is_done:
                (taken.gone if item.action in LAST_EFFECTS else taken.changed).append(item)
        return taken

    def _open_edit(self, found: Decision) -> Edited:
        known = self._opened.get(found.edited or "")
        if known is None:
            fields = self.decisions.open(found)
            values = {k: tuple(v) if isinstance(v, list) else v for k, v in fields["fields"].items()}
            known = self._opened[found.edited or ""] = Edited(fields["id"], values)
        return known

    def _find_accepted(self) -> Iterator[tuple[Point, Decision, bool]]:
        """Yield the accepted and edited points, each with its decision, and True if its own action is carried out."""
        now = self.now()
        for item in self._items:
            found = self.decisions.find(item.key, now)
            if found is not None and found.decision in ("accepted", "edited"):
                is_kept = found.decision == "edited" and item.action in LAST_EFFECTS and item.keeps is None
                yield item, found, item.action != "none" and not is_kept

    def count_effects(self) -> Effects:
        """Count the effects of the plan of the decisions so far.

        For the review of a plan, the losses are those of the whole plan at the memories of accepted changes.
        """
        taken = self._take()
        gone = {item.id or item.key for item in taken.gone}
        changed = {item.id or item.key for item in taken.changed} | {edit.id for edit in taken.edits}
        changed |= {item.keeps for item in taken.gone if item.keeps and item.action == "merge"}
        if isinstance(self.origin, Plan):
            taken_ids = gone | changed
            n_lost = sum(n for one, n in self._planned_losses.items() if one in taken_ids)
            n_memories = self.origin.n_compared
        else:
            n_lost = len(self._effects.find_losses(taken))
            n_memories = len(self.texts.memories)
        return Effects(n_memories, len(gone), len(changed - gone), n_lost)

    def _plan_of(self, taken: Taken, access: Access | None) -> Plan:
        if isinstance(self.origin, Plan):
            rows = {item.row for item in (*taken.gone, *taken.changed)}
            out = [change for row, change in enumerate(self.origin.records) if row not in rows]
            ids = [one for change in out if (one := change.id or change.restores) is not None]
            plan = self.origin.leave_out(ids, reason="not accepted in the review") if ids else self.origin
            # creates have no memory id by which they could be left out, so they are compared as objects
            left_out = {id(change) for change in out}
            return replace(
                plan, records=tuple(change for change in plan.records if id(change) not in left_out)
            )
        if access is None and self.origin.is_stored:
            raise PlanError("give the access to the audited memories: review.plan(access)")
        actions = np.full(len(self.origin.findings), "none", dtype=object)
        for item in (*taken.gone, *taken.changed):
            actions[item.row] = item.action
        findings = self.origin.findings.assign(action=pd.array(actions, dtype="str"))
        audit = dataclasses.replace(self.origin, findings=findings)
        return plan_accepted(access, audit, merged_ids(taken))  # a person has decided on each

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write the decisions, with person, time and reason, as one page without scripts and texts of memories.

        An earlier report at `path` is replaced, any other file is not.

        Raises
        ------
        FrameError
            The file cannot be written, or is something else.
        """
        decided = [(one, found) for one in self.proposals if (found := self.decision(one))]
        keys = {item.key for item in self._items}
        # a finding that was accepted and is no longer found was applied, or its text has changed since
        applied = [
            found
            for key, found in self.decisions.last.items()
            if found.decision in ("accepted", "edited") and key not in keys
        ]
        page = review_html(decided, applied, self.progress, self.now())
        write_own_file(path, page.encode(), "report", error=FrameError)
