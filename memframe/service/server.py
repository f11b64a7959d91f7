"""Serve the application with uvicorn: sockets, processes and options. `bounds` limits the connections."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import Any

import uvicorn
from litestar.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from memframe.errors import ConfigError
from memframe.service.bounds import CONNECTIONS_PER_ADDRESS, KEEP_ALIVE_S, BoundedProtocol, ConnectionBounds

BACKLOG = 2048
STOP_TIMEOUT_S = 5


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # names TCP, because asyncio disables Nagle's algorithm, a delay of 40 ms, only for such sockets
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        reason = error.strerror or "the port is not free"
        message = f"{host} port {port} cannot be used: {reason}; choose another host or port"
        raise ConfigError(message) from None
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the http address of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(
    app: ASGIApp | Callable[[], ASGIApp],
    public_url: str,
    *,
    trusted_proxies: Sequence[str] = (),
    connections_per_address: int = CONNECTIONS_PER_ADDRESS,
    **options: Any,
) -> uvicorn.Server:
    """Make a server of the application; `options` are uvicorn's.

    The server trusts the header ``X-Forwarded-For`` of `trusted_proxies` (addresses and networks), and does not limit
    their connections.
    """
    bounds = ConnectionBounds(public_url, connections_per_address, trusted_proxies)
    protocol: Any = partial(BoundedProtocol, bounds=bounds)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        access_log=False,  # request addresses contain search texts
        log_config=None,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
        **options,
    )
    return uvicorn.Server(config)


def serve_with(
    make_app: Callable[[], ASGIApp],
    listening: socket.socket,
    *,
    public_url: str,
    workers: int = 1,
    **options: Any,
) -> None:
    """Serve at a socket until a signal; finish the requests in progress.

    `make_app` makes the application in each process, which must be able to import it. With one worker, this process
    serves; with more, it supervises the workers and restarts them. `options` are those of `make_server`.
    """
    server = make_server(make_app, public_url, factory=True, workers=workers, **options)
    if workers == 1:
        server.run([listening])
    else:
        Multiprocess(server.config, sockets=[listening]).run()


def end_with_parent() -> None:
    """Stop this process when its parent has ended; otherwise it would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def stop_after_parent() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=stop_after_parent, daemon=True).start()


def freeze_objects() -> None:
    """Exempt all present objects from garbage collection: a full collection would visit them and delay requests."""
    gc.collect()
    gc.freeze()
