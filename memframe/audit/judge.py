"""The judge: a language model, a function or a person that is asked what rules cannot know.

Questions go to a function, `ChatJudge` or any other, in batches: whether a newer memory says the same as an older one,
replaces or contradicts it, and whether a text is worth keeping. Secrets and personal data are masked before, and
memories whose masking is doubtful are not asked about. A judge deletes and merges nothing: its verdicts turn
candidates into findings for review, and proposals of rules into such.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import msgspec
import numpy as np
import pandas as pd

from memframe.audit.findings import findings_frame, joined
from memframe.audit.judge_masks import Masks
from memframe.display import number_of
from memframe.errors import ConfigError, JournalError
from memframe.files import atomic_file, private_folder
from memframe.keystore import LocalCipher, open_local_cipher, state_folder

Kind = Literal["relation", "worth"]

VERDICTS: Mapping[str, tuple[str, ...]] = {
    "relation": ("same", "replaced", "contradicts", "both_true", "unrelated"),
    "worth": ("lasting", "passing", "machine", "instruction", "nothing"),
}
"""What may be answered to a question of each kind."""

BATCH = 10
JUDGE_LIMIT = 500
LEAST_RIGHT = 16
"""Control questions that a judge answers right at least, or else its verdicts change nothing."""

JUDGED = "judged_"
"""With this the kinds of findings begin that a judge alone has made."""

_MAX_OLDER = 5
_MAX_REASON = 300
_MAX_FAILURES = 3
_PROMISE = {"superseded": 3.0, "changed_value": 3.0, "near_duplicate": 1.0}
"""How early a pair is asked about that a rule has named, added to its score from 0 to 1."""

_WITH_CUE = 2.0
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

    kind: Kind
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


@dataclass(frozen=True, eq=False)
class Judgement:
    """Outcome of the questions to a judge.

    Attributes
    ----------
    judged : DataFrame
        Columns ``question newer older verdict reason confidence model cached``, one row a pair or text, without a
        verdict where there was no answer.
    model : str
    n_asked, n_unanswered : int
        Pairs and texts.
    n_not_asked : int
        Questions beyond the limit, or after the judge had failed several times in a row.
    n_withheld : int
        Memories that were not asked about, as their masking is doubtful.
    n_right, n_control : int
        Control questions.
    problems : tuple of str
        Why there was no answer, as far as the judge says.
    """

    judged: pd.DataFrame
    model: str = ""
    n_asked: int = 0
    n_unanswered: int = 0
    n_not_asked: int = 0
    n_withheld: int = 0
    n_right: int = 0
    n_control: int = 0
    problems: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """True if enough control questions were answered right for the verdicts to count."""
        return self.n_right >= LEAST_RIGHT

    def sentences(self) -> Iterator[str]:
        """Say what was asked, how far the answers are to be believed, and what was not asked."""
        things = number_of(self.n_asked, "pair or text", "pairs and texts")
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


def no_judgement() -> Judgement:
    """Return the judgement of an audit without a judge."""
    return Judgement(_judged_frame([]))


class Control(msgspec.Struct, frozen=True):
    """A question with a known answer."""

    newer: str
    verdicts: tuple[str, ...]
    older: tuple[str, ...] = ()

    @property
    def question(self) -> Question:
        return Question("relation" if self.older else "worth", self.newer, self.older)

    def is_right(self, answers: Mapping[int, Answer]) -> bool:
        """Return whether all answers, by place, are among the accepted ones."""
        return all(
            place in answers and answers[place].verdict in accepted.split("|")
            for place, accepted in enumerate(self.verdicts)
        )


def control_questions() -> list[Control]:
    """Read the control questions."""
    text = files(__package__).joinpath("control_questions.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, list[Control]])["question"]


@dataclass(eq=False)
class _AskedQuestion:
    """A question, what it is about, and the answers to it by place."""

    question: Question
    newer: str = ""
    older: tuple[str, ...] = ()
    control: Control | None = None
    answers: dict[int, Answer] = field(default_factory=dict)
    is_cached: bool = False
    was_sent: bool = False


class _OpenQuestion(NamedTuple):
    """A question before masking: the ids that it is about, and how promising it is."""

    kind: Kind
    newer: str
    older: tuple[str, ...]
    promise: float


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
        Of all checks, with their places: what is masked is not told by these alone.
    candidates : DataFrame
        Of `find_candidates`.
    limit : int
        Questions that are asked at most, beside the control questions.

    Raises
    ------
    ConfigError
        ``judge`` returned something else than a list of `Answer`.
    """
    model = str(getattr(judge, "model", "") or getattr(judge, "__name__", type(judge).__name__))
    drafts = _drafts(memories, findings, candidates)
    chosen = drafts[: max(0, limit)]
    masks = Masks(memories, findings, {name for draft in chosen for name in (draft.newer, *draft.older)})
    asked = [one for draft in chosen if (one := _masked(draft, masks)) is not None]
    if not asked:
        return Judgement(
            _judged_frame([]), model, n_not_asked=len(drafts) - len(chosen), n_withheld=masks.n_withheld
        )
    control = [_AskedQuestion(one.question, control=one) for one in control_questions()]
    cache = Cache.of(model, str(judge.prompt)) if hasattr(judge, "prompt") else None
    n_skipped = _ask_all(judge, asked, control, cache)
    made = [one for one in asked if one.was_sent or one.is_cached]
    judged = _judged_frame([row for one in made for row in _rows(one, model)])
    return Judgement(
        judged,
        model,
        n_asked=len(judged),
        n_unanswered=int(judged["verdict"].isna().sum()),
        n_not_asked=len(drafts) - len(chosen) + n_skipped,
        n_withheld=masks.n_withheld,
        n_right=sum(one.control.is_right(one.answers) for one in control if one.control),
        n_control=len(control),
        problems=tuple(dict.fromkeys(getattr(judge, "problems", ()))),
    )


def _drafts(memories: pd.DataFrame, findings: pd.DataFrame, candidates: pd.DataFrame) -> list[_OpenQuestion]:
    """Gather what could be asked, the most promising first: what rules have found, then what has a cue."""
    age = {name: place for place, name in enumerate(memories.sort_values("created_at", kind="stable")["id"])}
    groups: defaultdict[str, dict[str, float]] = defaultdict(dict)
    related = findings[
        findings["check"].isin(["superseded", "changed_value"])
        | ((findings["check"] == "near_duplicate") & (findings["action"] == "merge"))
    ]
    columns = (related[name] for name in ("id", "related_id", "score", "check"))
    for one, other, score, check in zip(*columns, strict=True):
        if one in age and other in age and one != other:
            older, newer = sorted((one, other), key=age.__getitem__)
            promise = _PROMISE[check] + (0.0 if pd.isna(score) else score)
            groups[newer][older] = max(promise, groups[newer].get(older, 0.0))
    columns = (candidates[name] for name in ("newer", "older", "score", "cue"))
    for newer, older, score, cue in zip(*columns, strict=True):
        if isinstance(newer, str) and isinstance(older, str):
            groups[newer].setdefault(older, score + (_WITH_CUE if isinstance(cue, str) else 0.0))
    drafts = []
    for newer, promises in groups.items():
        best = sorted(promises, key=lambda older: -promises[older])[:_MAX_OLDER]
        drafts.append(_OpenQuestion("relation", newer, tuple(best), promises[best[0]]))
    told = findings[
        (findings["check"] == "junk") & (findings["action"] == "review") & findings["id"].isin(age.keys())
    ]
    worth = told.groupby("id", sort=False)["score"].max().fillna(0.0)
    drafts += [_OpenQuestion("worth", str(name), (), _WITH_CUE + score) for name, score in worth.items()]
    return sorted(drafts, key=lambda draft: -draft.promise)


def _masked(draft: _OpenQuestion, masks: Masks) -> _AskedQuestion | None:
    newer, *rest = masks.of((draft.newer, *draft.older))
    older = [(name, text) for name, text in zip(draft.older, rest, strict=True) if text is not None]
    if newer is None or (draft.kind == "relation" and not older):
        return None
    names = tuple(name for name, _ in older)
    days = tuple(masks.day_of(name) for name in (draft.newer, *names))
    question = Question(draft.kind, newer, tuple(text for _, text in older), days)
    return _AskedQuestion(question, draft.newer, names)


def _ask_all(
    judge: JudgeFunction, asked: list[_AskedQuestion], control: list[_AskedQuestion], cache: Cache | None
) -> int:
    """Ask in batches of one kind, control questions among the others; return how many were not asked at all."""
    for one in chain(asked, control):
        known = cache.get(one.question) if cache else None
        if known is not None:
            one.answers, one.is_cached = {place: Answer(*some) for place, some in known.items()}, True
    left = [one for one in asked if not one.is_cached]
    if not left and all(one.is_cached for one in control):
        return 0
    n_failures, n_skipped = 0, 0
    for batch in _batches(left, [one for one in control if not one.is_cached]):
        if n_failures >= _MAX_FAILURES:
            n_skipped += sum(one.control is None for one in batch)
            continue
        _ask_batch(judge, batch)
        n_failures = 0 if any(one.answers for one in batch) else n_failures + 1
        if cache:
            cache.put(
                {one.question: one.answers for one in batch if len(one.answers) == len(one.question.numbers)}
            )
    return n_skipped


def _batches(asked: list[_AskedQuestion], control: list[_AskedQuestion]) -> Iterator[list[_AskedQuestion]]:
    """Spread control questions evenly over the others of their kind."""
    for kind in VERDICTS:
        some, known = ([one for one in part if one.question.kind == kind] for part in (asked, control))
        places = np.concatenate(
            [np.arange(len(some)), (np.arange(len(known)) + 0.5) * len(some) / max(1, len(known))]
        )
        mixed = [[*some, *known][place] for place in np.argsort(places, kind="stable").tolist()]
        yield from (mixed[start : start + BATCH] for start in range(0, len(mixed), BATCH))


def _ask_batch(judge: JudgeFunction, batch: list[_AskedQuestion]) -> None:
    place_of: dict[int, tuple[_AskedQuestion, int]] = {}
    questions: list[Question] = []
    number = 1
    for one in batch:
        questions.append(replace(one.question, number=number))
        place_of |= {n: (one, place) for place, n in enumerate(questions[-1].numbers)}
        number += len(one.question.numbers)
        one.was_sent = True
    answers: Any = judge(questions)
    if not isinstance(answers, list) or not all(isinstance(answer, Answer) for answer in answers):
        raise ConfigError("judge= did not return a list of memframe.audit.judge.Answer: see its docstring")
    for number, some in _by_number(answers).items():
        if number in place_of and len({answer.verdict for answer in some}) == 1:
            one, place = place_of[number]
            if _is_valid(some[0], one.question.kind):
                one.answers[place] = some[0]


def _by_number(answers: Iterable[Answer]) -> dict[int, list[Answer]]:
    found: defaultdict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        found[answer.number].append(answer)
    return found


def _is_valid(answer: Any, kind: Kind) -> bool:
    sure = answer.confidence
    is_sure = isinstance(sure, int | float) and math.isfinite(sure) and 0 <= sure <= 1
    return answer.verdict in VERDICTS[kind] and isinstance(answer.reason, str) and is_sure


def _rows(one: _AskedQuestion, model: str) -> Iterator[tuple[Any, ...]]:
    for place, older in enumerate(one.older or (None,)):
        answer = one.answers.get(place)
        said = (
            (answer.verdict, answer.reason[:_MAX_REASON], answer.confidence) if answer else (None, None, None)
        )
        yield one.question.kind, one.newer, older, *said, model, one.is_cached


def _judged_frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    columns = (
        dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_COLUMNS, ())
    )
    return pd.DataFrame({name: pd.Series(list(columns[name]), dtype=kind) for name, kind in _COLUMNS.items()})


# From verdicts to findings


def apply_judgement(findings: pd.DataFrame, judgement: Judgement) -> pd.DataFrame:
    """Return findings with what a judge has said: more for review, never a delete or a merge.

    A merge of near duplicates becomes ``review`` unless the judge calls them the same. Superseded facts and changed
    values that the judge finds both true, and junk that it finds lasting, are proposed no more. What the judge alone
    has found is of a kind that begins with ``judged_``.
    """
    if not judgement.is_used:
        return findings
    judged = judgement.judged[judgement.judged["verdict"].notna()]
    relations = judged[judged["question"] == "relation"]
    verdict_of = {
        frozenset((newer, older)): verdict
        for newer, older, verdict in zip(
            relations["newer"], relations["older"], relations["verdict"], strict=True
        )
    }
    lasting = set(judged["newer"][judged["verdict"] == "lasting"])
    pairs = list(map(frozenset, zip(findings["id"], findings["related_id"], strict=True)))
    columns = zip(findings["check"], findings["action"], findings["id"], pairs, strict=True)
    actions = [
        _action_after(check, action, verdict_of.get(pair), is_lasting=name in lasting)
        for check, action, name, pair in columns
    ]
    known = {"superseded": set(), "near_duplicate": set()}  # type: dict[str, set[frozenset[Any]]]
    for check, pair in zip(findings["check"], pairs, strict=True):
        known[
            "near_duplicate" if check == "exact_duplicate" else check if check in known else "superseded"
        ].add(pair)
    return joined(
        [findings.assign(action=actions), *_new_findings(relations, known, findings, judgement.model)]
    )


def _action_after(check: str, action: str, verdict: str | None, *, is_lasting: bool) -> str:
    if check == "junk" and is_lasting and action == "review":
        return "none"
    if verdict is None:
        return action
    if check == "near_duplicate" and action == "merge" and verdict != "same":
        return "review"
    if (
        check in ("superseded", "changed_value")
        and action == "review"
        and verdict in ("both_true", "unrelated")
    ):
        return "none"
    if check == "superseded" and action == "none" and verdict in ("replaced", "contradicts"):
        return "review"
    return action


def _new_findings(
    relations: pd.DataFrame, known: Mapping[str, set[frozenset[Any]]], findings: pd.DataFrame, model: str
) -> Iterator[pd.DataFrame]:
    """Make findings of what a judge says of pairs that no rule has named."""
    verdicts = {"superseded": ["replaced", "contradicts"], "near_duplicate": ["same"]}
    for check, wanted in verdicts.items():
        is_new = [
            pair not in known[check]
            for pair in map(frozenset, zip(relations["newer"], relations["older"], strict=True))
        ]
        new = relations[np.array(is_new, bool) & relations["verdict"].isin(wanted)]
        groups = findings["group"][findings["check"] == check].dropna()
        first = int(groups.max()) + 1 if len(groups) else 0
        yield findings_frame(
            check=check,
            kind=[f"{JUDGED}{verdict}" for verdict in new["verdict"]],
            severity="low",
            id=new["older"].tolist(),
            field="content",
            related_id=new["newer"].tolist(),
            group=(first + pd.factorize(new["newer"])[0]).tolist(),
            score=new["confidence"].tolist(),
            evidence=[f"judged by {model}: {reason}" for reason in new["reason"]],
            action="review",
        )


# ---- the cache of answers

_MAX_QUESTIONS = 20_000

Said = tuple[int, str, str, float]
"""The fields of an answer."""


class Cache:
    """Answers by the hash of a masked question, of one model with one prompt.

    One file for each model and prompt, sealed with the data key as journals are: hashes of short texts could be
    guessed, so that they are not written in the open either.
    """

    def __init__(self, path: Path, cipher: LocalCipher) -> None:
        self._path, self._cipher = path, cipher
        self._answers = self._read()

    @classmethod
    def of(cls, model: str, prompt: str) -> Self:
        """Open the cache of a model with a prompt, in the user's state folder."""
        name = hashlib.sha256(msgspec.json.encode([model, prompt])).hexdigest()[:32]
        return cls(private_folder(state_folder() / "judge") / f"{name}.sealed", open_local_cipher())

    def get(self, question: Question) -> dict[int, Said] | None:
        """Return the answers to a question by place, if there are any."""
        return self._answers.get(_hash(question))

    def put(self, answered: Mapping[Question, Mapping[int, Answer]]) -> None:
        """Keep answers, and write all of them."""
        self._answers |= {
            _hash(question): {
                place: (answer.number, answer.verdict, answer.reason, answer.confidence)
                for place, answer in answers.items()
            }
            for question, answers in answered.items()
        }
        kept = dict(list(self._answers.items())[-_MAX_QUESTIONS:])
        sealed = self._cipher.seal(msgspec.msgpack.encode(kept), associated_data=self._associated_data)
        with atomic_file(self._path) as file:
            file.write(sealed)

    @property
    def _associated_data(self) -> str:
        return f"answers of a judge, {self._path.stem}"

    def _read(self) -> dict[bytes, dict[int, Said]]:
        try:
            opened = self._cipher.open(self._path.read_bytes(), associated_data=self._associated_data)
            return msgspec.msgpack.decode(opened, type=dict[bytes, dict[int, Said]])
        except FileNotFoundError:
            return {}
        except (JournalError, msgspec.DecodeError):
            return {}  # damaged, or sealed with a key that is gone: the questions are asked again


def _hash(question: Question) -> bytes:
    return hashlib.sha256(
        msgspec.json.encode([question.kind, question.newer, question.older, question.said_at])
    ).digest()
