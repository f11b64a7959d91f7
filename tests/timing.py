"""Growth of costs, measured so that a busy machine blames nobody: the least of several times counts."""

import time


def cpu_seconds(function, *arguments):
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def grows_with(function, short, long, most, floor_s=0.02, n_tries=8):
    """Return True if the longer argument costs at most that many times the shorter one, in the best of some tries."""
    short_s = long_s = float("inf")
    for _ in range(n_tries):
        short_s = min(short_s, cpu_seconds(function, short))
        long_s = min(long_s, cpu_seconds(function, long))
        if long_s <= most * short_s + floor_s:
            return True
    return False
