"""Claims: what the sentences of a memory say has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from memframe.audit.language.cues import ANY_CUE, Cue, cue_in
from memframe.audit.language.statements import Statement, said_in, sentences_of

_CLAIMS = 3
_TEXTS_AT_ONCE = 4096


class Claim(NamedTuple):
    """What a statement with a cue says: of before, of now, and what it is about."""

    cue: Cue
    statement: Statement
    old: frozenset[str]
    new: frozenset[str]
    about: frozenset[str]
    beside: frozenset[str]
    """What the rest of the memory speaks of."""


def claims_of(texts: Sequence[str]) -> Iterator[list[Claim]]:
    """What the statements of each text claim to have changed, the surest few."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        sentences = list(map(sentences_of, some))
        lower = pc.utf8_lower(pa.array(chain.from_iterable(sentences), pa.large_string()))
        may_be_cued = iter(pc.match_substring_regex(lower, ANY_CUE).to_pylist())
        for text, several in zip(some, sentences, strict=True):
            yield _claims_of(text, compress(several, islice(may_be_cued, len(several))))


def _claims_of(text: str, sentences: Iterable[str]) -> list[Claim]:
    cued = [(sentence, cue) for sentence in sentences if (cue := cue_in(sentence)) is not None]
    everything = said_in(text) if cued else frozenset()
    claims = [_claim(cue, Statement(sentence), everything) for sentence, cue in cued]
    return sorted(claims, key=lambda claim: -claim.cue.strength)[:_CLAIMS]


def _claim(cue: Cue, statement: Statement, everything: frozenset[str]) -> Claim:
    old = said_in(cue.old) & statement.said
    new = frozenset(name for name in said_in(cue.new) & statement.said if name[0] != "@") - old
    own = said_in(cue.quote) if cue.kind == "used_to" else frozenset()
    return Claim(cue, statement, old, new, statement.said - old - new - own, everything - statement.said)
