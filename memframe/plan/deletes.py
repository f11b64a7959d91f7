"""Memories to delete: read once more, so that the plan shows, and a backup can hold, what goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from memframe.access import Access
from memframe.change import FIELDS, Change, Label
from memframe.current import Stored, read_stored
from memframe.errors import PlanError
from memframe.plan.changes import OnConflict
from memframe.plan.faults import Faults
from memframe.plan.plan import Clock, Plan, plan_of, utc_now
from memframe.plan.sheet import Sheet, label_of


def plan_deletes(
    access: Access,
    frame_or_ids: pd.DataFrame | pd.Series[Any] | Iterable[str] | str,
    *,
    clock: Clock = utc_now,
) -> Plan:
    raise NotImplementedError
