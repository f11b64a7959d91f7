"""The keyboard: what there is in a conversation and on a screen, what is asked for there, and what goes on."""

from __future__ import annotations

from memframe.audit.language.vocabulary import one_of

ASKS = one_of(
    r"""asked, asks, inquired, enquired, is asking, was asking, requested, requests, wants, wanted, would like,
    needs, needed,
    said, says,
    sent, pasted, uploaded, attached, shared, opened, clicked, pressed, selected, typed, tapped, confirmed, approved,
    rejected, accepted, thanked, invited, told, instructed, complained, replied, responded, answered,
    checked, tried, reported, provided, showed,
    gave, picked, chose, ran, ended, started, has (?:just )?(?:asked|uploaded|pasted|sent|opened|confirmed|approved)"""
)
BUSY = one_of(
    r"""fixing, refactoring, editing, debugging, investigating, looking (?:at|into|for), checking, running, rerunning,
    working on, opening, testing, resolving, migrating, installing, updating, downloading, uploading, retrying,
    rebuilding, restarting, implementing, renaming, moving on, deploying, converting, generating, translating,
    reviewing, reading, drafting, searching, trying, pushing, merging, committing, cleaning up, viewing, scrolling,
    deciding, rewriting, loading, compiling, rebasing, writing (?:an?|the|tests?|this), comparing, choosing, creating,
    indexing, scanning, fetching, summari[sz]ing, preparing (?:the|an? \w*(?:list|summary|reply|answer|draft))"""
)
DONE = one_of(
    r"""opened, committed, pushed, installed, deployed, created, fixed, merged, updated, started, finished,
    renamed, reverted, reran, added, removed, refactored, implemented, generated,
    converted, completed, done, moved on"""
)
SAID = one_of(
    """answer, reply, response, output, step, paragraph, sentence, wording, draft, version, option, suggestion,
    picture, image, table, question, result, list, text, message, summary, translation, article, recipe, email, letter,
    plan, code, snippet, error, command, prompt, file, attachment, document, chart, logo, slide, title, one, change,
    choice, edit, explanation, example, poem, story, search"""
)
"""What there is in a conversation."""

ON_SCREEN = one_of(
    r"""button, page, form, tab, menu, screen, link, screenshot, traceback, stack trace, logs?, terminal, console,
    notebook, cell, csv, spreadsheet, script, tests?, test suite, builds?, branch, pull request, bug, issue, commit,
    import, lockfile, migrations?, server, endpoints?, deploy(?:ment)?, staging, dataset, download, file, files, module,
    function, variable, readme, changelog, linter, lint, compiler, package, dependenc\w+, config, repo, diff, merge
    conflict, parser, lexer, header, footer, database, pipeline, container, typo, spinner, popup, dialog, settings,
    login screen, error, warnings?, exception, flag, package[.-]lock, docker, queue, code, api, crash, heap, job,
    refactor, null pointer, breakpoint, computer, pr, code review, checklist"""
)
"""What there is at a keyboard."""

TO_DO = one_of(
    """undo, redo, retry, repeat, continue, rename, summari[sz]e, translate, rewrite, rephrase, shorten, fix, explain,
    see the, (?:make|change|move|add|remove) (?:the|it|this|that), run, stop, try, generate, list, compare, convert,
    proofread, go ahead, go on"""
)
ASKED_FOR = one_of(
    r"""list, joke, poem, story, summary, synonyms?(?: of| for)?, recipe, translation, bar chart, chart, table,
    follow-?up, word, example, explanation, name, haiku, limerick, riddle, pun, quote, paraphrase, headline, caption,
    slogan, tagline, subject line, regex\w*, regular expression, formula, sql query, one-liner, snippet, definition,
    outline, \w+ (?:version|list|summary|answer)"""
)
WHICH = one_of("what, how, who, when, why, where, which, whether")
PIECE = one_of(
    words="intro, introduction, ending, conclusion, wording, tone, headline, phrasing, paragraph, caption, word",
    looks="colou?rs?, labels?, fonts?, columns?, rows?, margins?, bars?, axes, axis, background, spacing, layout, size",
)
"""Parts of what is written or drawn at the moment."""

_DEVICE = one_of(
    "lights?, lamps?, tv, television, music, radio, fan, heating, heater, ac, alarm, volume, speaker, vacuum"
)
COMMAND = one_of(
    devices=rf"""(?:turn|switch) (?:(?:on|off|up|down) )?(?:the )?(?:\w+ )?{_DEVICE}\b, dim,
    (?:set|start|cancel|stop) (?:an?|the|\w+) (?:alarm|timer),
    set (?:an?|the) (?:reminder|countdown)""",
    media=r"play (?!in|with|for|the (?:role|piano|guitar|violin))\w+, pause, skip, mute, unmute,"
    " (?:take|make) a screenshot",
    calling=r"""call (?!(?:it|him|her|them|an?|the|his|that)\b)\w+, text \w+, look up, google, search for, read out,
    order (?:a|an|some) \w+,
    add (?:\w+ ){1,3}to (?:the|his|her|my) (?:\w+ )?list""",
    checking="check (?:the |its |this |for )?(?:spelling|grammar|typos|the text), proceed, hurry, wait, be quicker",
)
"""What is told to a machine that does it at once."""

TRIFLE = one_of("haiku, limerick, joke, riddle, pun, poem, slogan, tagline, fun fact, regex, one-liner")
TOPICS = one_of(
    rf"""{WHICH}, (?:about )?the (?:weather|time|date|capital|meaning|definition|difference|price|answer),
    (?:about |for )?(?:the|today['’]s|tomorrow['’]s|a) (?:weather|news|forecast|headlines|traffic|score)(?: forecast)?,
    for directions, (?:the assistant |it )?to {COMMAND},
    to {TO_DO},
    to know (?:{WHICH}|if|the), (?:me|you|the assistant) to {TO_DO},
    for an? (?:shorter|longer|simpler|better|different|funnier|nicer|clearer|new|stronger|softer) (?:{SAID}|{PIECE}),
    for (?:\w+ )?more (?:\w+ )?(?:{SAID}|name|idea|synonym|word)s?,
    for (?:help|another|the|more|ideas|names|suggestions|advice on|(?:an? )?{ASKED_FOR}),
    (?:an? )?{ASKED_FOR}"""
)
