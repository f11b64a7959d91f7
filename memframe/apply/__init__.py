"""Apply a plan to the service, journal first: the only module that changes anything there.

Nothing is lost, nothing is written twice, and a run that was cut short can be resumed:

- The intent and the exact bytes of every request are on the disk before it is sent (`memframe.journal`).
- A request that may have been carried out is not sent again before its result was looked for; that of a create in two
  complete listings at least ``settle_s`` apart. Its memory is known by the sealed bytes, which are unique.
- The same bytes and the same ``Idempotency-Key`` are sent each time. Services that honour the key are safe beyond
  that; nothing here relies on it.

No client can rule out that something between here and the service delivers a create twice, or that a request whose
connection broke is carried out later than ``settle_s``, when it has been sent again. Both are looked for when the run
is read back at its end, and reported as duplicates; memframe never deletes them. A change that others make between the
last reading of a memory and its patch (a round trip, at most 30 seconds) is overwritten, because the API has no
conditional writes.
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
