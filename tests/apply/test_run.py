"""What is refused before a run, and what a run shows of itself after it."""

from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
from msgspec.structs import replace

import memframe as mf
from memframe.apply import apply_plan, resume_run
from memframe.apply.decisions import (
    AMBIGUOUS,
    DECISIONS,
    DECISIONS_AFTER_READING,
    DECISIONS_AFTER_READING_IF_AMBIGUOUS,
    DECISIONS_IF_AMBIGUOUS,
    Reading,
    decide,
)
from memframe.apply.reconcile import match
from memframe.apply.responses import ResponseKind, WriteResponse, classify_error
from memframe.apply.run import Run, Verification
from memframe.journal import STATUSES, Operation
from memframe.plan.change import WRITES, Change
from memframe.plan.current import CurrentMemory
from memframe.wire import MemoryBlob
from tests.apply.test_failures import Play, answered, statuses
from tests.canaries import found_in, shown_by
from tests.simulation import world as faults
from tests.simulation.scenario import STAGE, creates, deletes, patches, plan_of
from tests.simulation.world import KEYS, World


def refused(plan, words, kind=mf.PlanError, **options):
    world = World()
    STAGE.enter(world)
    with pytest.raises(kind, match=words):
        apply_plan(STAGE.access(), plan, progress=False, **options)
    assert not world.log


# Before the first request


def test_a_plan_for_somebody_else_is_refused():
    plan = creates(World())
    refused(replace(plan, user_id="0b5e9e9c-3d1f-4c55-9a53-6f5d4a1b2c3d"), "for user 0b5e9e9c")
    refused(
        replace(plan, base_url="https://elsewhere.example.org/api/v1"), "for the service https://elsewhere"
    )


@pytest.mark.parametrize("action", ["conflict", "invalid"])
def test_a_plan_with_open_questions_is_refused_and_they_are_named(action):
    odd = Change(action=action, row=7, id="m9", reason="changed on both sides")
    refused(plan_of(odd), "row 7: changed on both sides")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *[("workers", value) for value in (0, 17, 2.0, True, "4")],
        *[("settle_s", value) for value in (-1, float("nan"), float("inf"), "2", None, True)],
    ],
)
def test_options_are_numbers_within_bounds(option, value):
    refused(creates(World()), f"{option}=", mf.ConfigError, **{option: value})


def test_an_empty_plan_is_done_at_once():
    run = apply_plan(STAGE.access(), plan_of(), progress=False)
    assert (len(run), run.journal, run.counts["attempted"], run.is_complete) == (0, None, 0, True)
    with pytest.raises(mf.JournalError, match="nothing to do"):
        resume_run(STAGE.access(), run)


def test_an_access_that_was_revoked_is_named_before_anything_is_sent():
    play = Play(creates)
    play.world.status = "rejected"
    with pytest.raises(mf.AccessError, match="request r1 is rejected"):
        play.run()
    assert not STAGE.journal.exists()


def test_the_journal_of_another_user_is_refused(tmp_path):
    play = Play(creates)
    play.run()
    access = STAGE.access()
    access.credentials = replace(access.credentials, user_id="0b5e9e9c-3d1f-4c55-9a53-6f5d4a1b2c3d")
    with pytest.raises(mf.PlanError, match="this journal is for user"):
        resume_run(access, STAGE.journal, **play.options)


# The tables


def test_the_tables_know_every_case():
    assert DECISIONS.keys() == set(get_args(ResponseKind))
    assert all(decisions.keys() == WRITES for decisions in DECISIONS.values())
    assert all(kind in DECISIONS and action in WRITES for kind, action in DECISIONS_IF_AMBIGUOUS)
    readings = {("patch", reading) for reading in get_args(Reading)} | {
        ("delete", reading) for reading in get_args(Reading) if reading != "as intended"
    }
    assert DECISIONS_AFTER_READING.keys() == readings
    assert DECISIONS_AFTER_READING_IF_AMBIGUOUS.keys() <= readings
    assert DECISIONS.keys() >= AMBIGUOUS


@pytest.mark.parametrize("kind", get_args(ResponseKind))
@pytest.mark.parametrize("action", sorted(WRITES))
@pytest.mark.parametrize("ambiguous", [False, True])
def test_what_may_have_been_carried_out_is_never_planned_again_as_if_nothing_had_been(
    kind, action, ambiguous
):
    change = Change(action=action, id="m1")
    sent = Operation(n=0, change=change, state="sending", attempts=1, ambiguous=ambiguous)
    _, moved = decide(sent, WriteResponse(kind, id="m1", error=mf.NoAnswerError("broke off")))
    assert moved.state in STATUSES
    assert moved.ambiguous == (ambiguous or kind in {"unclear", "wrong_record"})
    assert not (moved.state == "planned" and moved.ambiguous)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (mf.NoAnswerError("refused", sent=False), "unsent"),
        (mf.NoAnswerError("broke off"), "unclear"),
        (mf.RateLimitError("slow down", status=429), "throttled"),
        (mf.AuthError("no", status=401), "access_denied"),
        (mf.ServiceError("down", status=503), "unsent"),  # of the token: nothing else is raised
        (mf.InvalidError("no", status=400), "access_denied"),
        (mf.ProtocolError("too large"), "wrong_record"),
        (mf.ConfigError("an id that cannot travel"), "refused"),
    ],
)
def test_errors_are_responses_too(error, kind):
    assert classify_error(error).kind == kind


# Matching


def current(memory_id, content, sealed=None, error=None, **fields):
    blob = MemoryBlob(id=memory_id, user_id="u", content=sealed or f"sealed {content}", **fields)
    return CurrentMemory(blob, content, error)


def create(n, content, **fields):
    return Operation(
        n=n, change=Change(action="create", after={"content": content, **fields}), state="unknown"
    )


def test_by_text_it_is_counted_and_the_fields_decide_between_equal_ones():
    new = [current("m1", "tea", title="Coffee"), current("m2", "tea", title="Tea"), current("m3", "rowing")]
    creates = [
        create(0, "tea", title="Tea"),
        create(1, "tea"),
        create(2, "tea"),
        create(3, "rowing", title="Rows"),
    ]
    assert match(creates, new, digest_of={}, taken=[])[0] == {0: "m2", 1: "m1", 3: "m3"}


def test_a_create_stays_unknown_while_something_new_cannot_be_read():
    def odd(world, do):
        world.add(content="mf1.9.nobody-knows-the-key")
        return faults.reset(world, do)

    play = Play(lambda world: creates(world, 1), odd)
    run = play.run()
    assert statuses(run) == ["unknown"]
    assert "cannot be decrypted" in run.results[0].error


# What a run shows


OUTCOMES = (
    Operation(
        n=0, change=Change(action="create", row=0), new_id="m1", state="done", http_status=201, attempts=1
    ),
    Operation(n=1, change=Change(action="patch", row="b", id="m2"), state="conflict", error="<b>changed</b>"),
    Operation(n=2, change=Change(action="delete", row=2, id="m3")),
)


def test_the_frame_of_outcomes_always_has_the_same_columns_and_dtypes():
    full, empty = (Run(results=results, journal=None).outcomes for results in (OUTCOMES, ()))
    assert list(full.columns) == ["row", "action", "id", "status", "http_status", "attempts", "error"]
    pd.testing.assert_series_equal(full.dtypes, empty.dtypes)
    assert full.row.tolist() == [0, "b", 2]


def test_a_run_says_what_happened_in_a_line_and_in_a_table():
    run = Run(results=OUTCOMES, journal=Path("runs/<run>.journal"), verification=Verification(n_checked=1))
    assert repr(run) == "<memframe.Run: 1 done, 1 conflict, 1 planned; 1 read back: all as written>"
    html = run._repr_html_()
    assert "&lt;b&gt;changed&lt;/b&gt;" in html
    assert "<b>changed" not in html
    assert "&lt;run&gt;" in html
    assert html.count("<tr") == 3  # the head, and what is not done
    many = Run(results=OUTCOMES[1:2] * 1000, journal=None)._repr_html_()
    assert (many.count("<tr"), "and 980 more" in many) == (21, True)


@pytest.mark.parametrize(
    ("results", "verification", "words"),
    [
        (OUTCOMES, Verification(), "1 conflict.*resume_run"),
        (OUTCOMES[:2], Verification(), "1 conflict.*new plan"),
        (OUTCOMES[:1], Verification(n_checked=1, missing=("m1",)), r"1 missing \(m1\)"),
        (OUTCOMES[:1], Verification(n_checked=1, unlike=("m1",)), "read back differently"),
        (OUTCOMES[:1], Verification(duplicates=(("m1", "m2"),)), "m1 = m2"),
        (OUTCOMES[:1], Verification(failure="cannot reach it"), "not read back: cannot reach it"),
    ],
)
def test_whatever_is_not_as_it_was_planned_raises_when_it_is_asked(results, verification, words):
    run = Run(results=results, journal=Path("run.journal"), verification=verification)
    with pytest.raises(mf.IncompleteRunError, match=words) as caught:
        run.raise_for_failures()
    assert caught.value.run is run


def test_progress_counts_what_is_settled_and_how():
    seen = []
    play = Play(lambda world: creates(world, 4), answered(422), faults.reset_after)
    play.run(progress=lambda done, total, text: seen.append((done, total, text)))
    assert seen[0] == (0, 4, "changes")
    assert seen[-1] == (4, 4, "changes (2 done, 1 recovered, 1 rejected)")


@pytest.mark.parametrize(
    "fault", [faults.reset, answered(400), answered(403), answered(302, Location="https://x.example")]
)
def test_no_secret_is_in_what_a_run_shows_or_raises(fault):
    play = Play(deletes, fault)
    run = play.run()
    secrets = {"encryption key": KEYS[1], "memory key": "mk_1", "api key": "mf_key_of_the_simulation"}
    assert not found_in(f"{run!r} {run._repr_html_()} {run.outcomes.to_string()} {run.stopped!r}", secrets)


def test_an_interrupt_shows_no_secret_in_its_traceback():
    def interrupted(world, do):
        raise KeyboardInterrupt

    play = Play(patches, interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        play.run()
    secrets = {"encryption key": KEYS[1], "api key": "mf_key_of_the_simulation"}
    for text in shown_by(caught.value):
        if "tests" not in text:
            assert not found_in(text, secrets)
