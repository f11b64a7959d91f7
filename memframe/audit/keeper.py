"""Keeper: the copy to keep of several, the order of memories in time, and memories with the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.planted import with_hidden
from memframe.audit.text import Memories, MemoryTexts, Rows, text_column
from memframe.audit.tokenize import WRAPPER, WRAPPER_AFTER, widen
from memframe.fields import MEMORY_FIELDS

FILLED = tuple(
    field.name
    for field in MEMORY_FIELDS
    if field.is_editable and field.is_optional and field.on_merge != "join"
)
"""Fields that a kept copy takes over from the others if they are empty in it."""


def precedence(
    memories: pd.DataFrame,
    fullness: NDArray[np.float64] | None = None,
    penalty: NDArray[np.float64] | None = None,
) -> Rows:
    """Return the place of each row in the order of preference, 0 for the best to keep.

    Rows are ordered by `fullness` (words with a value, for texts that differ), then by the number of filled fields and
    tags, then by the least `penalty` for wording, then by the latest update, then by id.
    """
    n_tags = [len(names) if isinstance(names, Sized) else 0 for names in memories["tags"]]
    filled = memories[list(FILLED)].notna().sum(axis=1).to_numpy() + np.array(n_tags, np.int64)
    nothing = np.zeros(len(memories))
    return _places(
        {
            "fullness": nothing if fullness is None else -fullness,
            "filled": -filled,
            "penalty": nothing if penalty is None else penalty,
            "updated": -_microseconds(memories["updated_at"].fillna(memories["created_at"])),
            "id": text_column(memories, "id"),
        }
    )


def age_order(memories: Memories) -> Rows:
    """Return the place of each row in time, the oldest first; rows without a time come first, ties go by id."""
    return MemoryTexts.of(memories).once(_order_by_age)


def _order_by_age(texts: MemoryTexts) -> Rows:
    created = texts.memories["created_at"].fillna(texts.memories["updated_at"])
    return _places({"created": _microseconds(created), "id": texts.column("id")})


def copies_of(memories: Memories) -> Rows:
    """Return for each row the row to keep among those with the same user, entity and content.

    It is -1 for rows without content, and for rows with hidden characters, which are never copies.
    """
    return MemoryTexts.of(memories).once(_find_copies)


def _find_copies(prepared: MemoryTexts) -> Rows:
    memories, content = prepared.memories, prepared.column("content")
    readable = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(content), ""), False)
    is_readable = readable.to_numpy(zero_copy_only=False) & ~with_hidden(prepared)
    texts = pc.dictionary_encode(content.fill_null("")).indices.to_numpy().astype(np.int64)
    owners = owners_of(prepared)
    keys = np.where(is_readable, texts * (owners.max(initial=0) + 1) + owners, -1 - np.arange(len(memories)))
    keepers = np.arange(len(memories))
    shared = np.flatnonzero(pd.Series(keys).duplicated(keep=False))
    if len(shared):
        places = precedence(memories.iloc[shared])
        by_group = pd.Series(places).groupby(keys[shared])
        keepers[shared] = shared[np.argsort(places)[by_group.transform("min").to_numpy()]]
    return np.where(is_readable, keepers, -1)


def owners_of(memories: Memories) -> Rows:
    """Return for each row the number of its user and entity, which does not depend on the order of the rows.

    A text such as "Works at Acme" means nothing without its entity, so it can only be a copy for the same entity.
    """
    return MemoryTexts.of(memories).once(_number_owners)


def _number_owners(texts: MemoryTexts) -> Rows:
    memories, numbers = texts.memories, np.zeros(len(texts), np.int64)
    for name in ("user_id", "entity"):
        if name in memories and memories[name].notna().any():
            codes = pd.factorize(memories[name].fillna(""), sort=True)[0]
            numbers = pd.factorize(numbers * (codes.max(initial=0) + 1) + codes, sort=True)[0]
    return numbers.astype(np.int64)


def _microseconds(times: pd.Series[Any]) -> Rows:
    """Return times as numbers; a missing time is the smallest."""
    return pd.to_datetime(times, utc=True).to_numpy("datetime64[us]").astype(np.int64)


def _places(keys: Mapping[str, Any]) -> Rows:
    """Return the place of each row when rows are sorted by some columns; a missing id is sorted last."""
    order = pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys]).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


# ---- wording: of texts with the same words, the plainest is preferred

_FILLER = (
    r"(?i)\b(?:really|also|indeed|presumably|currently|apparently|basically|actually|honestly|literally|obviously|just|"
    r"kind of|sort of|of course|in fact|you know|by the way|as far as known|lol)\b"
)
_PENALTIES = (
    (r"\.\.+[^\pL\pN]*$|\x{2026}[^\pL\pN]*$", 1.0),  # it breaks off
    (r"[\x{ad}\x{200b}-\x{200f}\x{2060}\x{feff}\x{a0}\t]|[^\S\n]{2}|^\s|\s$", 1.0),  # unusual blanks
    (r"^[^\p{Ll}]*$|\p{Ll}\p{Lu}\p{Lu}", 1.0),  # in capitals
    (_FILLER, 0.5),
    (r"^[^\pL]*\p{Ll}", 0.5),  # it begins with a small letter
    (r"[^.?\x{3002}\"')\]]$", 0.25),  # it ends without a mark
)
"""Patterns of RE2 for oddities of wording, each with its penalty."""
_IN_SMALL_LETTERS = r"(?:^|[^\pL\pN'\x{2019}])\p{Ll}"
_THREE_WORDS = r"\S\s+\S+\s+\S"


def wording_penalty(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the sum of the penalties for oddities of each text; 0 for a plain sentence.

    >>> wording_penalty(["Ada likes tea.", "Note: Ada likes tea.", "ADA LIKES TEA", "Ada really likes te..."]).tolist()
    [0.0, 1.0, 1.25, 1.5]
    """
    column = pa.array(texts, pa.large_string())
    lower = pc.utf8_lower(column)
    penalty = np.zeros(len(texts))
    for pattern, weight in _PENALTIES:
        penalty += weight * _has(column, pattern)
    wrapper = f"(?:{WRAPPER})|(?:{WRAPPER_AFTER})"
    if (wrapped := _has(lower, widen(wrapper))).any():
        penalty[wrapped] += _has(lower.filter(pa.array(wrapped)), wrapper)
    is_title_case = ~_has(column, _IN_SMALL_LETTERS) & _has(column, _THREE_WORDS) & _has(column, r"\p{Ll}")
    penalty += is_title_case
    penalty += np.asarray(pc.not_equal(pc.utf8_normalize(column, "NFC"), column), bool)
    return penalty


def _has(texts: Any, pattern: str) -> NDArray[np.bool_]:
    return np.asarray(pc.match_substring_regex(texts, pattern), bool)
