"""Secrets where programs take and keep them: options of command lines, lines of files, codes to be scanned."""

import pytest

from memframe.audit import find_secrets
from memframe.audit.secrets.keys import COMMANDS, PAIRS, PLACES
from tests.audit.corpora import marked
from tests.audit.figures import frame_of

BEHIND = r"""
PGPASSWORD=⟦hunter2x⟧ psql -h db
export X_TOKEN=⟦ghx8Kd92mLq0PzR4⟧ && deploy.sh
export DB_PASSWORD=⟦Tr0ub4dor⟧&& make migrate
export DB_PASSWORD=⟦Tr0ub4dor⟧&&migrate now
password=⟦abc123x⟧; ls
password=⟦abc123x⟧;ls -la
DB_PASSWORD=⟦Blue!Whale88⟧;psql -h db
PASSWORD="⟦Blue Whale 88⟧" psql -h db
PASSWORD='⟦Blue!Whale;ls 88⟧' && ls
sshpass -p ⟦Blue!Whale88⟧ ssh root@10.0.0.5
sshpass -p '⟦Blue Whale 88⟧' ssh root@10.0.0.5
sshpass -p ⟦Blue!Whale88⟧&&ssh root@10.0.0.5
mysql -u root -p⟦BlueWhale88⟧&& ls
mysql -u root -p⟦BlueWhale88⟧|head
mysql --password=⟦BlueWhale88⟧;ls
mysql --password=⟦BlueWhale88⟧&&ls
mysql --password='⟦Blue Whale 88⟧' shop
curl -u 'ada:⟦Blue Whale 88⟧' https://x.example/api
curl -u ada:⟦BlueWhale88⟧&& ls
export API_KEY=⟦sk9Qw3Er7Ty1Ui5Op2As⟧&&curl https://x.example
API_KEY=⟦sk9Qw3Er7Ty1Ui5Op2As⟧|tee x
TOKEN=⟦ghx8Kd92mLq0PzR4⟧;./deploy.sh
set PGPASSWORD=⟦BlueWhale88⟧&psql -h db
kubectl create secret generic db --from-literal=password=⟦BlueWhale88⟧;kubectl get secrets
docker login -u ada -p ⟦BlueWhale88⟧&& docker push x
curl -d 'password=⟦BlueWhale88⟧&user=ada' https://x.example/login
Run `PGPASSWORD=⟦BlueWhale88⟧;psql` on staging
password=⟦sunflower⟧ psql shop
DB_PASSWORD=⟦sunflower⟧ make test
passphrase=⟦sunflower⟧ ssh prod
PASSWORD=⟦correct cat battery staple⟧
APP_PASSWORD=⟦abcd efgh ijkl mnop⟧
her password is ⟦Tr0ub;dor&3x⟧
my wifi password: ⟦fi&sh!92⟧
"""
NO_PLACES = r"""
docker login -u bot -p "$(pass show registry)"
gpg --pinentry-mode loopback --passphrase "$P" x
use the --password flag or --password-file
sshpass -p "$SSHPASS" ssh pi@nas
WIFI:T:WPA;S:<ssid>;P:<password>;;
session_id=8f21ac turn=14
Meeting 10:30:45:00 in room B
"""
SPELLED = """
The PIN for the safe is ⟦one-nine-eight-four⟧.
my pin is ⟦nineteen eighty-four⟧, tell nobody
Die PIN der Karte lautet ⟦vier vier eins sieben⟧.
Le code de la carte est ⟦quatre mille deux cent onze⟧.
mdp wifi: ⟦chaton-bleu⟧
house alarm pin ⟦eight eight one zero⟧
keybox: ⟦0417⟧
disarm code ⟦5471⟧
2fa backup: ⟦829104 554821 003917⟧
the password has not changed, still ⟦kolibri77⟧
"""
NOT_SPELLED = """
The PIN is four digits
The PIN is one hundred percent safe
the code is two thousand lines long
2fa backup phone is mum's
key box for the fuse: second door
disarm code is known to Dana
"""


NOTES = """
src/router/index.ts calls createRouter(routes_v2)
Login flow: app/(auth)/login/page.tsx, see useSession2()
Always pass `viewer_role` to sanitize2()
The wifi roaming file is wpa2-fast_roam.pcapng
SSID = Guest_Wireless4 on VLAN 30
**NOTE2:** Password rotation is due
Sign in with the SSO button → Settings2 → Security
Live token 7YttLkHDoNj9wyDur5pM1ejNaAvT9X4eqaYcHQqtj2G5 on devnet
Router key is route_id#2 since 4.0
Connected account: `ac_x9Kd7QmZb2Lr`
a simple password (e.g., `Heron2024`)
password: z.string().min(8).max(72)
{ password: { current: "oldpass", new: "newpass123" } }
"""


def lines(text):
    return text.strip().splitlines()


EXAMPLES = [(rule, text) for rule in (*PLACES, *PAIRS, *COMMANDS) for text in rule.finds]


@pytest.mark.parametrize(("rule", "text"), EXAMPLES, ids=lambda value: getattr(value, "group", None))
def test_what_stands_in_a_place_is_found(rule, text):
    found = find_secrets(frame_of([text]))
    assert rule.regex.search(text).span("word") in {*zip(found["start"], found["end"], strict=True)}


@pytest.mark.parametrize("line", lines(BEHIND) + lines(SPELLED))
def test_the_whole_secret_is_found(line):
    text, ((_, start, end),) = marked(line)
    found = find_secrets(frame_of([text]))
    assert [(start, end)] == sorted({*zip(found["start"], found["end"], strict=True)})


def test_nothing_else_is():
    texts = lines(NO_PLACES) + lines(NOT_SPELLED) + lines(NOTES)
    texts += [text for rule in (*PLACES, *PAIRS, *COMMANDS) for text in rule.misses]
    found = find_secrets(frame_of(texts))
    assert [texts[int(number)] for number in found["id"]] == []
