"""Batches that were written before their author had read a rule: what they gave once, no change may take back."""

import pytest

from memframe.audit import find_personal_data, find_secrets
from tests.audit.batches import NAMES, read_batch
from tests.audit.figures import frame_of, record_figures, span_figures


@pytest.mark.parametrize(
    ("name", "recall"), [("one", 0.93), ("two", 0.86), ("three", 0.92), ("four", 0.84), ("five", 0.97)]
)
def test_secrets_are_found_however_they_are_told(name, recall):
    texts = read_batch(name).secrets()
    figures = record_figures([told for _, told in texts], find_secrets(frame_of(text for text, _ in texts)))
    assert figures.precision() >= 0.99
    assert figures.recall() >= recall


@pytest.mark.parametrize("name", NAMES)
def test_personal_data_of_many_countries_is_found(name):
    batch = read_batch(name)
    texts = batch.personal + batch.nothing
    figures = span_figures(
        [text.spans for text in texts], find_personal_data(frame_of(text.text for text in texts))
    )
    assert figures.f1() >= 0.97
    assert figures.f1("phone") >= 0.88
