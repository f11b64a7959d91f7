"""Groups of commands, whose help lists each with a whole sentence, and paths as commands take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memframe.private_file import expand_path

MAX_SENTENCE = 200


class Group(click.Group):
    """A group whose help has the first sentence of each command, on as many lines as it takes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(MAX_SENTENCE)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LocalPath(click.Path):
    """A path in an option or argument, with ``~`` as the home folder: shells leave it alone in ``--out=~/a.plan``."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(expand_path(value), param, ctx)
