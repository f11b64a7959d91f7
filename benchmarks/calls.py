"""How many calls, functions and modules of memframe one row passes: loaded, planned, written.

    python benchmarks/calls.py

Counted by `sys.setprofile` in all threads, after one round to warm up; comprehensions and lambdas count as part of
the function that they stand in.
"""

import os
import sys
import tempfile
import threading
from pathlib import Path

from servers import Keeper, serving

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
PACKAGE = str(ROOT / "memframe")


class Calls:
    """Within the block, calls into memframe by module and function."""

    def __init__(self):
        self.names = []

    def __enter__(self):
        threading.setprofile(self._count)
        sys.setprofile(self._count)
        return self

    def __exit__(self, *exc):
        sys.setprofile(None)
        threading.setprofile(None)

    def _count(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name[0] != "<":
            self.names.append((code.co_filename, code.co_qualname))

    def __str__(self):
        modules = {file for file, _ in self.names}
        return f"{len(self.names):6,} calls {len(set(self.names)):5,} functions {len(modules):4,} modules"


def main():
    with tempfile.TemporaryDirectory() as state, serving(Keeper, 1, 0) as base_url:
        os.environ["XDG_STATE_HOME"] = state
        import memframe as mf

        access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), "r1")
        for title in ("warm", "after"):
            with Calls() as load:
                frame = mf.load_memories(access, limit=1, progress=False)
            edited = frame.assign(title=title)
            with Calls() as plan:
                planned = mf.plan_changes(access, edited)
            with Calls() as write:
                run = mf.apply_plan(access, planned, workers=1, progress=False)
            run.raise_for_failures()
    for what, calls in {"load one": load, "plan one edit": plan, "apply one patch": write}.items():
        print(f"{what:16}{calls}")


if __name__ == "__main__":
    main()
