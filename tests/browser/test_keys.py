"""The page of the desk in Chromium, with a kernel that answers when the test lets it."""

import pytest
from ipywidgets import Widget

import memframe as mf
from memframe.review.widget import Desk
from tests.rows import memories_of

pytestmark = pytest.mark.browser

OPEN = """async ([source, style]) => {
    const {default: desk} = await import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
    document.head.append(Object.assign(document.createElement('style'), {textContent: style}));
    const receivers = new Set();
    window.asked = [];
    window.give = contents => contents.forEach(content => [...receivers].forEach(receive => receive(content)));
    const model = {
        on: (_, receive) => receivers.add(receive),
        off: (_, receive) => receivers.delete(receive),
        send: content => asked.push(content),
    };
    desk.render({model, el: document.body});
    document.querySelector('.mf-desk').focus();
}"""
FRAME = (
    "await new Promise(done => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(done))));"
)
TAKE = f"async () => {{ {FRAME} return asked.splice(0); }}"
IN_ONE_GO = """keys => keys.forEach(key =>
    document.querySelector('.mf-desk').dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})))"""


class Kernel:
    """The desk behind the page: it receives what was asked once the test says so."""

    def __init__(self, review, page):
        self.review, self.page = review, page
        self._sent, self._held = [], []
        self._desk = Desk(review)
        self._desk.send = self._sent.append
        page.evaluate(OPEN, [self._desk._esm, self._desk._css])
        self.answer()

    def answer(self, holds=lambda _: False):
        """Answer what was asked, but for what is held back until the next time."""
        asked, self._held = self._held, []
        while asked := asked + self.page.evaluate(TAKE):
            for content in asked:
                if holds(content):
                    self._held.append(content)
                else:
                    self._desk._receive(self._desk, content, [])
            self.page.evaluate("contents => give(contents)", self._sent)
            self._sent.clear()
            asked = []

    def press(self, *keys):
        """Press keys, each after the page was painted."""
        for key in keys:
            self.page.evaluate(f"async () => {{ {FRAME} }}")
            self.page.keyboard.press(key)

    @property
    def status(self):
        self.page.evaluate(f"async () => {{ {FRAME} }}")
        return self.page.locator(".mf-status").inner_text()

    @property
    def decided(self):
        """Decisions by memory."""
        proposals = self.review.proposals_by_id.values()
        return {name: state for one in proposals if (state := self.review.state(one)) for name in one.ids}

    @property
    def on_screen(self):
        """The memory that is decided on."""
        return self.page.locator(".mf-goes small, .mf-changes small").first.inner_text().split(" · ")[0]


@pytest.fixture
def kernel(context, tmp_path):
    rows = [{"id": f"m{n}", "content": f"Mail Ada {n} at ada{n}@zoo.example"} for n in range(30)]
    rows += [{"id": f"c{n}", "content": "Likes tea"} for n in range(3)]
    audit = mf.audit_memories(memories_of(rows), checks=["personal_data", "exact_duplicate"])
    page = context.new_page()
    yield Kernel(mf.review(audit, decisions=tmp_path / "decisions"), page)
    Widget.close_all()
    page.close()


def test_the_next_proposal_is_shown_before_the_kernel_has_answered(kernel):
    expected = {}
    for key, decision in (("a", "accepted"), ("r", "rejected"), ("l", "later")):
        expected[kernel.on_screen] = decision
        kernel.press(key)
    assert kernel.status.startswith("Put off. 4 of 31")
    assert kernel.on_screen not in expected
    assert kernel.page.locator(".mf-is-sent").count() == 3
    assert kernel.decided == {}
    kernel.answer()
    assert {name: kernel.decided[name] for name in expected} == expected
    assert kernel.page.locator(".mf-is-sent").count() == 0


def test_keys_that_are_pressed_before_a_proposal_is_painted_do_not_decide_on_it(kernel):
    decided = kernel.page.locator(".mf-is-accepted, .mf-is-rejected")
    kernel.page.evaluate(IN_ONE_GO, ["a", "r", "r"])
    assert "Accepted. Nothing was done: a key came before" in kernel.status
    kernel.answer()
    assert decided.count() == 1
    kernel.page.evaluate(IN_ONE_GO, ["j", "a"])
    kernel.answer()
    assert decided.count() == 1


def test_a_proposal_that_comes_late_says_what_was_done_before_it(kernel):
    kernel.page.locator(".mf-facets input").first.click()
    kernel.answer(lambda content: content.get("place", 0) > 0)
    kernel.press("a")
    assert kernel.status == "Accepted."
    kernel.answer()
    assert kernel.status.startswith("Accepted. 2 of 31")


def test_a_key_that_is_held_decides_once(kernel):
    kernel.page.keyboard.down("a")
    for _ in range(5):
        kernel.page.evaluate(f"async () => {{ {FRAME} }}")
        kernel.page.keyboard.down("a")  # as a keyboard repeats it
    kernel.page.keyboard.up("a")
    kernel.answer()
    assert kernel.page.locator(".mf-is-accepted").count() == 1
    assert "Press the key once" in kernel.status


def test_with_a_kernel_that_is_gone_only_what_is_on_the_screen_can_be_decided_on(kernel):
    kernel.press(*"a" * 30)
    n_sent = kernel.page.locator(".mf-is-sent").count()
    assert 8 <= n_sent <= 9  # what was fetched ahead
    assert "Nothing was done" in kernel.status
    kernel.answer()
    assert kernel.page.locator(".mf-is-accepted").count() == n_sent
    assert f"{n_sent + 1} of 31" in kernel.status


def test_a_decision_that_fails_is_shown_and_brought_back(kernel):
    path = kernel.review.decisions.path
    path.rename(path.with_name("away"))
    path.mkdir()
    first = kernel.on_screen
    kernel.press("a", "a")
    assert kernel.on_screen != first
    kernel.answer()
    assert kernel.on_screen == first
    assert "cannot be" in kernel.page.locator(".mf-failed").inner_text()
    assert kernel.status.startswith("Not decided: ")
    path.rmdir()
    path.with_name("away").rename(path)
    kernel.press("r")
    kernel.answer()
    assert kernel.decided[first] == "rejected"
    assert len({*kernel.decided.values()}) == 1


def test_a_group_that_was_opened_elsewhere_is_not_decided_on_unseen(kernel):
    while kernel.on_screen not in ("c1", "c2"):
        kernel.press("j")
        kernel.answer()
    group = next(one for one in kernel.review.proposals if len(one.ids) == 2)
    kernel.review.split(group.id)
    kernel.press("a")
    kernel.answer()
    assert kernel.decided == {}
    assert "look at it again" in kernel.page.locator(".mf-status").inner_text()


def test_undo_is_about_the_decision_before_it_and_no_key_decides_meanwhile(kernel):
    first = kernel.on_screen
    kernel.press("a", "u", "r")
    kernel.answer()
    assert kernel.decided == {}
    assert kernel.on_screen == first
    assert "Undone" in kernel.status
