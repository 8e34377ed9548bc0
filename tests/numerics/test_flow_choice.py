"""Flow and law in one regression: exact films in known flows, the choice of the flow, and what a film cannot tell."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.caveats import flow_notes
from video2pde.discovery import weak_system
from video2pde.discovery.flow_choice import choose_flow, FlowChoice, FlowColumns
from video2pde.discovery.flows import _solve
from video2pde.discovery.identifiability import diagnose_libraries, Identifiability
from video2pde.drift import estimate_drift
from video2pde.field import Field, Grid, Windows
from video2pde.flow import Flow
from video2pde.flow.words import describe_flow
from video2pde.recording.synth import Camera, deviate, exact_field, find_preset, noisy
from video2pde.settings import load_settings

Array = NDArray[np.float64]
SETTINGS = load_settings(overrides=["identifiability.stability_runs=10"])
GRID = Grid(56, 56, 200.0, 200.0)
QUICK = ("identifiability.stability_runs=10", "weak.test_functions=700", "drift.flow_splines=9", "drift.flow=auto")


@lru_cache(maxsize=12)
def film(name: str, deviation: str = "", strength: float | None = None) -> Field:
    case = find_preset(name)
    if deviation:
        case, _ = deviate(case, Camera(), deviation, strength)
    return noisy(exact_field(case, GRID, np.linspace(0, case.duration, 120)), 0.003, seed=1)


def analyse(field: Field, *overrides: str) -> tuple[FlowChoice, FlowColumns | None, Identifiability]:
    settings = load_settings(overrides=[*QUICK, *overrides])
    train = Windows.split(len(field)).train
    drift = estimate_drift(field, settings.drift).frames(train)
    weak = weak_system(field.frames(train), drift, settings, len(field))
    choice, beside = choose_flow(field.frames(train), drift, weak.columns, settings)
    assert choice is not None
    columns = weak.columns if beside is None else beside
    system = weak.system if beside is None else beside.draw(700, np.random.default_rng(0))
    return choice, beside, diagnose_libraries(columns, system, settings)


@pytest.mark.parametrize("name", ["A", "C", "Fisher"])
def test_an_undisturbed_film_needs_no_flow(name: str) -> None:
    choice, beside, _ = analyse(film(name))
    assert choice.chosen == "uniform", choice.reason
    assert beside is None
    assert not choice.divergence["R" if name == "Fisher" else name].matters


@pytest.mark.parametrize(
    ("deviation", "mode", "value", "chosen"),
    [("rotation", "rotation", 0.03, "affine"), ("strain", "strain_axes", 0.01, "affine")],
)
def test_an_affine_flow_is_found_with_its_rate(deviation: str, mode: str, value: float, chosen: str) -> None:
    choice, beside, found = analyse(film("C", deviation))
    assert choice.chosen == chosen
    assert beside is not None
    fit = found.libraries["C"].fit
    truth = find_preset("C").law.coefficients
    assert fit.coefficients["grad_squared"] == pytest.approx(truth["grad_squared"], rel=0.02)
    assert fit.coefficients["laplacian"] == pytest.approx(truth["laplacian"], rel=0.05)
    flow = beside.flow(fit.coefficients)
    at = flow.shape.names.index(mode)
    assert flow.coefficients[0, at] == pytest.approx(value, rel=0.02)
    others = np.delete(flow.coefficients[0], at)
    assert np.abs(others).max() < 0.03 * value
    assert np.abs(flow.coefficients[0, at] - value) < 5 * flow.error[0, at] + 0.005 * value
    assert mode.split("_")[0] in describe_flow(flow, GRID)


@pytest.mark.parametrize(
    ("deviation", "chosen", "most"), [("vortex", "stream", 0.1), ("pulse", "stream, pulsing", 0.12)]
)
def test_a_vortex_needs_a_stream_function_and_one_that_pulses_time(deviation: str, chosen: str, most: float) -> None:
    field = film("A", deviation)
    choice, beside, found = analyse(field, "drift.flow_splines=14")
    assert choice.chosen == chosen, choice.reason
    assert beside is not None
    assert np.mean(choice.left_chosen**2) < 0.3 * np.mean(choice.left_uniform**2)
    fit = found.libraries["A"].fit
    assert fit.coefficients["laplacian"] == pytest.approx(find_preset("A").law.laplacian, rel=0.05)
    case, _ = deviate(find_preset("A"), Camera(), deviation)
    error, size = flow_error(beside.flow(fit.coefficients), field, case.medium.flow.velocity)
    assert error < most * size


@pytest.mark.parametrize("name", ["A", "C"])
def test_a_surface_that_spreads_is_told_as_what_the_law_may_be_instead(name: str) -> None:
    choice, _, _ = analyse(film(name, "divergence", 0.005))
    assert choice.chosen == "uniform"
    divergence, truth = choice.divergence[name], find_preset(name).law.coefficients
    assert divergence.matters
    assert divergence.value == pytest.approx(0.005, rel=0.1)
    for term, value in divergence.coefficients.items():
        assert value == pytest.approx(truth[term], rel=0.05)
        assert abs(divergence.without[term] / truth[term] - 1) > 0.15
    told = " ".join(flow_notes(choice, name))
    assert "diverges by 0.004" in told or "diverges by 0.005" in told
    assert "one film cannot tell it from the law" in told
    assert not flow_notes(analyse(film(name))[0], name)


def flow_error(flow: Flow, field: Field, truth: object) -> tuple[float, float]:
    """Compare the flow with the true one where there is dye, both less their mean over it: rms error and size."""
    train = Windows.split(len(field)).train
    x, y = np.meshgrid(field.grid.x - 100, field.grid.y - 100)
    error = size = total = 0.0
    for k in range(train.start, train.stop, 6):
        dye = np.maximum(field.values[k] - field.values[k].min() - 0.05, 0.0)
        true = np.stack(truth(x, y, field.times[k]))  # type: ignore[operator]
        found = flow.velocity(field.times[k : k + 1], field.grid)[0]
        for v in (true, found):
            v -= (v * dye).sum(axis=(1, 2), keepdims=True) / dye.sum()
        error += float(np.sum(dye * (found - true) ** 2))
        size += float(np.sum(dye * true**2))
        total += float(dye.sum())
    return (error / total) ** 0.5, (size / total) ** 0.5


def test_a_flow_that_is_asked_for_is_used_and_a_uniform_one_leaves_more() -> None:
    field = film("C", "shear")
    choice, beside, found = analyse(field, "drift.flow=affine")
    assert beside is not None
    assert {c.name for c in choice.candidates} <= {"affine", "affine, changing"}
    free = found.libraries["C"].fit
    uniform = analyse(film("C"), "drift.flow=auto")[2].libraries["C"].fit
    assert free.coefficients["laplacian"] == pytest.approx(uniform.coefficients["laplacian"], rel=0.03)


def test_modes_that_are_hardly_seen_do_not_stop_the_choice() -> None:
    """In units of columns that no test function sees, a penalty is 1e24 times that of the others."""
    huge = 1e24 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    matrix = np.zeros((3, 3))
    matrix[0, 0], matrix[1:, 1:] = 2.0, huge
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(matrix, np.array([4.0, 0.0, 0.0]))
    assert _solve(matrix, np.array([4.0, 0.0, 0.0])) == pytest.approx([2.0, 0.0, 0.0])
    seen = np.array([[2.0, 0.3], [0.3, 1.0]])
    right = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert _solve(seen, right) == pytest.approx(np.linalg.solve(seen, right), rel=1e-11)
