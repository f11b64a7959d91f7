"""Sealed archives: what people wrote, under the user's own key; the rest in the open.

Sealed are ``title``, ``summary``, ``content`` and each name in ``tags``. In the open stay what an archive is
sorted, counted and compared by, and what tells nothing that was said: ``id``, ``user_id``, ``tag_ids``,
``importance``, ``confidence``, ``source``, ``created_at``, ``updated_at`` and ``content_error``.

Content stays as the service stores it, to the letter, where the key opens it: nothing is sealed twice.
Content that the service stores in the open, or that did not open, is sealed as it stands, behind the mark
`AS_STORED`; so nothing is lost which an older key may still open. All other text is in memframe's own
layout (see `memframe.envelope.layouts.Own`), bound to user and key version, though not to its row: whoever
may write to the file could exchange two cells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain

import pyarrow as pa
import pyarrow.compute as pc

from memframe.access import Access
from memframe.archive.header import Header, Seal, with_header
from memframe.archive.key import Key, Keys, keys_for
from memframe.archive.stream import STORED
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.envelope import Envelope
from memframe.envelope.formats import OWN
from memframe.errors import SealError
from memframe.frames import NAMES, TEXT
from memframe.showing import number_of

AS_STORED = "as-stored:"
"""Stands before content that was sealed for the archive, as it came."""

CODEC = "codec"

SEALED_TEXTS = ("title", "summary")
SEALED = frozenset({*SEALED_TEXTS, "content", "tags"})
"""Columns that only the key opens."""

IN_THE_OPEN = ARCHIVE_SCHEMA.keys() - SEALED - {"content_error"}
"""Columns that say the same without it."""

_Cells = Sequence[str | None]


class Plain:
    """What an archive in the open holds of tables of `tables_of_access`."""

    def __init__(self, access: Access) -> None:
        self.schema = with_header(pa.schema(ARCHIVE_SCHEMA), Header(access.user_id))

    def stored(self, table: pa.Table) -> pa.Table:
        """The table as it is written: without its column of stored content."""
        return table.select([*ARCHIVE_SCHEMA])


class Sealed:
    """What a sealed archive holds of them.

    Parameters
    ----------
    access : Access
        Whose key seals.
    header : Header, optional
        Of an archive that is to be continued under the same key.
    """

    def __init__(self, access: Access, header: Header | None = None) -> None:
        keys = access.credentials
        self._own = Envelope(
            keys.encryption_key, user_id=keys.user_id, key_version=keys.key_version, content_format=OWN
        )
        self.seal = (header and header.seal) or Seal(
            keys.key_version, _format_of(access.envelope), check=self._own.seal(keys.user_id)
        )
        self.schema = with_header(pa.schema(ARCHIVE_SCHEMA), Header(keys.user_id, self.seal))

    def continues(self, seal: Seal) -> bool:
        """Whether rows sealed like these and like those can stand in one archive."""
        ours = (self.seal.key_version, self.seal.content_format)
        return ours == (seal.key_version, seal.content_format)

    def stored(self, table: pa.Table) -> pa.Table:
        """The table as it is written: without plain text, and without its column of stored content."""
        contents = zip(table[STORED].to_pylist(), table["content"].to_pylist(), strict=True)
        columns = {name: table[name] for name in ARCHIVE_SCHEMA}
        columns |= {name: _text(self._seal_all(table[name].to_pylist())) for name in SEALED_TEXTS}
        columns |= {
            "tags": _each_name(table["tags"], self._seal_all),
            "content": _text([self._content(stored, plain) for stored, plain in contents]),
        }
        return pa.table(columns)

    def _seal_all(self, cells: _Cells) -> list[str | None]:
        return [None if cell is None else self._own.seal(cell) for cell in cells]

    def _content(self, stored: str | None, plain: str | None) -> str | None:
        if stored is None or (plain is not None and plain != stored):
            return stored
        return AS_STORED + self._own.seal(stored)


def _format_of(envelope: Envelope) -> str | list[str]:
    found = envelope.content_format
    return found if isinstance(found, str) else list(found) if isinstance(found, Sequence) else CODEC


class Opener:
    """Opens tables of a sealed archive.

    Parameters
    ----------
    where : object
        What the archive is called in messages: its path.
    header : Header
        Of a sealed archive.
    key : Key or None
        As in `load_archive`.

    Raises
    ------
    SealError
        There is no key, or it is not the one.
    """

    def __init__(self, where: object, header: Header, key: Key | None) -> None:
        self._where = where
        keys = keys_for(where, header, key)
        self._own, self._content, self._older = _envelopes(where, header, keys)

    def opened(self, table: pa.Table) -> pa.Table:
        """The table with plain text in the place of sealed."""
        columns = {name: self._column(name, table[name]) for name in table.column_names}
        if "content" in columns:
            plain, errors = self._contents(table["content"].to_pylist())
            columns["content"] = TEXT.chunk(plain)
            if "content_error" in columns:
                said = enumerate(table["content_error"].to_pylist())
                columns["content_error"] = _text([errors.get(row, archived) for row, archived in said])
        return pa.table(columns).replace_schema_metadata(table.schema.metadata)

    def _column(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
        if name in SEALED_TEXTS:
            return TEXT.chunk(self._open_all(name, column.to_pylist()))
        if name == "tags":
            return _each_name(column, lambda cells: self._open_all(name, cells))
        return column

    def _open_all(self, name: str, cells: _Cells) -> list[bytes | None]:
        opened = self._own.open_many(cells)
        if opened.errors:
            raise SealError(
                f"{number_of(len(opened.errors), 'text', 'texts')} of {name} in {self._where} cannot be opened, "
                "though the key is right: the "
                "archive was changed or damaged. Export it again."
            )
        return opened.plain

    def _contents(self, cells: _Cells) -> tuple[list[bytes | None], dict[int, str | None]]:
        """Content, and why some of it is missing by row: None where another version of the key has opened it."""
        stored = self._as_stored(cells)
        plain, missing, _ = self._content.open_many(stored)
        errors: dict[int, str | None] = {**missing}
        for older in self._older:
            rows = [row for row, error in errors.items() if error]
            for row, text in zip(rows, older.open_many([stored[row] for row in rows]).plain, strict=True):
                if text is not None:
                    plain[row], errors[row] = text, None
        return plain, errors

    def _as_stored(self, cells: _Cells) -> _Cells:
        marked = [row for row, cell in enumerate(cells) if cell is not None and cell.startswith(AS_STORED)]
        if not marked:
            return cells
        bare = self._open_all("content", [(cells[row] or "").removeprefix(AS_STORED) for row in marked])
        stored = list(cells)
        for row, text in zip(marked, bare, strict=True):
            stored[row] = None if text is None else text.decode()
        return stored


def _envelopes(where: object, header: Header, keys: Keys) -> tuple[Envelope, Envelope, list[Envelope]]:
    """For what we sealed, for content as the service stores it, and for content under other versions of the key."""
    seal = header.seal
    assert seal is not None  # noqa: S101 - for the type checker: only sealed archives are opened
    own = Envelope(keys.key, user_id=header.user_id, key_version=seal.key_version, content_format=OWN)
    if own.open_many([seal.check]).errors:
        raise SealError(
            f"This key does not open {where}, which is sealed with key_version {seal.key_version} of user "
            f"{header.user_id}: pass that key, or an Access to that user."
        )
    content_format = keys.codec if seal.content_format == CODEC else seal.content_format
    if content_format is None:
        raise SealError(
            f"The content of {where} is stored by a codec of your own: pass key=access, of an access that was "
            "opened with content_format=codec."
        )
    content = Envelope(
        keys.key, user_id=header.user_id, key_version=seal.key_version, content_format=content_format
    )
    older = [
        Envelope(key, user_id=header.user_id, key_version=version) for version, key in keys.others.items()
    ]
    return own, content, older


def _text(cells: Sequence[str | None]) -> pa.Array:
    return pa.array(cells, TEXT.arrow)


def _each_name(column: pa.ChunkedArray, change: Callable[[_Cells], Sequence[str | bytes | None]]) -> pa.Array:
    """Lists of names with every name changed; all of a column at once."""
    names = chain.from_iterable(chunk.flatten().to_pylist() for chunk in column.chunks)
    lengths = pc.list_value_length(column).fill_null(0).to_pylist()
    values = TEXT.chunk(change(list(names))).cast(NAMES.arrow.value_type)
    return pa.ListArray.from_arrays(pa.array(accumulate(lengths, initial=0), pa.int32()), values)
