"""The true field of a case: closed form where there is one, spectral accuracy elsewhere.

All solvers work in the frame that moves with the drift, where the law has no advection, on a square
that holds the plume with its tails; the drift is then an exact shift when the field is sampled.

* linear laws (A, B, pure drift): Gaussians convolved with the heat kernel stay Gaussians;
* |∇u|² with Δu (C): Cole–Hopf, θ = exp(a(u − B)/β) − 1 follows the heat equation;
* anything else (C-alt, Fisher): Fourier pseudo-spectral in space, ETDRK4 in time;
* media that are not plain (flow, sources, coefficients that vary, other operators): ``media``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from video2pde.errors import InputError
from video2pde.field import Field, Grid, Provenance
from video2pde.machine import require_memory
from video2pde.recording.synth.etd import Etdrk4
from video2pde.recording.synth.laws import Blobs, Case, Law
from video2pde.recording.synth.media import integrate_medium, widen
from video2pde.recording.synth.spectral import cut_snapshot, nodes, Sampler, Snapshot, take_snapshot, wavenumbers

Array = NDArray[np.float64]

TAIL = 20.0  # tails are followed down to exp(−20) = 2e-9 of the peak
NEAR_TAIL = 12.0  # the same where a flow or a map acts: 6e-6, and a smaller square
LARGEST_EXPONENT = 300.0  # of Cole–Hopf's exp(a(u − B)/β); products of two such numbers stay finite
LARGEST_STEP = 0.2  # seconds, of ETDRK4
SMALLEST_DOMAIN = 256.0  # image units, wider than the picture
SPACING = 0.8  # image units, for gains up to USUAL_GAIN
USUAL_GAIN = 12.0  # aΔu/D; creases between fingers sharpen as it grows
BYTES_PER_NODE = 64.0  # of the solver's grid: u, its transform and their products
CARRIED = 2 / 3  # share of the wavenumbers that the pseudo-spectral solver keeps, against aliases


def exact_field(case: Case, grid: Grid, times: Sequence[float] | Array, *, cell_average: bool = True) -> Field:
    """Return the case's true field on ``grid``, the plume's path centred in it.

    Parameters
    ----------
    times : seconds, ascending, from 0 on, uniformly spaced.
    cell_average : average over the cells Δy × Δx (exactly); otherwise sample their centres.
    """
    y, x = grid.y - grid.height / 2, grid.x - grid.width / 2
    size = (grid.dy, grid.dx) if cell_average else (0.0, 0.0)
    values = np.empty((len(times), *grid.shape), dtype=np.float32)
    for index, picture in enumerate(sample_case(case, y, x, size, times)):
        values[index] = picture
    origin = Provenance(path=f"known truth, case {case.name}", settings=case.truth)
    return Field(values, np.asarray(times, dtype=float), grid, provenance=origin)


def sample_case(
    case: Case,
    y: Array,
    x: Array,
    cell: tuple[float, float],
    times: Sequence[float] | Array,
    *,
    single: bool = False,
    spacing: float | None = None,
    domain: float | None = None,
    shifts: Array | None = None,
) -> Iterator[NDArray[np.floating]]:
    """Yield the true field frame by frame at positions from the picture's centre.

    Parameters
    ----------
    y, x : ascending positions, image units.
    cell : (Δy, Δx) to average over; zeros sample points.
    single : compute the last products in single precision (camera pictures).
    spacing, domain : of the solver's grid, image units; chosen from the case by default.
    shifts : (y, x) by which the picture is displaced in each frame, image units, shape (t, 2).
    """
    moments = np.asarray(times, dtype=float)
    if len(moments) == 0 or moments[0] < 0 or np.any(np.diff(moments) <= 0):
        raise InputError("the times of a known-truth field must ascend from 0 on")
    sampler: Sampler | None = None
    moved = np.zeros((len(moments), 2)) if shifts is None else shifts
    snapshots = solve(case, moments, spacing=spacing, domain=domain)
    for time, (dy, dx), snapshot in zip(moments, moved, snapshots, strict=True):
        if sampler is None:
            sampler = Sampler(y, x, *cell, snapshot.side, np.float32 if single else np.float64)
        at_x, at_y = case.position(float(time))
        yield sampler(snapshot, float(at_x + dx), float(at_y + dy))


def solve(case: Case, times: Array, *, spacing: float | None = None, domain: float | None = None) -> Iterator[Snapshot]:
    """Yield the case's field in the moving frame at each of ``times``."""
    plain, until = case.medium.is_plain, float(times[-1])
    held = find_domain(case, until) if plain else widen(case, find_domain(case, until, NEAR_TAIL), until)
    side = domain or max(held, SMALLEST_DOMAIN)
    step = spacing or SPACING / math.sqrt(max(1.0, _find_gain(case, 0.0) / USUAL_GAIN))
    require_memory(
        BYTES_PER_NODE * (side / step) ** 2,
        f"to solve this law over {side:.3g} image units would",
        "give a weaker law or a shorter --duration",
    )
    if not plain and case.law.further:
        raise InputError("a medium that is not plain goes with the plain terms of a law alone, not with further ones")
    if not plain:
        return integrate_medium(case, times, side, step, LARGEST_STEP)
    if case.law.is_linear:
        return spread_gaussians(case, times, side, step)
    if case.law.is_cole_hopf:
        return evolve_cole_hopf(case, times, side, step)
    return integrate_spectrally(case, times, side, step)


def find_domain(case: Case, duration: float, tail: float = TAIL) -> float:
    """Bound the square that holds the plume down to tails of exp(−``tail``) until ``duration``.

    The tail of a Gaussian of variance σ² + 2Dt, amplified by growth exp(rt) or by Cole–Hopf's
    exp(aΔu/D), falls to exp(−tail) at a distance of √(2(tail + gain)) standard deviations.
    """
    blobs = case.plume.blobs()
    fastest = max(case.law.laplacian, 0.0) + case.law.further.diffusivity(case.background + case.plume.peak)
    width = math.sqrt(blobs.widest + 2 * fastest * duration)
    reach = blobs.radius + width * math.sqrt(2 * (tail + _find_gain(case, duration)))
    return 2 * reach


def _find_gain(case: Case, duration: float) -> float:
    law, peak = case.law, case.plume.peak
    steepest = max(law.grad_squared, 0.0) + max(law.u_grad_squared, 0.0) * (case.background + peak)
    gain = max(law.u, 0.0) * duration
    return gain + (steepest * peak / law.laplacian if steepest else 0.0)


# ----------------------------------------------------------------------------- linear laws


def spread_gaussians(case: Case, times: Array, side: float, spacing: float) -> Iterator[Snapshot]:
    """Evolve u_t = c₀ + c₁u + DΔu exactly: w = B(t) + e^{c₁t} Σ Gaussians of covariance Σ + 2Dt.

    The Gaussians' Fourier transform, A·2π√|Σ|·exp(−½kᵀΣk − ik·μ), is closed too, so no grid enters
    beyond the wavenumbers kept.
    """
    start = _transform_gaussians(case.plume.blobs(), side, spacing)
    square = wavenumbers(start.cutoff, side) ** 2
    half = square[: start.cutoff + 1]
    for time in times:
        decay = case.law.laplacian * time
        grown = math.exp(case.law.u * time) * np.exp(-decay * square)[:, None] * np.exp(-decay * half)
        yield Snapshot(_linear_background(case, float(time)), start.coefficients * grown, side)


def _transform_gaussians(blobs: Blobs, side: float, spacing: float) -> Snapshot:
    count = 2 * math.ceil(side / spacing / 2)
    k = 2 * np.pi / side * np.fft.fftfreq(count, 1 / count)
    ky, kx = k[:, None], np.abs(k[None, : count // 2 + 1])
    total = np.zeros((count, count // 2 + 1), dtype=np.complex128)
    for amplitude, (cy, cx), covariance in zip(blobs.amplitude, blobs.centre, blobs.covariance, strict=True):
        quadratic = covariance[0, 0] * ky**2 + 2 * covariance[0, 1] * ky * kx + covariance[1, 1] * kx**2
        mass = amplitude * 2 * np.pi * math.sqrt(np.linalg.det(covariance)) / side**2
        total += mass * np.exp(-0.5 * quadratic - 1j * (ky * (cy + side / 2) + kx * (cx + side / 2)))
    return cut_snapshot(total, side, 0.0)


def _linear_background(case: Case, time: float) -> float:
    rate, source = case.law.u, case.law.constant
    grown = math.expm1(rate * time) / rate if rate else time
    return case.background * math.exp(rate * time) + source * grown


# ----------------------------------------------------------------------------- Cole–Hopf


def evolve_cole_hopf(case: Case, times: Array, side: float, spacing: float) -> Iterator[Snapshot]:
    """Evolve u_t = a|∇u|² + βΔu exactly through θ = exp(a(u − B)/β) − 1, θ_t = βΔθ.

    The heat kernel acts by positive separable matrices (trapezium rule, spectrally accurate for
    analytic data), so θ keeps its relative accuracy over tens of orders of magnitude and
    u = B + (β/a) log(1 + θ) is right where it is small.
    """
    blobs, ratio = case.plume.blobs(), case.law.grad_squared / case.law.laplacian
    exponent = ratio * case.plume.peak
    if not -30 <= exponent <= LARGEST_EXPONENT:
        raise InputError(
            f"grad_squared × peak / laplacian = {exponent:.3g}; Cole–Hopf holds it from −30 to {LARGEST_EXPONENT:g}"
        )
    target = nodes(side, fft.next_fast_len(math.ceil(side / spacing), real=True))
    feature = math.sqrt(blobs.narrowest / (1 + abs(exponent)))
    for time in times:
        width = math.sqrt(2 * case.law.laplacian * float(time))
        if width == 0:
            deviation = blobs(target, target)
        else:
            source_y, source_x, theta = _sample_theta(blobs, ratio, _source_step(feature, width, spacing))
            floor = -(3 * TAIL + abs(exponent))
            spread = (
                _heat_matrix(target, source_y, width, floor) @ theta @ _heat_matrix(target, source_x, width, floor).T
            )
            deviation = np.log1p(spread) / ratio
        yield take_snapshot(case.background + deviation, side, case.background)


def _source_step(feature: float, width: float, spacing: float) -> float:
    """Halve the source spacing until the trapezium rule resolves kernel × data: error exp(−2π²w²/h²) < 1e-7."""
    product = feature * width / math.hypot(feature, width)
    step = spacing
    while step > product / 0.9:
        step /= 2
    if step < spacing / 32:
        raise InputError(
            f"the first frame after t = 0 is too early for Cole–Hopf (heat kernel {width:.2g} wide); use fewer frames"
        )
    return step


@lru_cache(maxsize=4)
def _theta_box(key: tuple[bytes, bytes, bytes], ratio: float, step: float) -> tuple[Array, Array, Array]:
    amplitude, centre, covariance = (np.frombuffer(part) for part in key)
    n = len(amplitude)
    blobs = Blobs(amplitude, centre.reshape(n, 2), covariance.reshape(n, 2, 2))
    reach = blobs.radius + math.sqrt(blobs.widest * 2 * (TAIL + math.log1p(abs(ratio))))
    axis: Array = step * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1, dtype=np.float64)
    deviation = blobs(axis, axis)
    kept = deviation > 1e-9 / max(1.0, abs(ratio))
    rows, columns = np.flatnonzero(kept.any(axis=1)), np.flatnonzero(kept.any(axis=0))
    box = np.ix_(np.arange(rows[0], rows[-1] + 1), np.arange(columns[0], columns[-1] + 1))
    theta = np.expm1(ratio * deviation[box]) * step**2
    return axis[box[0].ravel()], axis[box[1].ravel()], theta


def _sample_theta(blobs: Blobs, ratio: float, step: float) -> tuple[Array, Array, Array]:
    """Return rows, columns and θ₀·step² on the box outside which θ₀ is negligible."""
    key = (blobs.amplitude.tobytes(), blobs.centre.tobytes(), blobs.covariance.tobytes())
    return _theta_box(key, ratio, step)


def _heat_matrix(target: Array, source: Array, width: float, floor: float) -> Array:
    """Return the one-dimensional heat kernel between positions, cut off where it no longer counts."""
    exponent = -0.5 * ((target[:, None] - source[None, :]) / width) ** 2
    # Without the cut-off the products are subnormal numbers, which slow the processor down a hundredfold.
    kernel = np.where(exponent < floor, 0.0, np.exp(np.maximum(exponent, floor)))
    return kernel / (width * math.sqrt(2 * np.pi))


# ----------------------------------------------------------------------------- pseudo-spectral


def integrate_spectrally(
    case: Case, times: Array, side: float, spacing: float, largest_step: float = LARGEST_STEP
) -> Iterator[Snapshot]:
    """Integrate the law in the moving frame: Fourier in space (2/3 rule), ETDRK4 in time.

    The background is the value in the square's corner, which obeys the law like any other point.
    """
    count = fft.next_fast_len(math.ceil(side / spacing), real=True)
    axis = nodes(side, count)
    stepper = _Stepper(case.law, side, count, case.law.further.diffusivity(case.background + case.plume.peak))
    largest_step = stepper.shorten(largest_step)
    state = stepper.transform(case.background + case.plume.blobs()(axis, axis))
    now = 0.0
    for time in times:
        if time > now:
            substeps = math.ceil((time - now) / largest_step - 1e-9)
            for _ in range(substeps):
                state = stepper.advance(state, now, (time - now) / substeps)
            now = float(time)
        values = stepper.restore(state)
        yield take_snapshot(values, side, float(values[0, 0]), CARRIED)


class _Stepper:
    """Advance Fourier coefficients: û_t = Lû + N(û), L = c₁ − Dk² + κk⁴, N the other terms.

    Of diffusion that depends on u, half of the ``fastest`` is in L and the rest in N, so that steps stay stable.
    """

    def __init__(self, law: Law, side: float, count: int, fastest: float = 0.0) -> None:
        k = 2 * np.pi / side * np.fft.fftfreq(count, 1 / count)
        half = 2 * np.pi / side * np.arange(count // 2 + 1)
        self._law, self._shape = law, (count, count)
        self._iky, self._ikx = 1j * k[:, None], 1j * half[None, :]
        limit = CARRIED * np.pi * count / side
        self._keep = (np.abs(k)[:, None] < limit) & (half[None, :] < limit)
        square = k[:, None] ** 2 + half[None, :] ** 2
        self._square, self._steady, self._limit = square, fastest / 2, limit
        linear = law.u - (law.laplacian + self._steady) * square + law.further.biharmonic * square**2
        self.advance = Etdrk4(linear, self._nonlinear).advance

    def shorten(self, step: float) -> float:
        """Bound a step by what diffusion that is not in L allows: half of the method's limit."""
        return min(step, 1.4 / (self._steady * 2 * self._limit**2)) if self._steady else step

    def transform(self, values: Array) -> NDArray[np.complex128]:
        return np.asarray(fft.rfft2(values) * self._keep)

    def restore(self, state: NDArray[np.complex128]) -> Array:
        return np.asarray(fft.irfft2(state, s=self._shape))

    def _nonlinear(self, state: NDArray[np.complex128], _: float) -> NDArray[np.complex128]:
        law = self._law
        u = self.restore(state)
        rate = law.constant + law.u_squared * u**2
        if law.grad_squared or law.u_grad_squared:
            gradient = self.restore(self._iky * state) ** 2 + self.restore(self._ikx * state) ** 2
            rate += (law.grad_squared + law.u_grad_squared * u) * gradient
        if not law.further:
            return self.transform(rate)
        flowing = self.transform(law.further.potential(u)) - self._steady * state
        return self.transform(rate + law.further.reaction(u)) - self._square * flowing


# ----------------------------------------------------------------------------- noise


def noisy(field: Field, level: float, seed: int) -> Field:
    """Add white Gaussian noise of standard deviation ``level`` to every pixel of every frame."""
    rng = np.random.default_rng(seed)
    values = field.values + np.float32(level) * rng.standard_normal(field.values.shape, dtype=np.float32)
    note = f"white pixel noise of standard deviation {level:g} added (seed {seed})"
    origin = replace(field.provenance, notes=(*field.provenance.notes, note))
    return replace(field, values=values, provenance=origin)
