"""Known-truth films: what is encoded is the true field, and ``truth.json`` says how it was made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.recording.synth import Camera, DEMO_CAMERA, DEMO_CASE, exact_field, make_case, PRESETS, render_film

SMALL = Camera(size=(240, 320), frames=25)


def average(count: int, pixels: int) -> np.ndarray:
    """Return the area-averaging matrix from ``pixels`` to ``count`` cells."""
    edges = np.linspace(0, pixels, count + 1)
    pixel = np.arange(pixels)
    overlap = np.minimum(pixel + 1, edges[1:, None]) - np.maximum(pixel, edges[:-1, None])
    return np.clip(overlap, 0, 1) * count / pixels


def decode(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return raw luma codes (t, y, x) and presentation times."""
    pictures, times = [], []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            plane = frame.planes[0]
            rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            pictures.append(rows[:, : plane.width].copy())
            times.append(frame.time)
    return np.array(pictures), np.array(times)


def read_field(path: Path, camera: Camera) -> np.ndarray:
    """Reduce a film to its field: limited range, crop, border, inversion, area averaging."""
    luma, _ = decode(path)
    x0, y0, w, h = camera.window
    b = camera.margin
    grid = camera.grid()
    u = 1 - (luma[:, y0 + b : y0 + h - b, x0 + b : x0 + w - b].astype(float) - 16) / 219
    return average(grid.ny, u.shape[1]) @ u @ average(grid.nx, u.shape[2]).T


def find_error(case, camera: Camera, folder: Path) -> tuple[float, float]:
    film = render_film(case, folder, camera)
    difference = read_field(film, camera) - exact_field(case, camera.grid(), camera.times(case)).values
    return float(np.sqrt((difference**2).mean())), float(abs(difference.mean()))


@pytest.mark.parametrize("name", ["A", "B", "C", "C-alt", "Fisher", "drift"])
def test_small_film_decodes_to_its_field(name: str, tmp_path: Path) -> None:
    rms, _ = find_error(PRESETS[name], SMALL, tmp_path)
    assert rms < 0.003


def test_full_size_film_decodes_to_its_field(tmp_path: Path) -> None:
    camera = Camera(frames=8)
    assert camera.window == (450, 0, 1080, 1080)
    assert camera.grid().shape == (200, 200)
    assert camera.grid().width == 200.0
    rms, mean = find_error(PRESETS["C"], camera, tmp_path)
    assert rms < 0.003
    assert mean < 0.001


def test_comparison_rejects_a_film_shifted_by_half_a_cell_or_read_in_full_range(tmp_path: Path) -> None:
    case = PRESETS["C"]
    film = render_film(case, tmp_path, SMALL)
    truth = exact_field(case, SMALL.grid(), SMALL.times(case)).values
    found = read_field(film, SMALL)
    moved = (found[:, :, 1:] + found[:, :, :-1]) / 2
    assert np.sqrt(((moved - truth[:, :, 1:]) ** 2).mean()) > 0.003
    full_range = 1 - (16 + 219 * (1 - found)) / 255
    assert np.sqrt(((full_range - truth) ** 2).mean()) > 0.003


def test_film_is_tagged_limited_range_with_exact_times(tmp_path: Path) -> None:
    case = PRESETS["A"]
    film = render_film(case, tmp_path, SMALL)
    with av.open(str(film)) as container:
        context = container.streams.video[0].codec_context
        assert (context.name, context.pix_fmt, context.color_range) == ("h264", "yuv420p", 1)
    luma, times = decode(film)
    assert luma.shape == (25, 240, 320)
    assert times == pytest.approx(SMALL.times(case), abs=1e-4)
    assert times[-1] == pytest.approx(34.0, abs=1e-4)
    assert luma.min() >= 16
    assert luma.max() <= 235


def test_frame_rate_can_be_given(tmp_path: Path) -> None:
    case = make_case("A", duration=3.0)
    film = render_film(case, tmp_path, Camera(size=(64, 64), fps=29.97))
    _, times = decode(film)
    assert len(times) == 90
    assert np.diff(times) == pytest.approx(np.full(89, 1 / 29.97), abs=2e-4)


@pytest.mark.parametrize("container", ["mkv", "mov"])
def test_other_containers(container: str, tmp_path: Path) -> None:
    film = render_film(PRESETS["A"], tmp_path, Camera(size=(64, 96), frames=5, container=container))
    assert film.name == f"film.{container}"
    assert len(decode(film)[0]) == 5


def test_truth_states_law_and_camera(tmp_path: Path) -> None:
    case = make_case("C", coefficients={"grad_squared": 6.2}, background=0.12, drift=(0.22, -0.12), seed=21)
    camera = Camera(size=(64, 96), frames=5, noise=0.02, crf=23, seed=4, flicker=0.01, vignetting=0.1)
    render_film(case, tmp_path, camera)
    truth = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    assert truth["law"] == {"grad_squared": 6.2, "laplacian": 0.666}
    short = {"a": 6.2, "a2": 0.0, "b": 0.666, "r": 0.0, "q": 0.0, "bg": 0.12, "v": [0.22, -0.12], "seed": 21}
    assert {key: truth[key] for key in short} == short
    assert truth["drift"] == {"mean": [0.22, -0.12], "swing": 0.4, "period": 34.0}
    given = {"case": "C", "frames": 5, "duration": 34.0, "noise": 0.02, "crf": 23, "camera_seed": 4}
    assert {key: truth[key] for key in given} == given
    assert (truth["size"], truth["crop"], truth["border"]) == ([64, 96], [0, 0, 96, 64], 0)
    assert truth["extent"] == pytest.approx([400 / 3, 200.0])
    assert truth["equation"] == "u_t = −v(t)·∇u + 6.2 |∇u|² + 0.666 Δu"


def test_fisher_truth_gives_q_as_a_loss() -> None:
    assert PRESETS["Fisher"].truth["q"] == 0.16
    assert PRESETS["Fisher"].law.u_squared == -0.16


def test_camera_noise_has_its_level_and_follows_its_seed(tmp_path: Path) -> None:
    camera = Camera(size=(128, 128), frames=6, crf=0, seed=3)
    luma = [
        decode(render_film(PRESETS["noise"], tmp_path / str(seed), replace(camera, seed=seed)))[0] for seed in (3, 4)
    ]
    again = decode(render_film(PRESETS["noise"], tmp_path / "again", camera))[0]
    assert luma[0].std() / 219 == pytest.approx(0.02, rel=0.03)
    assert (luma[0].mean() - 16) / 219 == pytest.approx(0.7, abs=5e-4)
    assert np.array_equal(luma[0], again)
    assert not np.array_equal(luma[0], luma[1])
    between = np.corrcoef(luma[0][0].ravel(), luma[0][1].ravel())[0, 1]
    assert abs(between) < 0.05


def test_static_case_does_not_move(tmp_path: Path) -> None:
    luma, _ = decode(render_film(PRESETS["static"], tmp_path, Camera(size=(128, 128), frames=6, crf=0)))
    change = (luma[-1].astype(float) - luma[0]) / 219
    assert 0.001 < change.std() < 0.005
    assert luma[0].std() / 219 > 0.05


def test_flicker_and_vignetting_act_on_light(tmp_path: Path) -> None:
    case = make_case("noise", background=0.3)
    camera = Camera(size=(128, 192), frames=12, crf=0, noise=0.0, flicker=0.03, vignetting=0.4)
    light = (decode(render_film(case, tmp_path, camera))[0].astype(float) - 16) / 219
    centre = light[:, 60:68, 92:100].mean(axis=(1, 2))
    assert 0.01 < centre.std() / 0.7 < 0.06
    assert light[:, 0, 0] / centre == pytest.approx(np.full(12, 0.6), abs=0.02)
    still = decode(render_film(case, tmp_path, replace(camera, flicker=0.0, vignetting=0.0)))[0]
    assert np.ptp(still) == 0


def test_progress_counts_every_frame(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    render_film(
        PRESETS["A"], tmp_path, Camera(size=(64, 64), frames=4), lambda done, total: calls.append((done, total))
    )
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_interrupted_film_leaves_nothing(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt(total)

    with pytest.raises(KeyboardInterrupt):
        render_film(PRESETS["A"], tmp_path, Camera(size=(64, 64), frames=6), stop)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot make the folder"):
        render_film(PRESETS["A"], tmp_path / "file" / "out", SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (241, 320)}, "even"),
        ({"size": (64, 64), "crop": (10, 0, 60, 64)}, "leaves the picture"),
        ({"size": (64, 64), "border": 30}, "border 30"),
        ({"frames": 1}, "from 2 to"),
        ({"fps": 0.0}, "frames a second"),
        ({"noise": -0.1}, "noise"),
        ({"vignetting": 1.5}, "vignetting"),
        ({"crf": 60}, "crf"),
        ({"container": "gif"}, "container"),
    ],
)
def test_impossible_camera_is_refused(options, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Camera(**options)


def test_demo_is_small_and_known() -> None:
    assert DEMO_CASE.law.is_cole_hopf
    assert DEMO_CAMERA.size == (480, 640)
    assert 200 <= DEMO_CAMERA.count(DEMO_CASE) <= 300
    assert DEMO_CAMERA.border is None
    assert DEMO_CAMERA.margin == 8
