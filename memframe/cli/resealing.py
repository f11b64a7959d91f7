"""`memframe reseal`: after a change of key, content that is sealed with older keys, planned for `memframe apply`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from memframe.cli.asking import ask_secrets, keys_in
from memframe.cli.group import LocalPath
from memframe.cli.opening import as_json, on_request, opened
from memframe.cli.planning import CONFLICTS, keep, to_file
from memframe.errors import ConfigError
from memframe.plan import Plan
from memframe.secret import Secret
from memframe.undo import plan_reseal

MAX_TOLD = 10


@click.command("reseal")
@on_request
@click.option(
    "--old-keys",
    "file",
    type=LocalPath(),
    help="File with the older keys, as hexadecimal text, one a line. Without it they are asked for, not shown, or "
    "are the lines of standard input.",
)
@click.option("--leave-unopened", is_flag=True, help="Leave what no key opens as it is, and plan the rest.")
@to_file
@as_json
def plan_newest_seal(
    request_id: str, file: Path | None, leave_unopened: bool, out: Path | None, as_json: bool
) -> None:
    """Plan to seal with the user's newest key what is still sealed with older ones.

    For services that leave that to applications when a key changes. Nothing is written; what is under the newest
    key already, or stored unsealed, is left alone. The texts themselves stay as they are.

    Ends with 3, and keeps no plan, if there is content that none of the keys opens.

    \b
    Example:
        memframe reseal --request 7c9e6679 --old-keys old-keys.txt --out reseal.plan
        memframe apply reseal.plan --request 7c9e6679
    """
    keys = _older_keys(file)
    with opened(request_id) as access:
        plan = plan_reseal(access, old_keys=keys)
    n_unopened = plan.counts.get("invalid", 0)
    click.echo(plan.to_json() if as_json else "\n".join([str(plan), *_unopened(plan)]))
    if n_unopened and not leave_unopened:
        click.echo("No plan was kept; --leave-unopened plans the rest.", err=True)
        sys.exit(CONFLICTS)
    if out is not None:
        keep(plan.without("invalid"), out, request_id)


def _older_keys(file: Path | None) -> list[Secret]:
    keys = ask_secrets("Older key") if file is None else keys_in(file, "--old-keys")
    if not keys:
        place = "on standard input" if file is None else f"in {file}"
        raise ConfigError(f"there is no key {place}; give the older keys as hexadecimal text, one a line")
    return keys


def _unopened(plan: Plan) -> Iterator[str]:
    """The first memories that no key has opened, and why."""
    odd = [change for change in plan.records if change.action == "invalid"]
    yield from (f"memory {change.id}: {change.reason}" for change in odd[:MAX_TOLD])
    if len(odd) > MAX_TOLD:
        yield f"and {len(odd) - MAX_TOLD:,} more, which --json shows"
