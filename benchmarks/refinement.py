"""Time the inverse PINN: hand-written derivatives against ``jax.hessian``, and joint steps at the paper's sizes.

``python benchmarks/refinement.py`` prints rows of name, value and unit; ``--gpu`` runs on JAX's GPU and adds a
whole training at the paper's sizes and one with the default settings. It needs numpy, jax and sympy only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from video2pde.field import Field, Grid
from video2pde.refinement.law import Batch, Law
from video2pde.refinement.network import create_network, Network, predict
from video2pde.refinement.refine import find_device, refine
from video2pde.refinement.training import Scales, Trainer
from video2pde.terms import get_term, LIBRARIES

TERMS = tuple(get_term(name) for name in LIBRARIES["C"])
A, B, BACKGROUND = 9.005, 0.666, 0.1


@dataclass(frozen=True)
class Sizes:
    """The keys of ``RefinementSettings``, without pydantic, which a bare GPU machine may lack; the perceptron."""

    network: str = "perceptron"
    width: int = 64
    depth: int = 4
    pretrain_steps: int = 1000
    joint_steps: int = 10000
    data_samples: int = 512
    residual_samples: int = 512
    optimizer: str = "soap"
    pretrain_rate: float = 5e-3
    joint_rate: float = 5e-3
    final_rate: float = 2e-5
    residual_weight: float = 0.01
    scaled_loss: bool = True
    coefficients: str = "projection"
    frame: str = "moving"
    average: bool = True
    cell_average: bool = True
    concentration: float = 0.75
    output: str = "data"
    seeds: tuple[int, ...] = (2026,)


PAPER = Sizes(
    width=128,
    depth=6,
    pretrain_steps=5000,
    joint_steps=12000,
    data_samples=8192,
    residual_samples=4096,
    optimizer="adam",
    pretrain_rate=8e-4,
    joint_rate=2e-4,
    final_rate=2e-4,
    residual_weight=1e-3,
    scaled_loss=False,
    coefficients="trained",
    frame="fixed",
    average=False,
    cell_average=False,
    concentration=0.0,
    output="unit",
)


def exact_plume(frames: int = 605, cells: int = 200) -> tuple[Field, np.ndarray]:
    """Make a field that follows C exactly: the logarithm of spreading Gaussians (Cole–Hopf), drifting."""
    grid, times = Grid(cells, cells, 200.0, 200.0), np.linspace(0.0, 20.0, frames)
    velocity = np.tile([0.5, -0.3], (frames, 1))
    values = np.empty((frames, cells, cells), np.float32)
    for k, t in enumerate(times):
        total = np.zeros((cells, cells))
        for height, x0, y0, variance in ((0.65, 90.0, 105.0, 70.0), (0.5, 112.0, 92.0, 50.0), (0.4, 95.0, 80.0, 40.0)):
            spread = variance + 2 * B * t
            x, y = grid.x - x0 - 0.5 * t, grid.y - y0 + 0.3 * t
            bump = np.exp(-0.5 * (x[None, :] ** 2 + y[:, None] ** 2) / spread)
            total += np.expm1(A * height / B) * variance / spread * bump
        values[k] = BACKGROUND + B / A * np.log1p(total)
    return Field(values, times, grid), velocity


def make_batch(points: int) -> Batch:
    rng = np.random.default_rng(0)
    inputs = jnp.asarray(rng.uniform(-1, 1, (points, 3)), jnp.float32)
    return Batch(inputs, jnp.asarray(rng.uniform(0, 1, points), jnp.float32), jnp.zeros((points, 2), jnp.float32))


def seconds_per_call(function: Callable[[], Any], repeats: int = 20) -> float:
    """Return the median time of a call after a first one that compiles."""
    jax.block_until_ready(function())
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(function())
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def time_derivatives() -> list[dict[str, Any]]:
    """Time loss and gradient at batch 512, 4×64, by hand and by ``jax.hessian``."""
    network, batch = create_network(jax.random.key(0), 64, 4), make_batch(512)
    law = Law.of(TERMS, 100.0, 10.0, (0.0, 1.0), None, carried=False)
    guess = jnp.array([A, B])

    def by_hand(weights: Network) -> jax.Array:
        seen = law.evaluate(weights, batch)
        return jnp.mean((seen.data - batch.values) ** 2) + jnp.mean((seen.rate - seen.terms @ guess) ** 2)

    def by_hessian(weights: Network) -> jax.Array:
        def value(point: jax.Array) -> jax.Array:
            return predict(weights, point[None])[0]

        u, du = jax.vmap(jax.value_and_grad(value))(batch.inputs)
        bend = jax.vmap(jax.hessian(value))(batch.inputs)
        jets = {
            (0, 0): u,
            (1, 0): du[:, 0] / 100,
            (0, 1): du[:, 1] / 100,
            (2, 0): bend[:, 0, 0] / 1e4,
            (0, 2): bend[:, 1, 1] / 1e4,
        }
        terms = jnp.stack([term.evaluate(jets, backend="jax") for term in TERMS], axis=1)
        return jnp.mean((u - batch.values) ** 2) + jnp.mean((du[:, 2] / 10 - terms @ guess) ** 2)

    rows = []
    for name, loss in (("by hand", by_hand), ("jax.hessian", by_hessian)):
        gradient = jax.jit(jax.value_and_grad(loss))
        taken = seconds_per_call(lambda gradient=gradient: gradient(network))
        rows.append({"name": f"loss and gradient, 512 points, 4×64, {name}", "value": 1e3 * taken, "unit": "ms"})
    rows.append({"name": "jax.hessian over by hand", "value": rows[1]["value"] / rows[0]["value"], "unit": "×"})
    return rows


def time_joint_step(name: str, sizes: Sizes, steps: int) -> dict[str, Any]:
    """Time joint steps inside the compiled loop."""
    law = Law.of(TERMS, 100.0, 10.0, (0.0, 1.0), (1.0, 1.0) if sizes.cell_average else None, sizes.frame == "fixed")
    trainer = Trainer(law, sizes)  # type: ignore[arg-type]
    training = trainer.begin_joint(trainer.start(0), np.ones(2))
    pool, key = make_batch(1 << 18), jax.random.key(1)
    scales = Scales(jnp.float32(1), jnp.float32(1), jnp.ones(2, jnp.float32))
    taken = seconds_per_call(lambda: trainer.join(training, pool, key, scales, steps), repeats=3)
    return {"name": f"joint step, {name}", "value": 1e3 * taken / steps, "unit": "ms"}


def time_training(name: str, sizes: Sizes, device: str) -> list[dict[str, Any]]:
    """Time a whole refinement of an exact C film, and say how far its coefficients are from the truth."""
    field, velocity = exact_plume()
    began = time.perf_counter()
    found = refine(field, TERMS, velocity, [0.793, -0.126], sizes, device=device)  # type: ignore[arg-type]
    rows = [{"name": f"whole training, {name}", "value": time.perf_counter() - began, "unit": "s"}]
    for term, truth in (("grad_squared", A), ("laplacian", B)):
        error = 100.0 * (found.coefficients[term] / truth - 1.0)
        rows.append({"name": f"error of {term}, {name}", "value": error, "unit": "%"})
    return rows


def run(device: str = "cpu", whole: bool = False) -> list[dict[str, Any]]:
    """Return all rows; ``whole`` adds two complete trainings."""
    gpu = device == "gpu"
    with jax.default_device(find_device(device)):  # type: ignore[arg-type]
        rows = time_derivatives()
        rows.append(time_joint_step("default (SOAP, 512 points, 4×64)", Sizes(), 500 if gpu else 100))
        adam = replace(Sizes(), optimizer="adam")
        rows.append(time_joint_step("default sizes with Adam", adam, 500 if gpu else 100))
        rows.append(time_joint_step("the paper's sizes (Adam, 8192 + 4096 points, 6×128)", PAPER, 500 if gpu else 2))
    if whole:
        rows += time_training("default", Sizes(), device)
        rows += time_training("paper", PAPER, device)
    return rows


def main() -> None:
    """Print the rows, one JSON object a line, after the device's name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="run on the GPU, with two whole trainings")
    device = "gpu" if parser.parse_args().gpu else "cpu"
    print(
        json.dumps(
            {"device": str(find_device(device)), "kind": find_device(device).device_kind, "jax": jax.__version__}
        )
    )  # type: ignore[arg-type]
    for row in run(device, whole=device == "gpu"):
        print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
