"""The service that is killed: full durability, and no throttling of writers that sign in again and again.

::

    python -m tests.torture.service FOLDER PORT
"""

import json
import sys

from memframe.service import run_local

NAMES = ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri")

if __name__ == "__main__":
    folder, port = sys.argv[1:]
    with run_local(folder, int(port), token_calls_per_minute=1_000_000) as local:
        print(json.dumps({name: getattr(local, name) for name in NAMES}), flush=True)
        sys.stdin.read()
