"""Recitals: that something was remembered, saved or looked up, told in the words of assistants and memory tools.

Told by the share of such words, as the reports of machines are: where nearly nothing else is said, nothing is lost.
Where an assistant recites to its user what it knows, the fact may be told nowhere else, and is left for review.
"""

from __future__ import annotations

import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.vocabulary import read_vocabulary

_WORDS = read_vocabulary(__package__, "machine_words.txt")
_RECITAL, _KNOWN = _WORDS["recital"], _WORDS["recital"] | _WORDS["recited"]
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W\d_]+)*")
_TOOL = r"(?:assistant|ai|agent|bot|model|system)"
_TO_USER = re.compile(
    r"\W{0,4}(?:"
    rf"(?:the )?{_TOOL} (?:has |had |was |then |also |again )?(?:re(?:call|member|trieve|peat|state)(?:s"
    rf"|ed)?\b|(?:answer|repli|respond|greet|mention"
    rf"|summari[sz]|list|stat|not)\w+\b[^.\n]{{0,60}}\b(?:memor(?:y|ies)|stored|remembers?|knew|known)\b)"
    r"|(?:as|from what|based on what|according to what|like) (?:i|you)(?:['’]ve| have)? (?:remember|recall"
    r"|know|told|mentioned"
    r"|said|shared)"
    r"|(?:i (?:can )?(?:remember|recall|know)|you(?:['’]ve| have)? (?:mentioned|told me|said)(?: (?:earlier"
    r"|before|previously))?) that you\b"
    r"|you (?:mentioned|said|told me) (?:earlier|before|previously) that\b"
    r"|here(?:['’]s| is) what i (?:know|remember)\b|from memory\b|recalled\b|(?:the |this )?memory [\"“#]"
    r"|(?:as per|per|according to|based on|from) (?:\w+ )?(?:\w+ )?(?:memor(?:y|ies)|notes|conversations"
    r"|context|chats)\b"
    r"|laut meinen? (?:notizen|erinnerung\w*)|ich habe mir gemerkt|he guardado|j['’]ai (?:bien )?(?:noté|enregistré)"
    r"|die erinnerung wurde|m[ée]moire mise|memoria actualizada|segun mis notas|según mis notas"
    r"|(?:archival|core|recall)_memory_\w+"
    r"|(?:the )?(?:user['’]s )?memor(?:y|ies) (?:of|about|for) the user\b"
    r")",
    re.IGNORECASE,
)
_JSON = re.compile(
    r"\W{0,3}\{.{0,80}\"(?:event|memory|old_memory|score|results|memories|facts)\"\s*:.*\}\W{0,3}", re.DOTALL
)
_LONGEST = 300

MARKS = (
    r"(?i)memor|remember|recall|\bstored\b|\bsaved?\b|\bnoted\b|retriev|you(?:['’]ve| have)? (?:mentioned"
    r"|told)|here(?:['’]s| is) what"
    r"|previous (?:conv|chat|disc)|\bfacts?\b|gemerkt|notizen|guardado|noté|enregistré|erinnerung|mémoire"
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
        return Sign("feedback_loop", 0.9, f"says only that something was remembered: {quoted(text)}")
    return None


def is_nothing_else(text: str) -> bool:
    """Whether a text holds only words of remembering."""
    words = [word.lower().replace("’", "'") for word in _TOKEN.findall(text)]
    return not _RECITAL.isdisjoint(words) and all(word in _KNOWN or word.isdecimal() for word in words)


def recites(text: str) -> bool:
    """Whether an assistant or a memory tool tells somebody what it knows.

    >>> recites("You mentioned earlier that you like hiking."), recites("You mentioned earlier times")
    (True, False)
    """
    is_told = len(text) <= _LONGEST and bool(_TO_USER.match(text) or _JSON.fullmatch(text))
    return is_told and not is_nothing_else(text)
