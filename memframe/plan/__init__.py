"""Frame x baseline x service -> Plan: what shall be written, to be looked at before it is."""

from memframe.plan.cells import NULL
from memframe.plan.changes import plan_changes
from memframe.plan.deletes import plan_deletes
from memframe.plan.plan import Plan, broken_dependencies, differs, plan_of

__all__ = ["NULL", "Plan", "broken_dependencies", "differs", "plan_changes", "plan_deletes", "plan_of"]
