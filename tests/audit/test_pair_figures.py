"""Figures of the checks that relate memories, on small stores that they were not written with: they may not fall."""

import pytest

from memframe.audit.changed_value import find_changed_values
from memframe.audit.exact_duplicate import find_exact_duplicates
from memframe.audit.likeness.similar import similar_pairs
from memframe.audit.near_duplicate import find_near_duplicates
from memframe.audit.superseded import find_superseded
from tests.pairs import scoring
from tests.pairs.corpus import corpus
from tests.pairs.updates import updates


@pytest.fixture(scope="module")
def store():
    return corpus(1000, 11)


@pytest.fixture(scope="module")
def pairs(store):
    return similar_pairs(store.memories)


def test_near_duplicates_are_found_and_changed_values_not_merged(store, pairs):
    found = scoring.merged(
        store, find_exact_duplicates(store.memories), find_near_duplicates(store.memories, pairs=pairs)
    )
    assert found.figures.f1() >= 0.98, found.lost
    assert found.n_changed_merged == 0


def test_changed_values_are_found(store, pairs):
    figures, false = scoring.changed(store, find_changed_values(store.memories, pairs=pairs))
    assert figures.precision() >= 0.9, false
    assert figures.recall() >= 0.9


@pytest.fixture(scope="module")
def superseded():
    told = updates(11)
    return scoring.ranked(told, find_superseded(told.memories))


def test_what_a_cue_says_is_superseded(superseded):
    assert superseded.cued.precision() >= 0.8
    assert superseded.cued.recall() >= 0.65


def test_the_replaced_memory_is_among_the_first_three(superseded):
    assert superseded.first_three >= 0.95


def test_what_is_true_beside_a_newer_memory_is_not_called_superseded(superseded):
    assert superseded.beside == 0
