"""Displays in a real JupyterLab: what memories say is shown as it is, and never set as a formula."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Notebook

pytestmark = pytest.mark.browser

TEXT = r"$500 now, was $600 \(x\) \begin{equation}y\end{equation} $\href{https://example.org}{nothing}$"
"""Pairs of dollar signs, brackets and an environment, each of which MathJax takes for a formula."""

SETUP = f"""
from datetime import UTC, datetime
import pandas as pd
from IPython.display import HTML, display
import memframe as mf
from memframe.apply import Run
from memframe.journal import Operation
from memframe.plan.change import Change
from memframe.plan import Plan
from memframe.progress import Progress
from memframe.display import html_card
TEXT = {TEXT!r}
memories = pd.DataFrame({{"id": ["m1", "m2"], "content": [TEXT, TEXT], "user_id": TEXT}})
"""

DISPLAYS = {
    "plan": """
        change = Change(action="patch", id="m1", before={"title": TEXT}, after={"title": TEXT + "!"}, reason=TEXT)
        Plan(records=(change,), base_url="https://m/api/v1", user_id="4f0c", key_version=1,
             created_at=datetime(2026, 6, 1, tzinfo=UTC), notes=(TEXT,))""",
    "card": "HTML(html_card('Client', {'name': TEXT}))",
    "run": """
        change = Change(action="patch", row=1, id="m1", after={"title": "t"})
        Run(results=(Operation(n=0, change=change, state="rejected", error=TEXT),), journal=None, notes=(TEXT,))""",
    "audit": "mf.audit_memories(memories)",
    "progress": """
        bar = Progress(True, text=TEXT, total=2).__enter__()
        bar.step(1)""",
    "frame": "pd.set_option('display.html.use_mathjax', False, 'display.max_colwidth', None); memories",
}
"""What is displayed; each is the last word of a cell."""


@pytest.fixture(scope="module")
def notebook(chromium, lab):
    page = chromium.new_page()
    notebook = Notebook(lab, page, "formulas")
    notebook.run(SETUP)
    shown = notebook.run("display(HTML(TEXT))")  # else the others would prove nothing
    expect(shown.locator("mjx-container").first).to_be_visible(timeout=60_000)
    yield notebook
    page.close()


@pytest.mark.asvs("1.3.5")
@pytest.mark.parametrize("name", DISPLAYS)
def test_no_display_sets_what_a_memory_says_as_a_formula(notebook, name, shoot):
    shown = notebook.run(
        "\n".join(line.removeprefix(8 * " ") for line in DISPLAYS[name].strip("\n").split("\n"))
    )
    notebook.wait_until_idle()
    typeset = notebook.run("display(HTML(TEXT))")  # later than what is looked at, so that this had its turn
    expect(typeset.locator("mjx-container").first).to_be_visible()
    shoot(shown, f"formulas-{name}")
    assert TEXT in " ".join(shown.text_content().split())
    assert shown.locator("mjx-container").count() == 0
