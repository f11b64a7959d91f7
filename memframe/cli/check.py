"""`memframe service check`: try a service of this protocol against the specification."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click

from memframe.cli.connect import full_request_id
from memframe.cli.options import (
    FILE,
    SECONDS,
    as_json,
    ask_secret,
    combine,
    example,
    key_option,
    print_result,
    remark,
    wants_json,
)
from memframe.client import connect
from memframe.client.transport import Transport
from memframe.conformance import Probe, Verdict, check_expected, check_service
from memframe.display import number_of
from memframe.errors import ConfigError
from memframe.oauth import OAuthFlow
from memframe.secret import Secret
from memframe.settings import find_client_settings


@click.command("check")
@click.argument("url")
@combine(
    key_option(
        "--api-key-file", "the API key", help="File with the API key. Default: the key of your settings."
    ),
    click.option(
        "--request", "request", metavar="ID", help="An approved access request, or the beginning of its id."
    ),
    click.option("--other-request", metavar="ID", help="An access request of another developer."),
    click.option("--write", is_flag=True, help="Also create, change and delete test memories; needs a user."),
    key_option(
        "--memory-key-file", "the memory key", help="File with a memory key, for a new access request."
    ),
    click.option(
        "--authorize", is_flag=True, help="Get a memory key: a user authorizes the client of your settings."
    ),
    click.option(
        "--wait", "wait_s", metavar="SECONDS", type=SECONDS, help="Seconds to wait for the user's decision."
    ),
    click.option("--new-tag", metavar="NAME", help="Create a tag of this name; no call can delete it."),
    click.option(
        "--expected-failures",
        "expected_file",
        type=FILE,
        help="File with the id of one requirement per line; # begins a comment.",
    ),
    as_json,
)
@example(
    "memframe service check https://memory.example/api/v1 --api-key-file key.txt --request 7c9e6679",
    "memframe service check https://memory.example/api/v1 --api-key-file key.txt --request 7c9e6679 --write",
)
def check_command(
    url: str,
    api_key: Secret | None,
    request: str | None,
    other_request: str | None,
    write: bool,
    memory_key: Secret | None,
    authorize: bool,
    wait_s: float | None,
    new_tag: str | None,
    expected_file: Path | None,
) -> None:
    """Try each requirement of the specification on the service at URL, for people who build one.

    Prints one line per requirement: level, outcome, id and what was found. A `must` is in the specification. A `needed`
    follows from a standard that the specification names, or clients cannot work without it. A `free` line says what the
    service does where the specification is silent. Exits with 1 if a must fails, or if one that is expected to fail
    holds.

    It only reads, unless you give --write: then it creates its own memories for the user of the request, and deletes
    them. Only --memory-key-file, --authorize and --new-tag leave something behind; no call can remove it, so the check
    lists it.
    """
    settings = find_client_settings(url, api_key=api_key)
    if write and not (request or ((memory_key or authorize) and wait_s is not None)):
        raise click.UsageError(
            "--write needs a user: give --request ID, or --wait with --memory-key-file or --authorize"
        )
    expected = check_expected(_read_ids(expected_file) if expected_file else ())
    flow = OAuthFlow() if authorize else None
    if flow:
        click.echo(f"Open this address in the user's browser:\n{flow.authorization_url()}", err=True)
    if request:
        with connect(settings.base_url, api_key=settings.api_key) as client:
            request = full_request_id(client, request)
    probe = Probe(
        settings.base_url,
        settings.api_key,
        request_id=request,
        other_request_id=other_request,
        memory_key=memory_key,
        flow=flow,
        redirected=ask_secret("Address that the browser was redirected to") if flow else None,
        writes=write,
        new_tag=new_tag,
        wait_s=wait_s,
        transport=Transport(),
    )
    verdicts = check_service(probe, expected=expected, report=_print_line)
    document = {
        "url": settings.base_url,
        "holds": not any(verdict.breaks for verdict in verdicts),
        "requirements": [verdict.as_record() for verdict in verdicts],
        "left_behind": probe.left_behind,
    }
    print_result(document, _summary_of(verdicts))
    for trace in probe.left_behind:
        remark(f"Left behind: {trace}.")
    if not document["holds"]:
        sys.exit(1)


def _read_ids(file: Path) -> list[str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file of --expected-failures cannot be read: {error}") from None
    return [name for line in lines if (name := line.partition("#")[0].strip())]


def _print_line(verdict: Verdict) -> None:
    if wants_json():
        return
    requirement = verdict.requirement
    outcome = verdict.outcome.upper() if verdict.outcome == "fails" else verdict.outcome
    line = f"{requirement.level:<7} {outcome:<10} {requirement.id:<24} {verdict.found}"
    if verdict.outcome == "fails":
        line += f" ({requirement.section}: “{requirement.sentence}”)"
    if verdict.is_expected and verdict.outcome in EXPECTED_WORDS:
        line += f" [{EXPECTED_WORDS[verdict.outcome]}]"
    click.echo(click.style(line, fg="red") if verdict.breaks else line)


EXPECTED_WORDS: Mapping[str, str] = {
    "fails": "expected",
    "holds": "expected to fail: remove it from the file",
}


def _summary_of(verdicts: list[Verdict]) -> str:
    outcomes = Counter((verdict.requirement.level, verdict.outcome) for verdict in verdicts)
    parts = []
    for level in ("must", "needed"):
        n_hold, n_fail, n_left = (outcomes[level, outcome] for outcome in ("holds", "fails", "not tried"))
        parts.append(f"{level}: {n_hold} hold, {number_of(n_fail, 'fails', 'fail')}, {n_left} not tried")
    return f"\n{'; '.join(parts)}."
