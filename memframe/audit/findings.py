"""Findings: the observations of checks, one row each, in a frame that always has the same columns and dtypes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import pandas as pd

from memframe.errors import FrameError, check_kind

Check = Literal[
    "exact_duplicate",
    "near_duplicate",
    "version",
    "stale",
    "secret",
    "personal_data",
    "planted",
    "junk",
    "missing",
    "scores",
    "tags",
    "sealed",
]
CHECKS: tuple[Check, ...] = get_args(Check)

Severity = Literal["info", "low", "medium", "high"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Severities from the least to the worst."""

Proposal = Literal["delete", "merge", "redact", "strip", "retag", "rescale", "review", "none"]
PROPOSALS: tuple[Proposal, ...] = get_args(Proposal)

ENDING: frozenset[Proposal] = frozenset({"delete", "merge"})
"""Proposals after which a memory is gone; the others edit it."""

DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "check": "str",
        "kind": "str",
        "severity": "str",
        "id": "str",
        "field": "str",
        "start": "Int64",
        "end": "Int64",
        "related_id": "str",
        "group": "Int64",
        "score": "float64",
        "evidence": "str",
        "action": "str",
    }
)
"""Columns of a frame of findings.

``check`` and ``kind`` name the observation, ``id`` the memory and ``field`` its column. ``start`` and ``end`` are the
span in that field, as offsets of characters (``end`` exclusive). ``related_id`` is the memory with which it is
compared: the keeper of a duplicate, the newer fact. ``group`` is the number of a cluster within its check. ``score`` is
from 0 to 1. ``evidence`` is for people, and secrets in it are masked. ``action`` is what the cleanup will do, one of
`PROPOSALS`. An observation about many memories is one row without an id, a figure (`are_figures`), whose ``score`` is
the share of memories and whose ``evidence`` has their number.
"""


class Finding(NamedTuple):
    """One observation of a check, which is a row of findings; `DTYPES` describes its fields."""

    check: str
    kind: str
    severity: Severity
    id: str | None
    field: str | None = None
    start: int | None = None
    end: int | None = None
    related_id: str | None = None
    group: int | None = None
    score: float | None = None
    evidence: str | None = None
    action: Proposal | None = None


def list_findings(found: Iterable[Finding]) -> pd.DataFrame:
    """Build a frame of findings from records, in their order.

    >>> list_findings([Finding("junk", "empty", "low", "m1", action="delete")])[["check", "id", "action"]]
      check  id  action
    0  junk  m1  delete
    """
    columns = dict(zip(Finding._fields, map(list, zip(*found, strict=True)), strict=False))
    return findings_frame(**(columns or {"id": []}))


def findings_frame(**columns: Sequence[Any] | str | float | None) -> pd.DataFrame:
    """Build findings from one sequence per column; a single value is for all rows, and other columns are missing.

    Examples
    --------
    >>> found = findings_frame(check="missing", kind="title", id=["m1", "m2"], severity="low", action="none")
    >>> found[["check", "kind", "id", "score"]]
         check   kind  id  score
    0  missing  title  m1    NaN
    1  missing  title  m2    NaN
    """
    unknown = columns.keys() - DTYPES.keys()
    if unknown:
        raise TypeError(f"a finding has no {', '.join(sorted(unknown))}")
    n_rows = len(columns.get("id", ()))  # type: ignore[arg-type]  # a sequence, as the id always differs
    return _build(columns, n_rows) if n_rows else _no_findings().copy()


def _build(columns: Mapping[str, Any], n_rows: int) -> pd.DataFrame:
    arrays: dict[str, Any] = {}  # no Series, whose index costs a small audit more than what it looks for
    for name, dtype in DTYPES.items():
        value = columns.get(name)
        is_single = value is None or isinstance(value, str | float)
        cells: Any = [value] * n_rows if is_single else value
        arrays[name] = pd.array(cells, dtype=dtype)
    return pd.DataFrame(arrays, copy=False)


@functools.cache
def _no_findings() -> pd.DataFrame:
    """Build an empty frame once, because it is slow to build, and the result of most checks of a small store."""
    return _build({}, 0)


def plain_columns(findings: pd.DataFrame, *names: str) -> list[list[Any]]:
    """Return the cells of some columns, None for a missing one.

    >>> plain_columns(list_findings([Finding("junk", "empty", "low", "m1")]), "id", "start")
    [['m1'], [None]]
    """
    return [findings[name].array.to_numpy(object, na_value=None).tolist() for name in names]


def join_findings(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Join the findings of several checks in one frame; groups keep their numbers within their check."""
    frames = [part for part in parts if len(part)]
    return pd.concat(frames, ignore_index=True) if frames else findings_frame(id=[])


FIGURES = frozenset({"never_updated", "constant_confidence"})
"""Kinds that are counted like all kinds of the check ``missing``, because no single memory needs a decision."""


def are_figures(findings: pd.DataFrame) -> pd.Series[bool]:
    """Return True for findings that an audit counts instead of listing: empty fields, old memories, constant scores."""
    return (findings["check"] == "missing") | findings["kind"].isin(FIGURES)


def check_findings(findings: object) -> None:
    """Refuse a frame that cannot be the findings of an audit, such as one without some of the columns.

    >>> check_findings(findings_frame(id=["m1"], check="junk").drop(columns="action"))
    Traceback (most recent call last):
    memframe.errors.FrameError: the findings have no column 'action': keep all columns of audit.findings
    """
    check_kind("findings", findings, pd.DataFrame, error=FrameError)
    columns = findings.columns  # type: ignore[attr-defined]  # it is a frame
    for name in DTYPES:
        n_columns = int((columns == name).sum())
        if n_columns != 1:
            fault = "no column" if not n_columns else f"{n_columns} columns"
            raise FrameError(f"the findings have {fault} {name!r}: keep all columns of audit.findings")
    for name, allowed in (("check", None), ("severity", SEVERITIES), ("action", PROPOSALS)):
        cells = findings[name]  # type: ignore[index]  # it is a frame
        wrong = cells[cells.isna() if allowed is None else ~cells.isin(allowed)]
        if len(wrong):
            there_is = f"there is {', '.join(allowed)}" if allowed else "each needs the name of a check"
            raise FrameError(f"the findings have the {name} {wrong.iloc[0]!r:.60}: {there_is}")


def split_figures(findings: pd.DataFrame, n_memories: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Replace counted findings by one row for each kind and group; return the new findings, and the replaced ones.

    >>> found = findings_frame(check="missing", kind="title", id=["m1", "m2"], evidence="no title", severity="low")
    >>> figures, counted = split_figures(found, 8)
    >>> figures[["kind", "id", "score", "evidence"]].values.tolist()
    [['title', nan, 0.25, '2 of 8 memories: no title']]
    >>> counted.id.tolist()
    ['m1', 'm2']
    """
    is_counted = are_figures(findings)
    counted = findings[is_counted]
    if counted.empty:
        return findings, counted
    keys = ["check", "kind", "group"]
    n_of = counted.groupby(keys, sort=False, dropna=False).size().tolist()
    first = counted.drop_duplicates(keys)
    figures = first.assign(
        id=pd.array([None] * len(n_of), "str"),
        score=[n / n_memories for n in n_of],
        evidence=[
            f"{n:,} of {n_memories:,} memories: {words}"
            for n, words in zip(n_of, first["evidence"], strict=True)
        ],
    )
    return join_findings([findings[~is_counted], figures]), counted.reset_index(drop=True)
