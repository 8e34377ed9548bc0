"""Terms whose coefficient is a map, in weak form: their columns, and how they move the centroid."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.filtered import over_chunks
from video2pde.discovery.jets import FilmJets
from video2pde.discovery.moments import at_background, term_moments
from video2pde.discovery.weak import evaluate_density, is_nonlinear
from video2pde.discovery.weighted import Profiles, TimeMoments, velocity_parts, WeightedPart
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.maps import in_divergence_form, MapShape
from video2pde.settings import WeakSettings
from video2pde.terms.parse import U
from video2pde.terms.term import Term

Array = NDArray[np.float64]


def mapped_parts(term: Term, along_y: Profiles, along_x: Profiles) -> tuple[WeightedPart, ...]:
    """Write a term whose coefficient is a map w, as derivatives of products with w that can be moved onto φ.

    w D^α f = Σ_β (−1)^|β| C(α, β) D^(α−β)[f D^β w]; in divergence form ½[D^α(w f) + w D^α f − f D^α w].
    """
    parts: list[WeightedPart] = []
    for part in term.parts:
        a, b = part.derivative
        conserved = in_divergence_form(part)
        for i, j in product(range(a + 1), range(b + 1)):
            factor = float((-1) ** (i + j) * comb(a, i) * comb(b, j))
            if conserved:
                # the first and the last summand cancel or double up with those of the other two
                factor = {0: 1.0, 1: 0.5 * factor, 2: 0.0}[i + j]
            if factor:
                steep = (_differentiated(along_y, j), _differentiated(along_x, i))
                parts.append(WeightedPart(*steep, (a - i, b - j), part.density, factor))
    return tuple(parts)


def _differentiated(profiles: Profiles, times: int) -> Profiles:
    for _ in range(times):
        profiles = profiles.derivative
    return profiles


def map_columns(moments: TimeMoments, shape: MapShape, term: Term, pushed: Array | None = None) -> Array:
    """Return the weak columns of a term times every spline of a map, (M, k).

    ``pushed`` (k, t, 2): how each moves the centroid, which the measured drift holds already.
    """
    field = moments.field
    flat = Profiles.powers(field.grid.y, 0), Profiles.powers(field.grid.x, 0)
    if shape.over == "space":
        columns = moments.columns(mapped_parts(term, *shape.along(field.grid)))
    else:
        parts = tuple(WeightedPart(*flat, part.derivative, part.density) for part in term.parts)
        columns = moments.columns(parts, shape.in_time(field.times))
    total = columns.reshape(len(columns), -1)
    if pushed is not None and pushed.any():
        for axis in range(2):
            total = total - moments.columns(velocity_parts(*flat, axis), pushed[:, :, axis])[:, :, 0, 0]
    return np.asarray(total)


def map_moments(field: Field, drift: Drift, shape: MapShape, term: Term, settings: WeakSettings) -> Array:
    """Return how a unit of each spline moves the centroid, (k, t, 2); see ``discovery.moments``."""
    if shape.over == "time":
        [own] = term_moments(field, drift, [term], settings)
        return np.asarray(shape.in_time(field.times)[:, :, None] * own[None])
    grid, region = field.grid, drift.region
    parts = [p for p in mapped_parts(term, *shape.along(grid)) if sum(p.derivative) <= 1]
    film = FilmJets(field, settings) if any(is_nonlinear(p.density) for p in parts) else None
    total = np.zeros((shape.count, len(field), 2))

    def integrate(window: slice) -> None:
        jets = (None, None) if film is None else film(window)
        background = drift.background[window]
        for part in parts:
            if not part.density.free_symbols:
                continue
            if is_nonlinear(part.density):
                values = evaluate_density(part.density, *jets)
            else:
                values = float(part.density.coeff(U)) * field.values[window]
            above = np.where(region, values - at_background(part.density, background)[:, None, None], 0.0)
            for axis in range(2):
                if sum(part.derivative) == 0:
                    centre = drift.smooth_centroid[window, axis, None, None]
                    away = (grid.x[None, None] if axis == 0 else grid.y[None, :, None]) - centre
                    weighed, sign = away * above, 1.0
                elif part.derivative == ((1, 0), (0, 1))[axis]:
                    weighed, sign = above, -1.0
                else:
                    continue
                sums = part.along_y.values() @ weighed @ part.along_x.values().T
                total[:, window, axis] += sign * part.factor * sums.reshape(len(sums), -1).T

    over_chunks(integrate, len(field))
    mass = np.where(drift.mass > 0, drift.mass, np.inf)
    return np.asarray(total * grid.dx * grid.dy / mass[None, :, None])
