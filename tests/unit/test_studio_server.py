"""What the studio's server does: library, frames, u, uploads, plans, jobs; and that it stays small and quick."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import psutil
import pytest
from PIL import Image
from studio_server import Client, serving
from study_folders import DIFFUSION, make_study

from video2pde.errors import InputError
from video2pde.pipeline import STAGES as PIPELINE_STAGES
from video2pde.recording.film import Film
from video2pde.settings import load_settings
from video2pde.studio.jobs import Job
from video2pde.studio.pages import read_page
from video2pde.studio.prepare import Wish
from video2pde.studio.reader import Reader
from video2pde.studio.screen import OpenFilm, SHOWN_SIDE
from video2pde.studio.store import Shot, Store
from video2pde.studio.upload import clean_name
from video2pde.studio.watch import read_state, STAGES

HOSTILE = "<img src=x onerror=alert(1)> \"'&;$(touch x).npy"
FRAMES, HEIGHT, WIDTH = 30, 40, 60


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    rng = np.random.default_rng(3)
    t, y, x = np.meshgrid(np.arange(FRAMES), np.arange(HEIGHT), np.arange(WIDTH), indexing="ij")
    plume = 200 - 120 * np.exp(-((x - 30) ** 2 + (y - 20) ** 2) / (40 + 4 * t))
    return np.clip(plume + rng.normal(0, 1, plume.shape), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, frames: np.ndarray) -> Path:
    root = tmp_path_factory.mktemp("studio")
    np.save(root / "plume.npy", frames)
    np.save(root / HOSTILE, frames)
    np.save(root / "-dash.npy", frames)
    pictures = root / "pictures"
    pictures.mkdir()
    for number, frame in enumerate(frames[:6]):
        Image.fromarray(frame).save(pictures / f"img{number}.png")
    return root


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with serving(folder) as found:
        yield found.enter()


def shown(answer_body: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(answer_body)).convert("L"), float)


def test_the_stages_are_those_of_the_pipeline() -> None:
    assert STAGES == PIPELINE_STAGES


def test_the_library_lists_recordings_of_every_kind(client: Client) -> None:
    listed = {card["name"]: card["details"]["format"] for card in client.get("library").json["cards"]}
    assert listed == {"plume.npy": "npy", HOSTILE: "npy", "-dash.npy": "npy", "pictures": "6 pictures"}


@pytest.mark.parametrize("number", [0, 7, 29, 3])
def test_a_frame_is_the_recordings_own(client: Client, frames: np.ndarray, number: int) -> None:
    answer = client.get("frame", name="plume.npy", number=number, side=200)
    assert answer.status == 200
    assert answer.headers["x-frame"] == str(number)
    assert np.abs(shown(answer.body) - frames[number]).mean() < 3
    other = frames[(number + 11) % FRAMES]
    assert np.abs(shown(answer.body) - frames[number]).mean() < np.abs(shown(answer.body) - other).mean()


def test_hostile_names_travel_unharmed(client: Client) -> None:
    described = client.get("film", name=HOSTILE).json
    assert described["name"] == HOSTILE
    wish = {"film": HOSTILE, "preset": "quick", "settings": {"recording.fps": 10}, "out": described["out"]}
    words = shlex.split(client.post("plan", wish).json["command"])
    assert words[:3] == ["video2pde", "run", HOSTILE]
    assert client.get("frame", name=HOSTILE, number=1).status == 200


def test_a_film_that_is_replaced_while_it_is_shown_says_so(client: Client, folder: Path, frames: np.ndarray) -> None:
    np.save(folder / "changing.npy", frames)
    version = client.get("film", name="changing.npy").json["version"]
    assert client.get("frame", name="changing.npy", version=version, number=2).status == 200
    np.save(folder / "new.npy", 255 - frames)
    (folder / "new.npy").rename(folder / "changing.npy")
    answer = client.get("frame", name="changing.npy", version=version, number=2)
    assert answer.status == 409
    assert "replaced" in answer.json["error"]
    renewed = client.get("film", name="changing.npy").json["version"]
    answer = client.get("frame", name="changing.npy", version=renewed, number=2, side=200)
    assert np.abs(shown(answer.body) - (255.0 - frames[2])).mean() < 3
    (folder / "changing.npy").unlink()


def test_200_requests_at_a_time_are_all_answered(client: Client, frames: np.ndarray) -> None:
    def fetch(number: int) -> bool:
        answer = client.get("frame", name="plume.npy", number=number % FRAMES, side=200)
        return answer.status == 200 and bool(np.abs(shown(answer.body) - frames[number % FRAMES]).mean() < 3)

    with ThreadPoolExecutor(200) as pool:
        assert all(pool.map(fetch, range(200)))


def test_u_is_what_the_recording_stage_gives(client: Client, folder: Path) -> None:
    from video2pde.recording import read_field

    settings = {"recording.crop": [10, 5, 40, 30], "recording.fps": 10, "recording.unclip": False}
    answer = client.post("look", {"film": "plume.npy", "preset": "default", "settings": settings, "number": 12})
    told = json.loads(answer.headers["x-u"])
    levels = np.frombuffer(answer.body, np.uint8).reshape(told["ny"], told["nx"])
    u = told["low"] + (told["high"] - told["low"]) * levels / 255.0
    field = read_field(folder / "plume.npy", load_settings(overrides=settings))
    assert field.grid.shape == u.shape
    assert np.abs(u - field.values[12]).max() < 0.51 * (told["high"] - told["low"]) / 255 + 1e-6
    assert np.abs(u - field.values[20]).max() > 0.02


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"recording.crop": [4, 6, 40, 30], "recording.grid": [30, 40], "recording.scale": "0.05mm"},
        {"recording.start": 3, "recording.stop": 25, "recording.every": 2, "recording.observable": "bright"},
        {"recording.mask": "u>0.3@0", "recording.smooth": 0.5, "recording.fps": 12.5},
        {"calibration.replicates": 20, "rollout.levels": [0.1, 0.2], "refinement.enabled": False},
    ],
)
@pytest.mark.parametrize("film", ["plume.npy", "-dash.npy"])
def test_the_command_that_is_shown_has_the_settings_of_the_page(film: str, settings: dict[str, object]) -> None:
    """The words are read by the command line itself, and give the very settings that the page asked for."""
    from video2pde.cli.app import app

    wish = Wish.of({"film": film, "preset": "quick", "settings": settings, "out": "-out"})
    words = shlex.split(wish.command())
    assert words[0] == "video2pde"
    _, bound, *_ = app.parse_args(words[1:], exit_on_error=False, print_error=False)
    options = bound.arguments
    assert Path(str(bound.args[0])) == Path(film)
    assert options["out"] == Path("-out")
    assert options["settings"].load(options.get("recording")) == wish.settings


def test_bad_wishes_are_refused_with_the_key(client: Client) -> None:
    wish = {"film": "plume.npy", "preset": "quick", "out": "run"}
    for settings, word in (
        ({"recording.crop": [0, 0, 400, 400]}, "crop"),
        ({"recording.nothing": 1}, "nothing"),
        ({"recording.observable": "loud"}, "observable"),
    ):
        answer = client.post("plan", {**wish, "settings": settings})
        assert answer.status == 400
        assert word in answer.json["error"]
    assert client.post("plan", {**wish, "preset": "never", "settings": {}}).status == 400
    assert client.ask("POST", "/api/plan", b"{not json").status == 400
    assert client.ask("POST", "/api/plan", b"x" * 3_000_000).status == 400


def test_checks_are_those_of_the_recording_stage(client: Client) -> None:
    wish = {"film": "plume.npy", "preset": "quick", "settings": {"recording.fps": 10}}
    told = [json.loads(line) for line in client.post("checks", wish).body.splitlines()]
    result = told[-1]["result"]
    assert any("only 30 frames" in warning for warning in result["warnings"])
    assert result["frames"] == FRAMES
    assert result["player"]["kind"] == "player"
    assert len(result["films"]) == 1
    broken = client.post("checks", {**wish, "settings": {"recording.fps": 10, "recording.start": 29}})
    assert "at least two are needed" in json.loads(broken.body.splitlines()[-1])["error"]


def test_studies_are_listed_and_compared(tmp_path: Path) -> None:
    """A study is a card with its shared law; beside it are its films' runs; it stands in a comparison like a run."""
    make_study(tmp_path / "ink")
    make_study(tmp_path / "begun", finished=False)
    with serving(tmp_path) as client:
        client.enter()
        cards = {card["name"]: card for card in client.get("library").json["cards"]}
        found = client.get("compare", run=["ink", "begun"]).json["runs"]
        document = client.get("page", run="ink").json
        assert client.get("compare", run=["nothing"]).status == 400
    assert {name for name, card in cards.items() if card["kind"] == "study"} == {"ink", "begun"}
    assert {f"ink/films/{film}" for film in DIFFUSION} < cards.keys()
    ink = cards["ink"]["details"]
    assert (ink["verdict"], ink["one_law"], ink["finished"], ink["failed"]) == ("law", True, True, ["broken"])
    assert ink["terms"] == {"laplacian": {"value": 1.0, "low": 0.97, "high": 1.03}}
    assert ink["rrmse"] == 0.04
    assert cards["begun"]["details"]["verdict"] == "unfinished"
    assert [(run["kind"], run["name"]) for run in found] == [("study", "ink"), ("study", "begun")]
    assert found[0]["units"] == {"laplacian": "mm²/s"}
    assert "films-and-law" in [section["id"] for section in document["sections"]]


def test_a_folder_that_is_no_study_is_not_taken_for_one(tmp_path: Path) -> None:
    outside = make_study(tmp_path / "outside")
    folder = tmp_path / "open"
    linked = folder / "linked"
    (linked / "stages").mkdir(parents=True)
    (linked / "settings.toml").write_text("")
    (linked / "films").symlink_to(outside / "films")
    damaged = make_study(folder / "damaged")
    (damaged / "result.json").write_text('{"kind": "study", "selected": 3}')
    with serving(folder) as client:
        client.enter()
        cards = {card["name"]: card for card in client.get("library").json["cards"]}
    assert cards["linked"]["kind"] == "run"
    assert cards["damaged"]["details"]["verdict"] == "unreadable"
    assert not any(name.startswith("linked/") for name in cards)


def test_closing_the_studio_ends_a_check_that_is_under_way(tmp_path: Path) -> None:
    np.save(tmp_path / "long.npy", np.zeros((400, 200, 200), np.uint8))
    wish = {"film": "long.npy", "preset": "quick", "settings": {"recording.fps": 10}}
    before = set(psutil.Process().children())
    with ThreadPoolExecutor(1) as pool:
        with serving(tmp_path) as client:
            client.enter()
            asked = pool.submit(client.post, "checks", wish)
            end = time.monotonic() + 20
            while set(psutil.Process().children()) == before:
                assert time.monotonic() < end, "no check was started"
                time.sleep(0.02)
        assert set(psutil.Process().children()) <= before
        assert b"error" in asked.result(20).body


def test_a_dropped_file_is_whole_or_absent(client: Client, folder: Path) -> None:
    data = (folder / "plume.npy").read_bytes()
    before = sorted(path.name for path in folder.iterdir())
    answer = client.ask("PUT", f"/api/recordings?name={quote('../up <b>.npy')}", data)
    assert answer.status == 201
    name = answer.json["name"]
    assert name == "up <b>.npy"
    assert (folder / name).read_bytes() == data
    again = client.ask("PUT", f"/api/recordings?name={quote(name)}", data)
    assert again.json["name"] == "up <b>-2.npy"
    for path in (name, again.json["name"]):
        (folder / path).unlink()
    _send_half(client)
    end = time.monotonic() + 10
    while sorted(path.name for path in folder.iterdir()) != before:
        assert time.monotonic() < end, "half a file was left behind"
        time.sleep(0.05)


def _send_half(client: Client) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        host = f"127.0.0.1:{client.port}"
        head = f"PUT /api/recordings?name=half.npy HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
        connection.sendall(f"{head}Cookie: {client.cookie}\r\nContent-Length: 1000000\r\n\r\n".encode() + b"x" * 5000)
        time.sleep(0.2)


def test_more_than_the_disk_holds_is_refused_before_it_is_sent(client: Client) -> None:
    answer = client.ask("PUT", "/api/recordings?name=big.npy", None, {"Content-Length": str(10**16)})
    assert answer.status == 507
    assert "free" in answer.json["error"]


def test_a_disk_that_fills_up_on_the_way_leaves_nothing(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from video2pde.studio import upload

    before = sorted(path.name for path in folder.iterdir())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(upload.os, "link", full)
    answer = client.ask("PUT", "/api/recordings?name=full.npy", b"x" * 1000)
    assert answer.status == 507
    assert "full" in answer.json["error"]
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("name", ["run.sh", "report.html", "", "...", "x" * 250 + ".npy", "noname"])
def test_what_is_no_recording_is_not_kept(name: str) -> None:
    with pytest.raises(InputError):
        clean_name(name)


def test_a_mask_is_kept_as_a_plain_picture(client: Client, folder: Path) -> None:
    drawn = Image.new("RGBA", (WIDTH, HEIGHT), (0, 0, 0, 255))
    drawn.paste((255, 255, 255, 255), (10, 5, 40, 30))
    packed = io.BytesIO()
    drawn.save(packed, "PNG")
    answer = client.ask("PUT", "/api/mask?film=plume.npy", packed.getvalue())
    assert answer.json["name"] == "plume-mask.png"
    kept = np.asarray(Image.open(folder / "plume-mask.png"))
    assert kept.shape == (HEIGHT, WIDTH)
    assert set(np.unique(kept)) == {0, 255}
    assert (kept == 255).mean() == pytest.approx(30 * 25 / (WIDTH * HEIGHT))
    assert client.ask("PUT", "/api/mask?film=plume.npy", b"no picture").status == 400
    (folder / "plume-mask.png").unlink()


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


def test_the_log_tells_how_a_run_stands(tmp_path: Path) -> None:
    stamp = "2026-01-01 00:00:00,000"
    lines = [
        "INFO    video2pde 0.1.0, process 1",
        "INFO    recording: film to field",
        "ERROR   stopped by X: old",
        "INFO    video2pde 0.1.0, process 12",
        "INFO    recording: film to field",
        "INFO    recording: taken from the run folder (it took 1.5 s)",
        "INFO    drift: background, centroid, drift",
        "INFO    drift: done in 0.3 s",
        "INFO    refinement: inverse PINN",
        "INFO    refinement: 100 of 1000 after 6 s, about 54 s left, C: grad_squared 8.5, laplacian 0.6",
        "INFO    refinement: 200 of 1000 after 12 s, about 48 s left, C: grad_squared 9, laplacian 6e-01",
        "WARNING the camera shakes",
        "DEBUG   replicates of C (grad_squared, laplacian): 9.01 0.6; 8.9 7e-01",
        "DEBUG   replicates of C (grad_squared, laplacian): nan 0.6; 9.2 0.55",
        "DEBUG   replicates of A (laplacian): 0.61",
    ]
    (tmp_path / "log.txt").write_text("\n".join(f"{stamp} {line}" for line in lines))
    state = read_state(tmp_path)
    by_name = {stage.name: stage for stage in state.stages}
    assert (by_name["recording"].state, by_name["recording"].seconds) == ("cached", 1.5)
    assert (by_name["drift"].state, by_name["drift"].seconds) == ("done", 0.3)
    refining = by_name["refinement"]
    assert (refining.state, refining.done, refining.total, refining.left) == ("running", 200, 1000, 48.0)
    assert state.figures == {
        "C: grad_squared": [[100.0, 8.5], [200.0, 9.0]],
        "C: laplacian": [[100.0, 0.6], [200.0, 0.6]],
    }
    clouds = {cloud.library: (cloud.terms, cloud.draws) for cloud in state.clouds}
    assert clouds == {
        "C": (["grad_squared", "laplacian"], [[9.01, 0.6], [8.9, 0.7], [9.2, 0.55]]),
        "A": (["laplacian"], [[0.61]]),
    }
    assert not any("replicates" in line for line in state.lines)
    assert state.warnings == ["the camera shakes"]
    assert state.stopped == ""
    assert by_name["test"].state == "waiting"


def test_a_report_gives_data_and_no_script(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(
        '<script>alert(1)</script><script type="application/json" id="document">{"head": {}, "sections": []}</script>'
        '<script type="text/plain" id="film-0">AAAA</script><script type="text/plain" id="film-1"><b></script>'
    )
    data = read_page(page)
    assert json.loads(data.document) == {"head": {}, "sections": []}
    assert data.films == {0: b"AAAA"}
    page.write_text("<p>something else</p>")
    with pytest.raises(InputError, match="not a report"):
        read_page(page)


def test_the_command_refuses_what_it_cannot_open(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    from video2pde.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for words, said in ((["nowhere"], "cannot open"), (["file.txt"], "folder"), ([".", "--port", port], "--port")):
            assert main(["studio", *words, "--no-browser"]) == 2
            assert said in capfd.readouterr().err


def test_jobs_wait_stop_and_are_found_again(folder: Path) -> None:
    wish = {"film": "plume.npy", "preset": "quick", "settings": {"recording.fps": 10}}
    with serving(folder) as client:
        client.enter()
        first = client.post("jobs", {**wish, "out": "one"}).json["id"]
        second = client.post("jobs", {**wish, "out": "two"}).json["id"]
        assert client.post("jobs", {**wish, "out": "two"}).status == 400
        assert _jobs(folder)[first].state == "running"
        assert _jobs(folder)[second].state == "waiting"
        assert client.post(f"jobs/{second}/stop", {}).status == 200
        assert client.post(f"jobs/{first}/stop", {}).status == 200
        end = time.monotonic() + 30
        while _jobs(folder)[first].state == "stopping":
            assert time.monotonic() < end, "the run was not stopped"
            time.sleep(0.1)
        assert _jobs(folder)[first].state == "stopped"
        assert client.post(f"jobs/{first}/nonsense", {}).status == 400
        assert client.post(f"jobs/{second}/remove", {}).status == 200
    with serving(folder) as client:
        client.enter()
        assert set(_jobs(folder)) == {first}
        assert client.post(f"jobs/{first}/remove", {}).status == 200
    assert threading.active_count() < 60


def _jobs(folder: Path) -> dict[str, Job]:
    entries = json.loads((folder / ".video2pde-studio" / "jobs.json").read_text())
    return {entry["id"]: Job(**{**entry, "arguments": tuple(entry["arguments"])}) for entry in entries}
