"""`memframe audit` and `export`: read memories, without changing any."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
import msgspec
import pandas as pd
from click.core import ParameterSource
from msgspec.structs import replace

from memframe.archive import export_memories, load_archive, refresh_archive
from memframe.archive.refresh import check_refreshable
from memframe.archive.sealing import Reader
from memframe.audit import CHECKS, SEVERITIES, Audit, ChatJudge, Comparison, audit_memories
from memframe.audit.findings import Check, Severity
from memframe.audit.judge import JUDGE_LIMIT, JUDGED
from memframe.audit.policy import Fail, Policy, read_policy
from memframe.audit.result import plain_records
from memframe.audit.sarif import files_and_lines, name_place
from memframe.cli.access import open_request, request_option
from memframe.cli.options import (
    COUNT,
    FILE,
    FOUND,
    Command,
    LocalPath,
    as_json,
    combine,
    example,
    key_file_option,
    key_option,
    print_result,
    remark,
    wants_json,
)
from memframe.display import format_memories, format_share, number_of, printable
from memframe.errors import FrameError
from memframe.files import OwnKind, check_replaceable, is_own, raise_os_errors_as, write_own_file
from memframe.frames import READ
from memframe.load import load_memories, load_tags
from memframe.readers import join_reads, read_memories
from memframe.report.overview import describe_proposals, describe_subject
from memframe.report.words import check_words_of, describe_times, name_kind, name_source, none_found
from memframe.secret import Secret
from memframe.snapshots import PERIODS, Keep

fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(list(reversed(SEVERITIES))),
    help=f"End with exit code {FOUND} if there is a finding of this severity or worse.",
)


rules_option = click.option(
    "--policy",
    type=FILE,
    help="Policy file (memframe.toml) with additional rules and a default for --fail-on ([fail]).",
)


N_WORST, N_SOURCES, LINE_CHARS = 5, 8, 120
"""Most findings and sources that a terminal names, and most characters of a line."""


def at_least(severity: Severity) -> tuple[Severity, ...]:
    """Return a severity and those that are worse."""
    return SEVERITIES[SEVERITIES.index(severity) :]


_choosing = combine(
    request_option(required=False),
    click.option(
        "--archive",
        type=LocalPath(exists=True),
        help="Audit an archive of `memframe export` instead of the service; --request opens a sealed one.",
    ),
    click.option(
        "--file",
        "foreign",
        multiple=True,
        type=LocalPath(exists=True),
        help="Audit a file, folder or archive of another memory system instead; may be repeated.",
    ),
    click.option("--format", "form", default="auto", help="Format of --file, if several fit."),
    click.option("--zone", help="Time zone of times in --file without one, such as Europe/Paris."),
    key_file_option,
)
checks_option = click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CHECK",
    type=click.Choice(CHECKS),
    help=f"Run only this check; may be repeated. Checks: {', '.join(CHECKS)}.",
)
judge_options = combine(
    click.option(
        "--judge",
        "judge_url",
        metavar="URL",
        help="An OpenAI-compatible endpoint that judges what rules cannot decide, such as http://127.0.0.1:11434/v1.",
    ),
    click.option("--model", metavar="NAME", help="The model to use."),
    click.option(
        "--judge-limit",
        metavar="N",
        type=COUNT,
        default=JUDGE_LIMIT,
        help="Maximum number of questions; the most promising are asked first.",
    ),
    key_option("--judge-key-file", "the judge's API key", help="File with the API key of that endpoint."),
    click.option(
        "--send", is_flag=True, help="Send masked texts of memories to a --judge that is on another machine."
    ),
)
_judging = combine(
    checks_option,
    judge_options,
    click.option(
        "--decisions",
        type=LocalPath(exists=True, dir_okay=False),
        help="Only count findings that `memframe review` settled in this file.",
    ),
    rules_option,
)


def audit_options(command: Command) -> Command:
    """Add the options that choose memories and checks; the command gets the audit as its argument ``audit``."""

    @_choosing
    @_judging
    @wraps(command)
    def with_audit(
        request_id: str | None,
        archive: Path | None,
        foreign: tuple[Path, ...],
        form: str,
        zone: str | None,
        key: Secret | None,
        checks: tuple[Check, ...],
        judge_url: str | None,
        model: str | None,
        judge_limit: int,
        judge_key: Secret | None,
        send: bool,
        decisions: Path | None,
        policy: Path | None,
        **others: Any,
    ) -> None:
        foreign += others.pop("files", ())
        if archive is None and not foreign and request_id is None:
            raise click.UsageError("Choose memories: --request ID, --archive PATH or --file PATH.")
        if foreign and (archive is not None or _is_typed("request_id")):
            raise click.UsageError("Give one of --file PATH, --archive PATH and --request ID.")
        if not foreign and (_is_typed("form") or zone is not None):
            raise click.UsageError("--format and --zone describe a file: give it with --file PATH.")
        if not foreign and others.get("sarif"):
            raise click.UsageError("--sarif reports files and lines: give the files with --file PATH.")
        if key is not None and archive is None:
            raise click.UsageError("--key-file opens a sealed archive: give it with --archive PATH.")
        judge = make_judge(judge_url, model, judge_key, send=send)
        rules = read_policy(policy)
        if "fail_on" in others:
            others["fail"] = choose_fail(others.pop("fail_on"), rules)
        run = partial(
            audit_memories,
            judge=judge,
            judge_limit=judge_limit,
            checks=checks or None,
            decisions=decisions,
            policy=rules,
        )
        if not foreign:
            audit = _run_audit(request_id, archive, key, run)
        else:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # the summary says the same
                read = join_reads([read_memories(path, format=form, zone=zone) for path in foreign])
            summary = read.attrs[READ]["summary"]
            _, _, without_count = summary.partition(". ")  # the audit begins with the count
            noted = summary if wants_json() or len(foreign) > 1 else without_count
            if noted:
                remark(noted)
            audit = run(read)
        command(audit=audit, **others)

    return with_audit


def choose_fail(severity: Severity | None, policy: Policy | None) -> Fail:
    """Return what makes an audit fail: the severity of --fail-on, else that of the policy."""
    fail = policy.fail if policy else Fail()
    return fail if severity is None else replace(fail, severity=severity)


def make_judge(url: str | None, model: str | None, api_key: Secret | None, *, send: bool) -> ChatJudge | None:
    """Return the judge of an endpoint and a model, or None if there is none."""
    if (url is None) != (model is None):
        raise click.UsageError(
            "A judge needs an endpoint and a model: give both --judge URL and --model NAME."
        )
    if url is None and (api_key is not None or send):
        raise click.UsageError("--judge-key-file and --send need a judge: give it with --judge URL.")
    return ChatJudge(url, model=model, api_key=api_key, send=send) if url and model else None


def _is_typed(name: str) -> bool:
    """Return True if a parameter was given on the command line itself."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _run_audit(
    request_id: str | None, archive: Path | None, key: Secret | None, run: Callable[..., Audit]
) -> Audit:
    if archive is None:
        with open_request(str(request_id)) as access:
            return run(load_memories(access), tags=load_tags(access))
    if key is not None:
        return run(load_archive(archive, key=key))
    header = Reader(archive).header
    if header is not None and header.seal is not None and request_id is not None:
        with open_request(request_id) as access:
            return run(load_archive(archive, key=access))
    if _is_typed("request_id"):  # a request from the environment does not matter
        raise click.UsageError(f"{archive} is not sealed: give --request ID or --archive PATH, not both.")
    return run(load_archive(archive))


def _check_target(kind: OwnKind) -> Callable[[click.Context, click.Parameter, Path | None], Path | None]:
    """Make a callback that refuses to replace a file of another kind, before an audit begins."""

    def check(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            check_replaceable(path, kind, error=FrameError, force=context.params["force"])
        return path

    return check


force_option = click.option(
    "--force", is_flag=True, is_eager=True, help="Replace files that memframe did not write, too."
)


@click.command("audit")
@click.argument("files", nargs=-1, type=LocalPath(exists=True))
@audit_options
@fail_on_option
@click.option(
    "--count-judged", is_flag=True, help="Let --fail-on also count findings that only the --judge made."
)
@click.option(
    "--compare",
    "previous",
    type=LocalPath(),
    metavar="PATH",
    help="Compare with an audit that --out saved, or with the newest one in a folder; --fail-on then counts "
    "only new findings.",
)
@click.option(
    "--html", type=FILE, callback=_check_target("report"), help="Also write the report as an HTML page."
)
@click.option(
    "--out",
    type=FILE,
    callback=_check_target("audit"),
    help="Save the audit as JSON, for `memframe plan --from-audit`.",
)
@click.option(
    "--sarif",
    type=FILE,
    callback=_check_target("SARIF file"),
    help="Save the findings in files as SARIF 2.1.0, for code scanners.",
)
@force_option
@as_json
@example(
    "memframe audit --request 7c9e6679 --fail-on high --html audit.html",
    "memframe audit --file export.json",
    "memframe audit --fail-on medium --sarif audit.sarif MEMORY.md notes",
)
def audit_command(
    audit: Audit,
    fail: Fail,
    count_judged: bool,
    previous: Path | None,
    html: Path | None,
    out: Path | None,
    sarif: Path | None,
    force: bool,
) -> None:
    """Look for secrets, personal data, junk, duplicates, broken scores and tags; nothing is changed.

    FILES are the same as --file; their findings have a file and a line. Every output masks the evidence; a --judge sees
    masked texts. --json prints all findings. To plan the proposals, use `memframe plan --from-audit`. --html, --out and
    --sarif replace a file that memframe wrote; to replace any other, add --force.
    """
    earlier = previous and _find_newest(previous)
    compared = None if earlier is None else audit.compare(earlier)  # before --out may replace it
    if html is not None:
        write_own_file(html, audit.html().encode(), "report", error=FrameError, force=force)
    if out is not None:
        write_own_file(out, audit.json(), "audit", error=FrameError, force=force)
    if sarif is not None:
        write_own_file(sarif, audit.sarif(), "SARIF file", error=FrameError, force=force)
    written = {"Report": html, "Audit": out, "SARIF": sarif}
    lines = [*_lines_of(audit), *(f"{name}: {path}" for name, path in written.items() if path)]
    if compared is not None:
        counts = ", ".join(f"{n:,} {name}" for name, n in compared.counts.items())
        lines.append(f"Compared with {earlier}: {counts}." + (f" {compared.note}." if compared.note else ""))
    elif previous is not None:
        lines.append(f"{previous} contains no audit yet, so every finding counts as new.")
    print_result(audit.json() if compared is None else _add_comparison(audit, compared, earlier), lines)
    found = audit.findings if compared is None else compared.new
    if compared is None and not fail.only_open:
        found = pd.concat([found, audit.answered[audit.answered["decision"] == "rejected"]])
    if not count_judged:
        found = found[~found["kind"].str.startswith(JUDGED).fillna(False).astype(bool)]
    if fail.severity is not None and found["severity"].isin(at_least(fail.severity)).any():
        click.get_current_context().exit(FOUND)


def _find_newest(path: Path) -> Path | None:
    """Return the newest saved audit in a folder; return a path that is not a folder unchanged."""
    if not path.is_dir():
        return path
    with raise_os_errors_as(FrameError, f"{path} cannot be read", "check its permissions"):
        files = [file for file in path.iterdir() if file.is_file() and is_own(file, "audit")]
        return max(files, key=lambda file: (file.stat().st_mtime_ns, file.name), default=None)


def _add_comparison(audit: Audit, compared: Comparison, earlier: Path | None) -> bytes:
    parts = {name: plain_records(getattr(compared, name)) for name in ("new", "gone", "settled")}
    values = {"path": str(earlier), "counts": compared.counts, "note": compared.note, **parts}
    return msgspec.json.encode({**msgspec.json.decode(audit.json()), "compared": values})


def _lines_of(audit: Audit) -> Iterator[str]:
    """Yield the audit in words for a terminal, without text of memories."""
    n, counts = len(audit.memories), audit.counts
    yield f"{format_memories(n)} {describe_subject(audit.memories, audit.made_at)}".strip() + "."
    yield from audit.verdict
    if not n:
        return
    if len(worst := audit.worst(N_WORST)):
        yield "\nTo decide first:"
        yield from _lines_of_findings(worst, audit)
    if counts:
        yield "\nMemories by check, each counted at its worst severity:"
    for count in counts:
        severities = ", ".join(f"{n_found:,} {severity}" for severity, n_found in count.by_severity.items())
        part = format_share(count.n_memories, n)
        yield f"{check_words_of(count.check).title:<18} {f'{count.n_memories:,}':>7} {part:>10}   {severities}"
    if clean := none_found(audit.findings, audit.checks):
        yield f"None found: {clean}."
    if proposed := describe_proposals(audit.proposals, is_stored=audit.is_stored):
        yield proposed
    if len(audit.by_source) > 1:
        yield from _lines_of_sources(audit.by_source)
    for title, sentences in (
        ("Counted", audit.figures["evidence"].tolist()),
        ("Judged", audit.by_judge),
        ("Not looked for", audit.not_checked),
    ):
        if sentences:
            yield f"\n{title}:"
            yield from (f"- {sentence}" for sentence in sentences)


def _lines_of_findings(worst: pd.DataFrame, audit: Audit) -> Iterator[str]:
    """Yield two lines for each finding: its kind, evidence and a decision not yet applied; and its memory."""
    places = files_and_lines(audit.memories)
    labels = audit.labels(worst, with_place=not places)
    names = "check", "kind", "id", "field", "decision"
    decided = {
        tuple(one): decision for *one, decision in zip(*(audit.answered[n] for n in names), strict=True)
    }
    for finding in worst.astype(object).to_dict("records"):
        ids, check = finding["ids"], str(finding["check"])
        kind = name_kind(finding["kind"])
        times = describe_times(finding["n_times"], len(ids))
        decision = decided.get(tuple(finding[name] for name in names[:-1]))
        words = " · ".join(filter(None, [decision, times, str(finding["evidence"])]))  # the end may be cut
        yield f"{finding['severity']:<7} {printable(f'{check_words_of(check).title}, {kind}: {words}', LINE_CHARS)}"
        if ids:
            yield "        " + printable(
                f"{name_place(places, ids[0])}  {labels.get(ids[0], '')}", LINE_CHARS
            )


def keep_options(command: Command) -> Command:
    """Add the options of a retention; the command gets it as its argument ``keep``."""

    @click.option(
        "--keep",
        "keep_all",
        is_flag=True,
        help="With --refresh: keep past states (see memframe history).",
    )
    @combine(
        *(
            click.option(
                f"--keep-{name}",
                metavar="N",
                type=click.IntRange(min=1),
                help=f"Keep the last state of each of the last N {period.noun} that have one.",
            )
            for name, period in PERIODS.items()
        )
    )
    @wraps(command)
    def with_keep(keep_all: bool, **others: Any) -> None:
        numbers = {name: others.pop(f"keep_{name}") for name in PERIODS}
        keep = {name: number for name, number in numbers.items() if number}
        command(keep=keep or keep_all or None, **others)

    return with_keep


def _lines_of_sources(by_source: pd.DataFrame) -> Iterator[str]:
    """Yield the number of memories with findings, for each source that has some."""
    by_source = by_source[by_source["n_found"] > 0]
    if len(by_source):
        yield "\nMemories with findings by source, the worst first:"
    for found in by_source.head(N_SOURCES).to_dict("records"):
        severities = ", ".join(f"{found[name]:,} {name}" for name in reversed(SEVERITIES) if found[name])
        counts = f"{found['n_found']:,} of {found['n_memories']:,}"
        yield f"{printable(name_source(found['source']), 24):<24} {counts:>15}   {severities}"
    if (n_more := len(by_source) - N_SOURCES) > 0:
        yield f"and {number_of(n_more, 'more source', 'more sources')}"


@click.command("export")
@click.argument("path", type=LocalPath())
@click.option("--sealed", is_flag=True, help="Encrypt the texts; only the user's key opens them.")
@click.option("--refresh", is_flag=True, help="Update the archive at PATH, or export if there is none.")
@keep_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "pam"]),
    help="A folder of notes, or Portable AI Memory as .json, regardless of the extension.",
)
@request_option(required=True)
@as_json
@example(
    "memframe export memories.parquet --request 7c9e6679",
    "memframe export archive --refresh --keep-daily 7 --keep-weekly 4 --keep-monthly 12 --request 7c9e6679",
)
def export_command(
    path: Path, sealed: bool, refresh: bool, form: Any, request_id: str, keep: Keep | None
) -> None:
    """Write all memories to PATH, decrypted: anyone who can read the file can read them, unless you add --sealed.

    The extension chooses the format: .parquet, .jsonl, .json, .csv, or .md for a folder of notes. Without an extension,
    PATH is a folder for a Parquet dataset. --refresh writes only changed files; the archive stays plain or sealed. If
    there is nothing at PATH yet, it exports. --keep also keeps past states in a folder: all, or those that --keep-daily
    and the others choose, as in restic.
    """
    if refresh and form:
        raise click.UsageError("--refresh keeps the format of the archive: leave out --format.")
    if keep and not refresh:
        raise click.UsageError("--keep needs --refresh: it keeps what a refresh replaces.")
    with (
        open_request(request_id) as access,
        warnings.catch_warnings(record=True, action="always", category=UserWarning) as warned,
    ):
        if refresh and check_refreshable(path, keep):
            if sealed and not Reader(path).is_sealed:
                raise FrameError(
                    f"{path} is not sealed, and would stay so: export with --sealed to another path."
                )
            changes = refresh_archive(access, path, keep=keep)
            counts = {name: len(getattr(changes, name)) for name in changes.__struct_fields__}
            words = ", ".join(f"{n:,} {name}" for name, n in counts.items())
        else:
            counts = {"n_rows": export_memories(access, path, sealed=sealed, format=form)}
            words = format_memories(counts["n_rows"])
    for one in warned:  # a snapshot is damaged
        remark(str(one.message))
    print_result({"path": str(path), **counts}, f"{words} in {path}, readable only by you")
