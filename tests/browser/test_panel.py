"""The panel in JupyterLab and Chromium: the whole walk, the side roads, and what is left in the saved file.

Widget state is saved with the notebook here, which is off by default: what does not leak then, never does.
"""

import json
import re
import subprocess
import sys
from textwrap import dedent

import pytest
from playwright.sync_api import expect

from memframe.sample import load_sample, load_sample_tags
from tests.browser.lab import Notebook
from tests.browser.looks import faint, too_wide
from tests.browser.shown import ANSWER, BARE, KNOWN, Shown, ask, busy
from tests.canaries import found_in
from tests.conftest import PASSWORD

pytestmark = pytest.mark.browser

TELL = """
tokens = panel.sign_in.tokens
secrets = {name: getattr(tokens, name).reveal() for name in ("access_token", "refresh_token", "memory_key")}
secrets["encryption key"] = panel.access.credentials.encryption_key.reveal()
secrets["token"] = panel.sign_in.client._tokens.token().token.reveal()
_ = Path("secrets.json").write_text(json.dumps(secrets))
"""
"""Written to a file by the kernel, as a test knows only the secrets that it has brought itself."""


@pytest.fixture
def open_panel(notebook):
    """Show a panel in a new cell; it is closed at the end, so that each test sees one."""

    def make(code):
        return Shown(notebook.run(code))

    yield make
    notebook.run("panel.close()")


@pytest.fixture
def known(settings, open_panel):
    """A panel that knows its settings: the link is on it."""
    shown = open_panel(KNOWN)
    shown.link.wait_for()
    return shown


def allow(shown, user):
    """Follow the link, sign in, allow, and copy the address that comes after."""
    shown.page.context.clear_cookies(name="memframe")  # of whom another test has signed in
    with shown.page.context.expect_page() as opened:
        shown.link.click()
    tab = opened.value
    tab.get_by_label("E-mail").fill(user.person._email)
    tab.get_by_label("Password").fill(PASSWORD)
    tab.get_by_role("button", name="Sign in").click()
    tab.get_by_role("button", name="Allow", exact=True).click()
    tab.wait_for_url("**/callback?*")
    shown.page.bring_to_front()  # browsers draw what is behind at leisure
    return tab


def test_the_whole_walk_in_one_browser_leaves_no_secret(notebook, open_panel, developer, user, lab, spoken):
    developer.import_memories(user.user_id, load_sample(), load_sample_tags())
    secrets = {"api key": developer.api_key, "client secret": developer.client_secret}
    kept = {}
    shown = open_panel(BARE)

    def look(moment):
        kept[moment] = notebook.save()

    shown.paste("Address of the API", developer.base_url)
    shown.field("API key").press_sequentially(developer.api_key[:-1], delay=0)
    secrets["part of the api key"] = developer.api_key[:-1]
    look("typing")
    shown.page.keyboard.insert_text(developer.api_key[-1])
    shown.page.keyboard.press("Tab")
    expect(shown.field("API key")).to_have_value("")
    look("left")
    shown.page.keyboard.press("Enter")
    shown.field("Client id").wait_for()
    look("signed in")

    shown.paste("Address of the OAuth server", developer.auth_url)
    shown.paste("Client id", developer.client_id)
    shown.paste("Client secret", developer.client_secret)
    shown.paste("Redirect address, as registered", developer.redirect_uri)
    shown.click("Connect a user")
    shown.link.wait_for()
    look("linked")
    tab = allow(shown, user)
    address = tab.url
    secrets["code"] = re.search("code=([^&]*)", address)[1]
    shown.paste(ANSWER, address)
    expect(shown.field(ANSWER)).to_have_value("")
    look("pasted")
    shown.click("Continue")
    shown.field("Your reason").wait_for()
    look("connected")
    shown.click("Send the request")
    shown.says("Next check")
    look("pending")

    tab.goto(developer.dashboard_url)
    tab.get_by_role("button", name="Approve").click()
    tab.close()
    shown.button("Load the memories").wait_for()
    look("approved")
    shown.click("Load the memories")
    shown.says("389 memories of 2020 to 2026")
    look("ready")
    shown.click("Show a preview")
    shown.says("Ilka Tornow")
    look("previewed")
    shown.click("Hide the preview")
    notebook.run(TELL)
    told = lab.notebooks / "secrets.json"
    secrets |= json.loads(told.read_text())
    told.unlink()
    notebook.run("panel.close()")
    expect(shown.box).to_have_count(0)
    kept["closed"] = notebook.save()

    sinks = {
        **kept,
        "the log of the server": lab.log.read_text(),
        "the browser's console": "\n".join(spoken),
        "files beside": "".join(path.read_text() for path in lab.notebooks.rglob(".*/*.ipynb")),
    }
    assert len(secrets) == 9
    assert {sink: found_in(text, secrets) for sink, text in sinks.items()} == {sink: [] for sink in sinks}
    assert "Ilka Tornow" not in kept["ready"] + kept["closed"]
    assert '"application/vnd.jupyter.widget-state+json"' in kept["ready"]
    assert "Weekly review of duplicates" in kept["ready"]


def test_the_keyboard_is_enough(open_panel, developer, settings, user):
    shown = open_panel(BARE)
    keyboard = shown.page.keyboard
    shown.field("Address of the API").focus()
    for text in (developer.base_url, developer.api_key):
        keyboard.insert_text(text)
        keyboard.press("Tab")
    expect(shown.button("Sign in")).to_be_focused()
    keyboard.press("Enter")
    shown.field("Client id").wait_for()
    keyboard.press("Tab")
    assert focused(shown.page) == "Address of the OAuth server"
    for text in (developer.auth_url, developer.client_id, developer.client_secret, developer.redirect_uri):
        keyboard.insert_text(text)
        keyboard.press("Tab")
    keyboard.press("Enter")
    shown.link.wait_for()
    keyboard.press("Tab")
    assert focused(shown.page) == "Open the authorization page"


def test_enter_submits_what_was_typed(open_panel, developer, user):
    shown = open_panel(BARE)

    def enter(label, text):
        shown.field(label).fill(text)
        shown.field(label).press("Enter")  # of the page, JupyterLab could take it for a cell

    enter("Address of the API", developer.base_url)
    shown.says("Fill in “API key” first")
    expect(shown.field("API key")).to_be_focused()
    enter("API key", "mf_live_wrong")
    shown.says("does not accept this API key")
    shown.paste("API key", "mf_live_wrong_again")  # this one is left, and the next one counts
    expect(shown.field("API key")).to_have_value("")  # it was taken; what is typed before that goes with it
    enter("API key", developer.api_key)
    shown.field("Client id").wait_for()
    shown.paste("Address of the OAuth server", developer.auth_url)
    shown.paste("Client secret", developer.client_secret)
    shown.paste("Redirect address, as registered", developer.redirect_uri)
    enter("Client id", developer.client_id)
    shown.link.wait_for()
    shown.page.keyboard.press("Enter")  # in a field that is there no more
    enter(ANSWER, user.person.authorize(shown.link.get_attribute("href")))
    shown.field("Your reason").wait_for()
    expect(shown.box.get_by_role("alert")).to_have_count(0)


def focused(page):
    """The name of what has the focus."""
    return page.evaluate(
        "(({labels, textContent}) => labels?.[0]?.textContent ?? textContent)(document.activeElement)"
    )


def test_a_busy_kernel_hides_no_news(notebook, known, developer, user, lab):
    ask(known, user)
    with busy(notebook, lab):
        user.person.decide(developer.dashboard_url)
        known.button("Load the memories").wait_for()
        assert not notebook.is_idle


def test_a_page_that_is_loaded_again_shows_the_same_and_goes_on(notebook, known, developer, user):
    ask(known, user)
    notebook.save()
    notebook.reload()
    known.says("Next check")
    expect(known.box).to_have_count(1)
    user.person.decide(developer.dashboard_url)
    known.button("Load the memories").wait_for()
    known.click("Load the memories")
    known.says("0 memories in")


@pytest.mark.parametrize(("theme", "width"), [("Light", 900), ("Dark", 320)])
def test_it_can_be_read_in_light_and_dark_and_on_a_phone(
    notebook, open_panel, settings, user, theme, width, developer
):
    """Contrast depends on the theme alone, and what fits on the width alone."""
    developer.import_memories(user.user_id, load_sample()[:5])
    told = json.loads(settings.read_text()) | {"redirect_uri": "http://127.0.0.1/callback"}
    settings.write_text(json.dumps(told))
    known = open_panel(KNOWN)

    def look(moment):
        assert (faint(known.box), too_wide(known.box)) == ([], []), moment

    known.resize(width)
    notebook.command("apputils:change-theme", {"theme": f"JupyterLab {theme}"})
    known.page.wait_for_function(
        "name => document.body.dataset.jpThemeName === name", arg=f"JupyterLab {theme}"
    )
    known.says("Waiting for the answer on this computer")
    look("listening")
    known.click("Paste the answer instead")
    known.click("Continue")
    known.box.get_by_role("alert").wait_for()
    known.box.locator("summary").click()
    look("link")
    assert faint(notebook.run("client").locator(".jp-OutputArea-output")) == []
    known.paste(ANSWER, user.person.authorize(known.link.get_attribute("href")))
    known.click("Continue")
    known.field("Your reason").wait_for()
    look("asking")
    known.click("Send the request")
    known.says("Next check")
    look("pending")
    user.person.decide(developer.dashboard_url, "Reject")
    known.button("Ask again").wait_for()
    look("rejected")
    known.click("Ask again")
    known.says("Next check")
    user.service.decide(user.ask("Once before").id, "approved")
    user.ask("Something else, with a reason that goes on for longer than there is room for on one line")
    known.click("Back")
    known.says("goes on for longer")
    look("list")
    known.click("Open")
    known.button("Load the memories").wait_for()
    look("approved")
    known.click("Load the memories")
    known.click("Show a preview")
    known.says("Ilka Tornow")
    look("loaded")
    known.click("Sign out")
    known.field("API key").wait_for()
    known.click("Sign in")
    known.box.get_by_role("alert").wait_for()
    look("signed out")
    known.resize(900)


def test_the_answer_comes_by_itself_where_the_browser_is_on_the_same_computer(open_panel, settings, user):
    told = json.loads(settings.read_text()) | {"redirect_uri": "http://127.0.0.1/callback"}
    settings.write_text(json.dumps(told))
    shown = open_panel(KNOWN)
    shown.says("Waiting for the answer on this computer")
    expect(shown.box).not_to_contain_text("paste it here")
    allow(shown, user)
    shown.field("Your reason").wait_for()


FORMULA = r"$500 now, was $600 \(x\) \begin{equation}y\end{equation} $\href{https://example.org}{nothing}$"
"""Pairs of dollar signs, brackets and an environment, each of which MathJax takes for a formula."""

FORMULAS = f"""
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
TEXT = {FORMULA!r}
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


@pytest.mark.asvs("1.3.5")
def test_no_display_sets_what_a_memory_says_as_a_formula(notebook):
    def run_typeset():  # shows that formulas are set, and that all before it has had its turn
        typeset = notebook.run("display(HTML(TEXT))").locator("mjx-container").first
        expect(typeset).to_be_visible()

    notebook.run(FORMULAS)
    run_typeset()
    shown = {name: notebook.run(dedent(code)) for name, code in DISPLAYS.items()}
    notebook.wait_until_idle()
    run_typeset()
    for name, output in shown.items():
        assert FORMULA in " ".join(output.text_content().split()), name
        assert output.locator("mjx-container").count() == 0, name


# Older kernels, whose threads and callbacks differ: each is installed beside the environment

KERNELS = {
    "6.31.0": "the last without subshells: buttons wait for the cell that runs",
    "7.0.1": "threads need the context of who started them",
    "7.1.0": "buttons are answered by a subshell",
    "7.3.0": "the same",
    "7.4.0": "buttons wait again",
}


@pytest.fixture(params=KERNELS)
def kernel(request, lab, tmp_path_factory):
    packages = tmp_path_factory.mktemp("kernel")
    wanted = [f"ipykernel=={request.param}", "nest-asyncio"]  # which 6.31 still needs
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, *wanted]
    subprocess.run(pip, check=True)
    lab.add_kernel(f"kernel-{request.param}", packages)
    return request.param


@pytest.mark.campaign
def test_the_panel_works_with_older_kernels_and_is_held_up_by_no_cell(
    kernel, lab, context, settings, developer, user
):
    page = context.new_page()
    notebook = Notebook(lab, page, f"with-{kernel}", kernel=f"kernel-{kernel}")
    version = notebook.run(
        "import ipykernel, json, time\nfrom pathlib import Path\nimport memframe as mf\nipykernel.__version__"
    )
    expect(version).to_contain_text(kernel)
    shown = Shown(notebook.run(KNOWN))
    shown.field(ANSWER).fill(user.person.authorize(shown.link.get_attribute("href")))
    shown.field(ANSWER).press("Enter")
    shown.click("Send the request")
    shown.says("Next check")
    with busy(notebook, lab):
        user.person.decide(developer.dashboard_url)
        shown.button("Load the memories").wait_for()
        assert not notebook.is_idle
    shown.click("Load the memories")
    shown.says("0 memories in")
    notebook.run("panel.close()")
    expect(shown.box).to_have_count(0)
    page.close()


def test_after_a_restart_of_the_kernel_the_panel_tells_of_when_it_is(notebook, known, user):
    """The last test of this file, as those before share the kernel."""
    ask(known, user)
    notebook.restart()
    assert re.search(r"Checked at \d\d:\d\d:\d\d UTC", known.box.inner_text())
    known.click("Check now")
    notebook.run("import json\nfrom pathlib import Path\nimport memframe as mf")
    again = Shown(notebook.run(KNOWN))
    again.says("Pending")
    again.click("Wait")
    again.says("Next check")
