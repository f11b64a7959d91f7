"""The guided tour: the whole way from an API key to a DataFrame, on a service of its own.

The tour plays both sides. The developer's side is the public API, used as anybody would. The user's
side is a program at the service's own pages: it signs in, allows, approves, and nothing else. The
environment, the keyring and the configuration of whoever runs it are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd

from memframe import plot
from memframe.access import Access, open_access, wait_for_decision
from memframe.archive import export_memories, load_archive
from memframe.client import Client
from memframe.demo.person import Person
from memframe.errors import ConfigError
from memframe.load import load_memories, load_tags
from memframe.oauth import OAuthFlow
from memframe.progress import ProgressOption
from memframe.sample import load_sample, load_sample_tags
from memframe.secret import Secret
from memframe.service import LocalService, run_local
from memframe.transport import Transport

EMAIL = "ilka@example.org"
PASSWORD = "only for this tour"  # of a made-up person on a service that ends with the tour
REASON = "Weekly review: find duplicates, outdated facts and passwords in what my assistants remember."
DEFAULT_FOLDER = Path("memframe-demo")

Say = Callable[[str], None]


def run_demo(folder: Path, *, say: Say = print, progress: ProgressOption = "auto") -> pd.DataFrame:
    """Take the tour.

    Parameters
    ----------
    folder : Path
        Where the two pictures and the Parquet file go; made if it is not there.
    say : callable
        Gets every line of the tour's text.
    progress : "auto", bool or callable
        As everywhere.

    Returns
    -------
    DataFrame
        The memories that were loaded.

    Raises
    ------
    ConfigError
        The folder cannot be written to.
    """
    folder = _made(folder)
    with run_local() as local, closing(Person(EMAIL, PASSWORD)) as person:
        _fill(local, say)
        client = _sign_in(local, say)
        access = _ask_for_access(local, client, person, say)
        memories = _load(access, say, progress)
        _look(memories, load_tags(access), say)
        _keep(memories, folder, say)
    _say_goodbye(folder, say)
    return memories


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise ConfigError(
            f"the folder {folder} cannot be made ({refused.strerror}): choose another with --folder"
        ) from None
    return folder


def _fill(local: LocalService, say: Say) -> None:
    user_id = local.add_user(EMAIL, PASSWORD)
    memories = load_sample()
    local.import_memories(user_id, memories, load_sample_tags())
    _say_step(
        say, 1, "A Memory Access Service starts on this machine, with a database that ends with the tour"
    )
    say(f"   API        {local.base_url}")
    say(f"   dashboard  {local.dashboard_url}")
    say(f"   In it: {len(memories)} memories of Ilka Tornow, a made-up person, sealed with her own key.")


def _sign_in(local: LocalService, say: Say) -> Client:
    client = Client(local.base_url, Secret(local.api_key), transport=Transport(trust_env=False))
    token = client.sign_in()
    _say_step(say, 2, "The developer's API key becomes a short-lived token")
    say(f"   {client!r}, signed in until {token.expires_at:%H:%M} UTC")
    return client


def _ask_for_access(local: LocalService, client: Client, person: Person, say: Say) -> Access:
    flow = OAuthFlow(
        local.client_id,
        local.client_secret,
        auth_url=local.auth_url,
        redirect_uri=local.redirect_uri,
        transport=Transport(trust_env=False),
    )
    redirected = person.authorize(flow.authorization_url())
    tokens = flow.exchange(redirected)
    _say_step(say, 3, "The user connects the application: OAuth 2.0 with PKCE, in the browser")
    say("   Ilka opens the link, signs in, reads what is asked and presses Allow (this tour plays her part).")
    say("   The code that comes back is exchanged for her memory key.")

    request = client.create_access_request(tokens.memory_key, REASON)
    _say_step(say, 4, "The application asks for access to her memories, and says why")
    say(f"   {REASON}")
    say(f"   Request {request.id} is {request.status}.")

    person.decide(local.dashboard_url, "Approve")
    request = wait_for_decision(client, request.id, timeout_s=10, poll_s=0.1)
    _say_step(say, 5, "Ilka decides in her dashboard; nobody can do that for her")
    say(f"   Request {request.id} is {request.status}.")
    return open_access(client, request.id)


def _load(access: Access, say: Say, progress: ProgressOption) -> pd.DataFrame:
    _say_step(say, 6, "The memories are loaded, decrypted here, and become a DataFrame")
    say("   memories = mf.load_memories(access)")
    memories = load_memories(access, progress=progress)
    met = memories.attrs["memframe"]
    say(f"   {met['n_rows']} memories, {met['n_undecryptable']} that could not be opened.")
    return memories


def _look(memories: pd.DataFrame, tags: pd.DataFrame, say: Say) -> None:
    _say_step(say, 7, "A look")
    shown = memories[["created_at", "source", "title", "content"]].iloc[::60]
    for line in _as_text(shown).splitlines():
        say(f"   {line}")
    years = memories.created_at.dt.year.value_counts().sort_index()
    say(f"   by year    {_counts(years)}")
    say(f"   by source  {_counts(memories.source.value_counts())}")
    say(f"   by tag     {_counts(memories.tags.explode().value_counts().head(6))}, of {len(tags)} tags")
    n_repeated = int(memories.content.duplicated().sum())
    n_suspicious = int(memories.content.str.contains("password", case=False).sum())
    say(
        f"   {n_repeated} are the same text as another one, and {n_suspicious} speak of a password: worth an audit."
    )


def _keep(memories: pd.DataFrame, folder: Path, say: Say) -> None:
    _say_step(say, 8, "Pictures and a Parquet file, in the open, for you to look at")
    for name, draw in (("timeline", plot.timeline), ("tags", plot.tags)):
        path = folder / f"{name}.png"
        draw(memories).figure.savefig(path, dpi=150)  # type: ignore[union-attr]  # a figure of its own
        say(f"   {path}")
    path = folder / "memories.parquet"
    export_memories(memories, path)
    say(f"   {path}, which loads back with {len(load_archive(path))} rows")


def _say_goodbye(folder: Path, say: Say) -> None:
    say("")
    say(f"Done. The service has stopped, its database is gone; what is left is in {folder.resolve()}")
    say("")
    say("What to try next")
    say("   a service of your own   memframe serve --data my-service")
    say("   a person on it          memframe service add-user you@example.org --data my-service")
    say("   the same in Python      import memframe as mf; client = mf.connect(); help(mf.load_memories)")


def _say_step(say: Say, number: int, title: str) -> None:
    say("")
    say(f"{number}. {title}")


def _as_text(frame: pd.DataFrame) -> str:
    """A frame as a table for a terminal of 100 columns: days instead of times, long text cut."""
    short = frame.assign(
        created_at=frame.created_at.dt.strftime("%Y-%m-%d"),
        title=_cut(frame.title.fillna("-"), 26),
        content=_cut(frame.content.fillna("-"), 44),
    )
    return short.to_string(index=False, header=False, justify="left")


def _cut(column: pd.Series[str], width: int) -> pd.Series[str]:
    plain = column.str.replace(r"\s+", " ", regex=True)
    return plain.where(plain.str.len() <= width, plain.str.slice(0, width - 1) + "…").str.ljust(width)


def _counts(counts: pd.Series[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
