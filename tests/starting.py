"""A quick start: what the tests would pay for in each of their processes, and nobody needs."""

import gc
import os
import sys

import pytest

from memframe.frames import gc_paused

sys.modules["rfc3987_syntax"] = None
"""jsonschema, which comes with nbval, does without; it builds a grammar of addresses that no notebook holds."""

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Each of the many processes that tests start would compile memframe anew."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Half a million objects come and none goes, so that looking for garbage among them was a tenth of all time.

    They are not frozen: `gc_paused` counts what is frozen, one by one.
    """
    with gc_paused():
        collected = yield
    gc.set_threshold(20_000, 20, 20)
    return collected
