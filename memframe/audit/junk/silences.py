"""Silences: that there was nothing to remember, said by whatever was asked to remember something.

Told by the share of such words, as recitals are: something is denied, what is denied is news, and nothing else is said.
"No updates on weekends" speaks of weekends, and is a wish.
"""

from __future__ import annotations

import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import read_vocabulary

_WORDS = read_vocabulary(__package__, "silences.txt")
_DENIALS, _NEWS = _WORDS["denials"], _WORDS["news"]
_KNOWN = _DENIALS | _NEWS | _WORDS["between"]
_WORD = re.compile(r"[^\W\d_]+(?:['’/-][^\W\d_]+)*")
_EMPTY = re.compile(
    r"\s*\{\s*\"(?:facts|memory|memories|preferences)\"\s*:\s*(?:\[\s*\]|\"\"|null)\s*(?:,[^{}\[\]]*)?\}\s*"
)
"""The answer of a tool that was asked for facts and had none."""

_LONGEST, _MAX_WORDS = 160, 24

MARKS = (
    r"(?i)^\W{0,4}(?:there |(?:the |this )?(?:input|message|conversation|user) |as there "
    r"|i (?:could|found|have|did)|no|none|nothing|nichts|keine?|aucune?|rien|ning[uú]n|nada|es gibt|hay "
    r"|il n|without|unchanged|memor(?:y|ies)|all |already|sin )[^\n]{0,150}$"
    r"|^\s*\{\s*\"(?:facts|memor|pref)"
)
"""A pattern of RE2 that every such text matches."""


def judge_silence(text: str) -> Sign | None:
    """That nothing was to be remembered.

    >>> judge_silence("No updates needed; existing memories already cover this.").kind
    'feedback_loop'
    >>> judge_silence("No updates on weekends, please.")
    """
    if _EMPTY.fullmatch(text):
        return Sign("feedback_loop", 0.9, f"holds no fact: {quoted(text)}")
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    if len(text) > _LONGEST or not 0 < len(words) <= _MAX_WORDS or not _KNOWN.issuperset(words):
        return None
    if _DENIALS.isdisjoint(words) or (_NEWS.isdisjoint(words) and len(words) > 1):
        return None
    return Sign("feedback_loop", 0.9, f"says that there was nothing to remember: {quoted(text)}")
