"""Batches that were written before their author had read a rule: what they gave once, no change may take back."""

import pytest

from memframe.audit import find_junk, find_secrets
from tests.audit.batches import read_batch
from tests.audit.figures import frame_of, record_figures


@pytest.mark.parametrize(("name", "proposed"), [("one", 0.85), ("two", 0.75)])
def test_junk_is_proposed_for_deletion_and_good_memories_are_not(name, proposed):
    store = read_batch(name).store()
    found = find_junk(frame_of(text for text, _ in store))
    gone = {int(place) for place in found["id"][found["action"].isin(["delete", "merge"])]}
    junk = {place for place, (_, is_junk) in enumerate(store) if is_junk}
    assert len(gone & junk) >= proposed * len(junk)
    assert len(gone - junk) <= 0.01 * (len(store) - len(junk))
    assert record_figures([is_junk for _, is_junk in store], found).precision() >= 0.98


@pytest.mark.parametrize(("name", "recall"), [("one", 0.93), ("two", 0.86)])
def test_secrets_are_found_however_they_are_told(name, recall):
    texts = read_batch(name).secrets()
    figures = record_figures([told for _, told in texts], find_secrets(frame_of(text for text, _ in texts)))
    assert figures.precision() >= 0.99
    assert figures.recall() >= recall
