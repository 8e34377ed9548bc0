"""THE definition of a flow that varies in space, beside the uniform drift, and its views.

    u_t = −(v₀(t) + v(x, y, t))·∇u + law,      v(x, y, t) = Σ_l θ_l(t) Σ_k q_lk v_k(x, y)

v₀ is the uniform drift, v the rest. The modes v_k are linear in x and y (``affine``: rotation, two strains and, on
request, divergence) or those of a stream function ψ on B-splines (``stream``: v = (∂ψ/∂y, −∂ψ/∂x), free of divergence).
θ_l are B-splines in time; one of them is a steady flow, or one whose strength alone changes (``course``). Beyond the
frames that it was fitted to, a flow stays as it last was. A velocity that was measured otherwise (``given``) is a flow,
too, with fields in place of modes.

A flow carries u. Where it diverges and u is an amount (dye on a surface that spreads, and thins), −u ∇·v acts, too;
with a divergence that is the same everywhere, that is the law's own term u.

Views: weak columns (:meth:`FlowShape.columns`, through ``discovery.weighted``), velocity on the grid for rollouts
(:meth:`Flow.fields`, :meth:`Flow.weights`), velocity at points for the inverse PINN (:meth:`Flow.at`), words
(``flow.words``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.flow.profiles import Profiles

Array = NDArray[np.float64]
Kind = Literal["affine", "stream", "given"]
GRIDS_KEPT = 8
"""Shapes and grids whose functions are kept: those of a run, on its grid and on a finer one."""
AFFINE = ("rotation", "strain_axes", "strain_cross")
DIVERGENCE = "divergence"

Product = tuple[float, Profiles, Profiles]
"""A factor, functions of y and functions of x: the sum of such products is one component of a velocity."""


@dataclass(frozen=True)
class FlowShape:
    """Say which flows are possible: the modes in space and the splines in time.

    Parameters
    ----------
    kind : ``affine`` or ``stream``.
    extent : (height, width) of the picture, length units.
    span : first and last time of the frames that the flow is fitted to, seconds.
    splines : (rows, columns) of the stream function; degree : of these. What is smoothest under the penalty on
        ∫|∇∇v|², third derivatives of ψ, has degree five.
    in_time : number of splines in time that each mode has of its own; 1: all modes keep their shares.
    course : coefficients of splines in time of the factor θ(t) that they have then in common; none: steady.
    ramps : (centre, width), seconds, of the ramps between the levels of a course that has few; see ``flow.ramps``.
    divergence : whether a divergence, uniform in space, is among the modes.
    potential : whether a given velocity is −∇g of a given field g, with one factor χ: u_t = χ ∇g·∇u + law.
    """

    kind: Kind
    extent: tuple[float, float]
    span: tuple[float, float]
    splines: tuple[int, int] = (1, 1)
    in_time: int = 1
    divergence: bool = False
    course: tuple[float, ...] = ()
    degree: int = 5
    ramps: tuple[tuple[float, float], ...] = ()
    potential: bool = False

    @property
    def steady(self) -> bool:
        return self.in_time == 1 and not self.course

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modes in space."""
        rows, columns = self.splines
        own = AFFINE if self.kind == "affine" else [f"psi_{i}_{j}" for i in range(rows) for j in range(columns)]
        return (*own, DIVERGENCE) if self.divergence else tuple(own)

    def groups(self, grid: Grid) -> list[tuple[list[Product], list[Product]]]:
        """Return the modes on a grid in groups that share their products: v_x and v_y of each."""
        x = Profiles.powers(grid.x, 1, self.extent[1] / 2)
        y = Profiles.powers(grid.y, 1, self.extent[0] / 2)
        across, down = (1.0, y.take(0), x.take(1)), (1.0, y.take(1), x.take(0))
        minus = (-1.0, y.take(1), x.take(0))
        # of unit divergence
        divergence = [([(0.5, y.take(0), x.take(1))], [(0.5, y.take(1), x.take(0))])] if self.divergence else []
        if self.kind == "affine":
            # rotation (−y, x), strain along the axes (x, −y) and across them (y, x)
            return [([minus], [across]), ([across], [minus]), ([down], [across]), *divergence]
        psi_y, psi_x = self._along(grid)
        stream = ([(1.0, psi_y.derivative, psi_x)], [(-1.0, psi_y, psi_x.derivative)])
        return [stream, *divergence]

    def _along(self, grid: Grid) -> tuple[Profiles, Profiles]:
        """Return the functions of y and of x whose products the stream function is a sum of."""
        (rows, columns), (height, width) = self.splines, self.extent
        along_y = Profiles.splines(grid.y, rows, self.degree, (0.0, height))
        return along_y, Profiles.splines(grid.x, columns, self.degree, (0.0, width))

    def modes(self, grid: Grid) -> Array:
        """Return the velocity of every mode on the grid: (k, 2, y, x)."""
        return self.mix(np.eye(len(self.names)), grid)

    def mix(self, amounts: Array, grid: Grid) -> Array:
        """Return the velocity Σ_k a_lk v_k on the grid, (l, 2, y, x); modes are not multiplied out one by one."""
        fields = np.zeros((len(amounts), 2, *grid.shape))
        begin = 0
        # a calibration changes the course from rollout to rollout, which changes no mode
        for group in _sampled(replace(self, course=(), ramps=()), grid):
            for axis, component in enumerate(group):
                for factor, along_y, along_x in component:
                    count = len(along_y) * len(along_x)
                    own = amounts[:, begin : begin + count].reshape(-1, len(along_y), len(along_x))
                    fields[:, axis] += factor * (along_y.T @ own @ along_x)
            begin += count
        return fields

    def time_functions(self, times: Array) -> Array:
        """Return θ_l at the times, (l, t); before and after the span as at its ends."""
        if self.steady:
            return np.ones((1, len(times)))
        inside = np.clip(times, *self.span)
        if self.course:
            return np.asarray(np.array(self.course) @ self.course_functions(times))[None]
        return Profiles.splines(inside, self.in_time, ends=self.span).values()

    def course_functions(self, times: Array) -> Array:
        """Return the splines of the course at the times, (l, t)."""
        return Profiles.splines(np.clip(times, *self.span), len(self.course), ends=self.span).values()

    def roughness(self, grid: Grid) -> Array:
        """Return the penalty ∫|∇∇v|² as a matrix over the modes, (k, k): none for whatever is affine."""
        size = len(self.names)
        matrix = np.zeros((size, size))
        if self.kind != "stream":
            return matrix
        y, x = self._along(grid)
        count = self.splines[0] * self.splines[1]
        for along_y, weight in ((0, 1), (1, 3), (2, 3), (3, 1)):
            matrix[:count, :count] += weight * np.kron(y.gram(along_y), x.gram(3 - along_y))
        return matrix

    def change(self) -> Array:
        """Return the penalty on a change in time, (l, l): squared differences of neighbouring splines."""
        differences = np.diff(np.eye(self.in_time), axis=0)
        return np.asarray(differences.T @ differences)


@lru_cache(maxsize=GRIDS_KEPT)
def _sampled(shape: FlowShape, grid: Grid) -> list[list[list[tuple[float, Array, Array]]]]:
    """Sample the functions of the modes' groups on a grid, each (functions, samples): every rollout asks for them."""
    return [
        [[(factor, y.values(), x.values()) for factor, y, x in component] for component in group]
        for group in shape.groups(grid)
    ]


@dataclass(frozen=True, eq=False)
class Flow:
    """Hold a flow: its shape and the coefficients q (l, k), or a given velocity.

    ``error`` (l, k): standard errors of the coefficients; ``directions`` (n, l, k): the changes of them, each of one
    standard error, that would move the plume most, and that a calibration may still make. ``given`` (n, 2, y, x): v_x,
    v_y at ``given_times`` on cells that cover the picture, for the kind ``given``; its coefficients are the scales
    (c_x, c_y), as (1, 2).
    """

    shape: FlowShape
    coefficients: Array
    error: Array
    given: NDArray[np.float32] | None = None
    given_times: Array | None = None
    directions: Array | None = None

    def __post_init__(self) -> None:
        expected = (1, 2) if self.shape.kind == "given" else (self.shape.in_time, len(self.shape.names))
        if self.coefficients.shape != expected or not np.isfinite(self.coefficients).all():
            raise InputError(
                f"a flow of this shape needs {expected} finite coefficients, not {self.coefficients.shape}"
            )

    @property
    def kind(self) -> Kind:
        return self.shape.kind

    @property
    def steady(self) -> bool:
        return len(self.given_times) == 1 if self.given_times is not None else self.shape.steady

    def fields(self, grid: Grid) -> Array:
        """Return V_l(x, y) on the grid, (l, 2, y, x), of v = Σ_l weights_l(t) V_l."""
        if self.given is not None:
            return np.asarray(_on_grid(self.given, grid) * self.coefficients[0][None, :, None, None])
        return self.shape.mix(self.coefficients, grid)

    def weights(self, times: Array) -> Array:
        """Return the factors of the fields at the times: (t, l)."""
        times = np.asarray(times, float)
        if self.given_times is None:
            return np.asarray(self.shape.time_functions(times).T)
        if len(self.given_times) == 1:
            return np.ones((len(times), 1))
        hats = [np.interp(times, self.given_times, unit) for unit in np.eye(len(self.given_times))]
        return np.stack(hats, axis=1)

    def velocity(self, times: Array, grid: Grid) -> Array:
        """Return v at the times on the grid: (t, 2, y, x)."""
        return np.asarray(np.tensordot(self.weights(times), self.fields(grid), axes=1))

    def at(self, times: Array, y: Array, x: Array, grid: Grid) -> Array:
        """Return v at points (n,), (n, 2); ``grid`` is what the fields are interpolated on."""
        fields = np.moveaxis(self.fields(grid), (0, 1), (2, 3))
        inside = np.stack([np.clip(y, grid.y[0], grid.y[-1]), np.clip(x, grid.x[0], grid.x[-1])], axis=1)
        values = RegularGridInterpolator((grid.y, grid.x), fields)(inside)
        return np.asarray(np.einsum("nl,nlc->nc", self.weights(times), values))

    def plume_mean(self, weights: Array, cells: NDArray[np.bool_], times: Array, grid: Grid) -> Array:
        """Average v over the plume: ``weights`` (t, n) of the marked ``cells``; (t, 2)."""
        fields = self.fields(grid)[:, :, cells]
        total = weights.sum(axis=1)
        means = np.einsum("tn,lcn->tlc", weights, fields) / np.where(total > 0, total, 1.0)[:, None, None]
        return np.asarray(np.einsum("tl,tlc->tc", self.weights(times), means))

    def changed(self, change: Array) -> Flow:
        """Change the coefficients by (l, k)."""
        return replace(self, coefficients=self.coefficients + change)

    def plume_gradient(self, weights: Array, cells: NDArray[np.bool_], times: Array, grid: Grid) -> Array:
        """Average ∂v_i/∂x_j over the plume, as :meth:`plume_mean` does v: (t, 2, 2), order x, y."""
        fields = self.fields(grid)
        slopes = np.stack([np.gradient(fields, grid.dx, axis=3), np.gradient(fields, grid.dy, axis=2)], axis=2)
        total = weights.sum(axis=1)
        means = np.einsum("tn,lijn->tlij", weights, slopes[:, :, :, cells])
        means /= np.where(total > 0, total, 1.0)[:, None, None, None]
        return np.asarray(np.einsum("tl,tlij->tij", self.weights(times), means))

    def scaled(self, scale: tuple[float, float]) -> Flow:
        """Multiply a given velocity by (c_x, c_y)."""
        return replace(self, coefficients=self.coefficients * np.asarray(scale)[None])


def _on_grid(given: NDArray[np.float32], grid: Grid) -> Array:
    """Bring a velocity on other cells of the same picture onto the grid, linear in between."""
    if given.shape[2:] == grid.shape:
        return np.asarray(given, float)
    y, x = (
        (np.arange(count) + 0.5) * length / count
        for count, length in zip(given.shape[2:], (grid.height, grid.width), strict=True)
    )
    at = np.stack(np.meshgrid(np.clip(grid.y, y[0], y[-1]), np.clip(grid.x, x[0], x[-1]), indexing="ij"), axis=-1)
    values = RegularGridInterpolator((y, x), np.moveaxis(np.asarray(given, float), (0, 1), (2, 3)))(at)
    return np.asarray(np.moveaxis(values, (2, 3), (0, 1)))


def affine_values(flow: Flow, times: Sequence[float] | Array) -> dict[str, Array]:
    """Return the coefficients of an affine flow at the times, by name, 1/s."""
    values = flow.weights(np.asarray(times, float)) @ flow.coefficients
    return dict(zip(flow.shape.names, values.T, strict=True))
