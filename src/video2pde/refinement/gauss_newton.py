"""Train the radial network by Gauss–Newton: the same loss as the perceptron's, over all pixels, without learning rates.

    L = Σ ω (û − U)² / s² + w Σ ω R² / r²,     Σ ω = 1

û is linear in the weights, so the data's part is a linear least-squares problem, and R is one once it is linearised.
Its coefficients are projected out: δR loses what the terms' values can take up, so that a step moves weights and
coefficients together. A step solves its normal equations by conjugate gradients, in a handful of which it converges
because the neurons' combinations are nearly eigenvectors: of the overlap exactly, of the law roughly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from video2pde.refinement.lattice import expand, Features, Lattice
from video2pde.refinement.training import Normal, solve_normal
from video2pde.refinement.window import Window
from video2pde.terms.term import Order, Term

RIDGE = 1e-6
"""Weight of the squared weights beside the loss; it holds neurons where there are no pixels."""
SMOOTHNESS = 0.1
"""Weight of the roughest combination's square in the pretraining, so that a short film's first û_t is not all noise."""
PRETRAIN_INNER = 12
INNER = 30
"""Conjugate-gradient steps in one round of the pretraining, and in one Gauss–Newton step."""
HALVINGS = 6
"""How often a step that raises the loss is halved."""


class Data(NamedTuple):
    """Hold the window on the device.

    ``target`` is (U − m)/s; ``trained`` and ``held_out`` are square roots of weights; ``velocity`` has no rows where
    nothing is carried. ``roughness`` is that of :meth:`Lattice.roughness`, by the law's derivatives, t last;
    ``smooth`` is the pretraining's penalty.
    """

    features: Features
    target: jax.Array
    trained: jax.Array
    held_out: jax.Array
    velocity: jax.Array
    roughness: jax.Array
    smooth: jax.Array


class State(NamedTuple):
    """What changes from step to step: the number of the step and the weights (t, y, x)."""

    step: jax.Array
    weights: jax.Array


class Measures(NamedTuple):
    """Hold the coefficients and root mean squares: of data errors over s, of residual, rate and terms as they are."""

    coefficients: jax.Array
    data: jax.Array
    residual: jax.Array
    rate: jax.Array
    term_sizes: jax.Array
    held_out_data: jax.Array
    held_out_residual: jax.Array


class Equations(NamedTuple):
    """The terms that a law consists of, the derivatives that it takes, and the units of û."""

    terms: tuple[Term, ...]
    orders: tuple[Order, ...]
    centre: float
    spread: float
    cell: tuple[float, float] | None
    residual_weight: float

    @classmethod
    def of(cls, terms: Sequence[Term], window: Window, cell_average: bool, residual_weight: float) -> Equations:
        """Collect the derivatives that terms, cells and what is carried need."""
        orders = {(0, 0)} | {order for term in terms for order in term.jets}
        orders |= {(2, 0), (0, 2)} if cell_average else set()
        orders |= {(1, 0), (0, 1)} if window.velocity is not None else set()
        cell = window.cell if cell_average else None
        return cls(tuple(terms), tuple(sorted(orders)), window.centre, window.spread, cell, residual_weight)

    def put_on_device(self, window: Window, lattice: Lattice) -> Data:
        """Evaluate the neurons at the window's pixels."""
        rough = lattice.roughness(self.orders)
        carried = np.zeros((0, 1, 1, 1)) if window.velocity is None else window.velocity
        return Data(
            lattice.features(window.x, window.y, window.times, self.orders),
            jnp.asarray((window.values - self.centre) / self.spread, jnp.float32),
            jnp.asarray(np.sqrt(window.trained), jnp.float32),
            jnp.asarray(np.sqrt(window.held_out), jnp.float32),
            jnp.asarray(carried, jnp.float32),
            jnp.asarray(np.stack([rough[order] for order in (*self.orders, None)]), jnp.float32),
            jnp.asarray(SMOOTHNESS * lattice.relative_roughness(), jnp.float32),
        )

    def observe(self, jets: dict[Order, jax.Array]) -> jax.Array:
        """Return what the pixels show of the sums: their average over a cell, to fourth order."""
        if self.cell is None:
            return jets[(0, 0)]
        dx, dy = self.cell
        return jets[(0, 0)] + (dx**2 * jets[(2, 0)] + dy**2 * jets[(0, 2)]) / 24.0

    def rate(self, jets: dict[Order, jax.Array], slope: jax.Array, velocity: jax.Array) -> jax.Array:
        """Return û_t + v·∇û from the sums, in units of u per second."""
        if len(velocity):
            slope = slope + velocity[0] * jets[(1, 0)] + velocity[1] * jets[(0, 1)]
        return self.spread * slope

    def evaluate_terms(self, jets: dict[Order, jax.Array]) -> list[jax.Array]:
        """Evaluate the terms from the sums."""
        scaled = {order: self.spread * jet for order, jet in jets.items()}
        scaled[(0, 0)] = scaled[(0, 0)] + self.centre
        return [jnp.broadcast_to(term.evaluate(scaled, backend="jax"), jets[(0, 0)].shape) for term in self.terms]

    def measure(self, weights: jax.Array, data: Data) -> Measures:
        """Solve for the coefficients and measure what is left, on trained and held-out pixels."""
        jets, slope = expand(weights, data.features, self.orders)
        rate, terms = self.rate(jets, slope, data.velocity), self.evaluate_terms(jets)
        coefficients, sizes = _project(data.trained * rate, [data.trained * term for term in terms])
        error = self.observe(jets) - data.target
        left = rate - sum(c * term for c, term in zip(coefficients, terms, strict=True))
        return Measures(
            coefficients,
            _length(data.trained * error),
            _length(data.trained * left),
            _length(data.trained * rate),
            sizes,
            _length(data.held_out * error),
            _length(data.held_out * left),
        )

    def loss(self, found: Measures, weights: jax.Array, rate_size: jax.Array) -> jax.Array:
        """Return L and the ridge."""
        law = self.residual_weight * (found.residual / rate_size) ** 2
        return found.data**2 + law + RIDGE * jnp.sum(weights**2)


def _length(values: jax.Array) -> jax.Array:
    return jnp.sqrt(_dot(values, values))


def _dot(a: jax.Array, b: jax.Array) -> jax.Array:
    # rows first: a plain float32 sum over a million numbers would lose digits
    return jnp.sum(jnp.einsum("tyx,tyx->ty", a, b))


def _project(rate: jax.Array, terms: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return the least-squares coefficients of the terms in the rate, and the terms' sizes."""
    matrix = jnp.stack([jnp.stack([_dot(a, b) for b in terms]) for a in terms])
    return solve_normal(Normal(matrix, jnp.stack([_dot(a, rate) for a in terms]))), jnp.sqrt(jnp.diagonal(matrix))


def _orthonormal(columns: Sequence[jax.Array]) -> list[jax.Array]:
    """Orthonormalise; a column that the others make up becomes zero."""
    found: list[jax.Array] = []
    for column in columns:
        rest = column - sum(_dot(column, other) * other for other in found)
        size = _length(rest)
        found.append(jnp.where(size > 1e-4 * _length(column), rest / (size + 1e-30), 0.0))
    return found


def _conjugate_gradients(
    apply: Callable[[jax.Array], jax.Array], target: jax.Array, scale: jax.Array, steps: int
) -> jax.Array:
    """Solve apply(x) = target from zero; ``scale`` is the diagonal of the preconditioner's inverse."""

    def advance(_: int, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, rest, direction, size = state
        moved = apply(direction)
        # a residual of zero stays where it is instead of dividing by zero
        share = size / (jnp.vdot(direction, moved) + 1e-30)
        x, rest = x + share * direction, rest - share * moved
        scaled = rest / scale
        new = jnp.vdot(rest, scaled)
        return x, rest, scaled + (new / (size + 1e-30)) * direction, new

    first = target / scale
    start = (jnp.zeros_like(target), target, first, jnp.vdot(target, first))
    solution: jax.Array = jax.lax.fori_loop(0, steps, advance, start)[0]
    return solution


@partial(jax.jit, static_argnums=0)
def pretrain(equations: Equations, state: State, data: Data) -> tuple[State, jax.Array]:
    """Fit the data alone: one round of conjugate gradients. Returns the data error, too.

    The first round weighs all pixels alike: the neurons' combinations are then nearly eigenvectors, and a background,
    on which little weight lies later, is learnt at once.
    """
    used = data.trained > 0
    root = jnp.where(state.step == 0, jnp.sqrt(used / jnp.sum(used)), data.trained)

    def seen(weights: jax.Array) -> jax.Array:
        return root * equations.observe(expand(weights, data.features, equations.orders)[0])

    with jax.default_matmul_precision("highest"):
        back = jax.linear_transpose(seen, state.weights)
        rest = root * data.target - seen(state.weights)
        (downhill,) = back(rest)
        extra = RIDGE + data.smooth
        move = _conjugate_gradients(
            lambda v: back(seen(v))[0] + extra * v, downhill - extra * state.weights, 1.0 + extra, PRETRAIN_INNER
        )
        return State(state.step + 1, state.weights + move), _length(rest - seen(move))


@partial(jax.jit, static_argnums=0)
def measure(equations: Equations, weights: jax.Array, data: Data) -> Measures:
    """Compile :meth:`Equations.measure`."""
    with jax.default_matmul_precision("highest"):
        return equations.measure(weights, data)


@partial(jax.jit, static_argnums=0)
def evaluate(equations: Equations, weights: jax.Array, data: Data) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return rate (t, y, x), terms (terms, t, y, x), and the data error (t, y, x) over s."""
    with jax.default_matmul_precision("highest"):
        jets, slope = expand(weights, data.features, equations.orders)
        terms = jnp.stack(equations.evaluate_terms(jets))
        return equations.rate(jets, slope, data.velocity), terms, equations.observe(jets) - data.target


@partial(jax.jit, static_argnums=0)
def advance(equations: Equations, state: State, data: Data, rate_size: jax.Array) -> tuple[State, Measures]:
    """Make one Gauss–Newton step; it is halved until the loss falls, and left out where that does not help."""
    with jax.default_matmul_precision("highest"):
        move = _find_move(equations, state.weights, data, rate_size)
        before = equations.measure(state.weights, data)
        limit = equations.loss(before, state.weights, rate_size)

        def tried(tries: jax.Array) -> tuple[jax.Array, Measures]:
            weights = state.weights + 0.5**tries * move
            return weights, equations.measure(weights, data)

        def too_far(trial: tuple[jax.Array, jax.Array, Measures]) -> jax.Array:
            tries, weights, found = trial
            # not "above the limit": a loss that is no number is too far as well
            return ~(equations.loss(found, weights, rate_size) <= limit) & (tries < HALVINGS)

        first = jnp.zeros((), jnp.float32)
        _, weights, found = jax.lax.while_loop(
            too_far, lambda trial: (trial[0] + 1, *tried(trial[0] + 1)), (first, *tried(first))
        )
        better = equations.loss(found, weights, rate_size) <= limit
        kept, shown = jax.tree.map(
            lambda new, old: jnp.where(better, new, old), (weights, found), (state.weights, before)
        )
        return State(state.step + 1, kept), shown


def _find_move(equations: Equations, weights: jax.Array, data: Data, rate_size: jax.Array) -> jax.Array:
    """Solve the linearised problem, the coefficients projected out."""
    orders, factor = equations.orders, jnp.sqrt(equations.residual_weight) / rate_size
    jets, slope = expand(weights, data.features, orders)
    rate, terms = equations.rate(jets, slope, data.velocity), equations.evaluate_terms(jets)
    columns = [data.trained * term for term in terms]
    coefficients, _ = _project(data.trained * rate, columns)
    basis = _orthonormal(columns)

    def explained(at: dict[Order, jax.Array]) -> jax.Array:
        values = equations.evaluate_terms(at)
        return jnp.stack([c * jnp.sum(t) for c, t in zip(coefficients, values, strict=True)]).sum()

    # a term's value at a pixel depends on that pixel alone: the gradient of the sum is the derivative at each
    slopes = jax.grad(explained)(jets)

    def linearised(v: jax.Array) -> tuple[jax.Array, jax.Array]:
        moved, moved_slope = expand(v, data.features, orders)
        left = equations.rate(moved, moved_slope, data.velocity) - sum(slopes[o] * moved[o] for o in orders)
        left = data.trained * left
        left = left - sum(_dot(column, left) * column for column in basis)
        return data.trained * equations.observe(moved), factor * left

    left = rate - sum(c * term for c, term in zip(coefficients, terms, strict=True))
    rest = data.trained * (equations.observe(jets) - data.target), factor * data.trained * left
    back = jax.linear_transpose(linearised, weights)
    sizes = jnp.stack([_dot(data.trained * slopes[o], data.trained * slopes[o]) for o in orders])
    sizes = jnp.append(sizes, equations.spread**2)
    scale = 1.0 + factor**2 * jnp.einsum("o,otyx->tyx", sizes, data.roughness)

    def normal(v: jax.Array) -> jax.Array:
        result: jax.Array = back(linearised(v))[0] + RIDGE * v
        return result

    return _conjugate_gradients(normal, -back(rest)[0] - RIDGE * weights, scale, INNER)
