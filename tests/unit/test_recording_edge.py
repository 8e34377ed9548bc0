"""The faint edge of a plume, which 8 bits round away: continued as it falls off, and only on films without noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from video2pde.recording import read_field
from video2pde.recording.edge import restore_edge
from video2pde.recording.synth import Camera, make_case, render_film
from video2pde.settings import load_settings

LEVEL = 1 / 219
Profile = Callable[[NDArray[np.float64]], NDArray[np.float64]]
PROFILES: dict[str, Profile] = {
    "gaussian": lambda r: 0.6 * np.exp(-(r**2) / (2 * 0.08**2)),
    "exponential": lambda r: 0.6 * np.exp(-(np.sqrt(r**2 + 0.01) - 0.1) / 0.04),
    "ring": lambda r: 0.5 * np.exp(-((r - 0.25) ** 2) / (2 * 0.03**2)),
}


def picture(
    profile: Profile, cells: int = 100, pixels: int = 5, noise: float = 0.0, cut: float = 0.0, frames: int = 3
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return what a camera of 8 bits reads in each cell of some frames, and the truth.

    ``pixels``: to a cell and side; ``cut``: what overexposure takes off.
    """
    axis = (np.arange(cells * pixels) + 0.5) / (cells * pixels) - 0.5
    truth = profile(np.hypot(axis[:, None], axis))
    noisy = truth + noise * np.random.default_rng(2).standard_normal((frames, *truth.shape))
    read = np.clip(np.round((noisy - cut) / LEVEL) * LEVEL, 0, 1)

    def average(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(values.reshape(-1, cells, pixels, cells, pixels).mean(axis=(2, 4)))

    return average(read).astype(np.float32), average(truth)[0]


@pytest.mark.parametrize("pixels", [1, 5])
@pytest.mark.parametrize("name", PROFILES)
def test_the_edge_comes_back(name: str, pixels: int) -> None:
    seen, truth = picture(PROFILES[name], pixels=pixels)
    mended = seen.copy()
    assert restore_edge(mended, LEVEL) == 3
    lost = (truth > 0.05 * LEVEL) & (truth < 0.5 * LEVEL)
    before, after = (float((values[0] - truth)[lost].mean()) / LEVEL for values in (seen, mended))
    assert before < -0.14
    assert abs(after) < (0.06 if pixels == 5 else 0.1)
    assert spread(mended[0] - truth, lost) < 0.7 * spread(seen[0] - truth, lost)
    faint = truth < 1.5 * LEVEL  # a steep edge is read as well as continued, within a twentieth of a level
    assert spread(mended[0] - truth, faint) < max(0.7 * spread(seen[0] - truth, faint), 0.06 * LEVEL)


def spread(error: NDArray[np.float64], where: NDArray[np.bool_]) -> float:
    return float(np.sqrt(np.mean(error[where] ** 2)))


def test_nothing_contradicts_the_film() -> None:
    seen, _ = picture(PROFILES["gaussian"])
    mended = seen.copy()
    restore_edge(mended, LEVEL)
    assert np.abs(mended - seen).max() <= LEVEL / 2 + 1e-7
    assert mended.min() >= 0
    bright = seen >= 1.5 * LEVEL
    np.testing.assert_array_equal(mended[bright], seen[bright])


def test_a_sharp_edge_gets_no_tail() -> None:
    """Little is added but in the cells right at it, which may hold half a level, and next to nothing further on."""
    seen, truth = picture(lambda r: np.where(r < 0.25, 0.6, 0.0))
    mended = seen.copy()
    restore_edge(mended, LEVEL)
    added = [mended[0][~binary_dilation(truth > 0, iterations=cells)].max() / LEVEL for cells in (1, 2)]
    assert added[0] < 0.35
    assert added[1] < 0.1


@pytest.mark.parametrize(
    ("profile", "noise"),
    [
        (PROFILES["gaussian"], 0.01),
        (lambda r: 0.1 + PROFILES["gaussian"](r), 0.0),
        (lambda r: np.zeros_like(r), 0.0),
        (lambda r: 0.01 * PROFILES["gaussian"](r), 0.0),
        (lambda r: 0.3 * PROFILES["gaussian"](r), 0.0),
    ],
    ids=["noise", "a background", "nothing at all", "below the contours", "below one of them"],
)
def test_other_pictures_are_left_alone(profile: Profile, noise: float) -> None:
    seen, _ = picture(profile, noise=noise)
    mended = seen.copy()
    assert restore_edge(mended, LEVEL) == 0
    np.testing.assert_array_equal(mended, seen)


def test_an_overexposed_background_is_not_taken_for_a_film_without_noise() -> None:
    seen, _ = picture(PROFILES["gaussian"], noise=0.01, cut=0.06, frames=12)
    assert np.mean(seen == 0) > 0.2
    assert restore_edge(seen, LEVEL) == 0


def test_a_faint_plume_beside_a_strong_one_is_left_alone() -> None:
    """Its edge would be continued along the way to the strong one."""
    strong, truth = picture(lambda r: 0.6 * np.exp(-(r**2) / (2 * 0.04**2)))
    y, x = np.mgrid[:100, :100]
    faint = 10 * LEVEL * np.exp(-((x - 80) ** 2 + (y - 80) ** 2) / (2 * 4**2))
    seen = strong + (np.round(faint / LEVEL) * LEVEL).astype(np.float32)
    mended = seen.copy()
    assert restore_edge(mended, LEVEL) == 3
    assert np.abs(mended[0, 65:, 65:] - seen[0, 65:, 65:]).max() < 0.01 * LEVEL
    around = (truth > 0.05 * LEVEL) & (truth < 0.5 * LEVEL)
    assert spread(mended[0] - truth, around) < 0.7 * spread(seen[0] - truth, around)


def test_a_fading_plume_loses_its_restored_edge_little_by_little() -> None:
    changes = []
    for peak in np.linspace(45, 110, 40):
        seen, _ = picture(lambda r, peak=peak: peak * LEVEL * np.exp(-(r**2) / (2 * 0.08**2)))  # type: ignore[misc]
        mended = seen.copy()
        restore_edge(mended, LEVEL)
        changes.append(float(np.abs(mended - seen)[0].sum() / LEVEL))
    assert changes[0] == 0
    assert np.abs(np.diff(changes)).max() < 0.2 * max(changes)


def test_a_film_says_that_its_edge_was_continued(tmp_path: Path) -> None:
    film = render_film(make_case("Fisher"), tmp_path, Camera(size=(240, 240), frames=60, crf=0))
    mended = read_field(film)
    assert any("continued outwards" in note for note in mended.provenance.notes)
    plain = read_field(film, load_settings(overrides={"recording.unclip": False}))
    assert not any("continued outwards" in note for note in plain.provenance.notes)
    assert 0 < np.abs(mended.values - plain.values).max() <= LEVEL / 2 + 1e-6
