"""A quick start: what the tests would pay for in each of their processes, and nobody needs."""

import sys

import pytest

from memframe.frames import gc_paused

sys.modules["rfc3987_syntax"] = None
"""jsonschema, which comes with nbval, does without; it builds a grammar of addresses that no notebook holds."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Half a million objects come, and none goes."""
    with gc_paused():
        return (yield)
