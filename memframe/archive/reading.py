"""Files of an archive to tables: columns checked, and opened where they are sealed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from memframe.archive.header import Header
from memframe.archive.key import Key
from memframe.archive.places import format_of, is_folder, parts_of
from memframe.archive.sealing import SEALED, Opener
from memframe.archive.table import ARCHIVE_SCHEMA, Level
from memframe.errors import FrameError, SealError


class Reader:
    """Reads the files of one archive.

    Parameters
    ----------
    path : Path
        A file, or the folder of a Parquet dataset.
    key : Key, optional
        Needed where the archive is sealed, as soon as a sealed column is read. With it the archive is verified.
    """

    def __init__(self, path: Path, key: Key | None = None) -> None:
        self.parts = parts_of(path)
        self._path = path
        self._key = key
        self._opener: tuple[Header, Opener] | None = None

    def header(self) -> Header | None:
        """Whose memories these are, and how they are sealed, as the first file says it."""
        return format_of(self.parts[0]).header(self.parts[0])

    def is_sealed(self) -> bool:
        """Tell whether the archive says that it is sealed."""
        header = self.header()
        return header is not None and header.seal is not None

    def labels(self) -> Sequence[Level]:
        """Return the index of the frame that pandas wrote to a file; files of a dataset have none together."""
        return format_of(self.parts[0]).labels(self.parts[0]) if len(self.parts) == 1 else ()

    def tables(
        self, columns: Sequence[str] | None = None, labels: Iterable[Level] = ()
    ) -> Iterator[pa.Table]:
        """All rows, file after file, in tables of the columns that were asked for, or of all, and of labels."""
        for part in self.parts:
            yield from self.tables_of_part(part, columns, labels)

    def tables_of_part(
        self, part: Path, columns: Sequence[str] | None = None, labels: Iterable[Level] = ()
    ) -> Iterator[pa.Table]:
        """The rows of one file."""
        found = format_of(part)
        fields = [level.field for level in labels if level.field is not None]
        wanted = [*dict.fromkeys([*_checked(part, found.names(part), columns), *fields])]
        needed = [*dict.fromkeys([*wanted, *_needed(wanted)])]
        header = found.header(part)
        if header is None or header.seal is None:
            yield from found.read(part, wanted)
        elif self._key is None and SEALED.isdisjoint(needed):
            yield from found.read(part, wanted)  # in the open, and not verified
        else:
            opener = self._opener_for(header)
            for table in opener.checked(part, found.read(part, needed)):
                yield opener.opened(table).select(wanted)

    def require_sealed(self) -> None:
        """Refuse files that are not sealed: whoever has a key expects that nobody else wrote what it opens."""
        for part in self.parts:
            header = format_of(part).header(part)
            if header is None or header.seal is None:
                raise SealError(
                    f"{part} is not sealed, and key= was given: leave key out to read it as it is, unless it should "
                    "be sealed; then somebody has exchanged it."
                )

    def _opener_for(self, header: Header) -> Opener:
        """One for all files that were sealed together: it learns from each how the content is stored."""
        if self._opener is None:
            opener = Opener(self._path, header, self._key)
            if is_folder(self._path):
                opener.check_folder(self._path, self.parts)
            self._opener = header, opener
        if self._opener[0] != header:
            raise SealError(f"The files in {self._path} were not sealed together: export the archive again.")
        return self._opener[1]


def _needed(wanted: Iterable[str]) -> list[str]:
    """Why content is missing is found out by opening it."""
    return ["content"] if "content_error" in wanted else []


def _checked(path: Path, names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns to read; by default those of a memory, then the others of the file."""
    wanted = [*ARCHIVE_SCHEMA] if columns is None else list(columns)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise FrameError(
            f"{path} has no column {', '.join(missing)}: "
            + (
                "it is no archive of memories; choose with columns=, or read it with pandas. Was id the index "
                "of the frame, write frame.reset_index()."
                if columns is None
                else f"it has {', '.join(names)}."
            )
        )
    return wanted + [name for name in names if columns is None and name not in ARCHIVE_SCHEMA]
