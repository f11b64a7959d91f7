"""The review desk in a notebook, on anywidget: answers the requests of the page in `desk.js`.

Texts of memories are sent as custom messages only and are never state of the widget, because a notebook may save that.
The page sends ``{ask, view, to, ...}``, and gets ``{view, to, answer}`` or ``{view, to, error}``; ``{changed}`` goes to
all pages, and names the one that made the change. A decision names the proposal that was on the screen and, as
``seen``, a digest of its items, so that a proposal which was grouped anew since then is not decided on unseen.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any
from weakref import WeakSet

from anywidget import AnyWidget

from memframe.audit import Audit
from memframe.display import escape_invisible, number_of, printable
from memframe.errors import MemframeError, PlanError
from memframe.plan.change import FIELDS, Value
from memframe.review.desk import Review
from memframe.review.detail import OFFER_WARNING, Piece, describe_choice, show_proposal, shown_ids, title_of
from memframe.review.filters import FACETS, Filters
from memframe.review.proposals import Proposal
from memframe.review.texts import MAX_QUEUE_CHARS

MAX_FIELD_CHARS = 5_000
"""Characters of a field that are shown unless the page asks for the whole."""

MAX_PIECES = 5_000
"""Pieces of a field that a page draws without delay; the rest is sent as one piece."""

MAX_FACET_VALUES = 12
"""Values of a facet that are listed, those of the most proposals first."""

N_SEARCHED = 20
"""Proposals whose memories are searched for secrets at once."""

MAX_VIEWS = 20
"""Pages whose lists are kept; each reload is a new page."""

ASKS_OF_LIST = ("settle", "summary", "page", "show", "undo", "accept_rest", "weigh_all", "decide_all")
"""Requests about the list of a page; each is a method of the desk."""

ASKS_OF_PROPOSAL = ("describe", "fields", "accept", "reject", "later", "reset", "edit", "split")
"""Requests about the proposal on the screen; each is a method of the desk."""

_logger = logging.getLogger(__name__)

_OPEN: WeakSet[Desk] = WeakSet()
"""Desks of this process; those on the same file of decisions follow each other."""


class _Lists(dict[str, list[Proposal]]):
    """The listed proposals by page; their order stays until the page asks for another one."""

    def __setitem__(self, view: str, listed: list[Proposal]) -> None:
        super().__setitem__(view, listed)
        while len(self) > MAX_VIEWS:
            del self[next(iter(self))]

    def __missing__(self, view: str) -> list[Proposal]:
        raise PlanError("this page is not known any more: reload it")


class Desk(AnyWidget):
    """The desk of a review, as a widget.

    Parameters
    ----------
    review : Review
    """

    _esm = Path(__file__).with_name("desk.js").read_text("utf-8")
    _css = Path(__file__).with_name("desk.css").read_text("utf-8")

    def __init__(self, review: Review) -> None:
        super().__init__()
        self._review = review
        self._lists = _Lists()
        self._grouped = review.proposals_by_id
        self._filters = Filters(review)
        self._asked_by = ""
        self._lock = RLock()  # some kernels handle messages in threads of their own
        review.on_change(self._follow)
        self.on_msg(self._receive)
        _OPEN.add(self)

    # ---- messages

    def _receive(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        back = {"view": content.get("view"), "to": content.get("to")}
        try:
            with self._lock:
                self.send({**back, "answer": self._answer(content)})
        except MemframeError as error:
            self.send({**back, "error": escape_invisible(str(error))})
        except Exception as error:  # a notebook shows no error of a callback
            _logger.debug("the desk could not answer", exc_info=True)
            self.send({**back, "error": f"An unexpected error occurred ({type(error).__name__})."})

    def _answer(self, content: Mapping[str, Any]) -> Any:
        details = {name: value for name, value in content.items() if name not in ("ask", "view", "to")}
        self.catch_up()
        ask, self._asked_by = content.get("ask"), str(content["view"])
        try:
            if ask in ASKS_OF_LIST:
                return getattr(self, f"_{ask}")(self._asked_by, **details)
            if ask in ASKS_OF_PROPOSAL:
                return getattr(self, f"_{ask}")(
                    self._find(details.pop("proposal"), details.pop("seen")), **details
                )
        finally:
            self._asked_by = ""
        raise PlanError(f"the desk cannot answer {printable(str(ask))!r}: reload the page")

    def _find(self, proposal: str, seen: str) -> Proposal:
        """Return a proposal as it was seen.

        Raises
        ------
        PlanError
            It has other members now.
        """
        one = self._review.find(proposal)
        if _digest(one) != seen:
            raise PlanError("its group has changed since it was shown: look at it again")
        return one

    def follows(self, path: Path) -> bool:
        """Return True if decisions are read from this file."""
        return self._review.decisions.path == path

    def catch_up(self) -> None:
        """Read the decisions that others made in the same file, and tell the pages."""
        if self._review.decisions.refresh():
            self._tell()

    def _follow(self) -> None:
        """Update the lists after a change of the review by this desk or by a cell of the notebook."""
        with self._lock:
            proposals = self._review.proposals_by_id
            if proposals is not self._grouped:
                self._grouped = proposals
                owners = {key: one for one in proposals.values() for key in one.keys}
                for listed in self._lists.values():
                    listed[:] = {(own := owners[i.key]).id: own for one in listed for i in one.items}.values()
            self._tell()
        path = self._review.decisions.path
        for other in list(_OPEN):
            if other is not self and path is not None and other.follows(path):
                other.catch_up()

    def _tell(self) -> None:
        self.send({"changed": self._asked_by or "elsewhere"})

    # ---- the list

    def _settle(self, view: str, filter: Mapping[str, list[str]], search: str) -> dict[str, Any]:  # noqa: A002 - a word of the page
        """List the proposals anew, in the order of the queue as it is now."""
        listed = self._filters.find(filter, search)
        self._lists.pop(view, None)
        self._lists[view] = listed
        return self._summary(view, filter, search, listed[0].id if listed else "")

    def _summary(
        self,
        view: str,
        filter: Mapping[str, list[str]],  # noqa: A002 - a word of the page
        search: str,
        proposal: str,
    ) -> dict[str, Any]:
        review = self._review
        counts = Counter(review.state(one) for one in review.proposals_by_id.values())
        places = (place for place, one in enumerate(self._lists[view]) if one.id == proposal)
        place = next(places, None)
        n_total = counts.total()
        n_decided = n_total - counts[""] - counts["later"]
        by_state = [
            f"{counts[name]:,} {name}" for name in ("accepted", "edited", "rejected", "later") if counts[name]
        ]
        return {
            "n_total": n_total,
            "n_decided": n_decided,
            "n_shown": len(self._lists[view]),
            "place": place,
            "progress": f"{n_decided:,} of {n_total:,} decided"
            + (f": {', '.join(by_state)}" if by_state else ""),
            "preview": [
                self._preview(),
                *(
                    [f"All are decided: {self._plan_call()} makes the plan."]
                    if 0 < n_total == n_decided
                    else []
                ),
            ],
            "facets": self._facets(filter, search),
            **self._bound(None if place is None else self._lists[view][place]),
        }

    def _preview(self) -> str:
        try:
            effects = self._review.count_effects()
        except MemframeError as error:  # for instance, an edit was sealed on another machine
            return f"There is no plan yet: {escape_invisible(str(error))}"
        if not effects.n_deleted and not effects.n_changed:
            return "The plan would change nothing yet."
        return f"The plan so far: {effects}."

    def _plan_call(self) -> str:
        origin = self._review.origin
        return "review.plan(access)" if isinstance(origin, Audit) and origin.is_stored else "review.plan()"

    def _bound(self, one: Proposal | None) -> dict[str, Any]:
        """Return a bound of the wrong proposals of a kind, and an offer to accept the rest once the bound is low."""
        if one is None:
            return {"proposal": "", "bound": "", "offer": None}
        item = one.first
        rest = self._review.remaining(item.check, item.kind)
        offer = {
            "check": item.check,
            "kind": item.kind,
            "n": len(rest),
            "label": f"Accept the remaining {len(rest):,} of {title_of(self._review, item.check)} ({item.kind})",
            "warning": OFFER_WARNING,
        }
        has_more = len(rest) > 1  # a single one is accepted by its own key
        bound = self._review.explain_bound(one.id)
        return {"proposal": one.id, "bound": bound, "offer": offer if has_more else None}

    def _facets(self, chosen: Mapping[str, list[str]], search: str) -> list[dict[str, Any]]:
        counts = self._filters.count(chosen, search)
        groups = []
        for name in FACETS:
            most = [value for value, _ in counts[name].most_common(MAX_FACET_VALUES)]
            listed = list(dict.fromkeys([*chosen.get(name, ()), *most]))
            rows = [
                {
                    "value": value,
                    "label": title_of(self._review, value) if name == "check" else escape_invisible(value),
                    "n": counts[name][value],
                    "chosen": value in chosen.get(name, ()),
                }
                for value in (sorted(listed) if name == "year" else listed)
                if value
            ]
            if rows:
                groups.append({"name": name, "values": rows})
        return groups

    # ---- the shown proposals

    def _page(self, view: str, start: int, n: int) -> dict[str, Any]:
        return {"rows": [self._row(one) for one in self._lists[view][start : start + n]]}

    def _row(self, one: Proposal) -> dict[str, str]:
        before, after = self._review.texts.sides(one)
        n = number_of(one.n_members, "memory", "memories")
        label = f"{title_of(self._review, one.first.check)} ({one.first.kind}), {n}"
        return {
            "id": one.id,
            "title": before or after or printable(one.first.reason, MAX_QUEUE_CHARS),
            "label": escape_invisible(label),
            "decision": self._review.state(one),
        }

    def _show(self, view: str, place: int) -> dict[str, Any]:
        listed = self._lists[view]
        one = listed[place]
        following = (i for each in listed[place : place + N_SEARCHED] for i in shown_ids(each))
        self._review.texts.hidden_of(shown_ids(one), following=following)
        return self._describe(one)

    def _describe(self, one: Proposal, *, reveal: bool = False, whole: bool = False) -> dict[str, Any]:
        shown = show_proposal(self._review, one.id, reveal=reveal, whole=whole)
        return {
            "id": shown.id,
            "seen": _digest(one),
            "heading": shown.heading,
            "reason": shown.reason,
            "accepting": shown.accepting,
            "losses": shown.losses,
            "decision": shown.decision,
            "note": shown.note,
            "others": [*([f"And {shown.n_more:,} more memories."] if shown.n_more else []),
                       *(f"Also: {other}" for other in shown.others)],
            "has_secrets": shown.has_secrets,
            "can_accept": one.action != "none",
            "can_edit": bool(shown.editable),
            "can_split": shown.can_split,
            "members": [
                {
                    "ids": member.ids,
                    "role": member.role,
                    "facts": member.facts,
                    "fields": [
                        {"name": field.name, **fold_pieces(field.pieces, None if whole else MAX_FIELD_CHARS)}
                        for field in member.fields
                    ],
                }
                for member in shown.members
            ],
        }  # fmt: skip

    def _fields(self, one: Proposal) -> dict[str, Any]:
        """Return the fields that an edit would write, as texts: one tag on a line."""
        shown = show_proposal(self._review, one.id)
        values = {name: value for name, value in shown.editable.items() if name in FIELDS}
        return {"fields": [{"name": name, "value": _write(value)} for name, value in values.items()]}

    # ---- decisions

    def _accept(self, one: Proposal, note: str) -> dict[str, Any]:
        self._review.accept(one.id, note)
        return {"row": self._row(one)}

    def _reject(self, one: Proposal, note: str) -> dict[str, Any]:
        self._review.reject(one.id, note)
        return {"row": self._row(one)}

    def _later(self, one: Proposal, note: str) -> dict[str, Any]:
        self._review.later(one.id, note)
        return {"row": self._row(one)}

    def _reset(self, one: Proposal) -> dict[str, Any]:
        self._review.reset(one.id)
        return {"row": self._row(one)}

    def _edit(self, one: Proposal, note: str, values: Mapping[str, str]) -> dict[str, Any]:
        fields: dict[str, Any] = {name: _read(name, text) for name, text in values.items()}
        self._review.edit(one.id, note=note, **fields)
        return {"row": self._row(one)}

    def _split(self, one: Proposal, memory: str | None = None) -> dict[str, Any]:
        self._review.split(one.id, memory)
        return self._regrouped(self._asked_by, "Taken out." if memory else "Opened: decide on each memory.")

    def _undo(self, view: str) -> dict[str, Any]:
        taken_back = {*self._review.undo()}
        found = next((n for n, one in enumerate(self._lists[view]) if one.id in taken_back), None)
        return self._regrouped(view, "Undone: the last decision.") | {"place": found}

    def _accept_rest(self, view: str, note: str, check: str, kind: str, n: int) -> dict[str, Any]:
        rest = self._review.remaining(check, kind)
        if len(rest) != n:
            raise PlanError(f"it would accept {len(rest):,} and not {n:,} now: look at the offer again")
        self._review.accept(rest, note)
        return self._regrouped(view, f"Accepted {len(rest):,}.")

    def _weigh_all(self, view: str, what: str) -> dict[str, Any]:
        """Return the question whether to accept or reject all open proposals of the list at once."""
        chosen = self._choose_all(view, what)
        n_open = sum(self._review.state(one) in ("", "later") for one in self._lists[view])
        about, lines = describe_choice(self._review, chosen, n_open)
        return {
            "n": len(chosen),
            "seen": _digest_all(chosen),
            "heading": f"{what.capitalize()} {about}?",
            "lines": lines,
        }

    def _decide_all(self, view: str, what: str, note: str, seen: str) -> dict[str, Any]:
        chosen = self._choose_all(view, what)
        if _digest_all(chosen) != seen:
            raise PlanError("what would be decided has changed since you were asked: ask again")
        (self._review.accept if what == "accept" else self._review.reject)([one.id for one in chosen], note)
        done = "Accepted" if what == "accept" else "Rejected"
        return self._regrouped(view, f"{done} {len(chosen):,}; u undoes it.")

    def _choose_all(self, view: str, what: str) -> list[Proposal]:
        listed = self._lists[view]
        if what == "accept":
            return [self._review.find(i) for i in self._review.find_acceptable([one.id for one in listed])]
        return [one for one in listed if self._review.state(one) in ("", "later")]

    def _regrouped(self, view: str, sentence: str) -> dict[str, Any]:
        return {"sentence": sentence, "n": len(self._lists[view])}


def _digest(one: Proposal) -> str:
    """Return a digest of the items of a proposal and of its effect."""
    return sha256(" ".join([one.action, *one.keeps, *sorted(one.keys)]).encode()).hexdigest()[:32]


def _digest_all(chosen: Iterable[Proposal]) -> str:
    return sha256(" ".join(map(_digest, chosen)).encode()).hexdigest()[:32]


def fold_pieces(pieces: Sequence[Piece], max_chars: int | None) -> dict[str, Any]:
    """Return pieces in the form for the page, and the number of characters that are left out.

    >>> fold_pieces([Piece("Likes tea"), Piece(" and rain", "added")], 12)
    {'pieces': [{'text': 'Likes tea', 'as': 'same'}, {'text': ' an', 'as': 'added'}], 'n_more': 6}
    """
    shown: list[dict[str, str]] = []
    n_remaining = max_chars if max_chars is not None else sum(len(piece.text) for piece in pieces)
    n_more = 0
    for piece in pieces:
        text = piece.text[:n_remaining]
        n_more += len(piece.text) - len(text)
        n_remaining -= len(text)
        if text and len(shown) < MAX_PIECES:
            shown.append({"text": text, "as": piece.kind})
        elif text:  # a page needs many seconds to draw a hundred thousand pieces
            shown[-1]["text"] += text
    return {"pieces": shown, "n_more": n_more}


def _write(value: Value) -> str:
    if value is None:
        return ""
    return "\n".join(value) if isinstance(value, tuple) else str(value)


def _read(name: str, text: str) -> Value:
    if name == "tags":
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    if name in ("importance", "confidence"):
        try:
            return float(text)
        except ValueError:
            raise PlanError(f"{name} is no number: {printable(text)!r}") from None
    return text
