"""Bulk drift of the plume: background, centroid, Savitzky–Golay.

With w = u − background inside the plume's region,

    M(t) = ∫ w dA,   x_c(t) = ∫ x w dA / M,   v(t) = d/dt S[x_c](t),

where S is the Savitzky–Golay filter. A background of 0.25 that is left in slows the raw centroid down
eight- to thirteenfold, so it is subtracted unless the settings ask for the paper's raw centroid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, signal

from video2pde.errors import StageError
from video2pde.field import Field, is_uniform
from video2pde.flow import Flow
from video2pde.html import curves
from video2pde.settings import DriftSettings

Array = NDArray[np.float64]
Method = Literal["border", "percentile", "none"]

BORDER_SHARE = 0.04
"""Width of the frame of pixels that estimates the background, as a share of the picture."""
QUIET_BORDER = 0.1
"""Spread of the border, relative to the plume's amplitude, up to which the border is background."""
REGION_LEVEL = 0.005
"""Share of the amplitude that a pixel must reach at some time to belong to the plume's region."""
REGION_NOISE = 4.0
"""Standard deviations of the (smoothed) border that such a pixel must exceed."""
FRAMES_AT_ONCE = 256
"""Frames whose borders are looked at together: they bound the memory."""
CALM_RUNS = 60
"""Runs of frames that are averaged before anything is told from noise."""
NO_SIGNAL = 0.02
"""A frame whose M(t) is below this share of the median has no usable centroid."""


@dataclass(frozen=True, eq=False)
class Drift:
    """Hold the measured drift, frame by frame.

    Parameters
    ----------
    times : (t,), seconds.
    velocity : (t, 2), v_x and v_y in length units per second.
    velocity_error : (t, 2), standard error of the velocity from the filter's residuals.
    centroid : (t, 2), x_c and y_c as measured; ``smooth_centroid`` after the filter.
    mass : (t,), M(t) in length units squared.
    background : (t,), what was subtracted from u; zeros for the raw centroid.
    method : where the background came from: ``border``, ``percentile`` or ``none``.
    region : (y, x), pixels over which the moments were taken.
    empty_frames : frames without signal, whose centroid was interpolated.
    moving : whether the picture is carried along; if not, the velocity is zero and no law is given any drift.
    why : why it was taken not to move, or an empty text.
    notes : what to bear in mind about the measurement.
    given : a velocity that varies in space, given by the user, which takes the place of the measured one in the law.
    """

    times: Array
    velocity: Array
    velocity_error: Array
    centroid: Array
    smooth_centroid: Array
    mass: Array
    background: Array
    method: Method
    region: NDArray[np.bool_]
    empty_frames: tuple[int, ...]
    unit: str
    moving: bool = True
    why: str = ""
    notes: tuple[str, ...] = ()
    given: Flow | None = None

    @property
    def mean(self) -> tuple[float, float]:
        """Mean drift (v_x, v_y) in length units per second."""
        v_x, v_y = self.velocity.mean(axis=0)
        return float(v_x), float(v_y)

    @property
    def mean_error(self) -> tuple[float, float]:
        """Standard error of the mean drift: that of the path's two ends over the duration."""
        window = self.times[-1] - self.times[0]
        scatter = np.std(self.centroid - self.smooth_centroid, axis=0)
        v_x, v_y = np.sqrt(2) * scatter / window
        return float(v_x), float(v_y)

    def frames(self, window: slice) -> Drift:
        """Take a run of frames."""
        empty = tuple(
            i - (window.start or 0) for i in self.empty_frames if i in range(*window.indices(len(self.times)))
        )
        return replace(
            self,
            times=self.times[window],
            velocity=self.velocity[window],
            velocity_error=self.velocity_error[window],
            centroid=self.centroid[window],
            smooth_centroid=self.smooth_centroid[window],
            mass=self.mass[window],
            background=self.background[window],
            empty_frames=empty,
        )

    def stopped(self, why: str) -> Drift:
        """Take the picture not to move as a whole: the centroid is kept for reading, the velocity is zero."""
        nothing = np.zeros_like(self.velocity)
        return replace(self, velocity=nothing, velocity_error=nothing, moving=False, why=why)

    def _repr_html_(self) -> str:
        """Show the drift in a notebook: its description and v(t)."""
        series = [("v_x", self.velocity[:, 0]), ("v_y", self.velocity[:, 1])]
        low, high = self.velocity.min(), self.velocity.max()
        caption = f"from {low:.3g} to {high:.3g} {self.unit}/s over {self.times[-1] - self.times[0]:.3g} s"
        return f"<p>{escape(repr(self))}</p>{curves(self.times, series, caption)}"

    def __repr__(self) -> str:
        (v_x, v_y), (e_x, e_y) = self.mean, self.mean_error
        return (
            f"Drift(mean v = ({v_x:.4g} ± {e_x:.1g}, {v_y:.4g} ± {e_y:.1g}) {self.unit}/s, "
            f"background {self.background.mean():.4g} from {self.method})"
        )


def estimate_drift(field: Field, settings: DriftSettings | None = None) -> Drift:
    """Measure the plume's drift velocity v(t) from its background-corrected centroid.

    Parameters
    ----------
    field : the recording, or a window of it.
    settings : None: the defaults.

    Returns
    -------
    The drift, frame by frame.

    Examples
    --------
    >>> drift = estimate_drift(vp.example_field())
    >>> bool(np.allclose(drift.mean, [0.5, -0.25], atol=0.02))
    True
    """
    settings = settings or DriftSettings()
    background, method = estimate_background(field, settings)
    region = np.ones(field.grid.shape, bool) if method == "none" else _plume_region(field, background)
    if field.mask is not None:
        region &= field.mask
    if not region.any():
        return no_drift(field, background, method, region, tuple(range(len(field))))
    mass, centroid = _moments(field, background, region)
    usable = mass > NO_SIGNAL * max(float(np.median(mass)), np.finfo(float).tiny)
    if np.count_nonzero(usable) < 4:
        raise StageError("fewer than four frames rise above the background: no drift can be measured")
    for axis in range(2):
        centroid[:, axis] = np.interp(field.times, field.times[usable], centroid[usable, axis])
    smooth, velocity, error = _savitzky_golay(centroid, field.times, settings)
    return Drift(
        times=field.times,
        velocity=velocity,
        velocity_error=error,
        centroid=centroid,
        smooth_centroid=smooth,
        mass=mass,
        background=background,
        method=method,
        region=region,
        empty_frames=tuple(int(i) for i in np.flatnonzero(~usable)),
        unit=field.grid.unit,
    )


def no_drift(
    field: Field,
    background: Array | None = None,
    method: Method = "none",
    region: NDArray[np.bool_] | None = None,
    empty: tuple[int, ...] = (),
) -> Drift:
    """Return the drift where nothing moves as a whole: zero, with the picture's centre as centroid.

    ``empty``: frames in which nothing rises above the background.
    """
    frames = len(field)
    centre = np.tile([field.grid.width / 2, field.grid.height / 2], (frames, 1))
    nothing = np.zeros((frames, 2))
    return Drift(
        times=field.times,
        velocity=nothing,
        velocity_error=nothing,
        centroid=centre,
        smooth_centroid=centre,
        mass=np.zeros(frames),
        background=np.zeros(frames) if background is None else background,
        method=method,
        region=np.ones(field.grid.shape, bool) if region is None else region,
        empty_frames=empty,
        unit=field.grid.unit,
    )


def estimate_background(field: Field, settings: DriftSettings) -> tuple[Array, Method]:
    """Estimate the background of every frame from the border's median or from a low percentile.

    The border is used where it is quiet: its spread, at the time when it is largest, is below a
    tenth of the plume's amplitude. Otherwise the plume touches it and the percentile is used.
    """
    if settings.background == "none":
        return np.zeros(len(field)), "none"
    border = _border(field)
    median = np.concatenate(
        [
            np.median(field.values[begin : begin + FRAMES_AT_ONCE, border], axis=1).astype(float)
            for begin in range(0, len(field), FRAMES_AT_ONCE)
        ]
    )
    calm = _calm_frames(field)
    inside = calm[:, ~border] if field.mask is None else calm[:, field.mask]
    amplitude = float(np.percentile(inside, 99.5) - np.median(median))
    spread = float(np.max(np.ptp(np.percentile(calm[:, border], (10, 90), axis=1), axis=0)))
    quiet = spread < QUIET_BORDER * amplitude
    if settings.background == "border" or (settings.background == "auto" and quiet):
        return median, "border"
    percentile = [np.percentile(ndimage.uniform_filter(frame, 5), settings.percentile) for frame in field.values]
    return np.asarray(percentile, float), "percentile"


def _calm_frames(field: Field) -> NDArray[np.float32]:
    """Average the frames in runs and smooth them: what is left of pixel noise must not pass for a plume."""
    edges = np.linspace(0, len(field), min(CALM_RUNS, len(field)) + 1).astype(int)
    runs = [field.values[a:b].mean(axis=0) for a, b in pairwise(edges)]
    return np.stack([ndimage.gaussian_filter(run, 1.0) for run in runs])


def _border(field: Field) -> NDArray[np.bool_]:
    ny, nx = field.grid.shape
    width = max(1, round(BORDER_SHARE * min(ny, nx)))
    border = np.ones((ny, nx), bool)
    border[width:-width, width:-width] = False
    return border


def _plume_region(field: Field, background: Array) -> NDArray[np.bool_]:
    """Find the pixels that the plume reaches at some time, with a margin.

    A region fixed in time keeps the centroid of a linear law exact, and keeps the rest of the picture,
    where a small error of the background would weigh by its area, out of it.
    """
    calm = _calm_frames(field)
    levels = np.interp(np.linspace(0, len(field) - 1, len(calm)), np.arange(len(field)), background)
    calm -= levels[:, None, None].astype(np.float32)
    highest = calm.max(axis=0)
    scatter = float(np.max(np.ptp(np.percentile(calm[:, _border(field)], (16, 84), axis=1), axis=0))) / 2
    amplitude = float(np.percentile(highest, 99.5))
    level = min(max(REGION_LEVEL * amplitude, REGION_NOISE * scatter), 0.1 * amplitude)
    reached = ndimage.binary_opening(highest > level, iterations=1)
    margin = max(2, round(0.03 * max(field.grid.shape)))
    grown: NDArray[np.bool_] = ndimage.binary_dilation(reached, iterations=margin)
    return grown


def _moments(field: Field, background: Array, region: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Integrate w, x w and y w over the region, frame by frame."""
    rows, columns = np.nonzero(region)
    weights = np.stack([np.ones(len(rows)), field.grid.x[columns], field.grid.y[rows]], axis=1)
    sums = np.empty((len(field), 3))
    for index, frame in enumerate(field.values):
        sums[index] = (frame[region] - background[index]) @ weights
    mass = sums[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        centroid = sums[:, 1:] / mass[:, None]
    return mass * field.grid.dx * field.grid.dy, np.where(np.isfinite(centroid), centroid, 0.0)


def _savitzky_golay(centroid: Array, times: Array, settings: DriftSettings) -> tuple[Array, Array, Array]:
    """Filter and differentiate the centroid; the error of v follows from the filter's residuals."""
    frames = len(centroid)
    window = round(settings.window * frames) | 1
    smallest = (settings.order + 2) | 1
    window = min(max(window, smallest), frames if frames % 2 else frames - 1)
    order = min(settings.order, window - 1)
    if not is_uniform(times):
        return _local_polynomials(centroid, times, window, min(order, max(window - 2, 1)))
    dt = float((times[-1] - times[0]) / (frames - 1))
    smooth = signal.savgol_filter(centroid, window, order, axis=0)
    velocity = signal.savgol_filter(centroid, window, order, deriv=1, delta=dt, axis=0)
    residual = centroid - smooth
    # the filter takes part of the noise with it: it keeps (1 − h₀) of the variance in the residual
    kept = max(1.0 - signal.savgol_coeffs(window, order)[window // 2], 0.1)
    # a running sum may end a rounding error below zero
    variance = np.maximum(ndimage.uniform_filter1d(residual**2, window, axis=0, mode="nearest"), 0.0)
    scatter = np.sqrt(variance / kept)
    slope = signal.savgol_coeffs(window, order, deriv=1, delta=dt)
    return smooth, velocity, scatter * np.sqrt(np.sum(slope**2))


def _local_polynomials(centroid: Array, times: Array, window: int, order: int) -> tuple[Array, Array, Array]:
    """Do the same where frames are unevenly spaced: a polynomial in time through the frames around each one."""
    smooth, velocity = np.empty_like(centroid), np.empty_like(centroid)
    error, frames = np.empty_like(centroid), len(times)
    for k in range(frames):
        first = int(np.clip(k - window // 2, 0, frames - window))
        part = slice(first, first + window)
        scale = float(np.ptp(times[part])) or 1.0
        design = np.vander((times[part] - times[k]) / scale, order + 1, increasing=True)
        inverse = np.linalg.pinv(design)
        coefficients = inverse @ centroid[part]
        smooth[k], velocity[k] = coefficients[0], coefficients[1] / scale
        left = centroid[part] - design @ coefficients
        variance = np.sum(left**2, axis=0) / max(window - order - 1, 1)
        error[k] = np.sqrt(variance * np.sum(inverse[1] ** 2)) / scale
    return smooth, velocity, error
