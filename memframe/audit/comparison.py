"""Comparison: what has come, gone and stayed between two audits."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from memframe.audit.findings import are_figures, joined

_SAME = ["check", "kind", "id", "field", "related_id", "evidence"]
"""Columns by which a finding is known again: places move when a text is edited, scores with every change around, and
so do the numbers in the evidence of a figure."""


class Comparison(NamedTuple):
    """Findings of two audits.

    Attributes
    ----------
    new : DataFrame
        Findings of the later audit that the earlier one did not have.
    gone : DataFrame
        Findings of the earlier audit that the later one does not have.
    stayed : DataFrame
        Findings of the later audit that both have.
    """

    new: pd.DataFrame
    gone: pd.DataFrame
    stayed: pd.DataFrame

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.new):,} new, {len(self.gone):,} gone, {len(self.stayed):,} stayed>"


def compare_findings(later: pd.DataFrame, earlier: pd.DataFrame) -> Comparison:
    """Which findings are new, gone and still there; equal ones are counted one by one."""
    keys, earlier_keys = _keys(later), _keys(earlier)
    is_old = keys.isin(earlier_keys).to_numpy()
    is_gone = ~earlier_keys.isin(keys).to_numpy()
    return Comparison(
        new=joined([later[~is_old]]), gone=joined([earlier[is_gone]]), stayed=joined([later[is_old]])
    )


def _keys(findings: pd.DataFrame) -> pd.Series[Any]:
    """One key a finding; the second of two equal ones has another than the first."""
    same = findings[_SAME].assign(evidence=findings["evidence"].mask(are_figures(findings)))
    plain = same.astype(object).where(same.notna(), None)
    keys = pd.Series(list(plain.itertuples(index=False, name=None)), index=findings.index, dtype=object)
    return pd.Series(
        list(zip(keys, keys.groupby(keys).cumcount(), strict=True)), index=findings.index, dtype=object
    )
