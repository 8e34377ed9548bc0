"""Does the law say the same everywhere? Its coefficients from parts of the window, and from other test functions.

All parts are fitted in weak form, from one lattice, so that they share what is systematic in it; the difference of a
part from the whole is a linear function of the noise, and its standard error follows from the noise's covariance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.agreement import NORMAL
from video2pde.calibration import Calibration
from video2pde.fit.law import LawFit
from video2pde.fit.view import View

Array = NDArray[np.float64]

AGREE = 3.5
"""Standard errors up to which a part agrees with the whole: a chance of 1 % that one of twenty parts does not."""
LEAST_SHARE = 0.05
"""Share of the law's signal that a part must hold to say anything about its coefficients."""
UNCERTAIN = 0.5
"""Relative standard error from which a part says nothing."""


@dataclass(frozen=True)
class Part:
    """One part of the window: its coefficients by term, their standard errors, and the largest disagreement.

    ``group`` names what the part is a part of; ``apart`` the largest difference from the whole in standard errors of
    the difference; ``excess`` by term how far that part lies beyond its error.
    """

    group: str
    name: str
    coefficients: Mapping[str, float]
    errors: Mapping[str, float]
    apart: float
    excess: Mapping[str, float]

    @property
    def agrees(self) -> bool:
        return self.apart <= AGREE


def compare_parts(
    view: View, law: LawFit, others: Sequence[tuple[str, View, LawFit]], in_time: bool = False
) -> tuple[Part, ...]:
    """Fit the law to halves, quadrants, core and edge of the window, and with other widths of the test functions.

    ``in_time``: a coefficient varies over time. Within a half of the window its mean and its course say the same.
    """
    parts = []
    signal = np.abs(view.columns(list(law.names)) @ np.array(list(law.coefficients.values()))) ** 2
    for group, name, rows in _masks(view):
        if in_time and group == "time":
            continue
        if rows.all() or signal[rows].sum() < LEAST_SHARE * signal.sum() or rows.sum() < 2 * law.design.shape[1]:
            continue
        part = _compare(group, name, law, rows)
        if part is not None:
            parts.append(part)
    for name, _, other in others:
        parts.append(_other_width(name, law, other))
    return tuple(parts)


def disagreement(law: LawFit, calibration: Calibration) -> dict[str, float]:
    """Return by term how far an interval must reach where the law's two fits disagree: to the end of the other one's.

    Weak form and rollout weigh scales and times differently. Both find the coefficients of a right law; where what
    they find differs by more than both intervals allow, nobody knows which is nearer to the truth.
    """
    reach = {}
    for name, error in zip(law.names, law.coefficient_errors, strict=True):
        estimate, own = calibration.estimates[name], NORMAL * float(error)
        gap = abs(law.coefficients[name] - estimate.value)
        if estimate.has_interval and gap > np.hypot((estimate.high - estimate.low) / 2, own):
            reach[name] = gap + own
    return reach


def _masks(view: View) -> list[tuple[str, str, NDArray[np.bool_]]]:
    t, y, x = view.centres.T
    ny, nx = view.film.grid.shape
    early, upper, left = t < np.median(np.unique(t)), y < (ny - 1) / 2, x < (nx - 1) / 2
    level = view.series[0][view.place, t]
    rise = np.abs(level - np.median(level))
    core = rise > 0.3 * rise.max()
    return [
        ("time", "first half", early),
        ("time", "second half", ~early),
        ("picture", "upper half", upper),
        ("picture", "lower half", ~upper),
        ("picture", "left half", left),
        ("picture", "right half", ~left),
        ("picture", "upper left", upper & left),
        ("picture", "upper right", upper & ~left),
        ("picture", "lower left", ~upper & left),
        ("picture", "lower right", ~upper & ~left),
        ("plume", "core", core),
        ("plume", "edge", ~core),
    ]


def _compare(group: str, name: str, law: LawFit, rows: NDArray[np.bool_]) -> Part | None:
    whole, own = law.whole, law.answer(rows)
    found = own @ law.target
    error = np.sqrt(np.maximum(np.diag(own @ law.spread @ own.T), 0.0))
    values = np.array([law.coefficients[n] for n in law.names])
    if np.any(error > UNCERTAIN * np.abs(values)):
        return None
    difference = own - whole
    spread = np.sqrt(np.maximum(np.diag(difference @ law.spread @ difference.T), 1e-300))
    gap = np.abs(found - values)
    excess = np.maximum(gap - AGREE * spread, 0.0)
    named = (dict(zip(law.names, numbers.tolist(), strict=True)) for numbers in (found, error, excess))
    coefficients, errors, beyond = named
    return Part(group, name, coefficients, errors, float(np.max(gap / spread)), beyond)


def _other_width(name: str, law: LawFit, other: LawFit) -> Part:
    """Compare with other widths: the noise is not the same, so that both errors count."""
    gap = np.array([abs(other.coefficients[n] - law.coefficients[n]) for n in law.names])
    spread = np.hypot(law.coefficient_errors, other.coefficient_errors)
    excess = np.maximum(gap - AGREE * spread, 0.0)
    return Part(
        group="width",
        name=name,
        coefficients=dict(other.coefficients),
        errors=dict(zip(law.names, other.coefficient_errors.tolist(), strict=True)),
        apart=float(np.max(gap / np.maximum(spread, 1e-300))),
        excess=dict(zip(law.names, excess.tolist(), strict=True)),
    )
