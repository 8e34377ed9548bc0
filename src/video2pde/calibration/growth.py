"""A law that grows, fitted jointly with its initial frame: a block that is eliminated instead of solved for.

Growth amplifies whatever is wrong with the initial frame: noise, or the edge of a plume that 8 bits rounded to
nothing, comes back many times larger and passes for diffusion. But all frames know the initial one. An error ε(x) in it
is s(t, X) ε(x) later, where s is the rollout's answer to a uniform change and X(t, x) where drift and flow have carried
it. So every pixel is an unknown with equations of its own, which are eliminated from those of law and drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import START
from video2pde.calibration.fit import Fit, fit_rollout
from video2pde.calibration.linear import Chunk, jit, Linear, Look, RELATIVE_STEP
from video2pde.calibration.problem import Problem
from video2pde.calibration.window import FrameSplit, Window
from video2pde.device import namespace, to_host
from video2pde.flow.paths import take_ways, ways
from video2pde.rollout.start import smooth_frame
from video2pde.settings import CalibrationSettings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

GROWS = 2.0
"""Factor by which an error of the initial frame must grow somewhere for the law to be fitted in this way."""
PASSES = 12
"""Most steps; each corrects both the coefficients and the initial frame."""
MIXED = 6
"""Steps at most that are combined to one."""
SAME_STEP, TINY = 1e-3, 1e-12
"""Relative singular value below which steps are one and the same; what makes a matrix definite."""
SETTLED = 5e-4
"""Relative change of the coefficients below which there is nothing left to correct."""
LITTLE = 1e-3
"""Share of the largest power below which a pixel says too little about its own beginning to be changed."""
PART = 3
"""One run of frames in so many makes the Jacobian's start, the others are compared with the rollout."""


@dataclass(frozen=True, eq=False)
class EliminatedStart:
    """The initial frame's pixels, to be eliminated from the normal equations of the other unknowns.

    ``products`` (n, y, x): JᵀJ between the other unknowns and the pixels, Σ_t gain × column along the way that each
    pixel is carried, the gain being the rollout's answer to a uniform change of the initial frame; ``inverse`` (y, x):
    1 / Σ_t gain², zero where a pixel says too little; ``error`` and ``base_error`` (y, x): Σ_t gain × error, the latter
    of the Jacobian's start in the frames that are not counted, over their Σ_t gain².
    """

    counted: NDArray[np.bool_]
    products: Array
    inverse: Array
    error: Array
    base_error: Array

    def changes(self, step: Array) -> tuple[Array, Array]:
        """Return what a step of the other unknowns leaves to be corrected in both initial frames, each (y, x)."""
        explained = np.tensordot(step, self.products, axes=1) * self.inverse
        return -(self.error * self.inverse + explained), -(self.base_error + explained)

    def taken_out(self, error: Array) -> Array:
        """Return the part of Jᵀr that errors (y, x), summed as ``error`` is, have in common with the initial frame."""
        return np.tensordot(self.products, error * self.inverse, axes=2)

    def pull(self, errors: Frames, frames: slice, gain: Frames, way: Array, weight: Array, out: Array) -> Array:
        """Add gain × error along the pixels' way, as ``error`` is summed, for frames of replicates (m, t, y, x).

        ``gain`` (t, y, x): the answer to a uniform change in these frames, ``way`` (t, 2, y, x): where pixels are then.
        Returns ``out``, in memory added to in place.
        """
        if namespace(errors) is not np:
            from video2pde.calibration.jax_sums import pull_errors

            added: Array = pull_errors(out, errors, gain, weight, way, self.counted[frames])
            return added
        _pull(errors, gain, weight, way, self.counted[frames], out)
        return out


@dataclass(frozen=True, eq=False)
class Shared:
    """A point of the fit, the initial frame's share taken out of its normal equations.

    ``look`` rolls it out again; the last of its pictures is the gain.
    """

    linear: Linear
    look: Look
    start: EliminatedStart

    def ways(self) -> Iterator[Array]:
        """Yield how far each pixel has been carried, time by time (see ``flow.paths.ways``)."""
        return _ways(self.look)


def _ways(look: Look) -> Iterator[Array]:
    scene = look.unknowns.scene(look.vector, look.given)
    return ways(scene.model.flow, scene.velocity, look.window.times, look.window.grid)


def share_start(problem: Problem, fit: Fit, keep: Callable[[Chunk], None] | None = None) -> Shared | None:
    """Look at a fit with its initial frame free; None where the rollout fails. ``keep`` is given every chunk."""
    problem, window = problem.unclipped(), problem.window
    look = problem.look(fit.values, fit.start, fit.base, modes=np.ones((1, *fit.start.shape)))
    split = FrameSplit.in_turns(len(window.times), problem.start_frames, PART)
    uniform = look.unknowns.parts[START].start
    # the last picture is the answer to a uniform change of the initial frame
    weights = look.weights[:uniform, :, :-1]
    carried, sums = _ways(look), _PulledSums(window, split.counted, weights)

    def pull(chunk: Chunk) -> None:
        sums.add(chunk, take_ways(carried, chunk.frames.stop - chunk.frames.start))
        if keep is not None:
            keep(chunk)

    linear = look.linearise(split.counted, pull)
    if isinstance(linear, str):
        return None
    linear = replace(linear.only(np.arange(uniform)), weights=weights)
    products, power, error = (to_host(each) for each in sums.sums)
    inverse, other = (np.where(p > LITTLE * p.max(), 1 / np.maximum(p, 1e-30), 0.0) for p in power)
    start = EliminatedStart(split.counted, products, inverse, error[0], error[1] * other)
    return Shared(linear.eliminate(products, inverse, start.taken_out(error[0])), look, start)


class _PulledSums:
    """What a fit's frames say of its initial frame, added up as they pass, in memory or on a device.

    ``sums``: products (n, y, x), and power and error (2, y, x) of the frames that are counted and of the others; see
    :class:`EliminatedStart`.
    """

    def __init__(self, window: Window, counted: NDArray[np.bool_], weights: Array) -> None:
        shape = window.grid.shape
        self._window, self._counted, self._weights = window, counted, weights
        self._light = window.weight.astype(np.float32)
        self.sums: Any = (np.zeros((len(weights), *shape)), np.zeros((2, *shape)), np.zeros((2, *shape)))

    def add(self, chunk: Chunk, way: Array) -> None:
        """Add some frames, whose pixels have been carried by ``way`` (t, 2, y, x)."""
        frames, pictures = chunk.frames, chunk.pictures
        passing = (
            pictures[:-1],
            chunk.rollout.astype(np.float32),
            chunk.base.astype(np.float32),
            self._window.seen(frames),
            pictures[-1],
            self._light,
            way,
            self._counted[frames],
            self._weights[:, frames],
        )
        if self._window.on_device:
            from video2pde.calibration.jax_sums import add_pulled_products

            self.sums = add_pulled_products(self.sums, *passing)
        else:
            _pull_products(*passing, *self.sums)


def largest_gain(problem: Problem, fit: Fit) -> float:
    """Return the factor by which the fitted law multiplies a small change of the initial frame, where it does most."""
    problem = problem.unclipped()
    scene = problem.scene(fit.values, smooth_frame(fit.start))
    starts = np.stack([scene.start, scene.start + RELATIVE_STEP])
    inside = problem.window.weight > 0
    largest = 0.0
    velocity = np.stack([scene.velocity] * 2)
    rollouts = problem.window.predict([scene.model] * 2, starts, velocity, problem.rollout, problem.workers)
    with problem.window.arithmetic():
        for _, values in rollouts:
            gain = (values[1] - values[0])[:, inside] / RELATIVE_STEP
            if not namespace(gain).isfinite(gain).all():
                return 0.0
            largest = max(largest, float(gain.max()))
    return largest


@dataclass(frozen=True, eq=False)
class Growing:
    """A law that grows: what it was fitted to, the plain fit to that, and the one with its initial frame, if better."""

    problem: Problem
    plain: Fit
    joint: Fit | None


def refit_growing(problem: Problem, fit: Fit, settings: CalibrationSettings) -> Growing | None:
    """Fit a law that grows once more, jointly with its initial frame; None where it does not grow.

    Growth makes much of little: what a camera has cut off its noise at the empty end is left out.
    """
    if largest_gain(problem, fit) < GROWS:
        return None
    above, plain = problem.above_clipping(), fit
    if above is not problem:
        again = fit_rollout(above, fit.coefficients.tolist(), settings)
        above, plain = (above, again) if again.converged else (problem, fit)
    joint = refit_with_start(above, plain)
    return Growing(above, plain, joint if joint is not None and joint.mse <= plain.mse else None)


def refit_with_start(problem: Problem, fit: Fit) -> Fit | None:
    """Fit all unknowns and the initial frame together, from a fit on; None where no step could be made.

    Diffusion blurs what is wrong with the initial frame, so that a step corrects only part of it: the steps of several
    points are combined to what would have led to the smallest next one (Anderson's mixing).
    """
    problem, unknowns = problem.unclipped(), problem.unknowns
    here = replace(fit, start=smooth_frame(fit.start), modes=np.zeros((0, *fit.start.shape)), whole=True)
    shared, best = share_start(problem, here), None
    positive, signs = unknowns.positive, np.sign(unknowns.vector(fit.values))
    steps = list[_Step]()
    for _ in range(PASSES):
        if shared is None:
            break
        if not steps or steps[-1].shared is not shared:
            steps = [*steps[1 - MIXED :], _Step.at(here, unknowns.vector(here.values), shared)]
        vector, start, base = _mix(steps)
        if np.any(vector[positive] * signs[positive] <= 0):
            break  # what must stay positive would not
        values = {**here.values, **unknowns.values(vector)}
        there = replace(here, values=values, start=start, base=base, rollouts=here.rollouts + len(problem.terms) + 3)
        seen = share_start(problem, there)
        if seen is None or seen.linear.cost > shared.linear.cost:
            if len(steps) == 1:
                break
            steps = steps[-1:]  # too far: the last step again, alone
            continue
        velocity, mse = problem.scene(values, start).velocity, seen.linear.cost / problem.window.points
        change = problem.relative_change(unknowns.vector(here.values), vector)
        best = here = replace(there, velocity=velocity, mse=mse)
        shared = seen
        if change < SETTLED:
            break
    return best


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of the unknowns and of both initial frames, from a point of the fit."""

    shared: Shared
    before: tuple[Array, Array, Array]
    after: tuple[Array, Array, Array]

    @classmethod
    def at(cls, fit: Fit, vector: Array, shared: Shared) -> _Step:
        step = shared.linear.solve()
        first, base = (smooth_frame(change) for change in shared.start.changes(step))
        return cls(shared, (vector, fit.start, fit.base), (vector + step, fit.start + first, fit.base + base))

    def size(self, shared: Shared) -> Array:
        """Return the step in units of what it changes of the rollout: its squares add up to that of the misfit."""
        vector, start = (a - b for a, b in zip(self.after[:2], self.before[:2], strict=True))
        root = np.linalg.cholesky(shared.linear.hessian + TINY * np.diag(np.diag(shared.linear.hessian)))
        power = np.where(shared.start.inverse > 0, 1 / np.maximum(shared.start.inverse, 1e-30), 0.0)
        return np.concatenate([root.T @ vector, (np.sqrt(power) * start).ravel()])


def _mix(steps: Sequence[_Step]) -> list[Array]:
    """Combine where steps led to, with weights that add up to 1 and would have made the smallest step."""
    sizes = np.stack([step.size(steps[-1].shared) for step in steps], axis=1)
    weights, *_ = np.linalg.lstsq(sizes[:, :-1] - sizes[:, -1:], -sizes[:, -1], rcond=SAME_STEP)
    weights = np.append(weights, 1 - weights.sum())
    return [
        np.asarray(sum(w * a for w, a in zip(weights, ends, strict=True)))
        for ends in zip(*(step.after for step in steps), strict=True)
    ]


@jit
def _add_pulled(out, field, across, down):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Add a picture read (across, down) pixels away, linearly between the pixels; nothing beyond the picture.

    ``across`` and ``down`` are (y, x), or (1, 1) for all pixels. What has been carried out says nothing; the edge must
    not be counted again and again.
    """
    ny, nx = field.shape
    last_j, last_i = across.shape[0] - 1, across.shape[1] - 1
    for j in range(ny):
        for i in range(nx):
            there_y, there_x = j + down[min(j, last_j), min(i, last_i)], i + across[min(j, last_j), min(i, last_i)]
            if -0.5 <= there_y <= ny - 0.5 and -0.5 <= there_x <= nx - 0.5:
                y, x = min(max(there_y, 0.0), ny - 1.0), min(max(there_x, 0.0), nx - 1.0)
                j0, i0 = min(int(y), ny - 2), min(int(x), nx - 2)
                b, a = y - j0, x - i0
                above = (1 - a) * field[j0, i0] + a * field[j0, i0 + 1]
                below = (1 - a) * field[j0 + 1, i0] + a * field[j0 + 1, i0 + 1]
                out[j, i] += (1 - b) * above + b * below


@jit
def _pull_products(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    pictures, rollout, base, observed, gain, weight, way, counted, weights, products, power, error
):
    for t in range(len(rollout)):
        group = 0 if counted[t] else 1
        light = gain[t] * weight
        seen = rollout[t] if counted[t] else base[t]
        across, down = way[t, 0], way[t, 1]
        _add_pulled(power[group], light * gain[t], across, down)
        _add_pulled(error[group], light * (seen - observed[t]), across, down)
        for c in range(len(pictures) if counted[t] else 0):
            pulled = np.zeros(weight.shape)
            _add_pulled(pulled, light * pictures[c, t], across, down)
            for n in range(len(products)):
                if weights[n, t, c] != 0.0:
                    products[n] += weights[n, t, c] * pulled


@jit
def _pull(errors, gain, weight, way, counted, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for t in range(errors.shape[1]):
        for m in range(len(errors) if counted[t] else 0):
            _add_pulled(out[m], gain[t] * weight * errors[m, t], way[t, 0], way[t, 1])
