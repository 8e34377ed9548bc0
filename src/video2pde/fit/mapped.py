"""A law whose coefficients vary, in the views of the test of fit.

The column of a term that has a map is that of the mapped term, c̄ being its coefficient; what a calibration could still
change of the map stands beside it, as columns that belong to the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration
from video2pde.discovery.mapped import map_columns
from video2pde.discovery.moments import map_key
from video2pde.fit.view import View

Array = NDArray[np.float64]


def see_maps(view: View, calibration: Calibration, moments: Mapping[str, Array]) -> tuple[View, Array | None]:
    """Return the view with mapped terms in place of plain ones, and the columns of what is free in the maps."""
    theta, names, free = view.system.theta.copy(), view.system.names, list[Array]()
    if not calibration.maps:
        return view, None
    for each in calibration.maps:
        columns = map_columns(view.moments, each.shape, view.terms[each.term], moments.get(map_key(each.term)))
        theta[:, names.index(each.term)] += columns @ each.departures
        free.append(columns @ each.directions.T)
    seen = replace(view, system=replace(view.system, theta=theta), kept={})
    return seen, np.concatenate(free, axis=1)
