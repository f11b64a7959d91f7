"""JupyterLab and a browser, driven as a person would: notebooks are opened, run, saved and looked at."""

import json
import os
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress

import nbformat
import requests

from memframe.oauth import SIGNS_OF_ELSEWHERE

SETTINGS = {
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},  # off by default, and the harder case
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension/plugin": {
        "autosave": False,
        "lastModifiedCheckMargin": 60_000,  # a slow save is no change by somebody else, of which it would ask
    },
}
NOT_NEEDED = ("jupyter_lsp", "jupyter_server_terminals", "nbclassic", "notebook_shim")
TOKEN = "for-this-test-run"
START_S = 180
PATIENCE_MS = 90_000
"""How long a machine under load may take for what should take a second."""

IDLE = """() => {
    const context = window.jupyterapp?.shell?.currentWidget?.sessionContext;
    return context?.isReady && context.session?.kernel?.status === 'idle';
}"""

ADD_CELL = """source => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.model.sharedModel.addCell({cell_type: 'code', source});
    notebook.activeCellIndex = notebook.widgets.length - 1;
    return notebook.activeCellIndex;
}"""


COMMAND = """async ([name, options, patience]) => {
    const done = window.jupyterapp.commands.execute(name, options);
    const late = patience && new Promise((_, refuse) => setTimeout(() => refuse(`${name} takes too long`), patience));
    await Promise.race([done, late]);
}"""


class Lab:
    """A JupyterLab server of its own: nothing of the machine's configuration reaches it, and nothing stays."""

    def __init__(self, folder):
        self._folder = folder
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self.log = folder / "lab.log"
        self.url = f"http://127.0.0.1:{free_port()}"
        for plugin, settings in SETTINGS.items():
            path = folder / "settings" / f"{plugin}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings))
        self._process = self._start()

    def _start(self):
        homes = {"HOME": "", "IPYTHONDIR": "ipython"} | {
            f"JUPYTER_{name}_DIR": name.lower() for name in ("CONFIG", "DATA", "RUNTIME")
        }
        inherited = {  # the browser is on this machine, however whoever runs the tests came to it
            name: text
            for name, text in os.environ.items()
            if not name.startswith("MEMFRAME_") and name not in SIGNS_OF_ELSEWHERE
        }
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            f"--ServerApp.root_dir={self.notebooks}",
            f"--ServerApp.port={self.url.rpartition(':')[2]}",
            "--ServerApp.port_retries=0",
            "--KernelManager.transport=ipc",  # as tests.kernels says
            f"--KernelManager.ip={self._folder / 'kernel'}",
            f"--ServerApp.jpserver_extensions={dict.fromkeys(NOT_NEEDED, False)}",
            f"--IdentityProvider.token={TOKEN}",
            f"--LabApp.user_settings_dir={self._folder / 'settings'}",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.extension_manager=readonly",
        ]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                command,
                env=inherited | {name: str(self._folder / folder) for name, folder in homes.items()},
                stdout=log,
                stderr=log,
            )

    def wait_until_up(self):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                if requests.get(f"{self.url}/api", timeout=10).ok:
                    return
            except requests.RequestException:
                time.sleep(0.05)
        raise TimeoutError(self.log.read_text())

    def add_kernel(self, name, packages):
        """A kernel that finds these packages before those of the environment."""
        spec = {
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": name,
            "language": "python",
            "env": {"PYTHONPATH": os.pathsep.join([str(packages), os.environ["PYTHONPATH"]])},
        }
        folder = self._folder / "data" / "kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(spec))

    def stop(self):
        self._process.terminate()
        self._process.wait(30)


class Notebook:
    """A new notebook, open in a browser."""

    def __init__(self, lab, page, name, *, kernel="python3"):
        self.page = page
        self.path = lab.notebooks / f"{name}.ipynb"
        kernel = {"kernelspec": {"name": kernel, "display_name": kernel}}
        nbformat.write(nbformat.v4.new_notebook(metadata=kernel), self.path)
        page.goto(f"{lab.url}/doc/tree/{self.path.name}?token={TOKEN}&reset")
        self.wait_until_idle()

    def wait_until_idle(self):
        self.page.wait_for_function(IDLE, timeout=PATIENCE_MS)

    @property
    def is_idle(self):
        return self.page.evaluate(IDLE)

    def command(self, name, arguments=None, *, wait=True):
        self.page.evaluate(COMMAND, [name, arguments or {}, PATIENCE_MS if wait else 0])

    def run(self, code, *, wait=True):
        """Add a cell and run it; where its output is."""
        number = self.page.evaluate(ADD_CELL, code)
        self.command("notebook:run-cell", wait=wait)
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number).locator(".jp-Cell-outputArea")

    def save(self):
        """Save, and give all that is kept of the notebook."""
        self.command("docmanager:save")
        return self.path.read_text()

    def reload(self):
        self.page.reload()
        self.wait_until_idle()

    def restart(self):
        """Restart the kernel, without asking."""
        self.page.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
        )
        self.wait_until_idle()


def free_port():
    """A port for another process: none of those that systems hand out, as one may go to a test in the meantime."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as listening, suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port
