"""Test of fit of two laws: what they leave of the weak system against what noise must leave, and who is suspected.

Weak residuals are averages over test functions, nearly free of noise (see ``fit``). A law passes where it leaves no
more than noise does, within chance. Each term that the law does not have stands as a suspect: how much of what is left
would it remove, and how probable is that by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from video2pde.discovery.regression import solve_columns
from video2pde.discovery.weak import WeakSystem
from video2pde.field import Encoding
from video2pde.pair.calibrate import PairCalibration
from video2pde.pair.discover import allowed, count_independent, make_columns, RANK
from video2pde.pair.fields import Pair
from video2pde.pair.law import PairLaw
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
    """The test of one law: shares of ‖b‖² that it leaves and that noise must leave, the limit, and the suspects."""

    field: str
    unexplained: float
    expected: float
    limit: float
    suspects: tuple[PairSuspect, ...]

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
        name: tuple(
            _check(columns, systems[n], n, found.law_within(), noise[n], encoded[n]) for n in range(len(FIELDS))
        )
        for name, found in calibrations.items()
    }


def _is_encoded(encoding: Encoding | None) -> bool:
    return encoding is not None and encoding.b_frames is not None


def _check(columns: PairColumns, system: WeakSystem, index: int, law: PairLaw, noise: float, encoded: bool) -> PairFit:
    field, independent = FIELDS[index], count_independent(columns)
    own = law.law(field)
    signal = max(float(system.b @ system.b), 1e-300)
    theta = system.columns(tuple(own))
    residual = system.b - theta @ np.array(list(own.values()))
    expected = expected_residual(columns, system.centres, index, own, noise) * len(system.b) / signal
    limit = allowed(float(expected), independent) + (ENCODED**2 if encoded else 0.0)
    left = float(residual @ residual) / signal
    suspects = _suspects(field, system, own, residual, independent)
    return PairFit(field, left, float(expected), limit, suspects)


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
