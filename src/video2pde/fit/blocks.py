"""What the calibrated law's rollout leaves, averaged over blocks of space and time, against what noise would leave.

Pixel by pixel, camera noise hides everything. Averaged over a block of cells and frames it is nearly gone, while what
the law leaves out is not. Blocks of several sizes are looked at, since nobody knows how large the fault is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from video2pde.calibration import Calibration
from video2pde.calibration.window import prepare_window, Window
from video2pde.field import Field, Grid, Light, same_rows
from video2pde.fit.faults import Faults, SPACE
from video2pde.fit.noise import CALM, cell_noise, Memory, noise_by_level, NoiseLevels
from video2pde.parallel import count_workers
from video2pde.rollout.model import Model
from video2pde.rollout.start import smooth_frame
from video2pde.settings import Settings

Array = NDArray[np.float64]

TIME = 24
"""Blocks along the window, at the finest."""
MERGED_SPACE, MERGED_TIME = (1, 2, 4), (1, 2, 6)
"""How many of them are averaged for the coarser scales."""
LEFT_OF_NOISE = 0.5
"""Share of the usual noise that is left on flat ground, where an encoder takes most of it away."""
ROUNDING = 12**-0.5
"""Standard deviation of what rounding cuts off, in levels."""
FULL = 0.6
"""Share of a block's cells that must count."""
QUIETEST = 0.5
"""Share of the mean variance below which the variance of no block is taken."""
FEWEST_BLOCKS = 8
"""Blocks in time from which their own scatter tells the noise that lasts from frame to frame."""


@dataclass(frozen=True, eq=False)
class BlockResidual:
    """Hold means over blocks at the finest scale, each (time, y, x); NaN where too few cells count.

    ``left``: recording less rollout; ``change``: what the law (not the drift) has changed; ``start``: how the noise of
    the initial frame goes on in the rollout, as one draw; ``frames`` (time,) in each block; ``cells`` (y, x);
    ``inside`` marks the picture's cells, (ny, nx), of blocks that have enough of them.
    """

    left: Array
    change: Array
    start: Array
    frames: NDArray[np.int64]
    cells: Array
    inside: NDArray[np.bool_]


class _Sums:
    """Gather block means while frames stream by."""

    def __init__(self, window: Window, kinds: int) -> None:
        frames = len(window.times)
        self.rows, self.columns = _places(window.grid, same_rows(window.values))
        self.when = np.minimum(np.arange(frames) * min(TIME, frames) // frames, min(TIME, frames) - 1)
        self.frames = np.bincount(self.when)
        self.weight = window.weight
        self.cells = self.place(window.weight)
        self.total = np.zeros((kinds, len(self.frames), len(self.rows), len(self.columns)))

    def place(self, picture: Array) -> Array:
        return _blockwise(picture, self.rows, self.columns)

    def add(self, kind: int, frame: int, picture: Array) -> None:
        self.total[kind, self.when[frame]] += self.place(picture * self.weight)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Mark the blocks of which enough cells count."""
        return np.asarray(self.cells >= FULL * np.outer(*self.sides))

    @property
    def sides(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ny, nx = self.weight.shape
        return _length(ny, self.rows), _length(nx, self.columns)

    @property
    def inside(self) -> NDArray[np.bool_]:
        down, across = self.sides
        return np.asarray(np.repeat(np.repeat(self.full, down, axis=0), across, axis=1) & (self.weight > 0))

    def means(self) -> Array:
        counted = np.where(self.full, self.cells, np.nan)
        return np.asarray(self.total / counted / self.frames[None, :, None, None])


def _places(grid: Grid, line: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where blocks begin along y and x; the equal rows of a line are one."""
    return _edges(grid.ny, 1 if line else SPACE), _edges(grid.nx, SPACE)


def _edges(count: int, blocks: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count, min(blocks, count) + 1).astype(np.int64))[:-1]


def _length(count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(np.append(edges, count))


def block_residual(calibration: Calibration, train: Field, settings: Settings) -> BlockResidual | None:
    """Roll the calibrated law out over the training window and average what it leaves; None where that fails.

    The rollout starts where the fit did, or from the start that all frames agree on: the one that leaves less.
    """
    noise, _ = cell_noise(train.values)
    window = prepare_window(train, None, settings.run.seed, settings.calibration.undo_coding)
    fit = calibration.fit
    window = replace(window.carried_by(calibration.model.flow, fit.velocity), floor=fit.floor)
    law = replace(calibration.model, coefficients=tuple(float(c) for c in fit.coefficients))
    drift_only = Model((), (), (1.0, 1.0), law.flow)
    first, behind = _roll(window, [law], fit.start[None], fit.velocity, settings)
    if first is None or behind is None:
        return None
    agreed = fit.start + behind
    rng = np.random.default_rng([settings.run.seed, 5])
    best, frames = None, len(window.times)
    for start, averaged in ((agreed, frames), (fit.start, frames // (2 if fit.whole else 10))):
        shaken = start + smooth_frame(rng.standard_normal(start.shape)) * noise / np.sqrt(max(averaged, 1))
        starts = np.stack([start, shaken, start])
        found, _ = _roll(window, [law, law, drift_only], starts, fit.velocity, settings)
        if found is not None and (best is None or _energy(found) < _energy(best)):
            best = found
        if best is not None and not fit.whole and _energy(best) <= _energy(first):
            break
    return best


def _energy(found: BlockResidual) -> float:
    return float(np.nanmean(found.left**2))


def _roll(
    window: Window, models: list[Model], starts: Array, velocity: Array, settings: Settings
) -> tuple[BlockResidual | None, Array | None]:
    """Roll models out and gather block means; also the mean of what the first one leaves, (y, x)."""
    sums = _Sums(window, 3)
    behind = np.zeros(window.grid.shape)
    velocities = np.stack([velocity] * len(models))
    workers = count_workers(settings.run.workers)
    for frames, values in window.predict(models, starts, velocities, settings.rollout, workers):
        if not np.isfinite(values[0]).all():
            return None, None
        for k, frame in enumerate(range(frames.start, frames.stop)):
            left = window.values[frame].astype(float) - values[0, k]
            if window.floor > -np.inf:
                left *= window.above_floor(frame)
            behind += left
            sums.add(0, frame, left)
            if len(models) == 3:
                sums.add(1, frame, np.abs(values[0, k] - values[2, k]))
                sums.add(2, frame, values[1, k] - values[0, k])
    means = sums.means()
    if len(models) == 3 and not np.isfinite(means[:, :, sums.cells > 0]).any():
        return None, None
    found = BlockResidual(means[0], means[1], means[2], sums.frames, sums.cells, sums.inside)
    return found, behind / len(window.times)


@dataclass(frozen=True, eq=False)
class BlockScale:
    """Blocks of one size: ``left``, its ``noise`` and their ratio ``standard``, each (time, y, x)."""

    merged: tuple[int, int]
    left: Array
    noise: Array
    standard: Array

    @property
    def worst(self) -> float:
        return lasting_worst(self.standard)


def lasting_worst(standard: Array) -> float:
    """Return the largest deviation (time, y, x) that lasts: as far as a neighbour in time deviates to the same side.

    What a law leaves out goes on from block to block. What an encoder leaves is corrected with its next picture,
    and its errors are far from normal: a tenth of a level on flat ground is many standard deviations.
    """
    found = np.nan_to_num(standard)
    if len(found) < 2:
        return float(np.abs(found).max(initial=0.0))
    along = np.sign(found)
    before, after = np.zeros_like(found), np.zeros_like(found)
    before[1:], after[:-1] = found[:-1], found[1:]
    beside = np.maximum(along * before, along * after)
    return float(np.minimum(np.abs(found), np.maximum(beside, 0.0)).max(initial=0.0))


def block_scales(
    residual: BlockResidual, train: Field, faults: Faults, memory: Memory, share: float
) -> list[BlockScale]:
    """Average blocks over several scales and compare each with its noise.

    What the recording is known to get wrong counts as noise: ``share`` of what the law has changed (the grid), patches
    that an encoder leaves off for long, whole levels on flat ground, and light that may have changed.
    """
    _, usual = cell_noise(train.values)
    scales = []
    sums, cells = _finest_sums(train, residual.inside)
    for space in MERGED_SPACE:
        kept = _kept_share(cells, space)
        variance, level = _noise_of_places(_join(sums, space), _join(cells, space), kept, memory)
        lasting: list[tuple[int, NoiseLevels]] = []
        for time in MERGED_TIME:
            frames = _merge_frames(residual.frames, time)
            left, change, start = (
                _merge(part, residual, space, time) for part in (residual.left, residual.change, residual.start)
            )
            bright = _in_time(level, residual.frames, time)
            by_time = np.stack([memory.variance_of(np.full(n, 1 / n), b) for n, b in zip(frames, bright, strict=True)])
            total = _in_time(variance, residual.frames, time) * by_time
            if len(left) >= FEWEST_BLOCKS:
                lasting.append((time, _lasting_noise(left * np.sqrt(kept), bright)))
            if lasting:
                total = np.maximum(total, _lasting_at(time, lasting) * lasting[-1][1].at(bright) / kept)
            # one draw of the start's noise tells its size in each block of time
            total += _mean(start**2, (1, 2))
            # an encoder's errors are not the same everywhere: the quietest places are not held to what they seem to be
            noise = np.sqrt(np.maximum(total * kept, QUIETEST * (total * kept).mean()) / kept)
            # the initial frame was estimated with the law, so that its errors are there from the first frame on
            changed = np.maximum(change, _mean(change, (0,)))
            faulty = [share * changed, faults.patch / space / np.sqrt(kept) * np.ones_like(left)]
            if faults.level > 0:
                faulty.append(_rounding(bright, changed, faults.level, usual))
            if train.light is not None:
                faulty.append(_unknown_light(train.light, bright))
            noise = np.sqrt(noise**2 + sum(part**2 for part in faulty))
            scales.append(BlockScale((space, time), left, noise, left / np.maximum(noise, 1e-12)))
    return scales


def _unknown_light(light: Light, bright: Array) -> Array:
    """Return what an even change of the light, as far as it may be left, does to blocks (time, y, x)."""
    along = (np.arange(len(bright)) + 0.5) / len(bright)
    return np.asarray(light.unknown * along[:, None, None] * light.share(bright))


def _rounding(bright: Array, changed: Array, level: float, cell: float) -> Array:
    """Return what rounding to whole levels leaves of blocks (time, y, x), root mean square.

    On flat ground without noise all pixels round alike, and jump together when the picture has changed by a level.
    Noise and slopes spread them over the levels: a normal distribution of s levels leaves exp(−2π²s²) of it, and blocks
    that pass through several levels average it out.
    """
    across = np.zeros_like(bright)
    for axis in (1, 2):
        if bright.shape[axis] > 1:
            across = np.maximum(across, np.abs(np.gradient(bright, axis=axis)))
    passed = np.abs(np.gradient(bright, axis=0)) if len(bright) > 1 else np.zeros_like(bright)
    spread = ((LEFT_OF_NOISE * cell) ** 2 + across**2 / 12) / level**2
    seen = np.minimum(changed / level, 1.0) / np.maximum(passed / level, 1.0)
    return np.asarray(ROUNDING * level * seen * np.exp(-2 * np.pi**2 * spread))


def _finest_sums(train: Field, inside: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Sum frames over the cells of the finest blocks that are inside, (t, y, x), and count them, (y, x).

    These are the cells that the residual's blocks are made of.
    """
    rows, columns = _places(train.grid, train.line)
    weight = inside.astype(float)
    sums = np.stack([_blockwise(frame * weight, rows, columns) for frame in train.values])
    return sums, _blockwise(weight, rows, columns)


def _blockwise(pictures: Array, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Array:
    return np.asarray(np.add.reduceat(np.add.reduceat(pictures, rows, axis=-2), columns, axis=-1))


def _join(sums: Array, space: int) -> Array:
    return _blockwise(sums, *(np.arange(0, count, space) for count in sums.shape[-2:]))


def _kept_share(cells: Array, space: int) -> Array:
    """Return the share of the finest blocks that count, in each merged one; 1 where none does.

    At the edge of what counts a merged block may have few, and is as noisy as these are.
    """
    found = _join((cells > 0).astype(float), space) / _join(np.ones_like(cells), space)
    return np.where(found > 0, found, 1.0)


def _noise_of_places(sums: Array, cells: Array, kept: Array, memory: Memory) -> tuple[Array, Array]:
    """Return the noise variance of single frames averaged over blocks, (t, y, x), and the brightness there.

    It is measured by brightness, on what blocks would show if they were whole; ``kept`` (y, x) says how much is.
    """
    series = (sums / np.maximum(cells, 1.0)).reshape(len(sums), -1).T
    used = cells.ravel() > 0
    calm = uniform_filter1d(series, CALM, axis=1, mode="nearest")
    whole = series[used] * np.sqrt(kept.ravel()[used, None])
    variance = noise_by_level(whole, calm[used], memory).at(calm)
    return variance.T.reshape(sums.shape) / kept, calm.T.reshape(sums.shape)


def _lasting_noise(left: Array, bright: Array) -> NoiseLevels:
    """Measure noise that lasts longer than a few frames, from the scatter of what is left in blocks (time, y, x).

    An encoder leaves errors that stay until it corrects them. Fourth differences from block to block show them, and
    next to nothing of what a law leaves, which goes on smoothly for many blocks.
    """
    series, level = (part.reshape(len(part), -1).T for part in (left, bright))
    used = np.isfinite(series).all(axis=1)
    white = Memory(np.zeros(1), np.zeros(1))
    return noise_by_level(series[used], level[used], white)


def _lasting_at(time: int, lasting: list[tuple[int, NoiseLevels]]) -> float:
    """Carry the variance of the longest blocks that show it on to longer ones: it goes on falling as it has fallen."""
    longest, found = lasting[-1]
    if time == longest or len(lasting) < 2:
        return longest / time
    shorter, before = lasting[-2]
    fallen = float(found.variance.mean()) / max(float(before.variance.mean()), 1e-300)
    power = np.log(np.clip(fallen, shorter / longest, 1.0)) / np.log(longest / shorter)
    return float((time / longest) ** power)


def _mean(values: Array, axes: tuple[int, ...]) -> Array:
    """Average over axes, kept as such, without what is missing; zero where everything is."""
    found = np.isfinite(values)
    total = np.where(found, values, 0.0).sum(axis=axes, keepdims=True)
    return np.asarray(total / np.maximum(found.sum(axis=axes, keepdims=True), 1))


def _merge_frames(frames: NDArray[np.int64], time: int) -> NDArray[np.int64]:
    return np.add.reduceat(frames, np.arange(0, len(frames), time))


def _in_time(variance: Array, frames: NDArray[np.int64], time: int) -> Array:
    """Average single frames' variance (t, y, x) over the blocks of time."""
    starts = np.append(0, np.cumsum(_merge_frames(frames, time))[:-1])
    sums = np.add.reduceat(variance, starts, axis=0)
    return np.asarray(sums / _merge_frames(frames, time)[:, None, None])


def _merge(means: Array, residual: BlockResidual, space: int, time: int) -> Array:
    """Average the finest blocks over ``space`` × ``space`` × ``time`` of them, by their cells and frames."""
    weight = np.where(np.isfinite(means), residual.cells[None] * residual.frames[:, None, None], 0.0)
    sums, total = np.where(weight > 0, means, 0.0) * weight, weight
    for axis, step in ((0, time), (1, space), (2, space)):
        at = np.arange(0, sums.shape[axis], step)
        sums, total = np.add.reduceat(sums, at, axis=axis), np.add.reduceat(total, at, axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, sums / total, np.nan))
