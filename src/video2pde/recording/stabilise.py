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

from video2pde.recording.objects import COARSE, find_static, FINE
from video2pde.recording.resize import average_squares

Array = NDArray[np.float64]

WORKING_SIDE = 100  # cells on the longer side, at most, that are compared
SMOOTHING = 3.0  # cells of that size: σ of the filter before frames are compared
STRIDE = 2  # every so many of the filtered cells are compared
ITERATIONS = 3
EVERY = 5  # of the frames: one of so many tells the errors
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
    step = len(frames) // GLANCE if mode in ("auto", "none") else 1
    glance = _measure(frames[::step], mode) if step > 1 else None
    if step > 1 and (glance is None or not glance.corrected):  # a steady camera needs no second look
        return None if glance is None else _in_cells(glance, 1, len(frames))
    return _measure(frames, mode)


def _measure(frames: NDArray[np.float32], mode: str) -> Motion | None:
    size = max(1, round(max(frames.shape[1:]) / WORKING_SIDE))
    binned = average_squares(frames, size)
    static = _find_static(binned)
    affine = mode != "shift"
    found = None
    if static is not None:
        still = _Compared(_band(binned), np.ones((len(frames), 1)), static, 1)
        found = _follow(still, affine, mode, STATIC)
    if found is None or found.error > LEAST_HOLD:
        smooth = _filter(binned, max(SMOOTHING / size, 1.5))[:, ::STRIDE, ::STRIDE]
        splines = _splines(len(frames))
        found = _follow(_Compared(smooth, splines, _inside(smooth.shape[1:]), STRIDE), affine, mode, "the plume")
    return None if found is None else _in_cells(found, size, len(frames))


@dataclass(frozen=True, eq=False)
class _Compared:
    """What is compared: frames (t, y, x), the splines in time (t, k) that the scene follows, and where."""

    frames: Array
    splines: Array
    where: NDArray[np.bool_]
    stride: int


def _follow(compared: _Compared, affine: bool, mode: str, on: str) -> Motion | None:
    """Fit the motion, in binned cells; a first pass decides whether there is any, and whether it turns."""
    basis = np.linalg.qr(compared.splines)[0]
    moved = np.zeros((len(compared.frames), 4))
    lever = compared.stride * min(compared.frames.shape[1:]) / 4
    frames, error, explained = compared.frames, np.inf, 0.0
    for iteration in range(ITERATIONS):
        step, errors, share = _fit(frames, basis, compared.where, affine)
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
        frames = _put_back(compared.frames, moved)
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


def _fit(frames: Array, basis: Array, where: NDArray[np.bool_], affine: bool) -> tuple[Array, Array, float]:
    """Fit each frame's (dy, dx, angle, zoom); return them, their standard errors, and the explained share.

    Neighbouring cells share their noise after the filter: the errors count the autocorrelation of what is left.
    """
    flat = frames.reshape(len(frames), -1)
    scene = (basis @ (basis.T @ flat)).reshape(frames.shape)
    y, x = (axis - axis.mean() for axis in np.meshgrid(*(np.arange(n) for n in frames.shape[1:]), indexing="ij"))
    moved, variances, before, after, left = np.zeros((len(frames), 4)), [], 0.0, 0.0, np.zeros(where.shape)
    used = 4 if affine else 2
    for k, s in enumerate(scene):
        slope_y, slope_x = np.gradient(s)
        columns = [slope_y, slope_x, slope_y * x - slope_x * y, slope_y * y + slope_x * x][:used]
        nuisance = np.stack([s[where], np.ones(int(where.sum()))])
        change = _without((frames[k] - s)[where][None], nuisance)[0]
        design = _without(np.stack([column[where] for column in columns]), nuisance)
        normal = design @ design.T
        size = np.sqrt(np.diag(normal))
        if size.min() <= 1e-9 * np.abs(s).max() or np.linalg.eigvalsh(normal / np.outer(size, size))[0] < 1e-8:
            return moved, np.full(4, np.inf), 0.0
        solution = np.linalg.solve(normal, design @ change)
        rest = change - solution @ design
        moved[k, :used] = -solution
        before, after = before + float(change @ change), after + float(rest @ rest)
        if k % EVERY == 0:
            left[where] = rest
            variances.append(np.diag(np.linalg.inv(normal)) * float(rest @ rest) / len(rest) * _shared(left))
    errors = np.zeros(4)
    errors[:used] = np.sqrt(np.mean(variances, axis=0))
    return moved, errors, 1 - after / (before + 1e-300)


def _without(rows: Array, nuisance: Array) -> Array:
    """Take off the rows (p, n) what the nuisance rows (q, n) explain of them."""
    normal = nuisance @ nuisance.T
    normal += 1e-12 * np.trace(normal) * np.eye(len(normal))  # an even picture is like the constant
    return np.asarray(rows - np.linalg.solve(normal, nuisance @ rows.T).T @ nuisance)


def _shared(left: Array) -> float:
    """Return how many cells share one piece of noise: (1 + 2Σρ) along y times the same along x, over five cells."""
    power = float((left**2).mean()) + 1e-300
    along = [
        1 + 2 * sum(max(0.0, float((left[m:] * left[:-m]).mean()) / power) for m in range(1, 6)),
        1 + 2 * sum(max(0.0, float((left[:, m:] * left[:, :-m]).mean()) / power) for m in range(1, 6)),
    ]
    return along[0] * along[1]


def _put_back(frames: Array, moved: Array) -> Array:
    """Show each frame as a camera at rest would have: S(x) = F(x + δ)."""
    from scipy.ndimage import affine_transform

    centre = (np.array(frames.shape[1:]) - 1) / 2
    out = np.empty_like(frames)
    for k, (dy, dx, angle, zoom) in enumerate(moved):
        matrix = turn(angle, zoom)
        offset = centre - matrix @ centre + (dy, dx)
        affine_transform(frames[k], matrix, offset, output=out[k], order=3, mode="nearest")
    return out


def turn(angle: float, zoom: float) -> Array:
    """Return the matrix that takes a place, from the picture's middle, to where a turned and zoomed camera shows it."""
    return np.array([[1 + zoom, angle], [-angle, 1 + zoom]])


# ----------------------------------------------------------------------------- what is compared


def _filter(frames: Array, sigma: float) -> Array:
    from scipy.ndimage import gaussian_filter

    return np.stack([gaussian_filter(frame, sigma, mode="nearest", truncate=3.0) for frame in frames])


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
