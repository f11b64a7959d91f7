"""The result of an audit: what was found, in which memories, and what was not looked for; compared and saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct

from memframe.audit.candidates import Embed, find_candidates
from memframe.audit.evidence import labels_of
from memframe.audit.findings import CHECKS, DTYPES, SEVERITIES, are_figures, findings_frame, join_findings
from memframe.audit.judge import Judgement
from memframe.audit.text import with_all_columns
from memframe.display import html_card, number_of
from memframe.errors import ConfigError, FrameError, Hint, check_kind
from memframe.files import atomic_file, expand_path, raise_os_errors_as
from memframe.report import Count, brief_html, counts_of, proposals, verdict_of, worst_of

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
        return f"<memframe.Comparison: {', '.join(f'{n:,} {name}' for name, n in self._counts.items())}>"

    def _repr_html_(self) -> str:
        return html_card("Findings of two audits", self._counts)

    @property
    def _counts(self) -> dict[str, int]:
        return {name: len(frame) for name, frame in self._asdict().items()}


def _keys(findings: pd.DataFrame) -> pd.Series[Any]:
    """Return one key for each finding; the second of two equal ones has another than the first."""
    same = findings[_SAME].assign(evidence=findings["evidence"].mask(are_figures(findings)))
    plain = same.astype(object).where(same.notna(), None)
    keys = pd.Series(list(plain.itertuples(index=False, name=None)), index=findings.index, dtype=object)
    n_before = keys.groupby(keys).cumcount()
    return pd.Series(list(zip(keys, n_before, strict=True)), index=findings.index, dtype=object)


FORMAT = "memframe-audit/1"


class SavedAudit(Struct, kw_only=True):
    """Saved form of an audit: everything but the memories."""

    format: str = FORMAT
    n_memories: int
    checks: list[str]
    not_checked: list[str]
    summary: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    by_judge: list[str] = []
    judged: list[dict[str, Any]] = []
    is_stored: bool = True


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert rows to dicts of plain values, None if there is nothing."""
    plain = frame.astype(object).where(frame.notna(), None)
    return plain.to_dict("records")  # type: ignore[return-value]  # names of columns are text


def findings_of(saved: SavedAudit) -> pd.DataFrame:
    """Return the findings of a saved audit as a frame."""
    columns = {name: [finding.get(name) for finding in saved.findings] for name in DTYPES}
    return findings_frame(**columns)


def read_audit(path: Path) -> SavedAudit:
    """Read an audit that was saved.

    Raises
    ------
    FrameError
        The file cannot be read, or is no saved audit.
    """
    with raise_os_errors_as(FrameError, f"{path} cannot be read", "check the path"):
        stored = path.read_bytes()
    try:
        saved = msgspec.json.decode(stored, type=SavedAudit)
    except msgspec.DecodeError as error:
        written = Hint("Audit.to_json() writes one", "memframe audit --out writes one")
        raise FrameError(f"{path} is not an audit ({error})", hint=written) from None
    if saved.format != FORMAT:
        raise FrameError(f"{path} is a {saved.format}; this version reads {FORMAT}: audit again.")
    return saved


def _write(path: str | PathLike[str], written: bytes) -> None:
    path = expand_path(path)
    problem, way_out = f"{path} cannot be written", "choose another path, or correct this one"
    with raise_os_errors_as(FrameError, problem, way_out), atomic_file(path) as file:
        file.write(written)


MAX_SHOWN = 20
"""Findings of a check that a report lists; the others it counts."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Result of `audit_memories`, to review, to compare and to plan a cleanup from.

    Attributes
    ----------
    memories : DataFrame
        What was audited.
    findings : DataFrame
        One row per finding, most severe first, with the columns of `memframe.audit.findings.DTYPES`. Empty
        fields and memories that are merely old have one row per kind, without an id.
    checks : tuple of str
        What was looked for.
    not_checked : tuple of str
        What was not, in sentences.
    counted : DataFrame
        What such a row counts, one row a memory.
    made_at : datetime or None
        As of when; what "past" means for `stale`.
    judgement : Judgement
        What became of the questions to a judge, if there was one.
    embed : callable or None
        Vectors of texts, for `candidates`.
    is_stored : bool
        Whether a service holds the memories; those of a file are in none, and a cleanup cannot be planned for them.

    Examples
    --------
    >>> from memframe.audit import audit_memories
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["Door code: 2580#", "Likes tea"]})
    >>> audit = audit_memories(memories, checks=["secret", "missing"])
    >>> audit
    <memframe.Audit of 2 memories: 1 high>
    >>> audit.summary
        check severity  n_findings  n_memories  share
    0  secret     high           1           1    0.5
    >>> audit.rows("secret")
       id           content
    0  m1  Door code: 2580#
    """

    memories: pd.DataFrame
    findings: pd.DataFrame
    checks: tuple[str, ...]
    not_checked: tuple[str, ...]
    counted: pd.DataFrame = field(default_factory=partial(findings_frame, id=[]))
    made_at: datetime | None = None
    judgement: Judgement = field(default_factory=Judgement)
    embed: Embed | None = None
    is_stored: bool = True

    def __repr__(self) -> str:
        found = ", ".join(f"{n:,} {name}" for name, n in worst_of(self.by_memory).items())
        n = number_of(len(self.memories), "memory", "memories")
        return f"<memframe.Audit of {n}: {found or 'no findings'}>"

    @property
    def by_memory(self) -> pd.DataFrame:
        """Findings by memory, one row for each memory and finding, including those that `findings` only
        counts.
        """
        figures = self.findings[self.findings["id"].isna()]
        kinds = set(zip(figures["check"], figures["kind"], strict=True))
        pairs = zip(self.counted["check"], self.counted["kind"], strict=True)
        each = self.counted[np.array([pair in kinds for pair in pairs], bool)]
        return join_findings([self.findings[self.findings["id"].notna()], each[each["id"].notna()]])

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """Older memories that are most similar to each newer one, of which a person or a judge can tell what holds.

        Columns ``newer older rank score cue``; made when they are first asked for.
        """
        return find_candidates(with_all_columns(self.memories), embed=self.embed)

    @property
    def judged(self) -> pd.DataFrame:
        """Verdicts of the judge: ``question newer older verdict reason confidence model cached``, one row each.

        A question without an answer has no verdict.
        """
        return self.judgement.judged

    @property
    def by_judge(self) -> list[str]:
        """Describe how many questions a judge was asked and how reliable its answers are; empty without a
        judge.
        """
        return list(self.judgement.sentences()) if self.judgement.model else []

    @property
    def counts(self) -> list[Count]:
        """Count the memories of each check by their worst severity."""
        return counts_of(self.findings, self.by_memory)

    @property
    def proposals(self) -> list[str]:
        """Describe what the cleanup would do, counting each memory once."""
        return proposals(self.by_memory)

    @property
    def verdict(self) -> list[str]:
        """Summarize the audit in sentences, most severe first, without texts of memories."""
        return verdict_of(self.counts, len(self.memories))

    @property
    def summary(self) -> pd.DataFrame:
        """Count findings by check and severity, most severe first.

        Columns ``check severity n_findings n_memories share``. Each check counts a memory once, at its worst
        severity, as in the report; the share refers to all memories. A check without findings has no row; see
        `checks`.
        """
        n_findings = self.findings.groupby(["severity", "check"]).size()
        by_severity = {count.check: count.by_severity for count in self.counts}
        order = [(severity, check) for severity in reversed(SEVERITIES) for check in self._names]
        rows = [
            (check, severity, n_findings[severity, check], by_severity[check].get(severity, 0))
            for severity, check in order
            if (severity, check) in n_findings.index
        ]
        counted = pd.DataFrame(rows, columns=["check", "severity", "n_findings", "n_memories"])
        counted = counted.astype(
            {"check": "str", "severity": "str", "n_findings": "int64", "n_memories": "int64"}
        )
        return counted.assign(share=counted["n_memories"] / max(1, len(self.memories)))

    def groups(self, check: str) -> pd.DataFrame:
        """List the clusters of a check, largest first.

        Columns ``group n_memories ids related_id score evidence``: the ids as a tuple, the memory that the others
        are seen beside, the lowest score in the cluster and the first words of evidence.
        """
        found = self.findings[self.findings["check"] == self._known(check)]
        found = found[found["group"].notna() & found["id"].notna()]
        clusters = found.groupby("group").agg(
            ids=("id", lambda ids: tuple(dict.fromkeys(ids))),
            related_id=("related_id", "first"),
            score=("score", "min"),
            evidence=("evidence", "first"),
        )
        clusters.insert(0, "n_memories", clusters["ids"].map(len).astype("int64"))
        return clusters.sort_values("n_memories", ascending=False, kind="stable").reset_index()

    def rows(self, check: str) -> pd.DataFrame:
        """Return the memories in which a check found something, in their original order."""
        found = self.by_memory
        return self.memories[self.memories["id"].isin(found["id"][found["check"] == self._known(check)])]

    def compare(self, previous: Audit | str | PathLike[str]) -> Comparison:
        """Compare with another audit, which may be a file of `to_json`: new, gone and remaining findings.

        Raises
        ------
        FrameError
            The file is not a saved audit.
        """
        check_kind("previous", previous, Audit, str, PathLike, error=FrameError)
        if not isinstance(previous, Audit):
            earlier = findings_of(read_audit(expand_path(previous)))
        else:
            earlier = previous.findings
        keys, earlier_keys = _keys(self.findings), _keys(earlier)
        is_old, is_gone = keys.isin(earlier_keys).to_numpy(), ~earlier_keys.isin(keys).to_numpy()
        return Comparison(
            new=join_findings([self.findings[~is_old]]),
            gone=join_findings([earlier[is_gone]]),
            stayed=join_findings([self.findings[is_old]]),
        )

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write everything except the memories as JSON, readable only by its owner.

        Raises
        ------
        FrameError
            The file cannot be written.
        """
        _write(path, self.json())

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write a report: one page without scripts or links, readable only by its owner.

        Raises
        ------
        FrameError
            The file cannot be written.
        """
        from memframe.report.page import page_html  # noqa: PLC0415 - an audit does not need matplotlib

        is_figure = are_figures(self.findings)
        listed = self.findings[~is_figure].groupby("check", sort=False).head(MAX_SHOWN)
        shown = join_findings([self.findings[is_figure], listed])
        page = page_html(self, shown, labels=labels_of(self.memories, {*shown["id"], *shown["related_id"]}))
        _write(path, page.encode())

    def json(self) -> bytes:
        """Return the JSON that `to_json` writes, in UTF-8."""
        saved = SavedAudit(
            n_memories=len(self.memories),
            checks=list(self.checks),
            not_checked=list(self.not_checked),
            summary=records_of(self.summary),
            findings=records_of(self.findings),
            by_judge=self.by_judge,
            judged=records_of(self.judged),
            is_stored=self.is_stored,
        )
        return msgspec.json.encode(saved)

    def _repr_html_(self) -> str:
        return brief_html(self)

    @property
    def _names(self) -> list[str]:
        """Names of checks: all that there are, and somebody's own that were run."""
        return list(dict.fromkeys([*CHECKS, *self.checks]))

    def _known(self, check: str) -> str:
        if check not in self._names:
            raise ConfigError(f"check={check!r}: there is {', '.join(self._names)}")
        return check
