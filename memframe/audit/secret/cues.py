"""Cues: words that announce a secret somewhere in their sentence, in the languages and spellings that people use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memframe.audit.secret.keywords import ABOUT


def _words(text: str) -> str:
    """A pattern for one of several words or phrases that blanks set apart; "_" stands for a blank within one."""
    return "|".join(text.split()).replace("_", "[ -]?")


_GROUPS = {
    "password": _words(
        r"""pas+_w(?:or?d?|r?d|rod|örter|ort)s? pas+_(?:phrase"
        r"|key)s? p[as]?s?wd? psw pwd passwd requirepass kennw[oö]rter?
        kennwort pass mdp mots?_de_passe contrase[ñn]as? clave senha wachtwoord l[öo]senord \pL{1,12}-?pw zertifikat"""
    ),
    "pin": _words(
        r"""pin_(?:codes?|nr|number|nummer) pins? puk geheimzahl pas+_co?d?de?s? access_number personal_code
        (?:secret|geheim|security|sicherheits|atm|bank|banking|card|sperr|handy)_?codes? codes?_secrete?t?
        c[oó]digos?_secretos? voice_?mail_(?:code|number) entsperr\pL* d[ée]verrouill\pL+ desbloqu\pL+
        unlock(?:s|ed|ing)?"""
    ),
    "once": _words(
        r"""otp tan one_time_(?:code|pass\pL+|pin) one_time authenticator 2fa sms_code
        verification_(?:codes?|number|pin) (?:login|confirmation|sign-?in)_(?:code|pin) best[äa]tigungscode"""
    ),
    "recovery": _words(
        r"""(?:recovery|backup|rescue|emergency|activation|licen[sc]e|setup|product)_(?:codes?|keys?)
        wiederherstellungs\pL+ aktivierungs\pL+ (?:2fa|totp)_secret bitlocker filevault"""
    ),
    "lock": _words(
        r"""doors? gate \pL*garage alarme? entry entrance locks? lock_?(?:er|box) safe vault key_?(?:pad|safe) suitcase
        luggage shed intercom barrier padlock storage_unit lift elevator (?:haus)?tür\pL* tresor tor \pL*schloss
        schließfach spind (?:alarm|mitarbeiter|zugangs|zutritts|eingangs|garagen|tresor)\pL{0,9}codes? alarmanlage
        garagentor porte portail coffre\pL* immeuble cadenas digicode boîte_à_clés? puerta a?l_portal caja_fuerte
        garaje alarma candado taquilla building combination combo opens? opened"""
    ),
    "code": _words(r"\pL{1,12}codes? codes? c[óo]digos? kombination combinaci[óo]n combinaison digits"),
    "login": _words(
        r"""log_?ins? log(?:s|ged|ging)?_(?:in|on) sign(?:s|ed)?_in gets?_in credentials? creds zugang zugangsdaten
        anmelde\pL+ identifiants? credenciales accounts? portal protected geschützt konto
        [\w.+-]{2,40}@[\w-]+(?:\.[\w-]+)+"""
    ),
    "network": _words(r"wi_fi wlan hotspot ssid wpa2? guest_network router"),
    "sent": _words("sms"),
}
"""Patterns for RE2 as well: ``\\pL`` is a letter."""

WEIGHTS = {
    "password": 2,
    "pin": 2,
    "once": 2,
    "recovery": 2,
    "lock": 1,
    "code": -1,
    "login": 1,
    "network": 1,
    "sent": 0,
}
"""How surely a word of each group announces a secret."""

KINDS = {
    "password": "password",
    "pin": "pin",
    "once": "one_time_code",
    "recovery": "recovery_code",
    "lock": "access_code",
    "code": "access_code",
    "login": "password",
    "network": "password",
    "sent": "one_time_code",
}

_CUE = re.compile(
    r"(?<![^\W_])(?:"
    + "|".join(f"(?P<{group}>{words})" for group, words in _GROUPS.items()).replace(r"\pL", r"[^\W\d_]")
    + r")(?![^\W_])"
)
_NO_CUE = re.compile(r"(?<=\bpass)\s(?:rate|the|on|by|through)\b|(?<=\bbuilding)s?\scodes?\b")
"""What makes another word of "pass" and of "building"."""

_ANY = "|".join(_GROUPS.values()).replace(r"\pL", r"\w")
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
        if not ABOUT.match(small, cue.end()) and not _NO_CUE.match(small, cue.end()):
            yield Cue(str(cue.lastgroup), *cue.span())
