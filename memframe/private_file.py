"""Files that only their owner can read, and that are there whole or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO


@contextmanager
def writing_privately(path: Path, *, may_replace: bool = True) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when all of it has reached the disk.

    Until then, and if anything fails, what stood at `path` stays as it was. Mode 0600 from the first
    byte on, whatever the umask says. Of several processes that may not replace, one puts its file there,
    and the others get a `FileExistsError`.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with writing_privately(folder / "notes.txt") as file:
    ...     _ = file.write(b"for me alone")
    >>> (folder / "notes.txt").read_bytes()
    b'for me alone'
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            yield file
            file.flush()
            os.fsync(file.fileno())
        if may_replace:
            Path(name).replace(path)
        else:
            Path(path).hardlink_to(name)  # takes the name in one step, or refuses
            Path(name).unlink()
    except BaseException:  # Ctrl-C as well: nothing half made stays behind
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


@contextmanager
def filling_privately(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of `path` when it is full. Mode 0700.

    The two are exchanged in one step on Linux and macOS, where the file system can do so. Elsewhere the
    one that stood at `path` is out of the way for a moment, under a name that begins with a dot.
    """
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    before = fresh.with_name(f"{fresh.name}.before")
    try:
        yield fresh
        _sync_folder(fresh)
        if path.exists() and _exchange(fresh, path):
            before = fresh
        else:
            if path.exists():
                path.rename(before)
            fresh.rename(path)
    except (
        BaseException
    ):  # Ctrl-C as well, at any step: nothing half made stays behind, and one of the two stands
        if before.exists() and not path.exists():
            before.rename(path)
        for left in (fresh, before):
            shutil.rmtree(left, ignore_errors=True)  # what broke off the work is the news
        raise
    _sync_folder(path.parent)
    if before.exists():
        shutil.rmtree(before)


def _exchange(one: Path, other: Path) -> bool:
    """Whether the system has swapped two names in one step; Python has no call for it."""
    if os.name != "posix":
        return False
    system = ctypes.CDLL(None)
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(system, "renameat2"):  # Linux
        failed: int = system.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    elif hasattr(system, "renamex_np"):  # macOS
        failed = system.renamex_np(*names, _EXCHANGE)
    else:
        failed = -1
    return not failed


_AT_FDCWD, _EXCHANGE = -100, 2


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where the system lets folders be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def expand_path(path: str | PathLike[str]) -> Path:
    """Return a path that the user gave, with a leading ``~`` as the home folder; an unknown ``~name`` stays as it is.

    >>> expand_path("~/a.journal") == Path.home() / "a.journal"
    True
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises a RuntimeError for "~name"


def private_folder(path: Path) -> Path:
    """The folder at `path`, made if it is not there, and closed to everybody else: mode 0700."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_open_to_others(path):
        path.chmod(0o700)
    return path


def is_open_to_others(path: Path) -> bool:
    """Whether the mode bits let others than the owner in; elsewhere than on POSIX they say nothing."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)
