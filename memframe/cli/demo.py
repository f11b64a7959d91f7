"""`memframe demo`: the guided tour in a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from memframe.cli.options import LocalPath, example
from memframe.demo import run_demo


@click.command("demo")
@click.option(
    "--folder",
    type=LocalPath(),
    default=Path("memframe-demo"),
    help="Folder for the Parquet file, the pictures and the report.",
)
@example("memframe demo --folder tour")
def demo_command(folder: Path) -> None:
    """Take a guided tour from an API key to a DataFrame, an audit and a cleanup, on an embedded service.

    It takes a few seconds and needs no account. The database is deleted at the end; only files in the folder stay.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # memories hold every script, terminals do not
    with _isolate_plotting():
        run_demo(folder, command=_find_command())


def _find_command() -> str:
    """Return the command as it was started: without an activated environment, shells may not find its short name."""
    started = Path(sys.argv[0])
    if started.stem != "memframe":
        return "python -m memframe"
    return "memframe" if shutil.which("memframe") == str(started) else str(started)


@contextmanager
def _isolate_plotting() -> Iterator[None]:
    """Keep Matplotlib from reading the user's settings and from leaving a font cache."""
    with TemporaryDirectory(prefix="memframe-") as scratch:
        os.environ.pop("MPLBACKEND", None)
        os.environ.update(MPLCONFIGDIR=scratch, XDG_CACHE_HOME=scratch)
        yield
