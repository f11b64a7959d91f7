"""An audit that was made: what was found, in which memories, and what was not looked for."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import msgspec
import pandas as pd

from memframe.audit.comparison import Comparison, compare_findings
from memframe.audit.findings import CHECKS, SEVERITIES, Check
from memframe.audit.saved import SavedAudit, read_findings, records_of, writing
from memframe.errors import ConfigError, FrameError, check_kind
from memframe.report.brief import brief_html
from memframe.report.verdict import counts_of, details, headline
from memframe.showing import number_of


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What `audit_memories` found: to look at, to compare, and to plan a cleanup from.

    Attributes
    ----------
    memories : DataFrame
        What was audited.
    findings : DataFrame
        One row an observation, the worst first, with the columns of `memframe.audit.findings.DTYPES`.
    checks : tuple of str
        What was looked for.
    not_checked : tuple of str
        What was not, in sentences.

    Examples
    --------
    >>> from memframe.audit import audit_memories
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["Door code: 2580#", "Likes tea"]})
    >>> audit = audit_memories(memories, checks=["secret", "missing"])
    >>> audit
    <Audit of 2 memories: 1 high>
    >>> audit.summary
        check severity  n_findings  n_memories  share
    0  secret     high           1           1    0.5
    >>> audit.rows("secret")
       id           content
    0  m1  Door code: 2580#
    """

    memories: pd.DataFrame
    findings: pd.DataFrame
    checks: tuple[Check, ...]
    not_checked: tuple[str, ...]

    def __repr__(self) -> str:
        counts = self.findings["severity"].value_counts()
        found = ", ".join(f"{counts[name]:,} {name}" for name in reversed(SEVERITIES) if name in counts)
        n = number_of(len(self.memories), "memory", "memories")
        return f"<Audit of {n}: {found or 'no findings'}>"

    @property
    def verdict(self) -> list[str]:
        """What it comes to, in sentences, the worst first; without any text of a memory."""
        counts, n = counts_of(self.findings), len(self.memories)
        return [headline(counts, n), *details(counts, n)]

    @property
    def summary(self) -> pd.DataFrame:
        """Findings by check and severity, the worst first.

        Columns ``check severity n_findings n_memories share``; the share is that of all memories. A check that
        found nothing has no row; `checks` names it.
        """
        counted = (
            self.findings.groupby(["severity", "check"])["id"]
            .agg(n_findings="size", n_memories="nunique")
            .reindex([(severity, check) for severity in reversed(SEVERITIES) for check in CHECKS])
            .dropna()
            .astype("int64")
            .reset_index()
        )
        counted["share"] = counted["n_memories"] / max(1, len(self.memories))
        return counted[["check", "severity", "n_findings", "n_memories", "share"]]

    def groups(self, check: Check) -> pd.DataFrame:
        """Clusters of a check, the largest first: memories that belong together.

        Columns ``group n_memories ids related_id score evidence``: the ids as a tuple, the memory that the others
        are seen beside, the lowest score in the cluster and the first words of evidence.
        """
        found = self._of(check)
        found = found[found["group"].notna() & found["id"].notna()]
        clusters = found.groupby("group").agg(
            ids=("id", lambda ids: tuple(dict.fromkeys(ids))),
            related_id=("related_id", "first"),
            score=("score", "min"),
            evidence=("evidence", "first"),
        )
        clusters.insert(0, "n_memories", clusters["ids"].map(len).astype("int64"))
        return clusters.sort_values("n_memories", ascending=False, kind="stable").reset_index()

    def rows(self, check: Check) -> pd.DataFrame:
        """The memories that a check found something in, as they were audited and in their order."""
        return self.memories[self.memories["id"].isin(self._of(check)["id"].dropna())]

    def compare(self, previous: Audit | str | PathLike[str]) -> Comparison:
        """What is new, gone and still there since another audit, which may be a file of `to_json`.

        Raises
        ------
        FrameError
            The file is no saved audit.
        """
        check_kind("previous", previous, Audit, str, PathLike, error=FrameError)
        earlier = previous.findings if isinstance(previous, Audit) else read_findings(Path(previous))
        return compare_findings(self.findings, earlier)

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write everything but the memories as JSON, readable by its owner alone.

        Raises
        ------
        FrameError
            The file cannot be written.
        """
        with writing(Path(path)) as file:
            file.write(self.json())

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write a report: one page without scripts or links, readable by its owner alone.

        Raises
        ------
        FrameError
            The file cannot be written.
        """
        with writing(Path(path)) as file:
            file.write(self._page().encode())

    def json(self) -> bytes:
        """The same as `to_json`, as UTF-8."""
        saved = SavedAudit(
            n_memories=len(self.memories),
            checks=list(self.checks),
            not_checked=list(self.not_checked),
            summary=records_of(self.summary),
            findings=records_of(self.findings),
        )
        return msgspec.json.encode(saved)

    def _page(self) -> str:
        from memframe.report.page import page_html  # noqa: PLC0415 - an audit does not need the pictures' library

        return page_html(self.findings, self.memories, checks=self.checks, not_checked=self.not_checked)

    def _repr_html_(self) -> str:
        return brief_html(self.findings, self.memories, checks=self.checks, not_checked=self.not_checked)

    def _of(self, check: Check) -> pd.DataFrame:
        if check not in CHECKS:
            raise ConfigError(f"check={check!r}: there is {', '.join(CHECKS)}")
        return self.findings[self.findings["check"] == check]
