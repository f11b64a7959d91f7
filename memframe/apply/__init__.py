"""Apply a plan to the service, journal first: the only module that changes anything there.

Nothing is lost, nothing is written twice, and a run that was cut short knows where it stands:

- The intent and the exact bytes of every request are on the disk before it leaves (`memframe.journal`).
- What may have been carried out is never sent again before it was looked for, a create in two complete listings
  at least ``settle_s`` apart. It is known by its sealed bytes, which nothing else in the world has.
- The same bytes and the same ``Idempotency-Key`` are sent each time. Services that honour it are safe beyond
  that; nothing here relies on it.

What no client can promise: that something between here and the service does not deliver a create twice, and that
a request whose connection broke is not carried out later than ``settle_s``, when it has been sent again. Both
are looked for when the run is read back at its end, and reported as duplicates; none is deleted by itself. Who
changes a memory between its last reading and the patch (a round trip, at most 30 seconds) is overwritten, as
the API knows no condition for a write.
"""

from memframe.apply.preflight import refuse_elsewhere
from memframe.apply.run import Run, Verification
from memframe.apply.write import (
    StrPath,
    apply_plan,
    create_memories,
    journal_path,
    push_memories,
    resume_run,
    update_memories,
)

__all__ = [
    "Run",
    "StrPath",
    "Verification",
    "apply_plan",
    "create_memories",
    "journal_path",
    "push_memories",
    "refuse_elsewhere",
    "resume_run",
    "update_memories",
]
