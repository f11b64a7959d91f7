"""README and docs show code that runs, commands that exist, links that lead somewhere, and a site without a warning."""

import logging
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import memframe
from memframe.cli import main
from memframe.envelope import LAYOUTS
from memframe.sample import load_sample, load_sample_tags
from tests.audit.test_judge import knowing
from tests.chat_stub import ChatStub, said

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "tutorials"} & {*page.relative_to(ROOT).parts}]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def with_blocks(language):
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if any(blocks(page, one) for one in language.split())
    ]


@pytest.fixture
def asked(own_user, monkeypatch, tmp_path):
    """A user who has approved a request, and settings and folder of a developer who knows it."""
    for name in ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri"):
        monkeypatch.setenv(f"MEMFRAME_{name.upper()}", getattr(own_user.service, name))
    own_user.service.import_memories(own_user.user_id, load_sample()[:60], load_sample_tags())
    monkeypatch.chdir(tmp_path)
    yield own_user
    logging.getLogger("memframe").setLevel(logging.NOTSET)  # one page shows how to see the log


class Names(dict):
    """The names of a page. An address that is printed is opened by the user, whose browser is sent back."""

    def __init__(self, user):
        access = user.access()
        super().__init__(
            client=user.client,
            access=access,
            request_id=access.request_id,
            memories=memframe.load_memories(access),
            display=lambda shown: None,
            print=self.print,
        )
        self._user = user

    def print(self, shown):
        if str(shown).startswith("http"):
            self["redirected_address"] = self._user.person.authorize(shown)

    def run(self, block):
        exec(block, self)  # noqa: S102 - what the pages show
        request, service = self.get("request"), self._user.service
        if self["client"].base_url == service.base_url and getattr(request, "status", "") == "pending":
            service.decide(request.id, "approved")


@pytest.mark.filterwarnings("default:.*Left out:UserWarning")
@pytest.mark.parametrize("page", with_blocks("python"))
def test_python_runs(page, asked):
    names = Names(asked)
    with ChatStub(otherwise=said(knowing)) as stub:
        for block in blocks(page, "python"):
            names.run(block.replace("http://127.0.0.1:11434/v1", stub.base_url))
    if "panel" in names:
        assert names["panel"].wait(20)
        names["panel"].close()


STARTS = {"serve", "demo", "login", "service", "request"}
"""Commands that wait for people, or for the service of the reader: their arguments are read, and no more."""


@pytest.mark.parametrize("page", with_blocks("sh"))
def test_commands_run(page, asked, tmp_path):
    request = asked.ask()
    asked.service.decide(request.id, "approved")
    (tmp_path / "old-keys.txt").write_text(bytes(range(32)).hex())
    (tmp_path / "key.txt").write_text("a key")
    (tmp_path / "MEMORY.md").write_text("- Likes tea\n- Likes tea\n")
    (tmp_path / "export.json").write_text('[{"memory": "Likes tea", "user_id": "ada"}]')
    for line in "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        name, *arguments = shlex.split(line, comments=True) or [""]
        if name == "sed":
            subprocess.run([name, *arguments], check=True)
        if name.rpartition("/")[2] != "memframe" or not arguments:
            continue
        arguments = [request.id if one == "ID" else one for one in arguments]
        if arguments[0] in STARTS or "--judge" in arguments:
            parse(main, arguments)
        else:
            result = CliRunner().invoke(main, arguments, input="\n")
            assert result.exit_code in {0, 6}, f"{line}\n{result.output}"


def parse(command, arguments, parent=None):
    context = command.make_context(command.name, list(arguments), parent=parent)
    if isinstance(command, click.Group):
        _, inner, rest = command.resolve_command(context, context._protected_args + context.args)
        parse(inner, rest, context)


TEXTS = sorted({*PAGES, *ROOT.glob("*.md")})


def headings(page):
    """Return the anchors of a page, as hosts and the site make them of its headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in TEXTS])
def test_links_lead_to_files_and_headings(page):
    missing = []
    for link in re.findall(r"\]\((?!https?:)([^)]+)", page.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        path = page.parent / name if name else page
        if not path.exists():
            path = ROOT / "notebooks" / name.partition("tutorials/")[2]
        if not path.is_file() or (anchor and anchor not in headings(path)):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in TEXTS])
def test_commands_that_prove_something_name_files(page):
    commands = re.findall(r"`((?:pytest|python) [^`]+)`", page.read_text("utf-8"))
    named = re.findall(r"(?:^| )((?:tests|benchmarks|docs)/[\w/.]+)", "\n".join(commands), re.MULTILINE)
    named += [
        name.replace(".", "/") + ".py" for name in re.findall(r"python -m (tests[\w.]*)", "\n".join(commands))
    ]
    assert [name for name in named if not (ROOT / name).exists() and not name.startswith("docs/_build")] == []


def test_the_pages_of_the_api_have_every_public_name():
    index = (ROOT / "docs/reference/api.md").read_text("utf-8")
    pages = {page: page.read_text("utf-8") for page in (ROOT / "docs/reference/api").glob("*.md")}
    assert {f"api/{page.stem}" for page in pages} == set(re.findall(r"^api/\S+$", index, re.MULTILINE))
    text = "".join(pages.values())
    names = [
        name for name in memframe.__all__ if not name.endswith(("Error", "Timeout"))
    ]  # errors: a page of modules
    assert "automodule:: memframe.errors" in text
    assert [name for name in names if not re.search(rf":: memframe\.(\w+\.)?{name}\b", text)] == []


def test_every_layout_of_sealed_content_is_listed_by_name():
    page = (ROOT / "docs/reference/formats.md").read_text("utf-8")
    _, _, section = page.partition("## Sealed content")
    named = re.findall(r"^\| `([^`]+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    assert named == [*LAYOUTS, "plain"]


@pytest.mark.campaign  # ten seconds, and .ci/run runs it
@pytest.mark.filterwarnings("ignore")  # of its libraries; what it says itself fails the build
def test_the_site_builds_without_a_warning(tmp_path, monkeypatch, capsys):
    build = pytest.importorskip("sphinx.cmd.build", reason="pip install '.[docs]'")
    monkeypatch.setattr("sys.path", [*sys.path])  # to which its configuration adds
    code = build.build_main(["-q", "-W", "--keep-going", str(ROOT / "docs"), str(tmp_path)])
    assert (code, capsys.readouterr().err) == (0, "")
