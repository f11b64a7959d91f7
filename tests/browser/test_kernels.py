"""The panel with older kernels, whose threads and callbacks differ: each is installed beside the environment."""

import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Notebook
from tests.browser.shown import ANSWER, KNOWN, Shown, busy

pytestmark = [pytest.mark.browser, pytest.mark.campaign]

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


def test_the_panel_works_and_is_held_up_by_no_cell(kernel, lab, context, settings, developer, user):
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
