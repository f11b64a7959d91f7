"""The sample person: the shape of the data, and that what an audit shall find is really in there."""

import json
import re
from datetime import datetime
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import pytest

from memframe.sample import load_sample

TRUTH = json.loads(Path(__file__).with_name("sample_truth.json").read_text())
"""What is planted, by place in the order of `load_sample`: pairs and groups, spans' kinds, and rows.

``near_duplicate`` and ``changed_value`` name what was planted among the memories proper; the junk
repeats itself too. ``superseded`` is (older, newer).
"""

MEMORIES = load_sample()

SHAPES = {
    "CARD": r"\b4111 1111 1111 1111\b",
    "EMAIL": r"\S+@\S+\.example\.(com|org|net)\b",
    "IBAN": r"\b[A-Z]{2}\d{2}(?: ?\d{4})+",
    "IP": r"\b192\.0\.2\.\d+",
    "PHONE": r"(\+49 152|\b0171|\b030|\b0113) \d{3}",
}
"""Every value is of a range that is kept for examples and fiction."""


def contents(rows):
    return [MEMORIES[row].content for row in rows]


def likeness(a, b):
    """Share of equal words, whatever their order: a reordered copy is a copy."""
    a, b = (sorted(re.findall(r"\w+", text.lower())) for text in (a, b))
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def test_it_is_one_life_in_order_and_the_same_each_time():
    assert load_sample() == MEMORIES
    assert len(MEMORIES) == 389
    created = [memory.created_at for memory in MEMORIES]
    assert all(earlier < later for earlier, later in pairwise(created))
    assert created[0].startswith("2020-02")
    assert created[-1].startswith("2026-05")


def test_times_are_utc_text_and_no_update_comes_before_its_creation():
    for memory in MEMORIES:
        times = [
            datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z") for text in (memory.created_at, memory.updated_at)
        ]
        assert times[0] <= times[1]
        assert memory.created_at.endswith("Z")
    assert 40 < sum(memory.created_at != memory.updated_at for memory in MEMORIES) < 200


def test_exact_duplicates_are_all_listed():
    rows = {}
    for row, memory in enumerate(MEMORIES):
        rows.setdefault(memory.content, []).append(row)
    assert [group for group in rows.values() if len(group) > 1] == TRUTH["exact_duplicate"]


@pytest.mark.parametrize("pair", TRUTH["near_duplicate"])
def test_near_duplicates_are_alike_but_not_equal(pair):
    a, b = contents(pair)
    assert a != b
    assert likeness(a, b) > 0.6


@pytest.mark.parametrize("pair", TRUTH["changed_value"])
def test_changed_values_are_one_sentence_with_another_value(pair):
    a, b = contents(pair)
    assert a != b
    assert likeness(a, b) > 0.6


@pytest.mark.parametrize("kind", SHAPES)
def test_personal_data_is_where_it_is_said_to_be_and_nowhere_else(kind):
    found = [row for row, memory in enumerate(MEMORIES) if re.search(SHAPES[kind], memory.content)]
    assert found == TRUTH["personal_data"][kind]


def test_secrets_are_where_they_are_said_to_be():
    found = [
        row
        for row, memory in enumerate(MEMORIES)
        if re.search(r"password is \S|X-Feed-Key: \S{30}|PIN \d{4}", memory.content)
    ]
    assert found == TRUTH["secret"]
