"""Sayings: what the files that agents are started with teach them, as memories restate it.

Such files speak in maxims without a person or a machine in them ("Private things stay private"), which no grammar
tells from a maxim of somebody's own; so that it takes words of that trade: tools, data and messages that act.
"""

from __future__ import annotations

from memframe.audit.junk.signs import Signal
from memframe.audit.language.vocabulary import one_of

_ASSISTED = one_of("the user(?:['’]s)?, users, people, your human, the human, humans?")
_HARM = one_of(
    data="exfiltrate (?:any |private )*data, leak private (?:data|things|information)",
    commands="(?:run|execute|running) destructive (?:commands?|operations?), trash (?:over|>) `?rm",
    acting="acting externally, act externally, external actions?, public posts?, half-baked repl(?:y|ies)",
    rest="self-preservation, resource acquisition, power-seeking, bypass safeguards, manipulate or persuade",
)
_MAXIM = one_of(
    privacy="private things stay private, their stuff stays theirs, you(?:['’]re| are) a guest",
    manner="""(?:be )?genuinely helpful, performatively helpful, be the assistant you['’]d, have opinions[.,] you,
    have strong
    opinions, you(?:['’]re| are) allowed to (?:disagree|have)""",
    resource="resourceful before asking, earn trust through competence, try to figure it out first",
    memory="""mental notes, no mental notes, write it down, text (?:over|>|beats) brain, (?:files|these files) (?:do|are
    your memory|are your continuity), wake up fresh""",
    groups="""participate,? (?:do not|don['’]t) dominate, quality (?:over|>) quantity, react like a human, know when to
    speak, you(?:['’]re| are) not (?:the user|their|your human)['’]?s? (?:voice|proxy)""",
    doubt="when in doubt,? ask(?: before| first|$)",
)
MAXIMS = (
    r"\A\W*(?:(?:if|when) (?:you are )?(?:unsure|uncertain|not sure)|tool|memory|format|(?:decline|refuse)\b)"
    rf"|per (?:message|reply)|{_HARM}|{_MAXIM}"
)
"""A pattern of RE2 that every text with such a saying matches."""

_FILE = r"(?:soul|agents?|user|tools?|memory|identity|bootstrap|heartbeat|boot)\.md"
_TOOL_NAME = r"[a-z]+_(?:search|get|write|read|save|send|list|call|fetch|recall)\b"
_SERVES = one_of(
    "provide, refer, decline, refuse, reply, respond, offer, suggest, explain, use, keep, always, never"
)
SAYINGS = (
    Signal.of(3, rf"\b{_HARM}"),
    Signal.of(
        5,
        r"\A\W{0,4}(?:never|do not|don['’]t|always) use [^.\n]{0,40}\b(?:per|in (?:each|every|your)) "
        r"(?:message|reply|response|answer|repl(?:y|ies))\b",
    ),
    Signal.of(5, r"\A\W{0,4}(?:respond|reply|answer|write) in the (?:same )?language (?:as|of) the user\b"),
    Signal.of(
        5,
        r"\A\W{0,4}(?:if|when) (?:you are )?(?:unsure|uncertain|not sure|in doubt),? (?:say|ask|state|admit|tell)\b",
    ),
    Signal.of(5, r"\Ayou have access to an? \w+"),
    Signal.of(
        5,
        r"\A\W{0,4}(?:tools?|tool (?:usage|use|policy)|memory policy|formatting|style guide)\s?:"
        r" (?:prefer|use|never|always|avoid|do not)\b",
    ),
    Signal.of(5, r"\A\W{0,4}be (?:careful|bold|cautious) with (?:external|internal|destructive) actions\b"),
    Signal.of(5, rf"(?:^|[.:;]\s|\A\W{{0,4}}){_MAXIM}"),
    Signal.of(2, rf"\b{_FILE}\b[^.\n]*\b(?:should|must|is to) be (?:deleted|updated|read)\b"),
    Signal.of(4, rf"\b(?:call|use|run|invoke)s? `?{_TOOL_NAME}"),
    Signal.of(3, rf"\b(?:when|if|whenever|once|unless) (?:{_ASSISTED}|asked)\b[^.\n]{{0,60}}, {_SERVES}\b"),
    Signal.of(3, r"\A\W{0,4}(?:decline|refuse) (?:all |any )?(?:requests?|questions|to)\b"),
    Signal.of(
        3, r"\byour (?:training data|knowledge) (?:ends?|stops?|cuts? off|was)\b", r"\btrained (?:by|on) \w+"
    ),
    Signal.of(
        3,
        r"\A\W{0,4}(?:the |this )?(?:assistant|agent|ai|bot|model)(?:['’]s (?:emoji|avatar|creature|vibe)| was"
        r" (?:created|built|trained|developed|made|deployed) (?:to|by|for))\b",
    ),
)
"""What agents are taught; no saying of a person alone."""
