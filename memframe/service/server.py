"""The service on a socket: uvicorn, told what a service of secrets needs."""

from __future__ import annotations

import socket

import uvicorn
from litestar.types import ASGIApp

from memframe.errors import ConfigError

STOP_TIMEOUT_S = 5


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at a host and port; port 0 takes a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        message = f"{host} port {port} cannot be listened at: {error.strerror or error}; choose another port"
        raise ConfigError(message) from None
    # asyncio does this only for sockets it makes itself; without it each answer waits 40 ms for an ACK.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def url_of(listening: socket.socket) -> str:
    """The address of a listening socket, in plain http."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: ASGIApp) -> uvicorn.Server:
    """A server for the application, without access logs: addresses hold what people search for."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )
    return uvicorn.Server(config)
