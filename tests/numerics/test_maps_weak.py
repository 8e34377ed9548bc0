"""Maps in weak form: columns of manufactured fields, the centroid they move, maps that are found, and constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.discovery import weak_system
from video2pde.discovery.mapped import map_columns, map_moments
from video2pde.discovery.maps import choose_maps, MapColumns
from video2pde.discovery.regression import fit_library, SparseFit
from video2pde.discovery.testfunctions import Widths
from video2pde.discovery.weighted import Profiles, source_parts, TimeMoments
from video2pde.drift import estimate_drift
from video2pde.errors import SettingsError
from video2pde.field import Field, Grid, Windows
from video2pde.maps import MapShape
from video2pde.recording.synth import exact_field, make_case, Medium, noisy
from video2pde.settings import load_settings, Settings
from video2pde.terms import CATALOGUE, libraries
from video2pde.terms.parse import U

Array = NDArray[np.float64]
SIDE = 100.0
SHAPE = MapShape("laplacian", "space", ((0.0, 40.0, 100.0), (0.0, 30.0, 60.0, 100.0)))
CENTRES = np.array([[10, 30, 35], [10, 45, 28], [14, 38, 52], [14, 33, 33]])
WIDTHS = Widths(3.0, 5.0, 5.0, 4.0)


def manufactured(n: int = 80) -> tuple[Grid, Array, Array, dict[str, Array]]:
    """Return a grid of points, times, an asymmetric u(t, y, x), and its derivatives."""
    grid, times = Grid(n, n, SIDE, SIDE, pitch="nodes"), np.linspace(0, 6, 25)
    t, y, x = times[:, None, None], grid.y[None, :, None] / SIDE, grid.x[None, None] / SIDE
    a, b = 5.0 * x + 0.4 * t / 6, 4.0 * y
    u = 0.5 + 0.3 * np.sin(a) * np.cos(b)
    slopes = {
        "x": 0.3 * 5 / SIDE * np.cos(a) * np.cos(b),
        "y": -0.3 * 4 / SIDE * np.sin(a) * np.sin(b),
        "lap": -0.3 * (25 + 16) / SIDE**2 * np.sin(a) * np.cos(b),
    }
    return grid, times, u, slopes


def plain_column(grid: Grid, times: Array, values: Array) -> Array:
    """Integrate given values against the test functions."""
    moments = TimeMoments(Field(values.astype(np.float32), times, grid), CENTRES, WIDTHS)
    flat = Profiles.powers(grid.y, 0), Profiles.powers(grid.x, 0)
    return moments.columns(source_parts(*flat, U))[:, 0, 0]


@pytest.mark.parametrize("name", ["laplacian", "grad_squared", "u"])
def test_columns_of_a_map_are_those_of_the_strong_form(name: str) -> None:
    grid, times, u, slopes = manufactured()
    field = Field(u.astype(np.float32), times, grid)
    moments = TimeMoments(field, CENTRES, WIDTHS)
    shape = replace(SHAPE, term=name)
    columns = map_columns(moments, shape, CATALOGUE[name])
    along_y, along_x = shape.along(grid)
    for i, j in ((1, 2), (2, 3), (3, 1)):
        spline = np.outer(along_y.values()[i], along_x.values()[j])
        by_x = np.outer(along_y.values()[i], along_x.values(1)[j])
        by_y = np.outer(along_y.values(1)[i], along_x.values()[j])
        strong = {
            "laplacian": spline * slopes["lap"] + by_x * slopes["x"] + by_y * slopes["y"],
            "grad_squared": spline * (slopes["x"] ** 2 + slopes["y"] ** 2),
            "u": spline * u,
        }[name]
        exact = plain_column(grid, times, strong)
        found = columns[:, i * shape.splines[1] + j]
        size = np.abs(exact).max()
        assert np.abs(found - exact).max() < 0.01 * size
        if name == "laplacian":
            # B Δu, which makes and loses dye, is another column
            assert np.abs(found - plain_column(grid, times, spline * slopes["lap"])).max() > 0.05 * size


def test_all_splines_together_are_the_term_itself() -> None:
    grid, times, u, _ = manufactured()
    moments = TimeMoments(Field(u.astype(np.float32), times, grid), CENTRES, WIDTHS)
    in_time = MapShape("laplacian", "time", ((0.0, 2.0, 4.0, 6.0),))
    coarse = MapShape("laplacian", "space", ((0.0, SIDE), (0.0, SIDE)))
    for shape in (SHAPE, in_time):
        whole = map_columns(moments, shape, CATALOGUE["laplacian"]).sum(axis=1)
        assert whole == pytest.approx(map_columns(moments, coarse, CATALOGUE["laplacian"]).sum(axis=1), rel=1e-4)


def film(
    settings: Settings, medium: Medium, name: str = "A", noise: float = 0.003
) -> tuple[Field, MapColumns, SparseFit]:
    """Return the training window of a case in a medium, the columns beside its law, and the law's weak fit."""
    case = replace(make_case(name), medium=medium)
    field = noisy(exact_field(case, Grid(56, 56, 200.0, 200.0), np.linspace(0, 20.0, 70)), noise, 1)
    windows = Windows.split(len(field))
    train, drift = field.frames(windows.train), estimate_drift(field, settings.drift).frames(windows.train)
    weak = weak_system(train, drift, settings, len(field))
    laws = {name: libraries(settings)[name]}
    columns = choose_maps(train, drift, weak, laws, settings, len(field))
    return train, columns, fit_library(name, [t.name for t in laws[name]], columns.pool, settings.regression)


def with_map(over: str) -> Settings:
    chosen = {"maps.vary": {"laplacian": over}, "maps.splines": 9, "weak.test_functions": 800, "run.workers": 1}
    return load_settings("quick", overrides=chosen)


def test_a_bump_is_found_where_there_is_dye() -> None:
    medium = Medium(bump=1.0, bump_width=25.0)
    train, columns, fit = film(with_map("space"), medium)
    [found] = columns.maps(fit.coefficients)
    basis = found.basis(train.grid)
    mean = fit.coefficients["laplacian"]
    x, y = train.grid.x[None] - 100, train.grid.y[:, None] - 100
    truth = 1.5 * medium.factor(x, y, 0.0, 1.0)
    weight = np.tensordot(found.signal, basis, axes=1)
    weight /= weight.sum()
    values, error = found.values(mean, basis), found.error(mean, basis)
    size = np.sum(weight * truth)
    left, constant = (np.sqrt(np.sum(weight * (each - truth) ** 2)) for each in (values, mean))
    assert left < 0.08 * size
    assert constant > 1.8 * left
    assert np.sum(weight * (np.abs(values - truth) < 2 * error)) > 0.85
    assert found.varies
    assert found.chance < 1e-6
    # far from the dye nothing is said
    told = found.told(mean, basis)
    assert not told[:4].any()
    assert told[28, 28]


def test_a_coefficient_that_falls_is_followed() -> None:
    train, columns, fit = film(with_map("time"), Medium(slowing=0.5))
    [found] = columns.maps(fit.coefficients)
    # ridges found beside the law's own terms are kept, beside others they are chosen anew
    assert columns.for_law(name for name in ("laplacian",)) is columns
    again = replace(columns, beside=frozenset()).for_law(name for name in ("laplacian",))
    assert again.ridges == columns.ridges
    assert again.gains == columns.gains
    inner = train.times[8:-8]
    course = found.course(fit.coefficients["laplacian"], inner)
    assert course == pytest.approx(1.5 * (1 - 0.5 * inner / 34.0), rel=0.04)
    assert found.varies


@pytest.mark.parametrize("over", ["space", "time"])
def test_a_constant_is_not_refused(over: str) -> None:
    train, columns, fit = film(with_map(over), Medium())
    [found] = columns.maps(fit.coefficients)
    assert not found.varies
    assert found.chance > 0.01
    assert fit.coefficients["laplacian"] == pytest.approx(1.5, rel=0.02)
    basis = found.basis(train.grid, train.times)
    told = found.told(1.5, basis)
    assert np.abs(found.values(fit.coefficients["laplacian"], basis)[told] / 1.5 - 1).max() < 0.05


def test_a_map_moves_the_centroid_as_its_rollout_does() -> None:
    """d x_c/dt = ∫u ∂D/∂x / M: dye spreads faster to where D is larger."""
    grid, times = Grid(64, 64, 64.0, 64.0), np.linspace(0, 1, 21)
    square = (grid.x[None] - 30) ** 2 + (grid.y[:, None] - 34) ** 2
    values = np.tile(np.exp(-square / (2 * 6.0**2)), (21, 1, 1)).astype(np.float32)
    field = Field(values, times, grid)
    drift = estimate_drift(field, load_settings().drift)
    shape = MapShape("laplacian", "space", ((0.0, 64.0), (0.0, 64.0)))
    pushed = map_moments(field, drift, shape, CATALOGUE["laplacian"], load_settings().weak)
    # departures that make m rise evenly along x: Greville's places of the splines
    rising = np.tile(np.array([0.0, 64.0 / 3, 128.0 / 3, 64.0]), (4, 1)).ravel()
    assert np.tensordot(rising, pushed, axes=1)[10] == pytest.approx([1.0, 0.0], abs=0.02)


def test_settings_refuse_what_is_not_fitted_together() -> None:
    with pytest.raises(SettingsError, match="not fitted together"):
        load_settings(overrides={"maps.vary": {"laplacian": "space"}, "drift.flow": "auto"})
    with pytest.raises(SettingsError, match="subsets"):
        load_settings(overrides={"maps.vary": {"laplacian": "space"}, "search.over": "subsets"})
    with pytest.raises(SettingsError, match="vary"):
        load_settings(overrides={"maps.vary": {"laplacian": "sideways"}})
