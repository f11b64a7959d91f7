"""Candidates: is the memory that a newer one replaces among the few that are shown beside it?"""

import numpy as np
import pytest

import memframe as mf
from benchmarks.pairs.corpus import frame_of
from benchmarks.pairs.updates import updates
from memframe.audit.candidates import _order, find_candidates, nearest_older
from memframe.audit.text import text_column
from memframe.audit.tokenize import words_of

MEANINGS = {"cat": 0, "kitten": 0, "tea": 1, "coffee": 1, "leeds": 2, "ghent": 2}


def embed(texts):
    """Vectors of a model that knows what six words mean."""
    vectors = np.zeros((len(texts), 4))
    for row, text in enumerate(texts):
        for word in text.lower().strip(".").split():
            vectors[row, MEANINGS.get(word, 3)] += 1.0 if word in MEANINGS else 0.01
    return vectors


def pairs(candidates):
    return list(zip(candidates["newer"], candidates["older"], strict=True))


@pytest.mark.parametrize(("half", "noise"), [("develop", 3), ("held_out", 3), ("held_out", 20)])
def test_the_replaced_memory_is_among_five(half, noise):
    store = updates(1, half, noise=noise)
    found = {(older, newer) for newer, older in pairs(find_candidates(store.memories))}
    for planted, least in ((store.cued, 0.9), (store.cued + store.uncued, 0.8)):
        assert len(found & set(planted)) >= least * len(planted)


def test_similarity_is_the_cosine_over_all_words_and_pairs_are_complete():
    memories = updates(2, rounds=2).memories
    texts = text_column(memories, "content")
    words, age = words_of(texts), np.arange(len(memories))
    owners = np.zeros(len(age), np.int64)
    near = nearest_older(words, owners, age, n=3, min_score=0.3)
    everything = nearest_older(words, owners, age, n=len(age), min_score=0.3)
    assert (near.newer > near.older).all()
    for newer in np.unique(everything.newer).tolist():
        best = np.sort(everything.score[everything.newer == newer])[::-1][:3]
        assert near.score[near.newer == newer] == pytest.approx(best)
    some = nearest_older(words, owners, age, n=3, min_score=0.3, newer=near.newer[:1])
    assert some.older.tolist() == near.older[near.newer == near.newer[0]].tolist()


def test_only_older_memories_of_the_same_user_are_candidates():
    texts = ["Ada lives in Leeds.", "Ada lives in Ghent.", "Ada lives in Leeds now.", "Bo lives in Leeds."]
    memories = frame_of(texts, user_id=["u1", "u1", "u1", "u2"])
    assert pairs(find_candidates(memories)) == [("m1", "m0"), ("m2", "m0"), ("m2", "m1")]
    shuffled = memories.sample(frac=1, random_state=3)
    assert sorted(pairs(find_candidates(shuffled))) == sorted(pairs(find_candidates(memories)))


def test_vectors_find_what_shares_no_word():
    memories = frame_of(["Ada bought a kitten.", "Ben drinks tea.", "Chloe fed one cat."])
    assert ("m2", "m0") not in pairs(find_candidates(memories))
    assert ("m2", "m0") in pairs(find_candidates(memories, embed=embed))


@pytest.mark.parametrize(
    "wrong",
    [lambda texts: np.zeros((1, 3)), lambda texts: [1.0], lambda texts: "no", lambda texts: [[np.nan]] * 2],
)
def test_a_wrong_embedding_is_refused(wrong):
    with pytest.raises(mf.ConfigError, match="embed= returned"):
        find_candidates(frame_of(["Ada likes tea.", "Ada likes coffee."]), embed=wrong)


@pytest.mark.parametrize("texts", [[], ["Ada likes tea."], ["", "..."]])
def test_few_memories_have_no_candidates(texts):
    found = find_candidates(frame_of(texts), embed=embed)
    assert [*found.columns] == ["newer", "older", "rank", "score", "cue"]
    assert found.empty


@pytest.mark.parametrize("highest", [3, 2**40])  # two keys of 40 bits have no room in one number
def test_rows_are_in_the_order_of_their_keys_however_large_these_are(highest):
    keys = np.random.default_rng(2).integers(0, highest, (2, 500))
    assert _order(*keys).tolist() == np.lexsort(keys[::-1]).tolist()
