"""A proxy that knows no more of HTTP than where a message ends, and cuts writes at a byte that it is told.

Each write takes the next cut of its script; when there are none left, and for reads, all passes.
"""

import re
import socket
import struct
import threading
from collections import deque
from contextlib import closing
from typing import NamedTuple
from urllib.parse import urlsplit

WRITE = re.compile(rb"(POST|PATCH|DELETE) \S*/memory-blobs")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Cut(NamedTuple):
    """How many bytes of a request reach the service, or of its answer the client; None is all of them."""

    request: int | None = None
    answer: int | None = None


class CuttingProxy:
    """Listens on this machine in front of a service; threads end with their connections."""

    def __init__(self, url):
        parts = urlsplit(url)
        self._upstream = parts.hostname, parts.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self.script = deque()
        self.answer_lengths = []

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client):
        with closing(client), socket.create_connection(self._upstream) as service:
            while request := message_of(client):
                cut = self.script.popleft() if self.script and WRITE.match(request) else Cut()
                service.sendall(request[: cut.request])
                if cut.request is not None and cut.request < len(request):
                    break
                answer = message_of(service)
                if WRITE.match(request):
                    self.answer_lengths.append(len(answer))
                client.sendall(answer[: cut.answer])
                if cut.answer is not None and cut.answer < len(answer):
                    break
            else:
                return
            for end in (client, service):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)


def message_of(connection):
    """One message, whose length is declared; nothing where the other side has closed."""
    message = b""
    while b"\r\n\r\n" not in message:
        message += (part := connection.recv(65536))
        if not part:
            return b""
    declared = LENGTH.search(message)
    whole = message.index(b"\r\n\r\n") + 4 + int(declared[1] if declared else 0)
    while len(message) < whole:
        message += (part := connection.recv(65536))
        if not part:
            return b""
    return message
