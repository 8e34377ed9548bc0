"""The field of a law in a medium that is not plain: flow, sources, coefficients that vary, other operators.

    u_t + v(t)·∇u + V(x, y, t)·∇u = c₀ + c₁u + c₂u² + (a m + a₂u)|∇u|² + ∇·(m D∇u) − κΔ²u + s(x, y, t)

Fourier in space (2/3 rule) in the frame that moves with the drift, ETDRK4 in time. Whatever is fixed in the picture
(flow, maps, sources) moves through that frame. The square is large enough for the field to be flat at its edge, where
the periodic continuation of V and m would not be smooth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.interpolate import CubicSpline

from video2pde.errors import InputError
from video2pde.recording.synth.etd import Etdrk4
from video2pde.recording.synth.laws import Case
from video2pde.recording.synth.spectral import nodes, Snapshot, take_snapshot

Array = NDArray[np.float64]
State = NDArray[np.complex128]

CARRIED = 2 / 3  # share of the wavenumbers kept, against aliases
COURANT = 2.0  # largest step × speed × wavenumber; Runge–Kutta of order 4 holds 2.8
HEAVY = 2.0  # how much larger a square is for operators whose kernels have heavy tails
TOUCHING = 2e-5  # largest deviation from the background on the square's edge
HEAVY_TOUCHING = 2e-3
UNRESOLVED = 1e-5


def integrate_medium(case: Case, times: Array, side: float, spacing: float, largest_step: float) -> Iterator[Snapshot]:
    """Yield the case's field in the moving frame at each of ``times``.

    The background is the value in the square's corner, which obeys the law like any other point.
    """
    medium = case.medium
    heavy = medium.fractional < 2 or medium.memory < 1
    count = fft.next_fast_len(math.ceil(side / spacing), real=True)
    axis = nodes(side, count)
    solver = _Solver(case, axis, side)
    advance = solver.recall if medium.has_own_operator else solver.integrate
    largest = min(largest_step, COURANT / max(solver.fastest, 1e-9))
    for time, values in zip(times, advance(times, largest), strict=True):
        background = float(values[0, 0])
        if medium.immobile:
            (x, y), (x0, y0) = case.position(float(time)), case.position(0.0)
            stays = case.plume.blobs()(axis - float(y0 - y), axis - float(x0 - x))
            values = background + (1 - medium.immobile) * (values - background) + medium.immobile * stays
        yield take_snapshot(
            values, side, background, CARRIED, touching=HEAVY_TOUCHING if heavy else TOUCHING, unresolved=UNRESOLVED
        )


def widen(case: Case, plain: float, duration: float) -> float:
    """Widen the square ``plain`` that holds the plume in a plain medium."""
    medium = case.medium
    spread = math.sqrt(max(medium.largest_factor, 1 + abs(medium.anisotropy)))
    side = plain * max(medium.flow.stretch(duration), spread)
    return side * (HEAVY if medium.fractional < 2 or medium.memory < 1 else 1.0)


class _Solver:
    """Advance a case's Fourier coefficients in its medium."""

    def __init__(self, case: Case, axis: Array, side: float) -> None:
        count = len(axis)
        ky = 2 * np.pi / side * np.fft.fftfreq(count, 1 / count)[:, None]
        kx = 2 * np.pi / side * np.arange(count // 2 + 1)[None, :]
        limit = CARRIED * np.pi * count / side
        self._case, self._axis, self._shape = case, axis, (count, count)
        self._iky, self._ikx, self._square = 1j * ky, 1j * kx, kx**2 + ky**2
        self._keep = (np.abs(ky) < limit) & (kx < limit)
        medium, diffusion = case.medium, case.law.laplacian
        # the largest coefficient is taken exactly, so that what is left over is never anti-diffusion on its own
        self._frozen = diffusion * (medium.largest_factor if medium.varies == "laplacian" else 1.0)
        if medium.fractional < 2:
            self._spread = self._frozen * self._square ** (medium.fractional / 2)
        else:
            s, turned = medium.anisotropy, math.radians(medium.turned)
            along = math.cos(turned) * kx + math.sin(turned) * ky
            across = math.cos(turned) * ky - math.sin(turned) * kx
            self._spread = self._frozen * ((1 + s) * along**2 + (1 - s) * across**2)
        self._spread = self._spread + medium.fourth * self._square**2
        corner = np.array([-side / 2, side / 2]) * 1.1
        steady = replace(medium.flow, pulse=None)
        speed = np.abs(steady.velocity(corner[:, None], corner[None, :], 0.0)).max()
        self.fastest = limit * (float(speed) + abs(steady.vortex))

    def integrate(self, times: Array, largest_step: float) -> Iterator[Array]:
        """Yield node values at ``times``."""
        case = self._case
        state = self._transform(case.background + case.plume.blobs()(self._axis, self._axis))
        stepper = Etdrk4(case.law.u - self._spread, self._slope)
        now = 0.0
        for time in times:
            if time > now:
                substeps = math.ceil((time - now) / largest_step - 1e-9)
                step = (time - now) / substeps
                for k in range(substeps):
                    state = stepper.advance(state, now + k * step, step)
                now = float(time)
            yield self._restore(state)

    def recall(self, times: Array, _: float) -> Iterator[Array]:
        """Yield node values of ∂^α u/∂t^α = DΔu: each mode decays as the Mittag-Leffler function E_α(−Dk²t^α)."""
        case, order = self._case, self._case.medium.memory
        if set(case.law.coefficients) - {"laplacian"} or not replace(case.medium, memory=1.0, immobile=0.0).is_plain:
            raise InputError("memory is solved for pure diffusion alone; take case A without a second deviation")
        start = self._transform(case.plume.blobs()(self._axis, self._axis))
        for time in times:
            decay = mittag_leffler(self._spread * float(time) ** order, order)
            yield case.background + self._restore(start * decay)

    def _transform(self, values: Array) -> State:
        return np.asarray(fft.rfft2(values) * self._keep)

    def _restore(self, state: State) -> Array:
        return np.asarray(fft.irfft2(state, s=self._shape))

    def _slope(self, state: State, time: float) -> State:
        case, law, medium = self._case, self._case.law, self._case.medium
        at_x, at_y = (float(value) for value in case.position(time))
        x, y = self._axis[None, :] + at_x, self._axis[:, None] + at_y
        still = medium.flow.is_none
        steep = law.grad_squared or law.u_grad_squared
        rate: Array = np.full(self._shape, law.constant)
        if medium.source.rate:
            rate += medium.source(x, y, time)
        extra: State | float = 0.0
        u = self._restore(state) if law.u_squared or law.u_grad_squared or medium.conserved else None
        if u is not None and law.u_squared:
            rate += law.u_squared * u**2
        if steep or not still or medium.in_space:
            u_y, u_x = self._restore(self._iky * state), self._restore(self._ikx * state)
            if steep:
                varied = medium.factor(x, y, time, case.duration) if self._varies("grad_squared") else 1.0
                a = law.grad_squared * varied
                rate += (a + (law.u_grad_squared * u if u is not None else 0.0)) * (u_x**2 + u_y**2)
            if not still:
                v_x, v_y = medium.flow.velocity(x, y, time)
                rate -= v_x * u_x + v_y * u_y
                if u is not None and medium.conserved:
                    rate -= medium.flow.divergence * medium.flow.strength(time) * u
            if medium.in_space and self._varies("laplacian"):
                left = law.laplacian * medium.factor(x, y, time, case.duration) - self._frozen
                extra = self._ikx * self._transform(left * u_x) + self._iky * self._transform(left * u_y)
        if medium.slowing and not medium.in_space and self._varies("laplacian"):
            [factor] = medium.factor(np.zeros(1), np.zeros(1), time, case.duration)
            later = law.laplacian * float(factor) - self._frozen
            extra = -later * self._square * state
        return self._transform(rate) + extra

    def _varies(self, term: str) -> bool:
        return self._case.medium.varies == term


def mittag_leffler(z: Array, order: float) -> Array:
    """Return E_α(−z) for z ≥ 0 and 0 < α < 1, from a table of its spectral integral.

    E_α(−z) = ∫ exp(−r z^{1/α}) K(r) dr, K(r) = sin(απ) r^{α−1} / (π (r^{2α} + 2r^α cos απ + 1)): a sum of exponentials,
    taken by the trapezium rule in log r.
    """
    table = _mittag_leffler_table(order)
    inside = np.clip(z, math.exp(table.x[0]), math.exp(table.x[-1]))
    return np.where(z < math.exp(table.x[0]), 1.0, table(np.log(inside)))


@lru_cache(maxsize=8)
def _mittag_leffler_table(order: float) -> CubicSpline:
    at = np.linspace(math.log(1e-9), math.log(1e9), 1600)
    s = np.linspace(-45 / order, 45 / order, 6001)
    r = np.exp(order * s)
    weight = math.sin(order * math.pi) / math.pi * r / (r**2 + 2 * r * math.cos(order * math.pi) + 1) * (s[1] - s[0])
    exponent = np.minimum(s[None, :] + at[:, None] / order, 6.5)
    return CubicSpline(at, np.exp(-np.exp(np.maximum(exponent, -700.0))) @ weight)
