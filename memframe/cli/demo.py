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

from memframe.cli.options import LocalPath
from memframe.demo import run_demo
from memframe.demo.tour import Telling


@click.command("demo")
@click.option(
    "--folder",
    type=LocalPath(),
    default=Path("memframe-demo"),
    show_default=True,
    help="Where the Parquet file, the pictures and the report go.",
)
def take_tour(folder: Path) -> None:
    """Walk the whole way from an API key to a DataFrame, an audit and a cleanup, on a service of its own.

    Takes a few seconds and needs no account. Its database ends with it; files stay only in the folder.

    \b
    Example:
        memframe demo --folder tour
    """
    with _plotting_without_traces():
        run_demo(folder, telling=_on_this_terminal(), command=_command())


def _command() -> str:
    """How the command was started, as most shells do not find it in an environment that is not activated."""
    started = Path(sys.argv[0])
    if started.stem != "memframe":
        return "python -m memframe"
    return "memframe" if shutil.which("memframe") == str(started) else str(started)


def _on_this_terminal() -> Telling:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # memories hold every script, terminals do not
    colour = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    return Telling(click.echo, width=shutil.get_terminal_size().columns, colour=colour)


@contextmanager
def _plotting_without_traces() -> Iterator[None]:
    """Matplotlib neither reads the user's settings nor leaves its cache of fonts with them."""
    with TemporaryDirectory(prefix="memframe-") as scratch:
        os.environ.pop("MPLBACKEND", None)
        os.environ.update(MPLCONFIGDIR=scratch, XDG_CACHE_HOME=scratch)
        yield
