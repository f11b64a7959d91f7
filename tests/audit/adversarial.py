"""What a hostile outsider would try: keys of many makers, secrets told in odd ways, and what only looks like either.

The texts are in ``adversarial.txt``, one a line under the name of its list; where something is to be found, it stands
behind ``=>``. Keys are drawn where ``⟨16 hex⟩`` stands, so that none is anybody's.
"""

import base64
import re
import string
from random import Random

from tests.audit.sentences import read_lists

DIGITS, ALNUM = string.digits, string.ascii_letters + string.digits
ALPHABETS = {
    "alnum": ALNUM,
    "base32": string.ascii_uppercase + "234567",
    "base58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "bech32": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "digit": DIGITS,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "letter": string.ascii_letters,
    "low": string.ascii_lowercase + DIGITS,
    "nonzero": "123456789",
    "signs": ALNUM + "!@#$%^&*(-_=+)",
    "up": string.ascii_uppercase + DIGITS,
    "word": ALNUM + "-_",
}
LISTS = read_lists("adversarial")
NOT_FOUND = set(LISTS["keys not found"])
"""Those that are not found: hashes of passwords, addresses with an id in them, keys that are meant for everybody."""


def vendor_keys(seed):
    """Names and texts with a key each, as their makers shape them."""
    random = Random(seed)

    def draw(place):
        n, kind = int(place[1]), place[2]
        if kind == "b64":
            return base64.b64encode(random.randbytes(n)).decode()
        return "".join(random.choices(ALPHABETS[kind], k=n))

    named = (line.split(" = ", 1) for line in LISTS["keys of makers"])
    return {name: re.sub(r"⟨([0-9]+) (\w+)⟩", draw, text) for name, text in named}


def pairs(lines):
    """Texts, and what is to be found in each."""
    return [tuple(line.split(" => ")) for line in lines]
