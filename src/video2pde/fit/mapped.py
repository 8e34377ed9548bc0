"""A law whose coefficients vary, in the views of the test of fit.

The column of a term that has a map is that of the mapped term, c̄ being its coefficient. What a calibration decides of
the map stands beside it, as columns that belong to the model; what it does not decide counts like a known fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration
from video2pde.discovery.mapped import map_columns
from video2pde.discovery.moments import map_key
from video2pde.fit.view import View

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sight:
    """A view as one law sees it: ``free`` (M, n) are columns of its maps, ``allowed`` (M, M) what they leave open."""

    view: View
    free: Array | None = None
    allowed: Array | None = None


def see_maps(view: View, calibration: Calibration, moments: Mapping[str, Array]) -> Sight:
    """Put mapped terms in place of plain ones; the view itself where no coefficient varies."""
    if not calibration.maps:
        return Sight(view)
    theta, names, free = view.system.theta.copy(), view.system.names, list[Array]()
    allowed = np.zeros((len(theta), len(theta)))
    for each in calibration.maps:
        columns = map_columns(view.moments, each.shape, view.terms[each.term], moments.get(map_key(each.term)))
        theta[:, names.index(each.term)] += columns @ each.departures
        free.append(columns @ each.directions.T)
        scaled = calibration.estimates[each.term].value * columns
        allowed += scaled @ each.undecided @ scaled.T
    seen = replace(view, system=replace(view.system, theta=theta), kept={})
    return Sight(seen, np.concatenate(free, axis=1), allowed)
