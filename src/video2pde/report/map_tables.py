"""Tables of coefficients that vary: the whole map, or the whole course, for other programs."""

from __future__ import annotations

import numpy as np

from video2pde.agreement import NORMAL
from video2pde.calibration import Calibration
from video2pde.field import Field
from video2pde.maps import CoefficientMap
from video2pde.report.sheets import Entry, fill, Sheet
from video2pde.terms.words import coefficient_units, describe


def list_maps(law: Calibration, field: Field) -> list[Sheet]:
    """List every coefficient that varies on the recording's cells, or at its frames, with its standard error."""
    sheets = []
    for each in law.maps:
        term = next(term for term in law.terms if term.name == each.term)
        unit = coefficient_units(term, field.grid.unit)
        values = (
            Entry("value", "coefficient", unit),
            Entry("error", "standard error", unit),
            Entry("low", "low", unit),
            Entry("high", "high", unit),
            Entry("told", "the recording tells"),
        )
        where: tuple[Entry, ...] = (Entry("t", "t", "s"),)
        if each.over == "space":
            where = (Entry("y", "y", field.grid.unit), Entry("x", "x", field.grid.unit))
        caption = f"Coefficient of {describe(term).text} over {each.over}, with 95 % intervals place by place."
        rows = _rows(each, law.estimates[each.term].value, field)
        sheets.append(fill(f"map-{each.term}", caption, (*where, *values), rows))
    return sheets


def _rows(each: CoefficientMap, mean: float, field: Field) -> list[dict[str, object]]:
    basis = each.basis(field.grid, field.times)
    values, error, told = each.values(mean, basis), each.error(mean, basis), each.told(mean, basis)
    rows = list[dict[str, object]]()
    for index in np.ndindex(values.shape):
        value, half = float(values[index]), NORMAL * float(error[index])
        if each.over == "space":
            place = {"y": float(field.grid.y[index[0]]), "x": float(field.grid.x[index[1]])}
        else:
            place = {"t": float(field.times[index[0]])}
        spread = {"value": value, "error": float(error[index]), "low": value - half, "high": value + half}
        rows.append({**place, **spread, "told": bool(told[index])})
    return rows
