"""`memframe demo`: the guided tour in a terminal."""

from __future__ import annotations

from pathlib import Path

import click

from memframe.demo import DEFAULT_FOLDER, run_demo


@click.command("demo")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Where the pictures and the Parquet file go.",
)
def take_tour(folder: Path) -> None:
    """Walk the whole way from an API key to a DataFrame, on a service of its own.

    Takes a few seconds, needs no account, and ends with its database; files stay only in the folder.

    \b
    Example:
        memframe demo --folder tour
    """
    run_demo(folder, say=click.echo)
