"""The recipes of the page on nights run: the script with its webhook, the line for cron, the units of systemd."""

import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from memframe.cli.options import FOUND
from tests.test_docs import blocks
from tests.test_fleet_audit import nightly

__all__ = ["nightly"]

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "nights.md"
INSTALLED = "/usr/local/bin/memframe-nightly"
PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def listener():
    """A webhook, and the bodies that were posted to it."""

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *said):
            pass

    posted = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Webhook) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/T0001", posted
        server.shutdown()
        thread.join()


@pytest.fixture
def installed(nightly, listener, tmp_path):
    """The script, and the file of settings, as the page has them but for addresses and key."""
    script, settings = tmp_path / "memframe-nightly", tmp_path / "nightly.env"
    script.write_text(next(block for block in blocks(PAGE, "bash") if block.startswith("#!")))
    script.chmod(0o755)
    values = {
        "PATH": f"{PROGRAMS}:/usr/bin:/bin",
        "MEMFRAME_BASE_URL": nightly.local.base_url,
        "MEMFRAME_API_KEY": nightly.local.api_key,
        "WEBHOOK": listener[0],
    }
    (named,) = [block for block in blocks(PAGE, "ini") if "WEBHOOK" in block]
    assert [line.partition("=")[0] for line in named.splitlines()] == [*values]
    settings.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return script, settings


def run_as_cron(installed, home):
    """Run the command of the line with the few variables that cron sets."""
    script, settings = installed
    (line,) = blocks(PAGE, "text")
    when, command = re.fullmatch(r"((?:[\d*,/-]+ ){5})(.*)\n", line).groups()
    assert when == "30 2 * * * "
    command = command.replace(INSTALLED, str(script)).replace("/etc/memframe/nightly.env", str(settings))
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": "memframe"}
    return subprocess.run(
        ["/bin/sh", "-c", command], env=environ, cwd=home, capture_output=True, text=True, check=False
    )


@pytest.mark.campaign  # six processes, and .ci/run runs it
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_an_alarm_is_sent_when_something_high_is_new_and_only_then(nightly, installed, listener, tmp_path):
    """On three nights: all is new, but the alarm cannot be sent; nothing is new; and a second password is."""
    _, posted = listener
    _, settings = installed
    right = settings.read_text()
    home = tmp_path / "home"
    home.mkdir()
    nightly.path = home / "nightly"
    nightly.write(1, content=["The wifi password is c0rrecthorse&7."])
    settings.write_text(re.sub("WEBHOOK=.*", "WEBHOOK=http://127.0.0.1:9/secret-of-the-hook", right))
    failed = run_as_cron(installed, home)
    assert failed.returncode == 1
    assert "curl" in failed.stderr
    assert "secret-of-the-hook" not in failed.stderr
    settings.write_text(right)
    quiet = run_as_cron(installed, home)
    assert (quiet.returncode, quiet.stdout, posted) == (0, "", []), quiet.stderr
    nightly.write(0, content=["The wifi password is Tr0ub4dor&3x."])
    alarm = run_as_cron(installed, home)
    assert (alarm.returncode, len(posted)) == (FOUND, 1), alarm.stderr
    assert nightly.user_ids[0] in posted[0]
    assert '"check":"secret"' in posted[0].replace(" ", "")
    written = [posted[0], *((home / f"nightly.{kind}").read_text() for kind in ("html", "log", "json"))]
    assert not any("Tr0ub4dor" in text or nightly.local.api_key in text for text in written)
    modes = {path.name: path.stat().st_mode & 0o077 for path in home.iterdir()}
    assert not any(modes.values()), modes


SYSTEMD = shutil.which("systemd-analyze")


def complaints(folder, service, timer):
    """What systemd says of the units, if the script is installed."""
    script = folder / "memframe-nightly"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    units = [folder / f"memframe-nightly.{kind}" for kind in ("service", "timer")]
    for unit, text in zip(units, (service, timer), strict=True):
        unit.write_text(text.replace(INSTALLED, str(script)))
    done = subprocess.run(
        [SYSTEMD, "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    return [line for line in (done.stdout + done.stderr).splitlines() if "memframe" in line]


@pytest.mark.skipif(SYSTEMD is None, reason="needs systemd")
def test_systemd_takes_the_units(tmp_path):
    service, timer = blocks(PAGE, "systemd")
    assert complaints(tmp_path, service, timer) == []
    assert complaints(tmp_path, service.replace("oneshot", "once"), timer)
    assert complaints(tmp_path, service, timer.replace("02:30:00", "nightly"))
