"""How long the studio's page waits for a frame of a 1080p film while a run is computing."""

from __future__ import annotations

import http.client
import itertools
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.recording.synth import Camera, make_case, render_film

TITLE = "Frames in the studio"
NOTES = (
    "A film of 1920 × 1080, 400 frames in H.264, served by `video2pde studio` while `video2pde run` computes on "
    "another film with both cores; exact frames of up to 1280 pixels, over HTTP."
)
FRAMES, ASKED, SIDE = 400, 60, 1280
READ_SECONDS = 60.0
"""After which the film has been read once in the background."""
MOST_MS = 50.0


def run() -> list[dict[str, Any]]:
    """Time requests for frames, right after the film was opened and once it has been read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        render_film(make_case("C"), folder / "wide", Camera(size=(1920, 1080), frames=FRAMES, noise=0.01, crf=23))
        render_film(make_case("C"), folder / "other", Camera(size=(540, 540), frames=205, noise=0.01, crf=23))
        with serving(folder) as ask, computing(folder / "other" / "film.mp4", folder / "run"):
            rng = np.random.default_rng(1)
            early = times(ask, rng.integers(FRAMES, size=10))
            time.sleep(READ_SECONDS)
            jumps = times(ask, rng.integers(FRAMES, size=ASKED))
            onwards = times(ask, range(100, 100 + ASKED))
    return [
        {"name": "any frame, just opened", "value": early, "unit": "ms"},
        {"name": f"any frame, {READ_SECONDS:.0f} s later", "value": jumps, "unit": "ms", "limit": MOST_MS},
        {"name": "the next frames", "value": onwards, "unit": "ms", "limit": MOST_MS},
    ]


class Asking:
    """Ask the studio for frames, as its page does."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.cookie = port, ""
        headers, _ = self.get(f"/?token={token}")
        self.cookie = headers["set-cookie"].split(";")[0]

    def get(self, path: str) -> tuple[dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers={"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status >= 400:
            raise RuntimeError(f"{path}: {answer.status} {body[:200]!r}")
        return {name.lower(): value for name, value in answer.getheaders()}, body


def times(ask: Asking, numbers: Iterable[int]) -> float:
    """Return the median time of requests for frames, in milliseconds."""
    taken = []
    for number in numbers:
        began = time.perf_counter()
        headers, _ = ask.get(f"/api/frame?name=wide/film.mp4&number={number}&side={SIDE}")
        taken.append(1000 * (time.perf_counter() - began))
        if headers["x-frame"] != str(number):
            raise RuntimeError(f"asked for frame {number}, got {headers['x-frame']}")
    return float(np.median(taken))


@contextmanager
def serving(folder: Path) -> Iterator[Asking]:
    """Start the studio on a free port."""
    command = [sys.executable, "-m", "video2pde", "studio", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                found = re.search(r"127\.0\.0\.1:(\d+)/\?token=([\w-]+)", line)
                if found:
                    yield Asking(int(found[1]), found[2])
                    break
            else:
                raise RuntimeError("the studio did not start")
        finally:
            process.terminate()


@contextmanager
def computing(film: Path, out: Path) -> Iterator[None]:
    """Keep both cores busy with runs, one after the other."""
    ended = threading.Event()

    def compute() -> None:
        for number in itertools.count():
            into = out.with_name(f"{out.name}-{number}")
            command = [sys.executable, "-m", "video2pde", "run", str(film), "--out", str(into), "--quiet"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    if ended.wait(0.1):
                        process.terminate()
                        return
                if process.returncode:
                    raise RuntimeError(f"the run beside the studio ended with {process.returncode}")

    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(compute)
        try:
            yield
        finally:
            ended.set()
        running.result()
