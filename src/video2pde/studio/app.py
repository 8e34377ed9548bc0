"""The studio's server: guard, routes and static files, on this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from video2pde.errors import InputError
from video2pde.studio.folder import Folder
from video2pde.studio.guard import Guard, HERE
from video2pde.studio.hub import Hub
from video2pde.studio.routes import ROUTES

ADDRESS = "127.0.0.1"
FILES = {"": "index.html", "studio.js": "studio.js", "studio.css": "studio.css"}
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of glibc's malloc.h
LARGE_BLOCK = 256_000
THREADS = 16
"""Requests that may work at a time; the others wait."""


def make_app(folder: Folder, token: str, port: int, hosts: Sequence[str] = ()) -> Starlette:
    """Build the application for one folder."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        import anyio.to_thread

        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        app.state.hub = Hub(folder)
        async with app.state.hub.running():
            yield

    guard = Middleware(Guard, token=token, cookie=f"video2pde-studio-{port}", hosts=HERE | set(hosts))
    static = [Route(f"/{address}", _serve(name)) for address, name in FILES.items()]
    return Starlette(routes=[*static, *ROUTES], middleware=[guard], lifespan=lifespan)


def _serve(name: str) -> Callable[[Request], Response]:
    path = Path(str(resources.files("video2pde.studio").joinpath("static", name)))

    def serve(_: Request) -> Response:
        return FileResponse(path)

    return serve


class Server(uvicorn.Server):
    """A server that ends the pages' streams before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.state.hub.close_streams()
        await super().shutdown(sockets)


def open_socket(port: int) -> socket.socket:
    """Take a port of this machine, and listen there; 0 takes a free one."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
        found.listen()  # who opens the address before the server is ready waits for it
    except OSError as error:
        found.close()
        raise InputError(f"port {port} cannot be used ({error.strerror}); choose another with --port") from None
    return found


def give_memory_back() -> None:
    """Have the C library return large blocks to the system as soon as they are free, where it can be told to.

    Frames of megabytes come and go in many threads; kept for later use, as is usual, they would add up.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        tell = ctypes.CDLL(None).mallopt
        tell(M_MMAP_THRESHOLD, LARGE_BLOCK)
        tell(M_ARENA_MAX, 2)


def serve_folder(
    root: Path, port: int, browser: bool, hosts: Sequence[str] = (), say: Callable[[str], None] = print
) -> None:
    """Serve the studio of a folder until Ctrl-C; runs go on by themselves."""
    folder = Folder(root)
    give_memory_back()
    listening = open_socket(port)
    chosen = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = make_app(folder, token, chosen, hosts)
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=3, server_header=False)
    address = f"http://{ADDRESS}:{chosen}/?token={token}"
    say(f"The studio of {folder.root} is at\n\n    {address}\n")
    say("The address is good for one browser. Ctrl-C ends the studio; runs go on.")
    if browser:
        threading.Timer(0.5, webbrowser.open, (address,)).start()
    asyncio.run(Server(config, app).serve(sockets=[listening]))
