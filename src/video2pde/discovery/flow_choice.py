"""Choose the flow together with the law: from uniform to a stream function that changes, each nested in the next.

A richer flow is taken only where it leaves far less of left-out frames unexplained than every simpler one, whatever
the law: the libraries compete with each flow, so that a law that says more is never passed over for a flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.course import Courses, Timed
from video2pde.discovery.flows import (
    BLOCKS,
    cross_validate,
    join_system,
    JointSystem,
    NEARLY,
    Ridge,
    RIDGES,
    SLOW_RIDGES,
)
from video2pde.discovery.weak import WeakColumns, WeakSystem
from video2pde.discovery.weighted import slice_centres, TimeMoments
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.flow import Flow, FlowShape
from video2pde.settings import Settings
from video2pde.terms.catalogue import DRIFT, libraries

Array = NDArray[np.float64]

GAIN = 1.5
"""How many times less a richer flow must leave unexplained in left-out frames than every simpler one, ..."""
LEAST_GAIN = 3e-4
"""... and the share of the signal that it must remove at least."""
COARSER = 2 / 3
"""Share of the splines along each side that a stream function has which changes in time."""
NARROW = 0.5
"""Width in time of the test functions that follow a flow's strength beside the usual ones, relative to them."""
POOL = 2
"""Centres in store for the stability runs, as a multiple of the test functions."""
SEEN = 6.0
"""Standard errors from zero at which a divergence is seen, ..."""
MATTERS = 0.05
"""... and the relative change of a coefficient from which it matters."""
UNIFORM, PULSING = "uniform", "stream, pulsing"
TURNS = 3
"""Turns at most in which course and ridge of a flow of changing strength are found."""


@dataclass(frozen=True, eq=False)
class FlowCandidate:
    """One flow that was tried: unexplained share of left-out frames under its best library, (block,) in ``blocks``."""

    name: str
    shape: FlowShape | None
    library: str
    ridge: Ridge
    blocks: Array

    @property
    def unexplained(self) -> float:
        return float(self.blocks.sum())

    @property
    def unknowns(self) -> int:
        if self.shape is None:
            return 0
        return self.shape.in_time * len(self.shape.names) + len(self.shape.course)


@dataclass(frozen=True, eq=False)
class Divergence:
    """What a divergence, uniform in space, would be beside the chosen flow, 1/s, and the law's coefficients with it."""

    value: float
    error: float
    coefficients: Mapping[str, float]
    without: Mapping[str, float]

    @property
    def matters(self) -> bool:
        """Whether it is far from zero and would change a coefficient by more than MATTERS."""
        changes = [abs(self.coefficients[n] - c) > MATTERS * abs(c) for n, c in self.without.items()]
        return abs(self.value) > SEEN * self.error and any(changes)


@dataclass(frozen=True, eq=False)
class FlowChoice:
    """The flows that were tried, the one chosen, and why.

    ``centres`` (M, 3) with ``left_uniform`` and ``left_chosen`` (M,): what the best law leaves of the weak signal there
    without and with the chosen flow, in units of the signal's rms. ``overlap`` by term: the share of its column that
    the flow's columns could stand for. ``divergence`` by library; empty where it is among the modes already.
    """

    candidates: tuple[FlowCandidate, ...]
    chosen: str
    reason: str
    centres: NDArray[np.int64]
    left_uniform: Array
    left_chosen: Array
    overlap: Mapping[str, float]
    divergence: Mapping[str, Divergence] = field(default_factory=dict)

    @property
    def candidate(self) -> FlowCandidate:
        return next(c for c in self.candidates if c.name == self.chosen)


@dataclass(frozen=True, eq=False)
class FlowColumns:
    """Draw weak systems of a law beside a flow from a pool of centres, as ``WeakColumns`` draws them without one."""

    joint: JointSystem
    ridge: Ridge
    pool: WeakSystem

    def flow(self, coefficients: Mapping[str, float]) -> Flow:
        """Return the flow that belongs to a law."""
        return self.joint.flow(self.ridge, coefficients)

    def draw(self, count: int, rng: np.random.Generator) -> WeakSystem:
        """Draw a random part of the pool."""
        chosen = rng.choice(len(self.pool.b), size=min(count, len(self.pool.b) // 2), replace=False)
        return WeakSystem(
            self.pool.names, self.pool.theta[chosen], self.pool.b[chosen], self.pool.centres[chosen], self.pool.widths
        )


def flow_shapes(train: Field, settings: Settings) -> dict[str, FlowShape | None]:
    """List the flows that the settings allow, the simplest first."""
    options = settings.drift
    extent, span = (train.grid.height, train.grid.width), (float(train.times[0]), float(train.times[-1]))
    affine = FlowShape("affine", extent, span, divergence=options.divergence)
    stream, coarser = (
        replace(affine, kind="stream", splines=_spread_splines(round(share * options.flow_splines), extent))
        for share in (1.0, COARSER)
    )
    slow = options.flow_times
    shapes: dict[str, FlowShape | None] = {
        UNIFORM: None,
        "affine": affine,
        "affine, changing": replace(affine, in_time=slow),
        "stream": stream,
        PULSING: stream,  # its course in time is found once the steady one is
        "stream, changing": replace(coarser, in_time=slow),
    }
    if slow == 1:
        shapes = {name: shape for name, shape in shapes.items() if name != PULSING and "changing" not in name}
    if options.flow in ("affine", "stream"):
        shapes = {name: shape for name, shape in shapes.items() if name.startswith(options.flow)}
    return shapes


def _spread_splines(count: int, extent: tuple[float, float]) -> tuple[int, int]:
    """Return as many splines for the longer side, and for the other in proportion."""
    rows, columns = (max(4, round(count * length / max(extent))) for length in extent)
    return rows, columns


def choose_flow(
    train: Field, drift: Drift, columns: WeakColumns, settings: Settings
) -> tuple[FlowChoice | None, FlowColumns | None]:
    """Try the flows on the training window; None for the columns where the uniform drift is enough.

    Too few frames for blocks of time decide nothing: then there is no choice either.
    """
    rng = np.random.default_rng([settings.run.seed, 3])
    count = settings.weak.test_functions
    centres = slice_centres(columns.frames, columns.inside, columns.widths, POOL * count, rng)
    if len(np.unique(centres[:, 0])) < 2 * BLOCKS:
        return None, None
    wide = _sample(train, columns, centres, settings)
    law, moments = wide.law, wide.moments
    named = {name: tuple(term.name for term in terms) for name, terms in libraries(settings).items()}
    systems = dict[str, JointSystem]()
    candidates = list[FlowCandidate]()
    for name, shape in flow_shapes(train, settings).items():
        if name == PULSING and shape is not None:
            ridge = next(candidate.ridge for candidate in candidates if candidate.name == "stream")
            narrow = replace(columns, widths=replace(columns.widths, t=NARROW * columns.widths.t))
            nearer = slice_centres(narrow.frames, narrow.inside, narrow.widths, POOL * count, rng)
            courses = Courses.of([wide, _sample(train, narrow, nearer, settings)], drift, shape)
            systems[name], candidate = _follow(courses, wide, drift, ridge, named)
        else:
            systems[name] = join_system(law, moments, drift, shape)
            candidate = _try_flow(name, shape, systems[name], named)
        candidates.append(candidate)
        if settings.drift.flow == "auto" and name == "affine, changing" and _explains(candidates):
            # an affine flow that already says nearly everything is not beaten by a stream function
            break
    best, reason = _choose(candidates, settings.drift.flow)
    joint, plain = systems[best.name], join_system(law, moments, drift, None)
    pool = joint.without_flow(best.ridge)
    kept = 1 - np.sum(pool.theta**2, axis=0) / np.maximum(np.sum(law.theta**2, axis=0), 1e-300)
    choice = FlowChoice(
        candidates=tuple(candidates),
        chosen=best.name,
        reason=reason,
        centres=centres,
        left_uniform=_left_over(plain, candidates[0], named),
        left_chosen=_left_over(joint, best, named),
        overlap=dict(zip(law.names, kept.tolist(), strict=True)),
        divergence={} if settings.drift.divergence else _find_divergence(best, law, moments, drift, named),
    )
    return choice, None if best.shape is None else FlowColumns(joint, best.ridge, pool)


def _sample(train: Field, columns: WeakColumns, centres: NDArray[np.int64], settings: Settings) -> Timed:
    return Timed(columns.sample(centres), TimeMoments(train, centres, columns.widths, settings.weak))


def _left_over(system: JointSystem, candidate: FlowCandidate, named: Mapping[str, Sequence[str]]) -> Array:
    """Return what the candidate's law leaves of b at every centre, in units of its rms."""
    left = system.without_flow(candidate.ridge)
    names = [*named[candidate.library], *_drift(left)]
    fitted = _least_squares(left, names)
    residual = left.b - left.columns(names) @ np.array([fitted[name] for name in names])
    return np.asarray(residual / np.sqrt(np.mean(system.law.b**2)))


def _find_divergence(
    best: FlowCandidate, law: WeakSystem, moments: TimeMoments, drift: Drift, named: Mapping[str, Sequence[str]]
) -> dict[str, Divergence]:
    """Fit a divergence beside the chosen flow and each library."""
    train = moments.field
    extent, span = (train.grid.height, train.grid.width), (float(train.times[0]), float(train.times[-1]))
    shape = FlowShape("affine", extent, span) if best.shape is None else best.shape
    joint = join_system(law, moments, drift, replace(shape, divergence=True))
    systems = [s.without_flow(best.ridge) for s in (joint, join_system(law, moments, drift, best.shape))]
    found = {}
    for library, terms in named.items():
        with_it, without = (_least_squares(system, [*terms, *_drift(system)]) for system in systems)
        flow = joint.flow(best.ridge, with_it)
        share = flow.weights(train.times).mean(axis=0)
        value, error = float(share @ flow.coefficients[:, -1]), float(np.sqrt(share**2 @ flow.error[:, -1] ** 2))
        found[library] = Divergence(value, error, {n: with_it[n] for n in terms}, {n: without[n] for n in terms})
    return found


def _drift(system: WeakSystem) -> list[str]:
    return [name for name in DRIFT if name in system.names]


def _least_squares(system: WeakSystem, names: Sequence[str]) -> dict[str, float]:
    columns = system.columns(names)
    size = np.linalg.norm(columns, axis=0)
    size[size == 0] = 1.0
    return dict(zip(names, (np.linalg.lstsq(columns / size, system.b, rcond=None)[0] / size).tolist(), strict=True))


def _try_flow(
    name: str, shape: FlowShape | None, system: JointSystem, named: Mapping[str, Sequence[str]]
) -> FlowCandidate:
    """Find the ridge under one library, and then the library that leaves least of left-out frames unexplained."""
    ridge = Ridge()
    if shape is not None and (shape.kind == "stream" or shape.in_time > 1):
        space = RIDGES if shape.kind == "stream" else (0.0,)
        time = SLOW_RIDGES if shape.in_time > 1 else (0.0,)
        ridges = [Ridge(s, t) for s, t in product(space, time)]
        every = sorted({term for terms in named.values() for term in terms})
        left = cross_validate(system, every, ridges).sum(axis=1)
        # the stiffest flow that does nearly as well: what the film does not show is better left out
        enough = [r for r, share in zip(ridges, left, strict=True) if share <= NEARLY * left.min()]
        ridge = max(enough, key=lambda r: (r.space, r.time))
    blocks = {library: cross_validate(system, terms, [ridge])[0] for library, terms in named.items()}
    library = min(blocks, key=lambda key: float(blocks[key].sum()))
    return FlowCandidate(name, shape, library, ridge, blocks[library])


def _follow(
    courses: Courses, system: Timed, drift: Drift, ridge: Ridge, named: Mapping[str, Sequence[str]]
) -> tuple[JointSystem, FlowCandidate]:
    """Fit a flow of changing strength: its course under the ridge that its shape has, found in turns.

    The first ridge is that of a steady flow, which explains little of one that is turned on and off, and is too stiff.
    """
    for _ in range(TURNS):
        shape = courses.find(ridge)
        joint = join_system(system.law, system.moments, drift, shape)
        candidate = _try_flow(PULSING, shape, joint, named)
        if candidate.ridge == ridge:
            break
        ridge = candidate.ridge
    return joint, candidate


def _explains(candidates: Sequence[FlowCandidate]) -> bool:
    return min(c.unexplained for c in candidates) < LEAST_GAIN


def _choose(candidates: Sequence[FlowCandidate], wanted: str) -> tuple[FlowCandidate, str]:
    """Go from the simplest flow to the richest and step up only where it pays in nearly every block of time."""
    chosen = candidates[0]
    for candidate in candidates[1:]:
        removed = chosen.unexplained - candidate.unexplained
        everywhere = np.count_nonzero(candidate.blocks < chosen.blocks) >= len(chosen.blocks) - 1
        if chosen.unexplained > GAIN * candidate.unexplained and removed > LEAST_GAIN and everywhere:
            chosen = candidate
    first = candidates[0]
    if chosen is first:
        best = min(candidates, key=lambda c: c.unexplained)
        reason = f"{first.name} flow leaves {first.unexplained:.2g} of the weak signal unexplained" + (
            "" if best is first else f", the best other flow ({best.name}) {best.unexplained:.2g}"
        )
    else:
        reason = (
            f"{chosen.name} flow leaves {chosen.unexplained:.2g} of the weak signal of left-out frames unexplained, "
            f"{first.name} flow {first.unexplained:.2g}"
        )
    if wanted in ("affine", "stream"):
        reason += f" (flow = '{wanted}' was asked for)"
    return chosen, reason
