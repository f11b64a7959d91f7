"""The write-ahead record of a run: sealed, and on disk before anything is sent."""

from memframe.journal.journal import (
    SETTLED,
    STATUSES,
    WRITTEN,
    Entry,
    Header,
    Journal,
    JournalState,
    Operation,
    Status,
)
from memframe.journal.runs import KEPT_DAYS, RunDirectory, RunNote, list_runs, purge_runs

__all__ = [
    "KEPT_DAYS",
    "SETTLED",
    "STATUSES",
    "WRITTEN",
    "Entry",
    "Header",
    "Journal",
    "JournalState",
    "Operation",
    "RunDirectory",
    "RunNote",
    "Status",
    "list_runs",
    "purge_runs",
]
