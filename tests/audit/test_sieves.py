"""Sieves: what RE2 looks at first, a column at a time, rules out no text that the patterns behind it match."""

import pyarrow as pa

from memframe.audit.evidence import Delicate, is_delicate
from tests.audit import secret_corpus, seen, unseen

TEXTS = [*secret_corpus.TOLD, *secret_corpus.CLEAN, *seen.TOLD, *seen.CLEAN, *unseen.TOLD, *unseen.CLEAN]


def test_what_is_delicate_passes_the_sieve():
    texts = [shout for text in TEXTS for shout in (text, text.upper(), text.upper().replace("I", "\u0130"))]
    delicate = Delicate(pa.array(texts))
    found = [delicate.any_of(row) for row in range(len(texts))]
    assert found == list(map(is_delicate, texts))
    assert 0 < sum(found) < len(found)
