"""The law at the network's points: prediction of the data, rate of change and the terms' values.

    R = û_t + v·∇û − Σ c_j T_j(û),

with û_t + v·∇û being the plain time derivative where the coordinates move along; a flow that varies in space stays.
A field's values are averages over pixel cells; the network stands for the point values, and what is compared with the
data is

    û + (Δx² û_xx + Δy² û_yy) / 24,

the average of û over a cell to fourth order. The second derivatives are at hand, so this costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from video2pde.errors import InputError
from video2pde.refinement.network import nested_jets, Network, predict, propagate, spatial_jets, Streams
from video2pde.terms.term import Term


class Batch(NamedTuple):
    """Hold some points on the device: ``inputs`` (N, 3), ``values`` (N,), ``velocity`` (N, 2)."""

    inputs: jax.Array
    values: jax.Array
    velocity: jax.Array


class Evaluation(NamedTuple):
    """Hold the predicted data (N,), the rate of change (N,) and the terms (N, terms) at a batch."""

    data: jax.Array
    rate: jax.Array
    terms: jax.Array


@dataclass(frozen=True)
class Law:
    """Fix the terms, the units and the coordinates; evaluating needs the weights and the points alone.

    Parameters
    ----------
    length, duration : size of one normalised unit of x and y, and of t.
    low, high : range of the network's output.
    cell : (Δx, Δy) of the cells that the data are averages of; None: the data are point values.
    carried : whether something moves past the points' coordinates: not where they follow a uniform drift.
    """

    terms: tuple[Term, ...]
    length: float
    duration: float
    low: float
    high: float
    cell: tuple[float, float] | None
    carried: bool
    streams: Streams

    @classmethod
    def of(
        cls,
        terms: Sequence[Term],
        length: float,
        duration: float,
        span: tuple[float, float],
        cell: tuple[float, float] | None,
        carried: bool,
    ) -> Law:
        """Check the terms and find the derivatives that have to be carried."""
        check_terms(terms)
        extra = ((2, 0), (0, 2)) if cell is not None else ()
        isotropic = cell is None or abs(cell[0] - cell[1]) <= 1e-6 * cell[0]
        streams = Streams.needed_by(terms, extra, isotropic)
        return cls(
            terms=tuple(terms),
            length=length,
            duration=duration,
            low=span[0],
            high=span[1],
            cell=cell,
            carried=carried,
            streams=streams,
        )

    def predict(self, network: Network, batch: Batch) -> jax.Array:
        """Evaluate û alone, without the cells' correction: enough for the pretraining."""
        return predict(network, batch.inputs, self.low, self.high)

    def evaluate(self, network: Network, batch: Batch) -> Evaluation:
        """Evaluate what loss and coefficients need, in the recording's units."""
        jet = propagate(network, batch.inputs, self.streams, self.low, self.high)
        jets = spatial_jets(jet, self.streams, self.length)
        high_orders = sorted({order for term in self.terms for order in term.jets if sum(order) > 2})
        if high_orders:
            jets |= nested_jets(network, batch.inputs, high_orders, self.length, self.low, self.high)
        rate = jet.slopes[2] / self.duration
        if self.carried:
            rate = rate + batch.velocity[:, 0] * jets[(1, 0)] + batch.velocity[:, 1] * jets[(0, 1)]
        terms = jnp.stack([term.evaluate(jets, backend="jax") for term in self.terms], axis=1)
        data = jet.value
        if self.cell is not None:
            dx, dy = self.cell
            # (0, 2) is zero where (2, 0) carries the whole Laplacian; the cells are square then
            data = data + (dx**2 * jets[(2, 0)] + dy**2 * jets[(0, 2)]) / 24.0
        return Evaluation(data, rate, terms)


def check_terms(terms: Sequence[Term]) -> None:
    """Refuse a drift among the terms, and no terms at all."""
    drifting = [term.name for term in terms if term.is_drift]
    if drifting or not terms:
        raise InputError(
            f"the refinement takes the intrinsic terms of a law, not {', '.join(drifting) or 'none'}: "
            "the drift is given as a velocity and has coefficient 1"
        )
