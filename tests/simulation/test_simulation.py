"""Nothing lost, nothing twice, the accounts exact: through every fault and every death of the client.

Ordinary runs take every so many-th scenario of the catalogue; ``pytest -m campaign`` takes them all.
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, islice

import pytest

from tests.simulation import catalogue
from tests.simulation.broken import BROKEN
from tests.simulation.scenario import LATE_S, STAGE, Scenario, wrong_in

EVERY = 101
"""Of how many scenarios the ordinary runs take one; a prime, so that it goes through all of their kinds."""


def wrong_ones(scenarios, **world):
    return {scenario: wrong for scenario in scenarios if (wrong := wrong_in(scenario, **world))}


@pytest.mark.parametrize("kind", [catalogue.single_faults, catalogue.double_deaths])
def test_nothing_is_lost_and_nothing_is_there_twice(kind):
    assert wrong_ones(islice(kind(), 0, None, EVERY)) == {}


def test_nothing_is_lost_and_nothing_is_there_twice_after_two_faults():
    pairs = [Scenario(plan, pair) for plan, pair in catalogue.named_pairs()]
    assert wrong_ones(pairs[::EVERY]) == {}


def test_a_scenario_plays_the_same_way_each_time():
    scenario = Scenario("creates", ("reset_after", "gateway_before"), (13,))
    _, one, other = (scenario.ending() for _ in range(3))  # the first of a process also asks for a token
    assert asked(one) == asked(other)
    assert one.run.results == other.run.results


def asked(ending):
    """When and what, without bodies: those are sealed anew each time."""
    return [(logged.at, logged.method, logged.path) for logged in ending.world.log]


# Services of other kinds


def seals_anew(content):
    """A service that opens what comes and seals it for itself."""
    envelope = STAGE.envelopes[1]
    return envelope.seal(envelope.open(content) if content.startswith("mf1.") else content)


OTHERS = {
    "seals anew what comes sealed": {"stored_as": seals_anew},
    "takes plain text": {"stored_as": seals_anew, "encrypt": False},
    "honours idempotency keys": {"honours_keys": True},
    "lists what was there three seconds ago": {"lag_s": 3.0, "settle_s": LATE_S + 4},
}


@pytest.mark.parametrize("world", OTHERS.values(), ids=OTHERS)
def test_it_holds_for_services_of_other_kinds(world):
    assert wrong_ones(islice(catalogue.single_faults(), 0, None, 2 * EVERY), **world) == {}


# The oracle itself


@pytest.mark.parametrize("broken", BROKEN)
def test_the_oracle_notices_a_broken_client(broken):
    with broken():
        wrong = wrong_ones(islice(catalogue.deaths("creates", ("ok", "refused")), 30))
    kinds = {text.split(":")[0] for texts in wrong.values() for text in texts}
    assert kinds & {"lost", "duplicated"}


# The campaign


@pytest.mark.campaign
def test_all_of_the_catalogue():
    """At least 15,000 scenarios; on two quiet cores in less than a minute."""
    n_played, wrong = 0, {}
    for n, of_part in in_processes(catalogue.families()):
        n_played += n
        wrong |= of_part
    assert wrong == {}
    assert n_played > 15_000


@pytest.mark.campaign
@pytest.mark.parametrize("world", OTHERS, ids=OTHERS)
def test_all_faults_at_services_of_other_kinds(world):
    assert wrong_ones(catalogue.single_faults(), **OTHERS[world]) == {}


def played(families):
    """How many scenarios some families have, and which of them went wrong."""
    scenarios = list(chain.from_iterable(family() for family in families))
    return len(scenarios), wrong_ones(scenarios)


def in_processes(families):
    context = multiprocessing.get_context("spawn")
    parts = [families[first::64] for first in range(64)]
    with ProcessPoolExecutor(
        os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count(), context
    ) as pool:
        yield from pool.map(played, parts)
