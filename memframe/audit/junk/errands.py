"""Errands: what somebody asked for in passing, and what went on at the keyboard meanwhile.

"User asked for a shorter version of the paragraph above", "Tests are green, opening the pull request". No word gives
an errand away. What adds up to one is who is spoken of and what he does there, things that exist in a conversation
or on a screen only, and times that are over in an hour; what belongs to somebody's life speaks against it.
"""

from __future__ import annotations

from memframe.audit.junk.signs import Sign, Signal, quoted, weight_of
from memframe.audit.vocabulary import one_of

_WHO = (
    r"\A\W{0,3}(?:\[\w+\]\s)?(?:the |der |die |el |la |l['’])?"
    r"(?:users?|assistant|agent|ai|bot|model|nutzer(?:in)?|usuari[oa]|utilisat\w+)\b"
)
_ASKS = one_of(
    r"""asked, asks, is asking, was asking, requested, requests, wants, wanted, would like, needs, needed, said, says,
    sent, pasted, uploaded, attached, shared, opened, clicked, pressed, selected, typed, tapped, confirmed, approved,
    rejected, accepted, thanked, complained, replied, responded, answered, checked, tried, reported, provided, showed,
    gave, picked, chose, ran, ended, started, has (?:just )?(?:asked|uploaded|pasted|sent|opened|confirmed|approved)"""
)
_BUSY = one_of(
    r"""fixing, refactoring, editing, debugging, investigating, looking (?:at|into|for), checking, running, rerunning,
    working on, opening, testing, resolving, migrating, installing, updating, downloading, uploading, retrying,
    rebuilding, restarting, implementing, renaming, moving on, deploying, converting, generating, translating,
    reviewing, reading, drafting, searching, trying, pushing, merging, committing, cleaning up, viewing, scrolling,
    deciding, rewriting, loading, compiling, rebasing, writing (?:an?|the|tests?|this)"""
)
_DONE = one_of(
    r"""opened, committed, pushed, installed, deployed, created, fixed, merged, updated, started, finished,
    renamed, reverted, reran, added, removed, refactored, implemented, generated,
    converted, completed, done"""
)
_SAID = one_of(
    """answer, reply, response, output, step, paragraph, sentence, wording, draft, version, option, suggestion,
    picture, image, table, question, result, list, text, message, summary, translation, article, recipe, email, letter,
    plan, code, snippet, error, command, prompt, file, attachment, document, chart, logo, slide, title, one, change,
    choice, edit, explanation, example, poem, story, search"""
)
"""What there is in a conversation."""

_ON_SCREEN = one_of(
    r"""button, page, form, tab, menu, screen, link, screenshot, traceback, stack trace, logs?, terminal, console,
    notebook, cell, csv, spreadsheet, script, tests?, test suite, builds?, branch, pull request, bug, issue, commit,
    import, lockfile, migrations?, server, endpoints?, deploy(?:ment)?, staging, dataset, download, file, files, module,
    function, variable, readme, changelog, linter, lint, compiler, package, dependenc\w+, config, repo, diff, merge
    conflict, parser, lexer, header, footer, database, pipeline, container, typo, spinner, popup, dialog, settings,
    login screen, error, warnings?, exception, flag, package[.-]lock, docker, queue, code, api, crash, heap, computer"""
)
"""What there is at a keyboard."""

_TO_DO = one_of(
    """undo, redo, retry, repeat, continue, rename, summari[sz]e, translate, rewrite, rephrase, shorten, fix, explain,
    see the, (?:make|change|move|add|remove) (?:the|it|this|that), run, stop, try, generate, list, compare, convert,
    proofread, go ahead, go on"""
)
_ASKED_FOR = one_of(
    r"""list, joke, poem, story, summary, synonym, recipe, translation, bar chart, chart, table, follow-?up, word,
    example, explanation, name, \w+ (?:version|list|summary|answer)"""
)
_WHICH = one_of("what, how, who, when, why, where, which, whether")
_TOPICS = one_of(
    rf"""{_WHICH}, (?:about )?the (?:weather|time|date|capital|meaning|definition|difference|price|answer),
    to {_TO_DO},
    to know (?:{_WHICH}|if|the),
    for (?:\w+ )?more {_SAID}s?, for (?:help|another|the|more|ideas|names|suggestions|advice on|an? {_ASKED_FOR}),
    (?:an? )?{_ASKED_FOR}"""
)

_DEEDS = (
    Signal.of(2, rf"{_WHO} (?:just |also |now |then |has |then )?{_ASKS}\b"),
    Signal.of(2, rf"{_WHO} (?:will (?:be back|return|check|report|test|try)|has not decided|wants? help"
                 rf"|can(?:no|['’])t decide)\b"
                 r"|\A\W{0,6}(?:in the process of|the task is|bug #?[0-9]|issue #?[0-9]"
                 r"|(?:the )?user['’]s current (?:task|goal|step"
                 r"|issue|problem|question|request|focus)\b)|\bis being \w+ed\b|\bwants? help with\b"),
    Signal.of(2, rf"{_WHO} (?:is |was |has been )?(?:now |currently |just |still )?(?:trying to|about to|going to"
                 rf"|in the middle of|on (?:step|page|slide|line|cell|chapter|the)|stuck|{_BUSY})\b"),
    Signal.of(3, rf"\A\W{{0,3}}(?:the )?(?:assistant|agent|ai|bot|model) (?:has |just |has just )?{_DONE}\b"),
    Signal.of(3, rf"\A\W{{0,6}}(?:now |still |currently |just |next |also |in progress\W+|wip\W+)?(?:{_BUSY}"
                 rf"|{_DONE})\b"),
    Signal.of(2, r"\A\W{0,6}(?:next(?: session| steps?)?|todo|wip|in progress|on hold|blocked|progress|status|pending"
                 r"|current task|task|queue|continue|need to|going to|let['’]?s|let me|we['’]?re going to"
                 r"|about to|stopped|merge conflict|compile error|error|type error|currently on hold|step [0-9]+"
                 r"|i['’]?m going to|i am going to|just \w+ed|eta|half (?:done|of)|en cours|gerade)\b"),
    Signal.of(2, r"[,;:-] (?:now |still |currently )?(?:resolving|pushing|investigating|moving on|retrying"
                 r"|fixing|running"
                 r"|looking into it|implementation starts|will (?:run|retry|send|continue))\b|\b(?:step|task"
                 r"|part) [0-9]+ (?:is )?done"
                 r"|[0-9] ?/ ?[0-9]+ \w+ \w+ed\b|\bnow on (?:slide|page|step|line|chapter)|\bsays brb\b"
                 r"|\bwhere we left off"),
    Signal.of(2, r"\A\W{0,6}(?:branch|pr|ci|tests?|builds?|tasks?(?: [0-9]+)?|server|waiting on"
                 r"|working on it|deploy(?:ment|ing)?|refactoring|[\w.-]+ (?:failed|passed|is up))\b"),
)  # fmt: skip
"""Who does what."""

_OBJECTS = (
    Signal.of(3, rf"{_WHO}[^.;]{{0,20}} {_ASKS} (?:the (?:assistant|ai|agent|bot|model) )?{_TOPICS}\b"),
    Signal.of(3, rf"\bthe (?:above|last|previous|same|attached|following|first|second|third|other|new|current|next"
                 rf"|pasted|failing)(?: \w+)? {_SAID}s?\b|\b{_SAID}s? (?:above|below|they pasted|from the list)\b"
                 rf"|\bthis {_SAID}\b|\banother {_SAID}\b|\b(?:shorter|longer|simpler|different) {_SAID}\b"
                 r"|\b(?:ci-dessus|oben|de arriba)\b|\b(?:last|letzte|última|dernière) (?:answer|antwort"
                 r"|respuesta|réponse)"
                 rf"|\b(?:second|first|third|other|last) (?:search result|option|one)\b|\bstep (?:is|done)\b"
                 r"|\bthe assistant (?:just )?(?:made|wrote|gave|sent|suggested)\b"),
    Signal.of(3, rf"{_WHO} {_ASKS} (?:the|this|that|it) [^.]{{0,30}}\b(?:sorted|translated|rewritten"
                 rf"|formatted|changed|fixed|removed"
                 r"|moved|shorter|longer|bigger|smaller|brighter|darker|to be \w+(?:ed|en))\b|\bPR #?[0-9]+"),
    Signal.of(1, rf"\bthe {_SAID}\b|\ban? {_SAID}\b"),
    Signal.of(2, rf"\b{_ON_SCREEN}\b"),
    Signal.of(1, rf"\b{_ON_SCREEN}\b.*\b{_ON_SCREEN}\b|\bline [0-9]+|\b[\w-]+\.(?:py|[jt]sx?|rs|go|java|cpp|rb|sh|md"
                 r"|json|ya?ml|toml|csv|lock)\b|\blocalhost|\b(?:npm|pip|git|yarn|pytest|docker) \w|`[^`]+`"
                 r"|\b[A-Z]\w+Error\b|\bv[0-9]+\.[0-9]|\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}\b"),
)  # fmt: skip
"""What it is done with."""

_TIMES = (
    Signal.of(2, r"\b(?:right now|at the moment|just now|for now|later today|tonight|today|this (?:morning|afternoon"
                 r"|evening)|in (?:the next|an?|about an?) (?:hour|minute|moment)s?|in [0-9]+ (?:min|minutes"
                 r"|hours|secs?)\b"
                 r"|[0-9]+ (?:min|minutes|hours|seconds) (?:to go|left|remaining)|brb|eta|[0-9]+ min\b"
                 r"|gerade|so far|report back|yet\b|momentan)"),
    Signal.of(3, r"\b(?:in an? (?:meeting|call)|having (?:lunch|dinner|breakfast|coffee)|on (?:the phone"
                 r"|a call|a break|the line)"
                 r"|board(?:ing)? (?:an?|the) (?:plane|train|flight|bus)|on the (?:bus|train|way (?:home"
                 r"|to work)))\b"),
    Signal.of(2, r"\b(?:be |come )?(?:right )?back (?:in|soon)\b|\b(?:be|come) back\b|\bstop here\b"),
    Signal.of(1, r"\b(?:currently|now|again|still|just|about to|will (?:run|try|check|send|continue|come"
                 r"|retry))\b|\bnext\W*\Z"),
    Signal.of(2, r"\b(?:[0-9]+ ?(?:of|/|out of) ?[0-9]+|step [0-9]+|slide [0-9]+|page [0-9]+|cell [0-9]+"
                 r"|chapter [0-9]+|half done|pending|in progress|[0-9]+ (?:passed|failed|skipped|warnings?"
                 r"|errors?|left|items)"
                 r"|version [0-9]|third draft|next (?:is|step))\b|[0-9] ?%"),
    Signal.of(2, r"\b(?:failed|failing|fails|fail|pass(?:es|ing)? now|green|red|broken|crashed|stuck|loading"
                 r"|retry\w*|re-?run\w*"
                 r"|does(?:n['’]t| not) (?:work|load|compile|open)|cannot (?:see|find|read|open)"
                 r"|gets? an? error|complains|up on"
                 r"|waiting (?:for|on)|wartet|esperando|attend|ergebnis|descarga|undo|go ahead|on hold"
                 r"|stopped at)\b"),
)  # fmt: skip
"""When, and how far it is."""

_LIFE = (
    Signal.of(4, r"\b(?:prefers?|preference|always|usually|every|each|never|whenever|often|since (?:19"
                 r"|20)[0-9]{2}|decided"
                 r"|loves?|hates?|likes|favou?rite|allerg\w+|because|for (?:\w+ )?(?:years|months|decades)"
                 r"|years|months"
                 r"|(?:week|month|year)ly|nightly|daily|twice|once)\b"),
    Signal.of(3, r"\b(?:19|20)[0-9]{2}\b(?![-:])|\b(?:january|february|march|april|june|july|august|september|october"
                 r"|november|december|spring|summer|autumn|winter|next year|one day|weekend)\b"
                 r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"),
    Signal.of(3, r"\b(?:wife|husband|partner|son|daughter|mother|father|mum|dad|kids?|child(?:ren)?|brother|sister|"
                 r"grand\w+|family|friends?|dog|cat|baby|doctor|therapist|lawyer|landlord|patient|pregnan\w+|wedding"
                 r"|marri\w+|divorc\w+|transplant|chemo\w*|surgery|diagnos\w+|visa|asylum|custody|degree"
                 r"|thesis|phd|novel"
                 r"|university|school|kidney|heart|sober|diet|house|flat|garden|exam|certificate|boss for"
                 r"|job|career|eye|blood|medical|driving|adoption|green card|club|church|band|choir)\b"),
    Signal.of(2, r"\A\W{0,3}(?:the )?user['’]s (?!current task|task\b)|\A\W{0,3}(?!User|The|Assistant"
                 r"|Agent)[A-Z][a-z]+['’]s "),
    Signal.of(2, r"\b(?:team|company|project|repo(?:sitory)?|our|we)\b[^.]{0,30}\b(?:uses?|runs?|keeps?"
                 r"|needs?|requires?"
                 r"|takes?|has|have|returns?|is|are|must)\b|\b(?:works? (?:as|at|for|in)|lives?|moved|plans to"
                 r"|learn(?:s|ing)?"
                 r"|teaches|studies|owns?|collects?)\b"),
    Signal.of(3, r"\b(?:before (?:you|we)|how we|everything|in (?:this|our|my) (?:project|repo))\b"),
    Signal.of(2, r"\b(?:from now on|in future|please remember|remember:|don['’]t|do not|must(?: not)?)\b"),
)  # fmt: skip
"""What belongs to a life."""

_ENOUGH, _MUCH, _LONGEST = 5, 4, 240
"""What signals come to in an errand; those of deeds or of time, where nothing is named that it is done with;
and characters, beyond which more is told than one."""

MARKS = (
    r"(?is)^\W{0,6}(?:(?:\[\w+\] )?(?:the |der |die |el |la |l['’])?(?:users?|assistant|agent|ai|bot|model"
    r"|nutzer|nutzerin|usuari[oa]|utilisat\w+)\b|\w+ing\b|\w+ed\b|next|todo|wip"
    r"|in progress|on hold|progress|status|pending|current|task|queue|continue|need to|going to|let['’]?s "
    r"|let me|we['’]?re going|about to|just \w+ed|i['’]m going to|i am going to"
    r"|merge conflict|error|currently|in the process|bug #|issue #|done|eta\b|half|still|now|branch|pr\b"
    r"|ci\b|tests?\b|build|compile"
    r"|en cours|gerade|step|server|deploy|bug|merge|the (?:tests?|build"
    r"|linter|task)|pip|npm|[0-9]+ ?/|[\w.-]+ (?:failed|passed)).{0,240}$"
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
    if weight < _ENOUGH or weight - weight_of(_LIFE, text) < _ENOUGH:
        return None
    return Sign("task_state", 0.9, f"asked or done in passing: {quoted(text)}")
