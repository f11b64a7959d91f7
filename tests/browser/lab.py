"""JupyterLab and a browser, driven as a person would: notebooks are opened, run, saved and looked at."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

import nbformat
import requests

SAVE_WIDGET_STATE = ("@jupyter-widgets/jupyterlab-manager/plugin", {"saveState": True})
NO_NEWS = (
    "@jupyterlab/apputils-extension/notification",
    {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
)
THEME = "@jupyterlab/apputils-extension/themes"
TOKEN = "for-this-test-run"
START_S = 60
PATIENCE_MS = 30_000
"""How long a machine under load may take for what should take a second."""

IDLE = """() => {
    const context = window.jupyterapp?.shell?.currentWidget?.sessionContext;
    return context?.isReady && context.session?.kernel?.status === 'idle';
}"""


class Lab:
    """A JupyterLab server of its own: nothing of the machine's configuration reaches it, and nothing stays."""

    def __init__(self, folder):
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self._settings = folder / "settings"
        self.configure(*SAVE_WIDGET_STATE)
        self.configure(*NO_NEWS)
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = folder / "lab.log"
        self._process = self._start()

    def configure(self, plugin, settings):
        path = self._settings / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))

    def _start(self):
        private = {
            f"JUPYTER_{name}_DIR": str(self.folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")
        }
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("MEMFRAME_")}
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            f"--ServerApp.root_dir={self.notebooks}",
            f"--ServerApp.port={self.url.rpartition(':')[2]}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={TOKEN}",
            f"--LabApp.user_settings_dir={self._settings}",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.extension_manager=readonly",
        ]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                command,
                env={
                    **inherited,
                    **private,
                    "HOME": str(self.folder),
                    "IPYTHONDIR": str(self.folder / "ipython"),
                },
                stdout=log,
                stderr=log,
            )

    def wait_until_up(self):
        for _ in range(START_S * 10):
            try:
                if requests.get(f"{self.url}/api", timeout=1).ok:
                    return
            except requests.ConnectionError:
                time.sleep(0.1)
        raise TimeoutError(self.log.read_text())

    def stop(self):
        self._process.terminate()
        self._process.wait(20)

    def write(self, name, cells):
        """A notebook with these cells, as code."""
        path = self.notebooks / f"{name}.ipynb"
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, path)
        return path


class Notebook:
    """A notebook that is open in a browser."""

    def __init__(self, lab, page, path):
        self.lab, self.page, self.path = lab, page, path
        page.goto(f"{lab.url}/doc/tree/{path.name}?token={TOKEN}&reset")
        self.wait_until_idle()

    def wait_until_idle(self):
        self.page.wait_for_function(IDLE, timeout=PATIENCE_MS)

    def command(self, name, *, wait=True):
        call = f"window.jupyterapp.commands.execute('{name}')"
        self.page.evaluate(f"async () => {{ {'await' if wait else 'void'} {call}; }}")

    def run_all(self):
        self.command("notebook:run-all-cells")
        self.wait_until_idle()

    def run(self, number, *, wait=True):
        """Run one cell; without waiting for its end if so wished."""
        self.page.evaluate(
            f"() => {{ window.jupyterapp.shell.currentWidget.content.activeCellIndex = {number}; }}"
        )
        self.command("notebook:run-cell", wait=wait)

    def output(self, number):
        """Where the output of a cell is."""
        return (
            self.page.locator(".jp-Notebook > .jp-WindowedPanel-outer .jp-Cell, .jp-Notebook .jp-Cell")
            .nth(number)
            .locator(".jp-Cell-outputArea")
        )

    def save(self):
        """Save, and give the text of the file."""
        self.command("docmanager:save")
        return self.path.read_text()

    def restart(self):
        self.page.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
        )
        self.wait_until_idle()


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def find_browser():
    """A Chromium of this machine, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
