"""The catalogue of scenarios: every fault, every pair of faults, and the client's death at every step of them."""

from functools import cache
from itertools import product

from tests.simulation.scenario import PLANS, Scenario
from tests.simulation.world import FAULTS

NAMES = tuple(fault.__name__ for fault in FAULTS)
PLACES = ((), ("ok",))
"""What comes before a fault, so that it meets the first write or the second."""


@cache
def n_steps(plan, faults):
    """Steps of one life in which nobody dies."""
    return Scenario(plan, faults).ending().world.n_steps


def single_faults():
    """Every fault, at the first write and at the second, with a death at every step or none."""
    for plan, fault, before in product(PLANS, NAMES, PLACES):
        yield from deaths(plan, (*before, fault))


def named_pairs():
    """Every pair of faults, one after the other or with a good write between."""
    for plan, first, second, between in product(("creates", "patches", "deletes"), NAMES, NAMES, PLACES):
        yield plan, (first, *between, second)


def pairs():
    """The same, with deaths at every fourth step."""
    for plan, faults in named_pairs():
        yield from deaths(plan, faults, every=4)


def deaths(plan, faults, every=1):
    yield Scenario(plan, faults)
    for step in range(1, n_steps(plan, faults) + 1, every):
        yield Scenario(plan, faults, (step,))


def double_deaths():
    """Two deaths, the second while the first is being made good."""
    for plan, fault in product(PLANS, ("ok", "reset_after", "late", "truncated")):
        steps = n_steps(plan, (fault,))
        for first, second in product(range(1, steps + 1, 3), range(1, steps, 3)):
            yield Scenario(plan, (fault,), (first, second))
