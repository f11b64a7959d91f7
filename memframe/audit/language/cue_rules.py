"""Rules: the words by which a memory says that something is no longer as it was, and where it says what was."""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """One kind of cue: it can only be where one of the hints stands, all in lower case."""

    kind: str
    strength: float
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    sign: str
    """Matches, as RE2, every text that has the cue, and some others: one of the hints, or more than that."""


def _rule(kind: str, strength: float, hints: str, pattern: str, sign: str = "") -> Rule:
    alternatives = hints.split("|")
    return Rule(
        kind,
        strength,
        tuple(alternatives),
        re.compile(pattern),
        sign or "|".join(map(re.escape, alternatives)),
    )


_UNTIL = r"(?:[^.;:!?\n]|[.:](?=\d))"
_GAP = 100
"""Characters at most between two words of one cue: without a bound, time grows with the square or cube of a text."""

_OLD = rf"(?P<old>{_UNTIL}{{1,{_GAP}}}?)"
_OLD_BEFORE = rf"\b(?P<old>[^.,;:!?\n]{{1,{_GAP}}}?)"
_NEW = rf"(?P<new>(?:[^.,;:!?\n]|[.,:](?=\d)){{1,{_GAP}}})"
_WHERE = r"(?:at|in|on|for|with|from|by|since)"
_NEW_HERE = rf"(?P<new>(?:{_WHERE} )?[^.,;:!?\n]{{1,{_GAP}}}?)(?= {_WHERE}\b|[.,;:!?\n]|$)"
_NEW_FROM = r"(?P<new>[^.,;:!?\n]{1,40}?)"
_STOP = r"(?=$|[,;!?\n]|[.:](?!\d)| and now\b| but\b| now\b| since\b| in favou?r\b)"
_STOP_EARLY = r"(?=$|[,;!?\n(]|[.:](?!\d)| (?:and|but|now|since|to|for|in|on|at|with|because|after|as)\b)"

_TO_CHANGE = (
    "switch|chang|mov|migrat|grad|transfer|transferr|convert|rais|increas|lower|reduc|cut|rebook|"
    "transition|shift|relocat|rewritten|rewrote"
)
_CHANGED = rf"(?:{_TO_CHANGE.replace('grad', 'upgrad|downgrad')})(?:e|es|ed|d|s|ing)?"
_HAS_MOVED = (
    "moved|moving|relocated|reassigned|switched|switching|changed|migrated|upgraded|downgraded|transferred|promoted|renamed|"
    "postponed|rescheduled|rebooked|pushed back|brought forward|converted|went over"
)
_HAS_ENDED = (
    "quit|dropped|ditched|abandoned|called off|lost interest in|"
    "cancelled|canceled|sold|gave up|given up|stopped|resigned from|retired from|ended|gave away"
)
_DISMISSED = "laid off|fired|let go|made redundant|dismissed|sacked|expelled"
_IS_OVER = "sold|cancelled|canceled|closed|out of use|abandoned|discontinued|terminated"
_OVER = "(?:used|valid|needed|in use|available|active|true|required|supported|relevant|offered|correct)"
_PARTED = (
    "broke up|split up|divorced|separated|moved out|stepped down|took over|passed away|died|turned out not"
)
_HAS_DONE = (
    "started|finished|completed|bought|found|received|passed|married|gave birth|graduated|launched|adopted"
)
_BEFORE = "was|were|ex|formerly|previously|before|earlier"
_IS_GONE = "left|retired|gone|broke|died|removed|shut down|out"
_MOVED_ELSEWHERE = (
    "umgezogen|umgestiegen|gewechselt|déménagé|changé|remplacé|cambió|cambiado|cambiato|mudó|mudado|trasferito|"
    "trasferita|verhuisd"
)
_NOW_ELSEWHERE = "jetzt|inzwischen|neuerdings|seit|désormais|maintenant|depuis|ahora|desde|adesso|sinds|agora"
_AUXILIARY = "is|are|am|was|were|does|do|did|has|have|had|can|could|will|would"
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"

RULES: tuple[Rule, ...] = (
    _rule(
        "switched",
        1.0,
        _TO_CHANGE,
        rf"\b{_CHANGED}\b{_UNTIL}{{0,{_GAP}}}?\bfrom {_OLD} (?:over )?to {_NEW}",
        rf"(?:{_TO_CHANGE}).*from .* to ",
    ),
    _rule(
        "switched",
        1.0,
        " from ",
        rf"\b{_CHANGED}\b{_UNTIL}{{0,30}}? to {_NEW_FROM} from {_OLD}{_STOP_EARLY}",
        rf"(?:{_TO_CHANGE}).* to .* from ",
    ),
    _rule(
        "switched",
        1.0,
        "ditched|traded|swapped|exchanged",
        rf"\b(?:ditched|traded|swapped|exchanged)(?: in)? {_OLD} for {_NEW}",
    ),
    _rule("switched", 1.0, "up to|down to", rf"\b(?:up|down) to {_NEW_FROM} from {_OLD}{_STOP_EARLY}"),
    _rule("switched", 1.0, "up from|down from", rf"\b(?:went|gone|are|is) (?:up|down) from {_OLD} to {_NEW}"),
    _rule(
        "switched",
        1.0,
        "von ",
        rf"\bvon {_OLD} (?:nach|zu|zur|zum|auf) (?P<new>\w[\w -]{{0,{_GAP}}}?) (?:um)?ge\w+",
    ),
    _rule("instead", 1.0, "instead of|in place of", rf"\b(?:instead|in place) of {_OLD}{_STOP}"),
    _rule("instead", 1.0, "rather than", rf"\brather than {_OLD}{_STOP}"),
    _rule(
        "instead", 1.0, "but not|, not to", rf"\b(?:but not|, not to(?= (?:the |a )?\w+\W*$)) {_OLD}{_STOP}"
    ),
    _rule("instead", 0.9, "instead", r"\binstead\b(?! of)"),
    _rule("no_longer", 1.0, "no longer", rf"\bno longer\b {_OLD}{_STOP}"),
    _rule(
        "no_longer",
        1.0,
        "no longer",
        rf"(?:^|[,;] ?)(?:and |but )?(?P<old>[^,;]{{1,{_GAP}}}?) (?:is|are) no longer {_OVER}\b",
    ),
    _rule(
        "no_longer",
        1.0,
        "any more|anymore|any longer",
        rf"(?:\bnot|n['\u2019]t|\bno|\bnever)\b {_OLD} (?:any ?more|any longer)\b",
    ),
    _rule("used_to", 1.0, "used to", rf"\bused to (?!it\b|this\b|that\b|being\b|the\b){_OLD}{_STOP}"),
    _rule(
        "replaced", 1.0, "replaced", rf"\breplaced (?:the |his |her |their |my )?{_OLD} (?:with|by) {_NEW}"
    ),
    _rule(
        "replaced", 1.0, " replaced ", rf"\b(?P<new>[^.,;:!?\n]{{1,{_GAP}}}?) (?:has )?replaced {_OLD} as\b"
    ),
    _rule(
        "replaced",
        1.0,
        "replaced by|replaced with",
        rf"{_OLD_BEFORE} (?:was|were|has been|have been|got) replaced (?:by|with) {_NEW}",
    ),
    _rule("replaced", 1.0, "replaced", r"\b(?:was|were|has been|have been|got) replaced\b"),
    _rule("replaced", 1.0, _BEFORE, rf"[,;(] ?(?:{_BEFORE}):? {_OLD}(?=\)|$|[,;])", rf"[,;(] ?(?:{_BEFORE})"),
    _rule("ended", 0.9, _IS_GONE, rf"[,;(] ?\w[\w -]{{1,30}}?(?: has| is)? (?:{_IS_GONE})\)?\W*$"),
    _rule(
        "replaced",
        1.0,
        "replac",
        rf"[,;:(] ?replac(?:ed|es|ing) (?:the |his |her |their |my )?{_OLD}{_STOP_EARLY}",
    ),
    _rule(
        "ended",
        0.9,
        _HAS_ENDED,
        rf"(?<!not )(?<!n't )\b(?:{_HAS_ENDED})(?! off| by) {_OLD}{_STOP_EARLY}",
    ),
    _rule(
        "ended",
        0.8,
        "left ",
        rf"\bleft (?!her\b|him\b|them\b|it\b|me\b|us\b|an?\b|corner\b|side\b|hand\b|arm\b){_OLD}{_STOP_EARLY}",
    ),
    _rule("ended", 0.8, "after leaving", rf"\bafter leaving {_OLD}{_STOP_EARLY}"),
    _rule("ended", 0.9, _IS_OVER, rf"\b(?:is|are|was|were|been|got) (?:{_IS_OVER})\b"),
    _rule("ended", 0.9, " off |done with", rf"\b(?:(?:is|are|got|now) off|done with) {_OLD}{_STOP_EARLY}"),
    _rule("ended", 0.9, _DISMISSED, rf"\b(?:was|were|been|got|is) (?:{_DISMISSED})\b"),
    _rule(
        "ended",
        0.9,
        f"{_PARTED}|gave ",
        rf"\b(?:{_PARTED})\b|\bgave\b.{{1,{_GAP}}}\baway\b",
        rf"{_PARTED}|gave.*away",
    ),
    _rule("fulfilled", 0.9, _HAS_DONE, rf"^{_UNTIL}{{0,40}}?\b(?:{_HAS_DONE})\b"),
    _rule("moved", 0.9, _HAS_MOVED, rf"\b(?:{_HAS_MOVED})\b{_UNTIL}{{0,{_GAP}}}? to {_NEW}"),
    _rule("moved", 0.7, _HAS_MOVED, rf"\b(?:{_HAS_MOVED})\b"),
    _rule(
        "moved",
        0.9,
        "raised|increased|lowered|reduced|extended|shortened|bumped",
        rf"\b(?:raised|increased|lowered|reduced|extended|shortened|bumped)\b{_UNTIL}{{1,60}}? to {_NEW}",
    ),
    _rule("moved", 0.8, "went up|gone up|went down|gone down", r"\b(?:went|gone) (?:up|down)\b"),
    _rule(
        "moved",
        0.8,
        "raised|increased|lowered|reduced|extended|shortened",
        r"\b(?:was|were|been|has|have) (?:raised|increased|lowered|reduced|extended|shortened)\b",
    ),
    _rule(
        "correction",
        1.0,
        "correction|update|edit|erratum|scratch that|disregard",
        r"^\W*(?:correction|update|edit|erratum)\b|\b(?:scratch that|disregard)\b",
    ),
    _rule(
        "correction",
        0.8,
        "actually|in fact|turned out|turns out|was wrong|mistaken|after all",
        r"\bactually\b|\bin fact\b|\bturn(?:s|ed) out\b|\bwas wrong\b|\bmistaken\b|\bafter all(?=$|[.,;!])",
    ),
    _rule(
        "denied",
        0.8,
        " not |n't |n\u2019t ",
        rf"\b(?:(?:{_AUXILIARY}) not|\w+n['\u2019]t) {_OLD}{_STOP}",
        rf"(?:{_AUXILIARY}) not |n['\x{{2019}}]t ",
    ),
    _rule("now", 0.9, "is now|are now", rf"\b(?:is|are) now {_NEW_HERE}"),
    _rule("now", 0.9, "as of|from now on", r"\b(?:as of|from now on)\b"),
    _rule(
        "now",
        0.7,
        "now|these days|become|became",
        r"\b(?:now|nowadays|these days|has become|have become|became)\b",
    ),
    _rule("now", 0.9, " got ", r"\bgot (?:married|engaged|divorced|promoted|fired)\b(?!.{0,100}\b\d{4}\b)"),
    _rule("now", 0.6, "new", r"\bnew\b"),
    _rule("now", 0.6, "since ", rf"\bsince (?:last |this )?(?:\w+ )?(?:(?:19|20)\d\d|{_MONTHS}|then)\b"),
    _rule("now", 0.6, "from ", r"\bfrom \w+ (?:\d+ )?on\b", r"from [^ ]+ (?:[^ ]+ )?on"),
    _rule("no_longer", 1.0, "nicht mehr|ya no ", rf"\b(?:nicht mehr|ya no) {_OLD}{_STOP}"),
    _rule("no_longer", 1.0, " plus ", rf"\bn(?:e |['\u2019])\w+ plus {_OLD}{_STOP}"),
    _rule("no_longer", 1.0, "nicht mehr|kein", r"\bnicht mehr\b|\bkein(?:e[nmr]?)? \w+ mehr\b"),
    _rule(
        "no_longer",
        1.0,
        " plus|ya no|più|meer|já não",
        r"\bn(?:e |['\u2019])\w+ plus\b|\bya no\b|\bnon \w+ più\b|\bniet (?:\w+ )?meer\b|\bgeen \w+ meer\b|\bjá não\b",
    ),
    _rule("no_longer", 1.0, "不再|もう", r"不再|もう"),
    _rule(
        "instead",
        1.0,
        "statt|au lieu|en lugar|en vez|invece|in plaats",
        r"\b(?:an)?statt\b|\bau lieu d|\ben (?:lugar|vez) de\b|\binvece di\b|\bin plaats van\b",
    ),
    _rule("moved", 0.9, _MOVED_ELSEWHERE, rf"\b(?:{_MOVED_ELSEWHERE})\b"),
    _rule("moved", 0.9, "搬到|换成|改成", r"搬到|换成|改成"),
    _rule("now", 0.7, _NOW_ELSEWHERE, rf"\b(?:{_NOW_ELSEWHERE})\b"),
    _rule("now", 0.7, "现在|现已|今は", r"现在|现已|今は"),
)
