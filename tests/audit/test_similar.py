"""The search for similar pairs: what it may leave out, and what it costs where thousands are alike."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from memframe.audit.changed_value import find_changed_values
from memframe.audit.language import words
from memframe.audit.language.words import words_of
from memframe.audit.likeness import candidates, pairs, promising, similar
from memframe.audit.likeness.bags import Bags
from memframe.audit.likeness.candidates import Candidates
from memframe.audit.likeness.promising import promising_pairs
from memframe.audit.likeness.similar import similar_pairs
from memframe.audit.near_duplicate import find_near_duplicates
from tests.pairs.corpus import corpus

STORE = corpus(600, 21).memories.assign(user_id=lambda frame: [f"u{row % 2}" for row in range(len(frame))])
WORDS = words_of(pa.array([*STORE["content"], "...", ""], pa.large_string()))
OWNERS = np.arange(len(WORDS)) % 2


def found(candidates):
    return [pair for left, right in candidates.pairs() for pair in zip(left, right, strict=True)]


def test_each_candidate_comes_once_the_smaller_first_and_of_one_owner():
    some = found(Candidates(WORDS, OWNERS))
    assert len(some) == len(set(some)) > 1000
    assert all(left < right and OWNERS[left] == OWNERS[right] for left, right in some)


def test_parts_change_nothing(monkeypatch):
    whole = similar_pairs(STORE)
    sizes = {
        (words, "_ROWS_AT_ONCE"): 100,
        (similar, "_TEXTS_AT_ONCE"): 70,
        (candidates, "_TEXTS_AT_ONCE"): 30,
        (promising, "_LOOSE_AT_MOST"): 20,
        (pairs, "_PAIRS_AT_ONCE"): 50,
    }
    for (module, name), size in sizes.items():
        monkeypatch.setattr(module, name, size)
    in_parts = similar_pairs(STORE)
    for find in (find_near_duplicates, find_changed_values):
        pd.testing.assert_frame_equal(find(STORE, pairs=in_parts), find(STORE, pairs=whole))


def test_sketches_never_tell_fewer_words_in_both_than_there_are():
    bags, heavy = Bags(WORDS), WORDS.heavy_classes()
    left, right = (np.array(side) for side in zip(*found(Candidates(WORDS, OWNERS)), strict=True))
    n_in_both = bags.n_in_both(left, right)
    said = [
        Counter(name for name in WORDS.said[start:end].tolist() if heavy[name])
        for start, end in zip(WORDS.starts, WORDS.starts[1:], strict=False)
    ]
    assert n_in_both.tolist() == [(said[a] & said[b]).total() for a, b in zip(left, right, strict=True)]
    most = bags.most_in_both(left, right)
    assert (most >= n_in_both).all()
    assert np.median(most - n_in_both) <= 2


@pytest.mark.parametrize(
    "template", ["Heartbeat {} of the night: all is well", "Note {}: {}", "{} is on shelf {}"]
)
def test_what_thousands_share_is_not_squared(template):
    def n_compared(n_texts):
        texts = [template.format(n, n * 7 % 1009) for n in range(n_texts)]
        told = words_of(pa.array(texts, pa.large_string()))
        return len(promising_pairs(told, Candidates(told, np.zeros(n_texts, np.int64)))[0])

    assert n_compared(4000) < 2.5 * n_compared(2000)
