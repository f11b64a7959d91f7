"""Clean files of other memory systems in their own format: the file takes the place of the service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from os import PathLike
from pathlib import Path

import pandas as pd
from msgspec.structs import replace

from memframe.archive import is_sealed
from memframe.archive.formats import is_archive
from memframe.audit import Audit, audit_memories
from memframe.audit.evidence import values_of
from memframe.audit.policy import PolicyOption
from memframe.audit.run import ensure_ids
from memframe.clean.files import copy_files, replace_files, undo_files
from memframe.clean.patch import make_search, mask_texts, patch_of, ways_to_write
from memframe.cleanup import plan_cleanup
from memframe.cleanup.proposals import Actions
from memframe.display import number_of
from memframe.errors import ConfigError, FrameError, Hint, PlanError, check_kind
from memframe.files import expand_path
from memframe.plan import LeftOut, Plan
from memframe.plan.change import Change, format_counts
from memframe.plan.current import current_of
from memframe.readers import Reading, read_input
from memframe.readers.edits import (
    EditedDocument,
    Texts,
    apply_edits,
    edit_documents,
    explain_undeletable,
    explain_unwritable,
    find_misread,
    find_writable,
)
from memframe.readers.formats import FORMATS
from memframe.readers.rows import Collector, read_zone
from memframe.readers.source import open_path
from memframe.review import review
from memframe.snapshots import SNAPSHOTS

__all__ = ["CleanedFile", "FileToClean", "clean_file", "open_file", "write_plan"]

MAX_ROUNDS = 100
"""Most changes that are left out, one after the other, because the file would be read differently with them."""

MISREAD = "in this format the file would be read differently with it"
"""Reason for such a change."""


@dataclass(frozen=True)
class FileToClean:
    """A file or folder that was read to be cleaned."""

    path: Path
    reading: Reading
    memories: pd.DataFrame
    """Memories of the file, with the ids that an audit gives them."""
    zone: tzinfo | None
    now: datetime


@dataclass(frozen=True)
class CleanedFile:
    """The outcome of `clean_file`.

    Attributes
    ----------
    path : Path
        The file that was read.
    plan : Plan
        The changes; ``plan.left`` names those that could not be written, with the reasons.
    out : Path or None
        The cleaned file; None if nothing was written.
    backup : Path or None
        The sealed backup from which `undo` restores a file that was changed in place.
    diff : str
        The changes as a unified patch. Secrets in it are masked, so that a patch with some cannot be applied.
    """

    path: Path
    plan: Plan
    out: Path | None
    backup: Path | None
    diff: str

    def __repr__(self) -> str:
        where = f"{self.out}" if self.out else "nothing written"
        return f"<memframe.CleanedFile {self.path.name}: {format_counts(self.plan.counts)}; {where}>"

    def undo(self) -> None:
        """Restore a file that was changed in place.

        Raises
        ------
        PlanError
            Nothing was changed in place.
        StalePlanError
            A file was changed since.
        """
        if self.backup is None:
            raise PlanError(
                "nothing was changed in place, so there is nothing to undo: delete the copy instead"
            )
        undo_files(self.backup)


def clean_file(
    path: str | PathLike[str],
    *,
    out: str | PathLike[str] | None = None,
    in_place: bool = False,
    dry_run: bool = False,
    plan: Plan | None = None,
    actions: Actions = None,
    max_share: float | None = None,
    decisions: str | PathLike[str] | None = None,
    policy: PolicyOption = None,
    format: str = "auto",  # noqa: A002 - the word of pandas
    zone: str | tzinfo | None = None,
    force: bool = False,
) -> CleanedFile:
    r"""Clean a file of another memory system, or a folder of notes, in its own format.

    The file is read and audited, a cleanup is planned as by `plan_cleanup`, and the changes are made in the text of the
    file. Order, indentation, line ends and unknown keys stay. The changed text is read again before it is written: a
    change that the format would read differently is left out, and named in ``plan.left``.

    Parameters
    ----------
    path : str or Path
        Markdown, JSON, JSON Lines, CSV or Parquet, as `read_memories` reads them, or a folder of them; also an archive
        that is not sealed.
    out : str or Path, optional
        Path of the cleaned copy; by default ``NAME.cleaned.EXT`` in the folder of the file.
    in_place : bool
        Change the file itself. A sealed backup is kept for 30 days, from which `CleanedFile.undo` restores it.
    dry_run : bool
        Write nothing; ``diff`` and ``plan`` show the changes.
    plan : Plan, optional
        Plan to carry out, such as ``review(audit).plan()``, of an audit of this file.
    actions, max_share, policy
        See `plan_cleanup`.
    decisions : str or Path, optional
        File of decisions; exactly the accepted changes are made.
    format, zone
        See `read_memories`.
    force : bool
        Replace a file that is at ``out``.

    Returns
    -------
    CleanedFile

    Raises
    ------
    FrameError
        The file cannot be read or written, or has a format that cannot be changed as a text.
    PlanError
        The plan is for another file or a service, or the policy or ``max_share`` forbids it.
    StalePlanError
        The file was changed since the plan was made.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> notes = Path(mkdtemp()) / "MEMORY.md"
    >>> _ = notes.write_text("# Ada\n- Likes green tea\n- Door code: 2580#\n- Likes green tea\n")
    >>> clean = clean_file(notes)
    >>> print(clean.out.read_text())
    # Ada
    - Likes green tea
    - Door code: [redacted: access code]
    <BLANKLINE>
    """
    if plan is not None:
        check_kind("plan", plan, Plan, error=PlanError)
        if any(given is not None for given in (actions, max_share, decisions, policy)):
            raise ConfigError("plan= is already decided: leave out actions, max_share, decisions and policy")
    if in_place and out is not None:
        raise ConfigError("out= writes a copy and in_place=True changes the file: give one of them")
    opened = open_file(path, format=format, zone=zone)
    audit = audit_memories(opened.reading.frame, policy=policy)
    if plan is None and decisions is not None:
        plan = review(audit, decisions=decisions, policy=policy).plan()
    elif plan is None:
        plan = plan_cleanup(audit, actions=actions, max_share=max_share, policy=policy)
    return write_plan(opened, plan, audit, out=out, in_place=in_place, dry_run=dry_run, force=force)


def open_file(
    path: str | PathLike[str],
    *,
    format: str = "auto",  # noqa: A002 - as in `clean_file`
    zone: str | tzinfo | None = None,
) -> FileToClean:
    """Read a file or folder to clean it; raise `FrameError` if it cannot be read, or its format cannot be written."""
    check_kind("path", path, str, PathLike, error=FrameError)
    if format not in (*FORMATS, "auto"):
        raise ConfigError(f"format={format!r:.60}: there is 'auto', {', '.join(map(repr, FORMATS))}")
    source, known, now = expand_path(path), read_zone(zone), datetime.now(UTC)
    if is_archive(source) and is_sealed(source):
        raise FrameError(
            f"{source} is a sealed archive, which only a refresh rewrites: clean the memories of the service, and "
            "refresh the archive"
        )
    reading = read_input(open_path(source), format, zone=known, now=now)
    if reason := explain_unwritable(reading):
        ways = "write_changes lists what to change", "--changes FILE lists what to change"
        raise FrameError(
            f"{source} cannot be cleaned in its own format: {reason}. Change it where it comes from",
            hint=Hint(*ways),
        )
    return FileToClean(source, reading, ensure_ids(reading.frame)[0], known, now)


def write_plan(
    opened: FileToClean,
    plan: Plan,
    audit: Audit,
    *,
    out: str | PathLike[str] | None = None,
    in_place: bool = False,
    dry_run: bool = False,
    force: bool = False,
) -> CleanedFile:
    """Write a file with the changes of a plan, as a copy or in place.

    Secrets of the audit are masked in the patch. Raises the errors of `clean_file`.
    """
    _check_target(opened, plan)
    plan, edited = _edit(opened, plan)
    hidden = {text for change in plan.records for text in change.hidden}
    if note := _find_remaining(opened, plan, edited, hidden):
        plan = replace(plan, notes=(*plan.notes, note))
    secrets = audit.findings[audit.findings["check"] == "secret"]
    hidden |= {value for _, value, _ in values_of(audit.memories, secrets)}
    diff = mask_texts("".join(map(patch_of, edited)), hidden)
    done = CleanedFile(opened.path, plan, None, None, diff)
    if dry_run or not edited:
        return done
    documents = [
        (each.path, each.begin + each.original.text.encode())
        for each in opened.reading.documents
        if each.path and each.original
    ]
    before = dict(documents)
    new: dict[Path, bytes | None] = {
        each.document.path: None if each.is_removed and opened.path.is_dir() else each.data
        for each in edited
        if each.document.path
    }
    if in_place:
        if (opened.path / SNAPSHOTS).is_dir():
            raise FrameError(
                f"{opened.path} keeps states of the past, which hold the old texts: write a copy without them, or "
                "clean the memories of the service and refresh the archive"
            )
        return CleanedFile(opened.path, plan, opened.path, replace_files(before, new), diff)
    copy_path = opened.path.with_name(f"{opened.path.stem}.cleaned{opened.path.suffix}")
    target = copy_path if out is None else expand_path(out)
    if target.absolute() == opened.path.absolute():
        raise ConfigError(
            f"{target} is the file itself: change it with in_place=True (--in-place), or choose another out"
        )
    copy_files(opened.path, {**before, **new}, target, force=force)
    return CleanedFile(opened.path, plan, target, None, diff)


def _find_remaining(
    opened: FileToClean, plan: Plan, edited: Iterable[EditedDocument], hidden: Iterable[str]
) -> str | None:
    """Describe where the files still show redacted texts, because they also have parts that are no memories."""
    patches = [change for change in plan.writes if change.action == "patch"]
    search = make_search(hidden)
    redacted = {
        text
        for change in patches
        for name, before in change.before.items()
        for _, text in search(str(before))
        if text not in str(change.after.get(name))
    }
    texts = {each.name: each.original.text for each in opened.reading.documents if each.original}
    for each in edited:
        texts[each.document.name] = "" if each.is_removed else apply_edits(each.original.text, each.edits)
    shown: set[str] = set()
    places: list[str] = []
    for text in sorted(redacted):
        for name, file in texts.items():
            found = [start for spelled in ways_to_write(text) if (start := file.find(spelled)) >= 0]
            if found:
                shown.add(text)
                places.append(f"line {file.count(chr(10), 0, min(found)) + 1} of {name}")
    if not shown:
        return None
    n = number_of(len(shown), "redacted text is still", "redacted texts are still")
    return f"{n} in another place, such as {places[0]}: remove it by hand."


def _check_target(opened: FileToClean, plan: Plan) -> None:
    """Refuse a plan for a service, for another file, or for another state of the file."""
    if plan.file is None:
        raise PlanError(
            f"this plan is for the service {plan.base_url}: apply it with apply_plan(access, plan)"
        )
    if plan and Path(plan.file).absolute() != opened.path.absolute():
        raise PlanError(f"this plan is for {plan.file}, not for {opened.path}: audit and plan that one")
    plan.refuse_stale(current_of(opened.memories))


def _edit(opened: FileToClean, plan: Plan) -> tuple[Plan, list[EditedDocument]]:
    """Return the plan without changes that cannot be written, and the edited documents."""
    row_of = {memory_id: row for row, memory_id in enumerate(opened.memories["id"])}
    ids = {row: memory_id for memory_id, row in row_of.items()}
    plan = _keep_writable(opened, plan, row_of)
    for _ in range(MAX_ROUNDS):
        changed, deleted = _rows_of(plan, row_of)
        edited = edit_documents(opened.reading, changed, deleted)
        if not edited:
            return plan, []
        misread = find_misread(opened.reading, edited, changed, deleted, Collector(opened.zone, opened.now))
        if misread is None:
            return plan, edited
        plan = plan.leave_out(ids[misread], reason=MISREAD)
    n = number_of(MAX_ROUNDS, "change", "changes")
    raise FrameError(
        f"{opened.path} would be read differently with {n} of the plan: clean it in smaller steps"
    )


def _rows_of(plan: Plan, row_of: Mapping[str, int]) -> tuple[dict[int, Texts], set[int]]:
    """Return the new texts of the rows that a plan changes, and the rows that it deletes."""
    changed: dict[int, Texts] = {
        row_of[str(one.id)]: {
            name: None if value is None else str(value) for name, value in one.after.items()
        }
        for one in plan.writes
        if one.action == "patch"
    }
    return changed, {row_of[str(one.id)] for one in plan.writes if one.action == "delete"}


def _keep_writable(opened: FileToClean, plan: Plan, row_of: dict[str, int]) -> Plan:
    """Leave out changes that the file has no place for; of a patch in no group, only the fields without a place."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    records: list[Change] = []
    left: list[LeftOut] = []
    writable = find_writable(opened.reading, *_rows_of(plan, row_of))
    for change in plan.records:
        row = row_of[str(change.id)]
        known = writable.get(row, [])
        missing = [name for name in change.after if name not in known]
        if change.action != "patch":
            reason = explain_undeletable(opened.reading.places[row])
        else:
            reason = f"the file has no text of this memory alone for {', '.join(missing)}" if missing else ""
        if reason and known and change.group is None:
            left.append(LeftOut(change.id, change.action, reason))
            fields = {
                side: {name: getattr(change, side)[name] for name in known} for side in ("before", "after")
            }
            records.append(replace(change, **fields))
        else:
            records.append(change)
            if reason:
                reasons[reason].append(str(change.id))
    plan = replace(plan, records=tuple(records), left_out=(*plan.left_out, *left))
    for reason, ids in reasons.items():
        plan = _leave_out(plan, ids, reason)
    return plan


def _leave_out(plan: Plan, ids: Iterable[str], reason: str) -> Plan:
    remaining = {one.id for one in plan.records}  # leaving out one change also leaves out its group
    return plan.leave_out([memory_id for memory_id in ids if memory_id in remaining], reason=reason)
