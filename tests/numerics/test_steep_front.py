"""A front that passes within a frame is no noise: Burgers' shock, with the weak stage's default settings."""

from __future__ import annotations

import numpy as np
import pytest

from video2pde.discovery import weak_system
from video2pde.discovery.jets import FilmJets
from video2pde.discovery.regression import fit_library
from video2pde.drift import no_drift
from video2pde.field import Field, Grid
from video2pde.recording.synth import noisy
from video2pde.settings import load_settings

SIZE, FRAMES, HALF = 100, 80, 4.0
SETTINGS = load_settings(
    overrides={
        "terms": {
            "into_x": [{"derivative": "x", "density": "u**2"}],
            "into_y": [{"derivative": "y", "density": "u**2"}],
        },
        "libraries": {"waves": ["into_x", "into_y"]},
        "drift.law_correction": False,
    }
)


def make_shock(angle: float = 0.6) -> Field:
    """Sample triangular waves of u_t + (u²/2)_s = 0 along s, whose height differs across s."""
    grid = Grid(SIZE, SIZE, 2 * HALF, 2 * HALF, pitch="nodes")
    x, y = np.meshgrid(grid.x - HALF, grid.y - HALF)
    along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    ends = -2.0 + np.sqrt(2 * (0.2 + np.exp(-(across**2) / 2)))
    times = np.linspace(0.5, 4.0, FRAMES)
    frames = [np.where((along > -2) & (along < -2 + (ends + 2) * np.sqrt(t)), (along + 2) / t, 0.0) for t in times]
    return Field(np.stack(frames).astype(np.float32), times, grid)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_a_shock_is_not_taken_for_noise(noise: float) -> None:
    angle = 0.6
    clean = make_shock(angle)
    film = noisy(clean, noise, 3) if noise else clean
    system = weak_system(film, no_drift(film), SETTINGS, len(film)).system
    found = fit_library("waves", ("into_x", "into_y"), system, SETTINGS.regression).coefficients
    assert found["into_x"] == pytest.approx(-0.5 * np.cos(angle), rel=0.006)
    assert found["into_y"] == pytest.approx(-0.5 * np.sin(angle), rel=0.006)


def test_noise_beside_a_shock_is_still_measured() -> None:
    film = noisy(make_shock(), 0.02, 5)
    jets = FilmJets(film, SETTINGS.weak)
    assert jets.limits is not None
    _, noise = jets(slice(0, len(film)))
    assert noise is not None
    assert np.std(noise[0]) == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_noise_alone_has_no_front(level: float) -> None:
    grid = Grid(64, 64, 64.0, 64.0)
    plume = np.exp(-((grid.x[:, None] - 30) ** 2 + (grid.y[None] - 34) ** 2) / 200)
    still = Field(np.repeat(plume[None].astype(np.float32), 20, axis=0), np.arange(20.0), grid)
    jets = FilmJets(noisy(still, level, 1), SETTINGS.weak)
    assert jets.limits is None
    assert jets.noise > 0.01
