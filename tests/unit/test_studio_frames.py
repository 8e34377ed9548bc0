"""Frames for the screen: the recording's own, kept within bounds, and a server that stays small."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import psutil
import pytest
from studio_server import Client, shown

from video2pde.recording.film import Film
from video2pde.studio.reader import Reader
from video2pde.studio.screen import OpenFilm, SHOWN_SIDE
from video2pde.studio.store import Shot, Store


def test_films_give_the_frames_that_a_run_reads(tmp_path: Path) -> None:
    """Jumps to key frames and steps onwards find exactly the frames that reading from the start finds."""
    film = render_small_film(tmp_path)
    expected = [(frame.time, frame.picture.copy()) for frame in Film(film).frames()]
    reader = Reader(film)
    try:
        end = time.monotonic() + 10
        while reader.times is None:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert reader.count == len(expected)
        for number in (0, 1, 2, 30, 31, 5, 39, 12, 0):
            at, picture = reader.frame(number)
            assert at == pytest.approx(expected[number][0])
            assert np.array_equal(picture, expected[number][1])
    finally:
        reader.close()


def test_frames_that_are_kept_are_those_that_are_decoded(tmp_path: Path) -> None:
    """A film is read once in the background; from then on every frame is there, the same to the byte."""
    film = OpenFilm("film.mp4", "1", render_small_film(tmp_path), Store(tmp_path))
    try:
        end = time.monotonic() + 30
        while film.kept(39, SHOWN_SIDE, quick=False) is None:
            assert time.monotonic() < end, "the frames are not kept"
            time.sleep(0.02)
        for number in (0, 7, 31, 39):
            kept, decoded = film.kept(number, SHOWN_SIDE, quick=False), film.shot(number, SHOWN_SIDE)
            assert kept is not None
            assert (kept.number, kept.jpeg) == (number, decoded.jpeg)
            assert kept.time == pytest.approx(decoded.time)
        assert film.kept(7, 30, quick=False) is None  # another size was asked for
        near = film.kept(7, 30, quick=True)
        assert near is not None
        assert near.number == 7
    finally:
        film.close()


def test_what_is_kept_of_a_long_film_is_bounded(tmp_path: Path) -> None:
    store = Store(tmp_path, most=1000)
    store.plan(100, Shot(0, 0.0, b"x" * 100))
    assert store.stride == 12
    shots = [Shot(number, float(number), bytes([number]) * 100) for number in range(0, 1200, store.stride)[:12]]
    assert [store.put(shot) for shot in shots] == [True] * 10 + [False] * 2
    assert store.near(30) == shots[2]  # halfway: to the even one
    assert store.near(31) == shots[3]
    assert store.get(31) is None
    assert not any(path.name.startswith(".frames") for path in tmp_path.iterdir())
    store.close()
    assert store.near(31) is None
    assert not store.put(shots[0])
    assert Store(tmp_path, most=-1).get(0) is None


def render_small_film(folder: Path) -> Path:
    import av

    path = folder / "film.mp4"
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"g": "12", "bf": "2"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(40):
            picture = np.full((48, 64), 40 + 4 * number, np.uint8) + rng.integers(0, 9, (48, 64), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(np.repeat(picture[..., None], 3, axis=2), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def test_scrubbing_a_large_film_takes_little_memory(tmp_path: Path) -> None:
    """A film of 160 MB is scrubbed back and forth; the server keeps a few frames and its store, not the film."""
    import av

    with av.open(str(tmp_path / "large.avi"), "w") as container:
        stream = container.add_stream("rawvideo", rate=25)
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for number in range(120):
            picture = np.full((1080, 1280), number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="yuv420p")))
    assert (tmp_path / "large.avi").stat().st_size > 160_000_000
    with _studio_process(tmp_path) as (client, process):
        client.get("frame", name="large.avi", number=0, side=640)
        before = process.memory_full_info().uss
        for number in [*range(0, 120, 2), *range(119, 0, -7)]:
            answer = client.get("frame", name="large.avi", number=number, side=640)
            assert abs(shown(answer.body).mean() - (number - 16) * 255 / 219 * (number > 16)) < 2
        assert process.memory_full_info().uss - before < 110_000_000


@contextmanager
def _studio_process(folder: Path) -> Iterator[tuple[Client, psutil.Process]]:
    """Start the studio by its command: its memory is then its own, and not that of the tests."""
    command = [sys.executable, "-u", "-m", "video2pde.cli", "studio", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            address = next(urlsplit(line.strip()) for line in started.stdout if "token=" in line)
            assert address.port is not None
            yield Client(address.port).enter(parse_qs(address.query)["token"][0]), psutil.Process(started.pid)
        finally:
            started.terminate()
