"""The `memframe` command: the verbs of the toolkit for shells and scripts.

Exit codes: 0 done, 1 error (a message, never a traceback), 2 usage, 3 conflicts or rejected rows, 4 rows of
which it is not known whether they were written, 5 access refused (the key, the token or the approval), 6 the audit
found what `--fail-on` names.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import click

from memframe.cli.options import Group
from memframe.errors import AccessError, AuthError, ConfigError, MemframeError, StalePlanError

COMMANDS = {
    "demo": "memframe.cli.demo:take_tour",
    "login": "memframe.cli.connect:log_in",
    "request": "memframe.cli.connect:access_requests",
    "export": "memframe.cli.read:export_all",
    "plan": "memframe.cli.write:plan_edits",
    "apply": "memframe.cli.write:carry_out",
    "resume": "memframe.cli.write:go_on",
    "undo": "memframe.cli.write:plan_back",
    "reseal": "memframe.cli.write:plan_newest_seal",
    "runs": "memframe.cli.write:show_runs",
    "fleet": "memframe.cli.fleet:on_every_user",
    "audit": "memframe.cli.read:audit_all",
    "report": "memframe.cli.read:report_all",
    "serve": "memframe.cli.serve:run_service",
    "service": "memframe.cli.serve:service",
}
"""Each command, and the module and name that are loaded once it is asked for."""


class Commands(Group):
    """A group that loads a command only when it is asked for, and turns our errors into messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        try:
            command: click.Command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            return _without_extra(cmd_name, str(error.name))
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemframeError as error:
            raise Failed(error) from None
        except KeyboardInterrupt as stopped:
            if advice := getattr(stopped, "__notes__", None):
                raise click.ClickException(f"stopped. {for_a_shell(' '.join(advice))}") from None
            raise  # click itself ends with a word
        except BrokenPipeError:
            raise  # click itself ends quietly where the reader of a pipe has gone
        except OSError as error:
            raise click.ClickException(str(error)) from None


EXIT_CODES: dict[type[MemframeError], int] = {AccessError: 5, AuthError: 5, StalePlanError: 3}
"""Of errors that a script may want to tell from the others, which end with 1."""


class Failed(click.ClickException):
    """An error as click ends with it: its message, and its exit code."""

    def __init__(self, error: MemframeError) -> None:
        super().__init__(for_a_shell(str(error)))
        self.exit_code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)  # type: ignore[misc]  # click sets it on instances, too


_FOR_A_SHELL = {
    r"pass confirm=([\d,]+)": r"give --confirm \1",
    r"\bconfirm=(\d+)": r"--confirm \1",
    r"\blook at plan\.changes": "look at the plan",
    r"\bmax_changes=([\d,]+)": r"--max-changes \1",
    r"\bmax_share=([\d.]+)": r"--max-share \1",
    r"\bon_conflict='(\w+)'": r"--on-conflict \1",
    r"\bon_null= what that means, or write memframe\.NULL to clear it": "--on-null what that means",
    r"\bencrypt=False\b": "--plaintext",
    r"\bresume_run\(access, (?:'(.+?)'|path)\)": r"memframe resume \1",
    r"\bresume_run\(\)": "memframe resume",
    r"\blist_runs\(\)": "memframe runs",
    r"\bpurge_runs\(journals=\['(.+?)'\]\)": r"memframe runs --forget \1",
    r"\bwait_for_decision\(\)": "memframe request wait",
    r"\bpass (\w+)=\.\.\., ": "",
    r"\bpass the address that is registered for this client_id, or set": "set",
    r"\bpass key=, the Access to that user or its encryption_key": "give the user's --request, or the "
    "encryption_key in a --key-file",
    r"\bpass the older key as key=\{\d+: \.\.\.\}": "give the older key in a --key-file",
    r"\bpass that key, or an Access to that user": "give that key, or the --request of that user",
    r"\bpaste the redirected address into exchange\(\)": "leave out --local and paste the redirected address",
    r"\bno audit that to_json\(\) wrote": "no audit that `memframe audit --out` wrote",
}
"""What messages advise in Python, and the same on a command line."""


def for_a_shell(text: str) -> str:
    """A message with its advice as commands.

    >>> for_a_shell("resume_run(access, 'a.journal') goes on with it; list_runs() shows others")
    'memframe resume a.journal goes on with it; memframe runs shows others'
    >>> for_a_shell("api_key is not set: pass api_key=..., set the variable MEMFRAME_API_KEY")
    'api_key is not set: set the variable MEMFRAME_API_KEY'
    """
    for in_python, command in _FOR_A_SHELL.items():
        text = re.sub(in_python, command, text)
    return text


def _without_extra(name: str, missing: str) -> click.Command:
    """What stands in for a command whose libraries are not installed."""

    def refuse() -> None:
        raise ConfigError(f"`memframe {name}` needs the library {missing}: pip install 'memframe[service]'")

    return click.Command(
        name,
        callback=refuse,
        help="(not installed: pip install 'memframe[service]')",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memframe")
def main() -> None:
    """The memories of an AI as data: serve, load, audit, plan, write back, undo.

    Address and key come from MEMFRAME_BASE_URL and MEMFRAME_API_KEY, or from what `memframe login` has kept.

    \b
    Ends with 0 done, 1 error, 2 wrong usage, 3 conflicts or rejected rows,
    4 rows of which nobody knows, 5 access refused, 6 what --fail-on names.

    \b
    Example:
        memframe demo
    """
