"""Flow and law in one linear regression, and the choice of the flow.

Columns of the law and of the flow's modes stand side by side,

    b ≈ Θ ξ + F q,     q penalised by λ qᵀ(P_space ⊗ 1 + 1 ⊗ P_time) q,

so that neither takes what belongs to the other. The modes are taken relative to the plume: like the terms of a law
(``discovery.moments``), a mode moves the centroid, and the measured drift holds that already. λ comes from
cross-validation over blocks of time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.weak import WeakSystem
from video2pde.discovery.weighted import Profiles, TimeMoments, velocity_parts, WeightedPart
from video2pde.drift import Drift
from video2pde.field import Field, Grid
from video2pde.flow import Flow, FlowShape
from video2pde.flow.flow import Product
from video2pde.terms.catalogue import DRIFT
from video2pde.terms.parse import U

Array = NDArray[np.float64]

BLOCKS = 4
"""Blocks of time of the cross-validation."""
RIDGES = tuple(10.0**k for k in range(-6, 3))
"""Penalties on roughness in space, relative to the columns, that cross-validation chooses from, ..."""
SLOW_RIDGES = tuple(10.0**k for k in range(-4, 3, 2))
"""... and on change in time."""
NEARLY = 1.1
"""How much more than the best a stiffer flow, or a course of fewer levels, may leave unexplained in left-out data."""
MOST_DIRECTIONS, LEAST_POWER = 40, 1e-4
"""Changes of a flow that a calibration may make, and the share of the strongest one's effect that counts."""
SPEED = 1e-3
"""Weight of the speed itself beside the roughness: where there is no dye, nothing else keeps a flow from growing."""
ROUNDING = 1e-13
"""Ridge on unknowns of size one: what differs by less is not told apart by numbers of sixteen digits."""
TINY = 1e-9
"""Ridge on everything, relative: it settles what no column shows, such as a constant in a stream function."""


def mode_means(field: Field, drift: Drift, shape: FlowShape) -> Array:
    """Average every mode over the plume, frame by frame: (k, t, 2)."""
    cells = drift.region
    weights = field.values[:, cells] - drift.background[:, None]
    modes = shape.modes(field.grid)[:, :, cells]
    total = weights.sum(axis=1)
    sums = np.einsum("tn,kcn->ktc", weights, modes, optimize=True)
    return np.asarray(sums / np.where(total > 0, total, np.inf)[None, :, None])


def carry_parts(component: Sequence[Product], axis: int, diverges: bool) -> list[WeightedPart]:
    """Write −v ∂u = −∂(v u) + u ∂v along x (axis 0) or y (axis 1), v a sum of products.

    Without divergence the second parts of both axes cancel, and are left out.
    """
    parts: list[WeightedPart] = []
    for factor, along_y, along_x in component:
        parts += velocity_parts(along_y, along_x, axis, factor)
        if diverges:
            steeper = (along_y, along_x.derivative) if axis == 0 else (along_y.derivative, along_x)
            parts.append(WeightedPart(*steeper, (0, 0), U, factor))
    return parts


def flow_columns(moments: TimeMoments, drift: Drift, shape: FlowShape) -> Array:
    """Return the weak columns of −(v_k − ⟨v_k⟩)·∇u θ_l, ⟨⟩ the mean over the plume: (M, l, k)."""
    field = moments.field
    theta = shape.time_functions(field.times)
    in_time = None if shape.steady else theta
    columns = []
    groups = shape.groups(field.grid)
    for index, (v_x, v_y) in enumerate(groups):
        diverges = shape.divergence and index == len(groups) - 1
        parts = [part for axis, v in enumerate((v_x, v_y)) for part in carry_parts(v, axis, diverges)]
        found = moments.columns(parts, in_time)
        columns.append(found.reshape(len(found), len(theta), -1))
    total = np.concatenate(columns, axis=2)
    means = mode_means(field, drift, shape)
    for axis in range(2):
        pushed = (theta[:, None] * means[None, :, :, axis]).reshape(-1, len(field))
        total -= uniform_columns(moments, axis, pushed).reshape(total.shape)
    return total


def uniform_columns(moments: TimeMoments, axis: int, courses: Array) -> Array:
    """Return the weak columns of −v ∂u along x (axis 0) or y (axis 1), v(t) the ``courses`` (n, t): (M, n)."""
    grid = moments.field.grid
    parts = velocity_parts(Profiles.powers(grid.y, 0), Profiles.powers(grid.x, 0), axis)
    return np.asarray(moments.columns(parts, courses)[:, :, 0, 0])


@dataclass(frozen=True, eq=False)
class Ridge:
    """Penalties on roughness in space and on change in time, relative to the mean square of the columns."""

    space: float = 0.0
    time: float = 0.0


def penalty(shape: FlowShape, grid: Grid, ridge: Ridge) -> Array:
    """Return the penalty over (l, k), flattened, with a mean diagonal of one for each ridge of one."""
    size, count = shape.in_time, len(shape.names)
    total = TINY * np.eye(size * count)
    if ridge.space and shape.kind == "stream":
        total += ridge.space * np.kron(np.eye(size), _rough_and_fast(shape, grid))
    if ridge.time and size > 1:
        total += ridge.time * np.kron(_unit(shape.change()), _fast(shape, grid))
    return total


@lru_cache(maxsize=8)
def _fast(shape: FlowShape, grid: Grid) -> Array:
    """Return the mean square of a steady flow's velocity over the picture, as a matrix (k, k)."""
    modes = shape.modes(grid).reshape(len(shape.names), -1)
    return _unit(modes @ modes.T)


@lru_cache(maxsize=8)
def _rough_and_fast(shape: FlowShape, grid: Grid) -> Array:
    return np.asarray(_unit(shape.roughness(grid)) + SPEED * _fast(shape, grid))


def _unit(matrix: Array) -> Array:
    return np.asarray(matrix / (np.trace(matrix) / len(matrix)))


@dataclass(frozen=True, eq=False)
class JointSystem:
    """The law's system and the flow's columns (M, l·k) at the same centres.

    ``metric`` (l·k, l·k): the mean square of a flow's velocity over the plume, relative to the plume, as a matrix.
    """

    law: WeakSystem
    shape: FlowShape
    columns: Array
    grid: Grid
    metric: Array

    def ridged(self, ridge: Ridge) -> Array:
        """Return the penalty in the units of the columns."""
        scale = float(np.mean(np.sum(self.columns**2, axis=0)))
        return penalty(self.shape, self.grid, ridge) * scale

    def without_flow(self, ridge: Ridge) -> WeakSystem:
        """Take off every column, and off b, what the flow's columns explain of it.

        Least squares on what is left gives the law's coefficients of the joint fit, so that all that is done with a
        weak system (thresholds, stability, standard errors) can be done with a flow beside the law.
        """
        if not self.columns.shape[1]:
            return self.law
        both = np.column_stack([self.law.theta, self.law.b])
        left = both - self.columns @ self.solve(ridge, both)
        return WeakSystem(self.law.names, left[:, :-1], left[:, -1], self.law.centres, self.law.widths)

    def solve(self, ridge: Ridge, right: Array) -> Array:
        """Solve (FᵀF + penalty) q = Fᵀ right."""
        return _solve(self.columns.T @ self.columns + self.ridged(ridge), self.columns.T @ right)

    def flow(self, ridge: Ridge, coefficients: Mapping[str, float]) -> Flow:
        """Return the flow that belongs to a law, with standard errors that count overlapping test functions."""
        names = [name for name in coefficients if name in self.law.names]
        target = self.law.b - self.law.columns(names) @ np.array([coefficients[name] for name in names])
        values = self.solve(ridge, target)
        residual = target - self.columns @ values
        scores = self.columns * residual[:, None]
        bread = np.linalg.inv(self.columns.T @ self.columns + self.ridged(ridge))
        spread = bread @ (scores.T @ self.law.overlap @ scores) @ bread
        error = np.sqrt(np.maximum(np.diag(spread), 0.0))
        size = (self.shape.in_time, len(self.shape.names))
        directions = self._directions(spread).reshape(-1, *size)
        return Flow(self.shape, values.reshape(size), error.reshape(size), directions=directions)

    def _directions(self, covariance: Array) -> Array:
        """Return the changes by one standard error that would move the plume most: (n, l·k)."""
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        power, along = np.linalg.eigh(root.T @ self.metric @ root)
        chosen = [n for n in range(len(power))[::-1][:MOST_DIRECTIONS] if power[n] > LEAST_POWER * power[-1]]
        return np.asarray((root @ along[:, chosen]).T)


def join_system(law: WeakSystem, moments: TimeMoments, drift: Drift, shape: FlowShape | None) -> JointSystem:
    """Put the flow's columns beside the law's; None: no flow but the uniform drift."""
    field = moments.field
    if shape is None:
        extent, span = (field.grid.height, field.grid.width), (float(field.times[0]), float(field.times[-1]))
        nothing = np.zeros((len(law.b), 0))
        return JointSystem(law, FlowShape("affine", extent, span), nothing, field.grid, np.zeros((0, 0)))
    columns = flow_columns(moments, drift, shape)
    theta = shape.time_functions(field.times)
    metric = np.asarray(np.kron(theta @ theta.T / len(field), _plume_metric(field, drift, shape)), float)
    return JointSystem(law, shape, columns.reshape(len(columns), -1), field.grid, metric)


def _plume_metric(field: Field, drift: Drift, shape: FlowShape) -> Array:
    """Average v_j·v_k over the plume and over time, both relative to their means over it: (k, k)."""
    cells = drift.region
    weights = np.maximum(field.values[:, cells] - drift.background[:, None], 0.0).mean(axis=0)
    weights /= max(float(weights.sum()), 1e-300)
    modes = shape.modes(field.grid)[:, :, cells]
    modes -= (modes @ weights)[:, :, None]
    flat = (modes * np.sqrt(weights)).reshape(len(modes), -1)
    return np.asarray(flat @ flat.T)


def _solve(matrix: Array, right: Array) -> Array:
    """Solve a symmetric system in unknowns of one size each.

    A mode that is hardly seen has a penalty many orders of magnitude above all others', and would make the system
    singular in numbers.
    """
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    unit = matrix / np.outer(size, size)
    unit[np.diag_indices(len(unit))] += ROUNDING
    return np.asarray((np.linalg.solve(unit, (right.T / size).T).T / size).T)


def cross_validate(system: JointSystem, terms: Sequence[str], ridges: Sequence[Ridge]) -> Array:
    """Return the unexplained share of b in each left-out block of time: (ridge, block).

    Test functions of neighbouring blocks overlap in time, so that no block is quite unknown to the others.
    """
    law = system.law.columns([*terms, *(name for name in DRIFT if name in system.law.names)])
    theta = np.hstack([law, system.columns])
    scale = np.linalg.norm(theta, axis=0)
    scale[scale == 0] = 1.0
    unit, b = theta / scale, system.law.b
    times = system.law.centres[:, 0]
    edges = np.quantile(np.unique(times), np.linspace(0, 1, BLOCKS + 1))[1:-1]
    block = np.searchsorted(edges, times, side="right")
    grams = [unit[block == n].T @ unit[block == n] for n in range(BLOCKS)]
    rights = [unit[block == n].T @ b[block == n] for n in range(BLOCKS)]
    left = np.empty((len(ridges), BLOCKS))
    count = law.shape[1]
    for i, ridge in enumerate(ridges):
        # a mode that no test function of the other blocks sees is neither fitted nor penalised: TINY keeps it at zero
        extra = TINY * np.eye(len(scale))
        if system.columns.shape[1]:
            extra[count:, count:] += system.ridged(ridge) / np.outer(scale[count:], scale[count:])
        for n in range(BLOCKS):
            gram, right = sum(g for m, g in enumerate(grams) if m != n), sum(r for m, r in enumerate(rights) if m != n)
            solution = _solve(gram + extra * (1 - 1 / BLOCKS), right)
            here = block == n
            left[i, n] = np.sum((b[here] - unit[here] @ solution) ** 2)
    return left / float(b @ b)
