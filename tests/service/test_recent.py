"""What was asked for last stays in memory, within its bound; what could not be made is made again."""

import pytest

from memframe.service.recent import Recent


@pytest.fixture
def made():
    return []


@pytest.fixture
def get(made):
    recent = Recent(size=2)
    return lambda key: recent.get(key, lambda: made.append(key) or key.upper())


def test_the_one_that_was_asked_for_longest_ago_goes(made, get):
    assert [get(key) for key in "abacab"] == list("ABACAB")
    assert made == ["a", "b", "c", "b"]


def test_what_cannot_be_made_is_not_held(made):
    recent = Recent(size=2)
    for answer in (lambda: 1 / 0, lambda: "made"):
        try:
            made.append(recent.get("a", answer))
        except ZeroDivisionError:
            continue
    assert made == ["made"]
