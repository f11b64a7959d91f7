"""Feedback loops: the memory tool's own words, stored as memories, one around the other.

Around a fact they are only a wrapping, and the fact must not be lost with it: what is inside is compared with
the other memories before anything is proposed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MEMORIES = r"(?:memor(?:y|ies)|facts?|notes?|memory entr(?:y|ies))"
_DONE = (
    r"(?:stored|saved|added|recorded|created|updated|written|retrieved|recalled|remembered|logged|noted"
    r"|deleted|removed"
    r"|extracted|merged|consolidated|fetched|loaded)"
)
_TOOL = (
    r"(?:(?:save|add|store|create|update|delete|search|recall|get|list|write|read|upsert|insert|manage)[_ ]?"
    r"(?:memory|memories)|memory[_ ](?:save|add|store|create|update|delete|search|tool|write))"
)
_RETURNED = r"(?:called|executed|succeeded|failed|returned|completed|ok|with)"
_WRAPPINGS = (
    # Memory stored successfully to ...
    (
        rf"(?:(?:the|new|long-term|user|existing|relevant|your|my|following|duplicate"
        rf"|all) )*{_MEMORIES} (?:id )?(?:#?[\w-]+ )?"
        rf"(?:(?:was|were|has been|have been|is|are|successfully|already) )*(?:{_DONE}|exists?|skipped"
        rf"|found)(?: successfully)?"
        r"(?: (?:(?:to|in|from|into)|with (?:the )?(?:new|latest)) [\w -]{1,30})?"
    ),
    # Saved to memory, retrieved 5 memories
    (
        rf"(?:successfully )?(?:{_DONE}|found) (?:\w+ )?(?:[0-9]+ )?(?:to (?:long-term )?memory|(?:in"
        rf"|from) memory"
        r"|(?:relevant |new |duplicate |existing )*memor(?:y|ies)|(?:new )?facts?)(?: (?:about|for"
        r"|matching|on) [^.:\n]{1,40})?"
    ),
    # Tool call save_memory succeeded, called search_memory
    (
        rf"(?:(?:tool (?:call|result|output)|function call|called"
        rf"|calling)\W{{1,3}})?{_TOOL}(?:\([^()\n]{{0,80}}\)(?:\s*(?:->|=>|→)[^\n]{{0,40}})?)?"
        rf"(?:\W{{1,3}}{_RETURNED}[^.:\n]{{0,40}})?"
    ),
    # I've saved that, I'll remember your ...
    (
        r"(?:(?:ok(?:ay)?|sure|got it|noted)[,!.:]? )?i(?:['’]ve| have|['’]ll| will) (?:now )?"
        rf"(?:{_DONE}|remember|save|store|note|keep) (?:this|that|it|your|my|our|the"
        rf"|in)\b(?: [\w'’-]+){{0,5}}?"
    ),
    # Based on stored memories
    (
        r"(?:based on|according to|from|as per) (?:(?:my|the|your|stored|previous|retrieved|existing"
        r"|user['’]?s?) "
        r"(?:\w+ )?)?memor(?:y|ies)"
    ),
    # The user's memory contains
    (
        r"(?:(?:the|my|stored|user['’]?s?) )*memor(?:y|ies)(?: (?:store|bank|entry|record))? "
        r"(?:says?|states?|indicates?|contains?|shows?|includes?|notes?)(?: that)?"
    ),
    # Recalled memory: Saved:
    (
        r"(?:recalled|retrieved|stored|saved|relevant|new|updated|existing) (?:memory|memories|fact)"
        r"(?: (?:from|about|for) [\w ]{1,40}(?=:))?"
    ),
    "model set context updated",
    # Memory consolidation complete
    (
        r"memory (?:consolidation|clean-?up|flush|compaction|sync|search|extraction|update)(?: is| has)? "
        r"(?:completed?|finished|failed|done|returned)(?: [0-9]+ \w+)?"
    ),
    # The assistant remembered that
    (
        rf"(?:the )?(?:assistant|ai|agent"
        rf"|bot) (?:has )?(?:successfully )?{_DONE} (?:from (?:long-term )?memory )?"
        r"(?:that\b|(?:a |the |this |that )?(?:new )?(?:memory|fact|information|preference"
        r"|detail)s?(?: about the user| for (?:later|future \w+))?)"
    ),
    r"(?:(?:(?:the )?user['’]?s )?memory|saved|stored|noted|recalled|remembered)(?=:)",
)
_WRAPPING = re.compile(
    rf"\W{{0,4}}(?:(?:mem0|memory|assistant|system|tool(?: result| output)?)\s?[:>]\s*)?(?:{'|'.join(_WRAPPINGS)})"
    r"(?: \([^()\n]{1,40}\))?\s*(?:[:.,;!–—-]+|$|(?<=that)\s)\s*[\"'“„«]?",
    re.IGNORECASE,
)
_AGAIN = re.compile(
    r"\W{0,3}(?:the )?(?:user|assistant) (?:said|says|mentioned|stated|noted)(?: that)?\W{1,3}", re.IGNORECASE
)
_DEEPEST = 12
_ENDS = " \t\n\"'“”„«».!"
_NO_FACT = re.compile(
    r"(?:(?:[0-9]+|no|none|nothing|successfully|success|ok|done|true|updated|deleted|added|skipped|items?"
    r"|results?|found|merged|removed"
    r"|\W)\s*)*",
    re.IGNORECASE,
)
_LONGEST = 2000

_WHAT = r"(?:memor(?:y|ies)|facts?|information|preferences?|details?|insights?)"
_KIND = (
    r"(?:(?:new|relevant|further|other|specific|additional|personal|useful|important|factual|long-term"
    r"|meaningful"
    r"|significant|user) )*"
)
_GAINED = (
    r"(?:found|extract(?:ed)?|stored?|saved?|remember(?:ed)?|record(?:ed)?|retrieved?|add(?:ed)?|shared"
    r"|mentioned"
    r"|provided|detected|identified|match(?:ed)?|returned)"
)
_NOTHING_GAINED = re.compile(
    r"(?![^\n]*\b(?:his|her|their|my|our)\b)"
    rf"\W{{0,3}}(?:there (?:is|are|was|were) )?(?:no {_KIND}{_WHAT}|nothing(?: new)?) (?:(?:was|were|is|are"
    rf"|could be|to be|to) )?"
    rf"(?:{_GAINED}|about the user)\b[^\n]{{0,60}}"
    rf"|\W{{0,3}}(?:the )?(?:user|conversation|message|input|chat) (?:did|does|has) ?n[o'’]t (?:share"
    rf"|provide|mention"
    rf"|contain|reveal|disclose|include|express)(?:ed|d)? any {_KIND}{_WHAT}\b[^\n]{{0,60}}",
    re.IGNORECASE,
)

MARKS = (
    r"(?i)memor(?:y|ies)|model set context"
    r"|\b(?:assistant|ai|agent|bot) (?:has )?(?:stored|saved|recalled|remembered|noted)"
    r"|\b(?:stored|saved|added|retrieved|recalled|found) (?:[0-9]+ )?(?:new )?(?:facts?|notes?)"
    r"|^\W*(?:there (?:is|are|was"
    r"|were) )?no(?:thing)? |n[o'’]t \w+ any |\b(?:facts?|notes?) (?:was |were |has been |have been |is "
    r"|are |successfully )*(?:stored"
    r"|saved|added|recorded|created|updated"
    r"|written|retrieved|recalled|remembered|logged|noted|deleted|removed|extracted|merged|fetched)"
    r"|i(?:['’]ve"
    r"|['’]ll| have| will) (?:now )?(?:stored|saved|added|recorded"
    r"|updated|remember|save|store|note|keep|noted)|(?:saved|stored|noted|recalled|remembered):|(?:said|says"
    r"|mentioned"
    r"|stated"
    r"|noted)(?: that)?\W{1,3}(?:the )?(?:user|assistant) (?:said|says|mentioned|stated)"
)
"""A pattern of RE2 that every such text matches."""


class Wrapped(NamedTuple):
    """What is inside the words of a memory tool."""

    inner: str
    depth: int
    """How many wrappings were taken off."""


def unwrap(text: str) -> Wrapped | None:
    """What is left without the words of a memory tool around it; None where there are none.

    >>> unwrap('Memory stored: "Memory stored: likes tea."')
    Wrapped(inner='likes tea', depth=2)
    >>> unwrap("Memory updated successfully."), unwrap("Has a good memory for faces")
    (Wrapped(inner='', depth=1), None)
    """
    if len(text) > _LONGEST:
        return None
    if _NOTHING_GAINED.fullmatch(text):
        return Wrapped("", 1)
    inner, depth, n_said = text.strip(), 0, 0
    while depth + n_said < _DEEPEST:
        if match := _WRAPPING.match(inner):
            depth += 1
        elif match := _AGAIN.match(inner):
            n_said += 1
        else:
            break
        inner = inner[match.end() :].strip()
    if not depth and n_said < 2:
        return None
    inner = inner.strip(_ENDS)
    return Wrapped("" if _NO_FACT.fullmatch(inner) else inner, depth + max(0, n_said - 1))


_LABEL = re.compile(
    r"\W{0,4}(?:(?:(?:the )?(?:user['’]?s |new )?(?:memory|fact)(?: (?:updated|saved|added|stored))?|saved|stored|noted"
    r"|remembered)\s?[:–-]|i(?:['’]ll| will) remember that\b)",
    re.IGNORECASE,
)


def is_labelled(text: str, depth: int) -> bool:
    """Whether the only wrapping is a word for a memory, as tools and people put it before what they keep.

    >>> is_labelled("Saved: prefers aisle seats", 1), is_labelled("Retrieved memory: prefers aisle seats", 1)
    (True, False)
    """
    return depth == 1 and _LABEL.match(text) is not None
