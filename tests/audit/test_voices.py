"""What the checks say of pairs in voices that they were not written for."""

import pytest

from memframe.audit.changed_value import find_changed_values
from memframe.audit.likeness.similar import similar_pairs
from memframe.audit.near_duplicate import find_near_duplicates
from tests.pairs.by_hand import of_one_user_each, verdicts
from tests.pairs.corpus import frame_of
from tests.pairs.voices import VOICES, pairs


def judged(told):
    frame = of_one_user_each(told)
    similar = similar_pairs(frame)
    near, changed = (find(frame, pairs=similar) for find in (find_near_duplicates, find_changed_values))
    return list(zip(told, verdicts(told, near, changed), strict=True))


@pytest.fixture(scope="module", params=VOICES)
def said(request):
    return judged(list(pairs(request.param, 11)))


def of(said, verdict):
    return [(pair, found) for pair, found in said if pair.verdict == verdict]


def test_nothing_that_differs_in_a_value_is_merged(said):
    assert [pair for pair, found in said if found == "same" != pair.verdict] == []


def test_the_same_is_merged_in_whichever_way_it_is_said(said):
    same = of(said, "same")
    missed = [pair for pair, found in same if found != "same"]
    assert len(missed) <= 0.06 * len(same), missed


def test_another_value_is_found(said):
    changed = of(said, "changed")
    missed = [pair for pair, found in changed if found != "changed"]
    assert len(missed) <= 0.08 * len(changed), missed


def test_two_facts_of_one_form_are_two_facts(said):
    apart = of(said, "apart")
    related = [pair for pair, found in apart if found != "apart"]
    assert len(related) <= 0.03 * len(apart), related


PLAIN = "Ada drinks oat milk with her coffee at 7:30 am."


@pytest.mark.parametrize(
    "other",
    [
        f"As mentioned, {PLAIN}",
        f"{PLAIN} (mentioned in passing)",
        PLAIN.upper(),
        PLAIN.replace("coffee", "cofffee"),
        PLAIN.replace(" ", "  "),
        PLAIN.replace("drinks", "apparently drinks"),
        "Ada drinks oat milk with her coffee at...",
    ],
)
@pytest.mark.parametrize("is_newer", [False, True])
def test_the_plain_text_is_kept(other, is_newer):
    frame = frame_of([PLAIN, other] if is_newer else [other, PLAIN])
    found = find_near_duplicates(frame)
    (keeper,) = found[found["kind"] == "keeper"]["id"]
    assert frame.set_index("id").loc[keeper, "content"] == PLAIN
