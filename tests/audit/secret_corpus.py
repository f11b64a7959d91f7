"""Memories with and without secrets, labelled by those who wrote them: made from sentences and made-up values.

The detector was made with these in view; `unseen` has sentences that were written afterwards.
"""

import base64
import string
from random import Random
from typing import NamedTuple

TOLD = [
    "my password for {site} is {password}",
    "The {site} password is {password}.",
    "User told me their {site} password: {password}",
    "{site} login is {user} and the password is {password}, don't share it",
    "wifi password at home: {password}",
    "The guest wifi is called {word}-guest, password {password}",
    "Changed the {site} password to {password} on Monday",
    "If I forget: {site} pw is {password}",
    "Remember that the password I use for {site} is {password}",
    "She unlocks her laptop with the password {password}",
    "Admin password of the router = {password}",
    "{password} is my {site} password",
    "He uses {password} as the password for {site}",
    "Password for {site} (shared with mum): {password}",
    "User wants me to keep this safe: the {site} account password was set to {password}.",
    "username: {user}, password: {password}",
    "username {user} password {password} for the library catalogue",
    'The password to the shared drive is "{password}"; ask before changing it.',
    "Netflix is under dad's name, passcode {pin}",
    "My debit card PIN is {pin}",
    "PIN for the new bank card: {pin}",
    "card pin {pin}, do not write it on the card",
    "The PIN of the SIM is {pin} and the PUK is somewhere in the drawer",
    "Phone unlocks with {pin}",
    "the alarm code is {pin}, you have 30 seconds",
    "Front door code: {pin}#",
    "garage code {pin}",
    "The code for the building entrance is {pin}",
    "Airbnb lockbox code is {pin}",
    "The combination of the safe is {combination}",
    "bike lock combination: {combination}",
    "gym locker combination is {combination}, second row",
    "Voicemail PIN is {pin}",
    "The keypad at the office takes {pin} as the code",
    "Recovery code for the {site} account: {recovery}",
    "My 2FA backup codes for {site} are {recovery} and {recovery}",
    "backup codes: {recovery}, {recovery}, {recovery}",
    "Saved the recovery key {recovery}-{recovery} for FileVault",
    "My seed phrase is {seed}",
    "Ledger recovery phrase: {seed}",
    "wallet: {seed}",
    "{seed}",
    "mother's maiden name is {surname}",
    "My mother's maiden name: {surname} (for the bank)",
    "Security question: first pet. The security answer is {surname}",
    "The answer to my security question is {surname}",
    "Mein Passwort für {site} ist {password}",
    "Das WLAN-Passwort lautet {password}",
    "Die PIN der Karte ist {pin}",
    "Mon mot de passe {site} est {password}",
    "le mot de passe du wifi: {password}",
    "mi contraseña de {site} es {password}",
    "La clave... perdón, la contraseña es {password}",
    "mijn wachtwoord voor {site} is {password}",
    "A senha do {site} é {password}",
    "La password di {site} è {password}",
    "{site}のパスワードは{password}です",
    "{site}的密码是{password}",
    "the wifi password is {weak}",
    "Password: {weak}",
    "He changed his {site} password to {weak}, all small letters",
    "My password is {weak} and I use it everywhere",
    "the passphrase is {phrase}",
    "Passphrase of the SSH key: {phrase}",
    "Log in at {site} with {user} / {password}? credentials: {user} / {password}",
    "creds for staging are {user}:{password}",
    "OTP code {otp} arrived for {site}",
    "Your verification code is {otp}",
]

KEYS = [
    "OPENAI_API_KEY={openai}",
    "export GITHUB_TOKEN={github}",
    "the stripe key is {stripe}",
    "aws_access_key_id = AKIA{aws_16}",
    "aws_secret_access_key = {b64_40}",
    "Use the token {slack} for the bot",
    "Authorization: Bearer {jwt}",
    'api_key: "{b62_32}"',
    '"client_secret": "{b62_40}",',
    "DATABASE_URL=postgres://{user}:{password}@db.internal:5432/app",
    "mongodb+srv://{user}:{password}@cluster0.mongodb.net",
    "The {site} API key is {hex_32}",
    "my api token: {hex_40}",
    "X-Api-Key: {b62_24}",
    "secret_key = '{b62_50}'",
    "Server=db;Database=app;User Id={user};Password={password};",
    "DefaultEndpointsProtocol=https;AccountName=data;AccountKey={b64_88}",
    "{pem}",
    "Here is the deploy key:\n{pem}\nkeep it",
    "webhook https://hooks.slack.com/services/T0{up_9}/B0{up_9}/{b62_24}",
    "glpat token glpat-{b62_20}",
    "npm token npm_{b62_36}",
    "Anthropic key sk-ant-api03-{b62_80}AA",
    "google maps key AIza{b62_35}",
    "telegram bot 718243905:AA{b62_33}",
    "hf token hf_{letters_34}",
    "SENDGRID_API_KEY=SG.{b62_22}.{b62_43}",
    "DB_PASSWORD={password}",
    'password = "{password}"',
    '  "password": "{password}",',
    "redis://:{password}@localhost:6379/0",
    "https://{user}:{password}@git.example.org/repo.git",
    "FEED_KEY: {b62_36}",
    "session_secret: {hex_64}",
    "the access token for the weather service is {b62_28}",
    "auth_token={hex_32}",
]

CLEAN = [
    "Forgot the {site} password again and had to reset it",
    "Uses Bitwarden as a password manager",
    "Their password manager is KeePassXC, synced by Syncthing",
    "Prefers passwordless login wherever it is offered",
    "The wifi password is on the fridge",
    "Password of the router is on a sticker below it",
    "Rotates passwords every 90 days because the company insists",
    "Company policy: passwords need 14 characters, one digit and one symbol",
    "The password must be at least 12 characters long",
    "Wants to learn how bcrypt stores a password",
    "The password is the same as last year, which worries her",
    "My password was leaked in the 2019 breach",
    "password reset link arrives by mail and expires after 30 minutes",
    "He said the password is too long to type on the TV",
    "Password is expired; IT will call back on Tuesday at 10:30",
    "The password is written in the red notebook",
    "password sharing for {site} ends in 2025",
    "Thinks that two-factor codes by SMS are unsafe",
    "Lost the PIN of her card and waits for a new letter",
    "PIN diodes are used in the receiver, 4 of them",
    "Connects the sensor to GPIO pin 17 and the relay to pin 27",
    "Pins numpy to 2.1.3 in every project",
    "Collects enamel pins, 142 so far",
    "Bowling on Thursday: 9 pins out of 10",
    "Lives in postal code 04177",
    "Area code is 0341 for all of Leipzig",
    "Zip code 94110, buzzer does not work",
    "Lives in Pune, PIN code 411001",
    "Error code 0x80070057 appears when syncing",
    "The exit code is 137, so the container ran out of memory",
    "HTTP status code 404 for the old recipe page",
    "Promo code SPRING25 gives ten percent",
    "Booking code X7K9QF, seat 12A, train leaves at 08:17",
    "Dress code is casual on Fridays",
    "Source code lives in the repository timetable-diff",
    "Building code 2021 requires handrails on both sides",
    "The token limit of the model is 128000",
    "Access tokens are short-lived and refreshed by the client",
    "API key rotation is scheduled for every quarter",
    "The API key is stored in Vault under kv/prod",
    "Needs an API key for the weather service, has none yet",
    "Seed phrase is kept in a safe at the bank",
    "Planted the seed potatoes on 12 April, three rows",
    "Mother's maiden name is a bad security question, she says",
    "Her maiden name was Brandt before the wedding",
    "The answer to her question was 42",
    "The combination of rosemary and orange works well",
    "The key to the shed hangs behind the door",
    "Key takeaway from the meeting: fewer slides",
    "Secret ingredient is a pinch of cinnamon",
    "The secret is patience",
    "Ihr Passwort ist abgelaufen, sie ruft am Montag an",
    "Das Passwort steht im Notizbuch",
    "Hat das Kennwort vergessen und nimmt jetzt einen Passwortmanager",
    "Mot de passe oublié, lien envoyé par mail",
    "Le mot de passe est dans le carnet rouge",
    "La contraseña está en la nevera",
    "Olvidó la contraseña de {site}",
    "Het wachtwoord staat op de koelkast",
    "パスワードを忘れた",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke the build",
    "sha256 of the image is e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "The request id was 550e8400-e29b-41d4-a716-446655440000",
    "docker pull registry.example.org/app@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    'api_key = os.environ["API_KEY"]',
    "password: ${DB_PASSWORD}",
    "password = getpass.getpass()",
    "Authorization: Bearer <token>",
    "token: your-token-here",
    "client_secret: xxxxxxxxxxxxxxxxxxxx",
    "const apiKey = process.env.API_KEY",
    "primary_key: user_id",
    "public_key_token=b77a5c561934e089",
    "key_id: 2023-11-primary",
    "The keyboard shortcut is Ctrl+Shift+P, or Cmd+Shift+P",
    "max_tokens: 4096, temperature: 0.2",
    "Passed the driving test on 3 May 2019",
    "Compass reads 270 in the harbour",
    "The museum pass is valid until 31/12/2026",
    "Pass: 12 of 14, fail: 2",
    "Her login is ilka.tornow@example.org",
    "Sign in with Google does not work on the old tablet",
    "Signed in 3 times today",
    "Opens with a joke about 1984",
    "The shop opens at 0900 and closes at 1800",
    "Unlocking the phone with a fingerprint fails when it rains",
    "Flight LH2045 lands at 18:40, gate B23",
    "Order number 4839-2271-05, delivery on Friday",
    "Policy RV-771-20418 covers water damage",
    "ISBN 978-3-16-148410-0 is the cookbook",
    "Serial number 24-3000 has the new switch",
    "Meeting id 845 2231 9087, camera off",
    "IMEI is on the box",
    "Runs 5.2 km in 34 minutes",
    "Version 2.14.7 fixes the bug with time zones",
    "Reads Wittgenstein on Sundays",
    "Credentials are in 1Password, vault Engineering",
    "Login is broken since Tuesday",
    "Backup codes are printed and in the drawer",
    "Recovery code sheet is with the notary",
    "Asked how to generate a strong password",
    "Wants reminders for password changes in March",
    "Is annoyed by password rules such as one capital, one digit",
    "Security questions should never have true answers, she thinks",
    "The verification code never arrived",
    "Code review every Tuesday at 14:00",
    "Learned that the code is 300 lines long",
    "Morse code is fun: SOS is ... --- ...",
    "Plays the piece with 4 flats",
    "The door is 2100 mm high",
    "Alarm at 06:45 on weekdays",
    "The safe word is a running joke",
    "Room 4711 at the conference hotel",
    "Locker 212 at the pool",
    "Gate 7, row 31",
    "House number 1987",
    "Garage built in 1974",
]

SITES = [
    "Netflix",
    "Gmail",
    "the bank",
    "Spotify",
    "Amazon",
    "the nursery app",
    "GitHub",
    "Hulu",
    "the tax office",
    "eBay",
]
USERS = ["ilka", "admin", "bob77", "j.doe", "root", "svc_app", "marta"]
WORDS = [
    "tiger",
    "lamp",
    "river",
    "stone",
    "cloud",
    "maple",
    "rocket",
    "violet",
    "hammer",
    "coffee",
    "window",
    "garden",
    "silver",
    "dragon",
    "button",
    "candle",
]
SURNAMES = ["Kowalski", "Achterberg", "O'Neill", "García", "Brandt", "Nakamura", "van Dyck", "Petrova"]


class Labelled(NamedTuple):
    """A memory, and the secrets in it."""

    text: str
    secrets: tuple[str, ...]


class Maker:
    """Made-up values, the same for the same seed."""

    def __init__(self, seed, seed_words):
        self.random = Random(seed)
        self.seed_words = seed_words

    def chars(self, n, alphabet=string.ascii_letters + string.digits):
        return "".join(self.random.choices(alphabet, k=n))

    def word(self):
        return self.random.choice(WORDS)

    def password(self):
        styles = (
            lambda: self.word() + str(self.random.randint(1, 9999)),
            lambda: self.word().title() + self.random.choice("!?#$&*@") + str(self.random.randint(10, 99)),
            lambda: self.word().title() + self.word().title() + str(self.random.randint(1, 99)) + "!",
            lambda: self.chars(self.random.randint(8, 16)) + "7x",
            lambda: self.word().replace("e", "3").replace("o", "0").replace("i", "1") + "_" + self.chars(2),
            lambda: f"{self.word()}-{self.word()}-{self.random.randint(1, 99)}",
            lambda: str(self.random.randint(100000, 99999999)),
        )
        return self.random.choice(styles)()

    def pem(self):
        body = base64.b64encode(self.random.randbytes(400)).decode()
        lines = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
        kind = self.random.choice(["RSA ", "EC ", "OPENSSH ", ""])
        return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"

    def value(self, name):
        kind, _, n = name.rpartition("_")
        match kind or name:
            case "b62":
                return self.chars(int(n))
            case "hex":
                return self.chars(int(n), "0123456789abcdef")
            case "up":
                return self.chars(int(n), string.ascii_uppercase + string.digits)
            case "letters":
                return self.chars(int(n), string.ascii_letters)
            case "digits":
                return self.chars(int(n), string.digits)
            case "aws":
                return self.chars(int(n), string.ascii_uppercase + "234567")
            case "b64":
                return self.chars(int(n), string.ascii_letters + string.digits + "+/")
        return {
            "site": lambda: self.random.choice(SITES),
            "user": lambda: self.random.choice(USERS),
            "word": self.word,
            "password": self.password,
            "weak": lambda: self.word() + self.random.choice(["", self.word()]),
            "phrase": lambda: " ".join(self.random.sample(WORDS, 4)),
            "pin": lambda: self.chars(self.random.choice([4, 4, 4, 6]), string.digits),
            "otp": lambda: self.chars(6, string.digits),
            "combination": lambda: self.random.choice("- ").join(
                self.chars(2, string.digits) for _ in range(3)
            ),
            "recovery": lambda: f"{self.chars(4, string.digits)}-{self.chars(4, string.digits)}",
            "seed": lambda: " ".join(self.random.choices(self.seed_words, k=self.random.choice([12, 24]))),
            "surname": lambda: self.random.choice(SURNAMES),
            "openai": lambda: f"sk-proj-{self.chars(60)}",
            "github": lambda: f"ghp_{self.chars(36)}",
            "stripe": lambda: f"sk_live_{self.chars(24)}",
            "slack": lambda: (
                f"xoxb-{self.chars(12, string.digits)}-{self.chars(12, string.digits)}-{self.chars(24)}"
            ),
            "jwt": lambda: f"eyJ{self.chars(30)}.eyJ{self.chars(60)}.{self.chars(43)}",
            "pem": self.pem,
        }[name]()

    def fill_safely(self, sentence):
        """A sentence without secrets, in which a site may have a name and other braces mean nothing."""
        return sentence.replace("{site}", self.value("site"))

    def fill(self, sentence):
        """The sentence with values in it, and those values that are secrets."""
        text, secrets = "", []
        for literal, name, _, _ in string.Formatter().parse(sentence):
            text += literal
            if name:
                value = self.value(name)
                text += value
                if name not in {"site", "user", "word", "up_9"}:
                    secrets.append(value)
        return Labelled(text, tuple(secrets))


def make_corpus(told, keys, clean, *, seed, seed_words, rounds=6):
    """Told secrets, keys and clean memories of some sentences, each several times with other values."""
    maker = Maker(seed, seed_words)
    return {
        "told": [maker.fill(sentence) for _ in range(rounds) for sentence in told],
        "keys": [maker.fill(sentence) for _ in range(rounds) for sentence in keys],
        "clean": [Labelled(maker.fill_safely(sentence), ()) for _ in range(rounds) for sentence in clean],
    }
