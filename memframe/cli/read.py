"""`memframe audit`, `report` and `export`: read memories, without changing any."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
import pandas as pd
from click.core import ParameterSource

from memframe.archive import export_memories, load_archive, refresh_archive
from memframe.archive.sealing import Reader
from memframe.audit import CHECKS, SEVERITIES, Audit, ChatJudge, audit_memories
from memframe.audit.findings import Check, Severity
from memframe.audit.judge import JUDGE_LIMIT, JUDGED
from memframe.cli.options import (
    LocalPath,
    as_json,
    key_file_option,
    open_request,
    read_file,
    read_key,
    request_option,
    request_required,
)
from memframe.load import load_memories, load_tags
from memframe.report.summary import Count, memories, none_found, proposed, share, subject_of, words_of

FOUND = 6
"""Exit code if there are findings of --fail-on."""

Command = Callable[..., None]


def audit_options(command: Command) -> Command:
    """Add the options that choose memories and checks; the command gets the audit as its argument ``audit``."""

    @request_option(required=False)
    @click.option(
        "--archive",
        type=LocalPath(exists=True),
        help="Audit an archive of `memframe export` instead of the service; --request opens a sealed one.",
    )
    @click.option(
        "--file",
        "foreign",
        type=LocalPath(exists=True),
        help="Audit a file, folder or archive from another memory system instead.",
    )
    @click.option(
        "--format", "form", default="auto", show_default=True, help="Of --file, where several formats fit."
    )
    @click.option("--zone", help="Of times in --file that name none, such as Europe/Paris.")
    @key_file_option
    @click.option(
        "--check",
        "checks",
        multiple=True,
        metavar="CHECK",
        type=click.Choice(CHECKS),
        help=f"Run only this check; may be given several times. Checks: {', '.join(CHECKS)}.",
    )
    @click.option(
        "--judge",
        "judge_url",
        metavar="URL",
        help="An OpenAI-compatible endpoint that judges what rules cannot decide, such as http://127.0.0.1:11434/v1.",
    )
    @click.option("--model", metavar="NAME", help="The model to use.")
    @click.option(
        "--judge-limit",
        metavar="N",
        type=click.IntRange(min=0),
        default=JUDGE_LIMIT,
        show_default=True,
        help="Maximum number of questions; the most promising are asked first.",
    )
    @click.option(
        "--judge-key-file", type=LocalPath(dir_okay=False), help="File with the API key of that endpoint."
    )
    @click.option(
        "--send",
        is_flag=True,
        help="Send masked texts of memories to a --judge that is on another machine.",
    )
    @wraps(command)
    def with_audit(
        request_id: str | None,
        archive: Path | None,
        foreign: Path | None,
        form: str,
        zone: str | None,
        key_file: Path | None,
        checks: tuple[Check, ...],
        judge_url: str | None,
        model: str | None,
        judge_limit: int,
        judge_key_file: Path | None,
        send: bool,
        **others: Any,
    ) -> None:
        if archive is None and foreign is None and request_id is None:
            raise click.UsageError("Choose memories: --request ID, --archive PATH or --file PATH.")
        if foreign is not None and (archive is not None or _is_typed("request_id")):
            raise click.UsageError("Give one of --file PATH, --archive PATH and --request ID.")
        if foreign is None and (_is_typed("form") or zone is not None):
            raise click.UsageError("--format and --zone are about a file: name it with --file PATH.")
        if key_file is not None and archive is None:
            raise click.UsageError("--key-file opens a sealed archive: name it with --archive PATH.")
        run = partial(
            audit_memories,
            judge=_judge(judge_url, model, judge_key_file, send=send),
            judge_limit=judge_limit,
            checks=checks or None,
        )
        audit = (
            _audit(request_id, archive, key_file, run)
            if foreign is None
            else run(read_file(foreign, form, zone))
        )
        command(audit=audit, **others)

    return with_audit


def _judge(url: str | None, model: str | None, key_file: Path | None, *, send: bool) -> ChatJudge | None:
    if (url is None) != (model is None):
        raise click.UsageError("A judge is an endpoint and a model: give both --judge URL and --model NAME.")
    if url is None or model is None:
        if key_file is not None or send:
            raise click.UsageError("--judge-key-file and --send are about a judge: name it with --judge URL.")
        return None
    api_key = None if key_file is None else read_key(key_file, "--judge-key-file", "the judge's API key")
    return ChatJudge(url, model=model, api_key=api_key, send=send)


def _is_typed(name: str) -> bool:
    """True if a parameter was given on the command line itself."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


@click.command("audit")
@audit_options
@click.option(
    "--fail-on",
    type=click.Choice(list(reversed(SEVERITIES))),
    help=f"End with exit code {FOUND} if there is a finding of this severity or worse.",
)
@click.option("--count-judged", is_flag=True, help="Let --fail-on also count what only a --judge found.")
@click.option("--html", type=LocalPath(dir_okay=False), help="Also write the report to this file.")
@click.option(
    "--out",
    type=LocalPath(dir_okay=False),
    help="Save the audit in this file, as JSON, for `memframe plan --from-audit`.",
)
@as_json
def audit_command(
    audit: Audit,
    fail_on: Severity | None,
    count_judged: bool,
    html: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Look for secrets, personal data, junk, duplicates, broken scores and tags; nothing is changed.

    Evidence is masked in every output, and texts before a --judge sees them. With --json all findings go to standard
    output. To plan the proposals, use `memframe plan --from-audit`.

    \b
    Example:
        memframe audit --request 7c9e6679 --fail-on high --html audit.html
        memframe audit --file export.json
    """
    if html is not None:
        audit.to_html(html)
    if out is not None:
        audit.to_json(out)
    if as_json:
        sys.stdout.buffer.write(audit.json() + b"\n")
    else:
        click.echo("\n".join(_lines_of(audit)))
        if html is not None:
            click.echo(f"Report: {html}")
        if out is not None:
            click.echo(f"Audit: {out}")
    found = audit.findings
    if not count_judged:
        found = found[~found["kind"].str.startswith(JUDGED).fillna(False).astype(bool)]
    if fail_on is not None and _has_severity(found, fail_on):
        click.get_current_context().exit(FOUND)


@click.command("report")
@click.argument("path", type=LocalPath(dir_okay=False))
@audit_options
def report_command(audit: Audit, path: Path) -> None:
    """Write an audit as one HTML page to PATH: no scripts, no links, evidence masked.

    \b
    Example:
        memframe report audit.html --archive memories.parquet
    """
    audit.to_html(path)
    click.echo(f"{memories(len(audit.memories))} audited: {path}, readable only by you")


def _audit(
    request_id: str | None, archive: Path | None, key_file: Path | None, run: Callable[..., Audit]
) -> Audit:
    if archive is None:
        with open_request(str(request_id)) as access:
            return run(load_memories(access), tags=load_tags(access))
    if key_file is not None:
        return run(load_archive(archive, key=read_key(key_file)))
    header = Reader(archive).header()
    if header is not None and header.seal is not None and request_id is not None:
        with open_request(request_id) as access:
            return run(load_archive(archive, key=access))
    if _is_typed("request_id"):  # one of the environment does not matter
        raise click.UsageError(f"{archive} is not sealed: give --request ID or --archive PATH, not both.")
    return run(load_archive(archive))


def _has_severity(findings: pd.DataFrame, at_least: Severity) -> bool:
    return bool(findings["severity"].isin(SEVERITIES[SEVERITIES.index(at_least) :]).any())


def _lines_of(audit: Audit) -> Iterator[str]:
    """Yield the audit in words for a terminal, without text of memories."""
    n = len(audit.memories)
    counts = audit.counts
    yield f"{memories(n)} {subject}." if (subject := subject_of(audit)) else f"{memories(n)}."
    yield from audit.verdict
    yield "\nMemories by check, each counted at its worst severity:"
    yield from (_line(count, n) for count in counts)
    if clean := none_found(counts, audit.checks):
        yield f"None found: {clean}."
    if said := proposed(audit):
        yield said
    if audit.by_judge:
        yield "\nJudged:"
        yield from (f"- {sentence}" for sentence in audit.by_judge)
    if audit.not_checked:
        yield "\nNot looked for:"
        yield from (f"- {sentence}" for sentence in audit.not_checked)


def _line(count: Count, n_memories: int) -> str:
    severities = ", ".join(f"{n:,} {severity}" for severity, n in count.by_severity.items())
    n, part = f"{count.n_memories:,}", share(count.n_memories, n_memories)
    return f"{words_of(count.check).title:<18} {n:>7} {part:>10}   {severities}"


@click.command("export")
@click.argument("path", type=LocalPath())
@click.option("--sealed", is_flag=True, help="Encrypt texts, so that only the user's key opens them.")
@click.option("--refresh", is_flag=True, help="Update the archive at PATH, and print the changes.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "pam"]),
    help="A folder of notes, or Portable AI Memory as .json, regardless of the extension.",
)
@request_required
@as_json
def export_command(
    path: Path, sealed: bool, refresh: bool, form: Any, request_id: str, as_json: bool
) -> None:
    """Write all memories to PATH: decrypted, so that anyone who can read the file can read them, or --sealed.

    The extension chooses the format: .parquet, .jsonl, .json or .csv, or .md for a folder of notes; without one, PATH
    is a folder for a Parquet dataset.
    With --refresh an archive stays plain or sealed as it is, and only changed files are written.

    \b
    Example:
        memframe export memories.parquet --request 7c9e6679
    """
    if refresh and form:
        raise click.UsageError("--refresh keeps the format of the archive: leave out --format.")
    with open_request(request_id) as access:
        if refresh:
            changes = refresh_archive(access, path)
            counts = {name: len(getattr(changes, name)) for name in changes.__struct_fields__}
            words = ", ".join(f"{n:,} {name}" for name, n in counts.items())
        else:
            counts = {"n_rows": export_memories(access, path, sealed=sealed, format=form)}
            words = memories(counts["n_rows"])
    click.echo(
        json.dumps({"path": str(path), **counts}) if as_json else f"{words} in {path}, readable only by you"
    )
