"""Rollouts with coefficients that vary: order, conservation, exact solutions, two back ends, walls, scripts."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.maps import CoefficientMap, MapShape, Over
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings
from video2pde.terms import CATALOGUE
from video2pde.terms.stencil import apply_term

Array = NDArray[np.float64]
SIDE = 10.0
FREE = RolloutSettings(clip="off")
BREAKS = ((0.0, 4.0, 10.0), (0.0, 3.0, 6.0, 10.0))


def make_map(term: str = "laplacian", over: Over = "space", size: float = 0.3) -> CoefficientMap:
    """Return an asymmetric map of a term."""
    shape = MapShape(term, over, BREAKS if over == "space" else ((0.0, 0.5, 1.0),))
    drawn = size * np.random.default_rng(3).uniform(-1, 1, shape.count)
    return CoefficientMap(shape, drawn, np.eye(shape.count + 1), np.ones(shape.count), np.zeros((0, shape.count)))


def mapped(*terms: str, of: str = "laplacian", over: Over = "space") -> Model:
    values = {"laplacian": 1.0, "porous": 0.8, "grad_squared": 0.7, "u": -0.4}
    model = Model.of({name: values[name] for name in terms})
    return Model(model.terms, model.coefficients, maps=(make_map(of, over),))


def plume(grid: Grid) -> Array:
    x, y = grid.x[None], grid.y[:, None]
    return np.asarray(0.2 + 0.5 * np.exp(-((x - 4.2) ** 2) / 4 - (y - 5.5) ** 2 / 3 + 0.05 * x * y / 10))


def rate(model: Model, grid: Grid) -> Array:
    """Return u_t of the first instant."""
    step = 1e-7
    values = simulate(model, plume(grid), [0.0, step], grid, settings=FREE).values
    return np.asarray((values[1] - values[0]) / step)


def exact_rate(model: Model, grid: Grid, divergence: bool = True) -> Array:
    """Return the same from the formula, with the map as a polynomial between breaks differentiated exactly."""
    x, y = sympy.symbols("x y", real=True)
    u = 0.2 + 0.5 * sympy.exp(-((x - 4.2) ** 2) / 4 - (y - 5.5) ** 2 / 3 + 0.05 * x * y / 10)
    [each] = model.maps
    along_y, along_x = each.shape.along(grid)
    q = each.departures.reshape(each.shape.splines)
    c = model.coefficient(each.term)
    jets = {
        (i, j): c * ((i, j) == (0, 0)) + c * along_y.values(j).T @ q @ along_x.values(i)
        for i, j in ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
    }
    points = np.meshgrid(grid.x, grid.y)

    def sampled(expression: sympy.Expr) -> Array:
        return np.asarray(sympy.lambdify((x, y), expression)(*points) + 0 * points[0])

    total = np.zeros(grid.shape)
    for term, coefficient in zip(model.terms, model.coefficients, strict=True):
        own = {str(s): s for s in term.strong.free_symbols}
        put = {
            symbol: sympy.diff(u, x, name.count("x"), y, name.count("y")) if "_" in name else u
            for name, symbol in own.items()
        }
        plain = sampled(term.strong.subs(put))
        if term.name != each.term:
            total += coefficient * plain
            continue
        total += jets[0, 0] * plain
        for part in term.parts:
            density = part.density.subs(dict.fromkeys(part.density.free_symbols, u))
            if sum(part.derivative) == 2 and not part.uses_gradient and divergence:
                # ∂x(c ∂x f) has c_x f_x beside c f_xx
                i, j = part.derivative
                along = (1, 0) if (i, j) == (2, 0) else (0, 1)
                total += jets[along] * sampled(sympy.diff(density, x if (i, j) == (2, 0) else y))
    return total


@pytest.mark.parametrize(
    ("terms", "of"),
    [
        (("laplacian",), "laplacian"),
        (("porous",), "porous"),
        (("grad_squared", "laplacian"), "grad_squared"),
    ],
)
def test_a_map_is_of_fourth_order(terms: tuple[str, ...], of: str) -> None:
    model, inner = mapped(*terms, of=of), []
    for n in (32, 64, 128):
        grid = Grid(n, n, SIDE, SIDE)
        # away from the edges, and from breaks, where third derivatives of a cubic spline jump
        away = (
            np.abs(at[:, None] - np.array(b)).min(axis=1) > 0.8 for at, b in zip((grid.y, grid.x), BREAKS, strict=True)
        )
        inside = np.ix_(*(np.flatnonzero(place) for place in away))
        inner.append(float(np.abs(rate(model, grid) - exact_rate(model, grid))[inside].max()))
    orders = np.log2(np.array(inner[:-1]) / inner[1:])
    assert orders[-1] == pytest.approx(4.0, abs=0.4)


def test_the_form_without_divergence_is_another_law() -> None:
    """c Δu in place of ∇·(c∇u): what the rollout must not be."""
    grid = Grid(96, 96, SIDE, SIDE)
    model = mapped("laplacian")
    found = rate(model, grid)
    right, wrong = (np.abs(found - exact_rate(model, grid, form))[8:-8, 8:-8].max() for form in (True, False))
    assert wrong > 100 * right


@pytest.mark.parametrize(("boundary", "name"), [("replicate", "laplacian"), ("periodic", "porous")])
def test_a_map_of_diffusion_makes_and_loses_nothing(boundary: Literal["replicate", "periodic"], name: str) -> None:
    grid, times = Grid(40, 48, SIDE, SIDE), np.linspace(0, 1, 5)
    settings = RolloutSettings(clip="off", boundary=boundary)
    values = simulate(mapped(name, of=name), plume(grid), times, grid, settings=settings).values
    content = values.sum(axis=(1, 2))
    assert content == pytest.approx(content[0], rel=1e-12)
    assert np.abs(values[-1] - values[0]).max() > 0.05
    # the form c Δu does not keep it
    c = make_map().field(1.0, grid)
    assert abs((c * apply_term(CATALOGUE["laplacian"], plume(grid), grid.dx, grid.dy)).sum()) > 1e-3 * content[0]


def test_walls_keep_what_a_map_moves() -> None:
    grid, times = Grid(40, 48, SIDE, SIDE), np.linspace(0, 1, 5)
    inside = np.hypot(grid.x[None] - 5, grid.y[:, None] - 5) < 4
    region = Region(inside)
    values = simulate(mapped("laplacian"), plume(grid), times, grid, settings=FREE, region=region).values
    assert values[:, inside].sum(axis=1) == pytest.approx(values[0][inside].sum(), rel=1e-12)
    assert np.array_equal(values[-1][~inside], values[0][~inside])


def test_a_flat_map_is_the_plain_law() -> None:
    grid, times = Grid(40, 48, SIDE, SIDE), np.linspace(0, 1, 5)
    for each in (make_map(over="space", size=0.0), make_map(over="time", size=0.0)):
        model = Model((CATALOGUE["laplacian"],), (1.0,), maps=(each,))
        values = simulate(model, plume(grid), times, grid, settings=FREE).values
        plain = simulate(model.constant(), plume(grid), times, grid, settings=FREE).values
        assert values == pytest.approx(plain, abs=1e-12)


def test_a_coefficient_over_time_spreads_as_much_as_its_integral_says() -> None:
    """A Gaussian's variance grows by 2∫D dt, so that it is the plain law's Gaussian at another time."""
    each = make_map(over="time", size=0.6)
    grid, times = Grid(80, 80, 20.0, 20.0), np.linspace(0, 1, 21)
    square = (grid.x[None] - 10) ** 2 + (grid.y[:, None] - 10) ** 2
    start = np.exp(-square / (2 * 1.5**2))
    values = simulate(Model((CATALOGUE["laplacian"],), (1.0,), maps=(each,)), start, times, grid, settings=FREE).values
    fine = np.linspace(0, 1, 4001)
    grown = np.trapezoid(each.course(1.0, fine), fine)
    variance = 1.5**2 + 2 * grown
    exact = 1.5**2 / variance * np.exp(-square / (2 * variance))
    assert np.abs(values[-1] - exact).max() < 1e-4
    plain = simulate(Model.of({"laplacian": 1.0}), start, times, grid, settings=FREE).values[-1]
    assert np.abs(plain - exact).max() > 1e-2


def test_both_back_ends_agree() -> None:
    grid, times = Grid(24, 28, SIDE, SIDE), np.linspace(0, 1, 5)
    plain = mapped("grad_squared", "laplacian")
    model = Model(plain.terms, plain.coefficients, maps=(*plain.maps, make_map("grad_squared", "time")))
    here = simulate(model, plume(grid), times, grid, settings=FREE).values
    there = simulate(model, plume(grid), times, grid, settings=FREE, device="gpu").values
    assert there == pytest.approx(here, abs=1e-12)


def test_a_map_needs_its_term_and_its_shape() -> None:
    with pytest.raises(InputError, match="needs that term"):
        Model((CATALOGUE["u"],), (1.0,), maps=(make_map(),))
    with pytest.raises(InputError, match="cannot have splines"):
        MapShape("laplacian", "space", ((0.0, 1.0),))
    with pytest.raises(InputError, match="finite departures"):
        CoefficientMap(make_map().shape, np.zeros(3), np.eye(4), np.ones(3), np.zeros((0, 3)))


def test_equations_say_what_varies() -> None:
    assert mapped("laplacian").equation.text.endswith("= 1 ∇·(m(x, y)∇u)")
    assert mapped("laplacian", over="time").equation.text.endswith("= 1 m(t) Δu")
    assert "m(x, y) |∇u|²" in mapped("grad_squared", "laplacian", of="grad_squared").equation.text
    assert "∇·(m(x, y) u∇u)" in mapped("porous", of="porous").equation.text
