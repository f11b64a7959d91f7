"""Cues: words that announce a secret somewhere in their sentence, in the languages and spellings that people use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memframe.audit.language.vocabulary import one_of
from memframe.audit.secret.keywords import ABOUT


class CueGroup(NamedTuple):
    """Words that announce the same kind of secret."""

    kind: str
    """Of the finding."""
    weight: int
    """How surely such a word announces a secret: 2 does, 1 needs a second cue or a close link, less needs more."""
    words: str
    """A pattern for RE2 as well: ``\\pL`` is a letter."""


def _group(kind: str, weight: int, **words: str) -> CueGroup:
    """Words by language; "_" stands for a blank or a hyphen within one, which may be missing."""
    return CueGroup(kind, weight, one_of(**words).replace("_", "[ -]?"))


# Of two words that begin alike the first counts: "pin code" stands before "pin".
GROUPS = {
    "password": _group(
        "password",
        2,
        misspelt=r"pas+_w(?:or?d?|r?d|rod|örter|ort)s?",
        english=r"pas+_(?:phrase|key)s?, p[as]?s?wd?, psw, pwd, passwd, requirepass",
        german=r"kennw[oö]rter?, kennwort",
        short=r"pass, mdp",
        romance=r"mots?_de_passe, contrase[ñn]as?, clave, senha",
        northern=r"wachtwoord, l[öo]senord",
        compound=r"\pL{1,12}-?pw, zertifikat",
    ),
    "pin": _group(
        "pin",
        2,
        pins=r"pin_(?:codes?|nr|number|nummer), pins?, puk, geheimzahl, pas+_co?d?de?s?",
        english=r"access_number, personal_code",
        compound=r"(?:secret|geheim|security|sicherheits|atm|bank|banking|card|sperr|handy)_?codes?",
        romance=r"codes?_secrete?t?, c[oó]digos?_secretos?",
        voicemail=r"voice_?mail_(?:code|number)",
        unlocking=r"entsperr\pL*, d[ée]verrouill\pL+, desbloqu\pL+, unlock(?:s|ed|ing)?",
    ),
    "once": _group(
        "one_time_code",
        2,
        sent="sms[^.:;]{0,20}: (?:your )?code",
        tans="(?:m|push|photo|sms|i|chip)?-?tan",
        names=r"otp, one_time_(?:code|pass\pL+|pin), one_time, authenticator, 2fa, sms_code",
        purposes=r"verification_(?:codes?|number|pin), (?:login|confirmation|sign-?in)_(?:code|pin)",
        german=r"best[äa]tigungscode",
    ),
    "recovery": _group(
        "recovery_code",
        2,
        english=r"(?:recovery|backup|rescue|emergency|activation|licen[sc]e|setup|product)_(?:codes?|keys?)",
        german=r"wiederherstellungs\pL+, aktivierungs\pL+",
        products=r"(?:2fa|totp)_secret, bitlocker, filevault",
    ),
    "lock": _group(
        "access_code",
        1,
        doors=r"doors?, gate, \pL*garage, alarme?, entry, entrance",
        locks=r"locks?, lock_?(?:er|box), safe, vault, key_?(?:pad|safe), padlock",
        other=r"suitcase, luggage, shed, intercom, barrier, storage_unit, lift, elevator",
        german=r"""(?:haus)?tür\pL*, tresor, tor, \pL*schloss, schließfach, spind,
        (?:alarm|mitarbeiter|zugangs|zutritts|eingangs|garagen|tresor)\pL{0,9}codes?, alarmanlage, garagentor""",
        french=r"porte, portail, coffre\pL*, immeuble, cadenas, digicode, boîte_à_clés?",
        spanish=r"puerta, a?l_portal, caja_fuerte, garaje, alarma, candado, taquilla",
        coming="(?:gets?|got|comes?|lets? (?:him|her|them)sel(?:f|ves)) in with (?:the |a )?(?:code|pin|number)",
        opening=r"building, combination, combo, opens?, opened, (?:protects?|locks?|secures?|secured|locked)",
        entering=r"gets? into the (?:flat|house|building|office|garage|cellar|basement|garden|courtyard|stairwell)",
    ),
    "code": _group(
        "access_code",
        -1,
        english=r"\pL{1,12}codes?, codes?, digits",
        others=r"c[óo]digos?, kombination, combinaci[óo]n, combinaison",
    ),
    "login": _group(
        "password",
        1,
        english=r"""log_?ins?, log(?:s|ged|ging)?_(?:into|in|on), sign(?:s|ed)?_in, gets?_in, credentials?, creds,
        accounts?, portal, protected""",
        german=r"zugang, zugangsdaten, anmelde\pL+, geschützt, konto",
        romance=r"identifiants?, credenciales",
        address=r"[\w.+-]{2,40}@[\w-]+(?:\.[\w-]+)+",
    ),
    "network": _group("password", 1, words=r"wi_fi, wlan, hotspot, ssid, wpa2?, guest_network"),
    "sent": _group("one_time_code", 0, words="sms"),
}

_CUE = re.compile(
    r"(?<![^\W_])(?:"
    + "|".join(f"(?P<{name}>{group.words})" for name, group in GROUPS.items()).replace(r"\pL", r"[^\W\d_]")
    + r")(?![^\W_])"
)
_PATH_BEFORE, _PATH_BEHIND = re.compile(r"[\w.@$~/\\-]{0,120}\Z"), re.compile(r"[\w.@$~/\\-]{0,120}")
_PATH = re.compile(r"(?:[\w.@$~-]*[/\\]){2,}[\w.@$-]*|[\w.@$~-]+[/\\][\w@$-]+\.[a-z]{1,5}")
"""The path of a file, in which a word announces nothing: "src/login/form.tsx"."""

_NO_CUE = re.compile(r"(?<=\bpass)\s(?:rate|the|on|by|through)\b|(?<=\bbuilding)s?\scodes?\b")
"""What makes another word of "pass" and of "building"."""

_ANY = "|".join(group.words for group in GROUPS.values()).replace(r"\pL", r"\w")
_SIGN = r"[0-9!#$%^&*+=~_<>]"
MARKS = rf"(?is)\b(?:{_ANY})\b.*{_SIGN}|{_SIGN}.*\b(?:{_ANY})\b"
"""A pattern of RE2 that every text matches in which such a word stands with a digit or a sign."""


class Cue(NamedTuple):
    """A word that announces a secret, in its text."""

    group: str
    start: int
    end: int


def find_cues(small: str, begin: int, end: int) -> Iterator[Cue]:
    """Such words in a part of a text in small letters, without those that are about something else.

    >>> list(find_cues("the pin of the gate; a password manager", 0, 39))
    [Cue(group='pin', start=4, end=7), Cue(group='lock', start=15, end=19)]
    """
    for cue in _CUE.finditer(small, begin, end):
        is_other = ABOUT.match(small, cue.end()) or _NO_CUE.match(small, cue.end())
        if not is_other and not _is_in_path(small, *cue.span()):
            yield Cue(str(cue.lastgroup), *cue.span())


def _is_in_path(small: str, start: int, end: int) -> bool:
    """Return whether a word is a part of the path of a file."""
    before = _PATH_BEFORE.search(small[max(0, start - 120) : start])
    behind = _PATH_BEHIND.match(small, end)
    around = [match[0] if match else "" for match in (before, behind)]
    return _PATH.fullmatch((around[0] + small[start:end] + around[1]).rstrip(".")) is not None
