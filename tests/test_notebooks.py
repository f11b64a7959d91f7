"""What the notebooks keep when they are saved. That they run is tested by nbval, cell by cell."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.kernels import SocketKernelManager

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))

TELL = """
import json
from pathlib import Path

local = sample.local
secrets = [local.api_key, local.client_secret, access.client.sign_in().token,
           access.credentials.memory_key, access.credentials.encryption_key]
if "tokens" in globals():
    secrets += [tokens.access_token, tokens.refresh_token]
Path({path!r}).write_text(json.dumps([getattr(it, "reveal", lambda: it)() for it in secrets]))
"""


@pytest.mark.campaign  # nbval runs their cells already, and tests/panel searches the panel
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_secret_is_saved_with_a_notebook(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    told = tmp_path / "told.json"
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(TELL.format(path=str(told))))
    here = {"metadata": {"path": tmp_path}}
    NotebookClient(notebook, timeout=60, resources=here, kernel_manager_class=SocketKernelManager).execute()
    del notebook.cells[-2]
    saved = nbformat.writes(notebook)
    secrets = json.loads(told.read_text())
    assert len(set(secrets)) >= 5
    assert min(map(len, secrets)) > 15
    assert [secret for secret in secrets if secret in saved] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_its_outputs_and_nothing_of_where_it_was_run(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.keys() == {"kernelspec", "language_info"}
    assert any(
        "image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert "stderr" not in str(notebook)
    assert "application/vnd.jupyter.widget" not in path.read_text()
    assert not any(place in path.read_text() for place in ("/home/", "site-packages"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_frames_of_a_notebook_are_set_as_no_formulas(path):
    """Before the first of them is shown: JupyterLab would hide what stands between two dollar signs."""
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert "pd.options.display.html.use_mathjax = False" in code[0].source
    tables = [html for cell in code for html in html_of(cell) if "<style scoped>" in html]  # of pandas
    assert tables
    assert [html for html in tables if "mathjax_ignore" not in html] == []


def html_of(cell):
    """Return the HTML that a cell shows."""
    return [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]


def test_the_panel_of_a_notebook_has_no_picture_beside_it_and_stays_open():
    (path,) = (path for path in NOTEBOOKS if "panel" in path.stem)
    notebook = nbformat.read(path, as_version=4)
    assert not any("![" in cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not any(".close()" in cell.source for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.campaign
def test_papermill_runs_a_notebook_as_a_batch_job_with_a_parameter(tmp_path):
    """The others run as cells, which nbval counts, and as a whole, when they are searched."""
    (path,) = (path for path in NOTEBOOKS if "reason = " in path.read_text())
    out = tmp_path / "out.ipynb"
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", path, out]
    parameters = ["-p", "reason", "A nightly review"]
    subprocess.run([*command, *parameters], check=True, capture_output=True, cwd=tmp_path)
    done = nbformat.read(out, as_version=4)
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")
    assert "A nightly review" in str(done)
