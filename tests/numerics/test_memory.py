"""Memory: what a stage holds stays below a multiple of the field, and little memory changes no digit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibration_problems import pose, SETTINGS
from known_fields import known_field

from video2pde.calibration.bootstrap import Bootstrap, bootstrap_fit
from video2pde.calibration.fit import Fit, fit_rollout
from video2pde.calibration.growth import share_start
from video2pde.calibration.problem import Problem
from video2pde.discovery import weak_system
from video2pde.discovery.identifiability import draw_runs
from video2pde.discovery.weak import WeakColumns
from video2pde.drift import estimate_drift
from video2pde.field import Field, Windows
from video2pde.recording.synth import noisy
from video2pde.rollout.model import Model
from video2pde.rollout.validate import validate
from video2pde.room import empty, limited, watched

OPTIONS = SETTINGS.calibration.model_copy(update={"replicates": 10})


def peak_of(work: Callable[[], object]) -> float:
    """Return the most bytes that a piece of work held beyond what was there, NumPy's and those of ``room``.

    What the work compiles would count, too: do it before, on something small.
    """
    with watched() as room_taken:
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1] + room_taken()
        finally:
            tracemalloc.stop()


Posed = tuple[Problem, Fit]
LONG, SHORT, SIDE = 1200, 400, 40


def growth_of(work: Callable[[Any], object], films: Mapping[int, Any]) -> float:
    """Return by how much the peak grows with the film, in units of the field: what a few frames take falls out."""
    work(films[SHORT])  # compiles
    peaks = {frames: peak_of(lambda film=film: work(film)) for frames, film in films.items()}  # type: ignore[misc]
    return (peaks[LONG] - peaks[SHORT]) / (4 * SIDE**2 * (LONG - SHORT))


@pytest.fixture(scope="module")
def films() -> dict[int, Field]:
    return {frames: noisy(known_field("C", SIDE, frames), 0.01, 3) for frames in (SHORT, LONG)}


@pytest.fixture(scope="module")
def posed(films: dict[int, Field]) -> dict[int, Posed]:
    posed = {}
    for frames, film in films.items():
        problem, guess = pose(film, "C")
        posed[frames] = problem, fit_rollout(problem, guess, OPTIONS)
    return posed


def test_the_measure_sees_copies_of_both_kinds(films: dict[int, Field]) -> None:
    def copies(film: Field) -> object:
        return film.values.astype(float), np.copyto(empty(film.values.shape, np.float32), 1.0)

    assert growth_of(copies, films) == pytest.approx(3.0, abs=0.1)


def test_discovery(films: dict[int, Field], monkeypatch: pytest.MonkeyPatch) -> None:
    """The weak system of all libraries and its random centres: with the field itself, less than four fields."""
    monkeypatch.setattr("video2pde.discovery.filtered.LEAST_KEPT", 0)

    def discover(film: Field) -> None:
        windows = Windows.split(len(film))
        train, drift = film.frames(windows.train), estimate_drift(film).frames(windows.train)
        draw_runs(weak_system(train, drift, SETTINGS, len(film)).columns, SETTINGS)

    assert growth_of(discover, films) < 3.0


def test_the_bootstrap_keeps_no_pictures(posed: dict[int, Posed]) -> None:
    """Two sets of residuals, each of the training window; the pictures of the Jacobian alone would be four fields."""
    assert growth_of(lambda given: bootstrap_fit(*given, OPTIONS), posed) < 1.5


def test_a_growing_law_keeps_no_rollout(posed: dict[int, Posed]) -> None:
    assert growth_of(lambda given: share_start(*given), posed) < 0.3


def test_validation(films: dict[int, Field]) -> None:
    """Four rollouts of a fifth of the film at a time, however many models there are."""
    models = {f"{k}": Model.of({"laplacian": 0.1 * k}) for k in range(1, 5)}

    def score(film: Field) -> None:
        window = film.frames(Windows.split(len(film)).validation)
        validate(window, models, np.zeros((len(window), 2)))

    assert growth_of(score, films) < 1.0


# ------------------------------------------------------------------------------------- little memory, same numbers


def test_filtered_frames_in_parts_are_the_same_to_the_bit(
    films: dict[int, Field], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = films[SHORT].frames(slice(0, 120))
    drift = estimate_drift(train)
    whole = weak_system(train, drift, SETTINGS, 200)
    assert whole.columns.filtered.values is not None

    def again(most: int) -> WeakColumns:
        monkeypatch.setattr("video2pde.discovery.weak.most_kept", lambda _: most)
        return weak_system(train, drift, SETTINGS, 200).columns

    slot = whole.columns.filtered.values[0].nbytes
    for most, least_parts in ((3 * slot, 3), (slot // 3, 20)):
        columns = again(most)
        assert len(list(columns.filtered.parts())) >= least_parts
        assert max(values.nbytes for _, _, values in columns.filtered.parts()) <= most
        found = columns.sample(whole.system.centres)
        np.testing.assert_array_equal(found.theta, whole.system.theta)
        np.testing.assert_array_equal(found.b, whole.system.b)
        place = np.array([0, 5, 11]), np.array([3, 0, 2])
        np.testing.assert_array_equal(columns.filtered.at(*place), whole.columns.filtered.at(*place))


def test_files_instead_of_memory_change_no_digit(
    posed: dict[int, Posed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("video2pde.room.SMALL", 1)

    def refit() -> Bootstrap:
        return bootstrap_fit(*posed[SHORT], OPTIONS)

    plain = refit()
    with limited(1, tmp_path), watched() as taken:
        mapped = refit()
        assert taken() == 0
    np.testing.assert_array_equal(mapped.draws, plain.draws)
    np.testing.assert_array_equal(mapped.offset, plain.offset)
