"""Take a guided tour: from an API key to a DataFrame, an audit and a cleanup, on an embedded service.

The tour plays both sides. The developer's side is the public API. The user's side is a program that uses the service's
own pages only to sign in, allow and approve. All settings are passed as arguments, so that those of this machine are
not read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pandas as pd
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

import memframe as mf
from memframe.archive import load_archive
from memframe.demo.sample_service import SampleService
from memframe.display import number_of, printable
from memframe.errors import ConfigError, FrameError
from memframe.files import raise_os_errors_as
from memframe.keystore import open_local_cipher
from memframe.plan.change import FIELDS, format_counts, mask
from memframe.runtime import Runtime

__all__ = ["SampleService", "run_demo"]

REASON = "Weekly review: find duplicates, outdated facts and passwords in what my assistants remember."

ARCHIVE = "memories.parquet"
PICTURES = ("timeline.png", "tags.png")
REPORT = "audit.html"
FINDINGS_JSON = "audit.json"

NARROWEST, WIDEST = 40, 110
"""Smallest and largest width of the text, in columns."""


def run_demo(folder: Path, *, command: str = "memframe") -> None:
    """Take the tour, and print it to standard output.

    Parameters
    ----------
    folder : Path
        Folder for the Parquet file, two pictures and the audit; created if it does not exist.
    command : str
        The command that starts memframe, for the advice at the end.

    Raises
    ------
    ConfigError
        The folder cannot be written to, or holds files of the same names that are not from a tour.
    """
    with _files_in(folder), SampleService() as sample:
        width = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST) - 1
        console = Console(width=width, highlight=False, markup=False, emoji=False)
        tour = _Tour(sample, folder, console)
        with tour.connect() as client:
            access = tour.request_access(client)
            memories = tour.load(access)
            tags = mf.load_tags(access)
            tour.explore(memories, tags)
            tour.export(memories)
            tour.clean_up(access, tour.audit(memories, tags))
    tour.say_goodbye(command)


class _Tour:
    """The steps of the tour, which print what they do."""

    def __init__(self, sample: SampleService, folder: Path, console: Console) -> None:
        self._local, self._ilka = sample.local, sample.person
        self._folder = folder
        self._console = console
        self._n_steps = 0

    def connect(self) -> mf.Client:
        """Start the service, and sign in."""
        self._step("A Memory Access Service starts on this machine, for this tour only")
        self._pairs([("API", self._local.base_url), ("dashboard", self._local.dashboard_url)])
        self._say("It contains the memories of Ilka Tornow, a made-up person, encrypted with her key.")
        self._step("You, the developer, sign in: an API key becomes a short-lived token")
        self._code("client = mf.connect(base_url, api_key=api_key)")
        local = self._local
        client = mf.connect(local.base_url, api_key=local.api_key, auth_url=local.auth_url)
        self._say(
            f"Signed in until {client.sign_in().expires_at:%H:%M} UTC; the token is renewed automatically."
        )
        return client

    def request_access(self, client: mf.Client) -> mf.Access:
        """Connect the user, request access, and open it once it is approved."""
        local, ilka = self._local, self._ilka
        self._step("Ilka connects your application: OAuth 2.0 with PKCE, in her browser")
        flow = mf.OAuthFlow(
            local.client_id, local.client_secret, auth_url=local.auth_url, redirect_uri=local.redirect_uri
        )
        redirected_address = ilka.authorize(flow.authorization_url())
        self._say("She opens a link, signs in, reads the request and selects Allow. The tour plays her part.")
        self._code("tokens = flow.exchange(redirected_address)")
        tokens = flow.exchange(redirected_address)

        self._step("You request access to her memories, and give a reason")
        self._code("request = client.create_access_request(tokens.memory_key, reason)")
        request = client.create_access_request(tokens.memory_key, REASON)
        self._say(f'"{REASON}"')
        self._say(f"The request is {request.status}.")
        ilka.decide(local.dashboard_url, "Approve")

        self._step("She decides on her dashboard; only she can")
        self._code("request = mf.wait_for_decision(client, request.id, timeout_s=600)")
        request = mf.wait_for_decision(client, request.id, timeout_s=10, poll_s=0.1)
        self._say(f"The request is {request.status}.")
        return mf.open_access(client, request.id)

    def load(self, access: mf.Access) -> pd.DataFrame:
        """Load the memories."""
        self._step("Her memories are loaded, decrypted here, and become a DataFrame")
        self._code("access = mf.open_access(client, request.id)")
        self._code("memories = mf.load_memories(access)")
        memories = mf.load_memories(access)
        counts = memories.attrs["memframe"]
        loaded = number_of(counts["n_rows"], "memory", "memories")
        n_closed = counts["n_undecryptable"]
        self._say(
            f"{loaded}; {n_closed:,} could not be decrypted."
            if n_closed
            else f"{loaded}; all could be decrypted."
        )
        return memories

    def explore(self, memories: pd.DataFrame, tags: pd.DataFrame) -> None:
        """Print some memories, and counts."""
        self._step("A look at them")
        some = memories.iloc[::59]
        self._table([*zip(some.created_at.dt.strftime("%Y-%m-%d"), some.source, some.content, strict=True)])
        n_repeated = int(memories.content.duplicated().sum())
        n_suspicious = int(memories.content.str.contains("password", case=False).sum())
        self._pairs(
            [
                ("by year", _counts(memories.created_at.dt.year.value_counts().sort_index())),
                ("by source", _counts(memories.source.value_counts())),
                ("by tag", f"{_counts(memories.tags.explode().value_counts().head(6))}; of {len(tags)}"),
                ("repeated", f"{n_repeated} have the same content as another one"),
                ("suspicious", f"{n_suspicious} mention a password"),
            ]
        )

    def export(self, memories: pd.DataFrame) -> None:
        """Keep the memories as a file, and two pictures."""
        self._step("A file and two pictures stay with you, unencrypted")
        with _name_errors(self._folder):
            mf.export_memories(memories, self._folder / ARCHIVE)
            for draw, name in zip((mf.plot.timeline, mf.plot.tags), PICTURES, strict=True):
                figure = draw(memories).figure
                figure.savefig(self._folder / name, dpi=150)  # type: ignore[union-attr]  # a figure of its own
        n_rows = len(load_archive(self._folder / ARCHIVE))
        kept = f"{number_of(n_rows, 'memory', 'memories')}, for mf.load_archive or any Parquet reader"
        timeline, tags = PICTURES
        self._pairs(
            [(ARCHIVE, kept), (timeline, "memories over time, by assistant"), (tags, "memories by tag")]
        )
        self._say("They are in this folder:")
        self._code(str(self._folder.resolve()))

    def audit(self, memories: pd.DataFrame, tags: pd.DataFrame) -> mf.Audit:
        """Audit the memories, print the worst findings, and keep the report."""
        self._step("What is wrong with them? An audit, which changes nothing")
        self._code("audit = mf.audit_memories(memories, tags=mf.load_tags(access))")
        audit = mf.audit_memories(memories, tags=tags)
        for sentence in audit.verdict[:3]:
            self._say(sentence)
        with _name_errors(self._folder):
            audit.to_html(self._folder / REPORT)
            audit.to_json(self._folder / FINDINGS_JSON)
        self._pairs(
            [
                ("proposed", f"{', '.join(audit.proposals)} (memories, each counted once)"),
                (REPORT, "the report as one page in the folder, with secrets masked"),
                (FINDINGS_JSON, "all findings, for scripts and to compare the next audit with"),
            ]
        )
        return audit

    def clean_up(self, access: mf.Access, audit: mf.Audit) -> None:
        """Plan what the audit proposes, apply it, and undo it."""
        plan = self._plan(access, audit)
        before = mf.load_memories(access, progress=False)
        with TemporaryDirectory(prefix="memframe-") as scratch:
            here = Path(scratch)
            access.client.runtime = Runtime(
                folder=here / "runs", open_local_cipher=partial(open_local_cipher, here, open_keyring=None)
            )
            apply = partial(mf.apply_plan, access)
            self._step("The plan is applied; each write is recorded before it is sent")
            self._code(f"run = mf.apply_plan(access, plan, confirm={plan.counts.get('delete', 0)})")
            run = apply(plan, confirm=plan.counts.get("delete"))
            run.raise_for_failures()
            self._audit_again(access)
            self._step("And it is undone")
            self._code("mf.apply_plan(access, mf.plan_undo(access, run))")
            back = mf.plan_undo(access, run)
            apply(back, confirm=back.counts.get("delete")).raise_for_failures()
        self._say(compare(before, mf.load_memories(access, progress=False)))

    def _plan(self, access: mf.Access, audit: mf.Audit) -> mf.Plan:
        self._step("The cleanup starts as a plan to review, change or save")
        self._code("plan = mf.plan_cleanup(access, audit)")
        plan = mf.plan_cleanup(access, audit)
        for note in plan.notes:
            self._say(note)
        self._say(f"{format_counts(plan.counts)}. Three of them:")
        self._pairs(_examples(plan))
        self._say(
            "Merging loses nothing: where a name, a number or a source would be lost, both memories stay."
        )
        self._say(
            f"The plan leaves {number_of(len(plan.left), 'proposal', 'proposals')} out; `plan.left` says why for each."
            if len(plan.left)
            else "`plan.left` is empty: the plan does everything that the audit proposes and a rule can decide."
        )
        junk = audit.findings[(audit.findings["check"] == "junk") & (audit.findings["action"] == "review")]
        n_junk = len({*junk["id"]} - {change.id for change in plan.records if change.action == "delete"})
        self._say(
            f"Only copies, heartbeats and empty rows are deleted. {n_junk} more memories look like junk and are left "
            "for review: wording alone cannot distinguish noise from facts."
        )
        return plan

    def _audit_again(self, access: mf.Access) -> None:
        left = mf.load_memories(access, progress=False)
        again = mf.audit_memories(left, tags=mf.load_tags(access))
        n_more = len(mf.plan_cleanup(access, again))
        n_secrets = int((again.findings["check"] == "secret").sum())
        self._say(
            f"{len(left)} memories are left. A second audit finds {n_secrets or 'no'} secrets, and "
            f"{n_more or 'nothing'} more to clean up automatically."
        )

    def say_goodbye(self, command: str) -> None:
        """Print what to try next."""
        self._title("Done: the service has stopped, and its database is deleted")
        self._title("What to try next")
        self._pairs(
            [
                ("the same in notebooks", "in the repository: notebooks/1-load-and-look.ipynb"),
                ("your own service", f"{command} serve"),
                ("add a person to it", f"{command} service add-user you@example.org"),
            ]
        )

    # -- printing

    def _step(self, title: str) -> None:
        self._n_steps += 1
        self._title(f"{self._n_steps}. {title}")

    def _title(self, text: str) -> None:
        self._console.print()
        self._console.print(text, style="bold")

    def _say(self, text: str) -> None:
        self._console.print(Padding(text, (0, 0, 0, 3), expand=False))

    def _code(self, line: str) -> None:
        self._console.print(f"   {line}", style="cyan", soft_wrap=True)  # to be copied in one piece

    def _pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for pair in pairs:
            grid.add_row(*pair)
        self._console.print(Padding(grid, (0, 0, 0, 3), expand=False))

    def _table(self, rows: Sequence[Sequence[str]]) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0))
        *labels, _ = zip(*rows, strict=True)
        widths = [max(map(cell_len, label)) for label in labels]
        for width in widths:
            grid.add_column(style="dim", no_wrap=True, width=width)
        left = self._console.width - 3 - sum(width + 2 for width in widths)
        grid.add_column(no_wrap=True, overflow="ellipsis", width=left)
        for row in rows:
            grid.add_row(*map(printable, row))
        self._console.print(Padding(grid, (0, 0, 1, 3), expand=False))


def _counts(counts: pd.Series[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _examples(plan: mf.Plan) -> Iterator[tuple[str, str]]:
    """Yield a redacted secret, merged memories, and a deleted heartbeat."""
    changes = [mask(change) for change in plan.records]
    redacted = next(change for change in changes if "[redacted" in str(change.after.get("content")))
    yield "redact", f"“{redacted.after['content']}”"
    for name, reason in (("merge", "near_duplicate"), ("delete", "junk (heartbeat)")):
        change = next(change for change in changes if reason in (change.reason or ""))
        yield name, f"“{printable(str(change.before['content']), 90)}”: {change.reason}"


def compare(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Say how memories after an undo differ from those before the run, including ids and dates."""
    old, new = (frame.set_index("id") for frame in (before, after))
    both = old.index.intersection(new.index)
    n_new = len(new) - len(both)
    n_redated, n_updated = (
        int((old[name][both] != new[name][both]).sum()) for name in ("created_at", "updated_at")
    )
    is_same = _contents(before) == _contents(after)
    parts = [
        f"{len(after)} memories, {'every text, tag and score as before' if is_same else 'and NOT all as before'}",
        *([f"{n_new} with a new id and today's date"] if n_new else []),
        *([f"{n_redated} with a different date of creation"] if n_redated else []),
        *([] if n_new or n_redated else ["all with their original ids and dates of creation"]),
        *([f"{n_updated} that were changed twice have a new updated_at"] if n_updated else []),
    ]
    return "; ".join(parts) + "."


def _contents(memories: pd.DataFrame) -> list[str]:
    """Return the fields of all memories in a fixed order, without ids and times."""
    fields = memories[list(FIELDS)].assign(tags=memories.tags.map(sorted))
    return sorted(map(repr, fields.itertuples(index=False, name=None)))


@contextmanager
def _files_in(folder: Path) -> Iterator[None]:
    """Create the folder for the block, and remove it if it stays empty; refuse files that are not from a tour."""
    is_new = not folder.exists()
    try:
        with _name_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        existing = [
            folder / name for name in (ARCHIVE, *PICTURES, REPORT, FINDINGS_JSON) if (folder / name).exists()
        ]
        if existing and not _is_from_tour(folder):
            raise ConfigError(f"{existing[0]} is not from a tour: choose another folder with --folder")
        yield
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty, or was never made
                folder.rmdir()


def _name_errors(folder: Path) -> AbstractContextManager[None]:
    what = f"the folder {folder} cannot be written to"
    return raise_os_errors_as(ConfigError, what, "choose another with --folder")


def _is_from_tour(folder: Path) -> bool:
    """Return True if the folder has an archive, which a tour writes first."""
    try:
        load_archive(folder / ARCHIVE, columns=["id"])
    except (FrameError, OSError):
        return False
    return True
