"""A studio on a free port, in a thread of the tests, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import uvicorn
from PIL import Image

from video2pde.studio.app import make_app, open_socket, Server
from video2pde.studio.folder import Folder

TOKEN = "a-token-for-tests"


@dataclass
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Send requests as a page of the studio would, or in some wrong way."""

    port: int
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        host = f"127.0.0.1:{self.port}"
        sent = {"Host": host, "Cookie": self.cookie, **self.headers}
        if method not in ("GET", "HEAD"):
            sent["Origin"] = f"http://{host}"
        sent.update(headers or {})
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        try:
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Answer:
        return self.ask("GET", f"/api/{path}?{urlencode(query, doseq=True)}")

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        return self.ask("POST", f"/api/{path}", body)

    def enter(self, token: str = TOKEN) -> Client:
        """Exchange the token for the cookie, as the browser does."""
        answer = self.ask("GET", f"/?token={token}")
        assert answer.status == 303, answer.body
        self.cookie = answer.headers["set-cookie"].split(";")[0]
        return self


@contextmanager
def serving(root: Path, hosts: tuple[str, ...] = ()) -> Iterator[Client]:
    """Serve a folder for the length of a block."""
    listening = open_socket(0)
    port = listening.getsockname()[1]
    app = make_app(Folder(root), TOKEN, port, hosts)
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=2, server_header=False)
    server = Server(config, app)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.02)
    try:
        yield Client(port)
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive(), "the server did not end"


def shown(answer_body: bytes) -> np.ndarray:
    """Return the grey values of a picture that the server sent."""
    return np.asarray(Image.open(io.BytesIO(answer_body)).convert("L"), float)
