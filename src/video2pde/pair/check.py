"""Test of fit of two laws: what they leave of the weak system against what noise must leave, and who is suspected.

Weak residuals are averages over test functions, nearly free of noise (see ``fit``). A law passes where its own fit in
weak form leaves no more than noise does, within chance. Each term that the law does not have stands as a suspect: how
much of what is left would it remove, and how probable is that by chance. Weak form and rollout weigh scales and times
differently: where they find coefficients that differ by more than both intervals allow, nobody knows which is nearer to
the truth, and the interval holds both (``fit.consistency``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from video2pde.agreement import NORMAL
from video2pde.calibration.budget import LACK_OF_FIT
from video2pde.discovery.regression import solve_columns
from video2pde.discovery.weak import WeakSystem
from video2pde.estimate import Estimate
from video2pde.field import Encoding
from video2pde.pair.calibrate import PairCalibration
from video2pde.pair.discover import allowed, count_independent, make_columns, RANK
from video2pde.pair.fields import Pair
from video2pde.pair.noise import expected_residual, measure_memory
from video2pde.pair.weak import PairColumns
from video2pde.settings import Settings
from video2pde.terms.pairs import DRIFTING, FIELDS, PAIR_TERMS
from video2pde.terms.words import describe

Array = NDArray[np.float64]

ENCODED = 0.01
"""Relative error that an encoder makes in the change of a picture, where one was at work."""
SURE = 0.01
"""Chance below which a suspect is named, all of them together, ..."""
MATTERS = 0.1
"""... if it removes at least this share of what is left."""
MOVES = {"dx": ("u", "x"), "dy": ("u", "y"), "dx_w": ("w", "x"), "dy_w": ("w", "y")}


@dataclass(frozen=True)
class PairSuspect:
    """A term that a law lacks: the share of the residual that it would remove, and the chance of that by noise."""

    field: str
    term: str
    coefficient: float
    removes: float
    chance: float
    words: str


@dataclass(frozen=True)
class PairFit:
    """The test of one law: shares of ‖b‖² that it leaves and that noise must leave, the limit, and the suspects.

    ``apart``: by term, how far an interval must reach because weak form and rollout disagree.
    """

    field: str
    unexplained: float
    expected: float
    limit: float
    suspects: tuple[PairSuspect, ...]
    apart: Mapping[str, float] = dataclass_field(default_factory=dict)

    @property
    def passes(self) -> bool:
        return self.unexplained <= self.limit


def check_laws(
    train: Pair, total_frames: int, calibrations: Mapping[str, PairCalibration], settings: Settings
) -> dict[str, tuple[PairFit, ...]]:
    """Test every calibrated system on the training window, at test functions that discovery did not use."""
    if not calibrations:
        return {}
    columns = make_columns(train, total_frames, settings, suspects=True)
    systems = columns.draw(settings.weak.test_functions, np.random.default_rng([settings.run.seed, 2]))
    noise = [measure_memory(part) for part in train.fields]
    encoded = [_is_encoded(part.encoding) for part in train.fields]
    return {
        name: tuple(_check(columns, systems[n], n, found, noise[n], encoded[n]) for n in range(len(FIELDS)))
        for name, found in calibrations.items()
    }


def widen(calibration: PairCalibration, tests: Sequence[PairFit]) -> PairCalibration:
    """Widen intervals, in quadrature, where weak form and rollout disagree; values stay as they are."""
    reach = {(test.field, name): more for test in tests for name, more in test.apart.items()}
    if not reach:
        return calibration
    wider = {field: dict(estimates) for field, estimates in calibration.estimates.items()}
    for (field, name), more in reach.items():
        found = wider[field][name]
        below, above = (float(np.hypot(end - found.value, more)) for end in (found.low, found.high))
        wider[field][name] = Estimate(found.value, found.value - below, found.value + above)
    lack = np.array([reach.get(key, 0.0) for key in calibration.law.keys])
    lines = tuple(
        replace(line, uncertainty=np.hypot(line.uncertainty, lack)) if line.name == LACK_OF_FIT else line
        for line in calibration.budget
    )
    return replace(calibration, estimates=wider, budget=lines)


def _is_encoded(encoding: Encoding | None) -> bool:
    return encoding is not None and encoding.b_frames is not None


def _check(
    columns: PairColumns, system: WeakSystem, index: int, found: PairCalibration, noise: float, encoded: bool
) -> PairFit:
    field, independent = FIELDS[index], count_independent(columns)
    names = tuple(found.estimates[field])
    signal, theta = max(float(system.b @ system.b), 1e-300), system.columns(names)
    values = solve_columns(theta, system.b, RANK)
    residual = system.b - theta @ values
    own = dict(zip(names, values.tolist(), strict=True))
    expected = expected_residual(columns, system.centres, index, own, noise) * len(system.b) / signal
    limit = allowed(float(expected), independent) + (ENCODED**2 if encoded else 0.0)
    left = float(residual @ residual)
    # overlapping test functions count as the independent ones among them
    variance = np.diag(np.linalg.pinv(theta.T @ theta)) * left / max(independent - len(names), 1.0)
    errors = dict(zip(names, (NORMAL * np.sqrt(variance)).tolist(), strict=True))
    suspects = _suspects(field, system, own, residual, independent)
    return PairFit(field, left / signal, float(expected), limit, suspects, _apart(found.estimates[field], own, errors))


def _apart(
    estimates: Mapping[str, Estimate], weak: Mapping[str, float], errors: Mapping[str, float]
) -> dict[str, float]:
    """Return how far intervals must reach where the weak form finds something else: to the end of its own."""
    reach = {}
    for name, estimate in estimates.items():
        gap = abs(weak[name] - estimate.value)
        if estimate.has_interval and gap > np.hypot((estimate.high - estimate.low) / 2, errors[name]):
            reach[name] = gap + errors[name]
    return reach


def _suspects(
    field: str, system: WeakSystem, own: Mapping[str, float], residual: Array, independent: float
) -> tuple[PairSuspect, ...]:
    """Ask each term that the law lacks how much of the residual it would remove, the law's own being refitted."""
    theta = system.columns(tuple(own))
    left = residual - theta @ solve_columns(theta, residual, RANK)
    moving = [name for name, (whose, _) in MOVES.items() if whose == field]
    names = [name for name in (*PAIR_TERMS, *moving) if name not in own]
    found = []
    for name in names:
        column = system.columns((name,))[:, 0]
        rest = column - theta @ solve_columns(theta, column, RANK)
        size = float(rest @ rest)
        if size <= RANK * float(column @ column):
            continue
        value = float(rest @ left) / size
        removes = value**2 * size / max(float(left @ left), 1e-300)
        chance = min(1.0, len(names) * float(beta.sf(min(removes, 1.0), 0.5, max(independent - len(own) - 1, 1.0) / 2)))
        if chance < SURE and removes > MATTERS:
            found.append(PairSuspect(field, name, value, removes, chance, _words(field, name, value, removes)))
    return tuple(sorted(found, key=lambda suspect: -suspect.removes))


def _words(field: str, name: str, value: float, removes: float) -> str:
    if name in DRIFTING:
        moves = f"the medium may move along {MOVES[name][1]} with {-value:.3g} a second"
        return f"{moves}: that would explain {removes:.0%} of what is left"
    return f"{value:.3g} {describe(PAIR_TERMS[name]).text} in {field}_t would explain {removes:.0%} of what is left"
