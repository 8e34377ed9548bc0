"""The search over subsets of a weak system's columns: seconds for all of them, beside solving each on its own."""

from __future__ import annotations

import time
from itertools import islice, product
from typing import Any

import numpy as np

from video2pde.discovery.regression import Normal
from video2pde.discovery.subsets import walk_subsets

TITLE = "Search over subsets"
NOTES = (
    "Normal equations of 2000 test functions with columns that are correlated as terms of a law are, every subset by "
    "its Cholesky factor, on one core, the compiled code kept; the fastest of three. A solver called for each subset "
    "is measured on a part of the same subsets."
)
SMALL, LARGE, PART = 16, 20, 4096
MOST_SECONDS = 2.0


def correlated(count: int) -> Normal:
    """Return the normal equations of columns that share a part, with a target that three of them make."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(2000, count)) + 1.5 * rng.normal(size=(2000, 1))
    b = theta[:, :3] @ np.array([1.0, -0.6, 0.3]) + 0.1 * rng.normal(size=2000)
    norms, signal = np.linalg.norm(theta, axis=0), float(np.linalg.norm(b))
    unit = theta / norms
    return Normal(tuple(f"t{i}" for i in range(count)), unit.T @ unit, unit.T @ b / signal, norms, signal)


def walk(normal: Normal) -> tuple[float, int]:
    """Return the seconds of the fastest of three walks, and the subsets looked at."""
    units, seconds, visited = [[name] for name in normal.names], [], 0
    for _ in range(3):
        start = time.perf_counter()
        visited = walk_subsets(normal, units).visited
        seconds.append(time.perf_counter() - start)
    return min(seconds), visited


def solve_each(normal: Normal, count: int) -> float:
    """Return the seconds for ``count`` subsets, each solved on its own."""
    chosen = [np.flatnonzero(bits) for bits in islice(product((0, 1), repeat=len(normal.names)), 1, count + 1)]
    start = time.perf_counter()
    for index in chosen:
        right = normal.right[index]
        right @ np.linalg.solve(normal.gram[np.ix_(index, index)], right)
    return time.perf_counter() - start


def run() -> list[dict[str, Any]]:
    """Measure both sizes, and a solver for each subset."""
    small, large = correlated(SMALL), correlated(LARGE)
    walk(correlated(4))
    seconds, visited = walk(small)
    each = solve_each(small, PART) / PART
    seconds_large, visited_large = walk(large)
    return [
        {"name": f"all subsets of {SMALL} terms", "value": seconds, "unit": "s", "limit": MOST_SECONDS},
        {"name": f"subsets of {SMALL} terms", "value": visited, "unit": ""},
        {"name": "a solver for each subset / the walk", "value": each * visited / seconds, "unit": "×"},
        {"name": f"all subsets of {LARGE} terms", "value": seconds_large, "unit": "s"},
        {"name": f"subsets of {LARGE} terms", "value": visited_large, "unit": ""},
    ]


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']:60} {row['value']:.4g} {row['unit']}")
