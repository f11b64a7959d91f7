"""Notebooks that run as batch jobs: nbclient keeps the state of widgets by default, and nbconvert shows it."""

import json

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from memframe.sample import load_sample
from tests.canaries import found_in
from tests.conftest import PASSWORD
from tests.panel.conftest import SETTINGS

CELLS = {
    "opened": """
import json, os
from pathlib import Path
import memframe as mf
from memframe.demo.sample_service import Person
from tests.panel.conftest import Seen, answer, ask

told = json.loads(Path("told.json").read_text())
person = Person(told["email"], told["password"])
panel = mf.Panel(poll_s=0.1, reason="a batch job")
panel""",
    "typed": """
seen = Seen(panel)
seen.settle()
seen.type("Address of the API", told["base_url"])
seen.type("API key", told["api_key"])""",
    "signed in": "seen.click('Sign in')",
    "connected": """
seen.type("Address of the OAuth server", told["auth_url"])
seen.type("Client id", told["client_id"])
seen.type("Client secret", told["client_secret"])
seen.type("Redirect address, as registered", told["redirect_uri"])
seen.click("Connect a user")
redirected = person.authorize(seen.link)
seen.type("Redirected address, or its code", redirected)""",
    "pending": """
seen.click("Continue")
seen.click("Send the request")""",
    "ready": """
person.decide(told["dashboard_url"])
seen.until("approved")
seen.click("Load the memories")
print(len(panel.memories))""",
    "closed": """
secrets = {name: getattr(panel.way.tokens, name).reveal() for name in ("access_token", "refresh_token", "memory_key")}
secrets["code"] = redirected.partition("code=")[2].partition("&")[0]
secrets["encryption key"] = panel.access.credentials.encryption_key.reveal()
secrets["token"] = panel.way.client._tokens.token().token.reveal()
_ = Path("secrets.json").write_text(json.dumps(secrets))
panel.close()""",
}
SHOWN_AS_PAGE = list(CELLS).index("ready")
"""The moment at which nbconvert makes a page of the notebook, too."""

NAIVE = """
import ipywidgets
_ = ipywidgets.Password(value=told["api_key"])"""
"""What everybody writes first; never shown, and kept all the same."""


@pytest.fixture
def told(user, tmp_path):
    """What the notebook needs, in a file and not in its cells."""
    user.service.import_memories(user.user_id, load_sample()[:3])
    names = (*SETTINGS, "dashboard_url")
    person = {"email": user.person._email, "password": PASSWORD}
    told = {name: getattr(user.service, name) for name in names} | person
    (tmp_path / "told.json").write_text(json.dumps(told))
    return told


def test_no_secret_is_kept_at_any_moment_and_the_search_would_find_one(bare, told, tmp_path):
    notebook = new_notebook(cells=[new_code_cell(source) for source in (*CELLS.values(), NAIVE)])
    client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": tmp_path}})
    assert client.store_widget_state
    kept = []
    with client.setup_kernel():
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
            client.set_widgets_metadata()
            kept.append(nbformat.writes(notebook))
            if number == SHOWN_AS_PAGE:
                kept[-1] += HTMLExporter().from_notebook_node(notebook)[0]
    secrets = {name: told[name] for name in ("api_key", "client_secret", "password")}
    secrets |= json.loads((tmp_path / "secrets.json").read_text())
    *moments, naive = kept
    assert len(secrets) == 9
    assert "a batch job" in moments[0]
    assert [cell.outputs[0].text for cell in notebook.cells if "print" in cell.source] == ["3\n"]
    hits = {name: found_in(text, secrets) for name, text in zip(CELLS, moments, strict=True)}
    assert hits == {name: [] for name in CELLS}
    assert found_in(naive, secrets) == ["api_key"]
