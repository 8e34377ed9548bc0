"""Lack of fit in the error budget: intervals that reach as far as the law disagrees with itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from video2pde.agreement import NORMAL
from video2pde.calibration import Calibration
from video2pde.calibration.budget import LACK_OF_FIT, run_forward
from video2pde.estimate import Estimate
from video2pde.fit.result import FitTest


def widen(calibration: Calibration, test: FitTest) -> Calibration:
    """Widen the intervals of a calibrated law by its lack of fit, in quadrature; values stay as they are.

    A map's mean has the error of its interval, so that its band is widened, too.
    """
    found = {name: value for name, value in test.lack.items() if value > 0 and name not in calibration.held}
    lack = np.array([found.get(term.name, 0.0) for term in calibration.terms])
    if not lack.any():
        return calibration
    line = calibration.correction(LACK_OF_FIT)
    wider = replace(line, uncertainty=np.hypot(line.uncertainty, lack))
    lines = {**{other.name: other for other in calibration.budget}, LACK_OF_FIT: wider}
    estimates = {}
    for name, estimate in calibration.estimates.items():
        more = found.get(name, 0.0)
        if more > 0 and estimate.has_interval:
            below, above = (float(np.hypot(end - estimate.value, more)) for end in (estimate.low, estimate.high))
            estimate = Estimate(estimate.value, estimate.value - below, estimate.value + above)
        estimates[name] = estimate
    maps = calibration.maps
    wider_maps = tuple(m.widened(found[m.term] / NORMAL) if m.term in found else m for m in maps)
    estimates = run_forward(calibration.terms, estimates)
    return replace(calibration, estimates=estimates, budget=tuple(lines.values()), maps=wider_maps)


def widen_all(calibrations: Mapping[str, Calibration], tests: Mapping[str, FitTest]) -> dict[str, Calibration]:
    """Widen every law that was tested."""
    return {name: widen(law, tests[name]) if name in tests else law for name, law in calibrations.items()}
