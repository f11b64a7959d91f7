"""Recitals: that something was remembered, saved or looked up, told in the words of assistants and memory tools.

Told by the share of such words, as the reports of machines are: where nearly nothing else is said, nothing is lost.
Where an assistant recites to its user what it knows, the fact may be told nowhere else, and is left for review.
"""

from __future__ import annotations

import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import one_of, read_vocabulary

_WORDS = read_vocabulary(__package__, "machine_words.txt")
_RECITAL, _KNOWN = _WORDS["recital"], _WORDS["recital"] | _WORDS["recited"]
_ASKED_FOR = re.compile(r"\b(?:for|about|query|matching)[: ]{1,2}[\"“'‘][^\"”'’\n]{1,60}[\"”'’]")
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W\d_]+)*")
_TOOL = one_of("assistant, ai, agent, bot, model, system")
_RECALLS = r"re(?:call|member|trieve|peat|state)(?:s|ed)?\b"
_SPEAKS_OF_MEMORY = one_of("answer, repli, respond, greet, mention, summari[sz], list, stat, not") + (
    r"\w+\b[^.\n]{0,60}\b(?:memor(?:y|ies)|stored|remembers?|knew|known)\b"
)
_KEPT = one_of("memor(?:y|ies), notes, conversations, context, chats")
_EARLIER = one_of("earlier, before, previously")
_TO_USER = re.compile(
    r"\W{0,4}"
    + one_of(
        tool=rf"(?:the )?{_TOOL} (?:has |had |was |then |also |again )?(?:{_RECALLS}|{_SPEAKS_OF_MEMORY})",
        source=rf"""(?:as|from what|based on what|according to what|like) (?:i|you)(?:['’]ve| have)?
        (?:remember|recall|know|told|mentioned|said|shared),
        (?:as per|per|according to|based on|from) (?:\w+ )?(?:\w+ )?{_KEPT}\b""",
        i_know=r"i (?:can )?(?:remember|recall|know) that you\b, here(?:['’]s| is) what i (?:know|remember)\b",
        you_said=rf"""you(?:['’]ve| have)? (?:mentioned|told me|said)(?: {_EARLIER})? that you\b,
        you (?:mentioned|said|told me) {_EARLIER} that\b""",
        headings=r"from memory\b, recalled\b, (?:the |this )?memory [\"“#], (?:archival|core|recall)_memory_\w+",
        about=r"(?:the )?(?:user['’]s )?memor(?:y|ies) (?:of|about|for) the user\b",
        german=r"laut meinen? (?:notizen|erinnerung\w*), ich habe mir gemerkt, die erinnerung wurde",
        spanish="he guardado, memoria actualizada, seg[uú]n mis notas",
        french="j['’]ai (?:bien )?(?:noté|enregistré), m[ée]moire mise",
    ),
    re.IGNORECASE,
)
"""How a tool or an assistant begins that tells what it knows."""

_JSON = re.compile(
    r"\W{0,3}\{(?=.{0,400}\"(?:event|old_memory|score|results)\"\s*:).{0,80}\"\w+\"\s*:.*\}\W{0,3}",
    re.DOTALL,
)
"""What a memory tool answers."""

_LONGEST = 300
"""Characters, beyond which more is told than that."""

_SCORE = 0.9

MARKS = "(?i)" + one_of(
    remembering="memor, remember, recall, retriev",
    saving=r"\bstored\b, \bsaved?\b, \bnoted\b, \bfacts?\b",
    telling="you(?:['’]ve| have)? (?:mentioned|told), here(?:['’]s| is) what, previous (?:conv|chat|disc)",
    german="gemerkt, notizen, erinnerung",
    romance="guardado, noté, enregistré, mémoire, recuerdos?, souvenirs?",
)
"""A pattern of RE2 that every such text matches."""


def judge_recital(text: str) -> Sign | None:
    """What memory tools and assistants say of remembering.

    >>> judge_recital("The assistant confirmed that it will remember this.").kind
    'feedback_loop'
    >>> judge_recital("User remembers phone numbers well but no faces.")
    """
    if len(text) > _LONGEST:
        return None
    if is_nothing_else(text):
        return Sign("feedback_loop", _SCORE, f"says only that something was remembered: {quoted(text)}")
    return None


def is_nothing_else(text: str) -> bool:
    """Whether a text holds only words of remembering."""
    words = [word.lower().replace("’", "'") for word in _TOKEN.findall(_ASKED_FOR.sub("", text))]
    return not _RECITAL.isdisjoint(words) and all(word in _KNOWN or word.isdecimal() for word in words)


def recites(text: str) -> bool:
    """Whether an assistant or a memory tool tells somebody what it knows.

    >>> recites("You mentioned earlier that you like hiking."), recites("You mentioned earlier times")
    (True, False)
    """
    is_told = len(text) <= _LONGEST and bool(_TO_USER.match(text) or _JSON.fullmatch(text))
    return is_told and not is_nothing_else(text)
