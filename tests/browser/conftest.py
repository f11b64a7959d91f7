"""A browser, and a JupyterLab for it: started once, for the tests that look through real eyes."""

import json
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.browser.lab import PATIENCE_MS, Lab, Notebook

PLACES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
HOW_TO_GET_ONE = "no Chromium here: apt-get install chromium, or playwright install chromium"
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
)


@pytest.fixture(scope="session")
def playwright():
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright here: pip install '.[test]'")
    api.expect.set_options(timeout=PATIENCE_MS)  # five seconds if nobody says so
    return api


@pytest.fixture(scope="session")
def executable(playwright):
    """The path of a Chromium; without one these tests are skipped."""
    path = next(filter(None, map(shutil.which, PLACES)), None) or own_of(playwright)
    if path is None:
        pytest.skip(HOW_TO_GET_ONE)
    return path


@pytest.fixture(scope="module")
def chromium(playwright, executable):
    """Gone with the last test of a file, as Playwright leaves an event loop running that others trip over."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=OPTIONS)
        yield browser
        browser.close()


def own_of(playwright):
    """The browser that Playwright has fetched; None where it has not, or cannot run itself on so bare a machine."""
    try:
        with playwright.sync_playwright() as driver:
            own = Path(driver.chromium.executable_path)
    except Exception:  # it raises no other where a library of the system is missing
        return None
    return own if own.exists() else None


@pytest.fixture(scope="session")
def lab(executable, tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("lab"))
    try:
        lab.wait_until_up()
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def context(chromium):
    """A browser's profile."""
    context = chromium.new_context(viewport={"width": 900, "height": 1100}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture(scope="module")
def spoken():
    """What the page has told the browser's console."""
    return []


@pytest.fixture(scope="module")
def notebook(lab, context, spoken):
    """One notebook for the tests of a file, each of which adds cells."""
    page = context.new_page()
    page.on("console", lambda message: spoken.append(message.text))
    notebook = Notebook(lab, page, "panels")
    notebook.run("import json, time\nfrom pathlib import Path\nimport memframe as mf")
    return notebook


class _Callback(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204 if self.path.endswith(".ico") else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def redirect_uri():
    """Where the application is, to which the user is sent back: an empty page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Callback) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/callback"
        server.shutdown()


@pytest.fixture
def developer(developer, redirect_uri):
    developer.redirect_uri = redirect_uri
    return developer


@pytest.fixture
def user(own_user):
    return own_user


@pytest.fixture
def settings(developer, lab):
    """A file from which cells take what they need, so that no secret stands in them."""
    path = lab.notebooks / "settings.json"
    names = ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri", "dashboard_url")
    path.write_text(json.dumps({name: getattr(developer, name) for name in names}))
    yield path
    path.unlink()
