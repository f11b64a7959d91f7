"""Errands: what somebody asked for in passing, and what went on at the keyboard meanwhile.

"User asked for a shorter version of the paragraph above", "Tests are green, opening the pull request". No word gives
an errand away. What adds up to one is who is spoken of and what he does there, things that exist in a conversation
or on a screen only, and times that are over in an hour; what belongs to somebody's life speaks against it. The three
together must come to `_ENOUGH`, and still do so without the weight of `life`; where no thing is named, deeds and times
must say more.
"""

from __future__ import annotations

from memframe.audit.junk.keyboard import ASKS, BUSY, COMMAND, DONE, ON_SCREEN, PIECE, SAID, TOPICS, TRIFLE
from memframe.audit.junk.life import LIFE
from memframe.audit.junk.signs import Sign, Signal, quoted, weight_of
from memframe.audit.language.vocabulary import one_of

_WHO = (
    r"\A\W{0,3}(?:\[\w+\]\s)?(?:the |der |die |el |la |l['’])?"
    r"(?:users?|assistant|agent|ai|bot|model|nutzer(?:in)?|usuari[oa]|utilisat\w+)\b"
)
_IS_NOW = rf"{_WHO}(?: is| was| has been)?(?: now| currently| just| still)?"
_SOON = one_of("send, check, report, create, run, try, return, finish, prepare, look, notify, retry")
_SOURCE = one_of("py, [jt]sx?, rs, go, java, cpp, rb, sh, md, json, ya?ml, toml, csv, lock")
_HANDLED = one_of(
    "committed, pushed, merged, restarted, rebooted, reran, rebuilt, redeployed, reloaded, saved"
)
_BEGIN = r"\A\W{0,6}"
_DEEDS = (
    Signal.of(2, rf"{_WHO} (?:just |also |now |then |has )?{ASKS}\b"),
    Signal.of(  # somebody is about to return, cannot decide, or is at a task
        2,
        rf"{_WHO} (?:will (?:be back|return|check|report|test|try)|wants? help)\b",
        rf"{_WHO} (?:has not decided|can(?:no|['’])t decide)\b",
        rf"{_BEGIN}(?:in the process of|the task is|bug #?[0-9]|issue #?[0-9])",
        rf"{_BEGIN}(?:the )?user['’]s current (?:task|goal|step|issue|problem|question|request|focus)\b",
        r"\bis being \w+ed\b",
        r"\bwants? help with\b",
    ),
    Signal.of(  # somebody is at it
        2,
        rf"{_IS_NOW} (?:trying to|about to|going to|in the middle of|stuck|{BUSY})\b",
        rf"{_IS_NOW} on (?:step|page|slide|line|cell|chapter|the)\b",
    ),
    Signal.of(
        3, rf"{_IS_NOW} (?:editing|running|opening|reading|compiling|debugging) [\w./-]{{1,60}}\.{_SOURCE}\b"
    ),
    Signal.of(5, rf"{_WHO} (?:has |just )?{_HANDLED} (?:the |an? |his |her )?(?:{ON_SCREEN}|changes)\W*\Z"),
    Signal.of(
        3,
        rf"\A\W{{0,3}}(?:the )?(?:sub-?)?(?:assistant|agent|ai|bot|model) (?:has |just |has just )?{DONE}\b",
    ),
    Signal.of(  # a machine at its work, or about to do it
        4,
        rf"\A\W{{0,3}}(?:the )?(?:sub-?)?(?:assistant|agent|ai|bot|model) (?:is|was) (?:now |currently )?{BUSY}\b",
        r"\A\W{0,3}(?:the )?(?:sub-?)?(?:assistant|agent|ai|bot|model) (?:will now|is about to|is going to)\b",
        rf"\A\W{{0,3}}(?:the )?(?:assistant|agent|ai|bot) will {_SOON}\b",
        r"\A\W{0,3}(?:left|still|remaining|things?) to (?:do|fix|finish)\b\s?:",
    ),
    Signal.of(  # "Still debugging ...", "Pushed ..."
        3,
        rf"{_BEGIN}(?:now |still |currently |just |next |also |in progress\W+|wip\W+)?(?:{BUSY}|{DONE})\b",
    ),
    Signal.of(  # headings of lists of tasks, and what is said at work
        2,
        _BEGIN
        + one_of(
            headings="next(?: session| steps?)?, todo, wip, in progress, progress, status, current task, task, queue",
            waiting="eta, on hold, currently on hold, blocked, pending, stopped",
            going="""continue, (?:i |we )?need to, going to, about to, let['’]?s, let me,
            we['’]?re going to, i['’]?m going to,
            i am going to""",
            errors="merge conflict, compile error, error, type error",
            steps=r"step [0-9]+, half ?way (?:through|into|done), half (?:done|of), just \w+ed",
            others="en cours, gerade",
        )
        + r"\b",
    ),
    Signal.of(  # after what was done: what comes now, and how far it is
        2,
        r"[,;:-] (?:now |still |currently )?"
        + one_of(
            "resolving, pushing, investigating, moving on, retrying, fixing, running",
            "looking into it, implementation starts, will (?:run|retry|send|continue)",
        )
        + r"\b",
        r"\b(?:step|task|part) [0-9]+ (?:is )?done",
        r"[0-9] ?/ ?[0-9]+ \w+ \w+ed\b",
        r"\bnow on (?:slide|page|step|line|chapter)",
        r"\bsays brb\b",
        r"\bwhere we left off",
    ),
    Signal.of(  # "Build failed", "Waiting on ..."
        2,
        rf"{_BEGIN}(?:branch|pr|ci|tests?|builds?|tasks?(?: [0-9]+)?|server|deploy(?:ment|ing)?|refactoring)\b",
        rf"{_BEGIN}all (?:[0-9]+ )?(?:tests?|checks?) (?:pass|passed|are|failed|succeed)\b",
        rf"{_BEGIN}(?:waiting on|working on it|[\w.-]+ (?:failed|passed|is up))\b",
    ),
)
"""Who does what."""

_WHICH_ONE = one_of(
    places="above, last, previous, next, following, first, second, third",
    others="same, other, new, current, attached, pasted, failing",
)
_CHANGED = one_of(
    deeds="sorted, translated, rewritten, formatted, changed, fixed, removed, moved",
    looks=r"shorter, longer, bigger, smaller, brighter, darker, to be \w+(?:ed|en)",
)
_OBJECTS = (
    Signal.of(3, rf"{_WHO}[^.;]{{0,20}} {ASKS} (?:the (?:assistant|ai|agent|bot|model) )?{TOPICS}\b"),
    Signal.of(  # what is over at once, whatever it is about
        3,
        rf"{_WHO} {ASKS} (?:(?:about|for) )?(?:the|today['’]s|a) (?:weather|news|forecast|headlines|traffic)\b",
        rf"{_WHO} {ASKS} (?:the assistant )?to {COMMAND}\b",
        rf"{_WHO} {ASKS} for an? {TRIFLE}\b",
        rf"{_WHO} (?:clicked|pressed|selected|tapped|picked) [\"“'‘][^\"”’\n]{{1,30}}[\"”'’]\W*\Z",
    ),
    Signal.of(4, rf"{_WHO} {ASKS} (?:for )?(?:an?|another) {TRIFLE} (?:about|on|in the style of)\b"),
    Signal.of(  # what the conversation itself holds: "the paragraph above", "a shorter version"
        3,
        rf"\bthe {_WHICH_ONE}(?: \w+)? {SAID}s?\b",
        rf"\b{SAID}s? (?:above|below|they pasted|from the list)\b",
        r"\b(?:proceed|go ahead|go on|continue|try again)\W*\Z",
        r"\b(?:the|its) (?:cause|wording|spelling)\W*\Z",
        r"\b(?:in|on) the (?:open|current|other|active) (?:tab|file|window|page|document|editor)\b",
        r"\boption [A-Z0-9]\b",
        rf"{_WHO} wants (?:the|this|that) (?:{SAID}|{PIECE})s? (?:to be )?\w+ed\W*\Z",
        rf"\bthis {SAID}\b|\banother {SAID}\b|\b(?:shorter|longer|simpler|different) {SAID}\b",
        r"\b(?:ci-dessus|oben|de arriba)\b",
        r"\b(?:last|letzte|última|dernière) (?:answer|antwort|respuesta|réponse)",
        r"\b(?:second|first|third|other|last) (?:search result|option|one)\b",
        r"\bstep (?:is|done)\b",
        r"\bthe assistant (?:just )?(?:made|wrote|gave|sent|suggested)\b",
    ),
    Signal.of(3, rf"{_WHO} {ASKS} (?:the|this|that|it) [^.]{{0,30}}\b{_CHANGED}\b", r"\bPR #?[0-9]+"),
    Signal.of(1, rf"\bthe {SAID}\b", rf"\ban? {SAID}\b"),
    Signal.of(2, rf"\b{ON_SCREEN}\b", r"\b(?:reply|input|answer|response) from (?:the )?user\b"),
    Signal.of(  # two things at a keyboard, or one by its name
        1,
        rf"\b{ON_SCREEN}\b.*\b{ON_SCREEN}\b",
        rf"\bline [0-9]+|\b[\w-]+\.{_SOURCE}\b|\blocalhost",
        r"\b(?:npm|pip|git|yarn|pytest|docker) \w|`[^`]+`",
        r"\b[A-Z]\w+Error\b|\bv[0-9]+\.[0-9]",
        r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}\b",
    ),
)
"""What it is done with."""

_TIMES = (
    Signal.of(  # over in an hour
        2,
        r"\b(?:right now|at the moment|just now|for now|later today|tonight|today|this (?:morning|afternoon|evening))",
        r"\bin (?:the next|an?|about an?) (?:hour|minute|moment)s?",
        r"\bin [0-9]+ (?:min|minutes|hours|secs?)\b|\b[0-9]+ min\b",
        r"\b[0-9]+ (?:min|minutes|hours|seconds) (?:to go|left|remaining)",
        r"\b(?:see|check) (?:if|whether) (?:that|it|this) (?:helps|works)\b|\basked for help\W*\Z",
        r"\b(?:brb|eta|so far|report back|yet\b|gerade|momentan)",
    ),
    Signal.of(  # away for a moment
        3,
        r"\b(?:in an? (?:meeting|call)|having (?:lunch|dinner|breakfast|coffee))\b",
        r"\bon (?:the phone|a call|a break|the line|the (?:bus|train|way (?:home|to work)))\b",
        r"\bboard(?:ing)? (?:an?|the) (?:plane|train|flight|bus)\b",
    ),
    Signal.of(2, r"\b(?:be |come )?(?:right )?back (?:in|soon)\b", r"\b(?:be|come) back\b", r"\bstop here\b"),
    Signal.of(
        1,
        r"\b(?:currently|now|again|still|just|about to|will (?:run|try|check|send|continue|come|retry))\b",
        r"\bnext\W*\Z",
    ),
    Signal.of(  # how far it is
        2,
        r"\b(?:[0-9]+ ?(?:of|/|out of) ?[0-9]+|(?:step|slide|page|cell|chapter) [0-9]+)\b",
        r"\b[0-9]+ (?:passed|failed|skipped|warnings?|errors?|left|items)\b",
        r"\b(?:half done|pending|in progress|version [0-9]|third draft|next (?:is|step))\b",
        r"[0-9] ?%",
    ),
    Signal.of(  # how it went
        2,
        r"\b"
        + one_of(
            failed="failed, failing, fails, fail, red, broken, crashed, complains, gets? an? error",
            stopped="stuck, stopped at, on hold",
            succeeded="(?:completed|finished|done) successfully, successfully (?:completed|finished)",
            passed="pass(?:es|ing)? now, green, up on",
            again=r"loading, retry\w*, re-?run\w*, undo, go ahead",
            denied="does(?:n['’]t| not) (?:work|load|compile|open), cannot (?:see|find|read|open)",
            waiting="(?:waiting|waits) (?:for|on), wartet, esperando, attend",
            others="ergebnis, descarga",
        )
        + r"\b",
    ),
)
"""When, and how far it is."""

_ENOUGH = 5
"""What deeds, objects and times come to in an errand, also when a life is taken away from them."""

_MUCH = 4
"""What deeds or times alone come to, where nothing is named that it is done with."""

_LONGEST = 240
"""Characters, beyond which more is told than an errand."""

_SCORE = 0.9

MARKS = (
    r"(?is)^\W{0,6}"
    + one_of(
        who=r"(?:\[\w+\] )?(?:the |der |die |el |la |l['’])?"
        + one_of(
            "users?, sub-?agent, left to, assistant, agent, ai, bot, model, nutzer, nutzerin, usuari[oa], utilisat\\w+"
        )
        + r"\b",
        deeds=r"\w+ing\b, \w+ed\b",
        headings="next, todo, wip, in progress, on hold, blocked, progress, status, pending",
        tasks="current, task, queue, step",
        all_of="all [0-9]*",
        going="""continue, (?:i |we )?need to, going to, let['’]?s , let me, we['’]?re going, about to, i['’]m going to,
        i am going to""",
        states=r"currently, in the process, done, eta\b, half, still, now, just \w+ed, en cours, gerade",
        things=r"branch, pr\b, ci\b, tests?\b, build, compile, server, deploy, bug, merge",
        the_things="the (?:tests?|build|linter|task)",
        errors="merge conflict, error, bug #, issue #",
        commands="pip, npm",
        counts=r"[0-9]+ ?/, [\w.-]+ (?:failed|passed)",
    )
    + ".{0,240}$"
)
"""A pattern of RE2 that every such text matches."""


def judge_errand(text: str) -> Sign | None:
    """Something that was asked for in passing, or that went on at the keyboard.

    >>> judge_errand("User asked for a shorter version of the paragraph above.").kind
    'task_state'
    >>> judge_errand("User asked his boss for a raise and got 6 percent.")
    """
    if len(text) > _LONGEST:
        return None
    deeds, objects, times = (weight_of(signals, text) for signals in (_DEEDS, _OBJECTS, _TIMES))
    if not objects and max(deeds, times) < _MUCH and deeds + times <= _ENOUGH:
        return None
    weight = deeds + objects + times
    if weight < _ENOUGH or weight - weight_of(LIFE, text) < _ENOUGH:
        return None
    return Sign("task_state", _SCORE, f"asked or done in passing: {quoted(text)}")
