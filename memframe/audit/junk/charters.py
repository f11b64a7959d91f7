"""Charters: what is said of an assistant in the third person, what it is, has and should do."""

from __future__ import annotations

from memframe.audit.junk.signs import Signal
from memframe.audit.language.vocabulary import one_of

BEGIN = r"\A\W{0,4}"
"""Where a text begins, whatever signs stand before its first word."""

MACHINE = one_of("ai, assistant, agent, chatbot, bot, language model, copilot, co-?pilot, llm")
"""What an assistant is called."""

_THE_MACHINE = rf"(?:^|[.\n])[ \t]{{0,8}}(?:the |this )?{MACHINE}"
_ANY_MACHINE = one_of("ai, assistant, agents?, chatbot, bot, model")
_SUBJECT = rf"(?:#+ )?(?:the |this |our |an? )?(?:ai |virtual |coding |planner )?{_ANY_MACHINE}"

_TOLD = one_of(
    "told, instructed, configured, supposed, expected, designed, required, allowed, permitted, forbidden, asked",
    "named, called, meant, hoped",
)
_IS_MADE = one_of(
    "configured, instructed, designed, required, allowed, forbidden, expected, running, powered, called"
)
CHARTERS = (
    Signal.of(
        3,
        rf"{_THE_MACHINE}['’]s (?:name|role|purpose|persona|task|goal|tone|identity)\b",
        rf"{_THE_MACHINE} "
        + one_of(
            made=f"is {_IS_MADE}",
            duties="should, must, shall, cannot, has access, never, always",
            deeds="responds, operates, reads, loads, checks",
        )
        + r"\b",
    ),
    Signal.of(
        2,
        rf"{BEGIN}(?:the |an? )?(?:ai|chatbot|llm|language model) (?:should|must|never|always|will|can|may)\b",
    ),
    Signal.of(3, rf"\b{MACHINE}['’]?s? (?:persona|identity|profile|name)\b"),
    Signal.of(
        4,
        rf"{BEGIN}{_SUBJECT} (?:was|were|is|has been|have been) (?:\w+ly )?{_TOLD}",
        rf"{BEGIN}{_SUBJECT} (?:should|must|shall|may|can|could|would|ought to|needs? to|has to)\b",
        rf"{BEGIN}{_SUBJECT} "
        + one_of(
            has="knows how, has been, has access, has (?:the )?(?:following )?(?:tools|skills)",
            has_one=r"has an? (?:\w+ )?(?:tool|skill) (?:and|to|for|that|called)",
            does="reads, uses, checks, keeps, acts, plays, speaks, follows, responds, lives, runs",
        )
        + r"\b",
        rf"{BEGIN}{_SUBJECT} is (?:an?|the) (?:\w+[ -]){{0,4}}(?:{MACHINE}|model|companion|helper)\b",
    ),
    Signal.of(
        4,
        rf"{BEGIN}{_SUBJECT}['’]s? (?:primary |main |current )?"
        + one_of(
            role="role, goal, task, job, purpose, tone, style, behaviou?r, signature",
            means="instructions?, workspace, tools?, skills?, context, rules?, memory, system, knowledge, training",
        )
        + r"\b",
    ),
    Signal.of(1, rf"{BEGIN}{_SUBJECT}\b"),
    Signal.of(
        5,
        r"\b"
        + one_of(
            "it would be (?:good|nice|great|better|best|ideal), it is (?:hoped|expected|desired)",
            "ideally, preferably, i(?:['’]d| would) (?:want|like|prefer|love)",
        )
        + rf"\b[^.\n]{{0,30}}\b{_ANY_MACHINE}\b",
        rf"\b{_ANY_MACHINE}\b[^.\n]{{0,20}}\b(?:ideally|preferably)\b",
    ),
)
"""What an assistant is or should do."""
