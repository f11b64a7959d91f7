"""Links: what stands between a keyword and the secret that it announces, "is", a colon, "was changed to"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memframe.audit.secret.values import Link

_REACH = 120
"""Characters after a keyword up to a link."""

_MAX_LINKS = 4
"""Links that are tried after one keyword: "the password for the bakery that is in Hull is ..."."""

BE = (
    r"(?:is|was|are|were|reads|says?|happens to be|ends up being|used to be|ist|sind|lautet|lauten|heißt|war"
    r"|wäre|est|était|sont|es|era|son"
    r"|é|è|e'|zijn|är"
    r"|er|(?:takes|accepts|needs|wants)(?=\s+[0-9]{4}))\b"
    r"(?:\s+(?:now|still|currently|just|simply|actually|again|always|basically|literally|really|probably"
    r"|set\s+to"
    r"|jetzt|nun|maintenant|ahora|nu|agora|adesso|:|=|(?:le|la|el|il|o|the|die)(?=\s+[#*]?[0-9]))(?!\w))*"
)
"""To be, with the small words after it; an article only before digits."""

_SET = (
    r"(?:\s+(?:was|is|has|had|got|gets|will))?(?:\s+be(?:en)?)?"
    r"\s+(?:changed|set|reset|updated|switched|rotated|renewed|geändert|changé|cambió|gewijzigd)"
    r"\s+(?:(?:by|on|in|last|yesterday|today|from)\b[^.;:\n]{0,40}?\s+)?(?:to|auf|en|à|a|naar)"
    r"|\sauf(?=\s+\S{3,40}\s+(?:geändert|gesetzt|umgestellt)\b)"
)
_LATER = (
    r",\s+(?:(?:and|but|now|currently|at the moment)\s+){0,2}"
    r"(?:(?:it|that|which)(?:['’]s|\s+is|\s+was)|c['’]est)(?:\s+now)?"
)
_LINK = re.compile(
    rf"(?P<set>(?:{_SET})\s+)|(?P<colon>\s*(?:[=-]{{1,3}}>|→|[:=：])\s*(?:{BE}\s+)?)"
    rf"|(?P<is>(?:\s+{BE}|['’]s):?\s+|\s*は\s*"
    rf"|\s*是\s*)"
    rf"|(?P<dash>\s+[-–—]\s+|\?\s+)|(?P<later>{_LATER}\s+)|(?P<comma>,\s+)|(?P<to>\s+(?:from|to|auf|en|à|a)\s+)"
    rf"|(?P<given>\s+as\s+)",
)
_KINDS: dict[str, Link] = {
    "set": "set",
    "colon": "colon",
    "is": "is",
    "dash": "dash",
    "later": "named",
    "comma": "comma",
    "to": "set",
    "given": "is",
}
_PURPOSE = re.compile(
    r"(?:\s{0,3}\([^()\n]{1,40}\))?"
    r"(?:\s{1,3}(?:there|here|again|now|once|for|to|of|on|at|by|in|from|with|into|near|behind|used|that"
    r"|which|who|i|he"
    r"|she|they|we|you|hat|habe|wurde|für"
    r"|zum|zur|vom|von|des|der|meine[rs]|am|beim|im|pour|de|du|d'|des|para|del|per|di|do|da|voor|van|till?"
    r"|al|dla|до"
    r"|от|d['’]\w+)\b"
    r"[^;!?\n]{0,80})?",
)
_NAMED = re.compile(r"(?:\s{1,3}[\w'’.-]{1,30}){1,3}")
_DESCRIBED = re.compile(rf"(?:\s+{BE}|['’]s|\s?:)[^.;:,\n]{{3,60}}")
"""What a password is, before it is told: "is my dog's name, ..."."""

_MAY_BE_DESCRIBED = frozenset({"password", "pin", "code"})
_GIVEN = re.compile(r"\b(?:gave|given|told|chose|picked|named|has|had|set)\s+(?:[\w’']+\s+){0,3}\Z")
_CHANGED = re.compile(
    r"\b(?:chang|set|reset|updat|switch|rotat|renew|mak|made|geänder|cambi|cambié|mis\b|puse)\w*\s+(?:[\w’']+\s+){0,6}\Z"
)
_BESIDE = re.compile(
    r"(?:\s\((?:rw|ro|test|live|prod|staging|read|write|admin)\))?\s{1,3}\(?(?=\S)|(?=[\"“„«`‘'])"
)


_GENITIVE = ("'", "’")


class Place(NamedTuple):
    """Where a secret may begin, and what stands between it and the keyword."""

    link: Link
    purpose: str
    """Words between keyword and link: what the secret is for."""
    begin: int


def places_after(small: str, end: int, *, group: str, before: str) -> Iterator[Place]:
    """Where a secret may begin after a keyword, the nearest place first.

    Parameters
    ----------
    small : str
        The text in small letters.
    end : int
        Of the keyword.
    group : str
        Which the keyword belongs to.
    before : str
        Text before the keyword, in small letters.
    """
    limit = min(len(small), end + _REACH)
    beside = _BESIDE.match(small, end, limit)
    if beside and not _closes(small, end, before):
        yield Place("beside", "", beside.end())
    begin = end
    for _ in range(_MAX_LINKS):
        link = _LINK.search(small, begin, limit)
        if link is None:
            return
        kind = _kind_of(link, small, end, group=group, before=before)
        if kind:
            yield Place(kind, small[end : link.start()], link.end())
        begin = link.end() - 1


def _closes(small: str, end: int, before: str) -> bool:
    """Whether the quotation mark after a keyword closes what was opened before it: 'the password': 'x'."""
    return small[end : end + 1] in ("'", '"', "`") and before.count(small[end]) % 2 == 1


def _kind_of(link: re.Match[str], small: str, end: int, *, group: str, before: str) -> Link | None:
    """What a link is worth after the words that stand before it; None where it does not belong to the keyword."""
    name = str(link.lastgroup)
    if name == "comma" and group != "answer":
        is_described = group in _MAY_BE_DESCRIBED and _DESCRIBED.fullmatch(small, end, link.start())
        return "named" if is_described else None
    if (name == "to" and not _CHANGED.search(before)) or (name == "given" and not _GIVEN.search(before)):
        return None
    if (
        link[0].startswith(_GENITIVE) and ":" not in link[0] and link.start() > end
    ):  # "the password is on the router's label"
        return None
    if name == "later" or _PURPOSE.fullmatch(small, end, link.start()):
        return _KINDS[name]
    is_named = name in ("is", "colon") and _NAMED.fullmatch(small, end, link.start())
    return "named" if is_named else None
