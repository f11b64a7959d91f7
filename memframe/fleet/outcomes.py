"""Outcomes: one row a user, whatever came of them."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from memframe.fleet.haul import Haul
from memframe.fleet.members import Member

DTYPES = {"user_id": "str", "request_id": "str", "status": "str", "n_rows": "int64", "error": "str"}


def outcomes_frame(hauls: Iterable[Haul]) -> pd.DataFrame:
    """Outcomes as a frame; of no users it has the same dtypes.

    >>> outcomes_frame([Haul(Member("r1", "u1"), "done", 50)])
      user_id request_id status  n_rows error
    0      u1         r1   done      50   NaN
    """
    rows = [
        (haul.member.user_id, haul.member.request_id, haul.status, haul.n_rows, haul.error) for haul in hauls
    ]
    return pd.DataFrame(rows, columns=[*DTYPES]).astype(DTYPES)


def revoked(member: Member) -> Haul:
    """The outcome of a user who took the approval back before the run."""
    return Haul(
        member,
        "revoked",
        error=f"access request {member.request_id} is revoked: nothing may be read any more, and what was kept of "
        "this user should go",
    )
