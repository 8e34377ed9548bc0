"""The peers of the benchmarks: how a line is judged, and that the plain version of the paper does what it says."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.peers import describe, make_peer_case, measure_memory, Outcome
from benchmarks.support import plain
from benchmarks.support.tasks import Given, Task
from numpy.typing import NDArray

from video2pde.field import Grid
from video2pde.recording.synth import exact_field, noisy

TRUTH = {"a": 2.0}


def task(structure_given: bool = False) -> Task:
    return Task("t", "T", lambda _: NotImplemented, given="the drift", structure_given=structure_given)


@pytest.mark.parametrize(
    ("found", "given", "remark", "structure"),
    [
        ({"a": 2.1}, False, "", "right"),
        ({"a": 2.1, "b": 1.0}, False, "", "wrong"),
        ({"a": 2.1, "b": 1.0}, False, "ambiguous", "wrong (ambiguous)"),
        ({"a": 2.1}, True, "", "given"),
    ],
)
def test_a_line_says_how_far_off_and_whether_the_terms_are_right(
    found: dict[str, float], given: bool, remark: str, structure: str
) -> None:
    row = describe(task(given), Outcome(1.5, 20.0, found, TRUTH, remark))
    assert row["error (%)"] == pytest.approx(5.0)
    assert row["structure"] == structure
    assert row["given"] == "the drift"


def test_a_peer_that_failed_says_why() -> None:
    row = describe(task(), Outcome(float("nan"), float("nan"), {}, {}, failure="not installed: x"))
    assert row["structure"] == "not installed: x"
    assert row["error (%)"] == "—"


def test_memory_grows_with_what_is_held() -> None:
    before, _ = measure_memory()
    held = np.ones(2**23)  # 64 MiB
    now, peak = measure_memory()
    if np.isnan(before):
        pytest.skip("this system does not tell a process its memory")
    assert now - before > 50
    assert peak >= now - 1
    assert held[-1] == 1


def test_given_knows_training_window_and_noise() -> None:
    case = make_peer_case("A")
    exact = exact_field(case, Grid(24, 24, 200.0, 200.0), np.linspace(0, case.duration, 20))
    assert not Given(exact, exact, case).is_noisy
    given = Given(noisy(exact, 0.01, 1), exact, case)
    assert given.is_noisy
    assert len(given.train) == 12
    assert given.drift == case.drift.mean


def moving_blob(background: float) -> plain.Film:
    """Move a Gaussian with (0.3, −0.2) over a background."""
    y, x = np.mgrid[:80, :80].astype(float)
    t = np.arange(100)[:, None, None]
    return plain.Film(
        background + np.exp(-((x - 30 - 0.3 * t * 0.5) ** 2 + (y - 45 + 0.2 * t * 0.5) ** 2) / 40), 1.0, 0.5
    )


def test_the_raw_centroid_follows_a_blob_only_without_a_background() -> None:
    np.testing.assert_allclose(plain.measure_drift(moving_blob(0.0)), np.tile([0.3, -0.2], (100, 1)), atol=1e-3)
    assert np.abs(plain.measure_drift(moving_blob(0.25))).max() < 0.1


def test_the_sparse_fit_drops_small_coefficients() -> None:
    rng = np.random.default_rng(0)
    names = (*plain.FULL, "drift_x", "drift_y")
    columns = {name: rng.normal(size=500) for name in names}
    b = 9.0 * columns["grad_squared"] + 0.7 * columns["laplacian"] + columns["drift_x"] + 5e-4 * columns["u"]
    found = plain.fit_sparse(columns, b, plain.FULL)
    assert set(found) == {"grad_squared", "laplacian", "drift_x"}
    assert found["grad_squared"] == pytest.approx(9.0, rel=1e-3)


def spread(frame: NDArray[np.float64]) -> float:
    """Return the variance of a frame's mass along x, in pixels²."""
    mass, x = frame.sum(axis=0), np.arange(frame.shape[1])
    mean = mass @ x / mass.sum()
    return float(mass @ (x - mean) ** 2 / mass.sum())


def test_upwind_advection_diffuses_more_than_the_law() -> None:
    first = moving_blob(0.0).u[0]
    film = plain.Film(first[None], 1.0, 0.5)
    still, moved = (plain.roll_out(first, {"laplacian": 0.5}, np.tile([v, 0.0], (41, 1)), film)[-1] for v in (0.0, 0.4))
    expected = 2 * (0.5 + plain.VISCOSITY) * 20
    assert spread(still) - spread(first) == pytest.approx(expected, rel=0.01)
    assert spread(moved) - spread(first) > expected + 0.7 * 0.4 * 20
