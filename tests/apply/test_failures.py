"""What can go wrong with a write, one test a case, in the order of how much one knows of it.

Against the service in memory of `tests.simulation`, with the real client, journal and engine; what needs a real
socket, disk or process is in the files beside this one.
"""

from collections import Counter, deque
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

import memframe as mf
from memframe.apply import apply_plan, resume_run
from tests.simulation import world as faults
from tests.simulation.scenario import NOW, STAGE, content_of, creates, deletes, merge, patches, plan_of, twins
from tests.simulation.world import World

SETTLE_S = 6.0


class Play:
    """One plan against one world."""

    def __init__(self, make=creates, *broken, **world):
        self.world = World(faults=deque(broken), **world)
        self.plan = make(self.world)
        STAGE.clear()
        self.options = {"progress": False, "settle_s": SETTLE_S, "workers": 1}
        STAGE.enter(self.world)

    def run(self, **options):
        options = (
            {"confirm": self.plan.counts.get("delete", 0), "journal": STAGE.journal} | self.options | options
        )
        return apply_plan(STAGE.access(), self.plan, **options)

    def resume(self, **options):
        return resume_run(STAGE.access(self.world.key_version), STAGE.journal, **self.options | options)

    def texts(self):
        return Counter(content_of(row) for row in self.world.rows.values()) - Counter(self.world.texts_before)


ONE_EACH = {"fact 0": 1, "fact 1": 1}


def statuses(run):
    return [result.status for result in run.results]


def answered(status, body=None, **headers):
    """An answer by something that did nothing."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return lambda world, do: (status, {"detail": f"no ({status})"} if body is None else body, named)


# What is certain: nothing was sent


@pytest.mark.parametrize("n_times", [1, 3])
def test_01_nothing_was_sent_it_is_simply_tried_again(n_times):
    play = Play(creates, *[faults.refused] * n_times)
    run = play.run()
    assert statuses(run) == ["done", "done"]
    assert run.results[0].attempts == n_times + 1
    assert len(play.world.sent("GET")) == 2  # before and after: nothing had to be looked for
    assert play.texts() == ONE_EACH


def test_01_nobody_is_there_it_ends_soon_and_everything_is_planned():
    play = Play(lambda world: creates(world, 60), *[faults.refused] * 500)
    run = play.run()
    assert isinstance(run.stopped, mf.NoAnswerError)
    assert set(statuses(run)) == {"planned"}
    assert len(play.world.sent("POST")) <= 36 + 1
    assert play.world.now < 120
    assert play.resume().counts["planned"] == 60  # still nobody
    play.world.faults.clear()
    assert statuses(play.resume()) == ["done"] * 60
    assert set(play.texts().values()) == {1}


# One write that goes wrong, and what becomes of it


def but(status, change=lambda record: record):
    """The write is carried out, and answered in the service's own way."""
    return lambda world, do: (status, change(do()[1]))


def gone(world, do):
    del world.rows["m0"]
    return do()


def without_id(record):
    return {name: value for name, value in record.items() if name != "id"}


HTML, NOTHING = (lambda record: "<html>Created</html>"), (lambda record: "")
ID_AND_TITLE = lambda record: {"id": record["id"], "title": record["title"]}  # noqa: E731 - a row of the table
ODD = [{}, {"id": "m9"}, {"success": False}, {"error": "not now"}, ["m0"]]

FOUND = ["recovered", "done"], 2
"""What was done is found, and is not sent again."""
SENT_AGAIN = ["done", "done"], 3
DONE = ["done", "done"], 2
CONFLICT = ["conflict", "done"], 2

CASES = [
    # 03: the answer is lost
    *[(creates, fault, *FOUND) for fault in (faults.reset_after, faults.failed_after, faults.gateway_after)],
    # 05: a fault of the service says nothing about what it did
    *[(creates, but(status, NOTHING), *FOUND) for status in (502, 599)],
    *[(creates, answered(status), *SENT_AGAIN) for status in (503, 599)],
    # 04: a 201 that cannot be read
    *[(creates, fault, *FOUND) for fault in (faults.truncated, faults.empty)],
    *[(creates, but(201, odd), *FOUND) for odd in (without_id, HTML)],
    # 06: a timeout of the service is no promise either
    *[(creates, answered(status), *SENT_AGAIN) for status in (408, 425)],
    # 12: a 200 is as good as a 201; any other success is none before it was looked at
    (creates, but(200), *DONE),
    *[(creates, but(status, NOTHING), *FOUND) for status in (202, 204, 206)],
    # 18: what is carried out late, but within the quiet time
    (creates, faults.late, *FOUND),
    # 22: equal rows
    (twins, faults.reset, *SENT_AGAIN),
    *[(twins, fault, *FOUND) for fault in (faults.reset_after, faults.late)],
    # 25: an unknown patch that reads as intended is done, one that reads as before is sent again
    *[(patches, fault, *FOUND) for fault in (faults.reset_after, faults.truncated, faults.failed_after)],
    (patches, faults.accepted, *FOUND),
    *[(patches, fault, *SENT_AGAIN) for fault in (faults.reset, faults.failed_before, answered(408))],
    # 25: it may be answered with part of the record, but must say that it was done
    (patches, but(204, NOTHING), *DONE),
    *[(patches, but(200, part), *DONE) for part in (ID_AND_TITLE, lambda record: {"success": True})],
    *[(patches, but(200, lambda record, body=body: body), *FOUND) for body in ODD],
    *[(patches, answered(200, body), *SENT_AGAIN) for body in ODD],
    # 27: a patch of what is gone is never recreated
    (patches, gone, *CONFLICT),
    # 28: deletes, with both answers of the specification
    *[(deletes, fault, *FOUND) for fault in (faults.reset_after, faults.failed_after, faults.accepted)],
    *[(deletes, fault, *SENT_AGAIN) for fault in (faults.reset, faults.failed_before)],
    (deletes, answered(200, {"success": False}), *SENT_AGAIN),
    (deletes, but(204, NOTHING), *DONE),
    (deletes, but(200, lambda record: {"success": True}), *DONE),
    (deletes, gone, *CONFLICT),
]
HELD = {creates: ONE_EACH, twins: {"the same": 2}}


@pytest.mark.parametrize(("make", "fault", "expected", "n_sent"), CASES)
def test_what_becomes_of_a_write_that_goes_wrong(make, fault, expected, n_sent):
    play = Play(make, fault)
    n_before = len(play.world.rows)
    run = play.run()
    assert statuses(run) == expected
    assert len([one for one in play.world.log if one.key]) == n_sent
    if make in HELD:
        assert play.texts() == HELD[make]
    elif make is deletes:
        assert not play.world.rows
    else:
        assert len(play.world.rows) == n_before - (fault is gone)
    assert len({result.id for result in run.results}) == 2
    if "conflict" in expected:
        assert "deleted" in run.results[0].error
    else:
        assert run.is_complete


# What is not: it may have been carried out


@pytest.mark.parametrize("broken", [faults.reset, faults.failed_before, faults.gateway_before])
def test_02_a_broken_upload_is_looked_for_twice_and_sent_again_to_the_byte(broken):
    play = Play(creates, broken)
    run = play.run()
    first, again = [one for one in play.world.sent("POST") if one.key.endswith("-0")]
    assert (first.body, first.key) == (again.body, again.key)
    looks = [one.at for one in play.world.sent("GET") if first.at < one.at < again.at]
    assert len(looks) == 2
    assert looks[1] - looks[0] >= SETTLE_S
    assert statuses(run) == ["done", "done"]
    assert play.texts() == ONE_EACH


def test_05_a_row_that_always_fails_is_unknown_and_the_others_are_written():
    play = Play(creates)
    play.world.faults.extend([answered(500), faults.ok, *[answered(500)] * 3])
    run = play.run()
    assert statuses(run) == ["unknown", "done"]
    assert run.results[0].attempts == 4
    assert "500" in run.results[0].error
    with pytest.raises(mf.IncompleteRunError, match=r"1 unknown.*resume_run") as caught:
        run.raise_for_failures()
    assert caught.value.run is run
    assert statuses(play.resume()) == ["done", "done"]
    assert play.texts() == ONE_EACH


# What is certain, because the service says so


@pytest.mark.parametrize(
    ("headers", "least_s", "most_s"),
    [
        ({"Retry_After": "7"}, 7, 7.1),
        ({"Retry_After": "86400"}, 300, 300.1),
        ({"Retry_After": "soon"}, 0, 2),
        ({"Retry_After": "-5"}, 0, 2),
        ({}, 0, 2),
    ],
)
def test_07_throttled_it_waits_as_asked_and_sends_the_same_again(headers, least_s, most_s):
    play = Play(creates, answered(429, **headers))
    run = play.run()
    first, again = play.world.sent("POST")[:2]
    assert least_s <= again.at - first.at <= most_s
    assert (first.body, first.key) == (again.body, again.key)
    assert statuses(run) == ["done", "done"]
    assert len(play.world.sent("GET")) == 2


def test_07_a_date_in_retry_after_counts_from_now():
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    play = Play(creates, answered(429, Retry_After=date))
    play.run()
    first, again = play.world.sent("POST")[:2]
    assert 50 < again.at - first.at <= 60.1


def test_07_throttling_does_not_use_up_the_attempts_of_a_row():
    play = Play(creates, *[answered(429, Retry_After="1")] * 12)
    run = play.run()
    assert statuses(run) == ["done", "done"]
    assert run.results[0].attempts == 13


def test_07_a_window_of_few_writes_is_waited_out_however_often_it_closes():
    play = Play(lambda world: creates(world, 20), *([*[faults.throttled] * 60, faults.ok] * 20))
    assert statuses(play.run()) == ["done"] * 20


def test_07_a_service_that_throttles_for_ever_is_given_up():
    play = Play(creates, *[answered(429)] * 10_000)
    run = play.run()
    assert isinstance(run.stopped, mf.RateLimitError)
    assert statuses(run) == ["planned", "planned"]
    assert len(play.world.sent("POST")) <= 102


def test_08_an_expired_token_is_renewed_once_and_the_write_sent_again():
    play = Play(creates, faults.expired)
    run = play.run()
    assert statuses(run) == ["done", "done"]
    assert [one.path for one in play.world.log].count("/auth/token") == 1
    assert play.texts() == ONE_EACH


def test_08_a_second_401_stops_and_the_journal_is_kept():
    play = Play(creates, faults.ok, faults.expired, faults.expired)
    run = play.run()
    assert isinstance(run.stopped, mf.AuthError)
    assert statuses(run) == ["done", "planned"]
    assert run.verification.failure
    assert statuses(play.resume()) == ["done", "done"]
    assert play.texts() == ONE_EACH


def revoked(world, do):
    world.status = "revoked"
    return do()


def test_09_a_revocation_stops_everything_and_names_the_state():
    play = Play(lambda world: creates(world, 5), faults.ok, revoked)
    run = play.run()
    assert isinstance(run.stopped, mf.AccessError)
    assert "access request r1 is revoked" in str(run.stopped)
    assert statuses(run) == ["done", *["planned"] * 4]
    assert len(play.world.sent("POST")) == 2
    with pytest.raises(mf.AccessError, match="revoked"):
        play.resume()
    play.world.status = "approved"
    assert statuses(play.resume()) == ["done"] * 5


@pytest.mark.parametrize("status", [400, 404, 409, 413, 451])
def test_10_a_refused_row_has_the_reason_of_the_service_and_the_others_go_on(status):
    play = Play(creates, answered(status))
    run = play.run()
    assert statuses(run) == ["rejected", "done"]
    assert (run.results[0].http_status, run.results[0].attempts) == (status, 1)
    assert f"no ({status})" in run.results[0].error
    assert run.stopped is None
    assert play.texts() == {"fact 1": 1}


@pytest.mark.parametrize("status", [301, 303, 307])
def test_11_a_redirect_is_not_followed_and_stops(status):
    play = Play(creates, answered(status, Location="https://elsewhere.example.org/x"))
    run = play.run()
    assert isinstance(run.stopped, mf.ProtocolError)
    assert "elsewhere.example.org" in str(run.stopped)
    assert statuses(run) == ["planned", "planned"]
    assert len(play.world.sent("POST")) == 1


@pytest.mark.parametrize("place", [0, 1], ids=["that was there before", "that the run has made"])
def test_13_a_create_that_is_answered_with_the_id_of_a_memory_stops(place):
    def named(world, do):
        status, body = do()
        return status, body | {"id": list(world.rows)[place]}

    play = Play(lambda world: creates(world, 4), faults.ok, named)
    run = play.run()
    assert statuses(run) == ["done", "unknown", "planned", "planned"]
    assert isinstance(run.stopped, mf.ProtocolError)
    assert "the id of another memory" in str(run.stopped)
    assert statuses(play.resume()) == ["done", "recovered", "done", "done"]
    assert play.texts() == {f"fact {row}": 1 for row in range(4)}


def test_13_a_service_that_knows_the_text_may_join_equal_memories():
    def joined(world, do):
        return 200, {"id": next(iter(world.rows)), "user_id": faults.USER_ID}

    play = Play(lambda world: creates(world, 1), joined)
    assert statuses(play.run(encrypt=False)) == ["done"]


@pytest.mark.parametrize("field", ["user_id", "id"])
def test_13_an_answer_about_something_else_stops_and_keeps_none_of_it(field):
    def foreign(world, do):
        status, body = do()
        return status, {**body, field: "somebody else's", "title": "somebody else's secret"}

    play = Play(patches, foreign)
    run = play.run()
    assert isinstance(run.stopped, mf.ProtocolError)
    assert statuses(run) == ["unknown", "planned"]
    assert len(play.world.sent("PATCH")) == 1
    assert "secret" not in f"{run!r} {run.outcomes.to_string()}"
    assert statuses(play.resume()) == ["recovered", "done"]


def test_18_what_is_carried_out_later_than_the_quiet_time_is_there_twice_and_reported():
    play = Play(creates, faults.late)
    run = play.run(settle_s=4.0)  # and it comes after 5 s: when it was sent again, before the last look
    assert play.texts() == {"fact 0": 2, "fact 1": 1}
    (ids,) = run.verification.duplicates
    assert {content_of(play.world.rows[memory_id]) for memory_id in ids} == {"fact 0"}
    assert "1 duplicated" in repr(run)
    with pytest.raises(mf.IncompleteRunError, match="1 duplicated"):
        run.raise_for_failures()


@pytest.mark.parametrize("before", [[], [faults.ok]], ids=["the first", "the second"])
@pytest.mark.parametrize("make", [creates, twins])
def test_19_what_something_on_the_way_delivers_twice_is_reported_and_left(make, before):
    play = Play(make, *before, faults.twice)
    run = play.run()
    assert statuses(run) == ["done", "done"]
    assert len(run.verification.duplicates) == 1
    assert sum(play.texts().values()) == 3
    with pytest.raises(mf.IncompleteRunError, match=r"1 duplicated .* check these memories"):
        run.raise_for_failures()


@pytest.mark.parametrize("fault", [faults.reset_after, faults.reset])
def test_20_a_listing_that_lags_behind_does_not_prove_absence(fault):
    play = Play(creates, fault, lag_s=3.0)
    play.world.pass_time(3.0)
    run = play.run(settle_s=4.0)
    assert run.verification.is_clean
    assert play.texts() == ONE_EACH


@pytest.mark.parametrize(
    "broken",
    [
        answered(400),  # the cursor has expired
        answered(410),
        answered(200, {"memoryBlobs": [], "next_cursor": "c1"}),  # a cursor that repeats
        answered(200, "<html>"),
    ],
)
def test_21_a_listing_that_does_not_come_to_its_end_proves_nothing(broken):
    play = Play(creates, faults.reset)
    play.world.read_faults.extend([faults.ok, *[broken] * 12])  # a 400 may also mean that pages are too large
    run = play.run()
    play.world.read_faults.clear()
    assert statuses(run) == ["unknown", "done"]
    assert "could not find out" in run.results[0].error
    assert statuses(play.resume()) == ["done", "done"]
    assert play.texts() == ONE_EACH


# The key


def test_24_another_key_than_the_plan_was_made_with_is_refused_before_anything_is_sent():
    play = Play(creates)
    play.world.key_version = 2
    with pytest.raises(mf.StalePlanError, match="version 2 now, and the plan version 1"):
        play.run()
    assert not play.world.sent("POST")
    assert not STAGE.journal.exists()


def rotated(world, do):
    """The service changes the key, seals everything anew, and refuses what is sealed with the old one."""
    world.key_version = 2
    for row in world.rows.values():
        row["content"] = STAGE.envelopes[2].seal(STAGE.envelopes[1].open(row["content"]))
    return 409, {"detail": "the key has changed", "code": "key_version_changed"}


def lost_and_rotated(world, do):
    do()
    rotated(world, do)
    return faults.reset(world, do)


def test_24_a_key_that_changes_during_the_run_stops_it_and_asks_for_a_new_plan():
    play = Play(lambda world: creates(world, 4), faults.ok, rotated)
    run = play.run()
    assert isinstance(run.stopped, mf.StalePlanError)
    assert "new plan" in str(run.stopped)
    assert statuses(run) == ["done", "planned", "planned", "planned"]
    assert run.verification.is_clean
    assert play.texts() == {"fact 0": 1}


def test_24_unknown_creates_are_found_by_their_text_after_a_change_of_key():
    play = Play(
        lambda world: creates(world, 3), lost_and_rotated, answered(409, {"code": "key_version_changed"})
    )
    run = play.run()
    assert statuses(run) == ["recovered", "planned", "planned"]
    assert isinstance(run.stopped, mf.StalePlanError)
    assert statuses(play.resume()) == ["recovered", "planned", "planned"]


def test_24_a_change_of_key_that_no_write_is_refused_for_is_soon_seen_in_a_long_run():
    def slow(world, do):
        world.pass_time(1.0)
        return do()

    def slow_and_rekeyed(world, do):
        world.key_version = 2
        return slow(world, do)

    play = Play(lambda world: creates(world, 40), slow, slow_and_rekeyed, *[slow] * 38)
    run = play.run()
    assert statuses(run)[:2] == ["done", "done"]
    assert run.counts["planned"] >= 30
    assert len(run.verification.unlike) == run.counts["done"]
    with pytest.raises(mf.IncompleteRunError, match="plan_reseal"):
        run.raise_for_failures()


# Patches


def test_25_an_unknown_patch_that_reads_as_neither_is_a_conflict():
    def overtaken(world, do):
        world.rows["m0"]["title"] = "by somebody else"
        return faults.reset(world, do)

    play = Play(patches, overtaken)
    run = play.run()
    assert statuses(run) == ["conflict", "done"]
    assert "title" in run.results[0].error
    assert play.world.rows["m0"]["title"] == "by somebody else"


def test_25_a_refused_reading_does_not_make_an_unknown_patch_a_rejected_one():
    def and_then_illegible(n_times):
        def fault(world, do):
            world.get_faults += [answered(422)] * n_times
            return faults.reset_after(world, do)

        return fault

    assert statuses(Play(patches, and_then_illegible(1)).run()) == ["recovered", "done"]
    run = Play(patches, and_then_illegible(99)).run()
    assert statuses(run) == ["unknown", "done"]
    assert "no (422)" in run.results[0].error


def test_26_what_was_read_long_ago_is_read_again_before_it_is_overwritten():
    def slow(world, do):
        world.pass_time(31)
        world.rows["m1"]["title"] = "by somebody else"
        return do()

    play = Play(lambda world: patches(world, 3), slow)
    run = play.run()
    assert statuses(run) == ["done", "conflict", "done"]
    assert "changed in the meantime" in run.results[1].error
    assert play.world.rows["m1"]["title"] == "by somebody else"
    assert [one.path for one in play.world.sent("PATCH")] == ["/memory-blobs/m0", "/memory-blobs/m2"]


@pytest.mark.parametrize("fault", [faults.reset, answered(503), answered(429)])
@pytest.mark.parametrize(("n_times", "status"), [(14, "done"), (10_000, "planned")])
def test_26_a_run_waits_for_a_service_that_cannot_be_read(fault, n_times, status):
    def slow(world, do):
        world.pass_time(31)
        world.get_faults += [fault] * n_times
        return do()

    run = Play(lambda world: patches(world, 3), slow).run()
    assert statuses(run) == ["done", status, status]
    assert (run.stopped is None) is (status == "done")


def test_26_nothing_is_sent_after_a_reading_that_was_refused():
    def slow(world, do):
        world.pass_time(31)
        world.read_faults.append(answered(403))
        return do()

    play = Play(lambda world: plan_of(*patches(world, 101).records, *creates(world, 1).records), slow)
    run = play.run()
    assert isinstance(run.stopped, mf.AccessError)
    assert len(play.world.sent("PATCH")) == 1
    assert not play.world.sent("POST")


def test_26_what_has_moved_since_it_was_planned_is_refused_before_anything_is_sent():
    play = Play(patches)
    play.world.rows["m1"]["title"] = "by somebody else"
    with pytest.raises(mf.StalePlanError, match="row 1 title"):
        play.run()
    assert not play.world.sent("PATCH")


def test_26_another_field_that_somebody_changed_is_no_conflict_and_is_in_the_backup():
    def slow(world, do):
        world.pass_time(31)
        world.rows["m1"]["summary"] = "by somebody else"
        return do()

    play = Play(patches, slow)
    assert statuses(play.run()) == ["done", "done"]
    with mf.journal.Journal.open(STAGE.journal, STAGE.vault) as journal:
        assert journal.backup(1).summary == "by somebody else"


# Deletes


@pytest.mark.parametrize(
    ("make", "confirm"), [*((deletes, confirm) for confirm in (None, 1, 3, True)), (creates, 2)]
)
def test_29_deletes_are_confirmed_by_their_number(make, confirm):
    play = Play(make)
    with pytest.raises(mf.PlanError, match=r"deletes [02]"):
        play.run(confirm=confirm)
    assert not play.world.log


def test_29_each_memory_is_in_the_journal_whole_before_its_delete_leaves():
    seen = []

    def looking(world, do):
        with mf.journal.Journal.open(copy_of_journal(), STAGE.vault) as journal:
            seen.append([journal.backup(n).content for n in (0, 1)])
        return do()

    play = Play(deletes, looking)
    contents = [row["content"] for row in play.world.rows.values()]
    play.run()
    assert seen == [contents]


def copy_of_journal():
    copy = STAGE.journal.with_name("copy.journal")
    for ending in ("", "-wal"):
        there = STAGE.journal.with_name(STAGE.journal.name + ending)
        copy.with_name(copy.name + ending).write_bytes(there.read_bytes())
    return copy


# Interrupts


@pytest.mark.parametrize("n_done", [0, 1])
def test_30_ctrl_c_leaves_an_honest_journal_and_goes_on_its_way(n_done):
    def interrupted(world, do):
        do()
        raise KeyboardInterrupt

    play = Play(lambda world: creates(world, 4), *[faults.ok] * n_done, interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        play.run()
    assert str(STAGE.journal) in caught.value.__notes__[0]
    assert f"{'1 done, ' * n_done}1 unknown, {3 - n_done} planned; " in caught.value.__notes__[0]
    with mf.journal.Journal.open(STAGE.journal, STAGE.vault) as journal:
        assert journal.counts() == {"sending": 1, "planned": 3 - n_done} | ({"done": 1} if n_done else {})
    sent = {one.key: one.body for one in play.world.sent("POST")}
    play.plan = creates(World(), 5)  # edits in the meantime: no part of the run
    run = play.resume()
    assert statuses(run) == ["done"] * n_done + ["recovered"] + ["done"] * (3 - n_done)
    assert sent.items() <= {one.key: one.body for one in play.world.sent("POST")}.items()
    assert set(play.texts().values()) == {1}


def test_32_the_clock_of_this_machine_decides_nothing():
    play = Play(creates, faults.reset_after, faults.reset)
    STAGE.client.runtime = replace(STAGE.client.runtime, now=lambda: NOW - timedelta(days=30_000))
    assert play.run().is_complete
    assert play.texts() == ONE_EACH


# Groups


def test_a_group_deletes_only_what_its_keeper_has_taken_over():
    play = Play(merge)
    run = play.run()
    assert statuses(run) == ["done", "done", "done"]
    methods = [one.method for one in play.world.log if one.path.startswith("/memory-blobs")]
    assert methods.index("DELETE") > methods.index("PATCH")
    between = methods[methods.index("PATCH") : methods.index("DELETE")]
    assert "GET" in between  # it was read again as it was written


@pytest.mark.parametrize("broken", [answered(422), answered(500)])
def test_a_group_whose_keeper_failed_deletes_nothing(broken):
    play = Play(merge, *[broken] * 4)
    run = play.run()
    assert statuses(run)[1:] == ["planned", "planned"]
    assert all("row 0" in result.error for result in run.results[1:])
    assert not play.world.sent("DELETE")
    assert run.counts["attempted"] == 1


def test_a_group_whose_keeper_reads_back_otherwise_deletes_nothing():
    def stored_otherwise(world, do):
        answer = do()
        world.rows["m0"]["title"] = "AFTER 0"
        return answer

    run = Play(merge, stored_otherwise).run()
    assert statuses(run) == ["done", "planned", "planned"]
    assert "does not read back" in run.results[1].error
    assert run.verification.unlike == ("m0",)
