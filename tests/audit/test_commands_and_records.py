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


@pytest.mark.parametrize("line", lines(COMMANDS) + lines(RECORDS) + lines(SPELLED))
def test_the_whole_secret_is_found(line):
    text, ((_, start, end),) = marked(line)
    found = find_secrets(frame_of([text]))
    assert [(start, end)] == sorted({*zip(found["start"], found["end"], strict=True)})


def test_nothing_else_is():
    texts = lines(NO_COMMANDS) + lines(NO_RECORDS) + lines(NOT_SPELLED)
    found = find_secrets(frame_of(texts))
    assert [texts[int(number)] for number in found["id"]] == []
