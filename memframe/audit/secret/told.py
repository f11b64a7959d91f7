"""Secrets that people tell an assistant in a sentence: passwords, PINs, door codes, recovery codes, answers.

A keyword opens, a few words may say what it is for, a link ("is", a colon, "changed to") follows, and then
comes a value that must look like one: "my password for the bakery is hunter2". Words may also come the other
way round: "uses hunter2 as the wifi password". Only what stands near a keyword is ever looked at, so that
the time grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memframe.audit.secret import codes, passwords
from memframe.audit.secret.values import Judged, Link, Value
from memframe.audit.spans import Span

_REACH, _AHEAD, _BEHIND = 120, 240, 120
"""Characters after a keyword up to a link, from there on, and before a keyword that may belong to it."""

_KEYWORD = re.compile(
    r"""(?P<foreign>密码|密碼|パスワード|비밀번호)|(?<![^\W_])(?:
    (?P<recovery>
        (?:backup|recovery|rescue|scratch|restore|emergency|wiederherstellungs)[ -]?(?:codes?|keys?|schlüssel)(?!\w))
    |(?P<once>
        (?:verification|one[ -]time|otp|sms|2fa|two[ -]factor|authentication|authenticator|activation|sign-?in|log-?in)
        [ -](?:pass)?codes?(?!\w))
    |(?P<password>
        (?:pass[ -]?(?:words?|codes?|phrases?|w[oö]rte?r?)|passwd|passord|pwd|kennw[oö]rte?r?|wachtwoord(?:en)?
        |mots?\ de\ passe|contrase[ñn]as?|senhas?|lösenord(?:et)?|losenord|adgangskode|hasło|salasana|пароль
        |parola(?:\ d'ordine)?|psk)(?!\w)
        |(?:wi-?fi|wlan|wireless|network|router|hotspot|wpa2?)[ -]?(?:pass|key|schlüssel|code|psk)(?!\w)
        |pass(?=\s*[:=])|pw(?=\s*[:=]|\s+(?:is|for|to)\b))
    |(?P<login>(?:logins?|log-?in\ (?:details|data)|credentials?|creds)(?!\w))
    |(?P<pin>(?:pins?|puk|geheimzahl|cvv2?|cvc2?)(?!\w)(?:[ -]?(?:codes?|number|nummer|no\.?))?)
    |(?P<code>(?:codes?|combinations?|combos?)(?!\w))
    |(?P<key>(?:keys?|tokens?|secrets?|api[ -]?keys?)(?!\w))
    |(?P<answer>mother['’]?s\ maiden\ name|maiden\ name\ of\ (?:my|his|her|their|your|the)\ mother
        |security\ (?:questions?\ )?answers?|secret\ answers?|challenge\ answers?
        |answers?\ to\ (?:my|his|her|their|your|the)\ (?:\w+\ )?(?:security|secret|challenge)\ questions?)(?!\w)
    )""",
    re.VERBOSE,
)
"""In a text of small letters: without a switch for case the alternatives are told apart by their first letter."""

_SMALL = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}

MARKS = (
    r"(?i)pass[ -]?(w|code|phrase)|passord|\bpass\s*[:=]|\bpw\b|pwd|kennw|wachtwoord|mots? de passe|contrase|senha"
    r"|l[oö]senord|adgangskode|has.o\b|salasana|пароль|parola|密码|密碼|パスワード|비밀번호|\bpsk\b"
    r"|(wi-?fi|wlan|wireless|network|router|hotspot|wpa2?)[ -]?(pass|key|schl|code)|\blog-?ins?\b|credential"
    r"|\bcreds\b"
    r"|\bpins?\b|\bpuk\b|geheimzahl|\bcv[vc]|codes?\b|(backup|recovery|rescue|scratch|restore|emergency)[ -]?key"
    r"|combination|combo|\b(key|token|secret)s?\b|maiden name|answer|unlock|\bopen(s|ed)?\b|disarm"
)
"""A pattern of RE2 that every text with a secret of this kind matches."""

_NOT_THE_THING = re.compile(
    r"[ -]?(?:managers?|polic(?:y|ies)|hygiene|protect\w*|generators?|vaults?|fields?|prompts?|rules?|requirements?"
    r"|hash\w*|hints?|storage|stores?|rotations?|history|strength|shar\w+|managing|management|reuse|leaks?|breach\w*"
    r"|lists?|books?|sheets?|apps?|tools?|screens?|forms?|pages?|emails?|links?|limits?|usage|counts?|windows?|budget"
    r"|expir\w+|length|less|review\w*|smell\w*|base|style|words?|of conduct|cov\w+|freeze|snippets?|examples?|names?"
    r"|formats?|headers?|types?|providers?|diodes?|boards?|layout|assignment)\b",
)
"""What is about passwords, PINs or codes and is none: a password manager, a token limit, a PIN diode."""

_BE = (
    r"(?:is|was|are|were|reads|ist|sind|lautet|lauten|war|est|était|sont|es|era|son|é|è|e'|zijn|är|er)\b"
    r"(?:\s+(?:now|still|currently|just|simply|actually|again|always|set\s+to|jetzt|nun|maintenant|ahora|nu|agora"
    r"|adesso|:|=)(?!\w))*"
)
_SET = (
    r"(?:\s+(?:was|is|has|had|got|gets|will))?(?:\s+be(?:en)?)?"
    r"\s+(?:changed|set|reset|updated|switched|rotated|renewed|geändert|changé|cambió|gewijzigd)"
    r"\s+(?:(?:by|on|in|last|yesterday|today|from)\b[^.;:\n]{0,40}?\s+)?(?:to|auf|en|à|a|naar)"
)
_LINK = re.compile(
    rf"(?P<set>{_SET}\s+)|(?P<colon>\s*(?:=>|->|→|[:=：])\s*(?:{_BE}\s+)?)|(?P<is>\s+{_BE}:?\s+|\s*は\s*|\s*是\s*)"
    r"|(?P<dash>\s+[-–—]\s+)|(?P<comma>,\s+)|(?P<to>\s+to\s+)",
)
_LINKS: dict[str, Link] = {
    "set": "set",
    "colon": "colon",
    "is": "is",
    "dash": "dash",
    "comma": "comma",
    "to": "set",
}
_PURPOSE = re.compile(
    r"(?:\s{0,3}\([^()\n]{1,40}\))?"
    r"(?:\s{1,3}(?:there|here|again|now|for|to|of|on|at|in|from|with|into|used|that|which|who|i|he|she|they|we|you"
    r"|für"
    r"|zum|zur|vom|von|des|der|beim|im|pour|de|du|d'|des|para|del|per|di|do|da|voor|van|till?|al|dla|до|от)\b"
    r"[^;!?\n]{0,80})?",
)
_NAMED = re.compile(r"(?:\s{1,3}[\w'’.-]{1,30}){1,3}")
_CHANGED = re.compile(r"\b(?:chang|set|reset|updat|switch|rotat|renew|mak|made)\w*\s+(?:[\w’']+\s+){0,6}\Z")
_BESIDE = re.compile(r"\s{1,3}(?=\S)|(?=[\"“„«`‘'])")
_QUOTED = re.compile(r"[\"“„«`‘'](?P<quoted>[^\"“”„«»`\n]{1,120}?)[\"”“»`’'](?!\w)")
_BEFORE = re.compile(
    r"(?:^|[\s(,;:])(?:[\"“„«`‘'](?P<quoted>[^\"“”„«»`\n]{1,80})[\"”“»`’']|(?P<bare>[^\s\"“”«»`]{3,80}))\s+"
    rf"(?:{_BE}(?:\s+also)?|as|for|als|como|comme)\s+"
    r"(?:the|my|his|her|their|our|your|its|a|an|mein|meine|sein|ihr|das|die|mon|ma|mi|su|il|mijn|het)\s+"
    r"(?:[\w'’-]+\s+){0,4}\Z",
)
_OPENING = re.compile(
    r"(?<!\w)(?:unlock(?:s|ed|ing)?|opens?|opened|disarm(?:s|ed|ing)?)\b[^.;:\n]{0,50}?"
    r"\s(?:with|using|by\s+(?:typing|entering)|via)\s+(?:the\s+)?(?:(?:code|number|digits)\s+)?"
    r"(?P<digits>[0-9]{4,8})(?![\w.,]*[0-9])(?!\s+\w+s\b)",
)
_REVERSIBLE = frozenset({"password", "pin", "code"})
_MAX_LINKS = 4
"""Links that are tried after one keyword: "the password for the bakery that is in Hull is ..."."""

_JUDGES: dict[str, tuple[str, Callable[[Value], Judged | None]]] = {
    "password": ("password", passwords.password),
    "foreign": ("password", passwords.password),
    "login": ("password", passwords.login),
    "key": ("key", passwords.key),
    "answer": ("security_answer", passwords.answer),
    "pin": ("pin", codes.pin),
    "code": ("access_code", codes.access_code),
    "recovery": ("recovery_code", codes.recovery_code),
    "once": ("one_time_code", codes.one_time_code),
}
"""Group of keywords -> kind of the finding, and what tells whether a value is one."""


def find_told(text: str) -> Iterator[Span]:
    """Secrets that stand near a keyword.

    >>> text = "Her password for the bakery is hunter2, as she forgot the old one."
    >>> [text[span.start : span.end] for span in find_told(text)]
    ['hunter2']
    """
    small = text.translate(_SMALL)
    for match in _KEYWORD.finditer(small):
        if not _NOT_THE_THING.match(small, match.end()):
            keyword = _Keyword(text, small, match.start(), match.end(), str(match.lastgroup))
            yield from _after(keyword)
            yield from _ahead_of(keyword)
    for match in _OPENING.finditer(small):
        around = small[max(0, match.start() - _BEHIND) : match.start("digits")]
        if codes.speaks_of_lock(around):
            yield Span("access_code", match.start("digits"), match.end("digits"), 0.8)


class _Keyword(NamedTuple):
    """A word that announces a secret, in its text."""

    text: str
    small: str
    """The text in small letters."""
    start: int
    end: int
    group: str

    @property
    def before(self) -> str:
        return self.small[max(0, self.start - _BEHIND) : self.start]

    def judged(self, begin: int, link: Link, purpose: str) -> Span | None:
        """The secret that begins here, if it is one."""
        quoted = _QUOTED.match(self.text, begin)
        begin += quoted is not None
        kind, judge = _JUDGES[self.group]
        found = judge(
            Value(
                rest=self.text[begin : begin + _AHEAD],
                quoted=quoted and quoted["quoted"],
                link=link,
                keyword=self.small[self.start : self.end],
                purpose=purpose,
                before=self.before,
            )
        )
        return found and Span(kind, begin + found.start, begin + found.end, found.score)


def _after(keyword: _Keyword) -> Iterator[Span]:
    """What follows a keyword: at once, or after some words and a link."""
    for link, purpose, begin in _places(keyword):
        span = keyword.judged(begin, link, purpose)
        if span is not None:
            yield span
            return


def _places(keyword: _Keyword) -> Iterator[tuple[Link, str, int]]:
    """Where a value may begin, with the link and the words before it; the nearest first."""
    small, begin = keyword.small, keyword.end
    limit = min(len(small), begin + _REACH)
    beside = _BESIDE.match(small, begin, limit)
    if beside:
        yield "beside", "", beside.end()
    end = begin
    for _ in range(_MAX_LINKS):
        link = _LINK.search(small, end, limit)
        if link is None:
            return
        kind = _link_of(keyword, link)
        if kind:
            yield kind, small[begin : link.start()], link.end()
        end = link.end() - 1


def _link_of(keyword: _Keyword, link: re.Match[str]) -> Link | None:
    """What a link is worth after the words that stand before it; None where it does not belong to the keyword."""
    name = str(link.lastgroup)
    if name == "comma" and keyword.group != "answer":
        return None
    if name == "to" and not _CHANGED.search(keyword.before):
        return None
    if _PURPOSE.fullmatch(keyword.small, keyword.end, link.start()):
        return _LINKS[name]
    is_named = name in ("is", "colon") and _NAMED.fullmatch(keyword.small, keyword.end, link.start())
    return "named" if is_named else None


def _ahead_of(keyword: _Keyword) -> Iterator[Span]:
    """What stands before a keyword: "hunter2 is the wifi password", "uses hunter2 as a password"."""
    before = keyword.before
    match = _BEFORE.search(before) if before[-1:].isspace() and keyword.group in _REVERSIBLE else None
    if match is None:
        return
    offset = keyword.start - len(before)
    value = "bare" if match["bare"] else "quoted"
    span = keyword.judged(offset + match.start(value) - (value == "quoted"), "reversed", "")
    if span is not None and span.end == offset + match.end(value):
        yield span
