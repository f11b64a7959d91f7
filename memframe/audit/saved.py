"""Audits as JSON: what a script reads, and what the next audit is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pandas as pd
from msgspec import Struct

from memframe.audit.findings import DTYPES, findings_frame
from memframe.errors import FrameError
from memframe.files import writing_privately

FORMAT = "memframe-audit/1"


class SavedAudit(Struct, kw_only=True):
    """What is written: everything but the memories."""

    format: str = FORMAT
    n_memories: int
    checks: list[str]
    not_checked: list[str]
    summary: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    by_judge: list[str] = []
    judged: list[dict[str, Any]] = []


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts of plain values, None where there is nothing."""
    plain = frame.astype(object).where(frame.notna(), None)
    return plain.to_dict("records")  # type: ignore[return-value]  # names of columns are text


def read_findings(path: Path) -> pd.DataFrame:
    """The findings of an audit that was saved.

    Raises
    ------
    FrameError
        The file cannot be read, or is no saved audit.
    """
    return findings_of(read_audit(path))


def findings_of(saved: SavedAudit) -> pd.DataFrame:
    """The findings of a saved audit as a frame."""
    columns = {name: [finding.get(name) for finding in saved.findings] for name in DTYPES}
    return findings_frame(**columns)


def read_audit(path: Path) -> SavedAudit:
    """An audit that was saved.

    Raises
    ------
    FrameError
        The file cannot be read, or is no saved audit.
    """
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=SavedAudit)
    except OSError as error:
        raise FrameError(f"{path} cannot be read ({error.strerror}): check the path.") from error
    except msgspec.DecodeError as error:
        raise FrameError(f"{path} is no audit that to_json() wrote: {error}") from None
    if saved.format != FORMAT:
        raise FrameError(f"{path} is a {saved.format}; this version reads {FORMAT}: audit again.")
    return saved


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file of an audit to write, mode 0600; what keeps it from being written is named."""
    try:
        with writing_privately(path) as file:
            yield file
    except OSError as error:
        raise FrameError(
            f"{path} cannot be written ({error.strerror or error}): choose another path, or mend this one."
        ) from error
