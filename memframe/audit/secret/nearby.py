"""Secrets near a word that announces them, however the sentence between is built.

Grammar has no end: "open it with Rechnung!0815, it is protected", "for the lockbox, Maria said try 2710". So
everything in a sentence that has the shape of a secret is weighed: what announces it, what shape it has, what stands
right before it and between, and what says that it is something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter

from memframe.audit.secret.cues import GROUPS, Cue, find_cues
from memframe.audit.secret.keywords import SMALL
from memframe.audit.secret.shapes import Place, find_places
from memframe.audit.spans import Span

_OF_DIGITS = frozenset({"pin", "once", "lock", "code", "recovery", "sent"})
_OF_SIGNS = frozenset({"password", "login", "network", "recovery", "pin"})

_SENTENCE = re.compile(
    r"[^.!?\n]+(?:[.!?]+(?:(?=\S)|(?<=i\.e\.)|(?<=\?)(?=\s)|(?=\s\()|(?=\s+(?:it|it['’]s|now|the new one|use"
    r"|try|type|enter|answer"
    r"|login|pass\w*"
    r"|sie|er|es|c['’]est)\b))[^.!?\n]*)*"
)
"""A sentence, and what goes on in a next one about "it"."""

_LEADS = re.compile(
    r"(?:^|[\s\"“„«`'(])(?:(?:(?:is|was|lautet|ist|es|est|c['’]est) (?:the|die|le|la|el|il|der))|is|was|are|be"
    r"|being|lautet"
    r"|ist|sind|steht auf|es|est|era|c['’]est|\w+['’]s|to|auf|zu|à|with|mit|con|avec|as|als|como|comme|typed?"
    r"|enter(?:ing)?|punch in|press|dial|key in|try|use|using|says?|code|pin|namely|so|i\.e\.|and|und|et|y|now|set"
    r"|wants"
    r"|takes|pon|chose|switched to|password|pass|pw|reads|picked|then|default,)[\s:,]*[\"“„«`'(*]*\Z"
    r"|(?:[:=/|→>?]|\s[-–—])\s*[\"“„«`'(*]*\Z|(?:^|\s)[\"“„«`]\Z"
)
"""What stands right before a secret that is told."""

_DOES = re.compile(
    r"(?:^|\s)(?:set to|steht auf|réglée? sur|at|then|needs|accepts|opens|with|mit|con|avec|type|enter"
    r"|entering|punch in|press|dial|key in|try|use|using|says?|code|combination"
    r"|combo|combinaison|kombination|wants|takes|pon|pin|now|auf)[\s:,]*[\"“„«`'(*]*\Z|[:=→]\s*\Z|->\s*\Z"
)
"""What is done with a code, or a colon."""

_BESIDE = re.compile(r"\W{0,4}(?:nr|no|number|code|nummer|den|der|the)?\W{0,4}")
_BEHIND = re.compile(
    r"[\s\"”»'),.!;:(–—-]{0,5}(?:(?:is|was|are|ist|est|es|that['’]s|which is|it['’]s|as|als|comme|como|for"
    r"|into|in|into the|unlocks?|for the"
    r"|gets? you in)\s?)?(?:(?:the|my|a|his|her|their|our|new|old|mein|das|die|mon|mi|one) ?){0,3}[\w'’]*[\s(\"“]*"
)
"""What stands between a secret and its name, where the secret comes first."""

_SECOND = re.compile(r"\s(?:and|und|et|y|/)\s\Z")
_WITH_NAME = re.compile(r"\s(?:with|as|using|mit|als|avec|con)\s")
"""What somebody signs in with first is a name."""

_OPENS = re.compile(r"\s(?:opens|unlocks|disarms|gets? you|for|lets?)\b.{0,20}")
_NO_NAME = r"(?!(?:the|for|of|from|to|an?|my|his|her|is|was|in|on|at|by|that|which|who|and|reset|change)\b)"
_NAMED_FOR = re.compile(rf"\W{{1,2}}(?:{_NO_NAME}[\w'’-]{{1,14}}\W{{1,2}}){{1,2}}")
_MEANT_FOR = re.compile(r"\s(?:for|of|from|für|zu[rm]?|vo[mn]|pour|de|du|del|para)\s[\w'’ -]{2,40}\s")
"""The same, where it is only said what for: "pin Visa 4711"."""

_CODED = re.compile("code|comb")

_DENIED = re.compile(
    r"\b(?:polic(?:y|ies)|must|at least|characters?|minimum|hint|hash\w*|reset link|expired|attempts|such as"
    r"|e\.g\.|for example"
    r"|silliest|guess\w*|zip|postal|area code|postcode|plz|country code|sort code|dress|promo\w*|discount|referral"
    r"|coupon|voucher|error|status|qr|bar ?code"
    r"|source|morse|tax|course|booking|confirmation number|serial|model|tracking|order (?:number|no|id)"
    r"|version|reference"
    r"|flight|boarding|licen[sc]e plate"
    r"|kennzeichen|alarm (?:is |was )?set (?:to|for|at)|gpio|diode|connector|street address"
    r"|clock|rings?|rang|wakes?|goes off|went off|novel|essay|review|python|exam|cve-)\b"
)
_ENOUGH, _DOUBT = 5, 3
"""What a secret, its name and what stands between come to; and what a word takes away that speaks against one."""

_PIN_CODE = ("pin code", "pincode", "pin-code")
"""What Indian postal codes are called, too."""

_LED = 2
"""What a link weighs that says what the secret is; less, where only words about its purpose stand between."""

_LONGEST, _FAR, _LONG_NUMBER, _POSTAL = 320, 60, 6, 6


def find_nearby(text: str) -> Iterator[Span]:
    """Secrets that the words around them and their own shape give away together.

    >>> text = "The PDF is protected, open it with Rechnung!0815"
    >>> [text[span.start : span.end] for span in find_nearby(text)]
    ['Rechnung!0815']
    """
    small = text.translate(SMALL)
    for sentence in _SENTENCE.finditer(small):
        begin, end = sentence.start(), min(sentence.end(), sentence.start() + _LONGEST)
        places = list(find_places(text, small, begin, end))
        cues = list(find_cues(small, begin, end)) if places else []
        doubt = _DOUBT if cues and _DENIED.search(small, begin, end) else 0
        for place in places if cues else ():
            told = [
                (_weight_of_cue(cue, cues, small, place), cue) for cue in cues if _fits(cue, place, small)
            ]
            best = max(told, default=None, key=itemgetter(0))
            if best and place.weight + best[0] - doubt >= _ENOUGH:
                yield Span(GROUPS[best[1].group].kind, place.start, place.end, 0.7)


def _fits(cue: Cue, place: Place, small: str) -> bool:
    """Whether such a secret is announced by such a word; a place that lies in the word itself is none."""
    if cue.start < place.end and place.start < cue.end:
        return False
    is_long = place.end - place.start >= _LONG_NUMBER and cue.end <= place.start
    if place.shape == "word" or (place.shape == "digits" and cue.group == "password" and is_long):
        return cue.group in _OF_SIGNS
    is_postal = small.startswith(_PIN_CODE, cue.start) and place.end - place.start == _POSTAL
    if is_postal:
        return False
    if cue.group == "recovery" and place.shape == "digits":
        return is_long
    if cue.group == "login":
        return is_long and _SECOND.search(place.before) is not None
    return cue.group in _OF_DIGITS


def _weight_of_cue(cue: Cue, cues: list[Cue], small: str, place: Place) -> int:
    """How surely a word announces what stands at a place."""
    others = {other.group for other in cues} - {cue.group, "code", "lock"}
    has_code = cue.group == "lock" and (
        _CODED.search(small, cue.start, cue.end) or any(other.group == "code" for other in cues)
    )
    weight = GROUPS[cue.group].weight + bool(others or has_code)
    is_lone_lock = cue.group == "lock" and weight == 1
    between = small[min(cue.end, place.end) : max(cue.start, place.start)]
    if cue.group == "login" and _WITH_NAME.fullmatch(between):
        return 0
    if cue.end <= place.start:
        link = _weight_of_link(between, place, is_lone_lock=is_lone_lock)
    else:
        leads = _DOES.search(place.before) or (_OPENS if is_lone_lock else _BEHIND).fullmatch(between)
        link = _LED if leads else -1
    is_beside_address = "@" in small[cue.start : cue.end] and link < _LED
    return 0 if is_beside_address else weight + link - (len(between) > _FAR)


def _weight_of_link(between: str, place: Place, *, is_lone_lock: bool) -> int:
    """How closely what stands at a place follows a word; a door needs a deed beside it, as doors have other numbers."""
    if is_lone_lock:
        return _LED if _DOES.search(place.before) else -1
    if _LEADS.search(place.before) or _BESIDE.fullmatch(between):
        return _LED
    is_close = _NAMED_FOR.fullmatch(between) or (place.shape != "word" and _MEANT_FOR.fullmatch(between))
    return 1 if is_close else -1
