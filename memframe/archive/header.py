"""The header of an archive's Parquet files: whose memories they are, and under which key they are sealed.

It stands in the metadata of the schema under ``memframe``, as JSON. Archives made of frames have none: such
a frame may hold the memories of several users, or of nobody in particular.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa
from msgspec import Struct

HEADER = b"memframe"
_MAC = b"memframe.mac"


class Seal(Struct, frozen=True):
    """What it takes to open an archive.

    Attributes
    ----------
    key_version : int
        Of the user's key.
    content_format : str or list of str
        How the service stores the content, as `open_access` was told; "codec" for a codec of one's own.
    check : str
        The user's id, sealed: it shows whether a key is the right one before anything else is opened.
    """

    key_version: int
    content_format: str | list[str]
    check: str


class Header(Struct, frozen=True):
    """Whose memories a file holds; ``seal`` is None where they are plain."""

    user_id: str
    seal: Seal | None = None


class Mac(Struct, frozen=True):
    """The authentication code of a file of a sealed archive, in the metadata of its footer.

    Attributes
    ----------
    columns : dict of str to str
        A digest of all cells of each column, keyed like the code.
    n_rows : int
    parts : list of str
        In the file that seals a folder: the codes of the others, in order.
    code : str
        HMAC-SHA-256 over the header and all of the above, in hexadecimal.
    """

    columns: dict[str, str]
    n_rows: int
    parts: list[str] = []
    code: str = ""


def with_mac(mac: Mac) -> dict[bytes, bytes]:
    """Return the entry of a footer that carries a code."""
    return {_MAC: msgspec.json.encode(mac)}


def mac_in(footer: Mapping[bytes, bytes]) -> Mac | None:
    """Return the code in a footer; None where there is none that we understand."""
    try:
        return msgspec.json.decode(footer.get(_MAC, b""), type=Mac)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def with_header(schema: pa.Schema, header: Header) -> pa.Schema:
    """The schema of files that carry this header."""
    return schema.with_metadata({**(schema.metadata or {}), HEADER: msgspec.json.encode(header)})


def header_in(schema: pa.Schema) -> Header | None:
    """The header that a file's schema carries; None where there is none that we understand.

    >>> schema = with_header(pa.schema({"id": pa.string()}), Header("u1"))
    >>> header_in(schema)
    Header(user_id='u1', seal=None)
    """
    found = (schema.metadata or {}).get(HEADER)
    try:
        return found and msgspec.json.decode(found, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
