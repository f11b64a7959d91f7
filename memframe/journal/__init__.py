"""The write-ahead record of a run: sealed, and on the disk before anything is sent."""

from memframe.journal.disk import Connect
from memframe.journal.file import Journal
from memframe.journal.records import (
    SETTLED,
    STATUSES,
    WRITTEN,
    Draft,
    Header,
    Operation,
    Standing,
    State,
    Status,
)
from memframe.journal.shelf import KEPT_DAYS, Note, Shelf, list_runs, purge_runs

__all__ = [
    "KEPT_DAYS",
    "SETTLED",
    "STATUSES",
    "WRITTEN",
    "Connect",
    "Draft",
    "Header",
    "Journal",
    "Note",
    "Operation",
    "Shelf",
    "Standing",
    "State",
    "Status",
    "list_runs",
    "purge_runs",
]
