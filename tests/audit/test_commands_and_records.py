"""Secrets where programs take and keep them: options of command lines, lines of files, codes to be scanned."""

import pytest

from memframe.audit import find_secrets
from tests.audit.batches import marked
from tests.audit.figures import frame_of

COMMANDS = """
docker login -u bot -p ⟦plum-tree⟧ registry.example.org
podman login quay.io -p⟦Otter11⟧
mysqldump -uadmin -p⟦kX9!pqw⟧ --all-databases > all.sql
smbclient //nas/share -U tom%⟦Heron2024⟧
openssl enc -aes-256-cbc -k ⟦NorthWind⟧ -in a -out b
openssl pkcs12 -in a.p12 -passin pass:⟦crane⟧
htpasswd -cb .htpasswd nina ⟦ponyhof⟧
7z x -p⟦gherkin⟧ archive.7z
sqlcmd -S db1 -U sa -P ⟦Str0ng!One⟧
http -a tim:⟦tulips⟧ GET https://intra.example.org/report
gpg --batch --passphrase ⟦cobaltSwan⟧ -d backup.gpg
net use Z: \\\\nas\\media ⟦cherry⟧ /user:tom
echo "tom:⟦Zebra4711⟧" | sudo chpasswd
"""
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
NO_COMMANDS = r"""
docker login -u bot -p "$(pass show registry)"
mysql -u root -p shop
ssh -p 2222 tom@nas
gpg --pinentry-mode loopback --passphrase "$P" x
gpg --passphrase-file ~/.pw -d a.gpg
use the --password flag or --password-file
net use Z: \\nas\media /persistent:yes
redis-cli -h cache -p 6380 ping
unzip -p photos.zip a.txt
sshpass -p "$SSHPASS" ssh pi@nas
"""
RECORDS = """
db.example.org:5432:shop:app:⟦q8zr⟧
nina:⟦$apr1$x8Kq2ZfL$0dQmVbG3iYHw2cKpRk1T10⟧
tom:⟦{SHA}VBPuJHI7uixaa6LQGx4s+5GKNrI=⟧
WIFI:T:WPA;S:Heron;P:⟦tiger\\;lily⟧;;
otpauth://totp/x?issuer=y&secret=⟦JBSWY3DPEHPK3PXP⟧
Set-Cookie: PHPSESSID=⟦r2t5ts4n5o8hd1q6k7v9b3c0m2⟧; path=/
PresharedKey = ⟦FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=⟧
"""
NO_RECORDS = """
WIFI:T:WPA;S:<ssid>;P:<password>;;
WIFI:T:nopass;S:Cafe;;
otpauth://totp/LABEL?secret=SECRET&issuer=ISSUER
Cookie: consent=yes; theme=dark
session_id=8f21ac turn=14
bcrypt hash:$2b$12$C6UzMDM.H6dfI/f/IKcEeO7ZjXvYbR1vQ0nO2l3hQ0pTq7sYk1u2a
image: registry.example.org:5000:app:v2
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


def lines(text):
    return text.strip().splitlines()


@pytest.mark.parametrize("line", lines(COMMANDS) + lines(BEHIND) + lines(RECORDS) + lines(SPELLED))
def test_the_whole_secret_is_found(line):
    text, ((_, start, end),) = marked(line)
    found = find_secrets(frame_of([text]))
    assert [(start, end)] == sorted({*zip(found["start"], found["end"], strict=True)})


def test_nothing_else_is():
    texts = lines(NO_COMMANDS) + lines(NO_RECORDS) + lines(NOT_SPELLED)
    found = find_secrets(frame_of(texts))
    assert [texts[int(number)] for number in found["id"]] == []
