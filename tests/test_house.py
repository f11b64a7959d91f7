"""The laws of the house that a machine can check: layers, doors, names and libraries in their rooms."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from IPython.core.completer import IPCompleter, provisionalcompleter

import memframe

PACKAGE = Path(__file__).parents[1] / "memframe"

LAYERS = """
    __main__
    cli
    history
    demo panel fleet restore clean
    review
    undo signin cleanup
    apply
    journal readers
    plan archive load
    listing conformance
    access oauth audit
    client service report
    plot runtime decisions
    frames envelope keystore snapshots
    settings
    wire progress address
    secret files versions fields
    sample display errors
"""
"""Top to bottom: a module imports only from lines below its own."""

RANK = {room: -line for line, rooms in enumerate(LAYERS.split("\n")) for room in rooms.split()}

SERVICE_IMPORTS = {"address", "envelope", "errors", "fields", "files", "secret", "wire"}
"""The service is the other end of the wire: beside its own modules it imports these rooms, and no others."""

KNOW_BOTH_ENDS = {"cli", "demo"}
"""The only rooms that import the service; `memframe.service` itself is loaded when it is first used."""


ROOM_OF_LIBRARY = {
    "pandas": RANK.keys() - {"wire", "envelope", "client", "service"},
    "matplotlib": {"plot"},
    "dask": {"fleet"},
    "distributed": {"fleet"},
    "ipywidgets": {"panel", "progress"},
    "anywidget": {"review"},
    "litestar": {"service"},
    "sqlalchemy": {"service"},
    "uvicorn": {"service"},
    "oauthlib": {"service"},
    "jinja2": {"service"},
    "markupsafe": {"display", "service"},
    "joserfc": {"service"},
    "argon2": {"service", "demo"},
}
"""Heavy libraries, and the rooms that may open their door."""


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree_of(path):
    return ast.parse(path.read_text())


@cache
def imports(path):
    return list(imported(path))


def imported(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_of(path):
    return str(path.relative_to(PACKAGE))


def breaches(law):
    """Of each module that breaks a law: what it has too much."""
    return {name_of(path): found for path in MODULES if (found := set(law(path)))}


def test_every_room_has_a_place():
    assert {room_of(path) for path in MODULES} <= RANK.keys()


def test_imports_point_down():
    def upward(path):
        rank = RANK[room_of(path)]
        return {other for other in rooms_imported(path) - {room_of(path)} if RANK[other] >= rank}

    assert breaches(upward) == {}


def test_files_import_one_another_one_way():
    names = {module_name(path) for path in MODULES}

    def modules_imported(path):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom):
                module = node.module.removeprefix("memframe.")
                for alias in node.names:
                    inner = f"{module}.{alias.name}"  # a name, or a module of its own
                    yield inner if inner in names else module

    graph = {module_name(path): {*modules_imported(path)} & names for path in MODULES}
    assert [*TopologicalSorter(graph).static_order()]


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.asvs("13.2.4")
def test_client_and_service_know_nothing_of_each_other():
    def beyond(path):
        others = rooms_imported(path) - {room_of(path)}
        if room_of(path) == "service":
            return others - SERVICE_IMPORTS
        return () if room_of(path) in KNOW_BOTH_ENDS else others & {"service"}

    assert breaches(beyond) == {}


@cache
def rooms_imported(path):
    names = (name.split(".") for name in imports(path))
    return {rest[0] for package, *rest in names if package == "memframe" and rest}


def test_heavy_libraries_stay_in_their_rooms():
    def out_of_place(path):
        libraries = {name.split(".")[0] for name in imports(path)} & ROOM_OF_LIBRARY.keys()
        return {library for library in libraries if room_of(path) not in ROOM_OF_LIBRARY[library]}

    assert breaches(out_of_place) == {}


DANGEROUS_CALLS = {"eval", "exec", "compile", "os.system", "os.popen"} | {
    f"{name}.{verb}" for name in ("pickle", "marshal", "dill", "yaml") for verb in ("load", "loads")
}
DANGEROUS_IMPORTS = {"marshal", "shelve", "dill", "yaml", "telnetlib", "xml"}

DANGEROUS_ALLOWED = {
    "plot/axes.py": {"xml"},
    "archive/notes.py": {"yaml"},
    "fleet/processes.py": {"pickle.loads"},
}
"""Pictures that matplotlib has drawn; frontmatter, by a loader that makes texts and lists of them alone; and the work
that a process gets through a pipe from the one that started it."""


@pytest.mark.asvs("1.2.5", "1.3.2", "1.5.2")
def test_no_input_is_executed():
    """Nor does a shell read any; what is allowed stands beside its reason."""

    def dangerous(path):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and (called := ast.unparse(node.func)) in DANGEROUS_CALLS:
                yield called
            if isinstance(node, ast.keyword) and node.arg == "shell":
                yield "shell"
        yield from {name.partition(".")[0] for name in imports(path)} & DANGEROUS_IMPORTS

    assert breaches(dangerous) == DANGEROUS_ALLOWED


CALLS_OUT = {"requests", "urllib3", "httpx", "http.client", "urllib.request", "smtplib", "ftplib", "aiohttp"}
GUESSABLE_OR_BROKEN = {"random", "hashlib.md5", "hashlib.sha1"}


@pytest.mark.asvs("1.3.6", "1.3.10", "11.4.1", "11.5.1", "13.2.4", "13.2.5", "14.2.3", "15.3.2")
def test_the_service_asks_no_other_formats_no_input_and_makes_secrets_that_nobody_guesses():
    def breach(path):
        if room_of(path) != "service":
            return
        called = [node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
        yield from {*imports(path), *map(ast.unparse, called)} & (CALLS_OUT | GUESSABLE_OR_BROKEN)
        for function in called:
            match function:
                case ast.Attribute(attr="format" | "format_map", value=ast.Name(id=text)) if text.isupper():
                    pass
                case ast.Attribute(attr="format" | "format_map", value=ast.Name() | ast.Attribute()):
                    yield ast.unparse(function)

    assert breaches(breach) == {}


def test_no_function_has_its_modules_name():
    def namesakes(path):
        functions = {node.name for node in tree_of(path).body if isinstance(node, ast.FunctionDef)}
        return functions & {path.stem}

    assert breaches(namesakes) == {}


def test_every_module_says_what_it_is():
    assert [name_of(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []
    vague = {"utils", "helpers", "core", "base", "manager", "common", "misc"}
    assert vague.isdisjoint(path.stem for path in MODULES)


def caption_of(room):
    path = next(path for path in (PACKAGE / f"{room}.py", PACKAGE / room / "__init__.py") if path.exists())
    return ast.get_docstring(tree_of(path)).split("\n")[0]


def test_the_map_shows_every_room_with_its_caption():
    _, _, house = (PACKAGE.parent / "CONTRIBUTING.md").read_text().partition("\n## Architecture\n")
    rooms = sorted({room_of(path) for path in MODULES}, key=LAYERS.split().index)
    shown = [line for line in house.splitlines() if line.startswith("| `")]
    assert shown == [f"| `{room}` | {caption_of(room)} |" for room in rooms]


FOR_TESTS_ALONE = {"chance", "clock", "folder", "now", "rng", "runtime", "sleep", "surroundings", "vault"}

TIME_OF_THE_CONTRACT = {"Review", "audit_fleet", "audit_memories", "review", "service.run_local"}
"""Callables whose ``now`` is for users as well: the moment of an audit, and of a service of one's own."""


def signatures_of(thing, name):
    """The callables that a user reaches from a public name, with their parameters."""
    if isinstance(thing, ModuleType) and not callable(thing):
        for each in thing.__all__:
            yield from signatures_of(getattr(thing, each), f"{name}.{each}")
        return
    if callable(thing) and not (isinstance(thing, type) and issubclass(thing, Exception)):
        yield name, set(inspect.signature(thing).parameters)
    if isinstance(thing, type):
        for each, method in vars(thing).items():
            if not each.startswith("_") and callable(method := getattr(method, "__func__", method)):
                yield f"{name}.{each}", set(inspect.signature(method).parameters)


def test_no_public_signature_shows_what_is_there_for_tests():
    found = dict(pair for name in memframe.__all__ for pair in signatures_of(getattr(memframe, name), name))
    assert {"apply_plan", "Client.credentials", "Plan.load", "SignIn", "plot.overview"} <= found.keys()
    shown = {name: parameters & FOR_TESTS_ALONE for name, parameters in found.items()}
    assert {name: more for name, more in shown.items() if more} == {
        name: {"now"} for name in TIME_OF_THE_CONTRACT
    }


FRAMES = {"pandas", "pyarrow", "matplotlib"}
HEAVY = {"litestar", "sqlalchemy", "dask", "IPython", "tqdm", "keyring", "ipywidgets", "anywidget"}
STEPS = [
    # what a process does, one step after the other, and what it has not loaded by then
    ("import memframe", HEAVY | FRAMES),
    ("from memframe.cli import main; main.list_summaries(None)", FRAMES),
    ("import memframe.cli.serve, memframe.cli.service, memframe.cli.connect", FRAMES),
    ("import memframe.audit", {"matplotlib"}),
    ("import pandas; memframe.plot.sources(pandas.DataFrame({'source': ['chat']}))", {"matplotlib.pyplot"}),
]


def test_nothing_is_loaded_before_it_is_needed():
    code = "\n".join(["import sys", *(f"{step}; print(*sys.modules)" for step, _ in STEPS)])
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    for (step, missing), line in zip(STEPS, shown.splitlines(), strict=True):
        assert not missing & {*line.split()}, step


def test_every_public_name_is_there_and_no_other():
    errors = {name for name, value in vars(memframe.errors).items() if is_error(value)}
    assert len(memframe.__all__) == len(set(memframe.__all__))
    assert set(memframe.__all__) == {*memframe._ROOM_OF, *memframe._SUBMODULES, *errors, "Secret"}
    assert dir(memframe) == sorted([*memframe.__all__, "__version__"])
    public = {name: getattr(memframe, name) for name in memframe.__all__}
    modules = {
        name for name, value in public.items() if isinstance(value, ModuleType) and not callable(value)
    }
    assert modules == memframe._SUBMODULES
    for name, room in memframe._ROOM_OF.items():
        assert public[name].__module__.split(".")[1] == room
    with pytest.raises(AttributeError, match="no attribute 'load_everything'"):
        _ = memframe.load_everything


def test_tab_completion_offers_what_callers_use_and_nothing_else():
    plots = {
        *["duplicates", "findings", "history", "lengths", "overview", "scores", "sources", "tags", "timeline"]
    }
    completer = IPCompleter(namespace={"mf": memframe})
    for completer.use_jedi in (True, False):
        assert {name.removeprefix(".") for name in completions(completer, "mf.plot.")} == plots
        assert completions(completer, "mf.service.")[0].removeprefix(".") == "run_local"
        assert "__version__" in {name.removeprefix(".") for name in completions(completer, "mf.__ve")}
    assert dir(memframe.plot) == sorted(plots)
    assert dir(memframe.service) == ["run_local"]
    assert memframe.__version__ == version("memframe")


def completions(completer, text):
    with provisionalcompleter():
        return [found.text for found in completer.completions(text, len(text))]


def is_error(value):
    return isinstance(value, type) and issubclass(value, memframe.MemframeError)


RELATIVE = {
    "What",
    "Whether",
    "Which",
    "Who",
    "Whoever",
    "Whose",
    "How",
    "Where",
    "Why",
    "When",
    "Of",
    "By",
    "As",
}
"""Words with which a docstring leaves out the noun that it is about."""


def test_docstrings_begin_with_what_is_done_or_with_a_thing():
    def relative(path):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                first = (ast.get_docstring(node) or "").split(" ")[0]
                if first in RELATIVE:
                    yield getattr(node, "name", "the module")
            for target, text in documented_attributes(node):
                if text.split()[0].rstrip(",") in RELATIVE:
                    yield ast.unparse(target)

    assert breaches(relative) == {}


def documented_attributes(node):
    """Yield the attributes and constants of a body that a text follows, each with it."""
    body = node.body if isinstance(getattr(node, "body", None), list) else []
    for one, after in pairwise(body):
        match one, after:
            case (
                ast.Assign(targets=[target]) | ast.AnnAssign(target=target),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield target, text


def test_the_name_of_a_class_has_one_meaning():
    places = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.lstrip("_"), []).append(name_of(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


SEVERAL_MEANINGS = {
    "R", "T", "Result",  # type variables
    "utc_now",  # at each end of the wire: the service may not import the toolkit's
    "tags",  # a public plot, and a table of the database, which has the names of its tables
    "upgrade", "revision", "down_revision",  # of each migration, as Alembic calls them
}  # fmt: skip
"""Public names of constants and functions that several modules define: no new one comes in."""


def test_the_name_of_a_constant_or_function_has_one_meaning():
    places = {}
    for path in MODULES:
        for name in names_defined(tree_of(path)):
            if not name.startswith("_"):
                places.setdefault(name, set()).add(name_of(path))
    several = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in several.items() if name not in SEVERAL_MEANINGS} == {}
    assert several.keys() >= SEVERAL_MEANINGS, "strike out what has one meaning now"


def test_a_choice_between_three_things_is_a_statement():
    def nested(path):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.IfExp):
                parts = (node.test, node.body, node.orelse)
                if any(isinstance(each, ast.IfExp) for part in parts for each in ast.walk(part)):
                    yield f"line {node.lineno}"

    assert breaches(nested) == {}


def names_defined(tree):
    """Yield the names of the functions and constants of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from {
                each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
            }


def test_the_table_of_fixtures_is_complete():
    tree = ast.parse(Path(__file__).with_name("conftest.py").read_text())
    fixtures = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any("pytest.fixture" in ast.unparse(each) for each in node.decorator_list)
    ]
    _, _, rows, _ = re.split(r"^=+  =+$", ast.get_docstring(tree), flags=re.MULTILINE)
    assert re.findall(r"^(\w+)  ", rows, re.MULTILINE) == fixtures
