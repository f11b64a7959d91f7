"""What a hostile outsider would try: keys of many makers, secrets told in odd ways, and what only looks like either.

The texts are in ``adversarial.txt``, one a line under the name of its list; where something is to be found, it stands
behind ``=>``.
"""

import base64
import string
from pathlib import Path
from random import Random

LETTERS, UP, DIGITS, HEX = string.ascii_letters, string.ascii_uppercase, string.digits, "0123456789abcdef"
LOW, WORD = string.ascii_lowercase + DIGITS, LETTERS + DIGITS + "-_"
SIGNS = LETTERS + DIGITS + "!@#$%^&*(-_=+)"


def vendor_keys(seed):
    """Names and texts with a key each, as their makers shape them; drawn, so that none is anybody's."""
    random = Random(seed)

    def draw(n, letters=LETTERS + DIGITS):
        return "".join(random.choices(letters, k=n))

    def b64(n):
        return base64.b64encode(random.randbytes(n)).decode()

    def uuid():
        return "-".join(draw(n, HEX) for n in (8, 4, 4, 4, 12))

    return {
        "aws id": "AKIA" + draw(16, UP + "234567"),
        "aws secret": "aws_secret_access_key: " + b64(30),
        "aws both": "my aws keys are AKIA" + draw(16, UP + "234567") + " and " + b64(30),
        "aws secret prose": "The AWS secret access key is " + b64(30),
        "aws session": "AWS_SESSION_TOKEN=" + b64(240),
        "gcp api": "AIza" + draw(35, WORD),
        "gcp service account json": '{"type": "service_account", "project_id": "demo", "private_key_id": "'
        + draw(40, HEX)
        + '", "private_key": "-----BEGIN PRIVATE KEY-----\\n'
        + b64(600)
        + '\\n-----END PRIVATE KEY-----\\n"}',
        "azure client secret": "client secret " + draw(3) + "8Q~" + draw(34),
        "azure storage": "DefaultEndpointsProtocol=https;AccountName=foo;AccountKey="
        + b64(64)
        + ";EndpointSuffix=core.windows.net",
        "azure sas": "https://foo.blob.core.windows.net/c?sv=2020-08-04&ss=b&srt=sco&sp=rwdlacx&se=2025-01-01T00:00:00Z&sig="
        + draw(43)
        + "%3D",
        "azure devops pat": "azure devops PAT: " + draw(52, LOW),
        "azure conn": "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey="
        + b64(32),
        "github classic": "ghp_" + draw(36),
        "github oauth": "gho_" + draw(36),
        "github app": "ghs_" + draw(36),
        "github refresh": "ghr_" + draw(76),
        "github fine": "github_pat_" + draw(22) + "_" + draw(59),
        "gitlab pat": "glpat-" + draw(20, WORD),
        "gitlab trigger": "glptt-" + draw(40, HEX),
        "gitlab runner": "GR1348941" + draw(20),
        "slack bot": "xoxb-" + draw(12, DIGITS) + "-" + draw(13, DIGITS) + "-" + draw(24),
        "slack user": "xoxp-"
        + draw(12, DIGITS)
        + "-"
        + draw(12, DIGITS)
        + "-"
        + draw(12, DIGITS)
        + "-"
        + draw(32, HEX),
        "slack app": "xapp-1-A" + draw(10, UP + DIGITS) + "-" + draw(13, DIGITS) + "-" + draw(64, HEX),
        "slack hook": "https://hooks.slack.com/services/T"
        + draw(8, UP + DIGITS)
        + "/B"
        + draw(10, UP + DIGITS)
        + "/"
        + draw(24),
        "stripe": "sk_live_" + draw(24),
        "stripe long": "sk_test_51" + draw(97),
        "stripe rk": "rk_test_" + draw(24),
        "stripe whsec": "whsec_" + draw(32),
        "openai old": "sk-" + draw(20) + "T3BlbkFJ" + draw(20),
        "openai proj": "sk-proj-" + draw(74, WORD) + "T3BlbkFJ" + draw(74, WORD),
        "openai none": "sk-None-" + draw(48),
        "anthropic": "sk-ant-api03-" + draw(93, WORD) + "AA",
        "anthropic admin": "sk-ant-admin01-" + draw(93, WORD) + "AA",
        "hf": "hf_" + draw(34, LETTERS),
        "hf org": "api_org_" + draw(34, LETTERS),
        "twilio sk": "SK" + draw(32, HEX),
        "twilio auth": "Twilio auth token is " + draw(32, HEX),
        "twilio sid+tok": "AC" + draw(32, HEX) + ":" + draw(32, HEX),
        "sendgrid": "SG." + draw(22) + "." + draw(43),
        "npm": "npm_" + draw(36),
        "npmrc": "//registry.npmjs.org/:_authToken=" + uuid(),
        "pypi": "pypi-AgEIcHlwaS5vcmc" + draw(70, WORD),
        "pypirc": "[pypi]\nusername = __token__\npassword = pypi-AgEIcHlwaS5vcmc" + draw(80),
        "do pat": "dop_v1_" + draw(64, HEX),
        "do oauth": "doo_v1_" + draw(64, HEX),
        "discord bot": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ." + draw(27),
        "discord hook": "https://discord.com/api/webhooks/" + draw(18, DIGITS) + "/" + draw(68),
        "discord assigned": "discord_client_secret = " + draw(32, WORD),
        "telegram": draw(10, "123456789") + ":AA" + draw(33, WORD),
        "heroku": "HEROKU_API_KEY=" + uuid(),
        "heroku prose": "heroku api key: " + uuid(),
        "heroku new": "HRKU-AA" + draw(58),
        "databricks": "dapi" + draw(32, HEX),
        "shopify": "shpat_" + draw(32, HEX),
        "shopify ss": "shpss_" + draw(32, HEX),
        "square": "sq0atp-" + draw(22),
        "square secret": "sq0csp-" + draw(43),
        "square new": "EAAAE" + draw(59),
        "mailgun": "key-" + draw(32, HEX),
        "mailgun new": "mailgun: " + draw(32, HEX) + "-" + draw(8, HEX) + "-" + draw(8, HEX),
        "mailchimp": draw(32, HEX) + "-us12",
        "cloudflare tok": "CLOUDFLARE_API_TOKEN=" + draw(40, WORD),
        "cloudflare prose": "cloudflare api token " + draw(40, WORD),
        "cloudflare global": "cloudflare global api key: " + draw(37, HEX),
        "cloudflare ca": "v1.0-" + draw(24, HEX) + "-" + draw(146, HEX),
        "vault": "hvs." + draw(90, WORD),
        "vault old": "VAULT_TOKEN=s." + draw(24),
        "vault old prose": "vault root token s." + draw(24),
        "tf": draw(14) + ".atlasv1." + draw(67),
        "grafana": "glsa_" + draw(32) + "_" + draw(8, HEX),
        "grafana key": "eyJrIjoi" + draw(90) + "==",
        "grafana cloud": "glc_" + b64(60),
        "sentry": "sntrys_" + draw(80) + "=_" + draw(43),
        "sentry dsn": "https://" + draw(32, HEX) + "@o123456.ingest.sentry.io/4505",
        "sentry old dsn": "https://" + draw(32, HEX) + ":" + draw(32, HEX) + "@sentry.io/1234",
        "sentry tok": "sentry auth token " + draw(64, HEX),
        "postman": "PMAK-" + draw(24, HEX) + "-" + draw(34, HEX),
        "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ."
        + draw(43, WORD),
        "pem ec": "-----BEGIN EC PRIVATE KEY-----\n" + b64(121) + "\n-----END EC PRIVATE KEY-----",
        "pem openssh": "-----BEGIN OPENSSH PRIVATE KEY-----\n"
        + "\n".join(b64(52) for _ in range(6))
        + "\n-----END OPENSSH PRIVATE KEY-----",
        "pem pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n"
        + "\n".join(b64(48) for _ in range(6))
        + "\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----",
        "pem one line": "-----BEGIN RSA PRIVATE KEY----- " + b64(300) + " -----END RSA PRIVATE KEY-----",
        "pem encrypted": "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        + b64(300)
        + "\n-----END ENCRYPTED PRIVATE KEY-----",
        "pem proc": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"
        + draw(32, "0123456789ABCDEF")
        + "\n\n"
        + b64(300)
        + "\n-----END RSA PRIVATE KEY-----",
        "putty": "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 4\n"
        + b64(48)
        + "\nPrivate-Lines: 8\n"
        + b64(48)
        + "\n"
        + b64(48)
        + "\nPrivate-MAC: "
        + draw(40, HEX),
        "pg url": "postgresql://app:S3cr3tPw@db.example.com:5432/prod",
        "mysql url": "mysql://root:hunter2@127.0.0.1/test",
        "mongo srv": "mongodb+srv://admin:Zx9!kkq@cluster0.abcde.mongodb.net/?retryWrites=true",
        "redis": "redis://:p4ssw0rd@redis:6379/0",
        "amqp": "amqp://guest:rabbitPW1@mq:5672/vhost",
        "jdbc": "jdbc:mysql://localhost:3306/db?user=root&password=Tr0ub4dor",
        "jdbc sqlserver": "jdbc:sqlserver://h:1433;databaseName=x;user=sa;password=Str0ng!Pass;",
        "odbc": "Driver={SQL Server};Server=h;Uid=sa;Pwd=Str0ng!Pass;",
        "adonet": "Data Source=h;Initial Catalog=x;User ID=sa;Password=yourStrong(!)Passw0rd1",
        "basic url": "https://bob:correcthorse@intranet.example.com/wiki",
        "ftp": "ftp://anon:letmein@ftp.example.com",
        "smtp": "smtp://me%40x.com:pa55word@smtp.example.com:587",
        "git": "git clone https://x-access-token:" + "ghs_" + draw(36) + "@github.com/a/b",
        "git oauth2": "https://oauth2:" + draw(20) + "@gitlab.example.com/a/b.git",
        "curl -u": "curl -u admin:Sup3rS3cret https://api.example.com",
        "curl H": "curl -H 'Authorization: Bearer " + draw(40) + "' https://x",
        "curl basic": "curl -H 'Authorization: Basic " + b64(18) + "' https://x",
        "curl apikey": "curl -H 'X-API-Key: " + draw(32) + "' https://x",
        "mysql -p": "mysql -u root -pS3cr3tPw! mydb",
        "sshpass": "sshpass -p 'hunter22!' ssh me@host",
        "env1": "DB_PASS=correct-horse-battery",
        "env2": "SECRET_KEY_BASE=" + draw(128, HEX),
        "env3": "JWT_SECRET=mysupersecretjwtkey123",
        "env4": "DJANGO_SECRET_KEY='" + draw(50, SIGNS) + "'",
        "env5": 'REDIS_PASSWORD="aaBB11cc"',
        "env6": "ENCRYPTION_KEY=" + draw(64, HEX),
        "env7": "NEXTAUTH_SECRET=" + b64(32),
        "env8": "export PGPASSWORD=zebra9",
        "env9": "POSTGRES_PASSWORD: changeit99",
        "env10": "API_SECRET=" + draw(30, LOW),
        "env11": "MAPBOX_TOKEN=pk.eyJ" + draw(60) + "." + draw(22),
        "env12": "DATADOG_API_KEY=" + draw(32, HEX),
        "env13": "ALGOLIA_ADMIN_KEY=" + draw(32, HEX),
        "env14": "FIREBASE_KEY=AIza" + draw(35),
        "env15": "LICENSE_KEY=ABCD3-EF9GH-IJKL2-MNOP7-QRS4T",
        "env16": "OPENAI_KEY=sk-" + draw(48),
        "json1": '{"username": "bob", "password": "Tr0ub4dor&3"}',
        "json2": '{"access_token":"' + draw(50) + '","expires_in":3600}',
        "json3": '{"client_id":"abc","client_secret":"' + draw(32) + '"}',
        "json4": '{"apiKey":"' + draw(24) + '"}',
        "json5": "{'token': '" + draw(40, HEX) + "'}",
        "json6": '{"refreshToken": "1//0' + draw(60) + '"}',
        "json7": '"auth": "' + b64(24) + '"',
        "yaml": "smtp:\n  user: me\n  password: hunter2\n",
        "toml": '[db]\npassword = "p@ss w0rd"',
        "ini": "[client]\nuser=root\npassword=Qwerty!23",
        "docker auth": '{"auths":{"https://index.docker.io/v1/":{"auth":"' + b64(24) + '"}}}',
        "netrc": "machine api.github.com login bob password " + draw(20),
        "htpasswd": "admin:$apr1$" + draw(8) + "$" + draw(22),
        "shadow": "root:$6$" + draw(8) + "$" + draw(86) + ":18000:0:99999:7:::",
        "bcrypt": "hash $2b$12$" + draw(53),
        "wg": "[Interface]\nPrivateKey = " + b64(32),
        "age": "AGE-SECRET-KEY-1" + draw(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
        "eth": "eth private key 0x" + draw(64, HEX),
        "btc wif": "bitcoin private key: 5"
        + draw(50, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
        "btc xprv": "xprv9s21ZrQH143K"
        + draw(95, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
        "linear": "lin_api_" + draw(40),
        "notion": "ntn_" + draw(46),
        "airtable": "pat" + draw(14) + "." + draw(64, HEX),
        "figma": "figd_" + draw(40),
        "asana": "asana token 1/" + draw(16, DIGITS) + ":" + draw(32, HEX),
        "dropbox": "sl." + draw(140),
        "fb": "EAA" + draw(150),
        "ig": "IGQVJ" + draw(130),
        "twitter bearer": "AAAAAAAAAAAAAAAAAAAAA" + draw(80) + "%3D" + draw(20),
        "twitter assigned": "twitter_api_secret: " + draw(50),
        "linkedin": "linkedin client secret = " + draw(16),
        "okta": "okta api token 00" + draw(40),
        "auth0": "AUTH0_CLIENT_SECRET=" + draw(64),
        "pagerduty": "pagerduty api key: u+" + draw(18),
        "newrelic": "NRAK-" + draw(27, UP + DIGITS),
        "algolia": "algolia admin key " + draw(32, HEX),
        "circle": "CIRCLECI_TOKEN=" + draw(40, HEX),
        "travis": "travis token " + draw(22),
        "codecov": "CODECOV_TOKEN=" + uuid(),
        "snyk": "snyk token " + uuid(),
        "rapid": "rapidapi-key: " + draw(50),
        "mapbox sk": "sk.eyJ" + draw(60) + "." + draw(22),
        "plaid": "plaid secret " + draw(30, HEX),
        "coinbase": "coinbase api secret " + draw(64),
        "binance": "binance secret key " + draw(64),
        "kraken": "kraken private key " + b64(64),
        "etherscan": "etherscan api key " + draw(34, UP + DIGITS),
        "alchemy": "ALCHEMY_KEY=" + draw(32),
        "infura": "https://mainnet.infura.io/v3/" + draw(32, HEX),
        "groq": "gsk_" + draw(52),
        "replicate": "r8_" + draw(37),
        "cohere": "cohere api key " + draw(40),
        "mistral": "mistral api key: " + draw(32),
        "together": "TOGETHER_API_KEY=" + draw(64, HEX),
        "pplx": "pplx-" + draw(48),
        "deepseek": "sk-" + draw(32, HEX),
        "openrouter": "sk-or-v1-" + draw(64, HEX),
        "xai": "xai-" + draw(80),
        "gemini": "gemini key AIzaSy" + draw(33),
        "elevenlabs": "sk_" + draw(48, HEX),
        "langsmith": "lsv2_pt_" + draw(32, HEX) + "_" + draw(10, HEX),
        "pinecone": "pcsk_" + draw(6) + "_" + draw(63),
        "supabase": "sbp_" + draw(40, HEX),
        "vercel": "vercel token " + draw(24),
        "netlify": "nfp_" + draw(36),
        "fly": "FlyV1 fm2_" + b64(150),
        "railway": "railway token " + uuid(),
        "planetscale": "pscale_tkn_" + draw(43),
        "doppler": "dp.pt." + draw(43),
        "pulumi": "pul-" + draw(40, HEX),
        "1password": "ops_eyJ" + b64(200),
        "1p secret": "A3-ABC3EF-H1JKLM2NPQRS-T5VWX-7ZABC-DE9GH",
        "bitbucket": "ATBB" + draw(32),
        "atlassian": "ATATT3xFfGF0" + draw(170, WORD) + "=A1B2C3D4",
        "jira prose": "jira api token " + draw(24),
        "zapier": "https://hooks.zapier.com/hooks/catch/123456/" + draw(7, LOW) + "/",
        "teams": "https://x.webhook.office.com/webhookb2/"
        + uuid()
        + "@"
        + uuid()
        + "/IncomingWebhook/"
        + draw(32, HEX)
        + "/"
        + uuid(),
        "easypost": "EZAK" + draw(54),
        "duffel": "duffel_live_" + draw(43),
        "lob": "live_" + draw(35, HEX),
        "sendinblue": "xkeysib-" + draw(64, HEX) + "-" + draw(16),
        "resend": "re_" + draw(8) + "_" + draw(24),
        "postmark": "postmark server token " + uuid(),
        "rubygems": "rubygems_" + draw(48, HEX),
        "nuget": "oy2" + draw(43, LOW),
        "crates": "cio" + draw(32),
        "clojars": "CLOJARS_" + draw(60, LOW),
        "artifactory": "AKCp" + draw(69),
        "sonar": "sqp_" + draw(40, HEX),
        "docker": "dckr_pat_" + draw(27, WORD),
        "tailscale": "tskey-auth-" + draw(12) + "-" + draw(32),
        "ngrok": "ngrok authtoken 2" + draw(48, WORD),
        "openai in sentence": "Her OpenAI key, sk-proj-" + draw(60) + ", is billed to the lab.",
        "two words key": "the api key for openweather: " + draw(32, HEX),
        "my key is": "my key is " + draw(32),
        "secret for the webhook is": "the secret for the webhook is " + draw(32),
        "bearer token prose": "use bearer token " + draw(40) + " for the staging api",
        "token upper": "TOKEN: " + draw(40, HEX),
        "pw in python": "requests.get(url, auth=('bob', 'Hunter2!x'))",
        "pw in yaml list": "- name: PASSWORD\n  value: Hunter2!x",
        "k8s": "data:\n  password: " + b64(12),
        "aws cfg": "[default]\naws_access_key_id = AKIA"
        + draw(16, UP + "234567")
        + "\naws_secret_access_key = "
        + b64(30),
        "cookie": "Cookie: sessionid=" + draw(32, LOW),
        "url token": "https://api.example.com/v1?api_key=" + draw(32),
        "signed url": "https://s3.amazonaws.com/b/k?X-Amz-Signature=" + draw(64, HEX),
    }


NOT_FOUND = {
    "sentry dsn",
    "htpasswd",
    "shadow",
    "bcrypt",
    "infura",
    "1p secret",
    "cookie",
    "zapier",
    "env11",
    "pagerduty",
}
"""Those that are not found: hashes of passwords, addresses with an id in them, keys that are meant for everybody."""


def read_lists():
    """The lists of ``adversarial.txt`` by name."""
    lists = {}
    for line in (Path(__file__).parent / "adversarial.txt").read_text("utf-8").splitlines():
        if line.startswith("[["):
            texts = lists.setdefault(line.strip("[]"), [])
        elif line:
            texts.append(line.replace("\\n", "\n"))
    return lists


def pairs(lines):
    """Texts, and what is to be found in each."""
    return [tuple(line.split(" => ")) for line in lines]
