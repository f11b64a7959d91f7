"""Subjects: whether a longer text speaks of somebody else than a shorter one with the same words.

«Ada works from home» is all in «Ada's wife works from home», and says something else. Apostrophes are gone where words
are compared, so that this is asked of the texts as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container

from memframe.audit.language.lexicon import USERS

_OWNER = re.compile(
    r"\b(?P<owner>\w+)['’]s?(?=\s+(?P<owned>[^\W_]+)(?:\s+(?P<next>[^\W_]+))?)", re.IGNORECASE
)
_OF_MINE = {"my": "i", "our": "we", "his": "he", "her": "she", "their": "they", "mein": "ich", "meine": "ich"}
"""Whose the first word of «my wife works from home» is."""

OWNING = rf"['\x{{2019}}]s?\s|(?i)^\W*(?:the\s)?(?:{'|'.join(_OF_MINE)})\s"
"""A pattern of RE2 that every text matches that says whose something is."""

_WORD = re.compile(r"[^\W_]+(?:['’]s?\b)?")
_OPENING = re.compile(r"\W*(?:the\s+)?(?P<first>[^\W_]+)(?:\s+(?P<second>[^\W_]+))?", re.IGNORECASE)


def speaks_of_another(part: str, whole: str) -> bool:
    """Whether what a text says of somebody is said in a longer one of what is his, or of whom.

    >>> speaks_of_another("Ada works from home", "Ada's wife works from home on Fridays")
    True
    >>> speaks_of_another("Ada likes tea", "Ada likes tea and Leo's cake")
    False
    >>> speaks_of_another("Works here", "My son works here")
    True
    """
    words, more = Counter(_words(part)), Counter(_words(whole))
    return any(
        owned not in words and (more[owner] < words[owner] or _begins_with(part, following))
        for owner, owned, following in _owned(whole)
    )


def speaks_of_what_another_has(part: str, whole: str) -> bool:
    """Whether a longer text says of somebody's thing what a shorter one says of the thing alone.

    >>> speaks_of_what_another_has("User's flat is small", "User's parents' flat is small")
    True
    """
    words = set(_words(part))
    return any(owned in words and _is_new_owner(owner, words) for owner, owned, _ in _owned(whole))


def _is_new_owner(owner: str, words: Container[str]) -> bool:
    """Whether what the other text speaks of as well is somebody's of whom it does not."""
    return owner not in USERS and not any(f"{owner}{sign}" in words for sign in ("", "'", "’", "'s", "’s"))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _owned(text: str) -> list[tuple[str, str, str]]:
    """Who has what, in small letters, and the word that follows as it stands."""
    found = [
        (match["owner"].lower(), match["owned"].lower(), match["next"] or "")
        for match in _OWNER.finditer(text)
    ]
    opening = _OPENING.match(text)
    if opening and opening["second"] and (owner := _OF_MINE.get(opening["first"].lower())):
        following = _OPENING.match(text, opening.end())
        found.append((owner, opening["second"].lower(), following["first"] if following else ""))
    return found


def _begins_with(part: str, verb: str) -> bool:
    """Whether a text begins with a verb, and leaves out who does it."""
    opening = _OPENING.match(part)
    return bool(verb) and verb.islower() and opening is not None and opening["first"].lower() == verb
