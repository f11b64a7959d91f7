"""Sealed archives: what people wrote is sealed with the user's own key, the rest is open.

Sealed are ``title``, ``summary``, ``content`` and each name in ``tags``. Open are the columns by which an archive is
sorted, counted and compared: ``id``, ``user_id``, ``tag_ids``, ``importance``, ``confidence``, ``source``,
``created_at``, ``updated_at`` and ``content_error``. The header names the sealed columns.

Content that the key opens stays byte for byte as the service stores it, so that nothing is sealed twice. Content that
the service stores as plain text, or that did not open, is sealed in its stored form, after the mark `AS_STORED`, so
that nothing is lost that an older key may still open. All other text is in memframe's own layout
(`memframe.envelope.layouts.Own`), bound to user and key version.

Each file carries a message authentication code (HMAC-SHA-256 under a key derived from the user's) over its header and
over every cell of every column; the folder of a dataset has a code over the codes of its files, in `SEAL_FILE`. Reading
with the key verifies the columns that are read: a cell, row or file that was changed, moved, added or dropped is an
error. Reading without the key, as other programs do, verifies nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec.structs import replace

from memframe.access import Access
from memframe.archive.formats import (
    SEAL_FILE,
    ArchiveHeader,
    Seal,
    header_in,
    open_archive_file,
    parts_of,
    read_footer,
    write_parquet,
)
from memframe.archive.table import (
    ARCHIVE_SCHEMA,
    add_columns,
    index_columns,
    read_metadata,
    table_of_page,
)
from memframe.client.responses import same_id
from memframe.client.validation import memory_query
from memframe.display import number_of
from memframe.envelope import Codec, Envelope
from memframe.envelope.detect import OWN
from memframe.errors import FrameError, Hint, SealError
from memframe.fields import COLUMNS_VERSION, MEMORY_FIELDS
from memframe.files import atomic_file
from memframe.frames import NAMES, TEXT
from memframe.listing import MemoryPages
from memframe.progress import Progress, ProgressOption
from memframe.secret import Secret, as_secret
from memframe.snapshots import HEADER, SnapshotHeader
from memframe.wire import Credentials

Key = str | Secret | Credentials | Access | Mapping[int, str | Secret]
"""An ``encryption_key``, an object that holds one, or several keys by their ``key_version``."""

AS_STORED = "as-stored:"
"""Mark before content that was sealed for the archive in the form in which the service stores it."""

SEALED = tuple(field.name for field in MEMORY_FIELDS if field.is_sealed)
"""Columns that only the key opens: texts and names."""

IN_THE_OPEN = ARCHIVE_SCHEMA.keys() - {*SEALED, "content_error"}
"""Columns that read the same without the key; ``content_error`` depends on it."""

_STORED = "stored"
"""Additional column with the content as the service stores it."""

_CODEC = "codec"

_Cells = Sequence[str | None]


def tables_of_access(access: Access, *, progress: ProgressOption = False) -> Iterator[pa.Table]:
    """Load the columns of `load_memories` and of stored content, page by page; no baselines are kept."""
    pages = MemoryPages(access)
    with Progress(progress, text="memories") as bar:
        for columns in pages.columns(memory_query(access.user_id), limit=None, page_size="auto"):
            yield table_of_page(columns, [*ARCHIVE_SCHEMA, _STORED])
            bar.step(len(columns["id"]))


# -- authentication codes

_MAC = b"memframe.mac"


class Mac(msgspec.Struct, frozen=True):
    """The authentication code of a file of a sealed archive, in the metadata of its footer.

    Attributes
    ----------
    columns : dict of str to str
        HMAC-SHA-256 over all cells of each column, with the same key as ``code``.
    n_rows : int
    parts : list of str
        The codes of the other files, in order; only in the file that seals a folder.
    code : str
        HMAC-SHA-256 over the header and the attributes above, in hexadecimal.
    """

    columns: dict[str, str]
    n_rows: int
    parts: list[str] = []
    code: str = ""

    def sign(self, key: bytes, header: bytes) -> Mac:
        """Return a copy with the code."""
        signed = msgspec.json.encode([header.hex(), sorted(self.columns.items()), self.n_rows, self.parts])
        return replace(self, code=hmac.new(key, signed, hashlib.sha256).hexdigest())


class FileMac:
    """Compute the digests of one file while its tables are written or read."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._streams: dict[str, list[hmac.HMAC]] = {}
        self._n_rows = 0

    def add(self, table: pa.Table) -> pa.Table:
        """Add the rows of a table, and return the table; the division of rows into tables makes no difference."""
        self._n_rows += len(table)
        for name, column in zip(table.column_names, table.columns, strict=True):
            for chunk in filter(len, column.chunks):
                data = _streams_of(chunk)
                fresh = [hmac.new(self._key, name.encode(), hashlib.sha256) for _ in data]
                for stream, some in zip(self._streams.setdefault(name, fresh), data, strict=True):
                    stream.update(some)
        return table

    def digests(self, names: Iterable[str]) -> Mac:
        """Return the digests of these columns, without a code."""
        streams = {name: self._streams.get(name, ()) for name in sorted(names)}
        return Mac(
            {name: "".join(one.hexdigest() for one in streams[name]) for name in streams}, self._n_rows
        )


def _streams_of(array: pa.Array) -> list[bytes | memoryview]:
    """Return the cells of a column as bytes: first which are null, or their lengths, then their values."""
    kind = array.type
    if pa.types.is_list(kind):
        lengths = pc.list_value_length(array).fill_null(-1)
        return [lengths.to_numpy().tobytes(), *_streams_of(array.flatten())]
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        lengths = pc.binary_length(array).cast(pa.int64()).fill_null(-1)
        texts = array.drop_null().cast(pa.large_string())
        _, offsets, data = texts.buffers()
        if not len(texts) or data is None:
            return [lengths.to_numpy().tobytes(), b""]
        ends = memoryview(offsets).cast("q")
        written = memoryview(data)[ends[texts.offset] : ends[texts.offset + len(texts)]]  # without a copy
        return [lengths.to_numpy().tobytes(), written]
    valid = array.is_valid().cast(pa.int8()).to_numpy(zero_copy_only=False)
    numbers = array.cast(pa.int64()) if pa.types.is_timestamp(kind) else array
    return [valid.tobytes(), numbers.fill_null(0).to_numpy().tobytes()]


def _mac_key(key: Secret, user_id: str) -> bytes:
    info = b"memframe archive 1\0" + user_id.encode()
    return HKDF(SHA256(), 32, salt=None, info=info).derive(bytes.fromhex(key.reveal()))


_CHANGED = "{} was changed or damaged since it was sealed: restore a copy of it, or export the archive again."


# -- writing


def schema_for(header: ArchiveHeader) -> pa.Schema:
    """Return the schema of an archive with this header."""
    return pa.schema(ARCHIVE_SCHEMA, {HEADER: msgspec.json.encode(header)})


class Plain:
    """Write an archive that is not sealed, from the tables of `tables_of_access` or of a frame.

    Columns that the ``schema`` lacks are left out.
    """

    continues: bool = True
    """True if its rows can be added to those of the existing archive; open rows always can."""

    def __init__(self, schema: pa.Schema, write: Callable[..., None] = write_parquet) -> None:
        self.schema = schema
        self._write = write

    @classmethod
    def of(cls, access: Access, write: Callable[..., None] = write_parquet) -> Plain:
        """Return the writer of an archive of all memories of one user."""
        return cls(schema_for(ArchiveHeader(access.user_id, columns=COLUMNS_VERSION)), write)

    def for_snapshot(self, snapshot: SnapshotHeader, columns: Mapping[str, pa.DataType]) -> Plain:
        """Return the writer of a snapshot, with these columns before those of memories."""
        header = replace(header_in(self.schema.metadata) or ArchiveHeader(""), snapshot=snapshot)
        form = copy(self)
        form.schema = pa.schema({**columns, **ARCHIVE_SCHEMA}, {HEADER: msgspec.json.encode(header)})
        return form

    def prepare(self, table: pa.Table) -> pa.Table:
        """Return the table to write."""
        return table.select(self.schema.names)

    def write(self, file: BinaryIO, tables: Iterable[pa.Table]) -> None:
        """Write one file of the archive."""
        self._write(file, self.schema, tables)

    def seal_folder(self, folder: Path) -> None:
        """Do nothing, because the folder has no seal."""


def _name_formats(found: str | Sequence[str] | object) -> str | list[str]:
    """Return the ``content_format`` of an access in the form of a header, in which user-defined codecs have no name."""
    if isinstance(found, str):
        return found
    return list(found) if isinstance(found, Sequence) else _CODEC


class Sealed(Plain):
    """Write a sealed archive from the tables of `tables_of_access`, or continue the archive that has ``header``."""

    def __init__(self, access: Access, header: ArchiveHeader | None = None) -> None:
        keys = access.credentials
        self._own = Envelope(
            keys.encryption_key, user_id=keys.user_id, key_version=keys.key_version, content_format=OWN
        )
        self._mac_key = _mac_key(keys.encryption_key, keys.user_id)
        formats = _name_formats(access.envelope.content_format)
        seal = Seal(keys.key_version, formats, check=self._own.seal(keys.user_id), columns=[*SEALED])
        before = header.seal if header else None
        # rows that are sealed in another way could not be opened with that header
        self.continues = before is not None and replace(before, check=seal.check) == seal
        seal = before if before and self.continues else seal
        super().__init__(schema_for(ArchiveHeader(keys.user_id, seal, COLUMNS_VERSION)))

    def prepare(self, table: pa.Table) -> pa.Table:
        """Return the table to write, sealed."""
        columns = {name: table[name] for name in self.schema.names}
        for name in (name for name in SEALED if name != "content"):
            columns[name] = (
                _change_names(table[name], self._seal_all)
                if pa.types.is_list(table[name].type)
                else _text(self._seal_all(table[name].to_pylist()))
            )
        contents = zip(table[_STORED].to_pylist(), table["content"].to_pylist(), strict=True)
        columns["content"] = _text(
            [
                stored
                if stored is None or plain not in (None, stored)
                else AS_STORED + self._own.seal(stored)
                for stored, plain in contents
            ]
        )
        return pa.table(columns)

    def _seal_all(self, cells: _Cells) -> list[str | None]:
        return [None if cell is None else self._own.seal(cell) for cell in cells]

    def write(self, file: BinaryIO, tables: Iterable[pa.Table]) -> None:
        """Write one file of the archive with its authentication code."""
        mac = FileMac(self._mac_key)
        self._sign(file, map(mac.add, tables), lambda: mac.digests(self.schema.names))

    def seal_folder(self, folder: Path) -> None:
        """Write the file with the code over all files of a dataset."""
        with atomic_file(folder / SEAL_FILE) as file:
            self.write_seal(file, parts_of(folder))

    def write_seal(self, file: BinaryIO, parts: Iterable[Path | BinaryIO]) -> None:
        """Write the file with the code over these files, in this order."""
        found = [read_metadata(read_footer(part)[1], _MAC, Mac) for part in parts]
        self._sign(file, [], lambda: Mac({}, 0, [mac.code for mac in found if mac]))

    def _sign(self, file: BinaryIO, tables: Iterable[pa.Table], mac_of: Callable[[], Mac]) -> None:
        def footer() -> dict[bytes, bytes]:
            return {_MAC: msgspec.json.encode(mac_of().sign(self._mac_key, self.schema.metadata[HEADER]))}

        write_parquet(file, self.schema, tables, footer)


def _text(cells: Sequence[str | None]) -> pa.Array:
    return pa.array(cells, TEXT.arrow)


def _change_names(
    column: pa.ChunkedArray, change: Callable[[_Cells], Sequence[str | bytes | None]]
) -> pa.Array:
    """Apply a function to all names of a column of lists."""
    names = pc.list_flatten(column).to_pylist()
    lengths = pc.list_value_length(column).fill_null(0).to_pylist()
    values = TEXT.chunk(change(names)).cast(NAMES.arrow.value_type)
    return pa.ListArray.from_arrays(pa.array(accumulate(lengths, initial=0), pa.int32()), values)


# -- reading


class Reader:
    """Reader of the files of one archive: a file, or the folder of a Parquet dataset.

    The key is needed as soon as a sealed column is read. With a key the archive is verified.
    """

    def __init__(self, path: Path, key: Key | None = None) -> None:
        self.parts = parts_of(path)
        self._path = path
        self._key = key
        self._opener: _Opener | None = None

    @property
    def header(self) -> ArchiveHeader | None:
        """The header of the first file."""
        return header_in(open_archive_file(self.parts[0]).metadata)

    @property
    def is_sealed(self) -> bool:
        """True if the first file says that it is sealed."""
        return self.header is not None and self.header.seal is not None

    @property
    def missing_columns(self) -> set[str]:
        """Columns of memories that a file lacks, because they were introduced later."""
        return {
            name for part in self.parts for name in ARCHIVE_SCHEMA.keys() - {*open_archive_file(part).names}
        }

    def tables(
        self,
        columns: Sequence[str] | None = None,
        *,
        parts: Iterable[Path] = (),
        with_index: bool = False,
        as_stored: bool = False,
    ) -> Iterator[pa.Table]:
        """Yield rows, file by file, as tables of the given columns: by default all rows, and all columns.

        ``with_index`` adds the columns in which pandas keeps an index. ``as_stored`` leaves sealed cells sealed.
        """
        for part in parts or self.parts:
            file = open_archive_file(part)
            header = header_in(file.metadata)
            wanted = _choose_columns(part, file.names, columns, header)
            if with_index:
                wanted = [*dict.fromkeys([*wanted, *index_columns(file.metadata)])]
            needed = [*dict.fromkeys([*wanted, *(["content"] if "content_error" in wanted else [])])]
            if self._key is not None and not (header and header.seal):
                raise SealError(
                    f"{part} is not sealed, and a key was given: leave the key out to read it, unless it "
                    "should be sealed; then it was replaced."
                )
            absent = ARCHIVE_SCHEMA.keys() - {*file.names}
            present = [name for name in needed if name not in absent] or ["id"]  # at least one, to count rows
            if (
                header is None
                or header.seal is None
                or (self._key is None and not {*header.seal.columns} & {*present})
            ):
                for table in file.read(present):  # without verification
                    yield add_columns(table, wanted)
                continue
            if self._opener is None:
                self._opener = _Opener(self._path, header, header.seal, self._key)
                if self._path.is_dir():
                    self._opener.check_folder(self._path, self.parts)
            if self._opener.header != header:
                raise SealError(
                    f"The files in {self._path} were not sealed together: export the archive again."
                )
            for table in self._opener.verify(part, file.read(present)):
                yield add_columns(table if as_stored else self._opener.open(table), wanted)


def _choose_columns(
    path: Path, names: Sequence[str], columns: Sequence[str] | None, header: ArchiveHeader | None
) -> list[str]:
    """Return the columns to read; by default those of a memory, then the others of the file.

    Columns that were introduced after the archive was written may be missing from it.
    """
    version = header.columns if header else 1
    later = {field.name for field in MEMORY_FIELDS if field.since > version}
    wanted = (
        [*ARCHIVE_SCHEMA, *(name for name in names if name not in ARCHIVE_SCHEMA)]
        if columns is None
        else columns
    )
    missing = [name for name in wanted if name not in names and name not in later]
    if missing:
        raise FrameError(
            f"{path} has no column {', '.join(missing)}: "
            + (
                "it is not an archive of memories; choose with columns=, or read it with pandas. If id was the "
                "index of the frame, write frame.reset_index()."
                if columns is None
                else f"it has {', '.join(names)}."
            )
        )
    twice = [name for name in wanted if [*names].count(name) > 1]
    if twice:
        raise FrameError(f"{path} has several columns named {twice[0]}: rename all but one of them.")
    return [*wanted]


class _Opener:
    """Verify and open the tables of a sealed archive; messages name it by ``where``."""

    def __init__(self, where: object, header: ArchiveHeader, seal: Seal, key: Key | None) -> None:
        keys, codec = _keys_for(where, header.user_id, seal, key)
        present = keys.pop(seal.key_version)
        bind = partial(Envelope, user_id=header.user_id)
        self.header = header
        self._sealed = seal.columns
        self._where = where
        self._own = bind(present, key_version=seal.key_version, content_format=OWN)
        if self._own.open_many([seal.check]).errors:
            raise SealError(
                f"This key does not open {where}, which is sealed with key_version {seal.key_version} of user "
                f"{header.user_id}",
                hint=Hint(
                    "pass that key, or an Access to that user.",
                    "give that key, or the --request of that user.",
                ),
            )
        stored_as = codec if seal.content_format == _CODEC else seal.content_format
        if stored_as is None:
            raise SealError(
                f"The content of {where} is sealed by your own codec",
                hint=Hint(
                    "pass key=access, of an access that was opened with content_format=codec.",
                    "read it in Python, with the codec.",
                ),
            )
        self._content = bind(present, key_version=seal.key_version, content_format=stored_as)
        self._older = [bind(keys[version], key_version=version) for version in sorted(keys, reverse=True)]
        self._mac_key = _mac_key(present, header.user_id)

    def check_folder(self, folder: Path, parts: Iterable[Path]) -> None:
        """Refuse a dataset from which a file was removed, or to which one was added, or in which one was replaced."""
        seal = folder / SEAL_FILE
        if not seal.exists() or self._mac_of(seal).parts != [self._mac_of(part).code for part in parts]:
            raise SealError(
                f"The files in {folder} are not those that were sealed together: one was deleted, added, "
                "renamed or replaced. Restore a copy of them, or export the archive again."
            )

    def verify(self, part: Path, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables of one file, then refuse the file if it was changed since it was sealed."""
        mac, names, found = self._mac_of(part), [], FileMac(self._mac_key)
        for table in tables:
            names = [name for name in table.column_names if name in mac.columns]
            found.add(table.select(names))
            yield table
        wanted = replace(mac, columns={name: mac.columns[name] for name in names}, code="")
        codes = [one.sign(self._mac_key, b"").code for one in (found.digests(names), wanted)]
        if not hmac.compare_digest(*codes):
            raise SealError(_CHANGED.format(part))

    def _mac_of(self, part: Path) -> Mac:
        """Return the code in a file's footer; refuse one that this key did not make for its header and columns."""
        schema, footer = read_footer(part)
        mac = read_metadata(footer, _MAC, Mac)
        if mac is None:
            raise SealError(
                f"{part} has no authentication code: it was removed, or memframe did not seal the file. Export the "
                "archive again."
            )
        is_whole = part.name == SEAL_FILE or mac.columns.keys() == {*schema.names}
        code = mac.sign(self._mac_key, footer.get(HEADER, b"")).code
        if not is_whole or not hmac.compare_digest(code, mac.code):
            raise SealError(_CHANGED.format(part))
        return mac

    def open(self, table: pa.Table) -> pa.Table:
        """Open the sealed columns of a table."""
        columns = {name: table[name] for name in table.column_names}
        for name in columns.keys() & {*self._sealed} - {"content"}:
            columns[name] = (
                _change_names(table[name], partial(self._open_all, name))
                if pa.types.is_list(table[name].type)
                else TEXT.chunk(self._open_all(name, table[name].to_pylist()))
            )
        if "content" in columns:
            plain, errors = self._open_contents(table["content"].to_pylist())
            columns["content"] = TEXT.chunk(plain)
            if "content_error" in columns:
                archived_errors = enumerate(table["content_error"].to_pylist())
                columns["content_error"] = _text(
                    [errors.get(row, archived) for row, archived in archived_errors]
                )
        return pa.table(columns, metadata=table.schema.metadata)

    def _open_all(self, name: str, cells: _Cells) -> list[bytes | None]:
        opened = self._own.open_many(cells)
        if opened.errors:
            raise SealError(
                f"{number_of(len(opened.errors), 'text', 'texts')} of {name} in {self._where} cannot be opened, "
                "though the key is right: the archive was changed or damaged. Export it again."
            )
        return opened.plain

    def _open_contents(self, cells: _Cells) -> tuple[list[bytes | None], dict[int, str | None]]:
        """Open content; return also the reasons for rows that did not open, None for those that an older key opened."""
        marked = [row for row, cell in enumerate(cells) if cell and cell.startswith(AS_STORED)]
        bare = self._open_all("content", [(cells[row] or "").removeprefix(AS_STORED) for row in marked])
        stored = [*cells]
        for row, text in zip(marked, bare, strict=True):
            stored[row] = None if text is None else text.decode()
        plain, missing, _ = self._content.open_many(stored)
        errors: dict[int, str | None] = {**missing}
        for older in self._older:
            rows = [row for row, error in errors.items() if error]
            for row, text in zip(rows, older.open_many([stored[row] for row in rows]).plain, strict=True):
                if text is not None:
                    plain[row], errors[row] = text, None
        return plain, errors


def _keys_for(
    where: object, user_id: str, seal: Seal, key: Key | None
) -> tuple[dict[int, Secret], Codec | None]:
    """Return the keys by version, which must include that of the archive, and the codec of an access."""
    fault = f"{where} is sealed with key_version {seal.key_version} of user {user_id}"
    codec = None
    if key is None:
        hint = Hint(
            "pass key=, the Access to that user or its encryption_key.",
            "give the user's --request, or the encryption_key in a --key-file.",
        )
        raise SealError(fault, hint=hint)
    if isinstance(key, Access):
        found = key.envelope.content_format
        codec = None if isinstance(found, str | Sequence) else found
        key = key.credentials
    if isinstance(key, Credentials):
        if not same_id(key.user_id, user_id):
            raise SealError(f"{fault}, and this is a key of user {key.user_id}: pass one of theirs.")
        key = {key.key_version: key.encryption_key}
    keys = {seal.key_version: key} if isinstance(key, str | Secret) else key
    if seal.key_version not in keys:
        held = ", ".join(map(str, sorted(keys))) or "none"
        hint = Hint(
            f"pass the older key as key={{{seal.key_version}: ...}}", "give the older key in a --key-file"
        )
        raise SealError(
            f"{fault}, and the key_version that was given is {held}",
            hint=hint + ", or export the archive again.",
        )
    return {version: as_secret(one) for version, one in keys.items()}, codec
