"""Secrets where programs take and keep them: options of command lines, lines of files, codes to be scanned."""

import cProfile
import pstats

import pytest

from memframe.audit import find_secrets
from memframe.audit.evidence import _mask_evidence
from memframe.audit.secrets.keys import COMMAND_RULES, PAIRS, PLACES
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
KINDS = """
# a maker's key alone
⟦sk-proj-b7Qm2XvL9tRk4WzP8nYd3HfJ6cGs1KaE5uTo0iVw⟧
notes for later ⟦ghp_k3Vq8LmZ1xRt6YbN4wPd9HsJ2fGc7KaE5uTo⟧
# behind a file name
ai_policy.py: ⟦sk-api-Rk4WzP8nYd3HfJ6cGs1KaE5uTo0iVwb7Qm2XvL9tRk4WzP8nYd3HfJ6cGs1K⟧
config/settings.yaml: ⟦sk-live-nYd3HfJ6cGs1KaE5uTo0iVwb7Qm2XvL9tRk4WzP8⟧
# variable of an environment
export OPENROUTER_KEY=⟦Vq8LmZ1xRt6YbN4wPd9H⟧
STRIPE_WEBHOOK_SECRET=⟦n4wPd9HsJ2fGc7KaE5uTo⟧
# assigned digits
AUTH_JWT_SECRET=⟦83920174650182⟧
SESSION_SECRET = ⟦917354628801⟧
ADMIN_PASSWORD: ⟦8842071936⟧
# option of a command, in quotes
sshpass -p '⟦@Q2%Y8Cbf%)mvSGQ41⟧' ssh u@203.0.113.7
mysql -u root --password='⟦@x9(Kd)mZ4⟧' shop
# option of a command
redis-cli -a ⟦vK83hdQ02x⟧ ping
curl -u ada:⟦vK83hdQ02x⟧ https://x.example/api
# a service and its API
read API: ⟦SKWQ0ABCTEWZQJ5H⟧
ThingSpeak write API: ⟦7HQ2LMZ1XRT6YBN4⟧
Weather API: ⟦b7qm2xvl9trk4wzp8nyd3hfj⟧
# header of a request
Authorization: Bearer ⟦b7Qm2XvL9tRk4WzP8nYd3HfJ6c⟧
curl -H "X-Api-Key: ⟦b7Qm2XvL9tRk4WzP8nYd3HfJ6c⟧" https://x.example
# member of JSON
{"apiKey": "⟦b7Qm2XvL9tRk4WzP8nYd⟧", "region": "eu"}
{"user": "ada", "password": "⟦Moana2016!x⟧"}
# line of YAML
db_password: ⟦Moana2016x⟧
secret_key: ⟦b7Qm2XvL9tRk4WzP8nYd⟧
# bold label
**Password:** `⟦Moana2016x⟧`
- **API Key**: ⟦b7Qm2XvL9tRk4WzP8nYd⟧
# row of a table
| Password | ⟦Moana2016x⟧ |
| API key | `⟦b7Qm2XvL9tRk4WzP8nYd⟧` |
# name and password
Login: ada@example.org / ⟦Moana2016x⟧
user: ada, pass: ⟦Moana2016x⟧
credentials for the NAS: ada:⟦Moana2016!x⟧
# label in Chinese
账号: ada77 密码: ⟦Moana2016x⟧
WiFi密码：⟦moana20162016⟧
# address with a password
postgres://app:⟦b7Qm2XvL9t⟧@db.internal:5432/prod
git remote https://ada:⟦b7Qm2XvL9tRk4WzP8nYd⟧@git.internal/x.git
# parameter of an address
https://api.internal/v1/x?api_key=⟦b7Qm2XvL9tRk4WzP8nYd⟧
https://open.internal/token?appsecret=⟦b7qm2xvl9trk4wzp8nyd3hfj6cgs1kae⟧
# webhook
https://⟦hooks.slack.com/services/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⟧
# bot
Bot token: ⟦7283940561:AAHk3Vq8LmZ1xRt6YbN4wPd9HsJ2fGc7KaE⟧
# signed token
jwt ⟦eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.b7Qm2XvL9tRk4WzP8nYd3HfJ6cGs1KaE5uTo0iVwb7Q⟧
# cookie
Cookie: sessionid=⟦b7qm2xvl9trk4wzp8nyd3hfj6cgs1kae⟧
# pair of a cloud
aws_secret_access_key = ⟦wJq8xZt1LmNcEr5YdVb0KpHs7Uf2GaRi9ToXq3Be⟧
# password told
The wifi password is ⟦kolibri-77-haus⟧
my netflix password is ⟦Moana2016x⟧, do not tell mum
She logs in to the portal with ⟦Moana2016!x⟧ as the password
# password of a machine
ai-server sudo: ⟦blau77hd⟧.
root on the pi: ⟦blau77hd⟧
VM password: ⟦Xk%9wQe!mvSG42⟧
# PIN told
My bank card PIN is ⟦4071⟧
PIN for the phone: ⟦407193⟧
# code of a door
Gate code ⟦2580#⟧ for the courier
Alarm: ⟦5471⟧ to disarm
# recovery code
GitHub recovery codes: ⟦a3f91-c72de⟧
2fa backup: ⟦829104 554821 003917⟧
# seed phrase
seed phrase: ⟦legal winner thank year wave sausage worth useful legal winner thank yellow⟧
# security answer
Mother's maiden name for the bank: ⟦Kowalczyk⟧
# hidden characters in the label
pass\u200bword: ⟦Moana2016x⟧
api\u200b_key: ⟦b7Qm2XvL9tRk4WzP8nYd⟧
# one-time code
your login code is ⟦829104⟧
# license
License key: ⟦K3VQ8-LMZ1X-RT6YB-N4WPD-9HSJ2⟧
Activation key for the editor: ⟦K3VQ8-LMZ1X-RT6YB-N4WPD⟧
# access token in words
access token for home assistant ⟦b7Qm2XvL9tRk4WzP8nYd3HfJ6cGs1KaE5uTo0iVw⟧
# private key of a wallet
wallet private key ⟦0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318⟧
"""
"""Kinds of places in which real memories hold a secret, with made-up values; a line after # names a kind."""

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


EXAMPLES = [(rule, text) for rule in (*PLACES, *PAIRS, *COMMAND_RULES) for text in rule.finds]


@pytest.mark.parametrize(("rule", "text"), EXAMPLES, ids=lambda value: getattr(value, "group", None))
def test_what_stands_in_a_place_is_found(rule, text):
    found = find_secrets(frame_of([text]))
    assert rule.regex.search(text).span("word") in {*zip(found["start"], found["end"], strict=True)}


@pytest.mark.parametrize(
    "line", lines(BEHIND) + lines(SPELLED) + [line for line in lines(KINDS) if not line.startswith("# ")]
)
def test_the_whole_secret_is_found(line):
    text, ((_, start, end),) = marked(line)
    found = find_secrets(frame_of([text]))
    assert [(start, end)] == sorted({*zip(found["start"], found["end"], strict=True)})


def test_nothing_else_is():
    texts = lines(NO_PLACES) + lines(NOT_SPELLED) + lines(NOTES)
    texts += [text for rule in (*PLACES, *PAIRS, *COMMAND_RULES) for text in rule.misses]
    found = find_secrets(frame_of(texts))
    assert [texts[int(number)] for number in found["id"]] == []


def test_the_work_of_masking_grows_with_the_words_and_not_with_the_words_of_each_secret():
    def n_calls(n):
        secrets = [f"{number:05d}Kq{number * 7919 % 100_000:05d}" for number in range(n)]
        profile = cProfile.Profile()
        masked = profile.runcall(_mask_evidence, " ".join(f"note {secret}" for secret in secrets), secrets)
        assert not [secret for secret in secrets if secret in masked]
        return pstats.Stats(profile).total_calls

    assert n_calls(200) < 2.5 * n_calls(100)
