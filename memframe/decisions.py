"""Decisions of a person about proposals, in an append-only file of JSON Lines that holds no text in the open.

The first line has the format, the version of memframe and a salt. Each other line is one decision, which counts once
it was flushed to the disk; of several lines with the same key the last one counts. A line holds the judged text only
as a keyed digest. By it a decision is found again after a reload and on another machine, while a text that has changed
is proposed again. A last line that a crash cut short is not a decision: it is skipped, and removed by the next write.
Any other line that cannot be read is an error, because a lost rejection could delete what should stay.
"""

from __future__ import annotations

import getpass
import hmac
import os
import secrets
from base64 import b64decode, b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from memframe.errors import ConfigError, JournalError
from memframe.files import expand_path, process_lock, raise_os_errors_as
from memframe.keystore import open_local_cipher
from memframe.versions import package_version

DECISIONS_FORMAT = "memframe-decisions/1"

Verdict = Literal["accepted", "rejected", "edited", "later", "open"]
"""A decision that was taken back is ``open``."""

LOCK_S = 10.0
"""Longest wait for another desk, which holds the lock while it writes a few lines."""

_KEY_CHARACTERS = 32


class Head(Struct, frozen=True, kw_only=True):
    """First line of the file."""

    format: str
    version: str
    salt: str


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision of a person about a finding, or a change of a plan; one line of the file.

    Attributes
    ----------
    key : str
        Digest of check, kind, field, memory and the text that was judged.
    decision : {"accepted", "rejected", "edited", "later", "open"}
    check, kind : str
    id : str or None
        Id of the memory; None in files without ids.
    by : str
        Name of the person's account in the operating system.
    at : datetime
    until : datetime or None
        When the decision ends.
    note : str
    edited : str or None
        The fields that were edited, sealed with the local data key, in base64.
    n_together : int
        Number of proposals that the same call decided; with several, not each was necessarily looked at.
    """

    key: str
    decision: Verdict
    check: str = ""
    kind: str = ""
    id: str | None = None
    by: str = ""
    at: datetime
    until: datetime | None = None
    note: str = ""
    edited: str | None = None
    n_together: int = 1

    def holds(self, now: datetime) -> bool:
        """Return True until the decision ends."""
        return self.until is None or now < self.until


class Decisions:
    """The decisions of a file, or of this process alone if there is no file.

    A file that does not exist yet has no decisions. ``make`` creates it with its head, so that two desks that start at
    the same time share one salt.

    Raises
    ------
    JournalError
        The file cannot be read, or one of its lines is damaged; the message has its number.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> decisions = Decisions()
    >>> key = decisions.key("junk", "heartbeat", "content", "m1", "ping")
    >>> decisions.write([Decision(key=key, decision="rejected", at=datetime(2026, 6, 1, tzinfo=UTC))])
    >>> decisions.last[key].decision
    'rejected'
    """

    def __init__(self, path: str | PathLike[str] | None = None, *, make: bool = False) -> None:
        if path is not None and not isinstance(path, str | PathLike):
            raise ConfigError(f"decisions: pass the path of a file, not {type(path).__name__}")
        self.path = None if path is None else expand_path(path)
        self.last: dict[str, Decision] = {}
        """Decision that counts, by key."""
        self.salt = b""
        """Key of the digests; empty without a file, so that proposals have the same ids after a reload."""
        self._n_read, self._n_lines = 0, 0
        if self.path is not None and (self.path.exists() or not make):
            self.refresh()
        elif self.path is not None:
            self.salt = secrets.token_bytes(16)
            self._write_locked([])

    def key(self, check: str, kind: str, field: str, memory_id: str | None, text: str) -> str:
        """Return the key of a finding; without the file it reveals nothing about the text."""
        parts = (check, kind, field, memory_id or "", text)
        # each part with its length, so that different parts never join to the same text
        joined = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.digest(self.salt, joined.encode("utf-8", "surrogatepass"), "sha256").hex()[
            :_KEY_CHARACTERS
        ]

    def find(self, key: str, now: datetime) -> Decision | None:
        """Return the decision about a key if there is one and it has not ended."""
        found = self.last.get(key)
        return found if found and found.decision != "open" and found.holds(now) else None

    def has_expired(self, key: str, now: datetime) -> bool:
        """Return True if the decision about a key has ended."""
        found = self.last.get(key)
        return found is not None and found.decision != "open" and not found.holds(now)

    def refresh(self) -> bool:
        """Read the lines that others have appended; return True if there were any."""
        if self.path is None or not self.path.exists():
            return False
        with self._os_errors("read"), self.path.open("rb") as file:
            file.seek(self._n_read)
            return self._read(file.read()) > 0

    def write(self, decisions: Iterable[Decision]) -> None:
        """Append decisions, and flush them to the disk before they count.

        What another desk wrote in the meantime is read first.
        """
        made = list(decisions)
        if self.path is not None and made:
            self._write_locked(made)
        self.last |= {one.key: one for one in made}

    def seal(self, key: str, fields: Mapping[str, Any]) -> str:
        """Seal edited fields with the data key of this user on this machine."""
        sealed = open_local_cipher().seal(msgspec.json.encode(fields), associated_data=f"decision {key}")
        return b64encode(sealed).decode()

    def open(self, decision: Decision) -> dict[str, Any]:
        """Open the fields that a decision edited.

        Raises
        ------
        JournalError
            They were sealed by another user or on another machine.
        """
        data = b64decode(decision.edited or "")
        fields: dict[str, Any] = msgspec.json.decode(
            open_local_cipher().open(data, associated_data=f"decision {decision.key}")
        )
        return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}

    # ---- the file

    def _write_locked(self, made: Sequence[Decision]) -> None:
        path = self._known_path
        lock = path.with_name(f".{path.name}.lock")
        with self._os_errors("written"):
            if not path.parent.is_dir():
                raise JournalError(
                    f"{path} cannot be written: there is no folder {path.parent}; create it first"
                )
            with process_lock(lock, what=f"{path}", wait_s=LOCK_S):
                self._append(made)

    def _append(self, made: Sequence[Decision]) -> None:
        path = self._known_path
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with open(handle, "r+b") as file:  # noqa: PTH123 - a descriptor, made with its mode
            file.seek(self._n_read)
            self._read(file.read())
            file.truncate(self._n_read)  # removes a line that a crash cut short
            file.seek(self._n_read)
            lines = []
            if not self._n_read:
                head = Head(format=DECISIONS_FORMAT, version=package_version(), salt=self.salt.hex())
                lines.append(msgspec.json.encode(head))
            lines += [msgspec.json.encode(one) for one in made]
            data = b"".join(line + b"\n" for line in lines)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            self._n_read += len(data)
            self._n_lines += len(lines)

    def _read(self, data: bytes) -> int:
        """Read the complete lines of new data; return their number."""
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines()
        for line in lines:
            self._n_lines += 1
            try:
                if self._n_lines == 1:
                    self._read_head(line)
                else:
                    decision = _LINES.decode(line)
                    self.last[decision.key] = decision
            except (msgspec.DecodeError, ValueError) as error:
                if isinstance(error, JournalError):
                    raise
                raise JournalError(
                    f"{self.path}: line {self._n_lines} is damaged ({error}): restore a copy of the file, or delete "
                    "that line, and its decision is open again"
                ) from None
        self._n_read += len(whole)
        return len(lines)

    def _read_head(self, line: bytes) -> None:
        try:
            head = msgspec.json.decode(line, type=Head)
        except msgspec.DecodeError as error:
            raise JournalError(
                f"{self.path}: line 1 is not the head of a file of decisions ({error}): name another file"
            ) from None
        if head.format != DECISIONS_FORMAT:
            raise JournalError(
                f"{self.path} is a {head.format}, and this version reads {DECISIONS_FORMAT}: update memframe, or name "
                "another file"
            )
        self.salt = bytes.fromhex(head.salt)

    @property
    def _known_path(self) -> Path:
        if self.path is None:
            raise ValueError("there is no file")
        return self.path

    def _os_errors(self, done: str) -> Any:
        return raise_os_errors_as(
            JournalError, f"{self.path} cannot be {done}", "correct the path or its permissions"
        )


_LINES = msgspec.json.Decoder(Decision)


class DecisionsByMemory(Struct, frozen=True):
    """Decisions about the memories of many users, by id, to be sent to workers, which pick those of one user."""

    salt: bytes
    by_id: dict[str, tuple[Decision, ...]]

    @staticmethod
    def read(decisions: DecisionsOption) -> DecisionsByMemory:
        """Read decisions and group them by the ids of memories."""
        found = read_decisions(decisions)
        by_id: defaultdict[str, list[Decision]] = defaultdict(list)
        for one in found.last.values():
            by_id[one.id or ""].append(one)
        return DecisionsByMemory(found.salt, {name: tuple(some) for name, some in by_id.items()})

    def of(self, ids: Iterable[str]) -> Decisions:
        """Return the decisions about the memories with these ids, without a file."""
        decisions = Decisions()
        decisions.salt = self.salt
        decisions.last = {one.key: one for name in ids for one in self.by_id.get(name, ())}
        return decisions


DecisionsOption = Decisions | str | PathLike[str] | None


def read_decisions(decisions: DecisionsOption) -> Decisions:
    """Return given decisions unchanged, read them from the path of a file, or return none for None."""
    return decisions if isinstance(decisions, Decisions) else Decisions(decisions)


class Settled(Struct, frozen=True):
    """Counts of the findings of an audit that a person has settled.

    >>> str(Settled(n_rejected=31, n_applied=6, n_expired=2))
    '37 settled: 31 rejected, 6 accepted and applied; 2 expired'
    """

    n_rejected: int = 0
    n_applied: int = 0
    """Findings that were accepted or edited, and are no longer found."""
    n_expired: int = 0
    """Findings whose decision has ended: they are open again, and listed."""

    def __str__(self) -> str:
        parts = [f"{self.n_rejected:,} rejected", f"{self.n_applied:,} accepted and applied"]
        expired = f"; {self.n_expired:,} expired" if self.n_expired else ""
        return f"{self.n_rejected + self.n_applied:,} settled: {', '.join(parts)}{expired}"

    def __bool__(self) -> bool:
        return bool(self.n_rejected or self.n_applied or self.n_expired)


def count_settled(
    decisions: Decisions, keys: Iterable[str], *, checks: Iterable[str], now: datetime
) -> Settled:
    """Count the settled findings, given the keys of all findings and the checks that ran."""
    found, ran = set(keys), {*checks}
    settled: Counter[str] = Counter()
    for key, decision in decisions.last.items():
        if key in found:
            settled["expired"] += decisions.has_expired(key, now)
            settled["rejected"] += decision.decision == "rejected" and decision.holds(now)
        elif decision.check in ran and decision.decision in ("accepted", "edited"):
            settled["applied"] += 1
    return Settled(settled["rejected"], settled["applied"], settled["expired"])


def read_until(until: str | date | None) -> datetime | None:
    """Read the end of a decision: the beginning of a day, or a time; in UTC if it names no zone.

    >>> read_until("2026-12-01")
    datetime.datetime(2026, 12, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    if until is None:
        return None
    try:
        at = datetime.fromisoformat(until) if isinstance(until, str) else until
    except ValueError:
        raise ConfigError(f"until={until!r}: pass a day such as '2026-12-01'") from None
    if not isinstance(at, date):
        raise ConfigError(f"until={until!r}: pass a day such as '2026-12-01'")
    moment = at if isinstance(at, datetime) else datetime.combine(at, time())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_user_name() -> str:
    """Return the name of the user of this process; empty if the system has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may be a number without a name
        return ""
