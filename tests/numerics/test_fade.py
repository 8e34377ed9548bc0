"""A film that fades to black is refused with where to cut it; ink that darkens the whole picture is not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.recording import read_recording
from video2pde.recording.synth import exact_field, make_case
from video2pde.settings import load_settings

COUNT = 60
GRID = Grid(40, 40, 200.0, 200.0)
SETTINGS = load_settings(overrides={"recording.fps": 3.0})


def ink(name: str, duration: float | None = None) -> NDArray[np.float32]:
    case = make_case(name)
    return exact_field(case, GRID, np.linspace(0, duration or case.duration, COUNT)).values


def filmed(u: NDArray[np.float32], light: NDArray[np.float64], path: Path, noise: float = 1.0) -> Path:
    """Film 1 − u under a light that changes, in 8 bits."""
    rng = np.random.default_rng(0)
    levels = 250 * (1 - u) * light[:, None, None] + rng.normal(0, noise, u.shape)
    np.save(path, np.clip(levels, 0, 255).round().astype(np.uint8))
    return path


def fade(first: int, last: int) -> NDArray[np.float64]:
    return np.interp(np.arange(COUNT), [first, last], [1.0, 0.0])


@pytest.mark.parametrize("name", ["A", "C", "Fisher", "static"])
@pytest.mark.parametrize(("first", "last"), [(40, 55), (30, 59), (50, 54), (44, 45)])
def test_a_fade_to_black_is_refused_with_where_to_cut(name: str, first: int, last: int, tmp_path: Path) -> None:
    film = filmed(ink(name), fade(first, last), tmp_path / "film.npy")
    with pytest.raises(InputError, match=r"fades to black after frame (\d+).*--stop (\d+)") as caught:
        read_recording(film, SETTINGS)
    stop = int(re.search(r"--stop (\d+)", str(caught.value))[1])  # type: ignore[index]
    assert first - 2 <= stop <= first + 0.3 * (last - first) + 2
    cut = SETTINGS.recording.model_copy(update={"stop": stop})
    assert len(read_recording(film, cut).field) == stop


def test_a_fade_out_of_black_is_refused_too(tmp_path: Path) -> None:
    film = filmed(ink("C"), fade(40, 55)[::-1], tmp_path / "film.npy")
    with pytest.raises(InputError, match=r"out of black until frame 1\d.*--start 1\d"):
        read_recording(film, SETTINGS)


@pytest.mark.parametrize("name", ["A", "B", "C", "C-alt", "Fisher", "noise", "static"])
def test_films_of_known_laws_are_no_fades(name: str, tmp_path: Path) -> None:
    read_recording(filmed(ink(name), np.ones(COUNT), tmp_path / "film.npy"), SETTINGS)


@pytest.mark.parametrize("height", [0.3, 0.9])
def test_ink_that_grows_until_all_is_dark_is_no_fade(height: float, tmp_path: Path) -> None:
    """u_t = r u (1 − u) from a plume in clear water: in the end no light is left either."""
    x = np.linspace(-1, 1, 40)
    start = 0.001 + height * np.exp(-(x[None] ** 2 + x[:, None] ** 2) / 0.3)
    growth = np.exp(np.linspace(0, 11, COUNT))[:, None, None]
    u = start * growth / (1 + start * (growth - 1))
    film = filmed(u.astype(np.float32), np.ones(COUNT), tmp_path / "film.npy")
    values = np.load(film)
    assert np.percentile(values[-1], 90) < 0.1 * np.percentile(values[0], 90)
    read_recording(film, SETTINGS)


def test_a_pause_is_told_and_no_frame_is_invented(tmp_path: Path) -> None:
    times = np.linspace(0, 20, COUNT)
    times[30:] += 4000
    np.savez(tmp_path / "film.npz", frames=1 - ink("C"), times=times)
    result = read_recording(tmp_path / "film.npz")
    assert len(result.field) == COUNT
    assert any("a pause of 4000 s after frame 29" in line for line in result.warnings)
