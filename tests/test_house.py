"""The laws of the house that a machine can check: layers, doors, names and libraries in their rooms."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import memframe

PACKAGE = Path(__file__).parents[1] / "memframe"

LAYERS = """
    __main__
    cli
    demo
    panel fleet
    signin cleanup undo
    apply
    audit
    report
    plot
    plan journal archive
    load
    listing
    access oauth paging
    client service
    bearer filters loopback redirected
    transport
    answers frames envelope
    settings
    sources
    wire address progress sample
    secret
    private_file
    errors
"""
"""Top to bottom: a module imports only from lines below its own."""

RANK = {room: -line for line, rooms in enumerate(LAYERS.split("\n")) for room in rooms.split()}

CLIENT_ONLY = {"client", "access", "oauth", "load", "transport", "signin", "settings", "sources"}
"""The service is the other end of the wire: it imports none of these, and these do not import it."""

ROOM_OF_LIBRARY = {
    "pandas": RANK.keys() - {"wire", "envelope", "client", "transport", "service"},
    "matplotlib": {"plot"},
    "ipywidgets": {"panel", "progress"},
    "litestar": {"service"},
    "sqlalchemy": {"service"},
    "uvicorn": {"service"},
    "oauthlib": {"service"},
    "jinja2": {"service"},
    "joserfc": {"service"},
    "argon2": {"service"},
}
"""Heavy libraries, and the rooms that may open their door."""


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_of(path):
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path):
    room = room_of(path)
    assert room in RANK, f"{room} has no place in LAYERS"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "memframe" or len(parts) < 2 or parts[1] == room:
            continue
        assert RANK[parts[1]] < RANK[room], f"{room} must not import {parts[1]}"
        assert not (room == "service" and parts[1] in CLIENT_ONLY)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_stay_in_their_rooms(path):
    for name in imports(path):
        rooms = ROOM_OF_LIBRARY.get(name.split(".")[0])
        assert rooms is None or room_of(path) in rooms, f"{name} does not belong here"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_function_has_its_modules_name_and_every_module_says_what_it_is(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert path.stem not in functions
    assert path.stem not in {"utils", "helpers", "core", "base", "manager", "common", "misc"}


def caption_of(room):
    path = next(path for path in (PACKAGE / f"{room}.py", PACKAGE / room / "__init__.py") if path.exists())
    return ast.get_docstring(ast.parse(path.read_text())).split("\n")[0]


def test_the_map_in_the_readme_shows_every_room_with_its_caption():
    readme = (PACKAGE.parent / "README.md").read_text()
    rooms = sorted({room_of(path) for path in MODULES}, key=LAYERS.split().index)
    shown = [line for line in readme.splitlines() if line.startswith("| `")]
    assert shown == [f"| `{room}` | {caption_of(room)} |" for room in rooms]


def test_importing_memframe_stays_light():
    heavy = [
        "matplotlib.pyplot",
        "litestar",
        "sqlalchemy",
        "dask",
        "IPython",
        "tqdm",
        "keyring",
        "ipywidgets",
    ]
    code = f"import sys, memframe; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there_and_no_other():
    code = "import memframe; print([name for name in memframe.__all__ if getattr(memframe, name) is None])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'load_everything'"):
        _ = memframe.load_everything
