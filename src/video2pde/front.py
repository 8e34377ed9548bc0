"""Front-aware recalibration: coefficients that place the plume's front, with a positive diffusion.

    J = J_pix + w_f J_radius + w_g J_growth

over some times of the training window and the front levels γ: J_pix the mean squared error of the field,
J_radius the mean squared relative error of the equivalent front radius r_γ = √(A_γ/π), J_growth that of its
change from one time to the next. The area is soft, A_γ = ∫ σ((u − γ)/s) dA, so that J is smooth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import expit

from video2pde.calibration.blocks import LAW
from video2pde.calibration.fit import Fit
from video2pde.calibration.problem import Problem
from video2pde.settings import FrontSettings, RolloutSettings
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion

Array = NDArray[np.float64]

STEP = 1e-4
LEAST_POSITIVE = 1e-3
"""Share of its scale at which a coefficient starts that must become positive."""
PENALTY = 1e3
"""Residual of a rollout that fails: finite, so that the optimiser steps back."""


@dataclass(frozen=True, eq=False)
class FrontFit:
    """Hold a front-aware fit: source, coefficients, objective and its parts; whether diffusion was kept positive."""

    source: str
    positive: bool
    coefficients: Mapping[str, float]
    objective: float
    pixel: float
    radius: float
    growth: float
    converged: bool
    reason: str


def fit_front(
    problem: Problem,
    fit: Fit,
    starts: Mapping[str, Sequence[float]],
    settings: FrontSettings,
    rollout: RolloutSettings,
    background: Array,
) -> tuple[FrontFit, ...]:
    """Recalibrate from every start with diffusion positive (fitted as a logarithm), and once unconstrained.

    ``background`` (t,) is what levels are counted from.
    """
    target = _Target(problem, fit, settings, rollout, background)
    diffusion = np.array([is_diffusion(term, EMPTY_TO_FULL) for term in problem.terms])
    constrained = [True, False] if diffusion.any() else [False]
    return tuple(
        _minimise(target, source, np.asarray(guess, float), diffusion & positive)
        for positive in constrained
        for source, guess in starts.items()
        if positive or source == next(iter(starts)) or len(constrained) == 1
    )


class _Target:
    """The objective's residuals, their observed side computed once."""

    def __init__(
        self, problem: Problem, fit: Fit, settings: FrontSettings, rollout: RolloutSettings, background: Array
    ) -> None:
        self.problem, self.fit, self.settings = problem, fit, settings
        window = problem.window
        self.frames = np.unique(np.linspace(0, len(window.times) - 1, settings.times).round().astype(int))
        self.levels = np.asarray(rollout.levels)
        self.background = background[self.frames]
        self.observed = window.values[self.frames]
        self.radii = self._radii(self.observed.astype(float))
        self.size = np.maximum(self.radii, 0.02 * self.radii.max())

    def _radii(self, frames: Array) -> Array:
        """Return soft equivalent radii, (time, level)."""
        grid, weight = self.problem.window.grid, self.problem.window.weight
        above = (frames - self.background[:, None, None]) / self.settings.softness
        # level by level: all of them at once would be many times the frames
        areas = [np.einsum("tyx,yx->t", expit(above - level / self.settings.softness), weight) for level in self.levels]
        return np.asarray(np.sqrt(np.stack(areas, axis=1) * grid.dx * grid.dy / np.pi))

    def residuals(self, points: Sequence[Array]) -> list[Array]:
        """Return the residual vector of several sets of coefficients, rolled out side by side."""
        problem = self.problem
        scenes = [problem.scene({**self.fit.values, LAW: point}, self.fit.start) for point in points]
        models, velocity = [scene.model for scene in scenes], np.stack([scene.velocity for scene in scenes])
        predicted = np.full((len(points), *self.observed.shape), np.nan)
        for frames, values in problem.window.predict(
            models, self.fit.start, velocity, problem.rollout, problem.workers
        ):
            inside = (self.frames >= frames.start) & (self.frames < frames.stop)
            predicted[:, inside] = values[:, self.frames[inside] - frames.start]
        return [self._compare(values) for values in predicted]

    def _compare(self, predicted: Array) -> Array:
        weight = self.problem.window.weight
        used = weight > 0
        pixel = (predicted - self.observed)[:, used].ravel()
        if not np.isfinite(pixel).all():
            return np.full(pixel.size + self.radii.size + self.radii[1:].size, PENALTY / np.sqrt(pixel.size))
        radii = self._radii(predicted)
        radius = ((radii - self.radii) / self.size).ravel()
        growth = ((np.diff(radii, axis=0) - np.diff(self.radii, axis=0)) / self.size[1:]).ravel()
        return np.concatenate(
            [
                pixel / np.sqrt(pixel.size),
                np.sqrt(self.settings.radius_weight / radius.size) * radius,
                np.sqrt(self.settings.growth_weight / growth.size) * growth,
            ]
        )

    def parts(self, residual: Array) -> tuple[float, float, float]:
        """Split the objective: J_pix, J_radius, J_growth, without their weights."""
        growth = self.radii[1:].size
        ends = np.cumsum([residual.size - self.radii.size - growth, self.radii.size, growth])
        sums = [float(np.sum(part**2)) for part in np.split(residual, ends[:-1])]
        weights = (1.0, self.settings.radius_weight or 1.0, self.settings.growth_weight or 1.0)
        pixel, radius, growth_part = (value / weight for value, weight in zip(sums, weights, strict=True))
        return pixel, radius, growth_part


def _minimise(target: _Target, source: str, guess: Array, log: NDArray[np.bool_]) -> FrontFit:
    """Fit from one start; coefficients marked by ``log`` stay positive."""
    scales = target.problem.law.scale
    first = guess / scales
    first[log] = np.log(np.maximum(guess[log], LEAST_POSITIVE * scales[log]) / scales[log])

    def coefficients(z: Array) -> Array:
        values = z * scales
        values[log] = scales[log] * np.exp(np.clip(z[log], -20, 5))
        return np.asarray(values)

    def residual(z: Array) -> Array:
        return target.residuals([coefficients(z)])[0]

    def jacobian(z: Array) -> Array:
        moved = [z, *(z + STEP * row for row in np.eye(len(z)))]
        base, *others = target.residuals([coefficients(point) for point in moved])
        return np.stack([(other - base) / STEP for other in others], axis=1)

    result = least_squares(residual, first, jacobian, method="trf", xtol=1e-5, ftol=1e-8, gtol=1e-12, max_nfev=60)
    pixel, radius, growth = target.parts(result.fun)
    names = [term.name for term in target.problem.terms]
    failed = 2 * float(result.cost) >= PENALTY**2
    return FrontFit(
        source=source,
        positive=bool(log.any()),
        coefficients=dict(zip(names, (float(c) for c in coefficients(result.x)), strict=True)),
        objective=2 * float(result.cost),
        pixel=pixel,
        radius=radius,
        growth=growth,
        converged=bool(result.status > 0) and not failed,
        reason="no rollout could be completed from this start" if failed else str(result.message),
    )
