"""A saved audit made anew: what it found, as far as that is still to be found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from memframe.access import Access
from memframe.audit import Audit, audit_memories
from memframe.audit.findings import Check
from memframe.audit.saved import findings_of, read_audit
from memframe.audit.tags import names_in
from memframe.cleanup.asked import PLANNED
from memframe.files import expand_path
from memframe.load import load_memories, load_tags

_RELATING = frozenset({"exact_duplicate", "near_duplicate"})
"""Checks whose evidence counts what is around, which does not make it another finding."""


class Renewal(NamedTuple):
    """A saved audit, made anew."""

    audit: Audit
    n_left_out: int
    """Findings that proposed something and are not to be found any more, or otherwise."""


def audit_again(access: Access, path: str | PathLike[str]) -> Renewal:
    """Load the memories, look for the same once more, and keep what the saved audit had found.

    A saved audit holds no texts, and its offsets are those of the texts as they were. So nothing is taken from it but
    which findings somebody has seen: what is found no more, or otherwise, is left out, and so is what is new.

    Parameters
    ----------
    access : Access
    path : str or path
        Of a file of `Audit.to_json`, or of ``memframe audit --json``.

    Raises
    ------
    FrameError
        The file is no saved audit.
    """
    saved = read_audit(expand_path(path))
    seen = findings_of(saved)
    memories = load_memories(access, progress=False)
    again = audit_memories(memories, tags=load_tags(access), checks=cast("list[Check]", saved.checks))
    left = Counter(_keys(seen))
    stayed = []
    for key in _keys(again.findings):
        stayed.append(left[key] > 0)
        left[key] -= stayed[-1]
    n_gone = (+Counter(_keys(seen[seen["action"].isin(PLANNED)])) & +left).total()
    return Renewal(
        replace(again, findings=again.findings[np.array(stayed, bool)].reset_index(drop=True)), n_gone
    )


def _keys(findings: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """What makes two findings one: their places move when a text is edited."""
    names = ("check", "kind", "id", "field", "related_id", "evidence")
    plain = findings[list(names)].astype(object).where(findings[list(names)].notna(), None)
    for check, kind, memory_id, field, related, evidence in plain.itertuples(index=False, name=None):
        said = None if check in _RELATING else names_in(evidence) if check == "tags" else evidence
        yield check, kind, memory_id, field, related, said
