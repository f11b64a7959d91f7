"""Answers to questions that only their owner can answer, as banks and web sites ask them for safety."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memframe.audit.secret.plain_words import is_plain
from memframe.audit.spans import Span

_QUESTION = (
    r"(?:security|secret|challenge|recovery) questions?|sicherheitsfrage|geheimfrage|veiligheidsvraag"
    r"|preguntas? (?:de seguridad|secreta)|question (?:secr[èe]te|de s[ée]curit[ée])"
    r"|domanda (?:di sicurezza|segreta)|pergunta (?:de segurança|secreta)"
)
_REPLY = r"(?:answer|reply|antwort|antwoord|respuesta|r[ée]ponse|risposta|resposta)s?"
_IS = r"(?:\s*[:=]|\s+(?:is|was|ist|es|est|é|è|e'))\s+"
_OF_A_LIFE = (
    r"mother|father|pet\b|school|teacher|street|born|childhood|nickname|best friend|first car|favou?rite"
)

_ASKED = re.compile(
    rf"\b(?:{_QUESTION})(?:[^\n]{{0,120}}?\b{_REPLY}(?:\s+(?:to|for|on|there|zu|a"
    rf"|à)\b[^.:;\n]{{0,60}}?)?{_IS}"
    r"|\)?\s*[:=]\s+[^:\n]{0,80}?(?:\s*(?:->|→|=>|=)\s*|\?\s+)|\)\s*[:=]\s+)",
    re.IGNORECASE,
)
"""From a question of this kind to where its answer begins."""

_TOLD = re.compile(
    rf"\b{_REPLY}\s+(?:to|for|zu|auf|a|à)\s+(?:(?:(?:my|his|her|their|your|the|our|meine?r?|mi|la"
    rf"|ma)\s)?(?:\w+\s){{0,2}}?"
    rf"(?:{_QUESTION})"
    rf"|[\"'“‘«][^\"'”’»\n]{{0,60}}(?:{_OF_A_LIFE})[^\"”»\n]{{0,60}}?[\"'”’»])[^.:;\n]{{0,60}}?{_IS}",
    re.IGNORECASE,
)
"""The same where the answer is spoken of first."""

_ABOUT_LIFE = (
    r"(?:(?:first|childhood|favou?rite|elementary) (?:[a-z]+ )?(?:pet|dog|cat|car|school|teacher|concert|job|street"
    r"|book|team|movie|film|band|friend|nickname|food)|maiden name|best friend (?:in|from|at) school|nickname"
    r"|(?:city|town|street|place) (?:[a-z]+ ){0,5}(?:born|grew up|met|lived)|(?:born|grew up) in"
    r"|place of birth|birthplace|geburtsort|lugar de nacimiento|lieu de naissance|nombre de (?:mi|su) [a-z]+"
    r"|name of (?:my|his|her|their) (?:first )?[a-z]+|lieblings[a-zäöü]+|erste[sr]? (?:haustier|auto|schule)"
    r"|mädchenname|primera? (?:mascota|escuela|coche)"
    r"|apellido de soltera|premi[eè]re? (?:animal|école|voiture)|nom de jeune fille)"
)
_SAFETY = (
    rf"\b(?:{_QUESTION}|security (?:q\b|answers?)|secret answers?|sicherheitsantwort|respuesta (?:de seguridad|secreta)"
    r"|r[ée]ponse (?:de s[ée]curit[ée]|secr[èe]te)|account recovery|bank security"
    r"|for (?:\w+ )?verification"
    r"|to verify (?:me|my|it)|identity check|q: |what (?:is|was) your|answer to the question|answer i gave"
    r"|(?:bank|paypal|site|insurer|portal|they) (?:asks?|uses?|wants?) (?:me )?(?:for )?(?:it|this|that|when|if"
    r"|to verify)\b)"
)
"""What says that somebody is asked so as to be known again."""

_OF_LIFE = re.compile(rf"\b{_ABOUT_LIFE}\b", re.IGNORECASE)
_TOLD_AS = re.compile(
    r"(?:(?:\s?->|[:?=\"”)]|→|\s[-–—])[\s\"”):]{0,3}|(?<=born in)\s|(?<=grew up in)\s|,\s"
    r"|\b(?:is|was|were|are|called|named|answered|set to|put|mis|puse|eingetragen|answer|ist|es|est)\b[\s:]{1,2})"
    r"(?:(?:a|answer|the answer(?: is)?|they answered|antwort|respuesta|réponse)[:\s]\s?)?(?:in |called "
    r"|named |(?:the )?(?=[A-Z]))?",
    re.IGNORECASE,
)
"""What stands between a question about a life and its answer."""

_REACH, _AROUND = 80, 160
"""Characters from a question to its answer; and between what is told of a life and the talk of safety."""

_ANSWER = re.compile(
    r"[\"'“‘«](?P<quoted>[^\"”»\n]{2,60}?)[\"'”’»](?!\w)"
    r"|(?P<name>(?:(?:[Mm]rs?|[Mm]s|[Dd]r|[Ff]rau|[Hh]err|St)\.? )?"
    r"(?:(?:van|von|de|da|del|di|le|la|der) ){0,2}[^\W\d_a-zà-ÿ][\w'’-]*(?: [^\W\d_a-zà-ÿ][\w'’-]*"
    r"| [0-9]+){0,3})"
    r"|(?P<word>[^\W\d_][\w'’-]+|[0-9]+)(?=[.,;)!]|\s*$|\n)"
)

MARKS = rf"(?i){_SAFETY}|{_REPLY} (?:to|for) (?:my|his|her|their|your|the|\W)"
"""A pattern of RE2 that every text with such an answer matches."""


def find_answers(text: str) -> Iterator[Span]:
    """Answers to questions of safety.

    >>> text = "Security question: first pet. The answer is Biscuit"
    >>> [text[span.start : span.end] for span in find_answers(text)]
    ['Biscuit']
    """
    found = [
        Span("security_answer", answer.start(group), answer.end(group), 0.9)
        for pattern in (_ASKED, _TOLD)
        for match in pattern.finditer(text)
        if (answer := _ANSWER.match(text, match.end()))
        and (group := answer.lastgroup)
        and not _describes(answer[group], group)
    ]
    safety = None if found else re.search(_SAFETY, text, re.IGNORECASE)
    yield from _told_of_life(text, safety) if safety else found


def _told_of_life(text: str, safety: re.Match[str]) -> Iterator[Span]:
    """What is told of a life where somebody asks for it to be safe."""
    for life in _OF_LIFE.finditer(text, max(0, safety.start() - _AROUND), safety.end() + _AROUND):
        links = _TOLD_AS.finditer(text, life.end(), life.end() + _REACH)
        for begin in (life.end() + 1, *(link.end() for link in links)):
            answer = _ANSWER.match(text, begin)
            group = answer.lastgroup if answer else None
            if answer and group in ("quoted", "name") and not is_plain(answer[group].split(maxsplit=1)[0]):
                yield Span("security_answer", answer.start(group), answer.end(group), 0.8)
                return


def _describes(answer: str, group: str) -> bool:
    """Whether what follows says something about the answer instead of giving it."""
    return group != "quoted" and is_plain(answer.split(maxsplit=1)[0])
