"""Codes of digits: PINs, codes of doors and safes, recovery codes; whether a value is one, and how far it goes."""

from __future__ import annotations

import re

from memframe.audit.language.vocabulary import one_of
from memframe.audit.secret.values import LOOSE, Judged, Value, is_amount

_PIN = re.compile(r"[0-9]{2,4}[ -][0-9]{2,4}(?![\w-])(?![ -][0-9])|[0-9]{3,8}(?![\w-])(?!\.[0-9])")
_ELECTRONICS = re.compile(
    r"gpio|arduino|raspberry|esp(?:32|8266)|board|header|connector|\bchip|micro ?controller|breakout"
    r"|socket|solder"
)
_POSTAL = re.compile(
    r"address|street|road|\bst\b|nagar|district|india|city|state|postal|deliver|ship|village|lives|,\s*-?\s*$"
)
_POSTCODE = re.compile(r"\b(?:post(?:al)? ?codes?|zip|pin ?codes?)\b")
_POSTAL_DIGITS = 6
_OF_A_CARD = re.compile(
    r"card|karte|carte|tarjeta|bank|sim\b|phone|handy|account|login|app\b|alarm|door|lock"
)

_LOCK_CODE = re.compile(
    r"[#*]?[0-9](?:[-–/ ]?[0-9#*]){2,9}[#*]?(?![\w-])(?!\.[0-9])"
    r"|[0-9]{1,2}(?:\s?(?:left|right|l|r)\b)?(?:[-–/,\s]{1,3}[0-9]{1,2}(?:\s?(?:left|right|l"
    r"|r)\b)?){2,3}(?!\w)"
    r"|(?=[A-Z]{0,6}[0-9])[A-Z0-9]{4,10}[#*]?(?![\w-])"
)
_LOCK = (
    r"door|gate\b|disarm|garage|alarm|entry|entrance|lock|safe\b|vault|keypad|suitcase|luggage|shed\b|cellar"
    r"|intercom|buzzer"
    r"|storage unit|elevator|\blift\b|tür|tresor|\btor\b|schlo[sß]|eingang|zugang|zutritt|sperr"
    r"|schließfach|spind"
    r"|aufzug|porte\b|portail|coffre|immeuble|cadenas|digicode|ascenseur|puerta|portal\b|caja fuerte"
    r"|garaje|alarma"
    r"|candado|taquilla|ascensor|portone|cancello|cassaforte|lucchetto|allarme|deur|poort|kluis|\bslot\b"
    r"|portão|cofre"
)
_CLOSE_LOCK = re.compile(_LOCK)
_ANY_LOCK = re.compile(
    _LOCK
    + r"|building|house|home|apartment|flat|office|box\b|mailbox|basement|gym|studio|cabin|cottage|airbnb|bike"
    r"|phone|tablet|ipad|laptop|screen|voice ?mail|parental|tv\b|security|access|haus|get in|let \w+ in"
    r"|unit\b|pool\b"
    r"|handy|edificio|edifício|entrée|entrada|m[óo]vil|téléphone|telefoon|carte\b|tarjeta|(?:ec-|kredit"
    r"|bank)karte"
)
_NO_LOCK = re.compile(
    r"(?:zip|post(?:al)?|area|country|dial(?:ling)?|promo\w*|discount|coupon|voucher|gift|referral|error"
    r"|status|exit"
    r"|return|response|source|colou?r|hex|bar|qr|dress|building|tax|course|product|item|sku|currency"
    r"|language|airport"
    r"|iata|icao|booking|reservation|confirmation|order|tracking|sort|swift|bic|branch|bank|morse|genetic"
    r"|penal|civil"
    r"|legacy|python|sample|machine|byte|zero|exam|class|team|job|cost|diagnosis|icd|fault|engine|locale"
    r"|time|unicode"
    r"|ascii|key|char\w*|of|http)\s*\Z"
)
_END_OF_CLAUSE = re.compile(r"[.;!?\n]")
_CLOSE, _BESIDE = 60, 16
"""Characters before a code in which a door, an alarm, a safe makes it theirs; and a house, a phone, an office."""

_MIN_DIGITS_OF_ROW = 3
_GROUP = re.compile(r"[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,12}")
_ROWS = re.compile(r"[A-Z0-9]{4,6}(?:[ -][A-Z0-9]{4,6}){3,11}(?![\w-])")
"""Groups of one length or nearly so: a key of a backup; some of them have no digit."""

_AND = re.compile(r"\s*(?:[,;|/]|\band\b)?\s*")
_ONCE = re.compile(r"(?:[A-Z]-)?[0-9]{4,8}(?![\w-])|[0-9]{3}[ -][0-9]{3}(?![\w-])")
_SHARED = re.compile(r"(?:[A-Za-z2-7]{4}[ -]?){3,15}[A-Za-z2-7]{4}(?!\w)")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_DIGIT = one_of(
    english="zero, oh, one, two, three, four, five, six, seven, eight, nine",
    german="null, eins?, zwei, zwo, drei, vier, fünf, sechs, sieben, acht, neun",
    french="zéro, une?, deux, trois, quatre, cinq, six, sept, huit, neuf",
    spanish="cero, uno, dos, tres, cuatro, cinco, seis, siete, ocho, nueve",
)
_MORE = one_of(
    english="""ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen, seventeen, eighteen, nineteen, twenty, thirty,
    forty, fifty, sixty, seventy, eighty, ninety, hundred, thousand, double, triple""",
    german=r"""zehn, elf, zwölf, (?:[a-zäöüß]+und)?(?:zwan|vier|fünf|sech|sieb|acht|neun)zig,
    (?:[a-zü]+)?(?:hundert|tausend)""",
    french="""dix, onze, douze, treize, quatorze, quinze, seize, vingts?, trente, quarante, cinquante, soixante,
    cents?, mille""",
    spanish=r"""diez, once, doce, trece, catorce, quince, veinti\w+, veinte, treinta, cuarenta, cincuenta, sesenta,
    setenta, ochenta, noventa, cien(?:to)?s?, mil""",
)
_GAP = r"(?:[ ,-]{1,2}|[ ](?:and|y|et)[ ])"
_SPELLED = re.compile(
    rf"{_DIGIT}(?:{_GAP}{_DIGIT}){{3,7}}(?!\w)"
    rf"|(?={_DIGIT}?{_GAP}?{_MORE}(?!\w)|(?:{_DIGIT}{_GAP}){{1,3}}{_MORE}(?!\w))(?:{_DIGIT}|{_MORE})"
    rf"(?:{_GAP}(?:{_DIGIT}|{_MORE})){{1,7}}(?=\s*(?:[.,;:!?)\n]|\Z)|\s(?:and|but|so|for|please)\b)",
    re.IGNORECASE,
)
"""Digits in words, four and more, or a number: «nineteen eighty-four»."""


def pin(value: Value) -> Judged | None:
    """Three to eight digits, or four and more in words."""
    match = _PIN.match(value.rest) or _spelled(value)
    if match is None or is_amount(value, match.end()):
        return None
    before = value.before[-_CLOSE:]
    is_short = len(match[0]) < 4 and value.link not in ("colon", "set") and value.keyword.startswith("pin")
    is_postal = len(match[0]) == _POSTAL_DIGITS and _is_postal(value, before)
    if is_short or is_postal or _ELECTRONICS.search(f"{before} {value.purpose} {value.rest[:40].lower()}"):
        return None
    return Judged(0, match.end(), 0.95)


def _is_postal(value: Value, before: str) -> bool:
    """Whether six digits are an Indian postal code, which is called PIN, too."""
    if _OF_A_CARD.search(before + value.purpose):
        return False
    if _POSTCODE.search(value.rest[:_CLOSE].lower()):
        return True
    is_called_code = "code" in value.keyword and value.link != "colon"
    return is_called_code or (value.link == "beside" and _POSTAL.search(before) is not None)


def access_code(value: Value) -> Judged | None:
    """The code of a door, an alarm, a safe; a code of something else is none."""
    match = _LOCK_CODE.match(value.rest) or _spelled(value)
    if match is None or is_amount(value, match.end()):
        return None
    clause = _END_OF_CLAUSE.split(value.before[-_CLOSE:])[-1]
    named = clause[-_BESIDE:] + value.keyword + value.purpose
    is_lock = _ANY_LOCK.search(named) or _CLOSE_LOCK.search(clause)
    if not is_lock or _NO_LOCK.search(clause):
        return None
    if value.link == "beside" and (_YEAR.fullmatch(match[0]) or not any(map(str.isdecimal, match[0][-2:]))):
        return None
    return Judged(0, match.end(), 0.9)


def is_close_lock(text: str) -> bool:
    """Whether a text in small letters names a door, an alarm, a safe."""
    return _CLOSE_LOCK.search(text) is not None


def speaks_of_lock(text: str) -> bool:
    """Whether a text in small letters names something that is opened with a code."""
    return _ANY_LOCK.search(text) is not None


def recovery_code(value: Value) -> Judged | None:
    """Codes that let somebody in who has lost the usual way: groups with digits, often several."""
    row = _ROWS.match(value.rest)
    if row and sum(map(str.isdecimal, row[0])) >= _MIN_DIGITS_OF_ROW:
        return Judged(0, row.end(), 0.9)
    begin = end = 0
    while (group := _GROUP.match(value.rest, begin)) and _is_code(group[0]):
        end = group.end()
        begin = end + len((_AND.match(value.rest, end) or group)[0])
    return Judged(0, end, 0.9) if end and value.link != "reversed" else None


def one_time_code(value: Value) -> Judged | None:
    """A code that was sent to sign in once."""
    match = _ONCE.match(value.rest)
    if match is None or value.link == "reversed" or is_amount(value, match.end()):
        return None
    return Judged(0, match.end(), 0.7)


def shared_secret(value: Value) -> Judged | None:
    """What an authenticator makes its codes of: base 32, often in groups of four."""
    match = _SHARED.match(value.rest)
    letters = re.sub("[ -]", "", match[0]) if match else ""
    is_base32 = letters.isupper() or (letters.islower() and any(map(str.isdecimal, letters)))
    return Judged(0, match.end(), 0.9) if match and is_base32 else None


def _spelled(value: Value) -> re.Match[str] | None:
    is_loose = value.link in LOOSE and not (value.link == "beside" and value.keyword.startswith("p"))
    return None if is_loose else _SPELLED.match(value.rest)


def _is_code(group: str) -> bool:
    n_digits = sum(map(str.isdecimal, group))
    return n_digits >= 2 or (n_digits == 1 and len(group) >= 6)
