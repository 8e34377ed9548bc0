"""The unknowns of a calibration, as named blocks of one vector.

A block says what its values do to a rollout (:meth:`Block.set_up`) and how the rollout answers to them: a unit of
unknown n adds Σ_c W[n, t, c] · P_c(t, y, x) to frame t. By default the pictures P_c are differences of neighbouring
rollouts, one for each unknown; a block that knows a shorter way gives pictures of its own and their weights in time
(a uniform drift only moves the picture: P = −∇û, W = how far it has moved). ``docs/calibration.md`` adds one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.interpolate import BSpline

from video2pde.calibration.pictures import draw_differences, draw_slopes
from video2pde.calibration.window import Window
from video2pde.rollout.model import Model
from video2pde.terms import Term

Array = NDArray[np.float64]
DriftMode = Literal["fixed", "scale", "spline"]
Values = Mapping[str, Array]

LAW, DRIFT, START = "law", "drift", "initial frame"


@dataclass(frozen=True, eq=False)
class Scene:
    """What a rollout is made from: the model, its drift (t, 2), and the initial frame (y, x)."""

    model: Model
    velocity: Array
    start: Array


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """A named run of unknowns.

    ``scale`` (n,): the size of each, which steps are measured in; ``positive``: those fitted as logarithms; ``prior``
    (n,): standard deviation around zero that is known beforehand, infinite where nothing is; ``held``: those that stay
    as they are given.
    """

    name: str
    scale: Array
    positive: tuple[int, ...] = ()
    prior: Array | None = None
    held: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def size(self) -> int:
        return len(self.scale)

    @property
    def pictures(self) -> int | None:
        """How many pictures :meth:`draw` gives; None where the columns are differences of rollouts."""
        return None

    @abstractmethod
    def set_up(self, scene: Scene, values: Array) -> Scene:
        """Change what a rollout is made from."""

    def draw(self, values: Array, window: Window, begin: int, end: int, out: Array) -> None:  # noqa: ARG002
        """Draw frames of its pictures (c, t, y, x), from rollouts (m, t, y, x) of which the first is the answer's."""
        raise TypeError(f"{self.name} has no pictures of its own")

    def draw_there(self, rollout: Any, window: Window) -> Any:  # noqa: ARG002
        """Return its pictures (c, t, y, x) on a device, from frames (t, y, x) of the rollout."""
        raise TypeError(f"{self.name} has no pictures of its own")

    def weigh(self, scene: Scene, times: Array) -> Array:  # noqa: ARG002 - for those that need it
        """Return the pictures' weights W (n, t, c); ``scene`` is as it was before this block."""
        return np.broadcast_to(np.eye(self.size)[:, None], (self.size, len(times), self.size))


@dataclass(frozen=True, eq=False)
class Law(Block):
    """The coefficients. ``follow`` (K, t, 2): how the drift follows them from ``reference`` on, minus their moments."""

    terms: tuple[Term, ...] = ()
    reference: Array | None = None
    follow: Array | None = None

    def set_up(self, scene: Scene, values: Array) -> Scene:
        velocity = scene.velocity
        if self.follow is not None and self.reference is not None:
            velocity = velocity + np.tensordot(values - self.reference, self.follow, axes=(0, 0))
        return replace(scene, model=replace(scene.model, coefficients=tuple(values)), velocity=velocity)


@dataclass(frozen=True, eq=False)
class Drift(Block):
    """The drift: v(t) + Σ p_k B_k(t) for each axis, or v(t) (1 + p) where there is no ``basis`` (k, t).

    The unknowns are those of x, then those of y. ``gradient`` (t, 2, 2): ∂v_i/∂x_j of a flow beside it, over the plume.
    """

    basis: Array | None = None
    gradient: Array | None = None

    @property
    def pictures(self) -> int:
        return 2

    def set_up(self, scene: Scene, values: Array) -> Scene:
        change = values.reshape(2, -1).T
        moved = scene.velocity * (1 + change[0]) if self.basis is None else scene.velocity + self.basis.T @ change
        return replace(scene, velocity=moved)

    def draw(self, values: Array, window: Window, begin: int, end: int, out: Array) -> None:
        """Draw −û_x and −û_y."""
        draw_slopes(values, window.grid.dx, window.grid.dy, begin, end, out)

    def draw_there(self, rollout: Any, window: Window) -> Any:
        from video2pde.calibration.jax_sums import slopes

        return slopes(rollout, window.grid.dx, window.grid.dy)

    def weigh(self, scene: Scene, times: Array) -> Array:
        """Return ∂X/∂p: how far each unknown has moved the picture by each time."""
        rates = scene.velocity.T[:, None] if self.basis is None else np.stack([self.basis] * 2)
        weights = np.zeros((2, rates.shape[1], len(times), 2))
        if self.gradient is not None:
            for axis in range(2):
                weights[axis, ..., axis] = rates[axis]
            return distance_carried(weights.reshape(-1, len(times), 2), times, self.gradient)
        for axis in range(2):
            weights[axis, ..., axis] = cumulative_trapezoid(rates[axis], times, initial=0.0)
        return weights.reshape(-1, len(times), 2)


@dataclass(frozen=True, eq=False)
class StartModes(Block):
    """The initial frame, changed along ``modes`` (q, y, x)."""

    modes: Array | None = None

    def set_up(self, scene: Scene, values: Array) -> Scene:
        assert self.modes is not None
        return replace(scene, start=scene.start + np.tensordot(values, self.modes, axes=1))


def drift_block(times: Array, mode: DriftMode, knots: int, gradient: Array | None = None) -> tuple[Drift, ...]:
    """Return the drift's block: none for ``fixed``, a factor an axis for ``scale``, cubic B-splines for ``spline``."""
    if mode == "fixed":
        return ()
    if mode == "scale":
        return (Drift(DRIFT, np.ones(2), gradient=gradient),)
    degree = min(3, knots - 1)
    inner = np.linspace(times[0], times[-1], knots - degree + 1)
    padded = np.concatenate([[inner[0]] * degree, inner, [inner[-1]] * degree])
    basis = np.asarray(BSpline.design_matrix(times, padded, degree).toarray().T)
    return (Drift(DRIFT, np.ones(2 * len(basis)), basis=basis, gradient=gradient),)


def distance_carried(rates: Array, times: Array, gradient: Array) -> Array:
    """Return how far a uniform change of the velocity has moved the plume, where a flow stretches and turns the way.

    d(δX)/dt = rate + ∇v δX, for rates (n, t, 2) and gradients (t, 2, 2): (n, t, 2).
    """
    way = np.zeros_like(rates)
    for k, step in enumerate(np.diff(times)):
        middle = 0.5 * (gradient[k] + gradient[k + 1]) * step
        along = np.eye(2) + middle + 0.5 * middle @ middle
        way[:, k + 1] = (way[:, k] + 0.5 * step * rates[:, k]) @ along.T + 0.5 * step * rates[:, k + 1]
    return way


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Blocks in a row: one vector, of which each block has a slice."""

    blocks: tuple[Block, ...]

    @cached_property
    def parts(self) -> dict[str, slice]:
        ends = np.cumsum([0, *(block.size for block in self.blocks)]).tolist()
        return {block.name: slice(a, b) for block, a, b in zip(self.blocks, ends[:-1], ends[1:], strict=True)}

    @cached_property
    def scale(self) -> Array:
        return np.concatenate([block.scale for block in self.blocks])

    @cached_property
    def prior_weight(self) -> Array:
        """One over the prior's variance, (n,); zero where nothing is known beforehand."""
        free = [np.full(block.size, np.inf) if block.prior is None else block.prior for block in self.blocks]
        return np.asarray(1 / np.concatenate(free) ** 2)

    @cached_property
    def positive(self) -> NDArray[np.int64]:
        """Where the vector holds what must stay positive."""
        found = [self.parts[block.name].start + index for block in self.blocks for index in block.positive]
        return np.array(found, int)

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """Where the vector holds what stays as it is given."""
        found = [self.parts[block.name].start + index for block in self.blocks for index in block.held]
        return np.array(found, int)

    def vector(self, values: Values) -> Array:
        """Join values by block name; zero where a block is not named."""
        return np.concatenate([values.get(block.name, np.zeros(block.size)) for block in self.blocks])

    def values(self, vector: Array) -> dict[str, Array]:
        return {name: vector[part] for name, part in self.parts.items()}

    def scene(self, vector: Array, given: Scene) -> Scene:
        """Set a rollout up with every block's values, in order."""
        for block in self.blocks:
            given = block.set_up(given, vector[self.parts[block.name]])
        return given

    def neighbours(self, vector: Array, given: Scene, step: float) -> tuple[list[Scene], Array]:
        """Return a scene beside ``vector`` for each unknown that has no picture of its own, and the steps taken."""
        scenes, steps = [], []
        for block in self.blocks:
            if block.pictures is None:
                for index in range(*self.parts[block.name].indices(len(vector))):
                    moved = vector.copy()
                    moved[index] += step * self.scale[index]
                    scenes.append(self.scene(moved, given))
                    steps.append(step * self.scale[index])
        return scenes, np.array(steps)

    @cached_property
    def pictures(self) -> int:
        """How many pictures all blocks have."""
        return sum(block.size if block.pictures is None else block.pictures for block in self.blocks)

    def draw(self, values: Array, steps: Array, window: Window, begin: int, end: int, out: Array) -> None:
        """Draw some frames of each block's pictures: differences of neighbouring rollouts, or its own.

        ``values`` (m, t, y, x): the rollout, and its neighbours in the order of :meth:`neighbours`, ``steps`` away;
        ``out`` (c, t, y, x).
        """
        neighbour, place = 0, 0
        for block in self.blocks:
            count = block.size if block.pictures is None else block.pictures
            if block.pictures is None:
                away = steps[neighbour : neighbour + count]
                draw_differences(values, 1 + neighbour, away, begin, end, out[place : place + count])
                neighbour += count
            else:
                block.draw(values, window, begin, end, out[place : place + count])
            place += count

    def draw_there(self, differences: Any, rollout: Any, window: Window) -> list[Any]:
        """Return each block's pictures (c, t, y, x) on a device."""
        parts, used = list[Any](), 0
        for block in self.blocks:
            if block.pictures is None:
                parts.append(differences[used : used + block.size])
                used += block.size
            else:
                parts.append(block.draw_there(rollout, window))
        return parts

    def weights(self, vector: Array, given: Scene, times: Array) -> Array:
        """Return W (n, t, c) of all blocks: each block's unknowns have weight on its own pictures alone."""
        parts = []
        for block in self.blocks:
            weights = block.weigh(given, times)
            if block.held:  # an unknown without weight has no derivative, and takes no step
                weights = np.array(weights)
                weights[list(block.held)] = 0.0
            parts.append(weights)
            given = block.set_up(given, vector[self.parts[block.name]])
        whole = np.zeros((len(vector), len(times), sum(part.shape[2] for part in parts)))
        row = column = 0
        for part in parts:
            whole[row : row + len(part), :, column : column + part.shape[2]] = part
            row, column = row + len(part), column + part.shape[2]
        return whole

    def move(self, vector: Array, step: Array) -> Array:
        """Take a step; one of an unknown that must stay positive is its logarithm's."""
        there = vector + step
        there[self.positive] = vector[self.positive] * np.exp(np.clip(step[self.positive], -LARGEST_LOG, LARGEST_LOG))
        return there


LARGEST_LOG = 2.0
"""Most that the logarithm of a positive unknown may change in one step."""
