"""Weak columns with weights in space and time, against quadrature of the strong form on a manufactured field."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from manufactured import sample_field, velocity, Waves

from video2pde.discovery.testfunctions import interior, kernel, Widths
from video2pde.discovery.weak import weak_columns
from video2pde.discovery.weighted import (
    anisotropy_parts,
    diffusivity_parts,
    Profiles,
    slice_centres,
    source_parts,
    stream_parts,
    TimeMoments,
    velocity_parts,
    WeightedPart,
)
from video2pde.field import Field
from video2pde.settings import WeakSettings
from video2pde.terms import CATALOGUE
from video2pde.terms.parse import U, U_X, U_Y

WIDTHS = Widths(8.0, 3.5, 4.0, 4.0)
FINE = 4
"""Refinement of the quadrature along y and x, ..."""
SIMPSON = np.array([1, 4, 2, 4, 1]) / 12
"""... and the average over a cell on it."""


@pytest.fixture(scope="module", params=["cells", "nodes"])
def field(request: pytest.FixtureRequest) -> Field:
    return sample_field(60, 121, request.param)


def draw(field: Field, count: int = 6) -> np.ndarray:
    inside = interior(field.grid.shape, WIDTHS, None)
    return slice_centres(len(field), inside, WIDTHS, count, np.random.default_rng(3))


def in_time(field: Field) -> np.ndarray:
    """A smooth time function and a fast one, which no polynomial follows within a test function."""
    t = field.times
    return np.stack([1 + 0.5 * np.sin(1.7 * t + 0.4), 0.6 + 0.4 * np.cos(9 * t)])


def quadrature(field: Field, centres: np.ndarray, strong: Callable[..., np.ndarray], theta: np.ndarray) -> np.ndarray:
    """Integrate φ · θ(t) · strong(jets, x, y) over each test function: (M, l); φ is averaged over cells."""
    grid, result = field.grid, []
    orders = tuple((i, j) for i in range(3) for j in range(3) if i + j <= 2)
    for t, y, x in centres:
        tests, positions = [], []
        for sigma, spacing, centre in ((WIDTHS.y, grid.dy, grid.y[y]), (WIDTHS.x, grid.dx, grid.x[x])):
            phi = kernel(sigma * FINE, WIDTHS.support, 0, spacing / FINE)
            if grid.pitch == "cells":
                phi = np.convolve(phi, SIMPSON)
            tests.append(phi)
            positions.append(centre + (np.arange(len(phi)) - len(phi) // 2) * spacing / FINE)
        value = kernel(WIDTHS.t, WIDTHS.support, 0, field.dt)
        window = np.arange(len(value)) - len(value) // 2 + t
        jets = Waves().jets(orders, field.times[window], *positions)
        density = strong(jets, positions[1][None, None], positions[0][None, :, None])
        frames = np.einsum("tyx,y,x->t", density, *tests)
        result.append(theta[:, window] @ (value * frames))
    return np.array(result)


def strong_forms(py: Profiles, px: Profiles, i: int, j: int) -> dict[str, Callable[..., np.ndarray]]:
    """Each weighted term with its derivatives carried out by hand."""

    def w(x: np.ndarray, y: np.ndarray, a: int = 0, b: int = 0) -> np.ndarray:
        along_y, along_x = py.spline(y.ravel(), nu=b)[:, i], px.spline(x.ravel(), nu=a)[:, j]
        return along_y.reshape(y.shape) * along_x.reshape(x.shape)

    return {
        "stream": lambda u, x, y: -w(x, y, 0, 1) * u[1, 0] + w(x, y, 1, 0) * u[0, 1],
        "velocity_x": lambda u, x, y: -w(x, y) * u[1, 0] - w(x, y, 1, 0) * u[0, 0],
        "velocity_y": lambda u, x, y: -w(x, y) * u[0, 1] - w(x, y, 0, 1) * u[0, 0],
        "diffusivity": lambda u, x, y: (
            w(x, y) * (u[2, 0] + u[0, 2]) + w(x, y, 1, 0) * u[1, 0] + w(x, y, 0, 1) * u[0, 1]
        ),
        "cross": lambda u, x, y: 2 * w(x, y) * u[1, 1] + w(x, y, 1, 0) * u[0, 1] + w(x, y, 0, 1) * u[1, 0],
        "axes": lambda u, x, y: w(x, y) * (u[2, 0] - u[0, 2]) + w(x, y, 1, 0) * u[1, 0] - w(x, y, 0, 1) * u[0, 1],
        "source": lambda u, x, y: w(x, y) + 0 * u[0, 0],
        "light": lambda u, x, y: w(x, y) * (1 - u[0, 0]),
        "gradient": lambda u, x, y: w(x, y) * (u[1, 0] ** 2 + u[0, 1] ** 2),
    }


def weak_forms(py: Profiles, px: Profiles) -> dict[str, tuple[WeightedPart, ...]]:
    return {
        "stream": stream_parts(py, px),
        "velocity_x": velocity_parts(py, px, 0),
        "velocity_y": velocity_parts(py, px, 1),
        "diffusivity": diffusivity_parts(py, px),
        "cross": anisotropy_parts(py, px, "cross"),
        "axes": anisotropy_parts(py, px, "axes"),
        "source": source_parts(py, px),
        "light": (*source_parts(py, px), WeightedPart(py, px, (0, 0), -U)),
        "gradient": source_parts(py, px, U_X**2 + U_Y**2),
    }


KINDS = ("stream", "velocity_x", "velocity_y", "diffusivity", "cross", "axes", "source", "light", "gradient")


@pytest.mark.parametrize("name", KINDS)
def test_columns_agree_with_quadrature_of_the_strong_form(field: Field, name: str) -> None:
    py, px = Profiles.splines(field.grid.y, 5), Profiles.splines(field.grid.x, 6)
    centres, theta = draw(field), in_time(field)
    settings = WeakSettings(gradient_sigma=0.0, noise_correction=False)
    found = TimeMoments(field, centres, WIDTHS, settings).columns(weak_forms(py, px)[name], theta)
    assert found.shape == (len(centres), 2, 5, 6)
    for i, j in ((1, 3), (2, 2), (3, 1)):
        expected = quadrature(field, centres, strong_forms(py, px, i, j)[name], theta)
        scale = np.sqrt(np.mean(expected**2))
        assert np.abs(found[:, :, i, j] - expected).max() < 3e-4 * scale, (i, j)


def test_steady_columns_are_those_with_a_constant_in_time(field: Field) -> None:
    parts = stream_parts(Profiles.splines(field.grid.y, 4), Profiles.splines(field.grid.x, 5))
    moments = TimeMoments(field, draw(field, 40), WIDTHS)
    varying = moments.columns(parts, np.ones((1, len(field))))
    assert varying[:, 0] == pytest.approx(moments.columns(parts), abs=1e-6 * np.abs(varying).max())


def test_a_weight_of_one_gives_the_laws_own_columns(field: Field) -> None:
    """The drift's columns, with their velocity as the function of time, and the Laplacian's."""
    terms = [CATALOGUE[name] for name in ("laplacian", "grad_squared", "drift_x", "drift_y")]
    v = velocity(field.times)
    columns = weak_columns(field, v, terms, WeakSettings(sigma_space=0.06, sigma_time=0.06))
    centres = slice_centres(len(field), columns.inside, columns.widths, 60, np.random.default_rng(1))
    law = columns.sample(centres)
    one_y, one_x = Profiles.powers(field.grid.y, 0), Profiles.powers(field.grid.x, 0)
    moments = TimeMoments(field, centres, columns.widths)
    same = {
        "laplacian": moments.columns(diffusivity_parts(one_y, one_x))[:, 0, 0],
        "grad_squared": moments.columns(source_parts(one_y, one_x, U_X**2 + U_Y**2))[:, 0, 0],
        "drift_x": moments.columns(velocity_parts(one_y, one_x, 0), v[:, :1].T)[:, 0, 0, 0],
        "drift_y": moments.columns(velocity_parts(one_y, one_x, 1), v[:, 1:].T)[:, 0, 0, 0],
    }
    for name, values in same.items():
        expected = law.columns([name])[:, 0]
        assert values == pytest.approx(expected, abs=2e-4 * np.abs(expected).max()), name


def test_the_quadrature_rejects_a_stream_function_with_its_axes_exchanged(field: Field) -> None:
    py, px = Profiles.splines(field.grid.y, 5), Profiles.splines(field.grid.x, 6)
    first, second = stream_parts(py, px)
    wrong = (WeightedPart(py.derivative, px, (0, 1), U, -1.0), WeightedPart(py, px.derivative, (1, 0), U, 1.0))
    centres, theta = draw(field), in_time(field)
    moments = TimeMoments(field, centres, WIDTHS)
    expected = quadrature(field, centres, strong_forms(py, px, 2, 2)["stream"], theta)
    error = np.abs(moments.columns(wrong, theta)[:, :, 2, 2] - expected).max()
    assert error > 0.3 * np.sqrt(np.mean(expected**2))
    assert (first.factor, second.factor) == (-1.0, 1.0)


def test_centres_share_few_frames() -> None:
    field = sample_field(60, 121)
    centres = draw(field, 500)
    reach = WIDTHS.reach
    assert len(np.unique(centres[:, 0])) <= 2 + (len(field) - 2 * reach[0]) / (0.6 * WIDTHS.t)
    assert centres[:, 0].min() == reach[0]
    assert centres[:, 0].max() == len(field) - reach[0] - 1
    assert centres[:, 1].min() >= reach[1]
    assert centres[:, 2].max() < field.grid.nx - reach[2]
