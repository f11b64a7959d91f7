"""Texts of memories: prefilters, the spans that checks find in them, and masks for evidence.

A check takes tens of microseconds per text, and most texts have nothing to find. They are ruled out by Arrow, whose
regular expressions (RE2) search a whole column in linear time.
"""

from __future__ import annotations

import re
import string
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.findings import Finding, Proposal, Severity, list_findings
from memframe.audit.rules import MANY
from memframe.errors import FrameError
from memframe.fields import NAMES_FIELDS, TEXT_FIELDS, TIME_FIELDS
from memframe.frames import MEMORY_KINDS, FrameBuilder, read_times, replace_surrogates, require_column

Rows = NDArray[np.int64]
"""Rows of a frame, by position."""

Made = TypeVar("Made")
Kind = TypeVar("Kind", bound=np.generic)

FEW = 1_000
"""Up to this many memories, the three text columns are searched as one."""

MAX_CHARACTERS = 100_000
"""Characters of a field that a check reads, so that a long text cannot make an audit take long."""


class Text(NamedTuple):
    """One text of a frame, with its row and field."""

    row: int
    """Position in the frame."""
    field: str
    text: str
    """Text as it is searched: folded."""
    original: str | None = None
    """Text of the frame, if folding has changed it."""


TAGS = "\U000e0000-\U000e007f"
SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Characters that select a variant of a letter or an emoji."""
BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
ZERO_WIDTH = (
    "\xad\u034f\u115f\u1160\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
)
_OF_SCRIPTS = (
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u17b4\u17b5\u180b-\u180d\u180f\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
"""Format characters that some script needs, or that have no meaning yet: not hidden text, but they may split a word."""

_INVISIBLE = TAGS + SELECTORS + BIDI + ZERO_WIDTH + _OF_SCRIPTS
"""Ranges of characters without a width; a word with one of them would not be found."""

_INVISIBLE_CHARACTERS = re.compile(f"[{_INVISIBLE}]")

_COMPATIBLE = ((0xB2, 0xB9), (0x2070, 0x209C), (0x2100, 0x214F), (0x24B6, 0x24EA), (0xFE50, 0xFE6B), (0xFF01, 0xFF5E),
               (0x1D400, 0x1D7FF))  # fmt: skip
"""Ranges with forms of letters, digits and signs of ASCII: raised, circled, wide, mathematical ones."""

_WRITTEN = {*string.ascii_letters, *string.digits, *"@._+-"}
"""Characters of secrets and addresses, which are folded; wide commas and brackets are not, because they end a value."""

_FOREIGN_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xE50)
"""Zeros of Arabic, Persian, Hindi, Bengali and Thai digits."""

_FOLDED = {
    code: folded
    for first, last in _COMPATIBLE
    for code in range(first, last + 1)
    if (folded := unicodedata.normalize("NFKC", chr(code))) in _WRITTEN
} | {zero + digit: str(digit) for zero in _FOREIGN_ZEROS for digit in range(10)}

_FOLDABLE = "[" + _INVISIBLE + "".join(map(chr, _FOLDED)) + "]"
"""Pattern of RE2 for the texts that folding changes."""


class FoldedText(NamedTuple):
    """Text with forms of ASCII characters replaced by these, and without invisible characters."""

    text: str
    original: str
    offsets: Sequence[int]
    """Place of each character in the original."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original for a span of the folded text.

        >>> folded = fold("pass\u200bword: \uff14\uff10\uff17\uff11")
        >>> folded.text, folded.span(0, 8), folded.span(10, 14)
        ('password: 4071', (0, 9), (11, 15))
        """
        if start >= end:
            place = self.offsets[start] if start < len(self.offsets) else len(self.original)
            return place, place
        return self.offsets[start], self.offsets[end - 1] + 1


def fold(text: str) -> FoldedText:
    """Fold a text, so that a search finds secrets and addresses in any form of their characters.

    >>> fold("ada\uff20example\u00ad.org").text
    'ada@example.org'
    """
    if text.isascii():
        return FoldedText(text, text, range(len(text)))
    folded = text.translate(_FOLDED)
    if not _INVISIBLE_CHARACTERS.search(folded):
        return FoldedText(folded, text, range(len(text)))
    offsets = [place for place, letter in enumerate(folded) if not _INVISIBLE_CHARACTERS.match(letter)]
    return FoldedText(_INVISIBLE_CHARACTERS.sub("", folded), text, offsets)


class MemoryTexts:
    """Texts of memories, prepared once for all checks.

    Each check takes these or a frame, and begins with `MemoryTexts.of`. An audit passes the same object to all checks,
    so that each column is converted to Arrow text, cut and folded once, and contents are split into words once. Results
    are kept as long as the object exists; nothing in it is ever changed.

    >>> texts = MemoryTexts.of(pd.DataFrame({"id": ["m1", "m2"], "content": ["Likes tea", "Likes jazz"]}))
    >>> MemoryTexts.of(texts) is texts, texts.take(np.array([1])).column("content").to_pylist()
    (True, ['Likes jazz'])
    """

    def __init__(
        self, memories: pd.DataFrame, *, source: MemoryTexts | None = None, rows: Rows | None = None
    ) -> None:
        self.memories = memories
        self.source = source
        """The texts that these were taken from."""
        self.rows = rows
        """Rows of the source; None for all of them."""
        self._kept: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.memories)

    @classmethod
    def of(cls, memories: Memories) -> MemoryTexts:
        """Return the texts of a frame; texts are returned as they are."""
        return memories if isinstance(memories, MemoryTexts) else cls(memories)

    @cached_property
    def whole(self) -> MemoryTexts:
        """The same texts, with all columns of memories in their frame."""
        whole = with_all_columns(self.memories)
        return self if whole is self.memories else MemoryTexts(whole, source=self)

    @cached_property
    def ids(self) -> list[Any]:
        """Id of each row."""
        return self.memories["id"].tolist()

    def take(self, rows: Rows) -> MemoryTexts:
        """Return the texts of some rows, which reuse the prepared columns."""
        return MemoryTexts(self.memories.iloc[rows], source=self, rows=rows)

    def without_contents(self, emptied: NDArray[np.bool_]) -> MemoryTexts:
        """Return the texts without the contents of some rows."""
        memories = self.memories
        return MemoryTexts(memories.assign(content=memories["content"].mask(emptied)))

    def column(self, name: str) -> pa.Array:
        """Return a column as Arrow text, with null for missing cells."""
        return self._keep(("column", name), lambda: self._read_column(name))

    def cut(self, name: str) -> pa.Array:
        """Return a column with each text cut to the characters that a check reads."""
        return self._keep(("cut", name), lambda: first_characters(self.column(name)))

    def folded(self, name: str) -> FoldedColumn:
        """Return a cut column with each text folded."""
        return self._keep(("folded", name), lambda: FoldedColumn.of(self.cut(name)))

    def search(self, fields: Iterable[str] = TEXT_FIELDS, *, folded: bool = True) -> TextSearch:
        """Return a search in those of some fields that the frame has."""
        names = tuple(name for name in fields if name in self.memories.columns)
        return self._keep(("search", names, folded), lambda: TextSearch(self, names, folded=folded))

    def once(self, make: Callable[[MemoryTexts], Made]) -> Made:
        """Return the result of a function of these texts, which is computed once."""
        return self._keep(make, lambda: make(self))

    def by_row(self, find: Callable[[MemoryTexts], NDArray[Kind]]) -> NDArray[Kind]:
        """Return the result of a function that computes each row separately; taken rows reuse that of their source."""
        if self.source is None:
            return self.once(find)
        found = self.source.by_row(find)
        return found if self.rows is None else found[self.rows]

    def _read_column(self, name: str) -> pa.Array:
        if self.source is None or name not in self.source.memories.columns:
            return text_column(self.memories, name)
        column = self.source.column(name)
        return column if self.rows is None else column.take(pa.array(self.rows))

    def _keep(self, key: Hashable, make: Callable[[], Made]) -> Made:
        if key not in self._kept:
            self._kept[key] = make()
        made: Made = self._kept[key]
        return made


Memories = pd.DataFrame | MemoryTexts
"""Memories as the argument of a check: a frame, or its texts."""


def text_column(memories: pd.DataFrame, name: str) -> pa.Array:
    """Convert a column to Arrow text, with nulls; lone surrogates become U+FFFD, so that offsets stay the same."""
    column = require_column(memories, name)
    if column.dtype == object and column.map(lambda cell: isinstance(cell, bytes)).any():
        raise FrameError(
            f"column {name!r} holds bytes, not text: decode them first, for example by .str.decode('utf-8')"
        )
    try:
        return _arrow(column)
    except UnicodeEncodeError:
        return _arrow(pd.Series(replace_surrogates({name: column.tolist()})[name], dtype=object))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FrameError(
            f"column {name!r} does not contain text; pass memories as load_memories or load_archive returns them"
        ) from error


def first_characters(texts: pa.Array) -> pa.Array:
    """Cut the texts of a column to the characters that a check reads; offsets do not change.

    >>> len(first_characters(pa.array(["a" * 300_000]))[0].as_py())
    100000
    """
    if not (pc.max(pc.binary_length(texts)).as_py() or 0) > MAX_CHARACTERS:  # bytes are at least as many
        return texts
    return pc.utf8_slice_codeunits(texts, 0, MAX_CHARACTERS)


def are_too_long(texts: MemoryTexts, name: str = "content") -> NDArray[np.bool_]:
    """Return True for rows whose field is longer than a check reads."""
    if texts.cut(name) is texts.column(name):
        return np.zeros(len(texts), bool)
    lengths = pc.fill_null(pc.utf8_length(texts.column(name)), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False) > MAX_CHARACTERS, bool)


def without_long_contents(texts: MemoryTexts) -> MemoryTexts:
    """Return the texts without contents that are too long to be read as a whole.

    Such a content is never a copy or junk, because a decision by its beginning alone could lose the rest.
    """
    too_long = are_too_long(texts)
    return texts.without_contents(too_long) if too_long.any() else texts


class FoldedColumn(NamedTuple):
    """Folded texts of a column."""

    texts: pa.Array
    originals: Mapping[int, str]
    """Texts of the frame that folding has changed, by row."""

    @classmethod
    def of(cls, texts: pa.Array) -> FoldedColumn:
        """Fold the texts of a column that folding changes."""
        if not len(texts) or pc.all(pc.string_is_ascii(texts)).as_py() is not False:
            return cls(texts, {})
        are_foldable = pc.fill_null(pc.match_substring_regex(texts, _FOLDABLE), False)
        rows = pc.indices_nonzero(are_foldable)
        if not len(rows):
            return cls(texts, {})
        originals = texts.take(rows).to_pylist()
        folded = pa.array([fold(text).text for text in originals], texts.type)
        return cls(
            pc.replace_with_mask(texts, are_foldable, folded),
            dict(zip(rows.to_pylist(), originals, strict=True)),
        )


class TextSearch:
    """Search texts of memories for patterns.

    Only the first `MAX_CHARACTERS` of a text are searched and returned, and their folded form, unless `folded` is
    false.

    >>> texts = MemoryTexts(pd.DataFrame({"title": ["Tea", None], "content": ["likes it green", "the PIN is 4711"]}))
    >>> list(texts.search().find(r"[0-9]{4}"))
    [Text(row=1, field='content', text='the PIN is 4711', original=None)]
    """

    def __init__(self, texts: MemoryTexts, fields: Sequence[str], *, folded: bool) -> None:
        columns = [texts.folded(name) if folded else FoldedColumn(texts.cut(name), {}) for name in fields]
        self._n_rows = len(texts)
        self._originals = {name: column.originals for name, column in zip(fields, columns, strict=True)}
        self._parts = [([name], column.texts) for name, column in zip(fields, columns, strict=True)]
        if fields and self._n_rows <= FEW:  # compiling a pattern takes longer than the search
            self._parts = [([*fields], pa.concat_arrays([column.texts for column in columns]))]

    def find(self, pattern: str) -> Iterator[Text]:
        """Yield the texts that a pattern of RE2 matches."""
        for names, texts in self._parts:
            yield from self._list(names, texts, pc.indices_nonzero(pc.match_substring_regex(texts, pattern)))

    def narrow(self, prefilter: str) -> Iterator[Text]:
        """Yield the texts that a prefilter matches; of few texts all, as compiling it takes longer than a check."""
        if self._n_rows >= MANY:
            yield from self.find(prefilter)
            return
        for names, texts in self._parts:
            yield from self._list(names, texts, pc.indices_nonzero(texts.is_valid()))

    def _list(self, names: Sequence[str], texts: pa.Array, places: pa.Array) -> Iterator[Text]:
        if not len(places):
            return
        for place, text in zip(places.to_pylist(), texts.take(places).to_pylist(), strict=True):
            which, row = divmod(place, self._n_rows)
            yield Text(row, names[which], text, self._originals[names[which]].get(row))


def _arrow(column: pd.Series[Any]) -> pa.Array:
    if not column.notna().any():
        return pa.nulls(len(column), pa.large_string())  # whatever the dtype of nothing is
    array = pa.array(column, type=pa.large_string(), from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array


_SHOWN = ((24, 4), (12, 2))
"""Fewest characters of a text, and how many of them are shown; a shorter text could be guessed from any."""


def mask_text(text: str) -> str:
    """Mask a text: show the first characters and the length of a long text, and only the length of a short one.

    >>> mask_text("sk-live-0123456789abcdefghijklm"), mask_text("4821")
    ('sk-l… (31 characters)', '(4 characters)')
    """
    n_shown = next((n_shown for at_least, n_shown in _SHOWN if len(text) >= at_least), 0)
    shown = "".join(letter if letter.isprintable() else "·" for letter in text[:n_shown])
    return f"{shown}… ({len(text):,} characters)" if shown else f"({len(text):,} characters)"


MARK = re.compile(r"\[redacted: ([a-z ]{1,30}?)(?: (\d+))?\]")
"""Mark of a redaction: its kind, and its number if there are several."""


def redaction_mark(kind: str) -> str:
    """Return the mark that replaces a redacted secret of a kind.

    >>> redaction_mark("recovery_code")
    '[redacted: recovery code]'
    """
    return f"[redacted: {kind.replace('_', ' ')}]"


def find_marks(text: str) -> Iterator[tuple[str, int]]:
    """Find the marks of redactions, each with its kind and number; 1 for a mark without a number.

    >>> list(find_marks("[redacted: pin], or [redacted: recovery code 2]"))
    [('pin', 1), ('recovery_code', 2)]
    """
    for found in MARK.finditer(text):
        yield found[1].replace(" ", "_"), int(found[2] or 1)


class Span(NamedTuple):
    """Span of a text, with exclusive `end`, and its kind."""

    kind: str
    start: int
    end: int
    score: float
    label: str = ""
    """Words before the mask in the evidence: the maker of a token, the country of a number."""
    basis: str = ""
    """Basis of the finding, if its action depends on it."""


class Rating(NamedTuple):
    """Severity of one kind of span, and the action proposed for it."""

    severity: Severity
    action: Proposal


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Keep of overlapping spans the one with the highest score, then the longest; sorted by their start.

    >>> kept = without_overlaps([Span("phone", 4, 16, 0.5), Span("card", 0, 16, 0.9), Span("ip", 20, 27, 0.5)])
    >>> [(span.kind, span.start, span.end) for span in kept]
    [('card', 0, 16), ('ip', 20, 27)]
    """
    kept: list[Span] = []  # sorted and disjoint, so that only the two neighbours can overlap
    for span in sorted(spans, key=lambda span: (-span.score, span.start - span.end, span.start)):
        place = bisect_left(kept, span.start, key=attrgetter("start"))
        before, after = kept[max(0, place - 1) : place], kept[place : place + 1]
        if all(other.end <= span.start for other in before) and all(
            span.end <= other.start for other in after
        ):
            kept.insert(place, span)
    return kept


class Pass(NamedTuple):
    """Function that finds spans in a text, with its prefilter."""

    marks: str
    """Prefilter: a pattern of RE2 that every text with such spans matches."""
    find: Callable[[str], Iterable[Span]]


def spans_found(
    texts: MemoryTexts, passes: Iterable[Pass], *, also: Iterable[tuple[Text, Span]] = ()
) -> list[tuple[Text, Span]]:
    """Find the spans of several passes in texts, without overlaps, sorted by row, field and start.

    Spans that overlap the mark of a redaction are left out.
    """
    found: defaultdict[Text, list[Span]] = defaultdict(list)
    for text, span in also:
        found[text].append(span)
    search = texts.search()
    for marks, find in passes:
        spans_in = cache(lambda text, find=find: [*find(text)])  # equal texts are searched once
        for text in search.narrow(marks):
            if spans := spans_in(text.text):
                found[text].extend(spans)
    return [
        (text, span)
        for text in sorted(found)
        for span in without_overlaps(found[text])
        if not any(mark.start() < span.end and span.start < mark.end() for mark in MARK.finditer(text.text))
    ]


def span_findings(
    texts: MemoryTexts,
    found: Sequence[tuple[Text, Span]],
    *,
    check: str,
    rate: Callable[[Span], Rating],
) -> pd.DataFrame:
    """Make the findings of one check, one for each span, with a mask as evidence.

    Offsets are those in the frame, also if folding has removed characters. A finding in a tag has none, because the
    field holds several texts.

    Parameters
    ----------
    texts : MemoryTexts
    found : sequence of (Text, Span)
        Spans in these texts.
    check : str
    rate : callable
        Function that returns the rating of a span.
    """
    findings = []
    for text, span in found:
        rating = rate(span)
        place: tuple[int | None, int | None] = span.start, span.end
        if text.field == "tags":
            place = None, None
        elif text.original is not None:
            place = fold(text.original).span(span.start, span.end)
        findings.append(
            Finding(
                check=check,
                kind=span.kind,
                severity=rating.severity,
                id=texts.ids[text.row],
                field=text.field,
                start=place[0],
                end=place[1],
                score=span.score,
                evidence=f"{span.label}{': ' * bool(span.label)}{mask_text(text.text[span.start : span.end])}",
                action=rating.action,
            )
        )
    return list_findings(findings)


# ---- columns


@cache
def _no_memories() -> pd.DataFrame:
    return FrameBuilder(MEMORY_KINDS).frame()


def with_all_columns(memories: pd.DataFrame) -> pd.DataFrame:
    """Add the missing columns of memories to a frame, and read times that are text.

    >>> whole = with_all_columns(pd.DataFrame({"id": ["m1"], "content": ["Likes tea"]}))
    >>> whole.columns.symmetric_difference(list(MEMORY_KINDS)).tolist(), whole["tags"].item()
    ([], ())
    """
    absent: dict[str, Any] = {}
    for name, dtype in _no_memories().dtypes.items():
        if name in memories.columns:
            continue
        if name in NAMES_FIELDS:
            absent[str(name)] = pd.Series([()] * len(memories), memories.index, object)
        else:
            absent[str(name)] = pd.array([None] * len(memories), dtype=dtype)
    text = {
        name: pd.Series(pd.DatetimeIndex(read_times(memories, name), tz="UTC"), memories.index)
        for name in TIME_FIELDS
        if name in memories.columns and not isinstance(memories[name].dtype, pd.DatetimeTZDtype)
    }
    return memories.assign(**absent, **text) if absent or text else memories
