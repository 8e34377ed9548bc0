"""A camera that shakes: where each frame was taken from, and frames put back in place.

Frame k shows F_k(x) = S(x − δ_k, t_k), where the scene S changes smoothly in time. With P the projection on a few
splines in time, pixel by pixel, what is left of the frames is that of the displacement,

    (1 − P)F = −(1 − P)δ · ∇S + g S + c,

fitted over the picture of each frame; g and c take up what the light does. It is repeated on the frames put back. What
the splines follow of δ is slow, and cannot be told from drift unless something in the picture stands still: specks,
walls, a rim. Where there is such structure, frames are put back on it alone, and the drift is left to the plume.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.recording.displacement import fit_displacement, in_threads, Splines, turn
from video2pde.recording.objects import COARSE, find_static, FINE
from video2pde.recording.resize import average_squares

Array = NDArray[np.float64]

WORKING_SIDE = 100  # cells on the longer side, at most, that are compared
SMOOTHING = 3.0  # cells of that size: σ of the filter before frames are compared
STRIDE = 2  # every so many of the filtered cells are compared
ITERATIONS = 3
GLANCE = 150  # frames, about, of a long film that tell whether it shakes at all
SPLINES, FRAMES_EACH = 8, 6  # splines in time that the scene follows, and frames for each of them at least
MARGIN = 3  # compared cells along the edge that are left out: what leaves the picture is not known
SMALLEST = 0.06  # shake in grid cells (rms) below which it is left alone
TIMES_ERROR = 3.0  # ... and in units of its standard error
EXPLAINED = 0.25  # share of the fast changes that a displacement must explain to be one
LATER, ALIKE = 2, 0.5  # frames after which positions of a shake are no more alike than this; those of a flow are
LEAST_HOLD = 0.1  # cells: error beyond which static structure gives no hold
FEWEST_CELLS, FEWEST_FRAMES = 30, 12
STATIC = "static structure"


@dataclass(frozen=True, eq=False)
class Motion:
    """Hold how the camera moved.

    Parameters
    ----------
    shifts : (t, 2), displacement along y and x, grid cells. angles : (t,), rad. zooms : (t,), relative.
    rms : of the displacement, grid cells, rotation and zoom included a quarter of its side from the middle.
    error : its standard error for a frame, grid cells. explained : share of the fast changes that it explains.
    on : what frames were put back on, "static structure" or "the plume". corrected : whether they were.
    """

    shifts: Array
    angles: Array
    zooms: Array
    rms: float
    error: float
    explained: float
    on: str
    corrected: bool = False

    @property
    def turns(self) -> bool:
        return bool(self.angles.any() or self.zooms.any())

    def about(self, dy: float, dx: float) -> Motion:
        """Describe the same motion about another middle, ``dy`` and ``dx`` grid cells away."""
        turns = np.array([turn(angle, zoom) - np.eye(2) for angle, zoom in zip(self.angles, self.zooms, strict=True)])
        return replace(self, shifts=self.shifts + turns @ np.array([dy, dx]))

    @property
    def note(self) -> str:
        """What was done, in words; empty where nothing was."""
        if not self.corrected:
            return ""
        turned = f", turned by {np.rad2deg(self.angles.std()):.2g}° and zoomed by {self.zooms.std():.2%} (rms)"
        slow = "" if self.on == STATIC else "; what it moved slowly counts as drift"
        return (
            f"camera shake of {self.rms:.2g} grid cells (rms){turned if self.turns else ''}: frames were put back on "
            f"{self.on}, when they were reduced to the grid{slow}"
        )


def measure_motion(frames: NDArray[np.float32], mode: str) -> Motion | None:
    """Find how the camera moved; None where there are too few frames or nothing to hold on to.

    Parameters
    ----------
    frames : (t, y, x), reduced frames. mode : recording.stabilise; auto corrects what is needed and certain, none
        measures alone.
    """
    if len(frames) < FEWEST_FRAMES or min(frames.shape[1:]) < 8 * MARGIN:
        return None
    size = max(1, round(max(frames.shape[1:]) / WORKING_SIDE))
    binned = _bin(frames, size)
    step = len(frames) // GLANCE if mode in ("auto", "none") else 1
    if step > 1:
        glance = _measure(binned[::step], size, mode, 1)
        if glance is None or not glance.corrected:  # a steady camera needs no second look
            return None if glance is None else _in_cells(glance, 1, len(frames))
    return _measure(binned, size, mode, ITERATIONS)


def _bin(frames: NDArray[np.float32], size: int) -> Array:
    binned = np.empty((len(frames), *(n // size for n in frames.shape[1:])))

    def average(part: slice) -> None:
        binned[part] = average_squares(frames[part], size)

    in_threads(average, len(frames))
    return binned


def _measure(binned: Array, size: int, mode: str, iterations: int) -> Motion | None:
    """Measure the motion of frames averaged over squares of ``size`` cells; one iteration says whether there is any."""
    static = _find_static(binned)
    affine = mode != "shift"
    found = None
    if static is not None:
        still = _Compared(_band(binned), np.ones((len(binned), 1)), static, 1)
        found = _follow(still, affine, mode, STATIC, iterations)
    if found is None or found.error > LEAST_HOLD:
        smooth = _filter(binned, max(SMOOTHING / size, 1.5))[:, ::STRIDE, ::STRIDE]
        compared = _Compared(smooth, _splines(len(binned)), _inside(smooth.shape[1:]), STRIDE)
        found = _follow(compared, affine, mode, "the plume", iterations)
    return None if found is None else _in_cells(found, size, len(binned))


@dataclass(frozen=True, eq=False)
class _Compared:
    """What is compared: frames (t, y, x), the splines in time (t, k) that the scene follows, and where."""

    frames: Array
    splines: Array
    where: NDArray[np.bool_]
    stride: int


def _follow(compared: _Compared, affine: bool, mode: str, on: str, iterations: int) -> Motion | None:
    """Fit the motion, in binned cells; a first pass decides whether there is any, and whether it turns."""
    basis = np.linalg.qr(compared.splines)[0]
    moved = np.zeros((len(compared.frames), 4))
    lever = compared.stride * min(compared.frames.shape[1:]) / 4
    frames, splines, error, explained = compared.frames, None, np.inf, 0.0
    for iteration in range(iterations):
        if iteration:
            splines = splines or Splines(compared.frames)
            frames = splines.put_back(moved)
        step, errors, share = fit_displacement(frames, basis, compared.where, affine)
        if not np.isfinite(errors).all():
            return None
        moved += step
        error = compared.stride * float(np.hypot(*errors[:2]))
        turned = np.sqrt((moved[:, 2:] ** 2).mean(axis=0))
        turns = bool(((turned > TIMES_ERROR * errors[2:]) & (turned * lever > SMALLEST)).any())
        if iteration == 0:
            explained = share
            far = _rms(moved * (1, 1, turns, turns), compared.stride, lever)
            certain = far > max(SMALLEST, TIMES_ERROR * error) and explained > EXPLAINED
            # without anything that stands still, what lasts over several frames may as well be a flow that changes
            certain = certain and (on == STATIC or _is_fast(moved, compared.stride, lever))
            if mode == "none" or (mode == "auto" and not certain):
                return Motion(*_parts(moved * 0, 1), far, error, explained, on)
        elif iteration == 1 and mode == "auto":  # once the shifts are gone, which bend it at first
            affine = turns
            moved[:, 2:] *= affine
    return Motion(*_parts(moved, compared.stride), _rms(moved, compared.stride, lever), error, explained, on, True)


def _parts(moved: Array, stride: int) -> tuple[Array, Array, Array]:
    return moved[:, :2] * stride, moved[:, 2].copy(), moved[:, 3].copy()


def _rms(moved: Array, stride: int, lever: float) -> float:
    return float(np.sqrt((moved[:, :2] ** 2).sum(axis=1).mean() * stride**2 + lever**2 * (moved[:, 2:] ** 2).mean()))


def _is_fast(moved: Array, stride: int, lever: float) -> bool:
    """Tell whether a few frames later the camera is anywhere else; noise in the positions hardly counts there."""
    steps = _rms(moved[LATER:] - moved[:-LATER], stride, lever)
    return steps**2 > 2 * (1 - ALIKE) * _rms(moved, stride, lever) ** 2


def _in_cells(motion: Motion, size: int, count: int) -> Motion:
    """Turn displacements in binned cells into grid cells; those of a steady camera are 0 in all ``count`` frames."""
    still = np.zeros((count, 2))
    shifts, angles, zooms = (
        (size * motion.shifts, motion.angles, motion.zooms) if motion.corrected else (still, still[:, 0], still[:, 1])
    )
    return replace(motion, shifts=shifts, angles=angles, zooms=zooms, rms=size * motion.rms, error=size * motion.error)


# ----------------------------------------------------------------------------- what is compared


def _filter(frames: Array, sigma: float) -> Array:
    from scipy.ndimage import gaussian_filter

    out = np.empty_like(frames)

    def smooth(part: slice) -> None:
        for frame, into in zip(frames[part], out[part], strict=True):
            gaussian_filter(frame, sigma, output=into, mode="nearest", truncate=3.0)

    in_threads(smooth, len(frames))
    return out


def _band(frames: Array) -> Array:
    return _filter(frames, FINE) - _filter(frames, COARSE)


def _splines(count: int) -> Array:
    """Return cubic splines in time, (t, k), with even knots."""
    from scipy.interpolate import BSpline

    pieces = max(1, min(SPLINES, count // FRAMES_EACH) - 3)
    knots = np.concatenate([np.zeros(3), np.linspace(0, 1, pieces + 1), np.ones(3)])
    return np.asarray(BSpline.design_matrix(np.linspace(0, 1 - 1e-12, count), knots, 3).toarray())


def _inside(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    inside = np.zeros(shape, dtype=bool)
    inside[MARGIN:-MARGIN, MARGIN:-MARGIN] = True
    return inside


def _find_static(frames: Array) -> NDArray[np.bool_] | None:
    """Mark cells around fine structure that is the same at the beginning and at the end; None: too few."""
    from scipy.ndimage import binary_dilation

    static = find_static(frames) & _inside(frames.shape[1:])
    if static.sum() < FEWEST_CELLS:
        return None
    return np.asarray(binary_dilation(static, iterations=2) & _inside(static.shape))
