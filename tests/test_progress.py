"""Progress: who sees it, how often, and what it leaves behind."""

import io
import sys

import pytest

from memframe.errors import ConfigError
from memframe.progress import MIN_INTERVAL_S, Progress, hide_progress
from tests.kernels import SocketKernelManager


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_callable_hears_the_start_at_most_ten_updates_a_second_and_the_end():
    heard, clock = [], Clock()
    with Progress(lambda *state: heard.append(state), text="Loading", clock=clock) as bar:
        for _ in range(1000):
            clock.now += MIN_INTERVAL_S / 100
            bar.step(5)
    assert heard[0] == (0, None, "Loading")
    assert heard[-1] == (5000, None, "Loading")
    assert 10 <= len(heard) <= 12
    heard.clear()
    with Progress(lambda *state: heard.append(state), clock=Clock()) as bar:
        bar.total = 7  # known later
        bar.step(2)
        bar.close()
    assert heard == [(0, None, ""), (2, 7, "")], "the end comes once"


def test_a_callable_that_raises_stops_the_work():
    with pytest.raises(KeyError), Progress(lambda *_: {}["cancelled"]):
        pytest.fail("the work went on")


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    clock = Clock()
    with Progress("auto", total=4, text="Loading", clock=clock) as bar:
        clock.now = 1
        bar.step(2)
        assert "Loading:  50%" in sys.stderr.getvalue()
    assert sys.stderr.getvalue().split("\r")[-2].strip() == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    with hide_progress(), Progress("auto", total=4, text="Loading"):
        assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize(("progress", "shown"), [("auto", False), (False, False), (True, True)])
def test_a_script_shows_something_only_when_asked(monkeypatch, progress, shown):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress(progress, total=1, text="Loading") as bar:
        bar.step()
    assert ("Loading" in sys.stderr.getvalue()) is shown


@pytest.mark.parametrize("progress", ["auto", True])
def test_without_standard_error_there_is_no_bar(monkeypatch, progress):
    monkeypatch.setattr(sys, "stderr", None)
    with Progress(progress, text="Loading") as bar:
        bar.step(5)


@pytest.mark.parametrize("progress", ["yes", None, 3, 1.0])
def test_another_value_is_refused_by_name(progress):
    with pytest.raises(ConfigError, match="progress is"):
        Progress(progress)


NOTEBOOK = """
from memframe.progress import Progress
with Progress(text="Loading memories") as bar:
    bar.step(1200)
with Progress(text="Writing", total=9) as bar:
    bar.step(2)
    raise SystemExit
"""


def test_a_notebook_shows_a_bar_and_keeps_one_line_of_text_that_tells_the_end():
    lines, bars = {}, []

    def receive(message):
        if message["msg_type"] in {"display_data", "update_display_data"}:
            content = message["content"]
            lines[content["transient"]["display_id"]] = content["data"]
            bars.append(content["data"].get("text/html", ""))

    manager = SocketKernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        client.execute_interactive(NOTEBOOK, output_hook=receive, timeout=60)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert list(lines.values()) == [
        {"text/plain": "Loading memories: 1,200"},
        {"text/plain": "Writing: 2 of 9 (stopped)"},
    ]
    assert '<progress max="9" value="2"' in "".join(bars)
