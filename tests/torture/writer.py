"""The process that is killed: it carries out one saved plan, or goes on with the run that it left behind.

::

    python -m tests.torture.writer PLAN JOURNAL REQUEST_ID
"""

import sys
from pathlib import Path

import memframe as mf

SETTLE_S = 0.3
"""Nothing is written later than that: the service is on this machine."""


def main(plan, journal, request_id):
    with mf.connect() as client:
        access = mf.open_access(client, request_id)
        print("writing", flush=True)
        if Path(journal).exists():
            run = mf.resume_run(access, journal, settle_s=SETTLE_S, progress=False)
        else:
            plan = mf.Plan.load(plan)
            n_deletes = plan.counts.get("delete", 0)
            run = mf.apply_plan(
                access, plan, confirm=n_deletes, journal=journal, settle_s=SETTLE_S, progress=False
            )
    run.raise_for_failures()


if __name__ == "__main__":
    main(*sys.argv[1:])
