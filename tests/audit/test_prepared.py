"""Contents are prepared once: split into words a single time, and the same words whatever they were taken from."""

import sys
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.pairs.corpus import corpus
from memframe import audit_memories
from memframe.audit.secrets import keys, prose
from memframe.audit.text import MemoryTexts, text_column
from memframe.audit.tokenize import contents_of, normalize, words_of

STORE = corpus(400, seed=4).memories
TEXTS = STORE["content"].tolist()


def count_calls(function, run, of=lambda frame: True):
    """How often a function is called while another one runs, of the calls that count."""
    calls = Counter()

    def note(frame, event, _):
        calls[event == "call" and frame.f_code is function.__code__ and of(frame)] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls[True]


def test_an_audit_converts_each_column_once_and_splits_the_contents_into_words_once():
    whole = STORE.assign(title=STORE["content"].str[:20], source="chat").head(100)
    calls = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code is text_column.__code__:
            calls[frame.f_locals["name"]] += len(frame.f_locals["memories"]) > 1
        elif event == "call" and frame.f_code is normalize.__code__:
            calls["words"] += len(frame.f_locals["texts"]) > 50

    sys.setprofile(note)
    try:
        audit_memories(whole, now=datetime(2026, 5, 1, tzinfo=UTC))
    finally:
        sys.setprofile(None)
    names = ("content", "title", "summary", "source", "words")
    assert {name: calls[name] for name in names} == dict.fromkeys(names, 1)


def same(words, others):
    return all(
        np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
        for one, other in zip(words, others, strict=True)
    )


def test_texts_taken_out_of_a_store_have_the_words_of_a_store_of_their_own():
    rows = np.arange(len(TEXTS))[::-3]
    alone = words_of(pa.array([TEXTS[row] for row in rows]))
    assert same(words_of(pa.array(TEXTS)).take(rows).compact(), alone)
    halves = words_of(pa.array(TEXTS[200:])).join(words_of(pa.array(TEXTS[:200])))
    places = np.concatenate([np.arange(len(TEXTS) - 200, len(TEXTS)), np.arange(len(TEXTS) - 200)])
    assert same(halves.take(places).compact(), words_of(pa.array(TEXTS)))


@pytest.mark.parametrize("rows", [[0, 3], [], [4, 4]])
def test_words_are_known_of_texts_that_were_taken_from_others(rows):
    frame = pd.DataFrame({"content": ["Likes tea", None, "Likes jazz", "Likes tea", "x" * 100_001]})
    texts = MemoryTexts.of(frame)
    words, numbers = texts.once(contents_of)
    some = texts.take(np.array(rows, np.int64))
    assert count_calls(words_of, lambda: some.once(contents_of)) == 0
    assert some.once(contents_of).words is words
    assert some.once(contents_of).numbers.tolist() == numbers[rows].tolist()
    assert numbers.tolist() == [0, -1, 1, 0, -1]
    assert some.column("content").to_pylist() == frame["content"].iloc[rows].replace({np.nan: None}).tolist()


def test_a_word_for_a_secret_is_read_once_however_often_it_is_repeated():
    text = "key=" * 400
    assert count_calls(prose._read, lambda: [*prose.find_in_prose(text)]) <= 400


def test_a_value_without_end_is_judged_by_its_beginning():
    text = "api_key=" + "aB3$dE5%" * 4_000 + " and more"
    assert (
        count_calls(
            keys._kind_of_assigned,
            lambda: [*keys.find_assigned("key=" * 5_000)],
            of=lambda frame: len(frame.f_locals["value"]) > 4_000,
        )
        == 0
    )
    (span,) = keys.find_assigned(text)
    assert text[span.start : span.end] == "aB3$dE5%" * 4_000
