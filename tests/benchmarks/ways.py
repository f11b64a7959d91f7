"""Ways from a service to a frame of opened memories: what people write, what they could pick, and memframe.

    python tests/benchmarks/ways.py WAY BASE_URL PAGE_SIZE

runs one of them and prints its seconds, its rows and the peak of its memory. Imports are not timed.
"""

import argparse
import base64
import http.client
import json
import re
import resource
import time

from pages import KEY, REQUEST_ID, USER_ID

HEADERS = {"Authorization": "Bearer t"}


def opened(pages):
    """Decrypt a row at a time, then `DataFrame(rows)`."""
    import pandas as pd
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, rows = AESGCM(KEY), []
    for page in pages:
        for row in page:
            sealed = base64.b64decode(row["content"])
            row["content"] = cipher.decrypt(sealed[:12], sealed[12:], None).decode()
            rows.append(row)
    return pd.DataFrame(rows)


def followed(get, base_url, size):
    """The pages of the loop that everybody writes first."""
    cursor = None
    while True:
        params = {"user_id": USER_ID, "limit": size} | ({"cursor": cursor} if cursor else {})
        page = get(f"{base_url}/memory-blobs", params=params, headers=HEADERS).json()
        yield page["memoryBlobs"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def obvious(base_url, size):
    """The loop over `requests.get`."""
    import requests

    return lambda: opened(followed(requests.get, base_url, size))


def session(base_url, size):
    """The loop over one `requests.Session`."""
    import requests

    return lambda: opened(followed(requests.Session().get, base_url, size))


def httpx(base_url, size):
    """The loop over one `httpx.Client`."""
    import httpx

    return lambda: opened(followed(httpx.Client().get, base_url, size))


def dlt(base_url, size):
    """The `RESTClient` of `dlt`, its pages opened likewise."""
    from dlt.sources.helpers.rest_client import RESTClient
    from dlt.sources.helpers.rest_client.auth import BearerTokenAuth
    from dlt.sources.helpers.rest_client.paginators import JSONResponseCursorPaginator

    client = RESTClient(
        base_url,
        auth=BearerTokenAuth("t"),
        paginator=JSONResponseCursorPaginator("next_cursor", "cursor"),
        data_selector="memoryBlobs",
    )
    query = {"user_id": USER_ID, "limit": size}
    return lambda: opened(client.paginate("/memory-blobs", params=query))


def memframe(base_url, size):
    """memframe: `load_memories`."""
    import memframe as mf

    load_memories = mf.load_memories
    access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), REQUEST_ID)
    return lambda: load_memories(access, page_size=size, progress=False)


def libraries(base_url, size):
    """The libraries under memframe, by hand, without one of its checks."""
    from by_hand import frame_of

    return lambda: frame_of(followed_bare(base_url, size))


def chain(base_url, size):
    """The bare chain of pages over `http.client`.

    Its bytes are dropped: no client can be faster.
    """
    return lambda: [body for body in followed_bare(base_url, size) if not body]


def followed_bare(base_url, size):
    """The bodies of all pages over one connection; the next one is asked for before this one is worked on."""
    host, path = re.fullmatch(r"http://([^/]+)(.*)", base_url).groups()
    first = f"{path}/memory-blobs?user_id={USER_ID}&limit={size}"
    connection, target = http.client.HTTPConnection(host), first
    connection.request("GET", target, headers=HEADERS)
    while target:
        body = connection.getresponse().read()
        found = re.search(rb'"next_cursor": "(c\d+)"}', body[-40:])
        target = found and f"{first}&cursor={found[1].decode()}"
        if target:
            connection.request("GET", target, headers=HEADERS)
        yield body


WAYS = {way.__name__: way for way in (obvious, session, httpx, dlt, memframe, libraries, chain)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("base_url")
    parser.add_argument("page_size", type=int)
    options = parser.parse_args()
    load = WAYS[options.way](options.base_url, options.page_size)
    began = time.perf_counter()
    frame = load()
    seconds = time.perf_counter() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "rows": len(frame), "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
