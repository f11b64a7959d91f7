"""A panel on the screen, and what a person does with it."""

from contextlib import contextmanager

from playwright.sync_api import expect

BARE = "panel = mf.Panel(poll_s=0.3, reason='Weekly review of duplicates')\npanel"
KNOWN = """
told = json.loads(Path("settings.json").read_text())
client = mf.connect(told["base_url"], api_key=told["api_key"], auth_url=told["auth_url"])
named = {name: told[name] for name in ("client_id", "client_secret", "auth_url", "redirect_uri")}
options = {"reason": "Weekly review of duplicates", "dashboard_url": told["dashboard_url"]}
panel = mf.Panel(client, flow=mf.OAuthFlow(**named), poll_s=0.3, **options)
panel
"""

ANSWER = "Redirected address, or its code"
"""The label of the field into which an answer is pasted."""

TWO_FRAMES = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


class Shown:
    """A panel on the screen."""

    def __init__(self, output):
        self.box = output.locator(".memframe-panel")
        self.page = output.page
        self.box.wait_for()

    def field(self, label):
        return self.box.get_by_label(label, exact=True)

    def button(self, name):
        return self.box.get_by_role("button", name=name, exact=True)

    def paste(self, label, text):
        """Put text into a field as from the clipboard, and leave the field."""
        self.field(label).wait_for()
        self.field(label).focus()
        self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Tab")

    def click(self, name):
        self.button(name).click()

    def resize(self, width):
        """Another width of the window, to which what is in it has come."""
        self.page.set_viewport_size({"width": width, "height": 1100})
        self.page.evaluate(TWO_FRAMES)

    def says(self, words):
        expect(self.box).to_contain_text(words)

    @property
    def link(self):
        return self.box.get_by_role("link", name="Open the authorization page")


def ask(shown, user):
    """Lead a panel to a request that waits."""
    shown.paste(ANSWER, user.person.authorize(shown.link.get_attribute("href")))
    shown.click("Continue")
    shown.click("Send the request")
    shown.says("Next check")


@contextmanager
def busy(notebook, lab):
    """A block in which a cell keeps the kernel busy."""
    go = lab.notebooks / "go"
    notebook.run("while not Path('go').exists():\n    time.sleep(0.02)", wait=False)
    expect(notebook.page.locator(".jp-Notebook-ExecutionIndicator")).to_have_attribute("data-status", "busy")
    yield
    go.touch()
    notebook.wait_until_idle()
    go.unlink()
