"""More than one population in a recovery: the laws of ``frap.laws``, fitted mode by mode and compared.

Which of them the recording needs is asked of frames that were not fitted: blocks of frames are left out in turn and
predicted. The simplest law that leaves no more there than the best one is taken; those that do as well are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import t as student

from video2pde.agreement import NORMAL
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import noise_weights
from video2pde.frap.fit import carried_in, jackknife, settle, SYSTEMATIC
from video2pde.frap.laws import LAWS, PopulationLaw, SHARES, Values
from video2pde.frap.modes import Modes

Array = NDArray[np.float64]

LEAST_FRAMES = 16
"""Frames that blocks can be left out of."""
HELD_OUT, KEPT_FIRST = 8, 0.12
"""Blocks that are left out in turn, and the share of the frames, the first ones, that are always there: no law says
from later frames what fast modes were at the start."""
SURE, MATERIAL = 0.95, 0.01
"""Probability, one-sided, from which on a law that leaves more than the best one is out, if it leaves this share more:
cells and edges alone make laws differ by a little."""
MOST_STEPS = 40
"""Steps of a fit at most: where a law has more parameters than the recording shows, it would go on for ever."""
MUCH = 1.25
"""Root mean square left in held-out frames, in units of the noise, from which on even the best law is not all."""
NORMAL_MEDIAN = 0.4549
"""Median of the square of a normal number with variance one."""
EMPTY = 0.02
"""Share of a population below which it is none."""


@dataclass(frozen=True)
class PopulationFit:
    """A law as it was fitted: ``estimates`` by parameter, what it leaves in frames that were fitted and held out.

    ``rms``, ``held_out``: root mean squares of a mode's error, in u; ``worse``: how much more it leaves in held-out
    blocks than the best law, in standard errors of that difference; ``out``: too much to be by chance; ``degenerate``:
    why it is no more than a simpler one, empty where it is.
    """

    name: str
    words: str
    estimates: Mapping[str, Estimate]
    bleaching: Estimate
    rms: float
    held_out: float
    worse: float = 0.0
    out: bool = False
    degenerate: str = ""


@dataclass(frozen=True, eq=False)
class Populations:
    """The laws of a recovery side by side; ``chosen``: the simplest that the held-out frames allow.

    ``noise``: root mean square of a mode's noise, in u, by differences of neighbouring frames.
    """

    laws: tuple[PopulationFit, ...]
    chosen: str
    verdict: str
    noise: float

    @property
    def best(self) -> PopulationFit:
        return next(law for law in self.laws if law.name == self.chosen)

    def to_json(self) -> dict[str, object]:
        """Return the entry of ``result.json``."""
        laws = {
            law.name: {
                "parameters": {name: estimate.to_json() for name, estimate in law.estimates.items()},
                "bleaching_rate": law.bleaching.to_json(),
                "rms": law.rms,
                "held_out_rms": law.held_out,
                "worse_by_standard_errors": law.worse,
                "out": law.out,
                "degenerate": law.degenerate,
            }
            for law in self.laws
        }
        return {"laws": laws, "chosen": self.chosen, "verdict": self.verdict, "noise_rms": self.noise}

    def summary(self, unit: str) -> list[str]:
        """Say it in lines for the terminal."""
        lines = []
        for law in self.laws:
            numbers = ", ".join(f"{n} = {e} {units_of(n, unit)}".rstrip() for n, e in law.estimates.items())
            state = "out" if law.out else law.degenerate or "allowed"
            lines.append(f"  {law.name:<16} {numbers}; held out {law.held_out:.3g} ({state})")
        return [*lines, f"  {self.verdict}"]


def units_of(parameter: str, unit: str) -> str:
    """Return the unit of a parameter; shares have none."""
    if parameter in SHARES:
        return ""
    return f"{unit}²/s" if parameter.startswith("D") else "1/s"


def compare_populations(modes: Modes, diffusion: float, bleaching: float, pattern: float) -> Populations:
    """Fit all laws to a recovery and compare them in held-out blocks of frames.

    Parameters
    ----------
    modes : the recording in modes. diffusion, bleaching : D and k of one population, to start from.
    pattern : variance of what stands still, in units of a frame's noise (``frap.fit.standing_pattern``).
    """
    if len(modes.times) < LEAST_FRAMES:
        raise StageError(
            f"{len(modes.times)} frames are too few to tell populations apart; {LEAST_FRAMES} at least are needed"
        )
    blocks = _blocks(len(modes.times))
    fits, errors = [], []
    for law in LAWS:
        bench = _Bench(modes, law, pattern)
        found, point = bench.fit_all(diffusion, bleaching)
        by_block = np.array([bench.predict(point, block) for block in blocks])
        fits.append(replace(found, held_out=float(np.sqrt(by_block.mean()))))
        errors.append(by_block)
    return _judge(fits, np.array(errors), float(np.ptp(modes.times)), _noise(modes))


def _noise(modes: Modes) -> float:
    """Return the noise of a mode in a frame: what the second difference in time leaves, by its median."""
    weights, values = noise_weights(modes.times), modes.values
    left = weights[:, :1] * values[:-2] + weights[:, 1:2] * values[1:-1] + weights[:, 2:] * values[2:]
    return float(np.sqrt(np.median(left**2) / NORMAL_MEDIAN))


def _blocks(frames: int) -> list[NDArray[np.int64]]:
    """Return the blocks of frames that are left out in turn."""
    first = max(2, round(KEPT_FIRST * frames))
    return np.array_split(np.arange(first, frames), min(HELD_OUT, (frames - first) // 2))


class _Bench:
    """A law on a recording: its fit, its errors, and what it says about frames that it was not fitted to."""

    def __init__(self, modes: Modes, law: PopulationLaw, pattern: float) -> None:
        self.modes, self.law, self.pattern = modes, law, pattern
        self.names = (*law.parameters, "k")
        self.length = max(float(np.ptp(modes.times)), 1e-300)

    def fit_all(self, diffusion: float, bleaching: float) -> tuple[PopulationFit, Array]:
        """Fit all frames from every start; return the best fit, and its point in units of the scales."""
        everything = np.arange(len(self.modes.times))
        starts = [
            np.array([start[name] for name in self.law.parameters] + [bleaching])
            for start in self.law.starts(max(diffusion, self._slowest), self.length)
        ]
        found = [self._minimise(start, everything) for start in starts]
        point = min(found, key=lambda pair: pair[1])[0]
        point = self._ordered(point)
        left = self._left(point, everything)
        scale = self._scale(point)
        errors, blocks = jackknife(lambda z: self._left(scale * z, everything), point / scale)
        wider = float(student.ppf(0.975, max(blocks - 1, 1))) * errors * scale
        estimates = {
            name: self._estimate(name, float(value), float(half))
            for name, value, half in zip(self.names, point, wider, strict=True)
        }
        freedom = max(left.size - left.shape[1], 1)
        bleached = estimates.pop("k")
        return PopulationFit(
            self.law.name,
            self.law.words,
            estimates,
            bleached,
            float(np.sqrt(np.sum(left**2) / freedom)),
            float("nan"),
            degenerate=self._degenerate(dict(zip(self.names, map(float, point), strict=True))),
        ), point

    def predict(self, point: Array, block: NDArray[np.int64]) -> float:
        """Fit without a block of frames, and return the mean squared error there."""
        rest = np.setdiff1d(np.arange(len(self.modes.times)), block)
        moved, _ = self._minimise(point, rest)
        values = dict(zip(self.names, moved, strict=True))
        answer, seen, along = self._evolve(values)
        _, state = settle(answer[rest], seen[rest], along[rest], self.pattern)
        return float(np.mean((seen[block] - answer[block] * state) ** 2))

    def _minimise(self, start: Array, rows: NDArray[np.int64]) -> tuple[Array, float]:
        scale = self._scale(start)
        low, high = np.array([self.law.bounds(name) for name in self.names]).T
        first = np.clip(start, low + 1e-6 * scale, high - 1e-6 * scale)
        found = least_squares(
            lambda z: self._left(scale * z, rows).ravel(),
            first / scale,
            bounds=(low / scale, high / scale),
            max_nfev=MOST_STEPS,
        )
        return scale * found.x, float(found.cost)

    def _left(self, point: Array, rows: NDArray[np.int64]) -> Array:
        answer, seen, along = self._evolve(dict(zip(self.names, point, strict=True)))
        return settle(answer[rows], seen[rows], along[rows], self.pattern)[0]

    def _evolve(self, values: Values) -> tuple[Array, Array, Array]:
        """Return what a unit of each mode becomes, what is seen less what edges bring in, (t, q), and the light."""
        modes = self.modes
        along = np.exp(-np.clip(values["k"] * modes.lit, -50, 50))
        time = modes.times - modes.times[0]
        answer, brought = np.zeros_like(modes.values), np.zeros_like(modes.values)
        for part in self.law.components(modes.rates, values):
            answer += part.weight * np.exp(-np.minimum(np.outer(time, part.rate), 700.0))
            if modes.forcing is not None and part.speed:
                drive = part.at_rim(modes.forcing / along[:, None], modes.times)
                brought += part.inlet * carried_in(modes.times, part.rate, drive, part.speed)
        return along[:, None] * answer, modes.values - along[:, None] * brought, along

    @property
    def _slowest(self) -> float:
        return 0.1 / (float(self.modes.rates[self.modes.rates > 0].min()) * self.length)

    def _scale(self, point: Array) -> Array:
        """Return the size of each parameter: its own, or what would just show in the recording's time."""
        least = {"k": 0.05 / self.length, "k_on": 0.1 / self.length, "k_off": 0.1 / self.length, "M": 1.0, "p": 1.0}
        return np.array(
            [
                1.0 if name in SHARES else max(abs(value), least.get(name, self._slowest))
                for name, value in zip(self.names, point, strict=True)
            ]
        )

    def _ordered(self, point: Array) -> Array:
        """Call the faster one of two populations the first."""
        values = dict(zip(self.names, point, strict=True))
        if self.law.name == "two-diffusions" and values["D2"] > values["D1"]:
            values |= {"D1": values["D2"], "D2": values["D1"], "p": 1 - values["p"]}
        return np.array([values[name] for name in self.names])

    def _estimate(self, name: str, value: float, half: float) -> Estimate:
        """Return a parameter with its interval, which what blocks of cells and edges get wrong widens."""
        low, high = self.law.bounds(name)
        wide = half if name in SHARES else float(np.hypot(half, NORMAL * SYSTEMATIC * value))
        return Estimate(value, max(value - wide, low), min(value + wide, high))

    def _degenerate(self, v: Values) -> str:
        """Say where a law is no more than a simpler one."""
        match self.law.name:
            case "mobile-immobile" if v["M"] > 1 - EMPTY:
                return "nothing is immobile"
            case "two-diffusions" if not EMPTY < v["p"] < 1 - EMPTY:
                return "one population is empty"
            case "two-diffusions" if v["D2"] > 0.9 * v["D1"]:
                return "both D's are the same"
            case "exchange" if v["k_off"] * self.length < EMPTY:
                return "nothing is released within the recording"
            case "exchange" if v["k_on"] < EMPTY * v["k_off"]:
                return "nothing is bound"
        return ""


def _judge(fits: Sequence[PopulationFit], errors: Array, length: float, noise: float) -> Populations:
    """Rule out laws that leave more in held-out blocks than the best one, and say what is left."""
    best = int(np.argmin(errors.mean(axis=1)))
    count = errors.shape[1]
    judged = []
    for fit, own in zip(fits, errors, strict=True):
        difference = own - errors[best]
        spread = float(difference.std(ddof=1)) / np.sqrt(count)
        worse = float(difference.mean() / spread) if spread > 0 else 0.0
        material = float(difference.mean()) > MATERIAL * float(errors[best].mean())
        judged.append(replace(fit, worse=worse, out=material and worse > float(student.ppf(SURE, count - 1))))
    allowed = [law for law in judged if not law.out]
    simplicity = {law.name: law.simple for law in LAWS}
    chosen = min(allowed, key=lambda law: (simplicity[law.name], law.held_out))
    verdict = _verdict(chosen, allowed, length)
    least = min(law.held_out for law in judged)
    if least > MUCH * noise:
        verdict += f". None of them is the whole truth: the best leaves {least / noise:.2g} times what noise leaves"
    return Populations(tuple(judged), chosen.name, verdict, noise)


def _verdict(chosen: PopulationFit, allowed: Sequence[PopulationFit], length: float) -> str:
    """Say which laws this recording tells apart, and what would tell the others."""
    others = [law for law in allowed if law is not chosen]
    if chosen.name == "single":
        return "one population explains the recovery; no second one shows in the held-out frames"
    if not others:
        return f"{chosen.words}: no other law predicts the held-out frames as well"
    named = " or ".join(f"{law.name}{f' ({law.degenerate})' if law.degenerate else ''}" for law in others)
    cure = f"film for longer than {length:.3g} s"
    if {"two-diffusions", "exchange"} & {law.name for law in (chosen, *others)}:
        cure += ", or bleach spots of several sizes: two D's scale with the spot, rates of exchange do not"
    return f"{chosen.words}, the simplest law allowed; this recording does not tell it from {named}: {cure}"
