"""The fields of a memory, once: what each is, and how merging, redacting and sealing treat it.

All other lists of fields follow from `MEMORY_FIELDS`. A new field needs only its name. By default it is text that
people write, may be missing, is searched for secrets and sealed in archives, and memories that differ in it are not
merged.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

FieldKind = Literal["text", "names", "number", "time"]

OnMerge = Literal["keep both", "compare words", "join", "take highest"]
"""Rule for two different values when memories are merged; a value that only one memory has is always kept.

- ``keep both``: do not merge; both memories stay.
- ``compare words``: keep the value of the kept memory if it says all that the other says; otherwise both memories stay.
- ``join``: keep the names of both.
- ``take highest``: keep the higher number.
"""


class MemoryField(NamedTuple):
    """One field of a memory; the defaults are those that lose and reveal the least."""

    name: str
    kind: FieldKind = "text"
    is_editable: bool = True
    """True if people may write it; otherwise the service sets it."""
    is_optional: bool = True
    """True if it may be missing (null)."""
    is_searched: bool = True
    """True if its text is searched for secrets, personal data and planted text, and by the searches of people."""
    is_sealed: bool = True
    """True if sealed archives encrypt it; other columns can be sorted, counted and compared without the key."""
    on_merge: OnMerge = "keep both"
    highest: float | None = None
    """Largest value of a number; the smallest is 0."""
    if_missing: Literal["info", "low", "medium"] | None = None
    """Severity of the audit's finding about a memory without it; None for no finding."""
    is_placed: bool = False
    """True if the pages of the service show it in a place of its own, not in the list of details."""
    is_exported: bool = True
    """True if the person's own download has it."""
    since: int = 1
    """First version of the columns of archives that has it; in an older archive it is missing from all memories."""

    @property
    def label(self) -> str:
        """The name to show to people.

        >>> MemoryField("created_at", "time").label
        'Created at'
        """
        return self.name.replace("_", " ").capitalize()


def _of_service(name: str, kind: FieldKind = "text", *, is_exported: bool = True) -> MemoryField:
    """Make the row of a field that the service sets: it holds no words of people and is not sealed in archives."""
    return MemoryField(
        name,
        kind,
        is_editable=False,
        is_optional=False,
        is_searched=False,
        is_sealed=False,
        is_exported=is_exported,
    )


MEMORY_FIELDS = (
    _of_service("id"),
    _of_service("user_id", is_exported=False),  # the download names the person once
    MemoryField("title", on_merge="compare words", if_missing="low", is_placed=True),
    # a short memory needs no summary
    MemoryField("summary", on_merge="compare words", if_missing="info", is_placed=True),
    MemoryField("content", is_optional=False, on_merge="compare words", if_missing="medium", is_placed=True),
    MemoryField("tags", "names", is_optional=False, on_merge="join", if_missing="low", is_placed=True),
    _of_service("tag_ids", "names", is_exported=False),  # the download has the names of the tags
    # a score is an estimate of an application: what is important in one of two copies stays important
    MemoryField("importance", "number", is_sealed=False, on_merge="take highest", highest=5.0),
    MemoryField("confidence", "number", is_sealed=False, on_merge="take highest", highest=1.0),
    # the name of the application that wrote the memory: not prose, and open in archives, to count memories by it
    MemoryField("source", is_searched=False, is_sealed=False, if_missing="low"),
    _of_service("created_at", "time"),
    _of_service("updated_at", "time"),
)
"""All fields, in the order of the columns of frames and archives."""

TEXT_FIELDS = tuple(field.name for field in MEMORY_FIELDS if field.kind == "text" and field.is_searched)
"""Fields with text that people write, which audits and searches read."""

NAMES_FIELDS = tuple(field.name for field in MEMORY_FIELDS if field.kind == "names")
TIME_FIELDS = tuple(field.name for field in MEMORY_FIELDS if field.kind == "time")

COLUMNS_VERSION = max(field.since for field in MEMORY_FIELDS)
"""Version of the columns of archives; the header of an archive has it."""
