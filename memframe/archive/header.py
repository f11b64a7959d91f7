"""The header of an archive's Parquet files: whose memories they are, and under which key they are sealed.

It stands in the metadata of the schema under ``memframe``, as JSON. Archives made of frames have none: such
a frame may hold the memories of several users, or of nobody in particular.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa
from msgspec import Struct

_NAME = b"memframe"


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


def with_header(schema: pa.Schema, header: Header) -> pa.Schema:
    """The schema of files that carry this header."""
    return schema.with_metadata({**(schema.metadata or {}), _NAME: msgspec.json.encode(header)})


def header_in(schema: pa.Schema) -> Header | None:
    """The header that a file's schema carries; None where there is none that we understand.

    >>> schema = with_header(pa.schema({"id": pa.string()}), Header("u1"))
    >>> header_in(schema)
    Header(user_id='u1', seal=None)
    """
    found = (schema.metadata or {}).get(_NAME)
    try:
        return found and msgspec.json.decode(found, type=Header)
    except msgspec.MsgspecError:
        return None
