"""Read files of other memory systems into the columns of memories: recognised by shape, nothing left out silently.

`FORMATS` (`memframe.readers.formats`) is the table of what is read: mem0, OpenMemory, Letta, claude-mem, Hindsight,
ChatGPT, Claude, pasted lists of dated lines, LangGraph, Graphiti, two memory servers of MCP, Supermemory, Portable AI
Memory, profiles of keys and values, Markdown (basic-memory, Obsidian, OKF, Letta's folders), a person's own download
from a service of memframe and any CSV, JSON, JSON Lines or Parquet with a column of texts. Archives of memframe are
read by `load_archive`.

Rows have no ``id``, because no service holds them: written with `plan_changes` they become new memories. ``origin_id``
is their id in the source, ``entity`` their subject if the text does not name it, ``place`` their place in the file, in
words, ``line`` the line of their text, ``file`` their file in a folder or archive, ``outdated`` the reason why their
source no longer holds them true. A score of an unknown scale stays in an extra column.
``attrs["memframe_read"]`` has the counts of a read: ``file``, ``format``, ``rows``, ``left_out`` (reason to number),
``times``, ``outdated``, ``not_kept``, ``tags_cut``, ``unread_files`` and ``summary``, the same in sentences.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from memframe.archive import load_archive
from memframe.archive.bounds import MAX_BYTES, MAX_RATIO
from memframe.archive.formats import is_archive
from memframe.display import number_of, printable
from memframe.errors import ConfigError, FrameError, kind_of
from memframe.files import expand_path
from memframe.frames import READ, gc_paused
from memframe.readers.entries import section_files, section_items
from memframe.readers.formats import FORMATS, GENERIC, REFUSALS, Format
from memframe.readers.places import Position
from memframe.readers.rows import Collector, read_zone, times_of, undated
from memframe.readers.source import END_A_TEXT, Document, Input, is_text, open_path, open_text, read_header

__all__ = ["read_memories"]


def read_memories(
    path_or_text: str | PathLike[str],
    *,
    format: str = "auto",  # noqa: A002 - the word of pandas
    zone: str | tzinfo | None = None,
) -> pd.DataFrame:
    r"""Read memories from another memory system, an assistant or a person's list.

    Parameters
    ----------
    path_or_text : str or Path
        A file, a folder, a zip archive, or the text itself: a ``str`` is treated as text if it contains a line
        end or begins with a bracket or brace. Pass such a path as a `Path`.
    format : str
        By default recognised by structure. A name from `memframe.readers.FORMATS` decides if several fit.
    zone : str or tzinfo, optional
        Time zone of times without one, such as "Europe/Paris". A date alone is read as midnight, by default in
        UTC.

    Returns
    -------
    DataFrame
        The columns of `load_memories`, ``origin_id``, and further columns of the format, as text.
        ``attrs["memframe_read"]`` has the counts, and their ``summary`` in sentences.

    Raises
    ------
    FrameError
        The file is damaged, truncated or of unknown format; it states a different count than it contains; or a
        time has no zone. The message names the place.
    ConfigError
        The format or time zone is unknown.

    Warns
    -----
    UserWarning
        Entries were left out, such as relations, deleted memories and damaged lines; the warning counts them.

    Examples
    --------
    >>> memories = read_memories("[2024-05-01] - Likes tea\n[unknown] - Lives in Lyon\n")
    >>> memories[["content", "created_at"]]
             content                created_at
    0      Likes tea 2024-05-01 00:00:00+00:00
    1  Lives in Lyon                       NaT
    >>> memories.attrs["memframe_read"]["summary"]
    '2 memories read as pasted. 1 of them has no date.'
    """
    if format not in (*FORMATS, "auto", "memframe"):
        raise ConfigError(
            f"format={format!r:.60} is unknown: choose 'auto', 'memframe', {', '.join(map(repr, FORMATS))}"
        )
    known = read_zone(zone)
    if not isinstance(path_or_text, str | PathLike):
        raise FrameError(f"path_or_text is {kind_of(path_or_text)}: pass a path, or the text as a str")
    try:
        path = None if is_text(path_or_text) else expand_path(path_or_text)
    except ConfigError as error:
        raise FrameError(f"{error}. {END_A_TEXT}") from None
    if path is not None and (format == "memframe" or (format == "auto" and is_archive(path))):
        archived = load_archive(path)
        n = number_of(len(archived), "memory", "memories")
        times = times_of(archived)
        summary = " ".join([f"{n} read as memframe.", *undated(times["missing"], len(archived))])
        report = {"format": "memframe", "file": printable(str(path)), "rows": len(archived), "left_out": {}}
        archived.attrs[READ] = report | {"times": times, "tags_cut": 0, "unread_files": 0, "summary": summary}
        return archived
    try:
        source = open_text(str(path_or_text)) if path is None else open_path(path)
    except RecursionError:
        raise _too_deep(str(path or "the text")) from None
    reading = read_input(source, format, zone=known)
    if reading.is_partial:
        warnings.warn(f"{source.name}: {reading.frame.attrs[READ]['summary']}", stacklevel=2)
    return reading.frame


def join_reads(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    r"""Join what `read_memories` read from several files into one frame, in which ``file`` names that of each row.

    >>> frames = [read_memories(f"- Likes {what}\n- Rows\n") for what in ("tea", "soup")]
    >>> join_reads(frames)[["content", "file", "line"]].values.tolist()[2:]
    [['Likes soup', 'the text', 1], ['Rows', 'the text', 2]]
    """
    if len(frames) == 1:
        return frames[0]
    reports, named = [frame.attrs[READ] for frame in frames], []
    for frame, report in zip(frames, reports, strict=True):
        if report["format"] == "memframe":
            raise FrameError(f"{report['file']} is an archive of memframe: read it separately.")
        files = [str(Path(report["file"], name if isinstance(name, str) else "")) for name in frame["file"]]
        named.append(frame.assign(file=pd.array(files, "str")))
    together = pd.concat(named, ignore_index=True)
    left_out = sum((Counter(report["left_out"]) for report in reports), Counter[str]())
    summary = " ".join(f"{report['file']}: {report['summary']}" for report in reports)
    form = " and ".join(dict.fromkeys(report["format"] for report in reports))
    missing = sum(report["times"]["missing"] for report in reports)
    report = {
        "file": "",
        "format": form,
        "rows": len(together),
        "left_out": dict(left_out),
        "summary": summary,
    }
    together.attrs = {READ: report | {"times": {"missing": missing}}}
    return together


class Reading(NamedTuple):
    """The memories of an input, with their places."""

    frame: pd.DataFrame
    form: Format
    documents: list[Document]
    """Files from which the memories were read."""
    places: list[Position]
    """Position of each row."""
    is_partial: bool
    """True if the input holds more than was read, which a person should know."""


def read_input(
    source: Input, name: str, *, zone: tzinfo | None = None, now: datetime | None = None
) -> Reading:
    """Read an opened input in the named format, or in the recognised one; ``now`` is as in `Collector`."""
    try:
        with gc_paused():
            return read_documents(source, *_choose(source, name), Collector(zone, now or datetime.now(UTC)))
    except RecursionError:
        raise _too_deep(source.name) from None


def read_documents(source: Input, form: Format, documents: list[Document], rows: Collector) -> Reading:
    """Read the documents of an input that have a format."""
    n_entries = rows.take(form.read(documents), _count_chars(documents))
    _check_count(source, form, documents, n_entries)
    others = [each for each in source.documents if not any(each is one for one in documents)]
    readable = [each.name for each in others if _is_readable(each)]
    frame = rows.frame(form.name, form.note, source, [each.name for each in others], readable)
    is_partial = bool(rows.left_out or rows.n_tags_cut or form.note or readable)
    return Reading(frame, form, documents, rows.places, is_partial)


def _count_chars(documents: list[Document]) -> int:
    """Count the characters of documents; one without text counts so much that its growth is not bounded."""
    texts = [each.original for each in documents if each.original and each.original.table is None]
    return sum(len(each.text) for each in texts) + (len(documents) - len(texts)) * (MAX_BYTES // MAX_RATIO)


def _too_deep(name: str) -> FrameError:
    return FrameError(f"{printable(name)} is nested too deeply to be memories.")


def _is_readable(document: Document) -> bool:
    """Return True for a document that could be read separately."""
    is_refused = any(is_such(document) for is_such, _ in REFUSALS)
    return (
        not is_refused and bool(document.value) and any(form.matches(document) for form in FORMATS.values())
    )


def _choose(source: Input, name: str) -> tuple[Format, list[Document]]:
    """Return the format, and the documents that have it."""
    given = source.documents
    if name != "auto":
        is_free = name in ("markdown", "pasted")
        fit = [
            each
            for each in given
            if FORMATS[name].matches(each) or (is_free and each.form in ("text", "markdown"))
        ]
        if not fit:
            raise FrameError(f"{source.name} is not of the format {name!r}, which is {FORMATS[name].shape}.")
        return FORMATS[name], fit
    fits = {key: [each for each in given if form.matches(each)] for key, form in FORMATS.items()}
    found = [key for key, documents in fits.items() if documents and key not in GENERIC]
    if len(given) > 1 or len(found) > 1:  # a list inside a note or another format does not count
        found = [key for key in found if key != "pasted"]
    if (len(given) > 1 or source.is_folder) and not found:  # plain texts next to notes are notes
        fits["markdown"] = [each for each in given if each.form in ("text", "markdown")]
    if not found:
        _refuse(source)
        found = [key for key in GENERIC if fits[key]]
    elif len(fits["markdown"]) > 1 and found[0] not in _NOTES:  # more than a README
        found.append("markdown")
    if len(found) > 1:
        raise FrameError(
            f"{source.name} fits several formats, {' and '.join(found)}: choose one with format= (--format on the "
            "command line)."
        )
    if not found:
        raise _unknown(source)
    form = FORMATS[found[0]]
    return form, section_files(given) if form.items is section_items else fits[form.name]


_NOTES = ("sections", "mem0-markdown", "download")
"""Formats whose files may be Markdown."""


def _refuse(source: Input) -> None:
    """Refuse documents that are known to hold no memories."""
    for document in source.documents:
        for is_such, reason in REFUSALS:
            if is_such(document):
                raise FrameError(f"{document.name} is not read: {reason}.")


def _unknown(source: Input) -> FrameError:
    """Return the error for an unknown format; it names the keys of the object, or of the first one in a list."""
    if source.documents and all(each.form == "text" and not each.value.strip() for each in source.documents):
        return FrameError(f"{source.name} is empty: check the path, or export it again")
    if not source.documents:
        return FrameError(f"{source.name} holds no file that can be read: check the path, or export it again")
    first = source.documents[0]
    if first.form == "text" and (columns := read_header(first.value)):
        return FrameError(
            f"{source.name} has no column that is known to hold texts ({_list_keys(columns)}): rename the one that "
            "does to `content`."
        )
    value = first.value if first.form in ("json", "lines") else None
    entry = value[0] if isinstance(value, list) and value else value
    if not isinstance(entry, dict) or not entry:
        return FrameError(
            f"{source.name} is of no known format ({', '.join(FORMATS)}): check that it is the exported file. A list "
            "needs lines such as `[2024-05-01] - text`, a table needs a column `content`. To read any lines, choose "
            "the format 'pasted'; to read any text, choose 'markdown' (--format on the command line)."
        )
    advice = (
        " If mem0's Platform generated it from a schema, it is the answer of a language model: list the memories with "
        "POST /v3/memories/ instead."
    )
    return FrameError(
        f"{source.name} is of no known format: its keys are {_list_keys(entry)}. If it is a list of "
        f"memories, rename the key of their text to `content`.{advice if value is entry else ''}"
    )


def _list_keys(keys: Iterable[object]) -> str:
    return ", ".join(printable(str(key))[:40] for key in [*keys][:8])


def _check_count(source: Input, form: Format, documents: list[Document], n_entries: int) -> None:
    found = [number for document in documents if (number := form.read_count(document)) is not None]
    stated = [number for number in found if isinstance(number, int)]
    if len(stated) < len(found):
        raise FrameError(
            f"{source.name} states an invalid number of entries: it was changed. Export it again."
        )
    if stated and n_entries not in (sum(stated), *{*stated}):
        raise FrameError(
            f"{source.name} states {sum(stated):,} entries and holds {n_entries:,}: it was cut off or changed, or is "
            "one page of several. Put the entries of all pages into one list."
        )
