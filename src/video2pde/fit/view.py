"""The weak system on a regular lattice of test functions: one view of the training window for each width.

Random centres are for fitting; to say what is left over, and where, every part of the window should be looked at as
often as any other, and noise should be nearly independent from one test function to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import drift_block
from video2pde.discovery.jets import FilmJets
from video2pde.discovery.testfunctions import kernel, Widths
from video2pde.discovery.weak import weak_columns, WeakSystem
from video2pde.discovery.weighted import Profiles, TimeMoments, velocity_parts
from video2pde.field import Field
from video2pde.fit.noise import Memory
from video2pde.flow import Flow
from video2pde.room import empty
from video2pde.settings import Settings
from video2pde.terms import CATALOGUE, DRIFT, Term

Array = NDArray[np.float64]

SPACING = 1.2
"""Distance of neighbouring centres, in widths of the test functions: closer ones say the same again."""
MOST_CENTRES = 900
"""Centres at most; further apart where there would be more."""
FIRST, STAYS = 0.05, 0.1
"""Share of the window that shows what was there at first; share of it that stays, where a part does."""


@dataclass(frozen=True, eq=False)
class View:
    """Hold the weak system at the centres of a lattice, and what noise and suspects need there.

    ``drift`` (M, k): columns of a drift that is free in time, as far as the calibration frees it. ``series`` gives the
    spatially filtered densities at each place of the lattice, (slot, places, t); ``place`` (M,) which place a centre
    has. ``scale``: widths relative to the usual ones.
    """

    scale: float
    film: Field
    velocity: Array
    terms: Mapping[str, Term]
    system: WeakSystem
    drift: Array
    moments: TimeMoments
    memory: Memory
    series: Array
    slots: Mapping[str, int]
    place: NDArray[np.int64]
    kept: dict[tuple[object, ...], Array] = field(default_factory=dict)

    @property
    def centres(self) -> NDArray[np.int64]:
        return self.system.centres

    @property
    def widths(self) -> Widths:
        return self.system.widths

    @cached_property
    def overlap(self) -> Array:
        """How much two test functions share in space and time: exp(−d²/4), d in widths; (M, M)."""
        return np.asarray(np.exp(-0.25 * sum(self._apart(axis) ** 2 for axis in range(3))))

    @cached_property
    def overlap_of_slopes(self) -> Array:
        """The same for their derivatives in time: (1 − d_t²/2) exp(−d²/4)."""
        return np.asarray(self.overlap * (1 - 0.5 * self._apart(0) ** 2))

    def _apart(self, axis: int) -> Array:
        width = (self.widths.t, self.widths.y, self.widths.x)[axis]
        at = self.centres[:, axis] / width
        return np.asarray(at[:, None] - at[None, :])

    def once(self, key: tuple[object, ...], make: Callable[[], Array]) -> Array:
        """Make columns once and keep them: several laws ask for the same."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    @property
    def kernels(self) -> tuple[Array, Array]:
        """The test function in time and its derivative."""
        value, slope = (kernel(self.widths.t, self.widths.support, order, self.film.dt) for order in (0, 1))
        return value, slope

    def columns(self, names: Sequence[str]) -> Array:
        return self.system.columns(names)

    @cached_property
    def rest(self) -> TimeMoments:
        """The moments of w = (u − ms)/(1 − m): what moves, if a share m of the first frames' mean s stays."""
        values, moving = self.film.values, empty(self.film.values.shape, np.float32)
        stays = STAYS * values[: max(1, round(FIRST * len(values)))].mean(axis=0)
        for frame, rest in zip(values, moving, strict=True):
            rest[...] = (frame - stays) / (1 - STAYS)
        rest = replace(self.film, values=moving)
        return TimeMoments(rest, self.centres, self.widths, self.moments.settings)

    def lay_out(self, values: Array) -> Array:
        """Arrange a value for each test function, (M,), in time and space, (t, y, x); NaN where there is none."""
        axes = [np.unique(self.centres[:, axis]) for axis in range(3)]
        index = tuple(np.searchsorted(axis, self.centres[:, k]) for k, axis in enumerate(axes))
        laid = np.full(tuple(len(axis) for axis in axes), np.nan)
        laid[index] = values
        return laid

    def law_series(self, coefficients: Mapping[str, float]) -> Array:
        """Return Σ c_j T_j in each frame, filtered in space: (places, t)."""
        total = np.zeros(self.series.shape[1:])
        for name, value in coefficients.items():
            slot = self.slots[name]
            if slot >= 0:
                total += value * self.series[slot]
        return total


def build_view(
    train: Field,
    velocity: Array,
    terms: Sequence[Term],
    settings: Settings,
    total_frames: int,
    *,
    moments: Mapping[str, Array],
    memory: Memory,
    scale: float = 1.0,
    given: Flow | None = None,
    jets: FilmJets | None = None,
) -> View:
    """Assemble the weak system of the training window on a lattice.

    ``terms`` without the drift; ``moments`` (t, 2) by term as discovery found them; ``memory`` of the noise;
    ``scale`` widens the test functions; ``given``: a velocity in place of the measured drift;
    ``jets``: those of the window, which all views share.
    """
    space, time = scale * settings.weak.sigma_space, scale * settings.weak.sigma_time
    weak = settings.weak.model_copy(update={"sigma_space": space, "sigma_time": time, "shrink": True})
    chosen = [*terms, *(CATALOGUE[name] for name in DRIFT)]
    none = np.zeros((len(train), 2))
    pushed = np.stack([moments.get(term.name, none) for term in chosen])
    columns = weak_columns(
        train,
        velocity,
        chosen,
        weak,
        total_frames=total_frames,
        moments=pushed,
        given=given,
        choose=partial(lattice, len(train), line=train.line),
        jets=jets,
    )
    assert columns.centres is not None
    centres = columns.centres
    system = columns.sample(centres)
    around = TimeMoments(train, centres, columns.widths, weak, jets)
    places, place = np.unique(centres[:, 1:], axis=0, return_inverse=True)
    series = columns.filtered.at(*columns.place(places)).astype(float)
    return View(
        scale=scale,
        film=train,
        velocity=velocity,
        terms={term.name: term for term in chosen},
        system=system,
        drift=_drift_columns(train, around, settings),
        moments=around,
        memory=memory,
        series=series,
        slots=dict(zip(columns.names, columns.slots, strict=True)),
        place=place.reshape(-1),
    )


def _drift_columns(train: Field, around: TimeMoments, settings: Settings) -> Array:
    """Return the columns of a uniform drift that may change in time as the calibration lets it."""
    options = settings.calibration
    if options.drift != "spline":
        return np.zeros((len(around.centres), 0))
    basis = spline_basis(train.times, options.drift_knots)
    flat_y, flat_x = Profiles.powers(train.grid.y, 0), Profiles.powers(train.grid.x, 0)
    parts = [around.columns(velocity_parts(flat_y, flat_x, axis), basis) for axis in (0, 1)]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def spline_basis(times: Array, knots: int) -> Array:
    """Return the functions of time in which the calibration follows a drift, (knots, t)."""
    [block] = drift_block(times, "spline", knots)
    assert block.basis is not None
    return block.basis


def lattice(frames: int, widths: Widths, inside: NDArray[np.bool_], line: bool = False) -> NDArray[np.int64]:
    """Place centres (t, y, x) evenly where a whole test function fits; the rows of a ``line`` are one."""
    rows, across = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    rows = rows[len(rows) // 2 :][:1] if line else rows
    first, last = widths.reach[0], frames - 1 - widths.reach[0]
    spacing = SPACING
    while True:
        axes = [
            _evenly(first, last, spacing * widths.t),
            _evenly(rows[0], rows[-1], spacing * widths.y),
            _evenly(across[0], across[-1], spacing * widths.x),
        ]
        centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        centres = centres[inside[centres[:, 1], centres[:, 2]]]
        if len(centres) <= MOST_CENTRES:
            return np.asarray(centres, np.int64)
        spacing *= 1.1


def _evenly(low: int, high: int, step: float) -> NDArray[np.int64]:
    count = max(1, round((high - low) / step)) + 1
    return np.unique(np.linspace(low, high, count).round()).astype(np.int64)
