"""From proposals to a plan by a person's decisions: in code, in a terminal and in a notebook, and they last."""

from __future__ import annotations

import sys
from datetime import datetime
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING

from memframe.audit import Audit
from memframe.audit.policy import PolicyOption, read_policy
from memframe.decisions import Decision, Decisions
from memframe.errors import PlanError, check_kind
from memframe.plan import Plan
from memframe.review.desk import Review
from memframe.review.proposals import Point, Proposal

if TYPE_CHECKING:
    from memframe.review.widget import Desk

__all__ = ["Decision", "Decisions", "Point", "Proposal", "Review", "review"]


def review(
    audit_or_plan: Audit | Plan,
    *,
    decisions: str | PathLike[str] | None = None,
    policy: PolicyOption = None,
    now: datetime | None = None,
) -> Review:
    """Review what an audit proposes, or what a plan would do. Nothing is written until `apply_plan`.

    Parameters
    ----------
    audit_or_plan : Audit or Plan
    decisions : str or Path, optional
        File that keeps the decisions; it is created if there is none. Without it they end with the process.
    policy : Policy, Path or None
        Protection and limits that decisions do not override. `Review.plan` leaves out changes of protected memories,
        and is refused beyond the limits.
    now : datetime, optional
        Moment at which decisions are made, and by which earlier ones have ended; by default the present.

    Returns
    -------
    Review

    Raises
    ------
    ConfigError
        The policy cannot be read.
    JournalError
        The file of decisions cannot be read, or one of its lines is damaged.

    Examples
    --------
    >>> import pandas as pd
    >>> from memframe import audit_memories
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": ["Likes tea", "Likes tea", "Door code: 2580#"]})
    >>> desk = review(audit_memories(memories))
    >>> desk.queue[["check", "action", "n_memories"]].values.tolist()
    [['exact_duplicate', 'delete', 1], ['secret', 'redact', 1]]
    >>> desk.accept(desk.queue.query("check == 'exact_duplicate'"))
    >>> desk.reject(desk.queue.proposal[desk.queue.check == "secret"], note="changed since")
    >>> desk.queue["decision"].tolist()
    ['accepted', 'rejected']
    """
    check_kind("audit_or_plan", audit_or_plan, Audit, Plan, error=PlanError)
    rules = read_policy(policy)
    made = Decisions(decisions, make=True)
    return Review(audit_or_plan, made, policy=rules, now=now, make_desk=_make_desk)


def _make_desk(of: Review) -> Desk:
    from memframe.review.widget import Desk  # noqa: PLC0415 - a script needs no widgets

    return Desk(of)


class _CallableModule(ModuleType):
    """Module that can be called like the function: `import memframe.review` makes the module `memframe.review`."""

    def __call__(
        self,
        audit_or_plan: Audit | Plan,
        *,
        decisions: str | PathLike[str] | None = None,
        policy: PolicyOption = None,
        now: datetime | None = None,
    ) -> Review:
        return review(audit_or_plan, decisions=decisions, policy=policy, now=now)


sys.modules[__name__].__class__ = _CallableModule
