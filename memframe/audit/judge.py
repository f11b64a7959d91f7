"""The judge: a language model, a function or a person that answers questions which rules cannot decide.

Questions go in batches to a function, such as a `ChatJudge`: what a newer memory is to an older one (the same,
replaces it, contradicts it, ...), and whether a text is worth keeping. Secrets and personal data are masked before,
and memories with doubtful masks are withheld. A verdict never deletes or merges: it turns candidates into findings for
review, and proposals of rules into findings for review or without a proposal.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain, zip_longest
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from memframe.audit.evidence import Masks
from memframe.audit.findings import Check, Finding, join_findings, list_findings
from memframe.audit.rules import load_rules
from memframe.display import number_of, printable
from memframe.errors import ConfigError, JournalError, MemframeError
from memframe.files import atomic_file, private_folder
from memframe.keystore import open_local_cipher, state_folder

QuestionKind = Literal["relation", "worth"]

VERDICTS: Mapping[str, tuple[str, ...]] = {
    "relation": ("same", "replaced", "contradicts", "both_true", "unrelated"),
    "worth": ("lasting", "passing", "machine", "instruction", "nothing"),
}
"""Possible answers to the questions of each kind."""

QUESTIONS_AT_ONCE = 10
"""Questions in one batch."""
JUDGE_LIMIT = 500
"""Questions to a judge at most, by default, besides the control questions."""
LEAST_RIGHT = 16
"""Fewest right answers to the control questions; with fewer, the verdicts of a judge are not used."""

JUDGED = "judged_"
"""Prefix of the kinds of findings that rest on a judge alone."""

_MAX_OLDER = 5
"""Older texts of one question."""
_MAX_REASON = 300
"""Characters of a reason that are kept."""
_MAX_FAILURES = 3
"""Consecutive batches without an answer after which no more are sent."""
_MAX_KEPT = 20_000
"""Questions of one model and prompt whose answers are cached."""
_COLUMNS = {
    **dict.fromkeys(("question", "newer", "older", "verdict", "reason"), "str"),
    "confidence": "float64",
    "model": "str",
    "cached": "bool",
}


@dataclass(frozen=True)
class Question:
    """One question to a judge.

    Attributes
    ----------
    kind : {"relation", "worth"}
        "relation" asks for a verdict on each older text, "worth" for one on the newer text alone.
    newer : str
        The text of the question, masked.
    older : tuple of str
        Up to five older texts of the same user, masked; none for "worth".
    said_at : tuple of str
        The day of the newer text and of each older one; empty text for an unknown day.
    number : int
        The number of the first answer; see `numbers`.
    """

    kind: QuestionKind
    newer: str
    older: tuple[str, ...] = ()
    said_at: tuple[str, ...] = ()
    number: int = 1

    @property
    def numbers(self) -> range:
        """The numbers of its answers: one for each older text, or one for the text itself."""
        return range(self.number, self.number + max(1, len(self.older)))


@dataclass(frozen=True)
class Answer:
    """One answer of a judge: the number that it answers, a verdict of `VERDICTS`, the reason, a confidence (0 to 1)."""

    number: int
    verdict: str
    reason: str = ""
    confidence: float = 1.0


JudgeFunction = Callable[[list[Question]], list[Answer]]
"""Function from questions to answers. Its answers are cached if it has the attributes ``model`` and ``prompt``.

>>> def judge(questions):
...     return [
...         Answer(number, "replaced" if "no longer" in question.newer else "both_true", "by its wording", 0.6)
...         for question in questions
...         if question.kind == "relation"
...         for number in question.numbers
...     ]
>>> judge([Question("relation", "Ada no longer smokes.", ("Ada smokes.",), number=7)])
[Answer(number=7, verdict='replaced', reason='by its wording', confidence=0.6)]
"""


def _judged_frame(rows: Sequence[tuple[Any, ...]] = ()) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[*_COLUMNS]).astype(_COLUMNS)


_NOTHING_JUDGED = _judged_frame()
"""Outcome of an audit without a judge, built once: that takes longer than most checks of a small store."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """Outcome of the questions to a judge; by default, that of an audit without one.

    Attributes
    ----------
    judged : DataFrame
        Columns ``question newer older verdict reason confidence model cached``, one row per pair or text.
    n_not_asked : int
        Questions that were not sent: those beyond the limit, or after several failures in a row.
    n_withheld : int
        Memories that were withheld because their masking is doubtful.
    n_right, n_control : int
        Control questions that were answered right, and all of them.
    problems : tuple of str
        Reasons for missing answers, as the judge gives them.
    """

    judged: pd.DataFrame = field(default_factory=_NOTHING_JUDGED.copy)
    model: str = ""
    n_not_asked: int = 0
    n_withheld: int = 0
    n_right: int = 0
    n_control: int = 0
    problems: tuple[str, ...] = ()

    @property
    def n_unanswered(self) -> int:
        """Number of pairs and texts without an answer."""
        return int(self.judged["verdict"].isna().sum())

    @property
    def is_used(self) -> bool:
        """True if enough control questions were answered right for the verdicts to count."""
        return self.n_right >= LEAST_RIGHT

    def sentences(self) -> Iterator[str]:
        """Yield sentences on the questions, on the reliability of the answers, and on what was not asked."""
        things = number_of(len(self.judged), "pair or text", "pairs and texts")
        yield f"Asked {self.model} about {things}: {self.n_unanswered:,} unanswered."
        if self.n_control:
            trust = "" if self.is_used else f" That is below {LEAST_RIGHT}: its verdicts are not used."
            yield f"Control: it answered {self.n_right} of {self.n_control} questions right.{trust}"
        if self.n_not_asked:
            n = number_of(self.n_not_asked, "question", "questions")
            yield f"Not asked: {n} beyond the limit, or after failures."
        if self.n_withheld:
            n = number_of(self.n_withheld, "memory", "memories")
            yield f"Not asked: {n} that may contain a secret that could not be masked reliably."
        yield from (f"No answer: {problem}" for problem in self.problems)


class Control(msgspec.Struct, frozen=True):
    """A question with a known answer."""

    newer: str
    verdicts: tuple[str, ...]
    """Accepted verdicts for each number, separated by ``|``."""
    older: tuple[str, ...] = ()


def control_questions() -> list[Control]:
    """Read the control questions."""
    text = files(__package__).joinpath("control_questions.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, list[Control]])["question"]


@dataclass(eq=False)
class _Asked:
    """A question, the ids of its memories, and its answers by place."""

    question: Question
    newer: str = ""
    older: tuple[str, ...] = ()
    control: Control | None = None
    answers: dict[int, Answer] = field(default_factory=dict)
    state: Literal["open", "cached", "sent"] = "open"

    @property
    def is_right(self) -> bool:
        """True for a control question whose answers are all accepted ones."""
        accepted = self.control.verdicts if self.control else ()
        return all(
            place in self.answers and self.answers[place].verdict in verdicts.split("|")
            for place, verdicts in enumerate(accepted)
        )


def ask_judge(
    judge: JudgeFunction,
    memories: pd.DataFrame,
    findings: pd.DataFrame,
    candidates: pd.DataFrame,
    *,
    limit: int = JUDGE_LIMIT,
) -> Judgement:
    """Ask a judge about candidates and about proposals that rest on wording, the most promising questions first.

    Errors that ``judge`` raises, and answers that cannot be used, do not end the audit; see `Judgement.problems`.

    Parameters
    ----------
    judge : callable
    memories : DataFrame
        Frame with all columns of memories.
    findings : DataFrame
        Findings of all checks, whose secrets are masked; more secrets are searched for.
    candidates : DataFrame
        Result of `find_candidates`.
    limit : int
        Questions to ask at most, besides the control questions.
    """
    model = str(getattr(judge, "model", "") or getattr(judge, "__name__", type(judge).__name__))
    drafts = _draft_questions(memories, findings, candidates)
    asked, withheld, n_drafted = _mask_drafts(drafts, memories, findings, limit)
    control = [
        _Asked(Question("relation" if one.older else "worth", one.newer, one.older), control=one)
        for one in (control_questions() if asked else ())
    ]
    problems = _ask_all(judge, model, asked, control)
    rows = []
    for one in asked:
        for place, older in enumerate(one.older or (None,)) if one.state != "open" else ():
            answer = one.answers.get(place)
            answered = (
                (answer.verdict, answer.reason[:_MAX_REASON], answer.confidence) if answer else (None,) * 3
            )
            rows.append((one.question.kind, one.newer, older, *answered, model, one.state == "cached"))
    return Judgement(
        _judged_frame(rows),
        model,
        n_not_asked=len(drafts) - n_drafted + sum(one.state == "open" for one in asked),
        n_withheld=len(withheld),
        n_right=sum(one.is_right for one in control),
        n_control=len(control),
        problems=tuple(dict.fromkeys((*map(str, getattr(judge, "problems", ())), *problems)))
        if asked
        else (),
    )


def _draft_questions(
    memories: pd.DataFrame, findings: pd.DataFrame, candidates: pd.DataFrame
) -> list[list[str]]:
    """Draft questions as lists of ids: the newer memory and older ones, or a single memory that may be worthless.

    Pairs and single memories take turns, because either alone would use up the limit. Single memories without a sign
    of being worthless come after these, and pairs that were noted together come last.
    """
    wordings = _read_wordings(memories)
    groups: defaultdict[str, dict[str, tuple[bool, float]]] = defaultdict(dict)

    def add(one: object, other: object, score: float, gain: float) -> None:
        if isinstance(one, str) and isinstance(other, str) and {one, other} <= wordings.keys():
            older, newer = sorted((one, other), key=lambda memory_id: wordings[memory_id].age)
            priority = _rate_pair(wordings[newer], wordings[older], score) + gain
            groups[newer].setdefault(older, (gain == _BY_RULE, priority))

    is_merge = (findings["check"] == "near_duplicate") & (findings["action"] == "merge")
    is_version = (findings["check"] == "version") & (findings["action"] == "review")
    related = findings[is_version | is_merge].sort_values("check", ascending=False, kind="stable")
    for one, other, score in zip(*(related[name] for name in ("id", "related_id", "score")), strict=True):
        if one != other:
            add(one, other, 0.0 if pd.isna(score) else score, _BY_RULE)
    columns = (candidates[name] for name in ("newer", "older", "score", "cue"))
    for newer, older, score, cue in zip(*columns, strict=True):
        add(newer, older, score, _BY_CUE if isinstance(cue, str) else 0.0)
    pairs = [
        (max(priority for _, priority in priorities.values()), [newer, *_choose_older(priorities)])
        for newer, priorities in groups.items()
    ]
    doubtful = [
        (priority, [memory_id])
        for memory_id, priority in _find_doubtful(memories, findings).items()
        if memory_id in wordings
    ]
    pairs, doubtful = (sorted(part, key=lambda draft: -draft[0]) for part in (pairs, doubtful))
    # below zero are pairs of one moment, and single memories without a sign
    n_pairs, n_doubtful = (sum(priority >= 0 for priority, _ in part) for part in (pairs, doubtful))
    turns = chain.from_iterable(zip_longest(pairs[:n_pairs], doubtful[:n_doubtful]))
    return [draft[1] for draft in (*turns, *doubtful[n_doubtful:], *pairs[n_pairs:]) if draft is not None]


def _choose_older(priorities: Mapping[str, tuple[bool, float]]) -> list[str]:
    """Choose the older texts of a question: first those of a rule, then those of the highest priority."""
    return sorted(priorities, key=priorities.__getitem__, reverse=True)[:_MAX_OLDER]


_BY_RULE, _BY_CUE = 0.1, 0.15
"""Gains in priority of a pair that a rule found, and of a pair whose newer text has a cue of a change."""

_BEGINS_ALIKE, _ENDS_ALIKE, _E_TIMES_LONGER = 0.2, 0.1, 0.15
"""Gains of texts that begin or end alike, and of texts e times as long, because short texts are similar by chance.

All gains are in units of similarity. They were fitted to rewrites that the histories of 21 stores declare (248 of them
are candidates). Of 436 rewrites in 35 other histories, 500 questions reach 356; in the order of similarity, 316.
"""

_SAME_MOMENT_S = 60.0
"""Seconds within which two texts were noted together. Nearly half of all candidates are such pairs, but only 3 of 684
rewrites, so they are asked about last."""

_N_ALIKE = 8
"""Characters at the beginning, and at the end, by which two texts are alike."""
_LONG = 400
"""Characters of a text beyond which more length adds no gain."""


class _Wording(NamedTuple):
    """Properties of a text by which pairs are ranked."""

    age: int
    """Place in time."""
    created_s: float
    begins: str
    ends: str
    length: float


def _read_wordings(memories: pd.DataFrame) -> dict[str, _Wording]:
    oldest_first = memories.sort_values("created_at", kind="stable")
    texts = oldest_first["content"].fillna("").str.strip().str.lower()
    created_s = (oldest_first["created_at"] - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    length = np.log1p(np.minimum(texts.str.len(), _LONG))
    columns = (range(len(texts)), created_s, texts.str[:_N_ALIKE], texts.str[-_N_ALIKE:], length)
    return dict(zip(oldest_first["id"], map(_Wording._make, zip(*columns, strict=True)), strict=True))


def _rate_pair(newer: _Wording, older: _Wording, score: float) -> float:
    """Return the priority of a pair, higher if the texts are likely versions; below zero for texts of one moment."""
    if abs(newer.created_s - older.created_s) < _SAME_MOMENT_S:  # False if a time is missing
        return score - _TOGETHER
    priority = score + _E_TIMES_LONGER * min(newer.length, older.length)
    return (
        priority + _BEGINS_ALIKE * (newer.begins == older.begins) + _ENDS_ALIKE * (newer.ends == older.ends)
    )


_TOGETHER = 9.0
"""Amount above any priority, so that pairs of one moment are below zero."""

_SPECIFIC = re.compile(r"\d|[^\W\d_a-z]|\w[_./@:]\w|[`\"“«]")
"""A number, a name, an identifier or a quotation. Capitals count once `_SENTENCE_START` is removed; any letter of
another script than the Latin one counts as a name."""

_SENTENCE_START = re.compile(r"(?:\A|[.!?:;]\s|\n)\W{0,4}\w|\b(?:I|User|Assistant)\b")
"""Capitals that are no names: those of the first words of sentences, «I», «User» and «Assistant»."""


_TURN = re.compile(r"\A\W*+(?:user|assistant|human|system|ai)\W{0,3}:", re.IGNORECASE)
"""Beginning of a turn of a conversation."""

_TIME_OF_DAY = re.compile(r"(?<![\d:.])\d{1,2}[:\uff1a]\d\d(?![\d.])|\b\d{1,2} ?[ap]m\b", re.IGNORECASE)
"""A time of day: most texts with one are about a moment."""


def _find_doubtful(memories: pd.DataFrame, findings: pd.DataFrame) -> dict[str, float]:
    """Return the memories that may be worthless, each with its priority.

    These are junk (one memory of each group), plans whose day is over, turns of a conversation, texts about a moment or
    a state, and vague texts; then all others below zero, short ones first. Memories that a rule deletes or merges are
    left out.
    """
    is_ending = findings["action"].isin(["delete", "merge"])
    proposed = findings[findings["action"] == "review"]
    junk = proposed[proposed["check"] == "junk"]
    is_together = junk["group"].notna()
    members = pd.concat([junk[~is_together], junk[is_together].drop_duplicates("group")])
    doubtful = dict(zip(members["id"], members["score"].fillna(0.0), strict=True))
    is_passed = (proposed["check"] == "stale") & (proposed["kind"] == "expired")
    for memory_id in proposed["id"][is_passed]:
        doubtful.setdefault(memory_id, _PASSED)
    is_other = ~memories["id"].isin({*junk["id"], *findings["id"][is_ending]})
    others = memories[is_other & memories["content"].notna()]
    for memory_id, text in zip(others["id"], others["content"], strict=True):
        doubtful.setdefault(memory_id, _rate_worthless(text))
    return doubtful


def _rate_worthless(text: str) -> float:
    """Return the priority of a text that no rule has found; below zero if it has no sign of being worthless."""
    if _TURN.match(text):
        return _OF_A_TURN
    if _TIME_OF_DAY.search(text[:_BEGINNING]):
        return _OF_A_MOMENT
    beginning = text[:_MAX_VAGUE_CHARS]
    length = min(len(text) / _MAX_VAGUE_CHARS, 1.0)
    if _STATE.search(text[:_BEGINNING]):
        highest = _OF_A_STATE
    elif _SPECIFIC.search(_SENTENCE_START.sub("", beginning)):
        return -length
    elif any(_STANDING.find(beginning)):
        highest = _STANDING_VAGUE
    else:
        highest = _ADDRESSED if _IS_ADDRESSED.search(beginning) else _VAGUE
    return highest * (1 - length)


_STANDING = load_rules("standing").only("standing")
"""Rules for texts that state something lasting."""
_IS_ADDRESSED = re.compile(r"[?\uff1f]|:\W{0,3}\Z|\b(?:you|your|please|thanks?)\b|\A[a-z]")
"""Signs of speech to somebody, or of a fragment of it: a question, a request, a small letter at the beginning."""

_STATE = re.compile(
    r"[\u2705\u2713\u2714\u2611\u274c]|\[x\]|\A\W*(?:status|task|action|issue|result|date|progress|phase)\b\W{0,4}:",
    re.IGNORECASE,
)
"""Marks of what is done or has failed, and labels of a state: both hold only until the next state."""

_PASSED = 0.6
"""Priority of a plan whose day is over.

The priority of junk is its score, .7 and more. Of 355 real texts that two readers judged, 15 of 17 turns are worthless,
18 of 39 texts with a time of day, and 23 of 126 of those that are asked about for another reason. Of 42 that are
worthless or outdated, in random samples of 14 later sources, these signs reach 19 with one question for four memories;
the limit reaches all. If two of five memories are worthless, no order of so few questions reaches more than five of
eight. Asking first about beginnings that many texts share found no more of them.
"""
_OF_A_TURN = 0.58
"""Priority of a turn of a conversation."""
_OF_A_MOMENT = 0.55
"""Priority of a text with a time of day."""
_ADDRESSED = 0.54
"""Highest priority of a vague text that is addressed to somebody; a longer one has less."""
_OF_A_STATE = 0.52
"""Highest priority of a text about a state."""
_VAGUE = 0.5
"""Highest priority of any other text without a number, a name or a quotation."""
_STANDING_VAGUE = 0.2
"""Highest priority of a vague text that states something lasting («I like to read»)."""

_MAX_VAGUE_CHARS = 2_000
"""Characters of a text from which on its length takes away all priority."""

_BEGINNING = 300
"""Characters at the beginning in which a time of day or a state counts."""


def _mask_drafts(
    drafts: Sequence[list[str]], memories: pd.DataFrame, findings: pd.DataFrame, limit: int
) -> tuple[list[_Asked], set[str], int]:
    """Make questions up to the limit; return them, the withheld memories, and the number of drafts that were used."""
    asked: list[_Asked] = []
    withheld: set[str] = set()
    start = 0
    while len(asked) < limit and start < len(drafts):
        part = drafts[start : start + limit - len(asked)]
        masks = Masks(memories, findings, {memory_id for ids in part for memory_id in ids})
        asked += [one for ids in part if (one := _mask(ids, masks)) is not None]
        withheld |= masks.withheld
        start += len(part)
    return asked, withheld, start


def _mask(ids: Sequence[str], masks: Masks) -> _Asked | None:
    """Make the question of a draft; None if a text that it needs is withheld."""
    first, *rest = masks.of(ids)
    older = {memory_id: text for memory_id, text in zip(ids[1:], rest, strict=True) if text is not None}
    if first is None or (len(ids) > 1 and not older):
        return None
    days = tuple(masks.day_of(memory_id) for memory_id in (ids[0], *older))
    kind: QuestionKind = "relation" if older else "worth"
    return _Asked(Question(kind, first, tuple(older.values()), days), ids[0], tuple(older))


def _ask_all(judge: JudgeFunction, model: str, asked: list[_Asked], control: list[_Asked]) -> list[str]:
    """Ask in batches of one kind, with control questions evenly among them, and stop after several failures in a row.

    Return the reasons for missing answers that are not among the judge's own ``problems``.
    """
    cache = _Cache(model, str(judge.prompt)) if asked and hasattr(judge, "prompt") else None
    for one in (*asked, *control):
        if cache and (known := cache.get(one.question)) is not None:
            one.answers, one.state = known, "cached"
    n_failures = 0
    problems: list[str] = []
    for kind in VERDICTS:
        parts = [
            [one for one in part if one.question.kind == kind and one.state == "open"]
            for part in (asked, control)
        ]
        spread = [((n + 0.5) / len(part), one) for part in parts for n, one in enumerate(part)]
        mixed = [one for _, one in sorted(spread, key=itemgetter(0))]
        for start in range(0, len(mixed), QUESTIONS_AT_ONCE):
            if n_failures >= _MAX_FAILURES:
                return problems
            batch = mixed[start : start + QUESTIONS_AT_ONCE]
            try:
                _ask_batch(judge, batch)
            except Exception as error:  # the findings of rules must not be lost with it
                problems.append(_describe_failure(model, error))
            n_failures = 0 if any(one.answers for one in batch) else n_failures + 1
            if cache:
                cache.put([one for one in batch if len(one.answers) == len(one.question.numbers)])
    return problems


def _describe_failure(model: str, error: Exception) -> str:
    """Describe why a judge failed. The text of an error that is not ours is left out, because it may quote a key."""
    if isinstance(error, MemframeError):
        return printable(str(error))
    return f"{model} raised {type(error).__name__}; call it with one Question to see why"


def _ask_batch(judge: JudgeFunction, batch: list[_Asked]) -> None:
    """Ask one batch, and keep the usable answers; raise `ConfigError` if the result is no list of `Answer`."""
    place_of: dict[int, tuple[_Asked, int]] = {}
    questions: list[Question] = []
    for one in batch:
        questions.append(replace(one.question, number=1 + len(place_of)))
        place_of |= {number: (one, place) for place, number in enumerate(questions[-1].numbers)}
        one.state = "sent"
    answers: Any = judge(questions)
    if not isinstance(answers, list) or not all(isinstance(answer, Answer) for answer in answers):
        raise ConfigError("judge= did not return a list of memframe.audit.Answer: see JudgeFunction")
    verdicts: defaultdict[int, set[str]] = defaultdict(set)
    for answer in answers:
        verdicts[answer.number].add(answer.verdict)
    for answer in answers:
        if answer.number not in place_of or len(verdicts[answer.number]) > 1:
            continue
        one, place = place_of[answer.number]
        has_confidence = isinstance(answer.confidence, int | float) and 0 <= answer.confidence <= 1
        if (
            answer.verdict in VERDICTS[one.question.kind]
            and isinstance(answer.reason, str)
            and has_confidence
        ):
            one.answers[place] = answer


# ---- from verdicts to findings

_NOT_SO = ("both_true", "unrelated")
_NOT_TRUE = ("replaced", "contradicts")
_WORTHLESS = ("passing", "machine", "nothing")
_AFTER: Mapping[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("junk", "review"): (("lasting",), "none"),
    ("near_duplicate", "merge"): ((*_NOT_TRUE, *_NOT_SO), "review"),
    ("version", "review"): (_NOT_SO, "none"),
    ("version", "none"): (_NOT_TRUE, "review"),
}
"""Verdicts that change the action of a finding, and its new action, by check and action."""


def apply_judgement(findings: pd.DataFrame, judgement: Judgement) -> pd.DataFrame:
    """Return findings after the verdicts of a judge: with more for review, and never with more deletes or merges.

    A merge of near duplicates becomes ``review`` if the verdict is another one than "same". Versions with the verdict
    "both_true" and junk with the verdict "lasting" lose their proposal. Findings that rest on the judge alone are added
    with a kind that begins with ``judged_``.
    """
    if not judgement.is_used:
        return findings
    judged = judgement.judged[judgement.judged["verdict"].notna()]
    asked = [
        frozenset((newer, older) if isinstance(older, str) else (newer,))
        for newer, older in zip(judged["newer"], judged["older"], strict=True)
    ]
    verdict_of = dict(zip(asked, judged["verdict"], strict=True))
    forms = findings[(findings["check"] == "junk") & (findings["kind"] == "form")]
    for _, members in forms.groupby(
        "group"
    ):  # one member of each form was asked about: its verdict is for all
        singles = [frozenset((memory_id,)) for memory_id in members["id"]]
        if verdict := next((verdict_of[single] for single in singles if single in verdict_of), None):
            verdict_of |= dict.fromkeys(singles, verdict)
    columns = (findings[name] for name in ("check", "action", "id", "related_id"))
    actions, known = [], []
    for check, action, one, other in zip(*columns, strict=True):
        pair = frozenset((one,) if check == "junk" else (one, other))
        verdicts, after = _AFTER.get((check, action), ((), ""))
        actions.append(after if verdict_of.get(pair) in verdicts else action)
        known.append((check.endswith("duplicate"), pair))
    frames = [findings.assign(action=actions)]
    wanted_of: dict[Check, tuple[str, ...]] = {"version": _NOT_TRUE, "near_duplicate": ("same",)}
    for check, wanted in wanted_of.items():
        is_duplicate, named = check == "near_duplicate", set(known)
        is_new = [
            verdict in wanted and (is_duplicate, pair) not in named
            for pair, verdict in zip(asked, judged["verdict"], strict=True)
        ]
        new = judged[np.array(is_new, bool)]
        groups = findings["group"][findings["check"] == check].dropna()
        first = int(groups.max()) + 1 if len(groups) else 0
        groups_of = dict(zip(new["newer"].unique(), range(first, first + len(new)), strict=False))
        rows: list[Any] = [*new.itertuples()]
        frames.append(
            list_findings(
                _make_finding(check, row.older, row, judgement.model)._replace(
                    related_id=row.newer, group=groups_of[row.newer]
                )
                for row in rows
            )
        )
    proposed = set(findings["id"][findings["check"].isin(["junk", "stale"]) & (findings["action"] != "none")])
    is_worthless = judged["older"].isna() & judged["verdict"].isin(_WORTHLESS)
    worthless: list[Any] = [*judged[is_worthless & ~judged["newer"].isin(proposed)].itertuples()]
    frames.append(list_findings(_make_finding("junk", row.newer, row, judgement.model) for row in worthless))
    return join_findings(frames)


def _make_finding(check: Check, memory_id: str, row: Any, model: str) -> Finding:
    """Build the finding of a verdict, a row of `Judgement.judged`, about one memory."""
    return Finding(
        check=check,
        kind=f"{JUDGED}{row.verdict}",
        severity="low",
        id=memory_id,
        field="content",
        score=row.confidence,
        evidence=f"judged by {model}: {row.reason}",
        action="review",
    )


# ---- the cache of answers


class _Cache:
    """Cache of the answers of one model with one prompt, by the hash of the masked question.

    It is one file, sealed with the data key as journals are, because short texts could be guessed from their hashes.
    """

    def __init__(self, model: str, prompt: str) -> None:
        name = hashlib.sha256(msgspec.json.encode([model, prompt])).hexdigest()[:32]
        self._path = private_folder(state_folder() / "judge") / f"{name}.sealed"
        self._cipher, self._purpose = open_local_cipher(), f"answers of a judge, {name}"
        self._answers: dict[bytes, dict[int, Answer]] = {}
        try:
            opened = self._cipher.open(self._path.read_bytes(), associated_data=self._purpose)
            self._answers = msgspec.msgpack.decode(opened, type=dict[bytes, dict[int, Answer]])
        except (FileNotFoundError, JournalError, msgspec.DecodeError):
            return  # there is none, or it cannot be opened: the questions are asked again

    def get(self, question: Question) -> dict[int, Answer] | None:
        """Return the cached answers to a question by place; None if there are none."""
        return self._answers.get(_hash(question))

    def put(self, answered: Iterable[_Asked]) -> None:
        """Add answers, and write the file."""
        self._answers |= {_hash(one.question): one.answers for one in answered}
        kept = dict(list(self._answers.items())[-_MAX_KEPT:])
        sealed = self._cipher.seal(msgspec.msgpack.encode(kept), associated_data=self._purpose)
        with atomic_file(self._path) as file:
            file.write(sealed)


def _hash(question: Question) -> bytes:
    asked = [question.kind, question.newer, question.older, question.said_at]
    return hashlib.sha256(msgspec.json.encode(asked)).digest()
