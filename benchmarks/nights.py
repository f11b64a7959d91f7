"""Two weeks of a fleet of 200 users in whose memories something is planted every night.

    python benchmarks/nights.py --page nights.html
    python benchmarks/nights.py --users 100 --nights 3 --changed 0.01 --leaving 0

The service is a process of its own, and the days are made. Each night some users get a secret, a new fact, another
wording, a copy of a memory, or lose one; a few revoke their approval, and a few are erased. A user with a new finding
of severity high is an alarm: it is missed if that user was given a secret and there is none, and false if there is one
and none was given. Of those who revoked or were erased no folder of results may be left.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_letters, digits

import requests
from fleet import counts
from servers import Nights, serving, user_id

sys.path.insert(0, str(Path(__file__).parents[1]))

import memframe as mf
from benchmarks.pairs.corpus import corpus

FIRST_NIGHT = datetime(2026, 11, 2, 2, tzinfo=UTC)
ACTS = {"secret": 4, "fact": 6, "wording": 3, "copy": 3, "deletion": 4}
"""How often each happens, relative to the others."""

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
        self.gone = []

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
        return with_secret

    def _act(self, user, **what):
        requests.post(self._url, json={"user": user, **what}).raise_for_status()


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
            if options.verbose:
                show_wrong(
                    compared.new,
                    alarms - with_secret.keys(),
                    [with_secret[one] for one in with_secret.keys() - alarms],
                )
        if options.page:
            folder.to_html(options.page)
    n_bytes = sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    print(f"planted: {', '.join(f'{n:,} {kind}' for kind, n in sorted(fleet.planted.items()))}")
    print(f"alarms: {raised} raised, {missed} missed, {false} false; {n_bytes / 1e6:.1f} MB in the folder")


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
