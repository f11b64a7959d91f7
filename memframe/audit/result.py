"""The result of an audit: its findings, their memories, and what was not looked for; compared and saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct

from memframe.audit.candidates import Embed, find_candidates
from memframe.audit.evidence import labels_of, quote_secrets
from memframe.audit.findings import (
    CHECKS,
    DTYPES,
    SEVERITIES,
    are_figures,
    check_findings,
    findings_frame,
    join_findings,
)
from memframe.audit.identity import digest_text, keys_of, list_once, split_by_keys, texts_judged
from memframe.audit.judge import Judgement
from memframe.audit.sarif import files_and_lines, sarif_json
from memframe.audit.text import with_all_columns
from memframe.decisions import Settled
from memframe.display import html_card, number_of
from memframe.errors import ConfigError, FrameError, Hint, JournalError, check_kind
from memframe.files import expand_path, raise_os_errors_as, write_own_file
from memframe.keystore import DataKey, open_local_cipher
from memframe.report.overview import Overview, describe_proposals, describe_subject, overview_html
from memframe.report.verdict import Count, count_by_worst, counts_of, list_proposals, sources_of, verdict_of
from memframe.report.words import none_found


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Findings of two audits, as three frames: ``new, gone, stayed = audit.compare(previous)``.

    Attributes
    ----------
    new : DataFrame
        Findings of the later audit that the earlier one did not have.
    gone : DataFrame
        Findings of the earlier audit that the later one does not have.
    stayed : DataFrame
        Findings of the later audit that both have.
    settled : DataFrame
        Findings of the earlier audit that a person has rejected since, so that the later one does not list them.
    note : str
        Reason why findings could only be compared by check, kind, memory and field; empty if texts were compared, too.
    """

    new: pd.DataFrame
    gone: pd.DataFrame
    stayed: pd.DataFrame
    settled: pd.DataFrame = field(default_factory=partial(findings_frame, id=[]))
    note: str = ""

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return iter((self.new, self.gone, self.stayed))

    def __repr__(self) -> str:
        counts = ", ".join(f"{n:,} {name}" for name, n in self.counts.items())
        return f"<memframe.Comparison: {counts}{'; ' * bool(self.note)}{self.note}>"

    def _repr_html_(self) -> str:
        return html_card("Findings of two audits", self.counts | ({"note": self.note} if self.note else {}))

    @property
    def counts(self) -> dict[str, int]:
        """Count the findings of each frame."""
        return {name: len(getattr(self, name)) for name in ("new", "gone", "settled", "stayed")}


AUDIT_FORMAT = "memframe-audit/1"


class TextDigests(Struct):
    """Keyed digests of the texts that the findings judge."""

    key: str
    """Id of the data key of this user on this machine."""
    texts: list[str]


class SavedAudit(Struct, kw_only=True):
    """Saved form of an audit: everything but the memories."""

    format: str = AUDIT_FORMAT
    n_memories: int
    checks: list[str]
    not_checked: list[str]
    summary: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    by_judge: list[str] = []
    judged: list[dict[str, Any]] = []
    is_stored: bool = True
    settled: Settled = Settled()
    digests: TextDigests | None = None
    """None in files of earlier versions, and if there was no data key."""


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert rows to dicts of plain values, with None for missing ones."""
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
    except (msgspec.DecodeError, RecursionError) as error:
        written = Hint("Audit.to_json() writes one", "memframe audit --out writes one")
        raise FrameError(f"{path} is not an audit ({error})", hint=written) from None
    if saved.format != AUDIT_FORMAT:
        raise FrameError(f"{path} is a {saved.format}; this version reads {AUDIT_FORMAT}: audit again.")
    return saved


# Parts of the note on a comparison without texts

_NO_DIGESTS = "holds no digests of texts, as earlier versions of memframe wrote none"
_NO_KEY = "was saved with a data key that is not here, by another user or on another machine"
_COARSE = "findings were compared by check, kind, memory and field alone"


def _key_of(saved: SavedAudit) -> DataKey | None:
    """Return the data key with which the digests of a saved audit were made; None if it is not on this machine."""
    if saved.digests is None:
        return None
    try:
        keys = open_local_cipher().keys
    except JournalError:  # the note of the comparison names the reason
        return None
    return next((key for key in keys if key.id.hex() == saved.digests.key), None)


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Result of `audit_memories`, to review, to compare and to plan a cleanup from.

    Attributes
    ----------
    memories : DataFrame
        The audited memories, with the ids of the findings. A memory from a file that has none is named by its
        ``origin_id`` or its label, as in ``row 3``. ``audit.findings.merge(audit.memories, on="id")`` joins the two.
    findings : DataFrame
        One row per finding, most severe first, with the columns of `memframe.audit.findings.DTYPES`. Empty
        fields and memories that are merely old have one row per kind, without an id.
    checks : tuple of str
        Names of the checks that were run.
    not_checked : tuple of str
        Sentences on what was not looked for.
    counted : DataFrame
        The memories that rows without an id count, one row per memory.
    made_at : datetime or None
        Moment of the audit; times before it are past for `stale`.
    judgement : Judgement
        Outcome of the questions to a judge, if there was one.
    embed : callable or None
        Function that returns vectors of texts, for `candidates`.
    is_stored : bool
        True if the memories are from a service; a cleanup of memories from a file is planned without an access.
    settled : Settled
        Numbers of findings that a person has settled by the given decisions; they are not among ``findings``.
    answered : DataFrame
        Findings with a decision that holds, and its column ``decision``. Rejected ones are here alone; those that
        were put off, or accepted or edited and not applied yet, are among ``findings`` as well.

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
    settled: Settled = field(default_factory=Settled)
    answered: pd.DataFrame = field(
        default_factory=lambda: findings_frame(id=[]).assign(decision=pd.array([], "str"))
    )

    def __post_init__(self) -> None:
        check_findings(self.findings)

    def __repr__(self) -> str:
        found = ", ".join(f"{n:,} {name}" for name, n in count_by_worst(self.findings).items())
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
        """The older memories that are most similar to each newer one, for a person or a judge to compare.

        Columns ``newer older rank score cue``; computed on first use.
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
        """Count the memories of each check by their worst severity, without figures."""
        found = self.findings[~are_figures(self.findings)]
        return counts_of(found, found[found["id"].notna()])

    @property
    def by_source(self) -> pd.DataFrame:
        """Count the memories of each source by their worst severity, the sources with the worst first.

        Columns ``source n_memories n_found high medium low info``; memories that only figures count are not
        among ``n_found``. Empty if the memories name no sources.
        """
        return sources_of(self.memories, self.findings[~are_figures(self.findings)])

    @property
    def proposals(self) -> list[str]:
        """Describe what the cleanup would do, counting each memory once."""
        return list_proposals(self.by_memory)

    @property
    def verdict(self) -> list[str]:
        """Summarize the audit in sentences, most severe first, without texts of memories."""
        if len(self.figures) == len(self.findings) > 0:
            return ["Nothing is to be decided.", *self._settled]
        return [*verdict_of(self.counts, len(self.memories)), *self._settled]

    @property
    def _settled(self) -> list[str]:
        n_accepted = int(self.answered["decision"].isin(("accepted", "edited")).sum())
        waiting = [f"{n_accepted:,} accepted, and not applied yet."] if n_accepted else []
        return [*([f"{self.settled}."] if self.settled else []), *waiting]

    @property
    def summary(self) -> pd.DataFrame:
        """Count findings by check and severity, most severe first.

        Columns ``check severity n_findings n_memories share``. Each check counts a memory once, at its worst
        severity; the share refers to all memories. Unlike the report, it has the memories of figures, too. A check
        without findings has no row; see `checks`.
        """
        n_findings = self.findings.groupby(["severity", "check"]).size()
        by_severity = {count.check: count.by_severity for count in counts_of(self.findings, self.by_memory)}
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

        Columns ``group n_memories ids related_id score evidence``: the ids as a tuple, the memory to which the others
        are related, the lowest score in the cluster and the evidence of the first finding. Checks that do not relate
        memories, such as ``secret``, have a cluster for each value that was found, because one decision settles all
        places of a value.
        """
        found = self.findings[self.findings["check"] == self._known(check)]
        found = found[found["id"].notna()]
        if found["group"].notna().any():
            found = found[found["group"].notna()]
        else:
            found = found.assign(
                group=pd.array(pd.factorize(np.array(_texts_of(self, found), object))[0], "Int64")
            )
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
        with_rejected = replace(self, findings=self.rejected)
        if isinstance(previous, Audit):
            earlier, note = previous.findings, ""
            keys, rejected_keys = (
                keys_of(audit.findings, _texts_of(audit, audit.findings)) for audit in (self, with_rejected)
            )
            earlier_keys = keys_of(earlier, _texts_of(previous, earlier))
        else:
            path = expand_path(previous)
            saved = read_audit(path)
            earlier = findings_of(saved)
            keys, earlier_keys, note = keys_beside(self, saved, path)
            rejected_keys, *_ = keys_beside(with_rejected, saved, path)
        parts = split_by_keys(self.findings, keys, earlier, earlier_keys, rejected_keys)
        return Comparison(*parts, note=note)

    @property
    def rejected(self) -> pd.DataFrame:
        """The findings that a person has rejected, which are not listed."""
        return self.answered[self.answered["decision"] == "rejected"].drop(columns="decision")

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write everything except the memories as JSON, readable only by its owner.

        An earlier audit at `path` is replaced, any other file is not.

        Raises
        ------
        FrameError
            The file cannot be written, or is something else.
        """
        write_own_file(path, self.json(), "audit", error=FrameError)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write a report: one page without scripts or links, readable only by its owner.

        An earlier report at `path` is replaced, any other file is not.

        Raises
        ------
        FrameError
            The file cannot be written, or is something else.
        """
        write_own_file(path, self.html().encode(), "report", error=FrameError)

    def to_sarif(self, path: str | PathLike[str]) -> None:
        """Write the findings of memories that were read from files as SARIF 2.1.0, without texts of memories.

        An earlier file of this kind at `path` is replaced, any other file is not.

        Raises
        ------
        FrameError
            The memories are not from files, or the file cannot be written, or is something else.
        """
        write_own_file(path, self.sarif(), "SARIF file", error=FrameError)

    def sarif(self) -> bytes:
        """Return the JSON that `to_sarif` writes."""
        if not files_and_lines(self.memories) and len(self.memories):
            raise FrameError(
                "SARIF names files and lines, and these memories are from none: read_memories has them"
            )
        return sarif_json(self.findings, self.memories, self.checks)

    def html(self) -> str:
        """Return the page that `to_html` writes."""
        from memframe.report.page import MAX_ROWS, MAX_WORST, PageFindings, report_html  # noqa: PLC0415 - an audit does not need matplotlib

        findings = PageFindings(self.findings, self.listed, self.worst(MAX_WORST), self.by_source)
        shown = pd.concat([self.listed.groupby("check", sort=False).head(MAX_ROWS), findings.worst])
        ids = {memory_id for ids in shown["ids"] for memory_id in ids[:MAX_ROWS]}
        labels = labels_of(self.memories, ids | {*shown["related_id"]})
        quotes = quote_secrets(self.memories, shown)
        return report_html(self._overview(), findings, self.memories, labels=labels, quotes=quotes)

    def _overview(self) -> Overview:
        return Overview(
            n_memories=len(self.memories),
            subject=describe_subject(self.memories, self.made_at),
            verdict=self.verdict,
            proposed=describe_proposals(self.proposals, is_stored=self.is_stored),
            counts=self.counts,
            none_found=none_found(self.findings, self.checks),
            figures=self.figures["evidence"].tolist(),
            by_judge=self.by_judge,
            not_checked=self.not_checked,
        )

    @property
    def figures(self) -> pd.DataFrame:
        """Findings that only count memories, one row each: empty fields, constant scores, old memories."""
        return self.findings[are_figures(self.findings)]

    @cached_property
    def listed(self) -> pd.DataFrame:
        """Findings without figures, one row for each value or text, with the columns ``ids`` and ``n_times``."""
        return list_once(self.findings[~are_figures(self.findings)], self.memories)

    def worst(self, n: int) -> pd.DataFrame:
        """Return the first `n` rows of `listed` that need a decision, most severe first, then most frequent first."""
        listed = self.listed
        listed = listed[(listed["action"] != "none") & listed["severity"].isin(("high", "medium", "low"))]
        rank = listed["severity"].map({name: place for place, name in enumerate(reversed(SEVERITIES))})
        by_size = listed["n_times"].to_numpy()
        return listed.iloc[np.lexsort((-by_size, rank))[:n]]

    def labels(self, findings: pd.DataFrame, *, with_place: bool = True) -> dict[str, str]:
        """Return titles or first words of the memories of findings, by id, with secrets masked."""
        return labels_of(self.memories, {*findings["id"], *findings["related_id"]}, with_place=with_place)

    def json(self) -> bytes:
        """Return the JSON that `to_json` writes, in UTF-8."""
        saved = SavedAudit(
            n_memories=len(self.memories),
            checks=list(self.checks),
            not_checked=list(self.not_checked),
            summary=plain_records(self.summary),
            findings=self._placed_findings(),
            by_judge=self.by_judge,
            judged=plain_records(self.judged),
            is_stored=self.is_stored,
            settled=self.settled,
            digests=self._text_digests(),
        )
        return msgspec.json.encode(saved)

    def _placed_findings(self) -> list[dict[str, Any]]:
        """Return the findings as dicts, with file and line where the memories are from files."""
        places, records = files_and_lines(self.memories), plain_records(self.findings)
        for record in records if places else ():
            record["file"], record["line"] = places.get(record["id"], (None, None))
        return records

    def _text_digests(self) -> TextDigests | None:
        try:
            key = open_local_cipher().keys[0]
        except JournalError:  # the audit is saved without digests; the note of a comparison names the reason
            return None
        texts = [digest_text(key.digest_key, text) for text in _texts_of(self, self.findings)]
        return TextDigests(key.id.hex(), texts)

    def _repr_html_(self) -> str:
        return overview_html(self._overview())

    @property
    def _names(self) -> list[str]:
        """Names of all checks, and of those of your own that were run."""
        return list(dict.fromkeys([*CHECKS, *self.checks]))

    def _known(self, check: str) -> str:
        if check not in self._names:
            raise ConfigError(f"check={check!r}: there is {', '.join(self._names)}")
        return check


def _texts_of(audit: Audit, findings: pd.DataFrame) -> list[str]:
    return texts_judged(findings, audit.memories, audit.counted)


def keys_beside(audit: Audit, saved: SavedAudit, path: Path) -> tuple[list[Any], list[Any], str]:
    """Return the keys of the findings of an audit and of a saved one, and a note if they do without texts.

    Texts are compared by their digests, if the saved audit has them and their key is on this machine.
    """
    earlier, key = findings_of(saved), _key_of(saved)
    if key is None or saved.digests is None or len(saved.digests.texts) != len(earlier):
        note = f"{path} {_NO_DIGESTS if saved.digests is None else _NO_KEY}: {_COARSE}"
        return keys_of(audit.findings, None), keys_of(earlier, None), note
    own = [digest_text(key.digest_key, text) for text in _texts_of(audit, audit.findings)]
    return keys_of(audit.findings, own), keys_of(earlier, saved.digests.texts), ""
