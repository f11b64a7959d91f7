"""Spans: stretches of a text that a check has found, and the findings that become of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import pandas as pd

from memframe.audit.findings import Proposal, Severity, findings_frame
from memframe.audit.masks import masked, redacted_places, with_stand_ins
from memframe.audit.texts import Text, texts_with


class Span(NamedTuple):
    """A stretch of a text, from `start` up to and without `end`, and what it is."""

    kind: str
    start: int
    end: int
    score: float
    label: str = ""
    """What stands before the mask in the evidence: the maker of a token, the country of a number."""


class Verdict(NamedTuple):
    """What one kind of span means for the memory that it stands in."""

    severity: Severity
    action: Proposal


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Of spans that share characters the surest, and of equally sure ones the longest; in order of place.

    >>> without_overlaps([Span("phone", 4, 16, 0.5), Span("card", 0, 16, 0.9), Span("ip", 20, 27, 0.5)])
    [Span(kind='card', start=0, end=16, score=0.9, label=''), Span(kind='ip', start=20, end=27, score=0.5, label='')]
    """
    kept: list[Span] = []  # by place, and disjoint: only two neighbours can be in the way
    for span in sorted(spans, key=lambda span: (-span.score, span.start - span.end, span.start)):
        place = bisect_left(kept, span.start, key=attrgetter("start"))
        before, after = kept[max(0, place - 1) : place], kept[place : place + 1]
        if all(other.end <= span.start for other in before) and all(
            span.end <= other.start for other in after
        ):
            kept.insert(place, span)
    return kept


class Pass(NamedTuple):
    """One way of looking at texts."""

    marks: str
    """A pattern of RE2 that every text with such spans matches: the others are not looked at."""
    find: Callable[[str], Iterable[Span]]
    sieve: str = ""
    """Another one, for many texts."""


def spans_found(
    memories: pd.DataFrame, passes: Iterable[Pass], *, also: Iterable[tuple[Text, Span]] = ()
) -> list[tuple[Text, Span]]:
    """What several passes find in the texts of a frame, without overlaps, by row, field and place.

    A mark that a redaction has left is read as the secret that it stands for, and is none.
    """
    found: defaultdict[Text, list[Span]] = defaultdict(list)
    for text, span in also:
        found[text].append(span)
    for marks, find, sieve in passes:
        for text in texts_with(memories, marks, *filter(None, [sieve])):
            found[text].extend(find(with_stand_ins(text.text)))
    return [
        (text, span)
        for text in sorted(found)
        for span in without_overlaps(_outside(redacted_places(text.text), found[text]))
    ]


def _outside(places: Sequence[tuple[int, int]], spans: Iterable[Span]) -> Iterator[Span]:
    """What of spans lies before or behind the marks of what was redacted before."""
    for span in spans:
        rest = span
        for start, end in places:
            if rest.start < end and start < rest.end:
                behind = rest._replace(start=end)
                rest = behind if start <= rest.start else rest._replace(end=start)
        if rest.start < rest.end:
            yield rest


def span_findings(
    found: Sequence[tuple[Text, Span]], *, check: str, ids: Sequence[str], verdicts: Mapping[str, Verdict]
) -> pd.DataFrame:
    """Findings of one check, one a span, with evidence that shows no more than a mask.

    Parameters
    ----------
    found : sequence of (Text, Span)
    check : str
    ids : sequence of str
        Of the memories, by row.
    verdicts : mapping of str to Verdict
        For each kind of span.
    """
    return findings_frame(
        check=check,
        kind=[span.kind for _, span in found],
        severity=[verdicts[span.kind].severity for _, span in found],
        id=[ids[text.row] for text, _ in found],
        field=[text.field for text, _ in found],
        start=[span.start for _, span in found],
        end=[span.end for _, span in found],
        score=[span.score for _, span in found],
        evidence=[_evidence(text.text, span) for text, span in found],
        action=[verdicts[span.kind].action for _, span in found],
    )


def _evidence(text: str, span: Span) -> str:
    shown = masked(text[span.start : span.end])
    return f"{span.label}: {shown}" if span.label else shown
