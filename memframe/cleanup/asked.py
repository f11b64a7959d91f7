"""What is asked for: the proposals of an audit that shall be planned, as they are or as somebody has decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from memframe.audit.findings import CHECKS, PROPOSALS, Check, Proposal
from memframe.audit.junk import ACTIONS
from memframe.display import number_of
from memframe.errors import ConfigError, PlanError

Actions = Iterable[str] | Mapping[str, str] | None

PLANNED: tuple[Proposal, ...] = ("delete", "merge", "redact", "retag", "rescale")
"""Proposals that something is planned for; the others are for people."""

POSSIBLE: Mapping[Check, tuple[Proposal, ...]] = MappingProxyType(
    {
        "exact_duplicate": ("delete", "merge"),
        "near_duplicate": ("merge",),
        "changed_value": (),  # which of two values is right, or whether both are, no program knows
        "superseded": ("delete",),
        "stale": ("delete",),
        "secret": ("redact", "delete"),
        "personal_data": ("redact", "delete"),
        "junk": ("delete", "merge"),
        "missing": (),
        "scores": ("rescale",),
        "tags": ("retag",),
        "sealed": ("delete",),
    }
)
"""What can be planned for the findings of each check."""


MAX_SHARE = 0.05
"""Largest share of a user's memories that is deleted on wording alone without a confirmation."""

_SEEN: tuple[Check, ...] = ("exact_duplicate", "sealed")
"""Checks that tell what they find without any understanding of a text."""


class Asked(NamedTuple):
    """Which proposals to plan."""

    taken: frozenset[str]
    decided: Mapping[str, str]
    """By check, instead of what it proposes."""

    def of(self, findings: pd.DataFrame) -> pd.DataFrame:
        """The findings about memories for which something is to be planned, each with what that is.

        A copy that is asked to be deleted is taken, too, where merges are: it is one if it holds something that
        its keeper lacks.
        """
        action = findings["action"]
        for check, decision in self.decided.items():
            is_proposed = (findings["check"] == check) & (findings["action"] != "none")
            action = action.mask(is_proposed, decision)
        is_copy = (findings["check"] == "exact_duplicate") & action.isin(["delete", "merge"])
        is_taken = action.isin(self.taken & set(PLANNED)) | (is_copy & bool(self.taken & {"delete", "merge"}))
        return findings.assign(action=action)[is_taken & findings["id"].notna()]


def asked_for(actions: Actions) -> Asked:
    """What `plan_cleanup` was asked for.

    Raises
    ------
    ConfigError
        There is no such action or check, or nothing like that is planned for it.

    Examples
    --------
    >>> sorted(asked_for(["delete", "merge"]).taken)
    ['delete', 'merge']
    >>> asked_for({"near_duplicate": "delete"})
    Traceback (most recent call last):
    memframe.errors.ConfigError: actions: near_duplicate cannot be 'delete'; there is merge, review, none
    """
    if actions is None:
        return Asked(frozenset(PLANNED), {})
    if isinstance(actions, Mapping):
        return Asked(frozenset(PLANNED), {str(check): _decision(check, actions[check]) for check in actions})
    if isinstance(actions, str) or not isinstance(actions, Iterable):
        raise ConfigError(
            f"actions={actions!r}: pass a list such as ['delete', 'merge'], or a mapping such as "
            "{'personal_data': 'redact'}"
        )
    taken = list(actions)
    unknown = [name for name in taken if name not in PROPOSALS]
    if unknown:
        name = unknown[0]
        way = f"; {name} is a check: pass {{{name!r}: 'delete'}} or the like" if name in CHECKS else ""
        raise ConfigError(f"actions: there is no {name!r}; there is {', '.join(PLANNED)}{way}")
    return Asked(frozenset(taken), {})


def _decision(check: object, action: str) -> str:
    if check not in CHECKS:
        raise ConfigError(f"actions: there is no check {check!r}; there is {', '.join(CHECKS)}")
    possible = (*POSSIBLE[check], "review", "none")
    if action not in possible:
        raise ConfigError(f"actions: {check} cannot be {action!r}; there is {', '.join(possible)}")
    return action


def check_share(findings: pd.DataFrame, deletes: Iterable[str], n_memories: int, max_share: float) -> None:
    """Refuse to delete more of a user's memories on wording alone than somebody has allowed.

    Parameters
    ----------
    findings : DataFrame
        Those that something is planned for.
    deletes : iterable of str
        The memories that are going to be deleted.
    n_memories : int
        How many the user has, as far as they were audited.
    max_share : float

    Raises
    ------
    PlanError
        Names number and share, and the ``max_share`` that confirms them.
    """
    found = findings[(findings["action"] == "delete") & findings["id"].isin(list(deletes))]
    is_seen = found["check"].isin(_SEEN) | ((found["check"] == "junk") & found["kind"].isin(ACTIONS.keys()))
    told = found[~is_seen & ~found["id"].isin(found["id"][is_seen])]
    n_told = told["id"].nunique()
    if n_told <= max_share * n_memories:
        return
    checks = ", ".join(f"{check} {n:,}" for check, n in told.groupby("check")["id"].nunique().items())
    confirmed = -(-100 * n_told // n_memories) / 100
    part = f"{n_told:,} of {number_of(n_memories, 'memory', 'memories')} ({100 * n_told / n_memories:.1f} %)"
    raise PlanError(
        f"{part} would be deleted on wording alone ({checks}), and there may be facts among them: look at these "
        f"findings and leave out what is to stay, then confirm with max_share={confirmed:g} (now it is {max_share:g})"
    )
