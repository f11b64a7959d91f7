"""Proposals: the findings that a cleanup plans, by the actions that the audit proposes or the caller decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from os import PathLike
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from memframe.access import Access
from memframe.audit import Audit, audit_memories
from memframe.audit.findings import CHECKS, PROPOSALS, Check, Proposal
from memframe.audit.judge import JUDGED
from memframe.audit.junk import ACTIONS
from memframe.audit.policy import PolicyOption
from memframe.audit.result import findings_of, keys_beside, read_audit
from memframe.display import number_of
from memframe.errors import ConfigError, Hint, PlanError
from memframe.files import expand_path
from memframe.load import load_memories, load_tags

Actions = Iterable[str] | Mapping[str, str] | None

PLANNED: tuple[Proposal, ...] = ("delete", "merge", "redact", "strip", "retag", "rescale")
"""Proposals that are planned; "review" is for people, and "none" is no proposal."""

POSSIBLE: Mapping[Check, tuple[Proposal, ...]] = MappingProxyType(
    {
        "exact_duplicate": ("delete", "merge"),
        "near_duplicate": ("merge",),
        "version": ("delete",),  # deletes the older ones
        "stale": ("delete",),
        "secret": ("redact", "delete"),
        "personal_data": ("redact", "delete"),
        "planted": ("strip", "delete"),
        "junk": ("delete", "merge"),
        "missing": (),
        "scores": ("rescale",),
        "tags": ("retag",),
        "sealed": ("delete",),
    }
)
"""Possible actions for the findings of each check."""

MAX_SHARE = 0.05
"""Largest share of a user's memories that is deleted on wording alone without a confirmation."""

_CERTAIN: tuple[Check, ...] = ("exact_duplicate", "sealed")
"""Checks whose findings do not depend on the wording of a text."""


class ChosenActions(NamedTuple):
    """The proposals to plan."""

    taken: frozenset[str]
    decided: Mapping[str, str]
    """Actions by check, in place of the proposed ones."""

    def of(self, findings: pd.DataFrame) -> pd.DataFrame:
        """Return the findings about memories that are to be planned, each with its action.

        Exact copies are taken for both "delete" and "merge", because a copy is merged if it has a field that its keeper
        lacks. Findings that rest on a judge alone stay for review, also if there is a decision about their check.
        """
        action = findings["action"]
        is_judged = findings["kind"].str.startswith(JUDGED).fillna(False).astype(bool)
        for check, decision in self.decided.items():
            is_proposed = (findings["check"] == check) & (findings["action"] != "none") & ~is_judged
            action = action.mask(is_proposed, decision)
        is_copy = (findings["check"] == "exact_duplicate") & action.isin(["delete", "merge"])
        is_taken = action.isin(self.taken & set(PLANNED)) | (is_copy & bool(self.taken & {"delete", "merge"}))
        return findings.assign(action=action)[is_taken & findings["id"].notna()]


def read_actions(actions: Actions) -> ChosenActions:
    """Read the argument `actions` of `plan_cleanup`; raise `ConfigError` for an unknown or impossible action.

    >>> sorted(read_actions(["delete", "merge"]).taken)
    ['delete', 'merge']
    >>> read_actions({"near_duplicate": "delete"})
    Traceback (most recent call last):
    memframe.errors.ConfigError: actions: near_duplicate cannot be 'delete'; there is merge, review, none
    """
    if actions is None:
        return ChosenActions(frozenset(PLANNED), {})
    if isinstance(actions, Mapping):
        return ChosenActions(
            frozenset(PLANNED), {str(check): _check_decision(check, actions[check]) for check in actions}
        )
    if isinstance(actions, str) or not isinstance(actions, Iterable):
        raise ConfigError(
            f"actions={actions!r}: pass a list such as ['delete', 'merge'], or a mapping such as "
            "{'personal_data': 'redact'}"
        )
    taken = list(actions)
    for name in taken:
        if name not in PROPOSALS:
            hint = f"; {name} is a check: pass {{{name!r}: 'delete'}} or the like" if name in CHECKS else ""
            raise ConfigError(f"actions: there is no {name!r}; there is {', '.join(PLANNED)}{hint}")
    return ChosenActions(frozenset(taken), {})


def _check_decision(check: object, action: str) -> str:
    if check not in CHECKS:
        raise ConfigError(f"actions: there is no check {check!r}; there is {', '.join(CHECKS)}")
    possible = (*POSSIBLE[check], "review", "none")
    if action not in possible:
        raise ConfigError(f"actions: {check} cannot be {action!r}; there is {', '.join(possible)}")
    return action


def check_share(findings: pd.DataFrame, deletes: Iterable[str], n_memories: int, max_share: float) -> None:
    """Refuse to delete more of a user's memories on wording alone than the caller allows.

    Raises `PlanError` with the number, the share, and the ``max_share`` that confirms them. `n_memories` is the number
    of audited memories of the user.
    """
    deleting = findings[(findings["action"] == "delete") & findings["id"].isin(list(deletes))]
    is_junk = deleting["check"] == "junk"
    is_certain = deleting["check"].isin(_CERTAIN) | (is_junk & deleting["kind"].isin(ACTIONS.keys()))
    by_wording = deleting[~is_certain & ~deleting["id"].isin(deleting["id"][is_certain])]
    n_deleted = by_wording["id"].nunique()
    if n_deleted <= max_share * n_memories:
        return
    checks = ", ".join(f"{check} {n:,}" for check, n in by_wording.groupby("check")["id"].nunique().items())
    confirmed = -(-100 * n_deleted // n_memories) / 100
    part = f"{n_deleted:,} of {number_of(n_memories, 'memory', 'memories')} ({100 * n_deleted / n_memories:.1f} %)"
    raise PlanError(
        f"{part} would be deleted on wording alone ({checks}), and there may be facts among them: review "
        "these findings and exclude what should stay",
        hint=Hint(
            f"then confirm with max_share={confirmed:g}", f"then confirm with --max-share {confirmed:g}"
        )
        + f" (now it is {max_share:g})",
    )


class Renewal(NamedTuple):
    """Repeated audit, with the findings of the saved one."""

    audit: Audit
    n_left_out: int
    """Number of findings with a proposal that are no longer found, or whose text has changed."""
    note: str = ""
    """Reason why findings could only be compared by check, kind, memory and field; empty if texts were compared."""


def audit_again(access: Access, path: str | PathLike[str], *, policy: PolicyOption = None) -> Renewal:
    """Load the memories, audit them again, and keep the findings that the saved audit has.

    A saved audit holds no texts, and its offsets may be outdated, so it only selects findings of the new audit: new
    ones are left out, and so are saved ones that are no longer found or whose text has changed. A finding that the
    saved audit has for review, because a judge objected to its proposal, remains for review. The file is one of
    `Audit.to_json` or ``memframe audit --json``; raises `FrameError` if it is no saved audit.
    """
    path = expand_path(path)
    saved = read_audit(path)
    if not saved.is_stored:
        raise unstored_error()
    memories = load_memories(access, progress=False)
    checks = [check for check in CHECKS if check in saved.checks]
    again = audit_memories(memories, tags=load_tags(access), checks=checks, policy=policy)
    keys, earlier_keys, note = keys_beside(again, saved, path)
    unmatched = dict(zip(earlier_keys, findings_of(saved)["action"], strict=True))
    actions = [
        _choose_milder(unmatched.pop(key), action) if key in unmatched else None
        for key, action in zip(keys, again.findings["action"], strict=True)
    ]
    n_gone = sum(action in PLANNED for action in unmatched.values())
    findings = again.findings.assign(action=pd.array(actions, dtype="str")).dropna(subset=["action"])
    return Renewal(dataclasses.replace(again, findings=findings.reset_index(drop=True)), n_gone, note)


def unstored_error() -> PlanError:
    """Make the error for an audit of a file in the place of one of memories in a service."""
    return PlanError(
        "the audit is of a file, not of memories in a service",
        hint=Hint(
            "plan_cleanup(audit), without an access, plans for the file",
            "memframe clean PATH cleans the file",
        ),
    )


def _choose_milder(saved: str, action: str) -> str:
    return saved if saved in ("review", "none") else action
