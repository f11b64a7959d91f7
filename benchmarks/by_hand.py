"""Pages to a frame by the libraries that memframe stands on, with nothing around them.

Made for the one server of this benchmark: a single layout, no page that fails, repeats or is somebody else's. What
memframe takes beyond it is the price of what it does for its user; what others take beyond it, of their libraries.
"""

import gc

import numpy as np
import pandas as pd
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import astuple
from pybase64 import b64decode
from servers import KEY


class Memory(Struct, gc=False):
    id: str
    user_id: str
    title: str
    summary: str
    content: str
    tags: tuple[str, ...]
    tag_ids: tuple[str, ...]
    importance: float
    confidence: float
    source: str
    created_at: str
    updated_at: str


class Page(Struct, gc=False):
    memoryBlobs: list[Memory]  # noqa: N815 - as on the wire


TEXT, BYTES, TIME = pa.large_string(), pa.large_binary(), pa.timestamp("us", tz="UTC")
NUMBERS, NAMES, TIMES = {"importance", "confidence"}, {"tags", "tag_ids"}, {"created_at", "updated_at"}
POOL = pa.system_memory_pool()
unseal = AESGCM(KEY).decrypt


def frame_of(bodies):
    gc.disable()
    decode = Decoder(Page).decode
    chunks = {name: [] for name in Memory.__struct_fields__}
    for body in bodies:
        columns = zip(*map(astuple, decode(body).memoryBlobs), strict=True)
        del body
        for name, cells in zip(chunks, columns, strict=True):
            chunks[name].append(chunk_of(name, cells))
    return pd.DataFrame({name: joined(parts) for name, parts in chunks.items()}, copy=False)


def chunk_of(name, cells):
    if name == "content":
        return pa.array(opened(cells), BYTES, memory_pool=POOL).cast(TEXT, memory_pool=POOL)
    if name in NUMBERS:
        return pa.array(cells, pa.float64(), memory_pool=POOL)
    if name in NAMES:
        return np.fromiter(cells, object, len(cells))
    column = pa.array(cells, TEXT, memory_pool=POOL)
    return column.cast(TIME, memory_pool=POOL) if name in TIMES else column


def opened(cells):
    raws = [b64decode(cell, None, True) for cell in cells]
    return [unseal(raw[:12], raw[12:], None) for raw in raws]


def joined(chunks):
    if isinstance(chunks[0], np.ndarray):
        return pd.Series(np.concatenate(chunks), copy=False)
    return pa.chunked_array(chunks).to_pandas()
