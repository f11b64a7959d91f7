"""Two weeks of a fleet of 200 users in whose memories something is planted every night.

    python benchmarks/nights.py --page nights.html
    python benchmarks/nights.py --users 100 --nights 3 --changed 0.01 --leaving 0
    python benchmarks/nights.py --check secret --snapshots

The service is a process of its own, and the days are made. Each night some users get a secret, a new fact, another
wording, a copy of a memory, or lose one; a few revoke their approval, and a few are erased. A user with a new finding
of severity high is an alarm: it is missed if that user was given a secret and there is none, and false if there is one
and none was given. Of those who revoked or were erased no folder of results may be left.

With ``--snapshots`` each user also has two archives that keep their states, one all of them and one by a retention.
They are not sealed, so that all of their bytes can be searched: at the end for what was planted for users who are gone,
and, once `forget_memories` was called, for the ids of memories that others have deleted.
"""

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_letters, digits

import pyarrow as pa
import pyarrow.parquet as pq
import requests
from fleet import counts
from servers import Nights, serving, user_id

sys.path.insert(0, str(Path(__file__).parents[1]))

import memframe as mf
from benchmarks.pairs.corpus import corpus
from memframe.fleet.run import forget_revoked

FIRST_NIGHT = datetime(2026, 11, 2, 2, tzinfo=UTC)
ACTS = {"secret": 4, "fact": 6, "wording": 3, "copy": 3, "deletion": 4}
"""How often each happens, relative to the others."""

RETENTION = {"daily": 7, "weekly": 4, "monthly": 12}

TOKEN = ascii_letters + digits
SECRETS = (
    lambda draw: f"Use this token for the deploy: ghp_{letters(draw, 36)}",
    lambda draw: f"AWS access key of the backup job: AKIA{letters(draw, 16, TOKEN.upper())}",
    lambda draw: (
        f"The password of the router is {letters(draw, 5)}-{letters(draw, 4)}{draw.randint(10, 99)}!"
    ),
    lambda draw: f"Das Passwort fürs Gäste-WLAN lautet {letters(draw, 6)}{draw.randint(100, 999)}#",
    lambda draw: f"My card is {card(draw)}, it expires in May.",
    lambda draw: f"DATABASE_URL=postgres://app:{letters(draw, 14)}@db.acme-internal.net/app",
    lambda draw: f"El PIN de la alarma es {draw.randint(1000, 9999)}, no se lo digas a nadie.",
    lambda draw: f"Authorization: Bearer {letters(draw, 40)}",
)


def letters(draw, n, alphabet=TOKEN):
    return "".join(draw.choices(alphabet, k=n))


def card(draw):
    """A card number whose check digit is right."""
    number = [4, *draw.choices(range(10), k=14)]
    doubled = [2 * digit - 9 * (digit > 4) if place % 2 == 0 else digit for place, digit in enumerate(number)]
    return "".join(map(str, [*number, -sum(doubled) % 10]))


class Fleet:
    """Users of a service, and what is planted in their memories."""

    def __init__(self, base_url, n_users, n_memories, seed):
        self._url, self._n_memories = base_url.removesuffix("/api/v1") + "/act", n_memories
        self._draw, self.users = random.Random(seed), list(range(n_users))
        self._facts = iter(
            corpus(4_000, seed=seed + 1, half="develop", copies=0, changes=0).memories["content"]
        )
        self.planted = Counter()
        self.texts = {}
        """Texts that were planted, by user."""
        self.gone, self.erased = [], []

    def change(self, share, n_leaving):
        """Change the memories of a share of the users; return the secrets by the users who were given one."""
        changed = self._draw.sample(self.users, max(1, round(share * len(self.users))))
        with_secret = {}
        for user, kind in zip(
            changed, self._draw.choices([*ACTS], [*ACTS.values()], k=len(changed)), strict=True
        ):
            self.planted[kind] += 1
            if kind == "secret":
                text = with_secret[user_id(user)] = self._draw.choice(SECRETS)(self._draw)
                self._act(user, add=text)
            elif kind == "copy":
                text = next(self._facts)
                self._act(user, add=text)
                self._act(user, add=text)
            elif kind == "deletion":
                self._act(user, delete=self._draw.randrange(self._n_memories // 2))
            else:
                place = self._draw.randrange(self._n_memories // 2) if kind == "wording" else None
                self._act(user, delete=place, add=next(self._facts))
        leaving = self._draw.sample(
            [user for user in self.users if user_id(user) not in with_secret], n_leaving
        )
        for user in leaving:
            status = ("revoked", "erased")[len(self.gone) % 2]
            self._act(user, status=status)
            self.planted[status] += 1
            self.users.remove(user)
            self.gone.append(user_id(user))
            self.erased += [user_id(user)] if status == "erased" else []
        return with_secret

    def _act(self, user, **what):
        self.texts.setdefault(user_id(user), []).extend([what["add"]] if "add" in what else [])
        requests.post(self._url, json={"user": user, **what}).raise_for_status()


class Archives:
    """Archives of all users, not sealed, which keep their states."""

    def __init__(self, client, path, keep):
        self._client, self._keep = client, keep
        self.folder = mf.export_fleet(client, path, sealed=False, progress=False)
        self._deleted = {}
        """Ids of memories that are gone, by user."""
        self._n_held = 0
        """Users who are gone in whose archives something of theirs was found before."""

    def refresh(self, fleet):
        """Refresh all archives, and delete those of users who are gone."""
        for user in fleet.gone:
            self._deleted.pop(user, None)
            self._n_held += bool(search(self.folder.archive(user), fleet.texts.get(user, [])))
        forget_revoked(self._client, self.folder.path)
        for request in self._client.access_requests():
            if request.status == "approved":
                access = mf.open_access(self._client, request.id)
                archive = self.folder.archive(request.user_id)
                changes = mf.refresh_archive(access, archive, keep=self._keep, progress=False)
                self._deleted.setdefault(request.user_id, []).extend(changes.gone)

    @property
    def size(self):
        files = [one.stat().st_size for one in self.folder.path.rglob("*") if one.is_file()]
        return f"{sum(files) / 1e6:6.2f} MB in {len(files):5,} files"

    def check_erasure(self, fleet):
        """Search for what users who are gone had, and for memories that others have deleted once they are forgotten."""
        texts = [text for user in fleet.gone for text in fleet.texts.get(user, [])]
        texts += fleet.erased
        n_left = len(search(self.folder.path, texts))
        n_forgotten, n_found = 0, [0, 0]
        for user, ids in self._deleted.items():
            archive = self.folder.archive(user)
            n_found[0] += len(search(archive, ids))
            n_forgotten += mf.forget_memories(archive, ids) if ids else 0
            n_found[1] += len(search(archive, ids))
        print(
            f"  of {len(fleet.gone)} users who are gone, of {self._n_held} of whom it had texts: "
            f"{n_left} of {len(texts)} ids and texts left; of memories that others deleted: {n_found[0]} ids, and "
            f"{n_found[1]} after {n_forgotten} rows were forgotten"
        )
        assert n_left == n_found[1] == 0


def search(path, texts):
    """Return the texts that are in any byte or name of a folder; pages of Parquet are unpacked."""
    found = set()
    for file in filter(Path.is_file, path.rglob("*")) if texts else ():
        data = file.read_bytes()
        if data.startswith(b"PAR1"):
            data += repr(pq.read_table(pa.BufferReader(data)).to_pydict()).encode()
        data += str(file.relative_to(path)).encode()
        found |= {text for text in texts if text.encode() in data}
    return found


def left_of(path, user_ids):
    """Count the folders of results of users who are gone."""
    return sum(any(gone in one.name for gone in user_ids) for one in path.glob("*/*"))


def show_wrong(new, false, missed):
    for one in new[new.user_id.isin(false) & (new.severity == "high")].itertuples():
        print("    false:", one.check, one.kind, one.evidence)
    for text in missed:
        print("    missed:", text)


def worked_s():
    """Return the time of the cores that this process and those that it waited for have taken."""
    took = os.times()
    return took.user + took.system + took.children_user + took.children_system


def simulate(options, base_url, path):
    fleet = Fleet(base_url, options.users, options.memories, options.seed)
    raised = missed = false = 0
    kept = []
    with mf.connect(base_url, api_key="mf_benchmark") as client:
        for number in range(options.nights):
            with_secret = fleet.change(options.changed, options.leaving) if number else {}
            today = FIRST_NIGHT + timedelta(days=number)
            client.runtime = replace(client.runtime, now=lambda today=today: today)
            (before, _), began, worked = counts(base_url), time.perf_counter(), worked_s()
            folder = mf.audit_fleet(
                client,
                path,
                now=today,
                checks=options.check,
                archives=options.archives,
                scheduler=options.scheduler,
                progress=False,
            )
            seconds, worked = time.perf_counter() - began, worked_s() - worked
            n_requests = counts(base_url)[0] - before - 1
            assert set(folder.outcomes.status) <= {"done", "revoked"}, folder.outcomes.error.dropna().unique()
            compared = folder.compare()
            alarms = set(compared.new[compared.new.severity == "high"].user_id) if number else set()
            raised += len(alarms)
            missed += len(with_secret.keys() - alarms)
            false += len(alarms - with_secret.keys())
            assert not left_of(path, fleet.gone), "results of users who are gone are left"
            n_new, n_gone = compared.counts["new"], compared.counts["gone"]
            print(
                f"night {number + 1:2}: {seconds:7.1f} s, {worked:7.1f} s of a core, {n_requests:6,} requests, "
                f"{folder.nights.audited.iloc[-1]:5,} users audited; {n_new:,} new, {n_gone:,} gone, "
                f"{len(alarms)} alarms ({len(with_secret)} expected)",
                flush=True,
            )
            if options.snapshots and not number:
                kept = [
                    Archives(client, path.with_name(name), keep)
                    for name, keep in (("all states", True), ("retention", RETENTION))
                ]
            for archives in kept:
                began = time.perf_counter()
                archives.refresh(fleet)
                print(
                    f"  {archives.folder.path.name}: {archives.size}, {time.perf_counter() - began:.1f} s",
                    flush=True,
                )
            if options.verbose:
                show_wrong(
                    compared.new,
                    alarms - with_secret.keys(),
                    [with_secret[one] for one in with_secret.keys() - alarms],
                )
        for archives in kept:
            archives.check_erasure(fleet)
        if options.page:
            folder.to_html(options.page)
    n_bytes = sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    print(f"planted: {', '.join(f'{n:,} {kind}' for kind, n in sorted(fleet.planted.items()))}")
    print(f"alarms: {raised} raised, {missed} missed, {false} false; {n_bytes / 1e6:.1f} MB in the folder")
    print(
        f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB of memory in this process"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("users", 200), ("nights", 14), ("memories", 50), ("leaving", 1), ("seed", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--changed", type=float, default=0.1, help="share of the users, each night")
    parser.add_argument("--check", nargs="+", help="run only these checks")
    parser.add_argument("--scheduler", choices=("threads", "processes"), default="threads")
    parser.add_argument("--archives", action="store_true", help="keep sealed archives, too")
    parser.add_argument("--snapshots", action="store_true", help="keep archives with their states, too")
    parser.add_argument("--verbose", action="store_true", help="show false alarms")
    parser.add_argument("--page", help="write the page of the last night")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Nights, options.users, options.memories, 0) as base_url,
    ):
        simulate(options, base_url, Path(folder) / "nightly")


if __name__ == "__main__":
    main()
