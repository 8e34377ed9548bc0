"""Public benchmark fields of weak-form discovery, scored with E∞ and TPR over noise levels.

Three fields of that literature that are (or have) a 2-D scalar form, sampled from closed forms, and one of two fields:

* anisotropic porous medium, u_t = 0.3 (u²)_xx − 0.8 (u²)_xy + (u²)_yy: the Barenblatt solution, with its kink at the
  edge of the support, on the grid of Messenger and Bortz (2021);
* inviscid Burgers, u_t = −½cos θ (u²)_x − ½sin θ (u²)_y: triangular waves behind a shock, whose height varies across θ;
* transport and diffusion, u_t = −u_x + 0.5 u_y + 0.05 Δu: three Gaussians that move and spread.

* λ–ω waves of two fields, that of the PDE-FIND examples, solved anew (``support/lambda_omega.py``): the stage for two
  fields, with its twelve candidates for each law.

Noise is white, with standard deviation σ_NR × RMS(u). The weak stage runs with its default settings on one library for
all: every D^α of u, u², u³ up to second order, 18 terms. The law is what the stage hands on: the terms that its
diagnosis calls robust, fitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.support import lambda_omega
from benchmarks.support.scores import largest_error, positivity_ratio
from video2pde.discovery import diagnose, weak_system
from video2pde.discovery.regression import fit_library
from video2pde.drift import no_drift
from video2pde.field import Field, Grid
from video2pde.pair.discover import discover
from video2pde.pair.fields import Pair
from video2pde.recording.synth import noisy
from video2pde.settings import load_settings, Settings

Array = NDArray[np.float64]
Row = dict[str, Any]
NOISE = (0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5)
PAIR_NOISE = (0.0, 0.005, 0.01, 0.02, 0.05)
SEEDS = 3
ORDERS = ("", "x", "y", "xx", "xy", "yy")
POWERS = (1, 2, 3)
SIZE, FRAMES = 200, 128
LIBRARY = "wide"
SMOOTHING_OFF = {"weak.gradient_sigma": 0.0, "weak.noise_correction": False}


def term_name(power: int, order: str) -> str:
    """Name D^order(u^power): u2_xy is (u²)_xy."""
    return f"u{power}_{order}" if order else f"u{power}"


def make_settings(overrides: Mapping[str, Any]) -> Settings:
    """Return default settings with the candidates D^α(u^p) as a library, and what is changed."""
    terms = {
        term_name(power, order): [{"derivative": order, "density": f"u**{power}"}]
        for power, order in product(POWERS, ORDERS)
    }
    return load_settings(
        overrides={"terms": terms, "libraries": {LIBRARY: list(terms)}, "drift.law_correction": False, **overrides}
    )


@dataclass(frozen=True)
class Benchmark:
    """A public field: its law by term name, its closed form u(x, y, t), where it is sampled, and what was published."""

    name: str
    law: dict[str, float]
    solution: Callable[[Array, Array, float], Array]
    half_width: float
    times: tuple[float, float]
    published: Mapping[float, str] = field(default_factory=dict)

    def sample(self) -> Field:
        """Sample the closed form at the grid's nodes."""
        side = 2 * self.half_width
        grid = Grid(SIZE, SIZE, side, side, pitch="nodes")
        x, y = np.meshgrid(grid.x - self.half_width, grid.y - self.half_width)
        times = np.linspace(*self.times, FRAMES)
        return Field(np.stack([self.solution(x, y, t) for t in times]).astype(np.float32), times, grid)


def porous_medium(x: Array, y: Array, t: float) -> Array:
    """Evaluate Barenblatt's solution of u_t = ∇·D∇u², D = (0.3, −0.4; −0.4, 1), of unit mass.

    u = t^(−1/2) max(C − q/(16 t^(1/2)), 0), q = pᵀD⁻¹p, C = (8π √det D)^(−1/2).
    """
    xx, xy, yy = 0.3, -0.4, 1.0
    determinant = xx * yy - xy**2
    q = (yy * x**2 - 2 * xy * x * y + xx * y**2) / determinant
    height = (8 * np.pi * np.sqrt(determinant)) ** -0.5
    return np.asarray(np.maximum(height - q / (16 * np.sqrt(t)), 0) / np.sqrt(t))


ANGLE = np.deg2rad(35.0)


def burgers(x: Array, y: Array, t: float) -> Array:
    """Evaluate triangular waves of u_t + (u²/2)_s = 0 along s = x cos θ + y sin θ, each line with its own mass M.

    u = (s − s₀)/t for s₀ < s < s₀ + √(2Mt), and 0 elsewhere: a shock at the front, a kink at the back.
    """
    along, across = x * np.cos(ANGLE) + y * np.sin(ANGLE), -x * np.sin(ANGLE) + y * np.cos(ANGLE)
    mass = 1.2 * np.exp(-(across**2) / 2) + 0.5 * np.exp(-((across - 1.5) ** 2) / 0.5)
    back = -2.0 + 0.3 * np.sin(across)
    inside = (along > back) & (along < back + np.sqrt(2 * mass * t))
    return np.where(inside, (along - back) / t, 0.0)


VELOCITY, DIFFUSION = (1.0, -0.5), 0.05


def transport_diffusion(x: Array, y: Array, t: float) -> Array:
    """Evaluate moving Gaussians of variance σ² + 2Dt."""
    total = np.zeros_like(x)
    for height, x0, y0, width in ((1.0, -1.5, 0.8, 0.5), (0.7, -0.6, -0.3, 0.35), (0.5, -1.8, -0.6, 0.3)):
        variance = width**2 + 2 * DIFFUSION * t
        square = (x - x0 - VELOCITY[0] * t) ** 2 + (y - y0 - VELOCITY[1] * t) ** 2
        total += height * width**2 / variance * np.exp(-square / (2 * variance))
    return total


BENCHMARKS = (
    Benchmark(
        "anisotropic porous medium",
        {"u2_xx": 0.3, "u2_xy": -0.8, "u2_yy": 1.0},
        porous_medium,
        5.0,
        (0.5, 2.5),
        {0.05: "WeakIdent: E∞ 0.0035, the right 3 of 61 terms"},
    ),
    Benchmark(
        "inviscid Burgers",
        {"u2_x": -0.5 * float(np.cos(ANGLE)), "u2_y": -0.5 * float(np.sin(ANGLE))},
        burgers,
        4.0,
        (0.5, 4.0),
    ),
    Benchmark(
        "transport–diffusion",
        {"u1_x": -VELOCITY[0], "u1_y": -VELOCITY[1], "u1_xx": DIFFUSION, "u1_yy": DIFFUSION},
        transport_diffusion,
        4.0,
        (0.0, 2.0),
        {0.5: "WeakIdent, in 1-D: E∞ 0.013, the right 2 of 43 terms"},
    ),
)

TITLE = "Public fields of weak-form discovery"
NOTES = f"""\
E∞ is the largest relative error of a true coefficient (a dropped term is off by 1), TPR = TP/(TP + FN + FP). Each line
is the mean over {SEEDS} noise seeds, with the largest E∞ beside it. "Sparse fit alone" is the TPR before the diagnosis
removes terms that random sets of test functions do not confirm.

Published figures: the sample outputs in the repository of WeakIdent (Tang, Liao, Kuske and Kang, "WeakIdent: Weak
formulation for identifying differential equation using narrow-fit and trimming", github.com/sunghakang/WeakIdent),
one noise seed each; its transport field is one-dimensional, and its libraries are larger than ours of 18 terms. The
measures and the porous-medium field are those of Messenger and Bortz ("Weak SINDy for partial differential
equations", J. Comput. Phys. 443, 110525, 2021), whose figures we could not check and do not quote. "Not found" means
just that.

The λ–ω waves go round at A = 1 nearly everywhere, where u³ and uw² differ by a third harmonic that test functions
average away: the true terms show only in what is left below a hundred-thousandth of the signal, and from noise of
2 % on laws of fewer terms say the same.

Where ours falls short: at noise of half the signal it starts to lose or add terms; and at a shock, from noise of a
fifth of the signal. The weak stage measures noise from second differences in time, and a passing shock is no noise:
where the largest hundredth of them holds far more than noise would, what is beyond five standard deviations counts as
the front's, and u is not smoothed before u² is formed (`discovery/jets.py`). Under more noise that is not seen. The
lines "no smoothing" have `weak.gradient_sigma = 0` and `weak.noise_correction = false`.
"""


def identify(recording: Field, settings: Settings) -> tuple[dict[str, float], dict[str, float]]:
    """Return the coefficients of the robust terms, and those of the sparse fit alone."""
    weak = weak_system(recording, no_drift(recording), settings, len(recording))
    diagnosis = diagnose(weak, settings).libraries[LIBRARY]
    robust = fit_library(LIBRARY, diagnosis.robust, weak.system, settings.regression)
    return dict(robust.coefficients), dict(diagnosis.fit.coefficients)


def score(benchmark: Benchmark, clean: Field, level: float, settings: Settings) -> Row:
    """Score one field at one noise level over the seeds."""
    size = float(np.sqrt(np.mean(np.square(clean.values, dtype=np.float64))))
    fits = [
        identify(noisy(clean, level * size, seed) if level else clean, settings)
        for seed in range(SEEDS if level else 1)
    ]
    errors = [largest_error(found, benchmark.law) for found, _ in fits]
    return {
        "E∞": float(np.mean(errors)),
        "largest E∞": max(errors),
        "TPR": float(np.mean([positivity_ratio(found, benchmark.law) for found, _ in fits])),
        "TPR, sparse fit alone": float(np.mean([positivity_ratio(sparse, benchmark.law) for _, sparse in fits])),
        "published": benchmark.published.get(level, "not found"),
    }


def score_pair(clean: Pair, level: float) -> Row:
    """Score both laws of the λ–ω waves at one noise level over the seeds."""
    size = float(np.sqrt(np.mean(np.square(clean.u.values, dtype=np.float64))))
    errors, ratios = [], []
    for seed in range(SEEDS if level else 1):
        parts = [noisy(part, level * size, 2 * seed + n) if level else part for n, part in enumerate(clean.fields)]
        found = discover(Pair(*parts), len(clean), load_settings())
        laws = [search.candidates[0].coefficients for search in found.searches]
        errors.append(max(largest_error(law, truth) for law, truth in zip(laws, lambda_omega.LAW, strict=True)))
        ratios += [positivity_ratio(law, truth) for law, truth in zip(laws, lambda_omega.LAW, strict=True)]
    ratio = float(np.mean(ratios))
    return {
        "E∞": float(np.mean(errors)),
        "largest E∞": max(errors),
        "TPR": ratio,
        "TPR, sparse fit alone": ratio,
        "published": "not found",
    }


def run() -> list[Row]:
    """Score every field at every noise level; Burgers also without smoothing."""
    cases: list[tuple[Benchmark, str, Mapping[str, Any]]] = [(benchmark, "default", {}) for benchmark in BENCHMARKS]
    cases.insert(2, (BENCHMARKS[1], "no smoothing", SMOOTHING_OFF))
    rows = []
    for benchmark, name, overrides in cases:
        clean, settings = benchmark.sample(), make_settings(overrides)
        for level in NOISE:
            row = {"field": benchmark.name, "settings": name, "noise σ_NR": level}
            rows.append({**row, **score(benchmark, clean, level, settings)})
    waves = lambda_omega.solve()
    for level in PAIR_NOISE:
        row = {"field": "λ–ω waves, two fields", "settings": "default", "noise σ_NR": level}
        rows.append({**row, **score_pair(waves, level)})
    return rows


if __name__ == "__main__":
    for line in run():
        print(
            ", ".join(
                f"{key}: {value:.4g}" if isinstance(value, float) else f"{key}: {value}" for key, value in line.items()
            )
        )
