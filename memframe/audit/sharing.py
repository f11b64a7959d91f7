"""Sharing: which of the two processes of an audit makes which checks, so that neither waits for the other one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd

from memframe.audit.findings import Check
from memframe.audit.likeness.similar import Relations
from memframe.audit.second_process import CheckFunction, beside

APART: tuple[Check, ...] = ("stale", "secret", "personal_data", "missing", "scores", "tags", "sealed")
"""Checks that do not need the pairs of similar memories, and are made beside the search for those."""

EITHER: tuple[Check, ...] = ("junk",)
"""One more, which would keep the second process busy when there are pairs; who is free first takes it then."""


@dataclass(frozen=True)
class Related:
    """A check of what similar memories are to each other, which can be sent as soon as that is known."""

    find: Callable[..., pd.DataFrame]
    relations: Callable[[], Relations]

    def __call__(self, memories: pd.DataFrame) -> pd.DataFrame:
        return self.to_send()(memories)

    def to_send(self) -> CheckFunction:
        """The check with all that it has to know; the search for pairs, if nobody has made it yet."""
        return partial(self.find, relations=self.relations())


def made(functions: Mapping[Check, CheckFunction], memories: pd.DataFrame) -> dict[Check, pd.DataFrame]:
    """What checks find."""
    return {check: find(memories) for check, find in functions.items()}


def made_by_two(
    functions: Mapping[Check, CheckFunction], own: Mapping[Check, CheckFunction], memories: pd.DataFrame
) -> dict[Check, pd.DataFrame]:
    """What checks find, some of them in a second process, if that leaves something to do here.

    Parameters
    ----------
    own
        Functions of this package; those of others are called here.
    """
    ours = {check: find for check, find in functions.items() if own[check] is find}
    apart, either = ({check: ours[check] for check in some if check in ours} for some in (APART, EITHER))
    if not apart.keys() | either.keys() or len(apart) + len(either) == len(functions):
        return made(functions, memories)
    related = {check: find for check, find in ours.items() if isinstance(find, Related)}
    here = {check: find for check, find in functions.items() if check not in apart | either | related}
    with beside(memories) as second:
        second.put_last(apart if related else apart | either)
        for check, find in related.items():
            second.put_first(check, find.to_send())
            second.put_last(either)
        found = made(here, memories)
        for check in second.taken_back():
            found[check] = functions[check](memories)
        found |= second.found()
    return {check: found[check] if check in found else find(memories) for check, find in functions.items()}
