"""The guided tour: the whole way from an API key to a DataFrame, on a service of its own.

The tour plays both sides. The developer's side is the public API, used as anybody would. The user's
side is a program at the service's own pages: it signs in, allows, approves, and nothing else. All
settings are given, so that those of whoever runs it are not looked at.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import memframe as mf
from memframe.demo.sample_service import Person, SampleService
from memframe.demo.tour import ARCHIVE, PICTURES, Telling, audit, clean_up, keeping_in, writing_to
from memframe.display import number_of
from memframe.progress import ProgressOption
from memframe.service import LocalService

__all__ = ["SampleService", "run_demo"]

REASON = "Weekly review: find duplicates, outdated facts and passwords in what my assistants remember."


def run_demo(
    folder: Path,
    *,
    telling: Telling | None = None,
    command: str = "memframe",
    progress: ProgressOption = "auto",
) -> pd.DataFrame:
    """Take the tour.

    Parameters
    ----------
    folder : Path
        Where the Parquet file, the two pictures and the audit go; made if it is not there.
    telling : Telling, optional
        Where it is told; by default printed.
    command : str
        What starts the command line here.
    progress : "auto", bool or callable
        As everywhere.

    Returns
    -------
    DataFrame
        The memories that were loaded.

    Raises
    ------
    ConfigError
        The folder cannot be written to, or holds files of the same names which are not the tour's.
    """
    telling = telling or Telling()
    with keeping_in(folder), SampleService() as sample, _sign_in(sample.local, telling) as client:
        tokens = _connect_user(sample.local, sample.person, telling)
        request = _ask_for_access(client, tokens, telling)
        sample.person.decide(sample.local.dashboard_url, "Approve")
        access = _open_access(client, request, telling)
        memories = _load(access, telling, progress)
        tags = mf.load_tags(access)
        _look(memories, tags, telling)
        _keep(memories, folder, telling)
        clean_up(access, audit(memories, tags, folder, telling), telling, progress)
    _say_goodbye(command, telling)
    return memories


def _sign_in(local: LocalService, telling: Telling) -> mf.Client:
    telling.step("A Memory Access Service starts on this machine, just for this tour")
    telling.pairs([("API", local.base_url), ("dashboard", local.dashboard_url)])
    telling.say("It holds the memories of Ilka Tornow, a made-up person, sealed with her key.")

    telling.step("You, the developer, sign in: an API key becomes a short-lived token")
    telling.code("client = mf.connect(base_url, api_key=api_key)")
    client = mf.connect(local.base_url, api_key=local.api_key, auth_url=local.auth_url)
    token = client.sign_in()
    telling.say(f"Signed in until {token.expires_at:%H:%M} UTC; renewed by itself.")
    return client


def _connect_user(local: LocalService, ilka: Person, telling: Telling) -> mf.OAuthTokens:
    telling.step("Ilka connects your application: OAuth 2.0 with PKCE, in her browser")
    flow = mf.OAuthFlow(
        local.client_id, local.client_secret, auth_url=local.auth_url, redirect_uri=local.redirect_uri
    )
    redirected_address = ilka.authorize(flow.authorization_url())
    telling.say("She opens a link, signs in, reads what is asked and presses Allow. The tour plays her part.")
    telling.code("tokens = flow.exchange(redirected_address)")
    return flow.exchange(redirected_address)


def _ask_for_access(client: mf.Client, tokens: mf.OAuthTokens, telling: Telling) -> mf.AccessRequest:
    telling.step("You ask for access to her memories, and say why")
    telling.code("request = client.create_access_request(tokens.memory_key, reason)")
    request = client.create_access_request(tokens.memory_key, REASON)
    telling.say(f'"{REASON}"')
    telling.say(f"The request is {request.status}.")
    return request


def _open_access(client: mf.Client, request: mf.AccessRequest, telling: Telling) -> mf.Access:
    telling.step("She decides in her dashboard; nobody can do that for her")
    telling.code("request = mf.wait_for_decision(client, request.id, timeout_s=600)")
    request = mf.wait_for_decision(client, request.id, timeout_s=10, poll_s=0.1)
    telling.say(f"The request is {request.status}.")
    return mf.open_access(client, request.id)


def _load(access: mf.Access, telling: Telling, progress: ProgressOption) -> pd.DataFrame:
    telling.step("Her memories are loaded, decrypted here, and become a DataFrame")
    telling.code("access = mf.open_access(client, request.id)")
    telling.code("memories = mf.load_memories(access)")
    memories = mf.load_memories(access, progress=progress)
    met = memories.attrs["memframe"]
    loaded = number_of(met["n_rows"], "memory", "memories")
    telling.say(f"{loaded}; {met['n_undecryptable'] or 'none'} that could not be opened.")
    return memories


def _look(memories: pd.DataFrame, tags: pd.DataFrame, telling: Telling) -> None:
    telling.step("A look at them")
    shown = memories.iloc[::59]
    telling.table([*zip(shown.created_at.dt.strftime("%Y-%m-%d"), shown.source, shown.content, strict=True)])
    years = memories.created_at.dt.year.value_counts().sort_index()
    n_repeated = int(memories.content.duplicated().sum())
    n_suspicious = int(memories.content.str.contains("password", case=False).sum())
    telling.pairs(
        [
            ("by year", _counts(years)),
            ("by source", _counts(memories.source.value_counts())),
            ("by tag", f"{_counts(memories.tags.explode().value_counts().head(6))}; of {len(tags)}"),
            ("repeated", f"{n_repeated} have the same content as another one"),
            ("suspicious", f"{n_suspicious} speak of a password"),
        ]
    )


def _keep(memories: pd.DataFrame, folder: Path, telling: Telling) -> None:
    telling.step("A file and two pictures stay with you, in the open")
    with writing_to(folder):
        mf.export_memories(memories, folder / ARCHIVE)
        for draw, name in zip((mf.plot.timeline, mf.plot.tags), PICTURES, strict=True):
            draw(memories).figure.savefig(folder / name, dpi=150)  # type: ignore[union-attr]  # a figure of its own
    n_rows = len(mf.load_archive(folder / ARCHIVE))
    timeline, tags = PICTURES
    telling.pairs(
        [
            ("folder", str(folder.resolve())),
            (
                ARCHIVE,
                f"{number_of(n_rows, 'memory', 'memories')}, for mf.load_archive or any Parquet reader",
            ),
            (timeline, "when they came, and from which assistant"),
            (tags, "how many are under each tag"),
        ]
    )


def _say_goodbye(command: str, telling: Telling) -> None:
    telling.title("Done: the service has stopped, and its database is gone")
    telling.title("What to try next")
    telling.pairs(
        [
            ("the same in notebooks", "notebooks/1-load-and-look.ipynb, 4-audit-and-clean-up.ipynb"),
            ("a service of your own", f"{command} serve"),
            ("a person on it", f"{command} service add-user you@example.org"),
        ]
    )


def _counts(counts: pd.Series[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
