"""Plainness: of texts that say the same, which one a person would rather keep.

The plain one: not wrapped («Note: ...»), not cut, not shouted, without fillers and characters that nobody sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.language.wrappers import WRAPPER, WRAPPER_AFTER

_FILLER = (
    r"(?i)\b(?:really|also|indeed|presumably|currently|apparently|basically|actually|honestly|literally|obviously|just|"
    r"kind of|sort of|of course|in fact|you know|by the way|as far as known|lol)\b"
)
_ODD = (
    (r"\.\.+[^\pL\pN]*$|\x{2026}[^\pL\pN]*$", 1.0),  # it breaks off
    (r"[\x{ad}\x{200b}-\x{200f}\x{2060}\x{feff}\x{a0}\t]|[^\S\n]{2}|^\s|\s$", 1.0),
    (r"^[^\p{Ll}]*$|\p{Ll}\p{Lu}\p{Lu}", 1.0),  # in capitals
    (_FILLER, 0.5),
    (r"^[^\pL]*\p{Ll}", 0.5),
    (r"[^.?\x{3002}\"')\]]$", 0.25),
)
"""What is odd about a text, as patterns of RE2, and how odd it is."""
_IN_SMALL_LETTERS = r"(?:^|[^\pL\pN'\x{2019}])\p{Ll}"
_THREE_WORDS = r"\S\s+\S+\s+\S"

Numbers = NDArray[np.float64]


def oddness(texts: Sequence[str]) -> Numbers:
    """How far each text is from plain: about one for each odd thing about it.

    >>> oddness(["Ada likes tea.", "Note: Ada likes tea.", "ADA LIKES TEA", "Ada really likes te..."]).tolist()
    [0.0, 1.0, 1.25, 1.5]
    """
    some = pa.array(texts, pa.large_string())
    lower = pc.utf8_lower(some)
    odd = np.zeros(len(texts))
    for pattern, weight in _ODD:
        odd += weight * _has(some, pattern)
    odd += _has(lower, WRAPPER) | _has(lower, WRAPPER_AFTER)
    odd += (
        ~_has(some, _IN_SMALL_LETTERS) & _has(some, _THREE_WORDS) & _has(some, r"\p{Ll}")
    )  # a capital a word
    return odd + _known(pc.not_equal(pc.utf8_normalize(some, "NFC"), some))


def _has(texts: Any, pattern: str) -> NDArray[np.bool_]:
    return _known(pc.match_substring_regex(texts, pattern))


def _known(values: Any) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return known
