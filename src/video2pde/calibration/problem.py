"""The problem that a calibration solves: a window, the unknowns, and how rollouts are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from video2pde.calibration.blocks import Block, drift_block, LAW, Law, Scene, START, StartModes, Unknowns, Values
from video2pde.calibration.carried import Carried
from video2pde.calibration.linear import Look
from video2pde.calibration.mapped import map_blocks, moved
from video2pde.calibration.start import MODE_SMOOTHING
from video2pde.calibration.window import FrameSplit, noise_variance, prepare_window, Window
from video2pde.device import choose_device
from video2pde.field import Field
from video2pde.flow import Flow
from video2pde.maps import CoefficientMap
from video2pde.parallel import count_workers
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import CalibrationSettings, RolloutSettings, Settings
from video2pde.terms import Term
from video2pde.terms.stencil import apply_term
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion

Array = NDArray[np.float64]

SUBSTEPS, LEAST_SUBSTEPS, SMOOTH_GUESS = 10, 4, 1.0
"""Factor on the substeps that the guess needs in its first frame (counted as this many at least, on a picture smoothed
by so many pixels), up to which a fit's rollouts may go."""
START_SHARE, LEAST_START = 10, 5
"""The initial frame is estimated from this fraction of the window's frames, and from so many at least."""
LEAST_SCALE = 1e-6
"""Smallest scale of a coefficient, in units of the size at which its term alone would explain all change."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is fitted to which window: the unknowns, the drift (t, 2) that is given, and how rollouts are made.

    ``start_frames``: how many frames estimate an initial frame; ``variance``: of the noise, for what priors weigh;
    ``flow``: what varies in space beside the drift, and ``maps``: coefficients that vary, before blocks change them.
    """

    window: Window
    unknowns: Unknowns
    velocity: Array
    rollout: RolloutSettings
    start_frames: int
    workers: int = 1
    variance: float = 0.0
    flow: Flow | None = None
    maps: tuple[CoefficientMap, ...] = ()

    @property
    def law(self) -> Law:
        law = self.unknowns.blocks[0]
        assert isinstance(law, Law)
        return law

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.law.terms

    @property
    def split(self) -> FrameSplit:
        return FrameSplit.in_order(len(self.window.times), self.start_frames)

    def without(self, name: str) -> Problem:
        """Take a block's unknowns as zero."""
        kept = tuple(block for block in self.unknowns.blocks if block.name != name)
        return replace(self, unknowns=Unknowns(kept))

    def holding(self, values: Mapping[int, float]) -> Problem:
        """Hold some of the law's coefficients, by place, at given values."""
        if not values:
            return self
        reference = None if self.law.reference is None else self.law.reference.copy()
        if reference is not None:
            reference[list(values)] = list(values.values())
        positive = tuple(place for place in self.law.positive if place not in values)
        law = replace(self.law, held=tuple(values), positive=positive, reference=reference)
        return replace(self, unknowns=Unknowns((law, *self.unknowns.blocks[1:])))

    def unclipped(self) -> Problem:
        """Let rollouts leave [0, 1]: of two neighbours one would be clipped and the other not."""
        return replace(self, rollout=self.rollout.model_copy(update={"clip": "off"}))

    def above_clipping(self) -> Problem:
        """Leave out what lies near the empty end of a camera's range (see ``Window.above_clipping``)."""
        window = self.window.above_clipping()
        return self if window is self.window else replace(self, window=window, variance=noise_variance(window))

    def given(self, start: Array) -> Scene:
        """Return what a rollout is made from before any block has changed it."""
        model = Model(self.terms, (0.0,) * len(self.terms), flow=self.flow, maps=self.maps)
        return Scene(model, self.velocity, start)

    def scene(self, values: Values, start: Array) -> Scene:
        return self.unknowns.scene(self.unknowns.vector(values), self.given(start))

    def look(self, values: Values, start: Array, base: Array | None = None, modes: Array | None = None) -> Look:
        """Look at a point of the fit; with ``modes`` (q, y, x) the initial frame may change along them."""
        unknowns = self.unknowns
        if modes is not None and len(modes):
            unknowns = Unknowns((*unknowns.blocks, StartModes(START, np.ones(len(modes)), modes=modes)))
        vector = unknowns.vector(values)
        return Look(self.window, unknowns, vector, self.given(start), self.rollout, base, self.workers)

    def relative_change(self, before: Array, after: Array) -> float:
        """Return the largest change of a coefficient relative to its scale."""
        part = self.unknowns.parts[LAW]
        return float(np.max(np.abs(after[part] - before[part]) / self.law.scale))


def make_problem(
    train: Field,
    terms: Sequence[Term],
    reference: Mapping[str, float],
    velocity: Array,
    moments: Mapping[str, Array],
    settings: Settings,
    carried: Carried | None = None,
    maps: tuple[CoefficientMap, ...] = (),
) -> Problem:
    """Set up the fit of a law to the training window.

    Parameters
    ----------
    train : the training window.
    terms : of the law, without the drift.
    reference : coefficients for which ``velocity`` (t, 2) is the drift, by term.
    moments : (t, 2) by term, how the law moves the centroid: the drift follows the coefficients by −m_j, unless a
        spline refines it anyway.
    carried : a flow that varies in space, fitted jointly.
    maps : how coefficients vary, refined along the directions that the weak fit leaves most uncertain.
    settings : those of drift, calibration, rollouts and the run.

    Returns
    -------
    The fit's window, unknowns and rollouts, ready for :func:`calibrate`.

    Examples
    --------
    >>> field, law = vp.example_field(), vp.Model.of({"laplacian": 1.0})
    >>> still, velocity = {"laplacian": np.zeros((60, 2))}, np.tile([0.5, -0.25], (60, 1))
    >>> problem = make_problem(field, law.terms, {"laplacian": 1.0}, velocity, still, vp.load_settings("quick"))
    >>> [term.name for term in problem.terms]
    ['laplacian']
    """
    options = settings.calibration
    values = np.array([reference[term.name] for term in terms])
    following = options.drift != "spline" and settings.drift.law_correction
    follow = np.stack([-moved(term.name, moments, maps) for term in terms]) if following else None
    window = prepare_window(train, options.max_points, settings.run.seed, options.undo_coding)
    flow = None if carried is None else carried.flow
    device = choose_device(settings.run.device, train.grid.ny * train.grid.nx)
    window = replace(window.carried_by(flow, velocity), device=device)
    positive = tuple(i for i, term in enumerate(terms) if term.name in options.positive)
    law = Law(LAW, coefficient_scales(window, terms, values), positive, None, tuple(terms), values, follow)
    return Problem(
        window=window,
        unknowns=Unknowns((law, *_motion(train.times, options, carried), *map_blocks(maps, moments, following))),
        velocity=velocity,
        rollout=bound_substeps(window, terms, values, settings.rollout, flow, maps),
        start_frames=max(LEAST_START, len(train) // START_SHARE),
        workers=count_workers(settings.run.workers),
        variance=noise_variance(window),
        flow=flow,
        maps=maps,
    )


def _motion(times: Array, options: CalibrationSettings, carried: Carried | None) -> tuple[Block, ...]:
    """Return the blocks of drift and flow; a velocity that was given is the whole of the motion."""
    if carried is None:
        return drift_block(times, options.drift, options.drift_knots)
    mode = "fixed" if carried.flow.kind == "given" else options.drift
    return (*drift_block(times, mode, options.drift_knots, carried.gradient), *carried.blocks)


def bound_substeps(
    window: Window,
    terms: Sequence[Term],
    guess: Array,
    settings: RolloutSettings,
    flow: Flow | None = None,
    maps: tuple[CoefficientMap, ...] = (),
) -> RolloutSettings:
    """Limit the substeps of a fit's rollouts to a multiple of what the guess needs, in the longest interval.

    A step of the fit that leads to far steeper pictures would be refused anyway, after thousands of substeps a frame.
    """
    values = tuple(forward(term, value) for term, value in zip(terms, guess, strict=True))
    model = Model(tuple(terms), values, flow=flow, maps=maps)
    smooth = gaussian_filter(np.asarray(window.values[0], float), SMOOTH_GUESS)
    first = simulate(model, smooth, window.times[:2], window.grid, settings=settings)
    intervals = np.diff(window.times)
    longer = int(np.ceil(intervals.max() / intervals[0]))
    needed = SUBSTEPS * max(int(first.substeps.max()), LEAST_SUBSTEPS) * longer
    return settings.model_copy(update={"max_substeps": min(settings.max_substeps, needed)})


def forward(term: Term, coefficient: float) -> float:
    """Turn backward diffusion, which no rollout survives, into as much forward diffusion."""
    return abs(coefficient) if is_diffusion(term, EMPTY_TO_FULL) else coefficient


def coefficient_scales(window: Window, terms: Sequence[Term], values: Array) -> Array:
    """Return the size of each coefficient: its own, or where it is (nearly) zero a small part of the size at which its
    term alone would change the picture as much as the window does."""
    first, last = (gaussian_filter(np.asarray(window.values[k], float), MODE_SMOOTHING) for k in (0, -1))
    change = float(np.abs(last - first).max()) / float(window.times[-1] - window.times[0])
    sizes = []
    for term, value in zip(terms, values, strict=True):
        rate = float(np.abs(apply_term(term, first, window.grid.dx, window.grid.dy)).max())
        natural = change / rate if rate > 0 and change > 0 else 1.0
        sizes.append(float(max(abs(value), LEAST_SCALE * natural)))
    return np.array(sizes)
