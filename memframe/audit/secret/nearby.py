"""Secrets near a word that announces them, however the sentence between is built.

Grammar has no end: "open it with Rechnung!0815, it is protected", "for the lockbox, Maria said try 2710". So
everything in a sentence that has the shape of a secret is weighed: its shape (`shapes`), the word that announces it
(`cues`), and the link between, which is what stands right before it or behind it. What says that something else is
meant ("postal", "flight") takes weight away. From `_ENOUGH` on it is a secret; of several cues the surest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter

from memframe.audit.language.vocabulary import one_of
from memframe.audit.secret.cues import GROUPS, Cue, find_cues
from memframe.audit.secret.keywords import SMALL
from memframe.audit.secret.shapes import Place, find_places
from memframe.audit.text import Span

_OF_DIGITS = frozenset({"pin", "once", "lock", "code", "recovery", "sent"})
_OF_SIGNS = frozenset({"password", "login", "network", "recovery", "pin"})
"""Groups of cues that announce digits, and words with digits and signs."""

_GOES_ON = one_of(
    english=r"it, it['’]s, now, the new one, use, try, type, enter, answer, login, pass\w*",
    others="sie, er, es, c['’]est",
)
_SENTENCE = re.compile(
    rf"""[^.!?\n]+
    (?:[.!?]+
        (?:(?=\S)               # a dot within a word, a number or an address
        |(?<=i\.e\.)
        |(?<=\s(?:no|nr)\.)(?=\s)
        |(?<=\?)(?=\s)          # a question, and its answer
        |(?=\s\()
        |(?=\s+{_GOES_ON.replace(" ", "[ ]")}\b))
        [^.!?\n]*)*""",
    re.VERBOSE,
)
"""A sentence, and what goes on in a next one about "it"."""

_OPENING = r"[\"“„«`'(*]*\Z"
_PRESSING = one_of(
    typing="type, enter, entering, punch in, press, dial, key in",
    using="try, use, using, says?, code, pin, wants, takes, now, auf",
    joining="with, w/, mit, con, avec, pon, then, with the (?:number|code|pin|digits|combination)",
)
"""What is done with a code, as well as with a password."""

_BEING = one_of(
    articles=r"(?:is|was|lautet|ist|es|est|c['’]est) (?:the|die|le|la|el|il|der)",
    english=r"is, was, are, be, being, \w+['’]s",
    german="lautet, ist, sind, steht auf",
    romance="es, est, era, c['’]est",
)
_SAYING = one_of(
    to="to, auf, zu, à",
    like="as, als, como, comme",
    joining="namely, so, still, remains, stays, i\\.e\\., and, und, et, y, then, default,",
    choosing="typed, set, chose, switched to, reads, picked",
    names="password, pass, pw",
)
_LEADS = re.compile(
    rf"(?:^|[\s\"“„«`'(])(?:{_BEING}|{_SAYING}|{_PRESSING})[\s:,]*{_OPENING}"
    rf"|(?:[:=/|→>?]|\s[-–—])\s*{_OPENING}"
    r"|(?:^|\s)[\"“„«`]\Z"
)
"""What stands right before a secret that is told."""

_DEED = one_of(
    setting="set to, steht auf, réglée? sur, at",
    working="needs, accepts, opens",
    naming="combination, combo, combinaison, kombination",
)
_THEN = re.compile(r"[\s,]+(?:and )?then (?:turn|push|press|pull|lift|star|hash|#|\*)")
"""What is done behind a code."""

_DOES = re.compile(rf"(?:^|\s)(?:{_DEED}|{_PRESSING})[\s:,]*{_OPENING}|[:=→]\s*\Z|->\s*\Z")
"""What is done with a code, or a colon."""

_BESIDE = re.compile(r"\W{0,4}(?:nr|no|number|code|nummer|den|der|the)?\W{0,4}")
"""What stands between a name and a secret that follows at once."""

_LINK_BACK = one_of(
    being="is, was, are, ist, est, es, that['’]s, which is, it['’]s",
    like="as, als, comme, como",
    opening="for, into, in, into the, unlocks?, for the, gets? you in",
)
_WHOSE = one_of(english="the, my, a, his, her, their, our, new, old, one", others="mein, das, die, mon, mi")
_BEHIND = re.compile(rf"[\s\"”»'),.!;:(–—-]{{0,5}}(?:{_LINK_BACK}\s?)?(?:{_WHOSE} ?){{0,3}}[\w'’]*[\s(\"“]*")
"""What stands between a secret and its name, where the secret comes first."""

_NETWORK = re.compile(r"\b(?:wi-?fi|wlan|hotspot|ssid|network|netz\w*|réseau|red)\b[^.]{0,40}\Z")
_SIDE_BY_SIDE = re.compile(r"[\"”»']?\s?[/,]?\s[\"“«'(]?")
_SECOND = re.compile(r"\s(?:and|und|et|y|/)\s\Z")
_WITH_NAME = re.compile(r"\s(?:with|as|using|mit|als|avec|con)\s")
"""What somebody signs in with first is a name, and second a password."""

_OPENS = re.compile(r"\s(?:opens|unlocks|disarms|gets? you|for|lets?)\b.{0,20}")
"""What stands between a code and the door that it opens."""

_NO_NAME = one_of(
    small="the, for, of, from, to, an?, my, his, her, is, was, in, on, at, by, that, which, who, and",
    changes="reset, change",
)
_NAMED_FOR = re.compile(rf"\W{{1,2}}(?:(?!{_NO_NAME}\b)[\w'’-]{{1,14}}\W{{1,2}}){{1,2}}")
_MEANT_FOR = re.compile(r"\s(?:for|of|from|für|zu[rm]?|vo[mn]|pour|de|du|del|para)\s[\w'’ -]{2,40}\s")
"""What stands between where it is only said what the secret is for: "pin Visa 4711", "pin for the bike 4711"."""

_CODED = re.compile("code|comb")
"""A lock that names its code itself: "alarm code"."""

_ENTER = one_of("type, enter, press, punch, use, dial")
_DENIED = re.compile(
    r"\b"
    + one_of(
        rules=r"polic(?:y|ies), must, at least, characters?, minimum, attempts",
        no_secret=r"hint, hash\w*, reset link, expired, silliest, guess\w*, such as, e\.g\., for example",
        places="zip, postal, postcode, plz, area code, country code, street address",
        shops=r"promo\w*, discount, referral, coupon, voucher, dress",
        numbers=r"sort code, confirmation number, order (?:number|no|id), booking, tracking, reference",
        machines="error, status, serial, model, version, gpio, diode, connector, source, python, cve-",
        signs="qr, bar ?code, morse, tax, course, exam",
        travel=r"flight, boarding, licen[sc]e plate, kennzeichen",
        clocks=rf"alarm (?:is |was )?set (?:to|for|at), clock, rings?, rang, wakes?, goes off(?!,? {_ENTER}), went off",
        writings="novel, essay, review",
    )
    + r"\b"
)
"""What says that a number is something else, or that nothing is told."""

_ENOUGH, _DOUBT = 5, 3
"""What a secret, its name and what stands between come to; and what a word takes away that speaks against one."""

_LED, _CLOSE, _APART = 2, 1, -1
"""What a link weighs that says what the secret is; words about its purpose alone; and anything else between."""

_FAR = 60
"""Characters between a secret and its name that take one away from their weight."""

_PIN_CODES, _POSTAL = ("pin code", "pincode", "pin-code"), 6
"""What Indian postal codes are called, too, and their digits."""

_LONG_NUMBER = 6
"""Digits from which on a number may be a password, or the recovery code of an account."""

_LONGEST = 320
"""Characters of a sentence that are looked at."""

_SCORE = 0.7


def find_nearby(text: str) -> Iterator[Span]:
    """Secrets that the words around them and their own shape give away together.

    >>> text = "The PDF is protected, open it with Rechnung!0815"
    >>> [text[span.start : span.end] for span in find_nearby(text)]
    ['Rechnung!0815']
    """
    small = text.translate(SMALL)
    for sentence in _SENTENCE.finditer(small):
        begin, end = sentence.start(), min(sentence.end(), sentence.start() + _LONGEST)
        places = _without_names(small, list(find_places(text, small, begin, end)))
        cues = list(find_cues(small, begin, end)) if places else []
        doubt = _DOUBT if cues and _DENIED.search(small, begin, end) else 0
        for place in places if cues else ():
            told = [
                (_weight_of_cue(cue, cues, small, place), cue) for cue in cues if _fits(cue, place, small)
            ]
            best = max(told, default=None, key=itemgetter(0))
            if best and place.weight + best[0] - doubt >= _ENOUGH:
                yield Span(GROUPS[best[1].group].kind, place.start, place.end, _SCORE)


def _without_names(small: str, places: list[Place]) -> list[Place]:
    """Places without the name of a network that stands right before its password: 'hotspot: "Heron" tiger18'."""
    kept: list[Place] = []
    for place in places:
        is_second = kept and _NETWORK.search(kept[-1].before) is not None
        if is_second and _SIDE_BY_SIDE.fullmatch(small, kept[-1].end, place.start):
            kept.append(place._replace(before=kept.pop().before))
        else:
            kept.append(place)
    return kept


def _fits(cue: Cue, place: Place, small: str) -> bool:
    """Whether such a secret is announced by such a word; a place that lies in the word itself is none."""
    if cue.start < place.end and place.start < cue.end:
        return False
    is_long = place.end - place.start >= _LONG_NUMBER and cue.end <= place.start
    if place.shape == "word" or (place.shape == "digits" and cue.group == "password" and is_long):
        return cue.group in _OF_SIGNS
    if small.startswith(_PIN_CODES, cue.start) and place.end - place.start == _POSTAL:
        return False
    if cue.group == "recovery" and place.shape == "digits":
        return is_long
    if cue.group == "login":
        return is_long and _SECOND.search(place.before) is not None
    return cue.group in _OF_DIGITS


def _weight_of_cue(cue: Cue, cues: list[Cue], small: str, place: Place) -> int:
    """How surely a word announces what stands at a place."""
    between = small[min(cue.end, place.end) : max(cue.start, place.start)]
    if cue.group == "login" and _WITH_NAME.fullmatch(between):
        return 0
    weight = GROUPS[cue.group].weight + _is_supported(cue, cues, small)
    is_lone_lock = cue.group == "lock" and weight == GROUPS["lock"].weight
    if cue.end <= place.start:
        is_used = is_lone_lock and _THEN.match(small, place.end) is not None
        link = _LED if is_used else _weight_of_link(between, place, is_lone_lock=is_lone_lock)
    else:
        leads = _DOES.search(place.before) or (_OPENS if is_lone_lock else _BEHIND).fullmatch(between)
        link = _LED if leads else _APART
    is_beside_address = "@" in small[cue.start : cue.end] and link < _LED
    return 0 if is_beside_address else weight + link - (len(between) > _FAR)


def _is_supported(cue: Cue, cues: list[Cue], small: str) -> bool:
    """Whether a cue of another kind stands in the same sentence; of a lock and its code the lock is supported."""
    groups = {other.group for other in cues}
    is_coded = _CODED.search(small, cue.start, cue.end) is not None or "code" in groups
    return bool(groups - {cue.group, "code", "lock"}) or (cue.group == "lock" and is_coded)


def _weight_of_link(between: str, place: Place, *, is_lone_lock: bool) -> int:
    """How closely what stands at a place follows a word; a door needs a deed beside it, as doors have other numbers."""
    if is_lone_lock:
        return _LED if _DOES.search(place.before) else _APART
    if _LEADS.search(place.before) or _BESIDE.fullmatch(between):
        return _LED
    is_close = _NAMED_FOR.fullmatch(between) or (place.shape != "word" and _MEANT_FOR.fullmatch(between))
    return _CLOSE if is_close else _APART
