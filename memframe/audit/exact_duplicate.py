"""Exact duplicates: memories of one person with the same text, character for character."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.findings import Proposal, findings_frame
from memframe.audit.keeper import FILLED, precedence
from memframe.audit.text import text_column


def find_exact_duplicates(memories: pd.DataFrame) -> pd.DataFrame:
    """Memories of one user with the same content, character for character, each group with the one to keep.

    One row a memory. The keeper, which has most fields and tags filled (then: was updated last, has the smallest id),
    has the kind ``keeper``, the action ``none`` and no ``related_id``; the others have the kind ``copy``, the keeper as
    ``related_id`` and the action ``delete``; or ``merge``, if they have a tag, or a title, summary, source or score
    where the keeper has none.

    It finds all of them, and nothing else. Titles, tags and scores are not compared, and a blank more makes another
    text, for which there is `find_near_duplicates`.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": "Ada likes tea."}, columns=list(MEMORY_KINDS))
    >>> find_exact_duplicates(memories)[["kind", "id", "related_id", "action"]]
         kind  id related_id  action
    0  keeper  m1        NaN    none
    1    copy  m2         m1  delete
    """
    copies = copies_of(memories)
    rows = np.flatnonzero(copies >= 0)
    keepers = copies[rows]
    n_copies = np.bincount(keepers, minlength=len(memories))
    rows, keepers = rows[n_copies[keepers] > 1], keepers[n_copies[keepers] > 1]
    ids = memories["id"].to_numpy(object)
    order = np.lexsort((ids[rows].astype(str), rows != keepers, ids[keepers].astype(str)))
    rows, keepers = rows[order], keepers[order]
    kept = rows == keepers
    groups = np.cumsum(kept) - 1
    return findings_frame(
        check="exact_duplicate",
        kind=["keeper" if keep else "copy" for keep in kept],
        severity=["info" if keep else "low" for keep in kept],
        id=ids[rows].tolist(),
        field="content",
        related_id=[None if keep else ids[keeper] for keep, keeper in zip(kept, keepers, strict=True)],
        group=groups.tolist(),
        score=1.0,
        evidence=[_evidence(keep, n_copies[keeper]) for keep, keeper in zip(kept, keepers, strict=True)],
        action=_actions(memories, rows, keepers),
    )


def _actions(memories: pd.DataFrame, rows: NDArray[np.int64], keepers: NDArray[np.int64]) -> list[Proposal]:
    """Return what a cleanup does with each row, given the row that is kept of its text."""
    cells = memories[[*FILLED, "tags"]]
    own, kept = (cells.iloc[places].itertuples(index=False, name=None) for places in (rows, keepers))
    return [
        "none" if row == keeper else "merge" if _holds_more(copy, other) else "delete"
        for row, keeper, copy, other in zip(rows, keepers, own, kept, strict=True)
    ]


def _holds_more(copy: tuple[Any, ...], keeper: tuple[Any, ...]) -> bool:
    """Return whether a copy fills a field that its keeper leaves empty, or has another tag."""
    (*cells, tags), (*kept, kept_tags) = copy, keeper
    fills = any(_is_filled(cell) and not _is_filled(other) for cell, other in zip(cells, kept, strict=True))
    return fills or not _names(tags) <= _names(kept_tags)


def _is_filled(cell: Any) -> bool:
    return bool(cell.strip()) if isinstance(cell, str) else pd.notna(cell)


def _names(tags: object) -> frozenset[str]:
    return frozenset(tags) if isinstance(tags, Iterable) else frozenset()


def _evidence(kept: bool, n_copies: int) -> str:
    return f"kept: {n_copies} memories have this text" if kept else f"one of {n_copies} with the same text"


def copies_of(memories: pd.DataFrame) -> NDArray[np.int64]:
    """For each row the row to keep of all with the same user and content; -1 for rows without content."""
    content = text_column(memories, "content")
    readable = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(content), ""), False).to_numpy(
        zero_copy_only=False
    )
    texts = pc.dictionary_encode(content.fill_null("")).indices.to_numpy().astype(np.int64)
    owners = owners_of(memories)
    keys = texts * (owners.max(initial=0) + 1) + owners
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate([[True], keys[order[1:]] != keys[order[:-1]]]) if len(keys) else np.zeros(0, bool)
    groups = np.cumsum(starts) - 1
    shared = order[np.bincount(groups, minlength=1)[groups] > 1] if len(order) else order
    keepers = np.arange(len(memories))
    if len(shared):
        places = precedence(memories.iloc[shared])
        by_group = pd.Series(places).groupby(keys[shared])
        keepers[shared] = shared[np.argsort(places)[by_group.transform("min").to_numpy()]]
    return np.where(readable, keepers, -1)


def owners_of(memories: pd.DataFrame) -> NDArray[np.int64]:
    """A number for the user of each row, the same in whichever order the rows come."""
    if "user_id" not in memories:
        return np.zeros(len(memories), np.int64)  # of one user, as far as the frame says
    return pd.factorize(memories["user_id"].fillna(""), sort=True)[0].astype(np.int64)
