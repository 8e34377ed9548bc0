"""Maps of what a law leaves, beside what noise alone would look like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from video2pde.fit.blocks import BlockScale
from video2pde.fit.law import LawFit
from video2pde.fit.result import Maps
from video2pde.fit.view import View

Array = NDArray[np.float64]


def make_maps(view: View, law: LawFit, blocks: Sequence[BlockScale], seed: int) -> Maps:
    """Lay the residuals out in time and space; the rollout's at the scale that shows most."""
    rng = np.random.default_rng([seed, 6])
    axes = [np.unique(view.centres[:, axis]) for axis in range(3)]
    weak = view.lay_out(law.standardised)
    drawn = np.linalg.cholesky(law.spread) @ rng.standard_normal(len(law.spread))
    example = view.lay_out(law.in_deviations(law.without(drawn)))
    film = view.film
    places = (film.times[axes[0]], film.grid.y[axes[1]], film.grid.x[axes[2]])
    shown = max(blocks, key=lambda b: float(np.mean(b.standard[np.isfinite(b.standard)] ** 2)), default=None)
    if shown is None:
        return Maps(weak, example, places, np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), (0.0, 0.0))
    noise = np.where(np.isfinite(shown.standard), rng.standard_normal(shown.standard.shape), np.nan)
    size = (film.grid.width / shown.standard.shape[2], film.duration / shown.standard.shape[0])
    return Maps(weak, example, places, shown.left / np.maximum(shown.noise, 1e-12), noise, size)
