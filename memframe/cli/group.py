"""Groups of commands, whose help lists each with a whole sentence."""

from __future__ import annotations

import click

MAX_SENTENCE = 200


class Group(click.Group):
    """A group whose help has the first sentence of each command, on as many lines as it takes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(MAX_SENTENCE)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
