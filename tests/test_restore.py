"""Archives come back: what is gone is made again, what is there stays, and nothing is there twice."""

import tempfile
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import memframe as mf
from memframe.plan.change import FIELDS
from memframe.restore import check_archive
from tests.conftest import FEW_EXAMPLES, User
from tests.test_undo import QUIET, applied, held, whole

ROWS = {
    "content": ["tea", "coffee", "water", "tea"],
    "title": ["a", None, "", "another"],
    "tags": [("hot", "drink"), (), ("cold",), ()],
    "importance": [0.5, None, 0.0, 1.0],
}


@pytest.fixture
def memories(access):
    mf.create_memories(access, pd.DataFrame(ROWS), workers=1, **QUIET).raise_for_failures()
    return mf.load_memories(access, progress=False)


@pytest.fixture(params=["backup.parquet", "backup.jsonl", "backup.csv", "backup", "sealed.parquet"])
def archive(request, access, memories, tmp_path):
    path = tmp_path / request.param
    mf.export_memories(access, path, sealed=path.stem == "sealed", progress=False)
    return path


@pytest.fixture
def backup(access, memories, tmp_path):
    mf.export_memories(access, tmp_path / "memories.parquet", progress=False)
    return tmp_path / "memories.parquet"


@pytest.fixture
def foreign(service):
    """The open access of another user, who has no memories yet."""
    person = User(service, f"{uuid4()}@example.org")
    yield person.access()
    person.close()


def delete(access, memories):
    applied(access, mf.plan_deletes(access, memories))


def notes(plan):
    return " ".join(plan.notes)


def test_all_of_it_comes_back_as_it_was_and_only_once(access, memories, archive):
    assert len(mf.plan_restore(access, archive)) == 0
    before = whole(access)
    delete(access, memories)
    plan = mf.plan_restore(access, archive)
    assert plan.counts == {"restore": 4}
    assert repr(plan) == "<memframe.Plan: 4 restores>"
    assert "deleted within 30 days keeps its id and dates" in notes(plan)
    run = applied(access, plan)
    pd.testing.assert_frame_equal(whole(access), before)
    again = mf.plan_restore(access, archive)
    assert len(again) == 0
    assert "Not changed: 4 memories as archived." in again.notes
    applied(access, mf.plan_undo(access, run))
    assert held(access) == []


def test_of_what_is_partly_gone_the_rest_is_left_alone(access, memories, backup):
    mf.create_memories(access, pd.DataFrame({"content": ["new since"]}), **QUIET)
    delete(access, memories.iloc[[0, 2]])
    plan = mf.plan_restore(access, backup)
    assert plan.changes.row.tolist() == [0, 2]
    assert "2 memories as archived, 1 memory not in the archive" in notes(plan)
    applied(access, plan)
    assert set(mf.load_memories(access, progress=False).id) > set(memories.id)


@pytest.mark.parametrize(
    ("on_conflict", "counts", "title"),
    [("mark", {"conflict": 1}, "edited"), ("mine", {"patch": 1}, "a"), ("theirs", {}, "edited")],
)
def test_what_differs_is_a_conflict_unless_one_side_wins(
    access, memories, backup, on_conflict, counts, title
):
    mf.update_memories(access, memories.iloc[:1].assign(title="edited", tags=[()]), **QUIET)
    with pytest.raises(mf.PlanError, match=r"1 row conflicts.*row 0: title, tags not as archived"):
        mf.plan_restore(access, backup, on_conflict="raise")
    plan = mf.plan_restore(access, backup, on_conflict=on_conflict)
    assert plan.counts == counts
    for change in plan.records:
        assert (change.id, change.before["title"], change.after["title"]) == (memories.id[0], "edited", "a")
        assert "title, tags not as archived" in change.reason
    applied(access, plan.without("conflict"))
    assert mf.load_memory(access, memories.id[0]).title[0] == title


def test_where_nothing_is_restored_ids_are_new_and_are_known_again(elsewhere, memories, backup):
    before = held(elsewhere)
    delete(elsewhere, memories)
    plan = mf.plan_restore(elsewhere, backup)
    assert "new ids and the date of the run" in notes(plan)
    applied(elsewhere, plan)
    assert held(elsewhere) == before
    loaded = mf.load_memories(elsewhere, progress=False)
    assert not set(loaded.id) & set(memories.id)
    again = mf.plan_restore(elsewhere, backup)
    assert len(again) == 0
    assert "4 memories with another id" in notes(again)
    mf.update_memories(elsewhere, loaded.iloc[1:2].assign(content="edited since"), **QUIET)
    assert len(mf.plan_restore(elsewhere, backup)) == 0, "it is known by the journal of the restore"


@pytest.mark.parametrize("sealed", [False, True])
def test_an_archive_of_another_account_is_matched_by_what_it_says(
    access, foreign, memories, tmp_path, sealed
):
    path = tmp_path / "theirs.parquet"
    mf.export_memories(access, path, sealed=sealed, progress=False)
    key = access.credentials.encryption_key if sealed else None
    if sealed:
        with pytest.raises(mf.SealError, match="pass one of theirs"):
            mf.plan_restore(foreign, path)
    mf.create_memories(foreign, pd.DataFrame({name: cells[1:2] for name, cells in ROWS.items()}), **QUIET)
    plan = mf.plan_restore(foreign, path, key=key)
    assert plan.counts == {"create": 3}
    assert not any(change.restores for change in plan.records)
    assert "with no id of this account get new ids" in notes(plan)
    applied(foreign, plan)
    assert held(foreign) == held(access)
    assert len(mf.plan_restore(foreign, path, key=key)) == 0
    first = mf.load_memories(foreign, progress=False).query("content == 'water'")
    mf.update_memories(foreign, first.assign(title="of their own"), **QUIET)
    marked = mf.plan_restore(foreign, path, key=key, on_conflict="mark")
    assert marked.counts == {"conflict": 1}, "not twice with another title"


def test_frames_restore_too_and_say_what_they_cannot(access, memories):
    delete(access, memories)
    odd = memories.assign(
        mine=1, content=[None, "coffee", "water", "tea"], content_error=["no key", *[None] * 3]
    )
    odd["tags"] = [(), (), ("a,b",), ()]
    odd["title"] = pd.Series([None, None, None, "half \ud83d of a pair"], dtype=object)
    plan = mf.plan_restore(access, odd)
    assert plan.counts == {"invalid": 3, "restore": 1}
    assert (
        plan.changes.reason.str.contains("no content that opens|contains a comma|half of a surr").sum() == 3
    )
    assert plan.id
    assert "no such columns: mine" in notes(plan)
    applied(access, plan.without("invalid"))
    assert mf.load_memories(access, progress=False).content.tolist() == ["coffee"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: pd.concat([frame, frame]), "occurs 2 times"),
        (lambda frame: frame.assign(importance="high"), "importance is text, not a number"),
        (lambda frame: frame.to_dict("records"), "not a pandas DataFrame"),
    ],
)
def test_what_is_no_archive_is_refused(access, memories, change, words):
    with pytest.raises(mf.PlanError, match=words):
        mf.plan_restore(access, change(memories))


def test_a_key_for_a_frame_or_for_what_is_not_sealed_is_refused(access, memories, backup):
    with pytest.raises(mf.PlanError, match="this is a frame"):
        mf.plan_restore(access, memories, key=access)
    with pytest.raises(mf.SealError, match="is not sealed, and a key was given"):
        mf.plan_restore(access, backup, key=access)


def test_a_rehearsal_proves_that_an_archive_holds_everything(access, memories, archive):
    found = check_archive(access, archive)
    assert (found.is_whole, found.n_listed, found.n_archived) == (True, 4, 4)
    mf.update_memories(access, memories.iloc[1:2].assign(title="edited"), **QUIET)
    delete(access, memories.iloc[:1])
    new = mf.create_memories(access, pd.DataFrame({"content": ["new"]}), **QUIET).outcomes.id[0]
    found = check_archive(access, archive)
    assert found.missing == (new,)
    assert found.differing == {memories.id[1]: ("title", "updated_at")}
    assert found.gone == (memories.id[0],)
    assert "does not contain all of the 4 memories" in str(found)


def test_a_rehearsal_holds_after_an_edit_that_was_undone(access, memories, archive):
    run = mf.update_memories(access, memories.iloc[1:2].assign(title="edited"), **QUIET)
    applied(access, mf.plan_undo(access, run))
    found = check_archive(access, archive)
    assert (found.is_whole, found.differing, found.n_rewritten) == (True, {}, 1)
    assert str(found).endswith("as they are\n1 as archived, but with a new updated_at")
    undated = mf.load_archive(archive, key=access if archive.stem == "sealed" else None)
    assert not check_archive(access, undated.drop(columns="updated_at")).is_whole, "then it proves nothing"


def test_secrets_of_an_archive_are_restored_and_not_shown(access, backup):
    secret = "Tr0ub4dor&3x"
    rows = mf.load_archive(backup)
    archived = rows.assign(content=f"The wifi password is {secret}.")
    delete(access, rows.iloc[2:])
    plan = mf.plan_restore(access, archived, on_conflict="mark")
    assert plan.counts == {"conflict": 2, "restore": 2}
    shown = plan.diff() + plan.to_json() + plan._repr_html_() + str(plan.changes.to_dict())
    assert "The wifi password is" in shown
    assert secret not in shown
    applied(access, plan.without("conflict"))
    assert mf.load_memories(access, progress=False).content.str.contains(secret).sum() == 2


def test_a_rehearsal_proves_nothing_of_what_does_not_open_or_is_not_archived(access, memories, backup):
    frame = mf.load_archive(backup)
    frame.loc[0, ["content", "content_error"]] = [None, "no key"]
    assert check_archive(access, frame).differing == {memories.id[0]: ("content",)}
    assert set(check_archive(access, frame.drop(columns=["source", "created_at"])).differing.values()) == {
        ("content", "source", "created_at"),
        ("source", "created_at"),
    }


SOME_ROWS = st.sets(st.integers(0, 3))


@FEW_EXAMPLES
@example(gone={0, 1}, edited={1, 2}, of_archive={0, 2})
@given(gone=SOME_ROWS, edited=SOME_ROWS, of_archive=st.sets(st.integers(0, 3), min_size=1))
def test_whatever_happened_since_nothing_is_lost_or_doubled(service, gone, edited, of_archive):
    """The archive holds some rows; of all rows some are edited and some deleted after it was written."""
    user = User(service, f"{uuid4()}@example.org")
    access = user.access()
    mf.create_memories(access, pd.DataFrame(ROWS), workers=1, **QUIET).raise_for_failures()
    memories = mf.load_memories(access, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.parquet"
        mf.export_memories(memories.iloc[sorted(of_archive)], path)
        if edited:
            mf.update_memories(access, memories.iloc[sorted(edited)].assign(source="edited"), **QUIET)
        if gone:
            delete(access, memories.iloc[sorted(gone)])
        marked = mf.plan_restore(access, path, on_conflict="mark")
        conflicts, creates = edited & of_archive - gone, gone & of_archive
        assert marked.counts == {
            name: len(rows) for name, rows in (("restore", creates), ("conflict", conflicts)) if rows
        }
        plan = mf.plan_restore(access, path)
        assert plan.records == marked.without("conflict").records
        applied(access, plan)
        after = mf.load_memories(access, progress=False)
        assert set(after.id) == set(memories.id[[n for n in range(4) if n not in gone - of_archive]])
        assert set(after.id[after.source == "edited"]) == {memories.id[n] for n in edited - gone}
        archived = mf.load_archive(path).set_index("id")
        back = after[after.id.isin(memories.id[sorted(creates)])].set_index("id")
        pd.testing.assert_frame_equal(back[list(FIELDS)], archived.loc[back.index, list(FIELDS)])
        assert len(mf.plan_restore(access, path)) == 0
    user.close()
