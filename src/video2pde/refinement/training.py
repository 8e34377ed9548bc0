"""The compiled training loop: pretraining on the data, then data and law together.

    L = ⟨(û − U)²⟩ / s² + w ⟨R²⟩ / r²,

s being the field's spread and r the size of the rate of change after pretraining (both 1 for the raw
loss). R is linear in the coefficients, so they need no descent: with ``projection`` each step solves the
normal equations of its own points, and the network's gradient is taken with the coefficients held (at the
minimum their own derivative vanishes); what is reported comes from a running average of these equations.
(With the average in the gradient too, the network would be tied to old coefficients and follow slowly.)
With ``trained`` they are parameters, each in units of the rate of change over the term's size, so that one
learning rate fits all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from video2pde.refinement.law import Batch, Law
from video2pde.refinement.network import create_network, Network
from video2pde.refinement.optimisers import create_optimiser, decay, Optimiser, State

if TYPE_CHECKING:
    from video2pde.settings import RefinementSettings

MEMORY = 0.99
"""Share of the running normal equations that survives a step."""
RIDGE = 1e-6
"""Ridge on the normalised terms; it only keeps indistinguishable terms from blowing up."""


class Parameters(NamedTuple):
    """What the optimiser moves: the weights and the coefficients (in their own scale; unused with projection)."""

    network: Network
    coefficients: jax.Array


class Normal(NamedTuple):
    """Running normal equations of rate = terms · coefficients, in scaled terms."""

    matrix: jax.Array
    vector: jax.Array


class Scales(NamedTuple):
    """Units of the loss: of the data error, of the residual, and of each coefficient."""

    data: jax.Array
    residual: jax.Array
    coefficients: jax.Array


class Training(NamedTuple):
    """Everything that changes from step to step."""

    step: jax.Array
    parameters: Parameters
    optimiser: State
    normal: Normal


@dataclass(frozen=True)
class Trainer:
    """Compile the two phases for one law and one set of settings; each call runs a number of steps without the host."""

    law: Law
    settings: RefinementSettings

    @cached_property
    def _optimiser(self) -> Optimiser:
        return create_optimiser(self.settings.optimizer)

    def start(self, seed: int) -> Training:
        """Draw the weights and begin the pretraining."""
        network = create_network(jax.random.key(seed), self.settings.width, self.settings.depth)
        return self._restart(Parameters(network, jnp.zeros(len(self.law.terms), jnp.float32)))

    def begin_joint(self, training: Training, scaled_start: NDArray[np.float64]) -> Training:
        """Keep the network, set the coefficients and start the optimiser anew."""
        return self._restart(Parameters(training.parameters.network, jnp.asarray(scaled_start, jnp.float32)))

    def _restart(self, parameters: Parameters) -> Training:
        count = len(self.law.terms)
        normal = Normal(jnp.zeros((count, count)), jnp.zeros(count))
        return Training(jnp.zeros((), jnp.int32), parameters, self._optimiser.init(parameters), normal)

    @cached_property
    def pretrain(self) -> Callable[..., tuple[Training, jax.Array]]:
        """Compile (training, pool, key, scales, steps) -> (training, trace of the data loss (steps, 1))."""

        def step(training: Training, pool: Batch, key: jax.Array, scales: Scales) -> tuple[Training, jax.Array]:
            batch = _pick(pool, jax.random.fold_in(key, training.step), self.settings.data_samples)

            def loss(parameters: Parameters) -> jax.Array:
                error = (self.law.predict(parameters.network, batch) - batch.values) / scales.data
                return jnp.mean(error**2)

            value, gradient = jax.value_and_grad(loss)(training.parameters)
            rate = jnp.float32(self.settings.pretrain_rate)
            return self._advance(training, gradient, rate, training.normal), value[None]

        return self._loop(step)

    @cached_property
    def join(self) -> Callable[..., tuple[Training, jax.Array]]:
        """Compile (training, pool, key, scales, steps) -> (training, trace).

        The trace (steps, 2 + terms) holds the data loss, the residual loss and the coefficients.
        """
        settings = self.settings
        points = max(settings.data_samples, settings.residual_samples)
        projected = settings.coefficients == "projection"

        def step(training: Training, pool: Batch, key: jax.Array, scales: Scales) -> tuple[Training, jax.Array]:
            batch = _pick(pool, jax.random.fold_in(key, training.step), points)

            def loss(parameters: Parameters) -> tuple[jax.Array, Any]:
                data, scaled_rate, scaled_terms = self._evaluate(parameters.network, batch, scales)
                held = jax.lax.stop_gradient((scaled_rate, scaled_terms))
                own = _normal_equations(*held)
                coefficients = solve_normal(own) if projected else parameters.coefficients
                normal = jax.tree.map(lambda old, new: MEMORY * old + (1 - MEMORY) * new, training.normal, own)
                shown = solve_normal(normal) if projected else coefficients
                residual_loss = jnp.mean((scaled_rate - scaled_terms @ coefficients) ** 2)
                data_loss = jnp.mean(((data - batch.values[: settings.data_samples]) / scales.data) ** 2)
                trace = jnp.concatenate([jnp.stack([data_loss, residual_loss]), shown * scales.coefficients])
                return data_loss + settings.residual_weight * residual_loss, (trace, normal)

            (_, (trace, normal)), gradient = jax.value_and_grad(loss, has_aux=True)(training.parameters)
            rate = decay(training.step, settings.joint_steps, settings.joint_rate, settings.final_rate)
            return self._advance(training, gradient, rate, normal), trace

        return self._loop(step)

    def _evaluate(self, network: Network, batch: Batch, scales: Scales) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Evaluate the data at the first points and the scaled law at the first points, each as many as set."""
        settings, law = self.settings, self.law
        full = settings.residual_samples if law.cell is None else len(batch.values)
        evaluation = law.evaluate(network, Batch(*(part[:full] for part in batch)))
        data = evaluation.data[: settings.data_samples]
        if settings.data_samples > full:
            rest = Batch(*(part[full:] for part in batch))
            data = jnp.concatenate([data, law.predict(network, rest)])
        count = settings.residual_samples
        scaled = evaluation.terms[:count] * (scales.coefficients / scales.residual)
        return data, evaluation.rate[:count] / scales.residual, scaled

    def _advance(self, training: Training, gradient: Parameters, rate: jax.Array, normal: Normal) -> Training:
        parameters, state = self._optimiser.update(gradient, training.optimiser, training.parameters, rate)
        return Training(training.step + 1, parameters, state, normal)

    def _loop(self, step: Callable[..., tuple[Training, jax.Array]]) -> Callable[..., tuple[Training, jax.Array]]:
        def run(
            training: Training, pool: Batch, key: jax.Array, scales: Scales, steps: int
        ) -> tuple[Training, jax.Array]:
            # full float32 on a GPU too: ten-bit products would spoil the normal equations and SOAP's bases
            with jax.default_matmul_precision("highest"):
                result: tuple[Training, jax.Array] = jax.lax.scan(
                    lambda carry, _: step(carry, pool, key, scales), training, None, length=steps
                )
            return result

        # the number of steps is fixed at compilation, so that a GPU need not ask the host whether to go on
        return jax.jit(run, static_argnums=4)

    @cached_property
    def inspect(self) -> Callable[..., Any]:
        """Compile (network, batch) -> Evaluation for judging on many points."""
        return jax.jit(self.law.evaluate)


def _pick(pool: Batch, key: jax.Array, count: int) -> Batch:
    chosen = jax.random.randint(key, (count,), 0, len(pool.values))
    return Batch(*(part[chosen] for part in pool))


def _normal_equations(rate: jax.Array, terms: jax.Array) -> Normal:
    return Normal(terms.T @ terms / len(rate), terms.T @ rate / len(rate))


def solve_normal(normal: Normal) -> jax.Array:
    """Solve the normal equations with columns brought to length one and a small ridge."""
    size = jnp.sqrt(jnp.diagonal(normal.matrix)) + 1e-20
    matrix = normal.matrix / jnp.outer(size, size) + RIDGE * jnp.eye(len(size))
    solution: jax.Array = jnp.linalg.solve(matrix, normal.vector / size) / size
    return solution
