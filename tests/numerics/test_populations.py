"""Two populations in a recovery: laws that reduce to each other, known truths that are found, what one film tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm

from video2pde.errors import StageError
from video2pde.field import Field, Grid
from video2pde.fit.suspects import SUSPECTS
from video2pde.frap import analyse_recovery
from video2pde.frap.laws import LAWS
from video2pde.frap.modes import decompose, Modes
from video2pde.frap.populations import _Bench, compare_populations, Populations
from video2pde.frap.recovery import find_spot
from video2pde.recording.synth.populations import _visible, Bleached, recovery_field

Array = NDArray[np.float64]
GRID = Grid(18, 18, 22.0, 22.0, "µm")
TIMES = np.linspace(0, 60, 30)
BY_NAME = {law.name: law for law in LAWS}


def seen(case: Bleached, noise: float = 0.004, seed: int = 1, times: Array = TIMES) -> tuple[Field, Modes]:
    field = recovery_field(replace(case, radius=0.2, rim=0.35), GRID, times, noise, seed)
    return field, decompose(field, find_spot(field)[0], "measured")


def compared(case: Bleached, **more: object) -> Populations:
    return compare_populations(seen(case, **more)[1], 0.4, 0.0, 0.0)  # type: ignore[arg-type]


def test_the_solver_is_the_exponential_of_its_matrix() -> None:
    case = Bleached(0.8, slow=0.1, bind=0.3, release=0.2)
    for square, time in ((0.0, 3.0), (0.4, 1.7), (25.0, 0.3)):
        matrix = np.array([[-0.8 * square - 0.3, 0.2], [0.3, -0.1 * square - 0.2]])
        share = np.array([0.4, 0.6])
        assert _visible(case, np.array(square), time) == pytest.approx(float((expm(time * matrix) @ share).sum()))


def curve(name: str, **values: float) -> Array:
    """What a unit of each mode becomes under a law, (t, q)."""
    law = BY_NAME[name]
    rates, time = np.array([0.0, 0.02, 0.3, 2.0, 40.0]), np.linspace(0, 30, 9)
    return np.sum([part.weight * np.exp(-np.outer(time, part.rate)) for part in law.components(rates, values)], axis=0)


def test_laws_reduce_to_each_other() -> None:
    single = curve("single", D=0.7)
    assert curve("mobile-immobile", D=0.7, M=1.0) == pytest.approx(single)
    assert curve("exchange", D=0.7, k_on=0.0, k_off=0.5) == pytest.approx(single)
    assert curve("two-diffusions", D1=0.7, D2=0.7, p=0.3) == pytest.approx(single)
    part = curve("mobile-immobile", D=0.7, M=0.6)
    assert curve("two-diffusions", D1=0.7, D2=0.0, p=0.6) == pytest.approx(part)
    # an exchange that is slow leaves the bound part where it is, one that is fast makes one D of both
    assert curve("exchange", D=0.7, k_on=4e-9, k_off=6e-9) == pytest.approx(part, abs=1e-6)
    assert curve("exchange", D=0.7, k_on=4e4, k_off=6e4) == pytest.approx(curve("single", D=0.42), abs=1e-3)
    assert np.abs(curve("exchange", D=0.7, k_on=0.04, k_off=0.06) - part).max() > 0.05


def test_the_components_of_an_exchange_solve_its_equations() -> None:
    rates, v = np.array([0.05, 1.3]), {"D": 0.7, "k_on": 0.2, "k_off": 0.1}
    parts = BY_NAME["exchange"].components(rates, v)
    for q, rate in enumerate(rates):
        matrix = np.array([[-0.7 * rate - 0.2, 0.1], [0.2, -0.1]])
        for time in (0.0, 0.8, 12.0):
            whole = float((expm(time * matrix) @ [1 / 3, 2 / 3]).sum())
            entered = float((expm(time * matrix) @ [1.0, 0.0]).sum())
            assert sum(p.weight[q] * np.exp(-p.rate[q] * time) for p in parts) == pytest.approx(whole)
            assert sum(p.inlet[q] * np.exp(-p.rate[q] * time) for p in parts) == pytest.approx(entered)  # type: ignore[index]


CASES = {
    "exchange": (Bleached(0.8, bind=0.08, release=0.05), {"D": 0.8, "k_on": 0.08, "k_off": 0.05}),
    "two-diffusions": (Bleached(1.0, slow=0.05, share=0.6), {"D1": 1.0, "D2": 0.05, "p": 0.6}),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_right_law_is_found_with_its_numbers(name: str) -> None:
    case, truth = CASES[name]
    found = compared(case)
    assert found.chosen == name
    for parameter, value in truth.items():
        estimate = found.best.estimates[parameter]
        assert estimate.value == pytest.approx(value, rel=0.06)
        assert estimate.low <= value * 1.02
        assert estimate.high >= value * 0.98
    assert all(law.out for law in found.laws if law.name in ("single", "mobile-immobile"))
    assert found.verdict.endswith("predicts the held-out frames as well")
    assert found.noise == pytest.approx(0.004, rel=0.05)


def test_one_population_is_one() -> None:
    field, _ = seen(Bleached(0.5, share=1.0))
    recovery = analyse_recovery(field, populations=True)
    found = recovery.populations
    assert isinstance(found, Populations)
    assert found.chosen == "single"
    assert "no second one shows" in found.verdict
    assert found.best.estimates["D"].value == pytest.approx(0.5, rel=0.03)
    assert any("no second one" in line for line in recovery.summary())
    assert set(found.to_json()["laws"]) == set(BY_NAME)  # type: ignore[call-overload]
    assert analyse_recovery(field).populations is None


def test_a_short_film_says_what_it_cannot_tell() -> None:
    """Within a few seconds nothing that was bound is released: slow exchange and an immobile part look the same."""
    found = compared(Bleached(0.8, bind=0.002, release=0.004), times=np.linspace(0, 12, 24), noise=0.01)
    assert not next(law for law in found.laws if law.name == "mobile-immobile").out
    assert found.chosen == "mobile-immobile"
    assert "does not tell it from" in found.verdict
    assert "film for longer than 12 s" in found.verdict


def test_few_frames_are_refused_and_said() -> None:
    field, modes = seen(Bleached(0.5, share=1.0), times=np.linspace(0, 60, 10))
    with pytest.raises(StageError, match="too few to tell populations apart"):
        compare_populations(modes, 0.5, 0.0, 0.0)
    assert isinstance(analyse_recovery(field, populations=True).populations, str)


def test_a_wrong_rate_is_not_predicted() -> None:
    """Held-out frames tell a law that is off, whatever was fitted to the others."""
    _, modes = seen(Bleached(0.8, bind=0.08, release=0.05))
    right = _Bench(modes, BY_NAME["exchange"], 0.0)
    block = np.arange(15, 22)
    assert _Bench(modes, BY_NAME["single"], 0.0).predict(np.array([0.4, 0.0]), block) > 1.5 * right.predict(
        np.array([0.8, 0.08, 0.05, 0.0]), block
    )


def test_the_test_of_fit_names_the_cure() -> None:
    cures = {suspect.name: suspect.cure for suspect in SUSPECTS}
    assert "--populations" in cures["memory"]
    assert "--populations" in cures["immobile part"]
