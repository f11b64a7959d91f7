"""The catalogue of scenarios: every fault, every pair of faults, and the client's death at every step of them.

Scenarios come in families, which share what goes wrong and differ in when the client dies. How many there are only
playing the first one tells: families can be handed out before that.
"""

from functools import cache, partial
from itertools import chain, product

from tests.simulation.scenario import PLANS, Scenario
from tests.simulation.world import FAULTS

NAMES = tuple(fault.__name__ for fault in FAULTS)
PLACES = ((), ("ok",))
"""What comes before a fault, so that it meets the first write or the second."""


@cache
def n_steps(plan, faults):
    """Steps of one life in which nobody dies."""
    return Scenario(plan, faults).ending().world.n_steps


def families():
    """All of them; each is called for its scenarios."""
    return [*_single_families(), *_pair_families(), *_double_families()]


def single_faults():
    """Every fault, at the first write and at the second, with a death at every step or none."""
    return chain.from_iterable(family() for family in _single_families())


def _single_families():
    for plan, fault, before in product(PLANS, NAMES, PLACES):
        yield partial(deaths, plan, (*before, fault))


def named_pairs():
    """Every pair of faults, one after the other or with a good write between."""
    for plan, first, second, between in product(("creates", "patches", "deletes"), NAMES, NAMES, PLACES):
        yield plan, (first, *between, second)


def _pair_families():
    """The same, with deaths at every fourth step."""
    for plan, faults in named_pairs():
        yield partial(deaths, plan, faults, every=4)


def deaths(plan, faults, every=1):
    yield Scenario(plan, faults)
    for step in range(1, n_steps(plan, faults) + 1, every):
        yield Scenario(plan, faults, (step,))


def double_deaths():
    """Two deaths, the second while the first is being made good."""
    return chain.from_iterable(family() for family in _double_families())


def _double_families():
    for plan, fault in product(PLANS, ("ok", "reset_after", "late", "truncated")):
        yield partial(_two_deaths, plan, (fault,))


def _two_deaths(plan, faults):
    steps = n_steps(plan, faults)
    for first, second in product(range(1, steps + 1, 3), range(1, steps, 3)):
        yield Scenario(plan, faults, (first, second))
