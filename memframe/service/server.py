"""The service on a socket: uvicorn, told what a service of secrets needs."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Sequence
from threading import Thread

import uvicorn
from litestar.types import ASGIApp
from uvicorn.supervisors import Multiprocess

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
    """A server for the application, in this process."""
    return uvicorn.Server(_config(app))


def serve_with(
    make_app: Callable[[], ASGIApp],
    listening: socket.socket,
    *,
    workers: int = 1,
    trusted_proxies: Sequence[str] = (),
) -> None:
    """Serve at a socket until a signal ends it; what is under way then is finished first.

    Parameters
    ----------
    make_app : callable
        Makes the application, once in each process; other processes must be able to import it.
    listening : socket
    workers : int, default 1
        Processes that serve. One is this process itself; of more this one watches over them, and starts
        another for one that ends.
    trusted_proxies : sequence of str
        Addresses and networks whose word about the address of a caller (``X-Forwarded-For``) is believed.
    """
    config = _config(make_app, factory=True, workers=workers, trusted_proxies=trusted_proxies)
    server = uvicorn.Server(config)
    if workers == 1:
        server.run([listening])
    else:
        Multiprocess(config, sockets=[listening]).run()


def end_with_parent() -> None:
    """In a process that serves for another one: stop once that is gone, however it ended.

    Otherwise it would go on at a port that the next start finds taken.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_stop_after, args=(parent.join,), daemon=True).start()


def freeze_what_stays() -> None:
    """In a process that serves and does nothing else: whatever is there by now stays, and is no garbage.

    A full round of Python's collector walks all objects, and every request waits for it. Some hundred thousand
    belong to the libraries and the application, which made that 60 ms; what requests leave behind takes 2.
    """
    gc.collect()
    gc.freeze()


def _stop_after(wait: Callable[[], None]) -> None:
    wait()
    os.kill(os.getpid(), signal.SIGTERM)


def _config(
    app: ASGIApp | Callable[[], ASGIApp],
    *,
    factory: bool = False,
    workers: int = 1,
    trusted_proxies: Sequence[str] = (),
) -> uvicorn.Config:
    """Without uvicorn's access log: addresses hold what people search for."""
    return uvicorn.Config(
        app,
        factory=factory,
        workers=workers,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )
