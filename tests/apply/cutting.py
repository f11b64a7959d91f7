"""A proxy on bare sockets that cuts the answer to a write, or the request itself, after so many bytes."""

import itertools
import re
import socket
import struct
import threading
from urllib.parse import urlsplit

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with which a close is a reset, not an end."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class CuttingProxy:
    """Forwards whole requests and whole answers, but for those of writes.

    Parameters
    ----------
    target : str
        Address of the service.
    cuts : iterable of int
        After how many bytes the answers of the next writes are cut; when there are none left, they pass.
    uploads : bool
        Cut the requests in the place of the answers.
    """

    def __init__(self, target, cuts, *, uploads=False):
        parts = urlsplit(target)
        self._target, self._path = (parts.hostname, parts.port), parts.path
        self._cuts, self._uploads = iter(cuts), uploads
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._n_cut = itertools.count()
        self.n_bytes = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}{self._path}"

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._listening.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            while request := message(connection):
                cut = self._next_cut(request)
                if cut is not None and self._uploads:
                    self._forward(request[:cut], wants_answer=False)
                    return
                answer = self._forward(request)
                connection.sendall(answer[:cut])
                if cut is not None:
                    self.n_bytes.append(len(answer))
                    if next(self._n_cut) % 2:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    return

    def _next_cut(self, request):
        is_write = (
            request.split(b" ", 1)[0] in (b"POST", b"PATCH", b"DELETE") and b"/memory-blobs" in request[:99]
        )
        with self._lock:
            return next(self._cuts, None) if is_write else None

    def _forward(self, request, *, wants_answer=True):
        with socket.create_connection(self._target) as upstream:
            upstream.sendall(request)
            return message(upstream) if wants_answer else b""


def message(connection):
    """One whole HTTP message, or what came of it."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            return received
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    missing = (int(length[1]) if length else 0) - len(body)
    while missing > 0 and (part := connection.recv(missing)):
        received += part
        missing -= len(part)
    return received
