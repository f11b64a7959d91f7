"""Sharing: which of the two processes of an audit makes which checks, so that neither waits for the other one."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from memframe.audit.findings import Check
from memframe.audit.second_process import CheckFunction, beside

APART: tuple[Check, ...] = ("stale", "secret", "personal_data", "missing", "scores", "tags", "sealed")
"""Checks that do not need the pairs of similar memories, and are made beside the search for those."""

EITHER: tuple[Check, ...] = ("junk",)
"""One more, which would keep the second process busy when there are pairs; who is free first takes it then."""


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
    here = {check: find for check, find in functions.items() if check not in apart | either}
    with beside(memories) as second:
        second.put_last(apart | either)
        found = made(here, memories)
        for check in second.taken_back():
            found[check] = functions[check](memories)
        found |= second.found()
    return {check: found[check] if check in found else find(memories) for check, find in functions.items()}
