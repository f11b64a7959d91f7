"""Sealed: content that could not be opened, and why; content that is sealed and was taken for plain, or the reverse."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from memframe.audit.findings import findings_frame, joined
from memframe.audit.masks import masked
from memframe.audit.texts import texts_with
from memframe.envelope.detect import looks_sealed
from memframe.frames import texts

_CAUSES = (
    ("key_version", re.compile(r"key_version")),
    ("surrogate", re.compile(r"lone surrogate")),
    ("layout", re.compile(r"^sealed as|does not show changes|in no known layout|not UTF-8")),
)
"""Kinds of finding, and what ``content_error`` says of them; everything else is ``undecryptable``."""

_DENSE = r"^\s*(?:\S{38}|\{)"
"""How content that looks sealed begins, as a pattern of RE2: without a space, or as JSON."""


def find_sealed(memories: pd.DataFrame) -> pd.DataFrame:
    """Content that is not in the open where it should be, or in the open where it should not.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id``; looks at ``content_error``, ``content`` and ``attrs["memframe"]`` of the load.

    Returns
    -------
    DataFrame
        Findings of the kinds ``key_version`` (sealed with another version of the key), ``layout`` (sealed in a
        way that is not read), ``undecryptable`` (wrong key or damage), ``surrogate`` (text that had to be mended),
        ``ciphertext`` (what was read as plain text looks sealed), and ``plain`` (some content of the load was
        stored unsealed among sealed; a load counts such memories and does not name them, so there is no ``id``).

    Examples
    --------
    >>> error = "sealed with key_version 1, these credentials hold 2"
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": [None, "tea"], "content_error": [error, None]})
    >>> find_sealed(memories)[["kind", "id", "severity", "action"]]
              kind  id severity  action
    0  key_version  m1     high  review
    """
    return joined(_all(memories))


def _all(memories: pd.DataFrame) -> Iterator[pd.DataFrame]:
    if "content_error" in memories.columns:
        yield _marked(memories)
    if "content" in memories.columns:
        yield _ciphertext(memories)
    yield _plain(memories)


def _marked(memories: pd.DataFrame) -> pd.DataFrame:
    errors = texts(memories, "content_error")
    rows = np.flatnonzero(errors.notna())
    kinds = [_cause(error) for error in errors.iloc[rows]]
    return findings_frame(
        check="sealed",
        kind=kinds,
        severity=["low" if kind == "surrogate" else "high" for kind in kinds],
        id=memories["id"].iloc[rows].tolist(),
        field="content",
        score=1.0,
        evidence=errors.iloc[rows].tolist(),
        action="review",
    )


def _cause(error: str) -> str:
    return next((kind for kind, words in _CAUSES if words.search(error)), "undecryptable")


def _ciphertext(memories: pd.DataFrame) -> pd.DataFrame:
    dense = texts_with(memories, _DENSE, fields=["content"])
    sealed = [text for text in dense if looks_sealed(text.text, among_sealed=False)]
    ids = memories["id"].tolist()
    return findings_frame(
        check="sealed",
        kind="ciphertext",
        severity="medium",
        id=[ids[text.row] for text in sealed],
        field="content",
        score=0.8,
        evidence=[f"looks sealed: {masked(text.text)}" for text in sealed],
        action="review",
    )


def _plain(memories: pd.DataFrame) -> pd.DataFrame:
    """What the load counted: memories that were stored unsealed beside others that were sealed."""
    report = memories.attrs.get("memframe", {})
    n_plain, n_rows = report.get("n_plain", 0), report.get("n_rows", 0)
    is_mixed = 0 < n_plain < n_rows
    return findings_frame(
        check="sealed",
        kind="plain",
        severity="medium",
        id=[None] * is_mixed,
        field="content",
        score=1.0,
        evidence=f"{n_plain:,} of {n_rows:,} memories stored unsealed among sealed ones",
        action="review",
    )
