"""From an edited frame, its baseline and the service to a plan: what will be written, for review first."""

from memframe.plan.cells import NULL
from memframe.plan.changes import plan_changes
from memframe.plan.deletes import plan_deletes
from memframe.plan.plan import LeftOut, Plan, broken_dependencies, find_stale_fields, plan_of

__all__ = [
    "NULL",
    "LeftOut",
    "Plan",
    "broken_dependencies",
    "find_stale_fields",
    "plan_changes",
    "plan_deletes",
    "plan_of",
]
