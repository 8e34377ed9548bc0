"""How much each term itself moves the centroid, so that it is not mistaken for drift.

Integrating the law over the plume gives, for w = u − background and M = ∫ w dA,

    d x_c/dt = v_x + Σ_j c_j m_j,     m_j = (1/M) ∫ (x − x_c) [T_j(u) − T_j(background)] dA,

and the same in y. A nonlinear law moves the centroid of an asymmetric plume (by tens of per cent of a weak
drift), so the drift is the centroid's velocity less Σ c_j m_j. It is linear in the coefficients: the weak
system takes it into its columns, and a fitted law gives the drift of any window without a fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.discovery.filtered import over_chunks
from video2pde.discovery.jets import FilmJets
from video2pde.discovery.weak import evaluate_density
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.flow import Flow
from video2pde.maps import CoefficientMap
from video2pde.settings import WeakSettings
from video2pde.terms.parse import U_X, U_Y
from video2pde.terms.term import compile_density, Term

Array = NDArray[np.float64]


def term_moments(field: Field, drift: Drift, terms: Sequence[Term], settings: WeakSettings | None = None) -> Array:
    """Return m_j(t) of each term: (terms, t, 2), length units per second for a unit coefficient.

    Derivatives are moved onto (x − x_c): only undifferentiated and once differentiated densities count.
    """
    settings = settings or WeakSettings()
    film = FilmJets(field, settings)
    wanted = [[part for part in term.parts if sum(part.derivative) <= 1 and not term.is_drift] for term in terms]
    densities = sorted({part.density for parts in wanted for part in parts if part.density.free_symbols}, key=str)
    sums = {density: np.zeros((len(field), 3)) for density in densities}
    rows, columns = np.nonzero(drift.region)
    area = field.grid.dx * field.grid.dy

    def integrate(window: slice) -> None:
        jets, spread = film(window)
        x = field.grid.x[columns][None] - drift.smooth_centroid[window, :1]
        y = field.grid.y[rows][None] - drift.smooth_centroid[window, 1:]
        for density in densities:
            values = evaluate_density(density, jets, spread)[:, rows, columns].astype(float)
            values -= at_background(density, drift.background[window])[:, None]
            sums[density][window] = np.stack([values.sum(1), (x * values).sum(1), (y * values).sum(1)], 1) * area

    over_chunks(integrate, len(field))
    moments = np.zeros((len(terms), len(field), 2))
    for index, parts in enumerate(wanted):
        for part in parts:
            if part.density not in sums:
                continue
            total = sums[part.density]
            if part.derivative == (0, 0):
                moments[index] += total[:, 1:]
            else:
                moments[index, :, 0 if part.derivative == (1, 0) else 1] -= total[:, 0]
    usable = drift.mass > 0
    moments[:, usable] /= drift.mass[usable, None]
    moments[:, ~usable] = 0
    return moments


def at_background(density: sympy.Expr, background: Array) -> Array:
    """Return a density of the background, (t,): u as it is there, and no gradient."""
    level = compile_density(density.subs({U_X: 0, U_Y: 0}))(background, 0.0, 0.0, 0.0, 0.0)
    return np.asarray(level + 0 * background)


def flow_mean(field: Field, drift: Drift, flow: Flow) -> Array:
    """Average a flow over the plume, frame by frame: (t, 2), what it adds to the centroid's velocity."""
    if not drift.mass.any():
        return np.zeros((len(field), 2))
    weights = field.values[:, drift.region] - drift.background[:, None]
    return flow.plume_mean(weights, drift.region, field.times, field.grid)


def law_velocity(
    drift: Drift,
    moments: Mapping[str, Array],
    coefficients: Mapping[str, float],
    flow: Flow | None = None,
    field: Field | None = None,
    maps: Sequence[CoefficientMap] = (),
) -> Array:
    """Return the uniform drift (t, 2) under a law: the centroid's velocity less what law, maps and flow do to it.

    A flow needs the ``field``, whose plume it is averaged over. A given velocity is the whole of the motion.
    """
    if flow is not None and flow.kind == "given":
        return np.zeros_like(drift.velocity)
    velocity = drift.velocity.copy()
    if not drift.moving:
        return velocity
    if flow is not None and field is not None:
        velocity -= flow_mean(field, drift, flow)
    for name, coefficient in coefficients.items():
        if name in moments:
            velocity -= coefficient * moments[name]
    for each in maps:
        if map_key(each.term) in moments:
            pushed = np.tensordot(each.departures, moments[map_key(each.term)], axes=1)
            velocity -= coefficients[each.term] * pushed
    return velocity


def map_key(name: str) -> str:
    """Name the moments (k, t, 2) of a map beside those of terms, whose names hold no brackets."""
    return f"map({name})"
