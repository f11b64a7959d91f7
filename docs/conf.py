"""Build the site: ``python -m sphinx -W docs docs/_build``."""

import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.requirements import render_asvs, render_rfcs  # noqa: E402 - found by the path above

project = "memframe"
author = "The memframe developers"
copyright = "2026, the memframe developers"  # noqa: A001 - Sphinx's name
version = release = installed_version("memframe")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "style.md"]  # the style is for those who write

# Notebooks lie where people start them; the site shows them as they were saved.
shutil.copytree(HERE.parent / "notebooks", HERE / "tutorials", dirs_exist_ok=True)
nb_execution_mode = "off"
suppress_warnings = ["mystnb.unknown_mime_type"]  # widgets and plans have an HTML form beside it
myst_heading_anchors = 3
myst_enable_extensions = ["substitution"]
myst_substitutions = {"release": release, "asvs": render_asvs(), "rfcs": render_rfcs()}

default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("State left behind", "notes_style")]

smartquotes = False  # "--option" is no dash
html_theme = "furo"
html_title = "memframe"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
