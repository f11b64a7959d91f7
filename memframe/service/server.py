"""The service on a socket: uvicorn, told what a service of secrets needs."""

from __future__ import annotations

import socket

import uvicorn
from litestar.types import ASGIApp

from memframe.errors import ConfigError

BACKLOG = 2048
STOP_TIMEOUT_S = 5


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at a host and port; port 0 takes a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # named TCP outright: only of such sockets does asyncio switch Nagle's delay of 40 ms off
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise _cannot_listen(host, port, error) from None
    return listening


def _cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    reason = error.strerror or "the port is not free"
    return ConfigError(f"{host} port {port} cannot be listened at: {reason}; choose another host or port")


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
