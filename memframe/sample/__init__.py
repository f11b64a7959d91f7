"""A made-up person's memories: six years, with everything that an audit looks for.

The person, the people around her and every number, address and key are invented; telephone numbers
come from the ranges that regulators keep for fiction, card and IBANs are the published test values.
The records lie beside this file as data, oldest first, and are the same each time.
"""

from __future__ import annotations

from importlib.resources import files

import msgspec
from msgspec import Struct


class SampleMemory(Struct, frozen=True, kw_only=True):
    """One memory in the open, as its owner reads it; times are ISO 8601 text in UTC."""

    content: str
    title: str | None
    summary: str | None
    tags: tuple[str, ...]
    importance: float | None
    confidence: float
    source: str
    created_at: str
    updated_at: str


class SampleTag(Struct, frozen=True, kw_only=True):
    """One tag of the sample's vocabulary; times are ISO 8601 text in UTC."""

    name: str
    color: str
    description: str | None
    is_enabled: bool
    created_at: str
    updated_at: str


def load_sample() -> list[SampleMemory]:
    """Return the memories, oldest first.

    >>> memories = load_sample()
    >>> len(memories), memories[0].title, memories[0].tags
    (389, 'Who Ilka is', ('people',))
    """
    return msgspec.json.Decoder(SampleMemory).decode_lines(_read("memories.jsonl"))


def load_sample_tags() -> list[SampleTag]:
    """Return the tags, in the order of first use.

    >>> [tag.name for tag in load_sample_tags() if not tag.is_enabled]
    ['stamps']
    """
    return msgspec.json.decode(_read("tags.json"), type=list[SampleTag])


def _read(name: str) -> bytes:
    return (files(__name__) / name).read_bytes()
