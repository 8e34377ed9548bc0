"""Lack of fit: noise measured apart from any law, and a law that leaves more than noise is called an approximation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from video2pde.calibration.window import noise_variance, Window
from video2pde.caveats import judge_fit
from video2pde.field import Grid


def window(noise: float, frames: int = 60) -> Window:
    """Return frames of a smooth change with noise; one of them flashes."""
    times = np.arange(frames) / 10
    smooth = np.sin(0.3 * times)[:, None, None] * np.linspace(0, 1, 32)[None, :, None] * np.ones(32)
    values = smooth + noise * np.random.default_rng(2).standard_normal(smooth.shape)
    values[frames // 2] += 0.5
    return Window(values.astype(np.float32), times, Grid(32, 32, 200.0, 200.0), np.ones((32, 32)))


@pytest.mark.parametrize("noise", [0.005, 0.02])
def test_noise_is_measured_apart_from_smooth_change_and_a_flash(noise: float) -> None:
    assert noise_variance(window(noise)) ** 0.5 == pytest.approx(noise, rel=0.05)


def test_too_few_frames_show_no_noise() -> None:
    assert noise_variance(window(0.01, frames=2)) == 0.0


def test_a_law_that_leaves_more_than_noise_or_predicts_nothing_is_called_so() -> None:
    good: Any = SimpleNamespace(library="C", misfit=1.4)
    poor: Any = SimpleNamespace(library="C", misfit=100.0)
    skilled: Any = SimpleNamespace(skill=0.9, coarse_skill=0.9)
    useless: Any = SimpleNamespace(skill=0.03, coarse_skill=0.03)
    assert judge_fit(good, skilled) == ()
    assert judge_fit(good, None) == ()
    (text,) = judge_fit(poor, skilled)
    assert "10 times the camera's noise" in text
    assert "approximation" in text
    (text,) = judge_fit(good, useless)
    assert "removes 3% of the squared error" in text
