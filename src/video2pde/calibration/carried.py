"""A flow among the unknowns of a calibration: a block, and what it means for the block of the drift.

A flow is fitted in weak form, where all its modes are unknowns. A calibration changes it along a few directions: all of
a steady affine flow, of others those in which the weak fit leaves the plume's motion most uncertain. The uniform drift
follows, so that a change of the flow does not move the plume as a whole.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import Block, Scene
from video2pde.drift import Drift
from video2pde.field import Field, Grid
from video2pde.flow import Flow
from video2pde.flow.ramps import moved_ramps, ramp_directions

Array = NDArray[np.float64]

FLOW, COURSE = "flow", "course of the flow"
PRIOR = 5.0
"""Standard errors of the weak fit by which a calibration may change a flow of many modes, as a prior's width."""


@dataclass(frozen=True, eq=False)
class _Carrying(Block):
    """What carries the plume, along ``directions`` (n, …); ``means`` (n, t, 2): their velocity over the plume."""

    directions: Array | None = None
    means: Array | None = None

    @abstractmethod
    def change(self, flow: Flow, values: Array, by: Array) -> Flow:
        """Change the flow by amounts of the directions, which add up to ``by``."""

    def set_up(self, scene: Scene, values: Array) -> Scene:
        flow = scene.model.flow
        assert flow is not None
        assert self.directions is not None
        assert self.means is not None
        there = self.change(flow, values, np.tensordot(values, self.directions, axes=1))
        # the drift follows, so that the plume as a whole stays where it is
        velocity = scene.velocity - np.tensordot(values, self.means, axes=1)
        return replace(scene, model=replace(scene.model, flow=there), velocity=velocity)


@dataclass(frozen=True, eq=False)
class FlowBlock(_Carrying):
    """The modes of the flow; directions are (n, l, k)."""

    def change(self, flow: Flow, values: Array, by: Array) -> Flow:  # noqa: ARG002 - the sum is all that counts
        return flow.changed(by)


@dataclass(frozen=True, eq=False)
class CourseBlock(_Carrying):
    """The course of a flow; directions are (n, l).

    In weak form a ramp is seen by the few test functions that reach it. What it has moved is seen in all later frames.
    """

    def change(self, flow: Flow, values: Array, by: Array) -> Flow:
        there = _following(flow, np.array(flow.shape.course) + by)
        return replace(there, shape=replace(there.shape, ramps=moved_ramps(flow.shape, values)))


def _following(flow: Flow, course: Array) -> Flow:
    return replace(flow, shape=replace(flow.shape, course=tuple(float(value) for value in course)))


@dataclass(frozen=True, eq=False)
class Carried:
    """A flow over a training window: the blocks of its unknowns, and ∂v_i/∂x_j averaged over the plume, (t, 2, 2).

    ``course``: that of the ramps of a flow whose strength has few levels.
    """

    flow: Flow
    block: FlowBlock
    gradient: Array
    course: CourseBlock | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that have unknowns."""
        flow = (self.block,) if self.block.size else ()
        return flow if self.course is None else (*flow, self.course)

    @classmethod
    def of(cls, flow: Flow, train: Field, drift: Drift, scale: tuple[float, float] = (1.0, 1.0)) -> Carried:
        """Prepare a flow for a calibration; ``scale``: the factors on a given velocity that the weak fit found."""
        weights = np.maximum(train.values[:, drift.region] - drift.background[:, None], 0.0)
        plume = (weights, drift.region, train.times, train.grid)
        if flow.kind == "given":
            # of a potential, one factor for both axes, in units of itself
            ways = np.array([[scale]]) if flow.shape.potential else np.eye(2)[:, None]
            block = FlowBlock(FLOW, np.ones(len(ways)), directions=ways, means=np.zeros((len(ways), len(train), 2)))
            return cls(flow.scaled(scale), block, flow.plume_gradient(*plume))
        size = flow.coefficients.shape
        found = np.zeros((0, *size)) if flow.directions is None else flow.directions
        still = replace(flow, coefficients=np.zeros(size))
        means = [still.changed(d).plume_mean(*plume) for d in found]
        speeds = [np.sqrt(np.mean(np.sum(still.changed(d).fields(train.grid) ** 2, axis=1))) for d in found]
        # one unit of a direction's scale moves the picture by about a cell until the end of the window
        scales = np.array([train.grid.dx / max(float(speed) * train.duration, 1e-300) for speed in speeds])
        free = flow.kind == "affine" and flow.steady
        block = FlowBlock(
            FLOW,
            scales,
            prior=None if free else np.full(len(found), PRIOR),
            directions=found,
            means=np.array(means).reshape(len(found), len(train), 2),
        )
        return cls(flow, block, flow.plume_gradient(*plume), _course_block(flow, train, plume))


def _course_block(flow: Flow, train: Field, plume: tuple[Array, NDArray[np.bool_], Array, Grid]) -> CourseBlock | None:
    """Let the ramps of a course move and widen, and its levels change; None where it has none."""
    directions = ramp_directions(flow.shape, train.times)
    if not len(directions):
        return None
    means = np.stack([_following(flow, direction).plume_mean(*plume) for direction in directions])
    speed = np.sqrt(np.mean(np.sum(flow.fields(train.grid) ** 2, axis=1)))
    strengths = np.abs(directions @ flow.shape.course_functions(train.times)).mean(axis=1)
    scales = train.grid.dx / np.maximum(speed * strengths * train.duration, 1e-300)
    return CourseBlock(COURSE, scales, directions=directions, means=means)
