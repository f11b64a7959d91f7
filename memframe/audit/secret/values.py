"""Values: whether what follows a keyword is the secret itself, and how far it goes."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from memframe.audit.secret.plain_words import is_function, is_plain
from memframe.audit.secret.randomness import is_placeholder, looks_random

Link = Literal["is", "colon", "set", "dash", "comma", "beside", "named", "reversed"]
"""What stands between keyword and value: a verb, a colon or equals sign, "changed to", a dash, a comma; nothing, or
names and then a verb ("password Netflix is"); or the value stands first."""


class Value(NamedTuple):
    """What may be a secret, in its surroundings."""

    rest: str
    """Text from the value on."""
    quoted: str | None
    """What stands between quotation marks; None where there are none."""
    link: Link
    keyword: str
    purpose: str
    """Words between keyword and link: what the secret is for."""
    before: str
    """Text before the keyword."""


class Judged(NamedTuple):
    """The secret within the rest: from where to where, and how sure that is."""

    start: int
    end: int
    score: float


_BARE = re.compile(r"[^\s\"“”«»`<>]{1,200}")
_CLOSED = re.compile(
    r"[\"”»`']?\s*(?:[.,;:!?)\]}|]|$|\n|[–—-]\s|\((?!\w+\))|(?:and|but|so|on|for|in|which|und|aber|et|mais|y|pero|en|e|ma)\b)"
)
_UNIT = re.compile(
    r"\s*\+?\s*(?:(?:or|to|bis|oder)\s+(?:more|[0-9]+|mehr)\s*)?-?\s*(?:char|digit|letter|symbol|word|day|week|month|year|minute|"
    r"hour|time|bit|attempt|tries|people|user|zeichen|stellen|ziffern|tage|caract|tekens|dollars?|euros?|%)",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[!@#$%^&*+=~?|\\_]")
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://|www\.|[~.]{0,2}/|\w:\\|[\w.+-]+@[\w-]+\.\w|\w+\([^)]*\)?$|\$[A-Z_]{3,}$|os\.|process\.",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PHRASE = re.compile(r"[^\W\d_]{2,}(?:[ -][^\W\d_]{2,}){2,11}(?=[\"”»`']?\s*(?:[.,;!?)\n]|$))")
_LONGEST_WORD, _LONGEST_PASSWORD = 32, 100
_LOOSE = frozenset({"beside", "dash", "named", "reversed"})
"""Links after which words of all kinds may stand, so that a secret must show by itself that it is one."""

_PIN = re.compile(r"[0-9]{3,8}(?![\w-])(?!\.[0-9])|[0-9]{2,4}[ -][0-9]{2,4}(?![\w-])(?![ -][0-9])")
_ELECTRONICS = re.compile(
    r"gpio|arduino|raspberry|esp(?:32|8266)|board|header|connector|\bchip|micro ?controller|breakout|socket|solder",
    re.IGNORECASE,
)
_POSTAL = re.compile(
    r"address|street|road|\bst\b|nagar|district|india|city|state|postal|deliver|ship|village|lives|[A-Z][a-z]+,?\s*-?\s*$"
)
_LOCK_CODE = re.compile(
    r"[#*]?[0-9](?:[-–/ ]?[0-9#*]){2,9}[#*]?(?![\w-])(?!\.[0-9])"
    r"|[0-9]{1,2}(?:\s?(?:left|right|l|r)\b)?(?:[-–/,\s]{1,3}[0-9]{1,2}(?:\s?(?:left|right|l|r)\b)?){2,3}(?!\w)"
    r"|(?=[A-Z]{0,6}[0-9])[A-Z0-9]{4,10}[#*]?(?![\w-])"
)
_LOCK = (
    r"door|gate|garage|alarm|entry|entrance|lock|safe\b|vault|keypad|suitcase|luggage|shed\b|cellar|tür|tresor"
    r"|portail|puerta|deur"
)
_CLOSE_LOCK = re.compile(_LOCK, re.IGNORECASE)
_ANY_LOCK = re.compile(
    _LOCK
    + r"|building|house|home|apartment|flat|office|box\b|mailbox|basement|gym|studio|cabin|cottage|airbnb|bike|phone|"
    r"tablet|ipad|laptop|screen|voice ?mail|parental|tv\b|security|access|haus|porte|porta|get in|let \w+ in",
    re.IGNORECASE,
)
_NO_LOCK = re.compile(
    r"(?:zip|post(?:al)?|area|country|dial(?:ling)?|promo\w*|discount|coupon|voucher|gift|referral|error|status|exit|return|response|"
    r"source|colou?r|hex|bar|qr|dress|building|tax|course|product|item|sku|currency|language|airport|iata|icao|booking|reservation|"
    r"confirmation|order|tracking|sort|swift|bic|branch|bank|morse|genetic|penal|civil|legacy|python|sample|machine|byte|zero|"
    r"exam|class|team|job|cost|diagnosis|icd|fault|engine|locale|time|unicode|ascii|key|char\w*|of|http)\s*\Z",
    re.IGNORECASE,
)
_RECOVERY = re.compile(
    r"(?:[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,12})(?:(?:\s*[,;|/]\s*|\s+|\s+and\s+)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,12}){0,20}"
)
_ONCE = re.compile(r"(?:[A-Z]-)?[0-9]{4,8}(?![\w-])|[0-9]{3}[ -][0-9]{3}(?![\w-])")
_PAIR = re.compile(
    r"[\"'`]?(?P<user>[^\s\"'`/|,;]{2,64}?)[\"'`]?(?:\s*[/|:]\s*|,\s*|\s+(?:and|with|und)\s+|\s+)[\"'`]?(?P<word>[^\s\"'`]{4,128})"
)
_ANSWER = re.compile(r"(?:[^\W\d_][\w'’-]*|[0-9]+)(?: [^\W\d_a-zà-ÿ][\w'’-]*| [0-9]+){0,3}")
_FOREIGN_TAIL = re.compile(r"(?<=[!-~])[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,12}\Z")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")


def password(value: Value) -> Judged | None:
    """A password, pass phrase or network key: mixed characters, or a word that describes nothing."""
    if value.quoted is not None:
        text = value.quoted.strip()
        return _whole(value.quoted, 0.95) if _may_be_password(text) and not _is_speech(text) else None
    match = _BARE.match(value.rest)
    text = _trimmed(match[0]) if match else ""
    if not 3 <= len(text) <= _LONGEST_PASSWORD or _UNIT.match(value.rest, len(text)):
        return None
    if value.link not in _LOOSE and (phrase := _passphrase(value.rest)):
        return phrase
    if not _may_be_password(text):
        return None
    if text.isdecimal():
        is_close = value.link not in _LOOSE or "code" in value.keyword.lower()
        return Judged(0, len(text), 0.9) if len(text) >= (4 if is_close else 6) else None
    if _is_mixed(text):
        return Judged(0, len(text), 0.95)
    return None if value.link in _LOOSE else _single_word(text, value.rest[len(text) :])


def login(value: Value) -> Judged | None:
    """The second half of a pair "name / password"."""
    if value.link not in ("is", "colon", "dash"):
        return None
    match = _PAIR.match(value.rest if value.quoted is None else value.quoted)
    if match is None:
        return None
    text = _trimmed(match["word"])
    start = match.start("word")
    is_password = _may_be_password(text) and (_is_mixed(text) or (text.isdecimal() and len(text) >= 6))
    return Judged(start, start + len(text), 0.85) if is_password else None


def pin(value: Value) -> Judged | None:
    """Three to eight digits."""
    match = _PIN.match(value.rest)
    if (
        match is None
        or _UNIT.match(value.rest, match.end())
        or (value.link == "reversed" and len(match[0]) < 4)
    ):
        return None
    if _ELECTRONICS.search(f"{value.before[-60:]} {value.purpose} {value.rest[:40]}"):
        return None
    is_postal = len(match[0]) == 6 and value.link == "beside" and _POSTAL.search(value.before[-60:])
    is_short = len(match[0]) < 4 and value.link == "beside" and value.keyword.islower()
    return None if is_postal or is_short else Judged(0, match.end(), 0.95)


def access_code(value: Value) -> Judged | None:
    """The code of a door, an alarm, a safe; a code of something else is none."""
    clause = re.split(r"[.;!?\n]", value.before[-60:])[-1]
    is_lock = _ANY_LOCK.search(clause[-16:] + value.purpose) or _CLOSE_LOCK.search(clause)
    match = _LOCK_CODE.match(value.rest)
    if not is_lock or match is None or _NO_LOCK.search(clause) or _UNIT.match(value.rest, match.end()):
        return None
    if value.link == "beside" and (_YEAR.fullmatch(match[0]) or not any(map(str.isdecimal, match[0][-2:]))):
        return None
    return Judged(0, match.end(), 0.9)


def speaks_of_lock(text: str) -> bool:
    """Whether a text names something that is opened with a code."""
    return _ANY_LOCK.search(text) is not None


def recovery_code(value: Value) -> Judged | None:
    """Codes that let somebody in who has lost the usual way: groups with digits, often several."""
    match = _RECOVERY.match(value.rest)
    if match is None or value.link == "reversed":
        return None
    groups = re.split(r"[\s,;|/]+", match[0])
    n_codes = next(
        (n for n, group in enumerate(groups) if not _is_code(group) and group != "and"), len(groups)
    )
    if not n_codes:
        return None
    end = (
        match[0].index(groups[n_codes - 1]) + len(groups[n_codes - 1])
        if n_codes < len(groups)
        else len(match[0])
    )
    return Judged(0, end, 0.9)


def one_time_code(value: Value) -> Judged | None:
    """A code that was sent to sign in once."""
    match = _ONCE.match(value.rest)
    if match is None or value.link == "reversed" or _UNIT.match(value.rest, match.end()):
        return None
    return Judged(0, match.end(), 0.7)


def key(value: Value) -> Judged | None:
    """A key for machines: long, and drawn at random."""
    text = value.quoted.strip() if value.quoted is not None else ""
    if value.quoted is None:
        match = _BARE.match(value.rest)
        text = match[0].rstrip(".,;:)]}'\"") if match else ""
    if (
        len(text) < 10
        or is_placeholder(text)
        or _ADDRESS.match(text)
        or not looks_random(text, min_entropy=2.5)
    ):
        return None
    start = value.rest.index(text) if text in value.rest else 0
    return Judged(start, start + len(text), 0.9)


def answer(value: Value) -> Judged | None:
    """The answer to a question that only its owner can answer."""
    if value.link in ("beside", "reversed"):
        return None
    if value.quoted is not None:
        return (
            _whole(value.quoted, 0.9)
            if not is_plain(value.quoted.split()[0] if value.quoted.split() else "a")
            else None
        )
    match = _ANSWER.match(value.rest)
    if match is None or is_plain(match[0].split()[0]) or (value.link == "comma" and match[0].islower()):
        return None
    return (
        Judged(0, match.end(), 0.85)
        if match[0][0].isupper() or _CLOSED.match(value.rest[match.end() :])
        else None
    )


def _whole(quoted: str, score: float) -> Judged:
    return Judged(0, len(quoted), score)


def _trimmed(text: str) -> str:
    """A value without the punctuation of the sentence around it."""
    text = _FOREIGN_TAIL.sub("", text.rstrip(".,;:'’"))
    while (
        text
        and text[-1] in ")]}"
        and text.count(text[-1]) > text.count({")": "(", "]": "[", "}": "{"}[text[-1]])
    ):
        text = text[:-1].rstrip(".,;:'’")
    return text[:-1] if text.endswith("?") and not _SIGN.search(text[:-1]) else text


def _may_be_password(text: str) -> bool:
    return not (
        is_placeholder(text) or is_plain(text) or _ADDRESS.match(text) or set(text) <= set("*•·.xX-_?")
    )


def _is_speech(text: str) -> bool:
    words = text.split()
    return len(words) > 1 and sum(map(is_plain, words)) * 3 >= len(words)


def _is_mixed(text: str) -> bool:
    """Whether letters come with digits or signs, or capitals within small letters."""
    letters = sum(map(str.isalpha, text))
    if not letters or len(text) < 4 or re.match(r"[0-9]+(?:st|nd|rd|th|x|h|am|pm|%|k|\+)?(?:-\w+)?$", text):
        return False
    if _YEAR.fullmatch(text.strip("()")):
        return False
    return any(map(str.isdecimal, text)) or _SIGN.search(text.rstrip("!?")) is not None


def _single_word(text: str, tail: str) -> Judged | None:
    if not _WORD.fullmatch(text.rstrip("!")) or len(text) > _LONGEST_WORD or not _CLOSED.match(tail):
        return None
    return Judged(0, len(text), 0.75)


def _passphrase(rest: str) -> Judged | None:
    """Three words or more up to the end of a clause, none of which holds a sentence together."""
    match = _PHRASE.match(rest)
    words = re.split(r"[ -]", match[0]) if match else []
    if match is None or any(map(is_function, words)) or sum(map(is_plain, words)) > len(words) - 2:
        return None
    return Judged(0, match.end(), 0.8)


def _is_code(group: str) -> bool:
    return sum(map(str.isdecimal, group)) >= 2 or (any(map(str.isdecimal, group)) and len(group) >= 6)
