"""Answers to questions that only their owner can answer, as banks and web sites ask them for safety.

Two ways lead to an answer. A question of safety is named and its answer follows, or the answer is named and what it is
to: this is the surer way. Where that finds nothing, something must say that somebody is asked so as to be known again;
then what stands behind a question about a life ("first pet: Biscuit") is the answer, if it is a name or quoted. What
describes an answer ("the answer is easy to guess") is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memframe.audit.language.vocabulary import one_of
from memframe.audit.secret.plain_words import is_plain
from memframe.audit.text import Span

_QUESTION = one_of(
    english="(?:security|secret|challenge|recovery) questions?",
    germanic="sicherheitsfrage, geheimfrage, veiligheidsvraag",
    spanish="preguntas? (?:de seguridad|secreta)",
    french="question (?:secr[èe]te|de s[ée]curit[ée])",
    italian="domanda (?:di sicurezza|segreta)",
    portuguese="pergunta (?:de segurança|secreta)",
)
_REPLY = one_of("answer, reply, antwort, antwoord, respuesta, r[ée]ponse, risposta, resposta") + "s?"
_IS = r"(?:\s*[:=]|\s+(?:is|was|ist|es|est|é|è|e'))\s+"

_ASKED = re.compile(
    rf"""\b{_QUESTION.replace(" ", "[ ]")}
    (?:[^\n]{{0,120}}?\b{_REPLY}                        # "the answer to that is ..."
        (?:\s+(?:to|for|on|there|zu|a|à)\b[^.:;\n]{{0,60}}?)?{_IS}
    |\)?\s*[:=]\s+[^:\n]{{0,80}}?                       # ": first pet? ...", ": first pet -> ..."
        (?:\s*(?:->|→|=>|=)\s*|\?\s+)
    |[ ]?["“„'«][^"”»'\n]{{3,60}}["”“»'][ ]?[:=,–-][ ]+  # '"first pet": ...'
    |\)\s*[:=]\s+)                                      # "(security question): ..."
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""From a question of this kind to where its answer begins."""

_MY = one_of("my, his, her, their, your, the, our, meine?r?, mi, la, ma")
_OF_A_LIFE = one_of(
    family=r"mother, father, pet\b, born, childhood",
    friends="nickname, best friend, school, teacher",
    things="street, first car, favou?rite",
)
_TOLD = re.compile(
    rf"""\b{_REPLY}\s+(?:to|for|zu|auf|a|à)\s+
    (?:(?:{_MY}\s)?(?:\w+\s){{0,2}}?                   # "the answer to my secret question is ..."
        {_QUESTION.replace(" ", "[ ]")}
    |[\"'“‘«][^\"'”’»\n]{{0,60}}                       # "the answer to 'my first car' is ..."
        {_OF_A_LIFE.replace(" ", "[ ]")}[^\"”»\n]{{0,60}}?[\"'”’»])
    [^.:;\n]{{0,60}}?{_IS}""",
    re.IGNORECASE | re.VERBOSE,
)
"""The same where the answer is spoken of first."""

_FIRST = one_of(
    animals="pet, dog, cat",
    places="school, street",
    people="teacher, friend, nickname",
    things="car, concert, job, book, team, movie, film, band, food",
)
_ABOUT_LIFE = one_of(
    firsts=rf"(?:first|childhood|favou?rite|elementary) (?:[a-z]+ )?{_FIRST}",
    names="maiden name, best friend (?:in|from|at) school, nickname, name of (?:my|his|her|their) (?:first )?[a-z]+",
    places="(?:city|town|street|place) (?:[a-z]+ ){0,5}(?:born|grew up|met|lived), (?:born|grew up) in",
    birth="place of birth, birthplace",
    german="geburtsort, lieblings[a-zäöü]+, erste[sr]? (?:haustier|auto|schule), mädchenname",
    spanish="""lugar de nacimiento, nombre de (?:mi|su) [a-z]+, primera? (?:mascota|escuela|coche),
    apellido de soltera""",
    french="lieu de naissance, premi[eè]re? (?:animal|école|voiture), nom de jeune fille",
)
_OF_LIFE = re.compile(rf"\b{_ABOUT_LIFE}\b", re.IGNORECASE)
"""What such questions are about."""

_ASKER = one_of("bank, paypal, site, insurer, portal, they")
_SAFETY = r"\b" + one_of(
    questions=rf"{_QUESTION}, q: , what (?:is|was) your",
    answers=r"security (?:q\b|answers?), secret answers?, answer to the question, answer i gave",
    german="sicherheitsantwort",
    spanish="respuesta (?:de seguridad|secreta)",
    french="r[ée]ponse (?:de s[ée]curit[ée]|secr[èe]te)",
    purposes=r"account recovery, bank security, for (?:\w+ )?verification, to verify (?:me|my|it), identity check",
    askers=rf"{_ASKER} (?:asks?|uses?|wants?) (?:me )?(?:for )?(?:it|this|that|when|if|to verify)\b",
)
"""What says that somebody is asked so as to be known again."""

_SIGN_BEFORE = r"(?:\s?->|[:?=\"”)]|→|\s[-–—])[\s\"”):]{0,3}|(?<=born in)\s|(?<=grew up in)\s|,\s"
_VERB_BEFORE = one_of(
    english="is, was, were, are, called, named, answered, set to, put",
    others="mis, puse, eingetragen, answer, ist, es, est",
)
_LEAD_IN = one_of("a, answer, the answer(?: is)?, they answered, antwort, respuesta, réponse")
_TOLD_AS = re.compile(
    rf"(?:{_SIGN_BEFORE}|\b{_VERB_BEFORE}\b[\s:]{{1,2}})"
    rf"(?:{_LEAD_IN}[:\s]\s?)?(?:in |called |named |(?:the )?(?=[A-Z]))?",
    re.IGNORECASE,
)
"""What stands between a question about a life and its answer."""

_REACH, _AROUND = 80, 160
"""Characters from a question to its answer; and between what is told of a life and the talk of safety."""

_TITLE = r"(?:(?:[Mm]rs?|[Mm]s|[Dd]r|[Ff]rau|[Hh]err|St)\.?[ ])?"
_OF = r"(?:(?:van|von|de|da|del|di|le|la|der)[ ]){0,2}"
_CAPITALISED = r"[^\W\d_a-zà-ÿ][\w'’-]*"
_ANSWER = re.compile(
    rf"""[\"'“‘«](?P<quoted>[^\"”»\n]{{2,60}}?)[\"'”’»](?!\w)
    |(?P<name>{_TITLE}{_OF}{_CAPITALISED}(?:[ ]{_CAPITALISED}|[ ][0-9]+){{0,3}})
    |(?P<word>[^\W\d_][\w'’-]+|[0-9]+)(?=[.,;)!]|\s*$|\n)""",
    re.VERBOSE,
)

_SURE, _LIKELY = 0.9, 0.8
"""Scores of an answer that is called one, and of one that is told of a life."""

MARKS = rf"(?i){_SAFETY}|{_REPLY} (?:to|for) (?:my|his|her|their|your|the|\W)"
"""A pattern of RE2 that every text with such an answer matches."""


def find_answers(text: str) -> Iterator[Span]:
    """Answers to questions of safety.

    >>> text = "Security question: first pet. The answer is Biscuit"
    >>> [text[span.start : span.end] for span in find_answers(text)]
    ['Biscuit']
    """
    found = [
        Span("security_answer", answer.start(group), answer.end(group), _SURE)
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
                yield Span("security_answer", answer.start(group), answer.end(group), _LIKELY)
                return


def _describes(answer: str, group: str) -> bool:
    """Whether what follows says something about the answer instead of giving it."""
    return group != "quoted" and is_plain(answer.split(maxsplit=1)[0])
