"""The judge: a language model, a function or a person that is asked what rules cannot know.

Questions go to a function, `ChatJudge` or any other, in batches: whether a newer memory says the same as an older one,
replaces or contradicts it, and whether a text is worth keeping. Secrets and personal data are masked before, and
memories whose masking is doubtful are not asked about. A judge deletes and merges nothing: its verdicts turn
candidates into findings for review, and proposals of rules into such.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain, zip_longest
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
"""Answers that a question of each kind may have."""

QUESTIONS_AT_ONCE = 10
JUDGE_LIMIT = 500
LEAST_RIGHT = 16
"""Control questions that a judge answers right at least, or else its verdicts change nothing."""

JUDGED = "judged_"
"""With this the kinds of findings begin that a judge alone has made."""

_MAX_OLDER = 5
_MAX_REASON = 300
_MAX_FAILURES = 3
_MAX_KEPT = 20_000
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
        What each older text is to the newer one (a verdict for each), or whether a text is worth keeping (one verdict).
    newer : str
        The text that is asked about, masked.
    older : tuple of str
        Up to five older texts of the same user, masked; none for "worth".
    said_at : tuple of str
        The day of the newer text and of each older one, as far as they are known.
    number : int
        Of the first answer; see `numbers`.
    """

    kind: QuestionKind
    newer: str
    older: tuple[str, ...] = ()
    said_at: tuple[str, ...] = ()
    number: int = 1

    @property
    def numbers(self) -> range:
        """The number that each answer has to name: one for each older text, or one for the text itself."""
        return range(self.number, self.number + max(1, len(self.older)))


@dataclass(frozen=True)
class Answer:
    """One answer of a judge: to which number, a verdict out of `VERDICTS`, why, and how sure it is (0 to 1)."""

    number: int
    verdict: str
    reason: str = ""
    confidence: float = 1.0


JudgeFunction = Callable[[list[Question]], list[Answer]]
"""A judge. With attributes ``model`` (a name) and ``prompt`` (what it is told) its answers are cached.

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
    """Outcome of the questions to a judge; by default of none.

    Attributes
    ----------
    judged : DataFrame
        Columns ``question newer older verdict reason confidence model cached``, one row a pair or text.
    n_not_asked : int
        Questions beyond the limit, or after the judge had failed several times in a row.
    n_withheld : int
        Memories that were not asked about, as their masking is doubtful.
    n_right, n_control : int
        Control questions: answered right, and asked.
    problems : tuple of str
        Why there was no answer, as far as the judge says.
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
        """Say what was asked, how far the answers are to be believed, and what was not asked."""
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
    """Accepted verdicts for each number, set apart by a bar."""
    older: tuple[str, ...] = ()


def control_questions() -> list[Control]:
    """Read the control questions."""
    text = files(__package__).joinpath("control_questions.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, list[Control]])["question"]


@dataclass(eq=False)
class _Asked:
    """A question, the ids that it is about, and the answers to it by place."""

    question: Question
    newer: str = ""
    older: tuple[str, ...] = ()
    control: Control | None = None
    answers: dict[int, Answer] = field(default_factory=dict)
    state: Literal["open", "cached", "sent"] = "open"

    @property
    def is_right(self) -> bool:
        """True if all answers to a control question are accepted ones."""
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
    """Ask a judge about candidates and about what rules propose by wording, the most promising questions first.

    Parameters
    ----------
    judge : callable
    memories : DataFrame
        With all columns of memories.
    findings : DataFrame
        Of all checks, with their places; masks cover more than these name.
    candidates : DataFrame
        Of `find_candidates`.
    limit : int
        Questions that are asked at most, beside the control questions.

    Whatever ``judge`` raises or returns costs no more than its answers: `Judgement.problems` says what it was.
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
    """Gather what could be asked, as ids, the newer first; a single id asks whether that memory is worth keeping.

    Pairs and texts that may be worthless take turns, as each alone would use up the limit. Texts without a sign of it
    are asked about when these are done, and pairs that were noted together last.
    """
    wordings = _read_wordings(memories)
    groups: defaultdict[str, dict[str, tuple[bool, float]]] = defaultdict(dict)

    def add(one: object, other: object, score: float, gain: float) -> None:
        if isinstance(one, str) and isinstance(other, str) and {one, other} <= wordings.keys():
            older, newer = sorted((one, other), key=lambda memory_id: wordings[memory_id].age)
            promise = _rate_pair(wordings[newer], wordings[older], score) + gain
            groups[newer].setdefault(older, (gain == _BY_RULE, promise))

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
        (max(promise for _, promise in promises.values()), [newer, *_choose_older(promises)])
        for newer, promises in groups.items()
    ]
    doubtful = [
        (promise, [memory_id])
        for memory_id, promise in _find_doubtful(memories, findings).items()
        if memory_id in wordings
    ]
    pairs, doubtful = (sorted(part, key=lambda draft: -draft[0]) for part in (pairs, doubtful))
    n_apart, n_signed = (sum(promise >= 0 for promise, _ in part) for part in (pairs, doubtful))
    turns = chain.from_iterable(zip_longest(pairs[:n_apart], doubtful[:n_signed]))
    return [one[1] for one in (*turns, *doubtful[n_signed:], *pairs[n_apart:]) if one is not None]


def _choose_older(promises: Mapping[str, tuple[bool, float]]) -> list[str]:
    """Choose the older texts of a question: those that a rule names first, then the most promising."""
    return sorted(promises, key=promises.__getitem__, reverse=True)[:_MAX_OLDER]


_BY_RULE, _BY_CUE = 0.1, 0.15
"""Gains of a pair that a rule names, and of one whose newer text says that something has changed."""

_BEGINS_ALIKE, _ENDS_ALIKE, _E_TIMES_LONGER = 0.2, 0.1, 0.15
"""Gains of texts that begin or end alike, and of long ones, as short texts are similar by accident.

All gains are in units of similarity. The first fit was to rewrites that the histories of 21 stores declare (248 of them
are candidates); of 436 on 35 other histories 500 questions reach 356, and 316 when they were ordered by similarity.
"""

_SAME_MOMENT_S = 60.0
"""Seconds within which texts were noted together. Nearly half of all candidates are such pairs, and 3 of 684 rewrites:
they are asked about when nothing else is left."""

_N_ALIKE, _LONG = 8, 400
"""Characters at both ends that are compared, and those from which on a text is long."""


class _Wording(NamedTuple):
    """Signs of a text by which pairs are ranked."""

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
    """Rate how likely a text says the same as an older one or replaces it; below zero for texts of one moment."""
    if abs(newer.created_s - older.created_s) < _SAME_MOMENT_S:  # not without a time
        return score - _TOGETHER
    promise = score + _E_TIMES_LONGER * min(newer.length, older.length)
    return promise + _BEGINS_ALIKE * (newer.begins == older.begins) + _ENDS_ALIKE * (newer.ends == older.ends)


_TOGETHER = 9.0
"""More than any promise."""

_SAYS_SOMETHING = re.compile(r"\d|[^\W\d_a-z]|\w[_./@:]\w|[`\"“«]")
"""A number, a name or a quotation, where sentences begin in small letters; other scripts than the Latin one tell no
names."""

_SENTENCE_START = re.compile(r"(?:\A|[.!?:;]\s|\n)\W{0,4}\w|\b(?:I|User|Assistant)\b")


_TURN = re.compile(r"\A\W*+(?:user|assistant|human|system|ai)\W{0,3}:", re.IGNORECASE)
"""Beginning of a turn of a conversation."""

_TIME_OF_DAY = re.compile(r"(?<![\d:.])\d{1,2}[:\uff1a]\d\d(?![\d.])|\b\d{1,2} ?[ap]m\b", re.IGNORECASE)
"""A time of day: who names one mostly tells of a moment."""


def _find_doubtful(memories: pd.DataFrame, findings: pd.DataFrame) -> dict[str, float]:
    """Find memories that may be worthless, each with how early to ask.

    One of each group of junk, plans, turns of a conversation, texts of a moment or of a state, vague ones, and then all others,
    short ones first: what rules see no sign of is asked about as long as the limit lasts. A copy that goes anyway is no
    question of its own.
    """
    is_ending = findings["action"].isin(["delete", "merge"])
    proposed = findings[findings["action"] == "review"]
    junk = proposed[proposed["check"] == "junk"]
    is_together = junk["group"].notna()
    members = pd.concat([junk[~is_together], junk[is_together].drop_duplicates("group")])
    doubtful = dict(zip(members["id"], members["score"].fillna(0.0), strict=True))
    is_passed = (proposed["check"] == "stale") & (proposed["kind"] == "expired")
    doubtful |= dict.fromkeys(set(proposed["id"][is_passed]) - doubtful.keys(), _PASSED)
    is_other = ~memories["id"].isin({*junk["id"], *findings["id"][is_ending]})
    others = memories[is_other & memories["content"].notna()]
    for memory_id, text in zip(others["id"], others["content"], strict=True):
        beginning = text[:_LONGEST_VAGUE]
        if _TURN.match(text):
            doubtful.setdefault(memory_id, _OF_A_TURN)
        elif _TIME_OF_DAY.search(text[:_BEGINNING]):
            doubtful.setdefault(memory_id, _OF_A_MOMENT)
        else:
            most = 0.0
            if _STATE.search(text[:_BEGINNING]):
                most = _OF_A_STATE
            elif not _SAYS_SOMETHING.search(_SENTENCE_START.sub("", beginning)):
                most = _ADDRESSED if _IS_ADDRESSED.search(beginning) else _VAGUE
                if any(_STANDING.find(beginning)):
                    most = _STANDING_VAGUE
            length = min(len(text) / _LONGEST_VAGUE, 1.0)
            doubtful.setdefault(memory_id, most * (1 - length) if most else -length)
    return doubtful


_STANDING = load_rules("standing").only("standing")
_IS_ADDRESSED = re.compile(r"[?\uff1f]|:\W{0,3}\Z|\b(?:you|your|please|thanks?)\b|\A[a-z]")
"""Signs of what somebody said to somebody, or of a part of it: a question, a request, a small letter to begin with."""

_STATE = re.compile(
    r"[\u2705\u2713\u2714\u2611\u274c]|\[x\]|\A\W*(?:status|task|action|issue|result|date|progress|phase)\b\W{0,4}:",
    re.IGNORECASE,
)
"""Marks of what is done or has failed, and labels of a state: both hold until the next one."""

_PASSED, _OF_A_TURN, _OF_A_MOMENT, _ADDRESSED, _OF_A_STATE, _VAGUE, _STANDING_VAGUE = (
    0.6,
    0.58,
    0.55,
    0.54,
    0.52,
    0.5,
    0.2,
)
"""Priority of a plan whose day is over, a turn, a text of a moment, and at most of a text without a name: said to
somebody, any, and one that tells what holds for long («I like to read»).

Junk has .7 and more. Of 355 real texts that two readers judged, 15 of 17 turns are worthless, 18 of 39 texts with a
time of day, and 23 of 126 of those that are asked about for another reason. Of 42 that are worthless or outdated, in
random samples of 14 later sources, these signs reach 19 within a question for four memories; the limit reaches all.
Where two of five memories are worthless, no order of so few questions reaches more than five of eight. Asking first
about beginnings that many texts share found no more of them.
"""

_LONGEST_VAGUE = 2_000

_BEGINNING = 300
"""Characters in which a text says of which time it is."""


def _mask_drafts(
    drafts: Sequence[list[str]], memories: pd.DataFrame, findings: pd.DataFrame, limit: int
) -> tuple[list[_Asked], set[str], int]:
    """Make questions up to the limit; return them, the memories that are withheld, and how many drafts that took."""
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
    """Ask in batches of one kind, control questions among the others, until it has failed several times in a row.

    Return why answers are missing, as far as the judge itself does not say.
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
        mixed = [one for _, one in sorted(spread, key=lambda placed: placed[0])]
        for start in range(0, len(mixed), QUESTIONS_AT_ONCE):
            if n_failures >= _MAX_FAILURES:
                return problems
            batch = mixed[start : start + QUESTIONS_AT_ONCE]
            try:
                _ask_batch(judge, batch)
            except Exception as error:  # what rules have found must not be lost with it
                problems.append(_say_failure(model, error))
            n_failures = 0 if any(one.answers for one in batch) else n_failures + 1
            if cache:
                cache.put([one for one in batch if len(one.answers) == len(one.question.numbers)])
    return problems


def _say_failure(model: str, error: Exception) -> str:
    """Say why a judge failed; of an error that is not ours its kind alone, as its text may quote a key."""
    if isinstance(error, MemframeError):
        return printable(str(error))
    return f"{model} raised {type(error).__name__}; call it with one Question to see why"


def _ask_batch(judge: JudgeFunction, batch: list[_Asked]) -> None:
    """Ask one batch, and keep the answers that are usable.

    `ConfigError` if the judge returns something else than a list of `Answer`.
    """
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
        is_sure = isinstance(answer.confidence, int | float) and 0 <= answer.confidence <= 1
        if answer.verdict in VERDICTS[one.question.kind] and isinstance(answer.reason, str) and is_sure:
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
"""Verdicts after which the action of a finding is another one, by its check and action."""


def apply_judgement(findings: pd.DataFrame, judgement: Judgement) -> pd.DataFrame:
    """Return findings with what a judge has said: more for review, never a delete or a merge.

    A merge of near duplicates becomes ``review`` unless the judge calls them the same. Versions that the judge
    finds both true, and junk that it finds lasting, are proposed no more. What the judge alone
    has found is of a kind that begins with ``judged_``.
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
    for _, members in forms.groupby("group"):  # one of each is asked about
        told = [verdict_of[pair] for one in members["id"] if (pair := frozenset((one,))) in verdict_of]
        verdict_of |= {frozenset((one,)): told[0] for one in members["id"] if told}
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
    is_single = judged["older"].isna() & judged["verdict"].isin(_WORTHLESS) & ~judged["newer"].isin(proposed)
    singles: list[Any] = [*judged[is_single].itertuples()]
    frames.append(list_findings(_make_finding("junk", row.newer, row, judgement.model) for row in singles))
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
    """Answers by the hash of a masked question, of one model with one prompt.

    One file for each model and prompt, sealed with the data key as journals are: hashes of short texts could be
    guessed, so that they are not written in the open either.
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
            return  # none yet, damaged, or sealed with a key that is gone: the questions are asked again

    def get(self, question: Question) -> dict[int, Answer] | None:
        """Return the answers to a question by place, if there are any."""
        return self._answers.get(_hash(question))

    def put(self, answered: Iterable[_Asked]) -> None:
        """Keep answers, and write all of them."""
        self._answers |= {_hash(one.question): one.answers for one in answered}
        kept = dict(list(self._answers.items())[-_MAX_KEPT:])
        sealed = self._cipher.seal(msgspec.msgpack.encode(kept), associated_data=self._purpose)
        with atomic_file(self._path) as file:
            file.write(sealed)


def _hash(question: Question) -> bytes:
    asked = [question.kind, question.newer, question.older, question.said_at]
    return hashlib.sha256(msgspec.json.encode(asked)).digest()
