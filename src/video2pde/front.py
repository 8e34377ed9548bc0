"""Front-aware recalibration: coefficients that place the plume's front, with a positive diffusion.

    J = J_pix + w_f J_radius + w_g J_growth

over some times of the training window and the front levels γ: J_pix the mean squared error of the field,
J_radius the mean squared relative error of the equivalent front radius r_γ = √(A_γ/π), J_growth that of its
change from one time to the next. The area is soft, A_γ = ∫ σ((u − γ)/s) dA, so that J is smooth. It is minimised by
Levenberg–Marquardt on normal equations, which are summed while the rollouts stream by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import LAW
from video2pde.calibration.fit import Fit
from video2pde.calibration.problem import Problem
from video2pde.device import namespace, to_host
from video2pde.parallel import map_threads
from video2pde.settings import FrontSettings, RolloutSettings
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion

Array = NDArray[np.float64]

STEP = 1e-4
"""Step of the differences that give the Jacobian, in units of the coefficients' scales."""
LEAST_POSITIVE = 1e-3
"""Share of its scale at which a coefficient starts that must become positive."""
SMALL_STEP, SMALL_GAIN = 1e-5, 1e-8
"""A fit has converged where the step that is left, or what it would gain, is this small relative to the whole."""
FIRST_DAMPING, MOST_DAMPING, MOST_STEPS = 1e-4, 1e3, 30
"""Levenberg–Marquardt's damping at the start, the one at which a fit is given up, and steps at most."""
STEEP = 300.0
"""Exponent up to which a product of exponentials stays finite."""


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


@dataclass(frozen=True, eq=False)
class _Sums:
    """The objective at a point: its parts J_pix, J_radius, J_growth, and the normal equations JᵀJ, Jᵀr of all."""

    parts: tuple[float, float, float]
    objective: float
    hessian: Array
    slope: Array


class _Target:
    """The objective, its observed side computed once."""

    def __init__(
        self, problem: Problem, fit: Fit, settings: FrontSettings, rollout: RolloutSettings, background: Array
    ) -> None:
        self.problem, self.fit, self.settings = problem, fit, settings
        window = problem.window
        self.frames = np.unique(np.linspace(0, len(window.times) - 1, settings.times).round().astype(int))
        self.levels = np.asarray(rollout.levels)
        self.background = background[self.frames]
        self.observed = window.values[self.frames]
        self.radii = self._radii(self.observed.astype(float), self.background)
        self.size = np.maximum(self.radii, 0.02 * self.radii.max())

    def _radii(self, frames: Any, background: Array) -> Array:
        """Return soft equivalent radii (..., time, level) of frames (..., t, y, x), in memory or on a device."""
        grid, softness = self.problem.window.grid, self.settings.softness
        areas = _compiled_areas() if namespace(frames) is not np else partial(_soft_areas, np)
        steps = self.levels / softness
        with np.errstate(over="ignore"):  # far below a level the share is 1/∞
            found = areas(frames, background, softness, steps, self.problem.window.weight, bool(steps.max() > STEEP))
        return np.asarray(np.sqrt(to_host(found) * grid.dx * grid.dy / np.pi))

    def _radii_of_all(self, rollouts: Any, background: Array) -> Any:
        """Return the radii of every rollout (m, t, y, x)."""
        if self.problem.window.on_device:
            return self._radii(rollouts, background)
        return map_threads(lambda each: self._radii(each, background), rollouts, self.problem.workers)

    def sum_up(self, points: Sequence[Array]) -> _Sums | None:
        """Roll out at the first of several sets of coefficients and, for the Jacobian, at its neighbours.

        None where a rollout fails: the others are then left off.
        """
        problem, window = self.problem, self.problem.window
        scenes = [problem.scene({**self.fit.values, LAW: point}, self.fit.start) for point in points]
        models, velocity = [scene.model for scene in scenes], np.stack([scene.velocity for scene in scenes])
        pixels, radii = np.zeros((len(points),) * 2), np.empty((len(points), *self.radii.shape))
        with window.arithmetic():
            for frames, values in window.predict(models, self.fit.start, velocity, problem.rollout, problem.workers):
                if not namespace(values).isfinite(values[:, -1]).all():
                    return None
                here = (self.frames >= frames.start) & (self.frames < frames.stop)
                if here.any():
                    seen = values[:, self.frames[here] - frames.start]
                    radii[:, here] = self._radii_of_all(seen, self.background[here])
                    pixels += self._products(seen, self.observed[here])
        return self._put_together(pixels / ((window.weight > 0).sum() * len(self.frames)), radii)

    def _products(self, seen: Any, observed: NDArray[np.float32]) -> Array:
        """Sum products of the first rollout's error and of the others' differences from it, (points, points)."""
        inside, rows = self.problem.window.weight > 0, seen - observed
        rows = (rows if inside.all() else rows[:, :, inside]).reshape(len(seen), -1)
        rows = namespace(rows).concatenate([rows[:1], rows[1:] - rows[0]])
        return np.asarray(rows @ rows.T)

    def _put_together(self, pixels: Array, radii: Array) -> _Sums:
        """Add the products of errors and differences (points, points) of pixels, radii and their growth."""
        radius = (radii - self.radii) / self.size
        growth = (np.diff(radii, axis=1) - np.diff(self.radii, axis=0)) / self.size[1:]
        grams = [pixels]
        for part in (radius, growth):
            rows = part.reshape(len(part), -1).copy()
            rows[1:] -= rows[0]
            grams.append(rows @ rows.T / rows.shape[1])
        weights = (1.0, self.settings.radius_weight, self.settings.growth_weight)
        total = np.einsum("p,pij->ij", weights, grams)
        pixel, radius_part, growth_part = (float(gram[0, 0]) for gram in grams)
        hessian, slope = total[1:, 1:] / STEP**2, total[1:, 0] / STEP
        return _Sums((pixel, radius_part, growth_part), float(total[0, 0]), hessian, slope)


def _soft_areas(xp: Any, frames: Any, background: Any, softness: float, steps: Any, weight: Any, steep: bool) -> Any:
    """Sum σ(x − l) over the pixels: x = (frames − background)/softness (..., t, y, x), l each of ``steps``.

    ``steep``: eˡ may be too large for a number.
    """
    above = (frames - background[:, None, None]) / softness
    if steep:
        shares = (1.0 / (1.0 + xp.exp(step - above)) for step in steps)
    else:
        # σ(x − l) = 1/(1 + eˡ e⁻ˣ): one exponential for all levels
        decay = xp.exp(-above)
        shares = (1.0 / (1.0 + xp.exp(step) * decay) for step in steps)
    return xp.stack([xp.einsum("...yx,yx->...", share, weight) for share in shares], axis=-1)


@cache
def _compiled_areas() -> Callable[..., Any]:
    """Return :func:`_soft_areas` for a device: a thousand small steps, each of which would be sent there alone."""
    import jax

    return jax.jit(partial(_soft_areas, jax.numpy), static_argnums=5)


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """Coefficients as the fit moves them: in units of their scales, those marked by ``log`` as logarithms."""

    scales: Array
    log: NDArray[np.bool_]

    def begin(self, guess: Array) -> Array:
        z = guess / self.scales
        z[self.log] = np.log(np.maximum(z[self.log], LEAST_POSITIVE))
        return np.asarray(z)

    def coefficients(self, z: Array) -> Array:
        values = z * self.scales
        values[self.log] = self.scales[self.log] * np.exp(np.clip(z[self.log], -20, 5))
        return np.asarray(values)

    def neighbours(self, z: Array) -> list[Array]:
        """Return the coefficients at ``z`` and a step along each unknown."""
        return [self.coefficients(point) for point in (z, *(z + STEP * row for row in np.eye(len(z))))]


@dataclass(eq=False)
class _Search:
    """Levenberg–Marquardt's way from one start: where it stands, its damping, and why it has ended, if it has."""

    target: _Target
    unknowns: _Unknowns
    z: Array
    sums: _Sums
    damping: float = FIRST_DAMPING
    steps: int = 0
    converged: bool = False
    reason: str = ""

    def run(self) -> None:
        while not self.reason:
            left = self._solve(0.0)
            gain, length = -float(self.sums.slope @ left), float(np.linalg.norm(left))
            if gain < SMALL_GAIN * self.sums.objective or length < SMALL_STEP * float(np.linalg.norm(self.z)):
                self.converged, self.reason = True, "no step would lower the objective any further"
            else:
                self._step()

    def _solve(self, damping: float) -> Array:
        damped = self.sums.hessian + damping * np.diag(np.diagonal(self.sums.hessian))
        return np.asarray(np.linalg.lstsq(damped, -self.sums.slope, rcond=None)[0])

    def _step(self) -> None:
        self.steps += 1
        there = self.z + self._solve(self.damping)
        trial = self.target.sum_up(self.unknowns.neighbours(there))
        if trial is not None and trial.objective < self.sums.objective:
            self.z, self.sums, self.damping = there, trial, self.damping / 10
        else:
            self.damping *= 10
        if self.damping > MOST_DAMPING:
            self.reason = "no step lowers the objective, yet it is not at its least"
        elif self.steps == MOST_STEPS:
            self.reason = f"not converged after {self.steps} steps"


def _minimise(target: _Target, source: str, guess: Array, log: NDArray[np.bool_]) -> FrontFit:
    """Fit from one start; coefficients marked by ``log`` stay positive."""
    unknowns = _Unknowns(target.problem.law.scale, log)
    first = unknowns.begin(guess)
    sums = target.sum_up(unknowns.neighbours(first))
    nothing = float("nan")
    hopeless = _Sums((nothing,) * 3, float("inf"), np.empty((0, 0)), np.empty(0))
    search = _Search(target, unknowns, first, sums or hopeless)
    if sums is None:
        search.reason = "no rollout could be completed from this start"
    search.run()
    pixel, radius, growth = search.sums.parts
    names = [term.name for term in target.problem.terms]
    return FrontFit(
        source=source,
        positive=bool(log.any()),
        coefficients=dict(zip(names, unknowns.coefficients(search.z).tolist(), strict=True)),
        objective=search.sums.objective,
        pixel=pixel,
        radius=radius,
        growth=growth,
        converged=search.converged,
        reason=search.reason,
    )
