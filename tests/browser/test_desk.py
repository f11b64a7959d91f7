"""The review desk in JupyterLab and Chromium: keys, hostile texts, restarts, and what the saved file holds."""

import json
import os
from statistics import median

import pytest
from playwright.sync_api import expect

from tests.browser.looks import faint, too_wide

pytestmark = pytest.mark.browser

MAKE = """
import pandas as pd
n = {n}
memories = pd.DataFrame(dict(
    id=[f"m{{i}}" for i in range(n)],
    content=[f"Kanarie{{i:05d}} lives here, mail to canary{{i}}@zoo{{i}}.example" for i in range(n)],
    source=["chat" if i % 2 else "mail" for i in range(n)],
))
review = mf.review(mf.audit_memories(memories, checks=["personal_data"]), decisions={path!r})
review
"""
HOSTILE = (
    "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">",
    "\x1b[2J\x1b]0;hacked\x07 gone",
    "pay \u202eeman\u202c now\u200b",
    "word " * 200_000,
)
COUNT = "() => window.jupyterapp.shell.currentWidget.content.widgets.length"
COMMAND_MODE = "abcdhijklmoprstuvwxyz0123456789?/"


class DeskPage:
    """A desk on the page, used as a person would."""

    def __init__(self, area):
        self.page = area.page
        self.box = area.locator(".mf-desk")
        self.status = area.locator(".mf-status")
        self.proposal = area.locator(".mf-proposal")

    def wait(self):
        expect(self.status).to_contain_text("1 of ")
        self.box.focus()
        return self

    def press(self, key, says):
        self.page.keyboard.press(key)
        expect(self.status).to_contain_text(says)


@pytest.fixture
def open_desk(notebook, tmp_path):
    def make(n=6, path=None):
        code = MAKE.format(n=n, path=str(path or tmp_path / f"{n}.decisions"))
        return DeskPage(notebook.run(code)).wait()

    yield make
    notebook.command("notebook:enter-command-mode")


def told(notebook, code):
    """What an expression is in the kernel."""
    text = notebook.run(f"print(json.dumps({code}))").inner_text()
    return json.loads(text)


def test_a_desk_whose_first_answer_is_late_shows_all_of_itself(notebook, tmp_path):
    done = tmp_path / "done"
    busy = f"display(review)\nimport os\nwhile not os.path.exists({str(done)!r}):\n    pass"
    desk = DeskPage(notebook.run(MAKE.format(n=6, path=str(tmp_path / "d")) + busy, wait=False))
    expect(desk.status).to_contain_text("does not answer", timeout=30_000)
    done.touch()
    expect(desk.status).to_contain_text("1 of 6")
    expect(desk.proposal).to_be_visible()


def test_keys_decide_and_never_reach_the_notebook(notebook, open_desk):
    desk = open_desk()
    n_cells = notebook.page.evaluate(COUNT)
    desk.press("a", "Accepted. 2 of 6")
    desk.press("r", "Rejected. 3 of 6")
    desk.press("l", "Put off. 4 of 6")
    desk.press("u", "Undone")
    desk.press("j", "4 of 6")
    desk.press("k", "3 of 6")
    assert sorted(filter(None, told(notebook, "review.queue.decision.tolist()"))) == ["accepted", "rejected"]
    notebook.page.evaluate("() => document.activeElement.blur()")
    desk.box.focus()
    for key in (
        *COMMAND_MODE,
        "Enter",
        "Shift+Enter",
        "Control+Enter",
        "Alt+Enter",
        "Delete",
        "Backspace",
        "Escape",
    ):
        desk.box.focus()
        notebook.page.keyboard.press(key)
    expect(desk.status).to_contain_text("of 6")
    assert notebook.page.evaluate(COUNT) == n_cells + 1  # the cell that told


TWO_KINDS = """
import pandas as pd
texts = ["Ada rows on the lake.", "Ada rows on the lake.", "Write to ada@lake.example"]
review = mf.review(mf.audit_memories(pd.DataFrame({"id": ["m1", "m2", "m3"], "content": texts})))
review
"""


def test_what_was_said_of_one_kind_is_not_said_of_the_next_while_the_kernel_is_busy(notebook, tmp_path):
    desk = DeskPage(notebook.run(TWO_KINDS)).wait()
    bound = desk.box.locator(".mf-bound")
    expect(bound).to_contain_text("A cleanup does this without being asked")
    done = tmp_path / "done"
    notebook.run(f"while not Path({str(done)!r}).exists():\n    pass", wait=False)
    desk.box.focus()
    desk.press("a", "Personal data")
    assert bound.inner_text() == ""
    done.touch()
    # waits for the cell: its file is deleted with the test, and without it the kernel stays busy
    notebook.run("pass")


def test_a_text_is_edited_and_a_search_takes_letters(notebook, open_desk):
    desk = open_desk()
    notebook.page.keyboard.press("e")
    desk.proposal.get_by_label("content").fill("Writes letters.\nNo mail.")
    desk.press("Control+Enter", "Edited and accepted. 2 of 6")
    assert "edited" in told(notebook, "review.queue.decision.tolist()")
    desk.box.focus()
    notebook.page.keyboard.press("/")
    notebook.page.keyboard.type("kanarie00004")
    expect(desk.status).to_contain_text("1 of 1")
    desk.box.get_by_label("Search").fill("no such words")
    expect(desk.proposal).to_contain_text("Nothing here")
    expect(desk.box.get_by_role("button", name="Accept", exact=True)).to_be_disabled()
    desk.box.focus()
    desk.press("a", "No proposal is listed.")


def test_all_that_is_listed_is_rejected_after_a_yes_and_undone_by_one_key(notebook, open_desk):
    desk = open_desk()
    desk.press("a", "Accepted. 2 of 6")
    desk.press("R", "Reject 5 proposals about 5 memories?")
    desk.press("Escape", "2 of 6")
    desk.press("R", "Reject 5 proposals about 5 memories?")
    desk.press("Enter", "Rejected 5; u undoes it. 2 of 6")
    assert sorted(told(notebook, "review.queue.decision.tolist()")) == ["accepted", *["rejected"] * 5]
    desk.box.focus()
    desk.press("u", "Undone")
    assert sorted(told(notebook, "review.queue.decision.tolist()")) == [*[""] * 5, "accepted"]
    expect(desk.status).to_contain_text("of 6")
    desk.box.focus()
    desk.press("A", "Nothing that is listed can be accepted at once.")


def test_texts_are_in_no_saved_file_and_without_a_kernel_one_line_says_so(notebook, open_desk):
    desk = open_desk()
    expect(desk.proposal).to_contain_text("Kanarie")
    saved = notebook.save()
    assert '"application/vnd.jupyter.widget-state+json"' in saved
    assert "The review desk in a notebook" in saved
    assert "Kanarie0" not in saved
    notebook.reload()
    area = notebook.page.locator(".jp-Cell-outputArea:has(.mf-desk)").last
    DeskPage(area).wait()
    notebook.restart()
    notebook.reload()
    area = notebook.page.locator(".jp-Cell-outputArea:has(.mf-desk)").last
    expect(area.locator(".mf-status")).to_contain_text("run this cell again")
    expect(area.locator(".mf-queue")).to_be_hidden()
    notebook.run("import json, time\nfrom pathlib import Path\nimport memframe as mf")


def test_without_proposals_the_desk_says_so(notebook):
    one = "pd.DataFrame({'id': ['m1'], 'content': ['Likes rowing']})"
    area = notebook.run(f"import pandas as pd\nmf.review(mf.audit_memories({one}))")
    expect(area.locator(".mf-proposal")).to_contain_text("There is nothing to decide")


def test_two_desks_and_a_cell_on_one_file_stay_together(notebook, open_desk, tmp_path):
    path = tmp_path / "shared.decisions"
    first = open_desk(6, path)
    second = DeskPage(
        notebook.run("other = mf.review(review.origin, decisions=review.decisions.path)\nother")
    ).wait()
    second.press("a", "Accepted.")
    expect(first.box.locator(".mf-progress")).to_contain_text("1 of 6 decided")
    notebook.run("review.reject(review.queue.proposal.iloc[0])")
    expect(second.box.locator(".mf-progress")).to_contain_text("2 of 6 decided")


def test_hostile_texts_are_shown_as_texts(notebook, open_desk, tmp_path):
    (tmp_path / "texts.json").write_text(json.dumps(HOSTILE))
    area = notebook.run(
        f"texts = json.loads(Path({str(tmp_path / 'texts.json')!r}).read_text())\n"
        "import pandas as pd\n"
        "texts = [text if len(text) > 999 else f'{text} ada{i}@example.org' for i, text in enumerate(texts * 2)]\n"
        "memories = pd.DataFrame(dict(id=[f'h{i}' for i in range(8)], content=texts,"
        " source=texts))\n"
        "mf.review(mf.audit_memories(memories))"
    )
    desk = DeskPage(area).wait()
    seen = ""
    n = int(desk.status.inner_text().split(" of ")[1].split(":")[0])
    for place in range(2, n + 2):
        seen += desk.proposal.inner_text()
        if place <= n:
            desk.press("j", f"{place} of {n}")
    assert "<script>document.title" in seen
    assert "\\x1b[2J" in seen
    assert "\\u202e" in seen
    assert "more characters" in seen
    assert not {"\x1b", "\u202e"} & set(seen)
    assert desk.box.locator("script, img").count() == 0
    assert "hacked" not in notebook.page.title()


def test_it_reads_well_in_light_and_dark_and_narrow(notebook, open_desk):
    desk = open_desk()
    desk.press("a", "Accepted.")
    snapshot = desk.box.aria_snapshot()
    assert desk.box.get_by_role("button", name="Accept", exact=True).count() == 1
    for line in (
        'application "Review desk"',
        'listbox "Proposals"',
        "status:",
        "[selected]",
        'button "Accept"',
    ):
        assert line in snapshot
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.command("apputils:change-theme", {"theme": theme})
        expect(notebook.page.locator(f'body[data-jp-theme-name="{theme}"]')).to_have_count(1)
        assert (faint(desk.box), too_wide(desk.box)) == ([], [])
    notebook.page.set_viewport_size({"width": 520, "height": 1100})
    assert too_wide(desk.box) == []
    notebook.page.set_viewport_size({"width": 900, "height": 1100})


@pytest.mark.campaign
def test_two_thousand_proposals_are_decided_by_keys_alone(notebook, open_desk):
    desk = open_desk(2_000)
    for place in range(2, 2_001):
        desk.press("a" if place % 3 else "r", f". {place} of 2000")
    desk.press("a", "This was the last one")
    counts = told(notebook, "review.queue.decision.value_counts().to_dict()")
    assert counts == {"accepted": 1_334, "rejected": 666}
    assert "Kanarie0" not in notebook.save()


TIME_KEYS = """async ([box, keys]) => {
    const status = box.querySelector('.mf-status'), times = [];
    for (const key of keys) {
        const start = performance.now(), before = status.textContent;
        box.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        while (status.textContent === before) await new Promise(requestAnimationFrame);
        times.push(performance.now() - start);
        await new Promise(done => setTimeout(done, 300));  // somebody reads
    }
    return times;
}"""


@pytest.mark.campaign
def test_ten_thousand_proposals_are_on_screen_at_once(notebook, open_desk, record_property):
    desk = open_desk(10_000)
    times = notebook.page.evaluate(TIME_KEYS, [desk.box.element_handle(), ["j", "a"] * 20])
    record_property("median_ms", median(times))
    record_property("load", os.getloadavg()[0])
    desk.box.locator(".mf-queue").evaluate("queue => { queue.scrollTop = 46 * 9_000; }")
    expect(desk.box.locator('[role=option][aria-posinset="9001"]')).to_contain_text("Kanarie")
