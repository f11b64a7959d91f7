"""Frame x baseline x service -> Plan: what shall be written, to be looked at before it is."""

from memframe.plan.changes import plan_changes
from memframe.plan.deletes import plan_deletes
from memframe.plan.null import NULL
from memframe.plan.plan import Plan, plan_of
from memframe.plan.staleness import differs, leaning, refuse_stale

__all__ = ["NULL", "Plan", "differs", "leaning", "plan_changes", "plan_deletes", "plan_of", "refuse_stale"]
