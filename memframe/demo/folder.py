"""The folder in which a tour leaves its files: checked before the tour, and gone again if nothing came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from memframe.archive import load_archive
from memframe.errors import ConfigError, FrameError

ARCHIVE = "memories.parquet"
PICTURES = ("timeline.png", "tags.png")
REPORT = "audit.html"
FINDINGS = "audit.json"


@contextmanager
def keeping_in(folder: Path) -> Iterator[None]:
    """A folder for a tour's files while the block runs; a new one that stays empty is removed.

    Raises
    ------
    ConfigError
        The folder cannot be written to, or holds files of the same names which are not a tour's.
    """
    is_new = not folder.exists()
    try:
        with writing_to(folder):
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        _refuse_strangers(folder)
        yield
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty, or was never made
                folder.rmdir()


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turns what a file system refuses into a message."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"the folder {folder} cannot be written to ({error.strerror}): choose another with --folder"
        ) from None


def _refuse_strangers(folder: Path) -> None:
    """Files of an earlier tour may be replaced, those of somebody else may not."""
    there = [folder / name for name in (ARCHIVE, *PICTURES, REPORT, FINDINGS) if (folder / name).exists()]
    if there and not _is_of_a_tour(folder):
        raise ConfigError(f"{there[0]} is not this tour's to replace: choose another folder with --folder")


def _is_of_a_tour(folder: Path) -> bool:
    """A tour writes its archive first: beside it, the pictures are its own."""
    try:
        load_archive(folder / ARCHIVE, columns=["id"])
    except (FrameError, OSError):
        return False
    return True
