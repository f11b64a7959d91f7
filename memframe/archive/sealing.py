"""Sealed archives: what people wrote is under the user's own key, the rest in the open.

Sealed are ``title``, ``summary``, ``content`` and each name in ``tags``. In the open are the columns by which an
archive is sorted, counted and compared: ``id``, ``user_id``, ``tag_ids``, ``importance``, ``confidence``, ``source``,
``created_at``, ``updated_at`` and ``content_error``.

Content stays byte for byte as the service stores it if the key opens it: nothing is sealed twice. Content that the
service stores in the open, or that did not open, is sealed as it is, behind the mark `AS_STORED`; so nothing is lost
that an older key may still open. All other text is in memframe's own layout (see `memframe.envelope.layouts.Own`),
bound to user and key version.

Each file carries a message authentication code (HMAC-SHA-256 under a key derived from the user's) over its header and
over every cell of every column; the folder of a dataset has one over the codes of its files, in `SEAL_FILE`. Reading
with the key verifies the columns that are read, so that a cell, row or file that was changed, moved, added or dropped
is an error. Reading without the key, as other programs do, verifies nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, starmap
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memframe.access import Access
from memframe.archive import parquet
from memframe.archive.places import SEAL_FILE, format_of, is_folder, parts_of
from memframe.archive.table import (
    ARCHIVE_SCHEMA,
    HEADER,
    MAC,
    ArchiveHeader,
    Mac,
    Seal,
    read_metadata,
    schema_for,
    table_of_page,
)
from memframe.client.responses import same_id
from memframe.client.validation import memory_query
from memframe.display import number_of
from memframe.envelope import Codec, Envelope
from memframe.envelope.detect import OWN
from memframe.errors import FrameError, Hint, SealError
from memframe.files import atomic_file
from memframe.frames import NAMES, TEXT
from memframe.listing import MemoryPages
from memframe.progress import Progress, ProgressOption
from memframe.secret import Secret, as_secret
from memframe.wire import Credentials

Key = str | Secret | Credentials | Access | Mapping[int, str | Secret]
"""The ``encryption_key`` itself, what holds it, or several by their ``key_version``."""


STORED = "stored"
"""Column with the content as the service stores it, beside those of a memory."""


def tables_of_access(access: Access, *, progress: ProgressOption = False) -> Iterator[pa.Table]:
    """Load the columns of `load_memories` and `STORED`, page by page; no baselines are kept."""
    pages = MemoryPages(access)
    names = [*ARCHIVE_SCHEMA, STORED]
    with Progress(progress, text="memories") as bar:
        for columns in pages.columns(memory_query(access.user_id), limit=None, page_size="auto"):
            yield table_of_page(columns, names)
            bar.step(len(columns["id"]))


AS_STORED = "as-stored:"
"""Stands before content that was sealed for the archive, as it came."""

CODEC = "codec"

SEALED_TEXTS = ("title", "summary")
SEALED = frozenset({*SEALED_TEXTS, "content", "tags"})
"""Columns that only the key opens."""

IN_THE_OPEN = ARCHIVE_SCHEMA.keys() - SEALED - {"content_error"}
"""Columns that say the same without it."""

_Cells = Sequence[str | None]


class FileMac:
    """Compute the authentication code of one file while its tables are written or read."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._streams: dict[str, list[hmac.HMAC]] = {}
        self.n_rows = 0

    def add(self, table: pa.Table) -> pa.Table:
        """Add the rows of a table, and return it; how rows are divided into tables makes no difference."""
        self.n_rows += len(table)
        for name, column in zip(table.column_names, table.columns, strict=True):
            for chunk in filter(len, column.chunks):
                data = _streams_of(chunk)
                fresh = [hmac.new(self._key, name.encode(), hashlib.sha256) for _ in data]
                for stream, some in zip(self._streams.setdefault(name, fresh), data, strict=True):
                    stream.update(some)
        return table

    def code(self, header: bytes, names: Iterable[str]) -> Mac:
        """Return the code of a file with this header and these columns."""
        columns = {name: self.digest(name) for name in sorted(names)}
        return Mac(columns, self.n_rows, code=_code(self._key, header, columns, self.n_rows, []))

    def digest(self, name: str) -> str:
        """Return the digest of one column."""
        return "".join(stream.hexdigest() for stream in self._streams.get(name, ()))


def mac_key(key: Secret, user_id: str) -> bytes:
    """Derive the key of authentication codes from the user's encryption key."""
    info = b"memframe archive 1\0" + user_id.encode()
    return HKDF(SHA256(), 32, salt=None, info=info).derive(bytes.fromhex(key.reveal()))


def _code(key: bytes, header: bytes, columns: dict[str, str], n_rows: int, parts: Sequence[str]) -> str:
    said = msgspec.json.encode([header.hex(), sorted(columns.items()), n_rows, parts])
    return hmac.new(key, said, hashlib.sha256).hexdigest()


def _streams_of(array: pa.Array) -> list[bytes | memoryview]:
    """Return the cells of a column as bytes: which are null and how long they are, then what they hold."""
    kind = array.type
    if pa.types.is_list(kind):
        lengths = pc.list_value_length(array).fill_null(-1)
        return [lengths.to_numpy().tobytes(), *_streams_of(array.flatten())]
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        lengths = pc.binary_length(array).cast(pa.int64()).fill_null(-1)
        return [lengths.to_numpy().tobytes(), _text_bytes(array.drop_null().cast(pa.large_string()))]
    valid = array.is_valid().cast(pa.int8()).to_numpy(zero_copy_only=False)
    numbers = array.cast(pa.int64()) if pa.types.is_timestamp(kind) else array
    return [valid.tobytes(), numbers.fill_null(0).to_numpy().tobytes()]


def _text_bytes(array: pa.Array) -> bytes | memoryview:
    """Return the bytes of all texts one after another, without a copy of them."""
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return b""
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[array.offset] : ends[array.offset + len(array)]]


class Plain:
    """Write an archive in the open, of tables of `tables_of_access` or of a frame."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    @classmethod
    def of(cls, access: Access) -> Plain:
        """Return the form of an archive of all memories of one user."""
        return cls(schema_for(ArchiveHeader(access.user_id)))

    def prepare(self, table: pa.Table) -> pa.Table:
        """Return the table to write: without its column of stored content."""
        return table.select([*ARCHIVE_SCHEMA])

    def write(self, path: Path, tables: Iterable[pa.Table]) -> int:
        """Write one file of the archive, and return the number of its rows."""
        with atomic_file(path) as file:
            return format_of(path).write(file, self.schema, tables)

    def write_to(self, file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
        """Write one Parquet file, whose schema may lack columns."""
        return parquet.write(file, schema, tables)

    def seal_folder(self, folder: Path) -> None:
        """Leave the folder as it is: it has no seal."""


class Sealed(Plain):
    """Write a sealed archive, of tables of `tables_of_access`, or continue one that has a ``header``."""

    def __init__(self, access: Access, header: ArchiveHeader | None = None) -> None:
        keys, found = access.credentials, access.envelope.content_format
        self._own = Envelope(
            keys.encryption_key, user_id=keys.user_id, key_version=keys.key_version, content_format=OWN
        )
        names = found if isinstance(found, str) else list(found) if isinstance(found, Sequence) else CODEC
        self.seal = Seal(keys.key_version, names, check=self._own.seal(keys.user_id))
        if header and header.seal and self.continues(header.seal):
            self.seal = header.seal
        super().__init__(schema_for(ArchiveHeader(keys.user_id, self.seal)))
        self._mac_key = mac_key(keys.encryption_key, keys.user_id)

    def continues(self, seal: Seal) -> bool:
        """Return True if rows under another seal can be in the same archive."""
        ours = (self.seal.key_version, self.seal.content_format)
        return ours == (seal.key_version, seal.content_format)

    def prepare(self, table: pa.Table) -> pa.Table:
        """Return the table to write: sealed, and without its column of stored content."""
        contents = zip(table[STORED].to_pylist(), table["content"].to_pylist(), strict=True)
        columns = {name: table[name] for name in ARCHIVE_SCHEMA}
        columns |= {name: _text(self._seal_all(table[name].to_pylist())) for name in SEALED_TEXTS}
        columns["tags"] = _each_name(table["tags"], self._seal_all)
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

    def write(self, path: Path, tables: Iterable[pa.Table]) -> int:
        """Write one file of the archive with its authentication code, and return the number of its rows."""
        with atomic_file(path) as file:
            return self.write_to(file, self.schema, tables)

    def write_to(self, file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
        """Write one Parquet file with its code, whose schema may lack columns."""
        mac, header = FileMac(self._mac_key), schema.metadata[HEADER]
        passed = map(mac.add, tables)
        return parquet.write(file, schema, passed, lambda: _entry_of(mac.code(header, schema.names)))

    def seal_folder(self, folder: Path) -> None:
        """Write the file with the code over all files of a dataset."""
        with atomic_file(folder / SEAL_FILE) as file:
            file.write(self.seal_of(self.schema, parts_of(folder)))

    def seal_of(self, schema: pa.Schema, parts: Iterable[Path | BinaryIO]) -> bytes:
        """Return the file with the code over these files, in this order."""
        found = (read_metadata(parquet.footer_of(part), MAC, Mac) for part in parts)
        codes = [mac.code for mac in found if mac]
        mac = Mac({}, 0, codes, _code(self._mac_key, schema.metadata[HEADER], {}, 0, codes))
        file = io.BytesIO()
        parquet.write(file, schema, [], lambda: _entry_of(mac))
        return file.getvalue()


def _entry_of(mac: Mac) -> dict[bytes, bytes]:
    return {MAC: msgspec.json.encode(mac)}


class Opener:
    """Verify and open tables of a sealed archive, which messages call ``where``.

    Raises
    ------
    SealError
        There is no key, or it is not the one.
    """

    def __init__(self, where: object, header: ArchiveHeader, key: Key | None) -> None:
        seal = header.seal
        assert seal is not None  # noqa: S101 - for the type checker: only sealed archives are opened
        self._where = where
        present, others, codec = _choose_keys(where, header.user_id, seal, key)
        bind = partial(Envelope, user_id=header.user_id)
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
        stored_as = codec if seal.content_format == CODEC else seal.content_format
        if stored_as is None:
            raise SealError(
                f"The content of {where} is sealed by your own codec",
                hint=Hint(
                    "pass key=access, of an access that was opened with content_format=codec.",
                    "read it in Python, with the codec.",
                ),
            )
        self._content = bind(present, key_version=seal.key_version, content_format=stored_as)
        self._older = [bind(other, key_version=version) for version, other in others.items()]
        self._mac_key = mac_key(present, header.user_id)

    def check_folder(self, folder: Path, parts: Sequence[Path]) -> None:
        """Refuse a dataset of which a file is missing, added or exchanged."""
        seal = folder / SEAL_FILE
        mac = self._mac_of(seal) if seal.exists() else None
        codes = [self._mac_of(part).code for part in parts]
        if mac is None or mac.parts != codes:
            raise SealError(
                f"The files in {folder} are not those that were sealed together: one was dropped, added, renamed or "
                "exchanged. Take them from a copy, or export the archive again."
            )

    def verify(self, part: Path, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Pass the tables of one file on, and refuse the file at its end if it was changed since it was sealed."""
        mac, names, found = self._mac_of(part), [], FileMac(self._mac_key)
        for table in tables:
            names = [name for name in table.column_names if name in mac.columns]
            found.add(table.select(names))
            yield table
        digests = ((found.digest(name), mac.columns[name]) for name in names)
        if found.n_rows != mac.n_rows or not all(starmap(hmac.compare_digest, digests)):
            raise _change_error(part)

    def _mac_of(self, part: Path) -> Mac:
        """Return the code in a file's footer, if the key made it for this header and these columns."""
        footer = parquet.footer_of(part)
        mac = read_metadata(footer, MAC, Mac)
        if mac is None:
            raise SealError(
                f"{part} has no authentication code: it was taken away, or memframe did not seal it. Export the "
                "archive again."
            )
        code = _code(self._mac_key, footer.get(HEADER, b""), mac.columns, mac.n_rows, mac.parts)
        is_whole = mac.columns.keys() == {*parquet.schema_of(part).names} or part.name == SEAL_FILE
        if not is_whole or not hmac.compare_digest(code, mac.code):
            raise _change_error(part)
        return mac

    def open(self, table: pa.Table) -> pa.Table:
        """Open the sealed columns of a table."""
        columns = {name: table[name] for name in table.column_names}
        for name in columns.keys() & {*SEALED_TEXTS}:
            columns[name] = TEXT.chunk(self._open_all(name, table[name].to_pylist()))
        if "tags" in columns:
            columns["tags"] = _each_name(table["tags"], partial(self._open_all, "tags"))
        if "content" in columns:
            plain, errors = self._contents(table["content"].to_pylist())
            columns["content"] = TEXT.chunk(plain)
            if "content_error" in columns:
                said = enumerate(table["content_error"].to_pylist())
                columns["content_error"] = _text([errors.get(row, archived) for row, archived in said])
        return pa.table(columns).replace_schema_metadata(table.schema.metadata)

    def _open_all(self, name: str, cells: _Cells) -> list[bytes | None]:
        opened = self._own.open_many(cells)
        if opened.errors:
            raise SealError(
                f"{number_of(len(opened.errors), 'text', 'texts')} of {name} in {self._where} cannot be opened, "
                "though the key is right: the archive was changed or damaged. Export it again."
            )
        return opened.plain

    def _contents(self, cells: _Cells) -> tuple[list[bytes | None], dict[int, str | None]]:
        """Open content; return the reasons for missing rows, None for those that an older key opened."""
        stored = list(cells)
        marked = [row for row, cell in enumerate(cells) if cell is not None and cell.startswith(AS_STORED)]
        bare = self._open_all("content", [(cells[row] or "").removeprefix(AS_STORED) for row in marked])
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


def _choose_keys(
    where: object, user_id: str, seal: Seal, key: Key | None
) -> tuple[Secret, dict[int, Secret], Codec | None]:
    """Choose the key of an archive; return it, those of other versions, newest first, and the codec of an access."""
    fault = f"{where} is sealed with key_version {seal.key_version} of user {user_id}"
    codec = None
    if key is None:
        hint = Hint(
            "pass key=, the Access to that user or its encryption_key.",
            "give the user's --request, or the encryption_key in a --key-file.",
        )
        raise SealError(fault, hint=hint)
    if isinstance(key, Mapping):
        others = {version: as_secret(one) for version, one in sorted(key.items(), reverse=True)}
        if seal.key_version not in others:
            held = ", ".join(map(str, others)) or "none"
            raise SealError(f"{fault}, and of the versions given ({held}) none matches.")
        return others.pop(seal.key_version), others, None
    if isinstance(key, Access):
        found = key.envelope.content_format
        codec = None if isinstance(found, str | Sequence) else found
        key = key.credentials
    if isinstance(key, Credentials):
        if not same_id(key.user_id, user_id):
            raise SealError(f"{fault}, and this is a key of user {key.user_id}: pass one of theirs.")
        if key.key_version != seal.key_version:
            hint = Hint(
                f"pass the older key as key={{{seal.key_version}: ...}}", "give the older key in a --key-file"
            )
            raise SealError(
                f"{fault}, and these credentials hold key_version {key.key_version}",
                hint=hint + ", or export the archive again.",
            )
        key = key.encryption_key
    return as_secret(key), {}, codec


def _change_error(part: Path) -> SealError:
    return SealError(
        f"{part} was changed or damaged since it was sealed: take it from a copy, or export the archive again."
    )


def _text(cells: Sequence[str | None]) -> pa.Array:
    return pa.array(cells, TEXT.arrow)


def _each_name(column: pa.ChunkedArray, change: Callable[[_Cells], Sequence[str | bytes | None]]) -> pa.Array:
    """Apply a function to all names of a column of lists."""
    names = chain.from_iterable(chunk.flatten().to_pylist() for chunk in column.chunks)
    lengths = pc.list_value_length(column).fill_null(0).to_pylist()
    values = TEXT.chunk(change(list(names))).cast(NAMES.arrow.value_type)
    return pa.ListArray.from_arrays(pa.array(accumulate(lengths, initial=0), pa.int32()), values)


class Reader:
    """Reader of the files of one archive: a file, or the folder of a Parquet dataset.

    The key is needed as soon as a sealed column is read. With it the archive is verified.
    """

    def __init__(self, path: Path, key: Key | None = None) -> None:
        self.parts = parts_of(path)
        self._path = path
        self._key = key
        self._opener: tuple[ArchiveHeader, Opener] | None = None

    def header(self, part: Path | None = None) -> ArchiveHeader | None:
        """Return the header of a file, by default of the first one."""
        part = part or self.parts[0]
        return format_of(part).header(part)

    def is_sealed(self, part: Path | None = None) -> bool:
        """Return True if a file says that it is sealed."""
        header = self.header(part)
        return header is not None and header.seal is not None

    def require_sealed(self) -> None:
        """Refuse files that are not sealed: with a key, the caller expects authenticated rows."""
        for part in self.parts:
            if not self.is_sealed(part):
                raise SealError(
                    f"{part} is not sealed, and a key was given: leave the key out to read it as it is, unless it "
                    "should be sealed; then it was replaced."
                )

    def labels(self) -> Sequence[str | range]:
        """Return the index of the frame that pandas wrote to a file; files of a dataset have none together."""
        return format_of(self.parts[0]).labels(self.parts[0]) if len(self.parts) == 1 else ()

    def tables(
        self, columns: Sequence[str] | None = None, labels: Iterable[str | range] = ()
    ) -> Iterator[pa.Table]:
        """Yield all rows, file by file, as tables of the given columns (by default all) and the labels."""
        for part in self.parts:
            yield from self.tables_of_part(part, columns, labels)

    def tables_of_part(
        self, part: Path, columns: Sequence[str] | None = None, labels: Iterable[str | range] = ()
    ) -> Iterator[pa.Table]:
        """Yield the rows of one file."""
        found, header = format_of(part), self.header(part)
        chosen = _check_columns(part, found.names(part), columns)
        wanted = [*dict.fromkeys([*chosen, *(label for label in labels if isinstance(label, str))])]
        needed = [*dict.fromkeys([*wanted, *(["content"] if "content_error" in wanted else [])])]
        in_the_open = self._key is None and SEALED.isdisjoint(needed)  # and then not verified
        if header is None or header.seal is None or in_the_open:
            yield from found.read(part, wanted)
        else:
            opener = self._opener_for(header)
            for table in opener.verify(part, found.read(part, needed)):
                yield opener.open(table).select(wanted)

    def _opener_for(self, header: ArchiveHeader) -> Opener:
        """Return the opener of all files that were sealed together."""
        if self._opener is None:
            opener = Opener(self._path, header, self._key)
            if is_folder(self._path):
                opener.check_folder(self._path, self.parts)
            self._opener = header, opener
        if self._opener[0] != header:
            raise SealError(f"The files in {self._path} were not sealed together: export the archive again.")
        return self._opener[1]


def _check_columns(path: Path, names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """Return the columns to read; by default those of a memory, then the others of the file."""
    wanted = [*ARCHIVE_SCHEMA] if columns is None else list(columns)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise FrameError(
            f"{path} has no column {', '.join(missing)}: "
            + (
                "it is not an archive of memories; choose with columns=, or read it with pandas. Was id the index "
                "of the frame, write frame.reset_index()."
                if columns is None
                else f"it has {', '.join(names)}."
            )
        )
    return wanted + [name for name in names if columns is None and name not in ARCHIVE_SCHEMA]
