"""Which service is meant: the options that `serve` and all commands of `service` have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click
import platformdirs

from memframe.cli.group import LocalPath
from memframe.service.deployment import Deployment, ServiceConfig

Command = Callable[..., None]


@contextmanager
def opened(place: ServiceConfig) -> Iterator[Deployment]:
    """The service for the length of a command; errors of the database are named."""
    with closing(place.open()) as deployment, deployment.store.naming_errors():
        yield deployment


def at_a_place(command: Command) -> Command:
    """Gives a command the options that say where the data is, as one argument ``place``."""

    @click.option(
        "--data",
        "folder",
        type=LocalPath(file_okay=False),
        default=lambda: platformdirs.user_data_path("memframe") / "service",
        help="Folder of the database and the master key; by default in your own data folder.",
    )
    @click.option(
        "--database",
        metavar="URL",
        envvar="MEMFRAME_DATABASE",
        show_envvar=True,
        help="Another database, as a SQLAlchemy address: postgresql://memframe@db.example/memframe.",
    )
    @click.option(
        "--master-key-file",
        "key_file",
        type=LocalPath(dir_okay=False),
        help="The master key, if it is not in the data folder.",
    )
    @wraps(command)
    def with_place(folder: Path, database: str | None, key_file: Path | None, **others: Any) -> None:
        command(place=ServiceConfig(folder, database, key_file), **others)

    return with_place
