"""Generated kernels against the slow reference, and against JAX."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sympy

from video2pde.errors import StageError
from video2pde.field import Grid
from video2pde.rollout import driver
from video2pde.rollout.kernels import cache_folder, compile_kernel, Structure, write_source
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate, simulate_batch
from video2pde.rollout.task import EDGES, Scheme
from video2pde.settings import RolloutSettings
from video2pde.terms import CATALOGUE, Part, Term
from video2pde.terms.stencil import apply_term

OWN = Term.of("own", ("x", "u*u_y*exp(-u)"), ("", "u_x**3 - tanh(u)/2"), ("xy", "sqrt(1 + u**2)/3"), ("", "1/(2 + u)"))
TERMS = (*(term for term in CATALOGUE.values() if not term.is_drift), OWN)
GRID = Grid(23, 30, 23 * 0.7, 30 * 0.9)
DRIFT = (0.3, -0.2)
CALM, NO_MAPS = np.zeros((2, 1, 1)), np.zeros((0, 1, 1))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEO2PDE_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))


@pytest.fixture
def frame() -> np.ndarray:
    y, x = np.meshgrid(GRID.y, GRID.x, indexing="ij")
    return 0.2 + 0.4 * np.exp(-((x - 11) ** 2 / 50 + (y - 7) ** 2 / 30)) + 0.04 * np.sin(x / 3 + 0.4) * np.cos(y / 4)


def run_stage(
    terms: tuple[Term, ...], coefficients: np.ndarray, u: np.ndarray, boundary: str, accuracy: int
) -> np.ndarray:
    kernel = compile_kernel(Structure(terms, accuracy))
    r = kernel.radius
    padded = np.full((u.shape[0] + 2 * r, u.shape[1] + 2 * r), np.nan)
    padded[r:-r, r:-r] = u
    driver.pad(padded, r, EDGES[boundary])
    out = np.zeros_like(padded)
    kernel.stage(
        padded,
        padded,
        out,
        np.zeros((0, 0, 0), np.int64),
        coefficients,
        *DRIFT,
        CALM,
        NO_MAPS,
        1 / GRID.dx,
        1 / GRID.dy,
        1.0,
        0.25,
        -1e9,
        1e9,
    )
    return (out[r:-r, r:-r] - u) / 0.75


def reference(term: Term | None, u: np.ndarray, boundary: str, accuracy: int) -> np.ndarray:
    parts = [CATALOGUE["drift_x"], CATALOGUE["drift_y"], *([term] if term else [])]
    return sum(apply_term(part, u, GRID.dx, GRID.dy, DRIFT, accuracy=accuracy, boundary=boundary) for part in parts)


@pytest.mark.parametrize("boundary", ["replicate", "periodic", "open"])
def test_kernel_equals_the_reference_stencil_for_every_term(frame: np.ndarray, boundary: str) -> None:
    # one kernel holds all terms: unit coefficients pick them one by one
    for n, term in enumerate(TERMS):
        value = run_stage(TERMS, np.eye(len(TERMS))[n], frame, boundary, 4)
        expected = reference(term, frame, boundary, 4)
        assert np.abs(value - expected).max() <= 1e-12 * max(1.0, np.abs(expected).max()), term.name
        # a stencil of the other order is another operator, and the comparison sees it
        if term.jets not in ((), ((0, 0),)):
            assert np.abs(value - reference(term, frame, boundary, 2)).max() > 1e-5, term.name


@pytest.mark.parametrize("boundary", ["replicate", "periodic"])
def test_second_order_kernel_equals_the_reference(frame: np.ndarray, boundary: str) -> None:
    term = CATALOGUE["grad_squared"]
    value = run_stage((term, CATALOGUE["laplacian"]), np.array([1.0, 0.0]), frame, boundary, 2)
    np.testing.assert_allclose(value, reference(term, frame, boundary, 2), rtol=0, atol=1e-13)


@pytest.mark.parametrize("boundary", ["replicate", "periodic"])
def test_jax_equals_numba(frame: np.ndarray, boundary: str) -> None:
    times = np.linspace(0, 2, 9)
    velocity = np.stack([0.3 + times / 10, -0.2 + 0 * times], 1)
    settings = RolloutSettings(boundary=boundary)
    models = [Model.of({"grad_squared": a, "laplacian": 0.3}, (0.9, 1.1)) for a in (1.0, 3.0)]
    models.append(Model((OWN, CATALOGUE["laplacian"]), (0.1, 0.2)))
    ours = simulate_batch(models, frame, times, GRID, velocity, Scheme(settings))
    theirs = simulate_batch(models, frame, times, GRID, velocity, Scheme(settings, device="gpu"))
    for a, b in zip(ours, theirs, strict=True):
        assert not a.failed
        assert not b.failed
        np.testing.assert_array_equal(a.substeps, b.substeps)
        np.testing.assert_allclose(b.values, a.values, rtol=0, atol=1e-13)


def test_jax_reports_the_same_failure(frame: np.ndarray) -> None:
    times = np.linspace(0, 20, 9)
    model = Model.of({"grad_squared": 0.0, "laplacian": -0.5})
    ours, theirs = (simulate(model, frame, times, GRID, device=device) for device in ("cpu", "gpu"))
    assert ours.failed
    assert (ours.failed_frame, ours.reason) == (theirs.failed_frame, theirs.reason)
    np.testing.assert_array_equal(np.isnan(ours.values), np.isnan(theirs.values))


def test_single_precision_follows_double(frame: np.ndarray) -> None:
    times = np.linspace(0, 2, 9)
    model = Model.of({"grad_squared": 3.0, "laplacian": 0.3})
    double = simulate(model, frame, times, GRID)
    single = simulate(model, frame, times, GRID, settings=RolloutSettings(precision="float32"))
    assert single.values.dtype == np.float32
    assert 0 < np.abs(single.values - double.values).max() < 5e-6


def test_generated_source_holds_only_whitelisted_functions() -> None:
    wild = Term("wild", (Part(sympy.Function("system")(sympy.Symbol("u", real=True))),))
    with pytest.raises(StageError, match="no density may hold"):
        write_source(Structure((wild,)))


def test_kernels_are_stored_once_and_shared_by_all_coefficients() -> None:
    structure = Structure((CATALOGUE["laplacian"],))
    first = compile_kernel(structure)
    assert compile_kernel(dataclasses.replace(structure)) is first
    assert compile_kernel(dataclasses.replace(structure, precision="float32")) is not first
    assert list(cache_folder().glob("kernel_*.py"))


@pytest.mark.posix
def test_an_unwritable_cache_folder_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEO2PDE_CACHE", "/proc/nowhere")
    compile_kernel.cache_clear()
    model = Model.of({"u": -0.1})
    rollout = simulate(model, np.full(GRID.shape, 0.5), [0.0, 1.0], GRID)
    compile_kernel.cache_clear()
    np.testing.assert_allclose(rollout.values[1], 0.5 * np.exp(-0.1), rtol=1e-5)
