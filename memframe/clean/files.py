"""Write cleaned files: as a copy, or in place with a sealed backup that restores them.

Each file is written as a whole or not at all, links are neither followed nor replaced, and modes stay. Git is not used
for restoring, because its settings may name programs to run, and those of an unknown folder are not trusted.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from memframe.errors import FrameError, JournalError, StalePlanError
from memframe.files import atomic_file, atomic_folder, private_folder, raise_os_errors_as
from memframe.journal import KEPT_DAYS
from memframe.keystore import open_local_cipher, state_folder

BACKUP_MAGIC = b"memframe backup 1\n"
BACKUP_CONTEXT = "the backup of a file"


class _Kept(Struct, frozen=True):
    """One file of a backup, as it was."""

    path: str
    before: bytes
    mode: int
    after: str | None
    """Hexadecimal SHA-256 of the text that was written; None if the file was removed."""


def copy_files(source: Path, files: Mapping[Path, bytes | None], out: Path, *, force: bool) -> None:
    """Write a cleaned copy of a file, or of a folder with all its files; a file with None is left out.

    Raises `FrameError` if there is a file or folder that must not be replaced.
    """
    if os.path.lexists(out) and (not force or out.is_symlink() or out.is_dir() != source.is_dir()):
        raise FrameError(
            f"{out} already exists: choose another path with out= (--out), or give force (--force)"
        )
    with raise_os_errors_as(
        FrameError, f"{out} cannot be written", "choose another path, or correct this one"
    ):
        if not source.is_dir():
            with atomic_file(out, mode=_mode_of(source)) as file:
                file.writelines(filter(None, files.values()))
            return
        with atomic_folder(out) as folder:
            for path, data in files.items():
                if data is not None:
                    target = folder / path.relative_to(source)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with atomic_file(target, mode=_mode_of(path)) as file:
                        file.write(data)


def replace_files(before: Mapping[Path, bytes], files: Mapping[Path, bytes | None]) -> Path:
    """Write files in place, and remove those with None; return the sealed backup, which is written first.

    Raises `StalePlanError` if a file differs from ``before``, and `FrameError` if one is a link.
    """
    for path, known in before.items():
        with raise_os_errors_as(FrameError, f"{path} cannot be read", "check the path"):
            refuse_link(path)
            if path.read_bytes() != known:
                raise StalePlanError(f"{path} has changed since it was read: clean it again")
    kept = [
        _Kept(str(path.absolute()), before[path], _mode_of(path), None if data is None else _digest(data))
        for path, data in files.items()
    ]
    backup = _write_backup(kept)
    for path, data in files.items():
        _put(path, data, _mode_of(path))
    return backup


def refuse_link(path: Path) -> None:
    """Refuse to replace a link, and a file with several names, because the other ones would keep the old text."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise FrameError(f"{path} is a link, which would be replaced: give the path of its target")
    if status.st_nlink > 1:
        raise FrameError(
            f"{path} has other names (hard links), which would keep the old text: write a copy instead"
        )


def undo_files(backup: Path) -> list[Path]:
    """Restore the files of a backup, and return their paths.

    Raises `StalePlanError` if a file was changed since, in which case none is written, and `JournalError` if the backup
    was changed, or written by another user.
    """
    kept = _read_backup(backup)
    current = {each.path: _current(Path(each.path)) for each in kept}
    changed = [
        each.path
        for each in kept
        if (data := current[each.path]) != each.before
        and (None if data is None else _digest(data)) != each.after
    ]
    if changed:
        raise StalePlanError(f"changed since it was cleaned, so nothing is restored: {', '.join(changed)}")
    for each in kept:
        if current[each.path] != each.before:
            _put(Path(each.path), each.before, each.mode)
    return [Path(each.path) for each in kept]


def _current(path: Path) -> bytes | None:
    if not os.path.lexists(path):
        return None
    refuse_link(path)
    return path.read_bytes()


def is_backup(path: Path) -> bool:
    """Return True for a backup that `replace_files` wrote."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(BACKUP_MAGIC)) == BACKUP_MAGIC


def purge_backups(older_than_days: float = KEPT_DAYS) -> int:
    """Remove old backups, because deleted personal data must not be kept for ever; return their number."""
    limit = datetime.now(UTC) - timedelta(days=min(older_than_days, 36_500))
    old = [
        path
        for path in _folder().glob("*.backup")
        if datetime.fromtimestamp(path.stat().st_mtime, UTC) <= limit
    ]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _folder() -> Path:
    folder = state_folder() / "files"
    with raise_os_errors_as(JournalError, f"the folder {folder} cannot be used", "correct its permissions"):
        return private_folder(folder)


def _write_backup(kept: list[_Kept]) -> Path:
    purge_backups()
    backup = _folder() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.backup"
    data = BACKUP_MAGIC + open_local_cipher().seal(msgspec.json.encode(kept), associated_data=BACKUP_CONTEXT)
    what = f"the backup {backup} cannot be written"
    with raise_os_errors_as(JournalError, what, "correct its folder"), atomic_file(backup) as file:
        file.write(data)
    return backup


def _read_backup(backup: Path) -> list[_Kept]:
    with raise_os_errors_as(JournalError, f"the backup {backup} cannot be read", "check the path"):
        stored = backup.read_bytes()
    if not stored.startswith(BACKUP_MAGIC):
        raise JournalError(f"{backup} is no backup of a cleaned file: check the path")
    data = open_local_cipher().open(stored.removeprefix(BACKUP_MAGIC), associated_data=BACKUP_CONTEXT)
    return msgspec.json.decode(data, type=list[_Kept])


def _put(path: Path, data: bytes | None, mode: int) -> None:
    with raise_os_errors_as(
        FrameError, f"{path} cannot be written", "correct its permissions, or write a copy"
    ):
        if data is None:
            path.unlink()
        else:
            with atomic_file(path, mode=mode) as file:
                file.write(data)


def _mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
