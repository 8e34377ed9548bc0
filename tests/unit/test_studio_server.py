"""What the studio's server answers: the library, frames, u, plans, checks; to many at once, and to hostile names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from studio_server import Client, serving, shown

from video2pde.settings import load_settings
from video2pde.studio.prepare import Wish

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
