"""Secrets that must never show, in every spelling in which they could, and the places where they could."""

import base64
import re
import traceback
from pathlib import Path
from urllib.parse import quote, quote_plus

TESTS = Path(__file__).parent


def spellings(secret):
    """A secret as it is, in hexadecimal, in base64 and as in an address."""
    raw = secret.encode()
    return {
        secret,
        raw.hex(),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        quote(secret, safe=""),
        quote_plus(secret),
        repr(secret)[1:-1],
    }


def found_in(text, secrets):
    """Names of the secrets that a text shows; `secrets` is a mapping of names to texts."""
    folded = text.casefold()
    return [
        name
        for name, secret in secrets.items()
        if any(spelling.casefold() in folded for spelling in spellings(secret))
    ]


def stands(secret, text):
    """Whether a text holds a short secret, and not only an id or a coordinate with the same digits in it."""
    return re.search(rf"(?<![\w.-]){re.escape(secret)}(?![\w-])", text) is not None


def chain_of(error):
    """An error, and all that it was raised from or during, suppressed or not."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def shown_by(error):
    """Everything that a traceback with local variables, a log or a debugger shows of an error.

    The local variables of the tests are left out: they hold the secrets by intention.
    """
    for link in chain_of(error):
        yield from (str(link), repr(link), repr(link.args), repr(vars(link)))
        stack = traceback.TracebackException.from_exception(link, capture_locals=True).stack
        for frame in stack:
            if TESTS not in Path(frame.filename).parents:
                yield f"{frame.name}: {frame.locals}"
