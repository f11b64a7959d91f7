"""What the README shows, runs."""

import re
from pathlib import Path

import pandas as pd
import pytest

import memframe
from memframe.cli import COMMANDS, main
from memframe.cli.options import MAX_SENTENCE
from memframe.sample import load_sample
from tests.audit.test_judge import knowing
from tests.chat_stub import ChatStub, said

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def environment(user, monkeypatch):
    service = user.service
    settings = ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri")
    for name in settings:
        monkeypatch.setenv(f"MEMFRAME_{name.upper()}", getattr(service, name))
    service.import_memories(user.user_id, load_sample()[:50])
    return user


class Asking(dict):
    """The names of a block; the redirected address is what the user's browser brings back when it is asked for."""

    def __init__(self, user):
        super().__init__(print=self.show)
        self.user = user

    def show(self, shown):
        if str(shown).startswith("http"):
            self["redirected_address"] = self.user.person.authorize(shown)
        else:
            self["shown"] = shown


def test_memories_to_a_frame(environment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    request = environment.ask()
    environment.service.decide(request.id, "approved")
    names = {"request_id": request.id}
    exec(BLOCKS[0], names)  # noqa: S102 - the README's own code
    assert len(names["memories"]) == 50
    assert (tmp_path / "memories.parquet").exists()


def test_writing_back(environment):
    access = environment.access()
    names = {"mf": memframe, "access": access, "memories": memframe.load_memories(access)}
    exec(BLOCKS[1], names)  # noqa: S102 - the README's own code
    assert names["plan"].counts == names["back"].counts
    assert names["plan"].counts["patch"] > 0


def test_auditing_and_cleaning_up(environment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    access = environment.access()
    names = {"mf": memframe, "access": access, "memories": memframe.load_memories(access)}
    exec(BLOCKS[2], names)  # noqa: S102 - the README's own code
    assert (tmp_path / "audit.html").exists()
    assert names["run"].counts["done"] == len(names["plan"]) > 0


def test_asking_a_model():
    names = {
        "mf": memframe,
        "memories": pd.DataFrame(
            {"id": ["a", "b"], "content": ["Bo eats steak.", "Bo has never had a steak."]}
        ),
    }
    with ChatStub(otherwise=said(knowing)) as stub:
        exec(BLOCKS[3].replace("http://127.0.0.1:11434/v1", stub.base_url), names)  # noqa: S102 - the README's own code
    assert stub.requests
    assert {"question", "newer", "older", "verdict"} <= {*names["audit"].judged.columns}


def test_asking_a_user(environment):
    names = Asking(environment)
    exec("import memframe as mf\nclient = mf.connect()", names)  # noqa: S102 - what the block before has
    block = BLOCKS[4].replace("timeout_s=600", "timeout_s=0")
    with pytest.raises(TimeoutError):
        exec(block, names)  # noqa: S102 - the README's own code
    environment.service.decide(names["request"].id, "approved")
    exec(block[block.index("request = mf.wait") :], names)  # noqa: S102 - the README's own code
    assert names["shown"] == "approved"


def test_in_a_notebook(environment):
    shown = []
    names = {"display": shown.append}
    exec("import memframe as mf", names)  # noqa: S102 - what the blocks before have
    exec(BLOCKS[5], names)  # noqa: S102 - the README's own code
    assert shown == [names["panel"]]
    assert names["panel"].wait(20)
    assert names["panel"].sign_in.client.base_url == environment.service.base_url
    names["panel"].close()


def test_the_table_of_commands_shows_each_with_the_first_line_of_its_help():
    shown = [line for line in README.splitlines() if line.startswith("| `memframe ")]
    said = {name: main.get_command(None, name).get_short_help_str(MAX_SENTENCE) for name in COMMANDS}
    assert shown == [f"| `memframe {name}` | {text} |" for name, text in said.items()]


def test_there_are_no_other_blocks():
    assert len(BLOCKS) == 6
