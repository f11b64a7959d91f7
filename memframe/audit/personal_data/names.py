"""Names and addresses: what only a language model can tell, through an analyzer that the user has.

memframe brings no language model. An ``AnalyzerEngine`` of `presidio-analyzer` with a model of your own does::

    from functools import partial
    from presidio_analyzer import AnalyzerEngine

    find = partial(find_personal_data, names=presidio_names(AnalyzerEngine()))
    audit = memframe.audit_memories(memories, checks={"personal_data": find})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from memframe.audit.text import Span

NameFinder = Callable[[str], Iterable[Span]]
"""Text to spans of the kinds ``name`` and ``address``."""

_KINDS = {"PERSON": "name", "LOCATION": "address"}


class Analyzer(Protocol):
    """What is needed of presidio's ``AnalyzerEngine``."""

    def analyze(self, *, text: str, language: str, entities: list[str]) -> list[Any]: ...


def presidio_names(analyzer: Analyzer, *, language: str = "en", min_score: float = 0.5) -> NameFinder:
    """An analyzer of presidio as a finder of names and addresses.

    Parameters
    ----------
    analyzer : presidio_analyzer.AnalyzerEngine
        With a model for the language.
    language : str
        As the analyzer calls it.
    min_score : float
        Least certainty, from 0 to 1.
    """

    def find(text: str) -> Iterator[Span]:
        for found in analyzer.analyze(text=text, language=language, entities=[*_KINDS]):
            if found.score >= min_score:
                yield Span(_KINDS[found.entity_type], found.start, found.end, float(found.score))

    return find
