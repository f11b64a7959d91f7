"""`memframe audit` and `memframe report`: what is wrong with memories, for people and for scheduled jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any, cast

import click
import pandas as pd
from click.core import ParameterSource

from memframe.archive import load_archive
from memframe.audit import CHECKS, SEVERITIES, Audit, audit_memories
from memframe.audit.checks import Workers
from memframe.audit.findings import Check, Severity
from memframe.cli.opening import as_json, opened, request_option
from memframe.load import load_memories, load_tags
from memframe.report.verdict import Count, none_found, subject_of
from memframe.report.wording import memories, share, words_of

FOUND = 6
"""Exit code where `--fail-on` found what it was told to."""

Command = Callable[..., None]


def on_memories(command: Command) -> Command:
    """Gives a command the options that say which memories are meant, as one argument ``audit``."""

    @request_option(required=False)
    @click.option(
        "--archive",
        type=click.Path(exists=True, path_type=Path),
        help="Memories that `memframe export` wrote, instead of a request.",
    )
    @click.option(
        "--check",
        "checks",
        multiple=True,
        type=click.Choice(CHECKS),
        help="Look for this alone; may be given several times.",
    )
    @click.option(
        "--workers",
        type=click.Choice(["auto", "1", "2"]),
        default="auto",
        help="Processes; by default two, where memories are many and there are processors for it.",
    )
    @wraps(command)
    def with_audit(
        request_id: str | None,
        archive: Path | None,
        checks: tuple[Check, ...],
        workers: str,
        **others: Any,
    ) -> None:
        if archive is None and request_id is None:
            raise click.UsageError("Say which memories: --request ID, or --archive PATH.")
        if archive is not None and _is_typed("request_id"):  # that of the environment may stand behind
            raise click.UsageError("Give --request ID or --archive PATH, not both.")
        run = partial(
            audit_memories,
            checks=checks or None,
            workers=cast("Workers", "auto" if workers == "auto" else int(workers)),
        )
        command(audit=_audit(request_id, archive, run), **others)

    return with_audit


def _is_typed(name: str) -> bool:
    """Whether a parameter was given on the command line itself."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


@click.command("audit")
@on_memories
@click.option(
    "--fail-on",
    type=click.Choice(list(reversed(SEVERITIES))),
    help=f"End with exit code {FOUND} if there is a finding of this severity or a worse one.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the report there, too.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the audit there as JSON, for `memframe plan --from-audit`.",
)
@as_json
def audit_all(
    audit: Audit, fail_on: Severity | None, html: Path | None, out: Path | None, as_json: bool
) -> None:
    """Look for secrets, personal data, junk, duplicates, broken scores and tags; nothing is changed.

    Evidence is masked in every output. With --json all findings go to standard output. What is proposed is planned
    by `memframe plan --from-audit`.

    \b
    Example:
        memframe audit --request 7c9e6679 --fail-on high --html audit.html
    """
    if html is not None:
        audit.to_html(html)
    if out is not None:
        audit.to_json(out)
    if as_json:
        sys.stdout.buffer.write(audit.json() + b"\n")
    else:
        click.echo("\n".join(_told(audit)))
        if html is not None:
            click.echo(f"Report: {html}")
        if out is not None:
            click.echo(f"Audit: {out}")
    if fail_on is not None and _has(audit.findings, fail_on):
        click.get_current_context().exit(FOUND)


@click.command("report")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@on_memories
def report_all(audit: Audit, path: Path) -> None:
    """Write an audit as one HTML page to PATH: no scripts, no links, evidence masked.

    \b
    Example:
        memframe report audit.html --archive memories.parquet
    """
    audit.to_html(path)
    click.echo(f"{memories(len(audit.memories))} audited: {path}, readable by you alone")


def _audit(request_id: str | None, archive: Path | None, run: Callable[..., Audit]) -> Audit:
    if archive is not None:
        return run(load_archive(archive))
    with opened(str(request_id)) as access:
        return run(load_memories(access), tags=load_tags(access))


def _has(findings: pd.DataFrame, at_least: Severity) -> bool:
    return bool(findings["severity"].isin(SEVERITIES[SEVERITIES.index(at_least) :]).any())


def _told(audit: Audit) -> Iterator[str]:
    """The audit in words for a terminal; no text of a memory is among them."""
    n = len(audit.memories)
    counts = audit.counts
    yield f"{memories(n)} {subject}." if (subject := subject_of(audit)) else f"{memories(n)}."
    yield from audit.verdict
    yield "\nMemories by check, each counted where it is worst:"
    yield from (_line(count, n) for count in counts)
    if clean := none_found(counts, audit.checks):
        yield f"None found: {clean}."
    if done := audit.proposals:
        yield f"Proposed, in memories, each counted once, and nothing done yet: {', '.join(done)}."
    if audit.not_checked:
        yield "\nNot looked for:"
        yield from (f"- {sentence}" for sentence in audit.not_checked)


def _line(count: Count, n_memories: int) -> str:
    severities = ", ".join(f"{n:,} {severity}" for severity, n in count.by_severity.items())
    n, part = f"{count.n_memories:,}", share(count.n_memories, n_memories)
    return f"{words_of(count.check).title:<18} {n:>7} {part:>10}   {severities}"
