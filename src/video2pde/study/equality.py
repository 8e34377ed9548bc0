"""Is it one law? Shared against separate coefficients, and the film that differs from all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from video2pde.agreement import NORMAL
from video2pde.study.meta import pool, RandomEffects

Array = NDArray[np.float64]

RESAMPLES = 4000
"""Combinations of the films' replicates that make the distribution under one law."""
REJECTED, OUTLIER = 0.05, 0.01
"""Chance below which one law for all is rejected; chance, among all films, below which a film is named."""
LEAST_OTHERS = 3
"""Films that must be left for one to differ from them."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What one film by itself says of the law's coefficients.

    ``values`` (K,); ``half`` (K,): half-widths of their 95 % intervals; ``draws`` (B, K): replicates around 0.
    """

    film: str
    values: Array
    half: Array
    draws: Array

    @property
    def scatter(self) -> Array:
        """The replicates, as wide as the intervals say: these hold more than noise."""
        size = np.sqrt(np.mean(self.draws**2, axis=0))
        return np.asarray(self.draws * (self.half / NORMAL / np.where(size > 0, size, 1.0)))

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Draw errors (count, K) from the replicates, smoothed: a dozen of them have no tails.

        Each is blurred by a normal error of h times their own, h = B^(−1/(K + 4)) (Silverman), and all are scaled back.
        """
        replicates, terms = self.draws.shape
        h = replicates ** (-1 / (terms + 4))
        blur = rng.multivariate_normal(np.zeros(terms), self.covariance, count)
        return np.asarray((self.scatter[rng.integers(0, replicates, count)] + h * blur) / np.sqrt(1 + h**2))

    @property
    def covariance(self) -> Array:
        """Of the coefficients (K, K); with few replicates correlations are drawn towards zero."""
        count, terms = self.draws.shape
        size = np.sqrt(np.mean(self.draws**2, axis=0))
        unit = self.draws / np.where(size > 0, size, 1.0)
        kept = count / (count + terms)
        correlation = kept * (unit.T @ unit) / count
        np.fill_diagonal(correlation, 1.0)
        error = self.half / NORMAL
        return np.asarray(correlation * np.outer(error, error))


@dataclass(frozen=True, eq=False)
class Equality:
    """Whether the films share their coefficients.

    ``distance``: squared distance of the films' own coefficients from shared ones, in their errors; ``chance`` of a
    larger one under one law, by the films' block bootstraps; ``shared`` (K,) the coefficients that come nearest.
    """

    distance: float
    chance: float
    shared: Array

    @property
    def rejected(self) -> bool:
        return self.chance < REJECTED


@dataclass(frozen=True)
class Outlier:
    """A film beside all others: how far it lies from them, in errors, and the chance of that among so many films."""

    film: str
    distance: float
    chance: float

    @property
    def stands_out(self) -> bool:
        return self.chance < OUTLIER


def judge_equality(films: Sequence[Asked], seed: int = 0, resamples: int = RESAMPLES) -> Equality:
    """Compare shared coefficients with separate ones, by the block bootstrap of every film.

    T = Σ_f (c_f − ĉ)ᵀ V_f⁻¹ (c_f − ĉ) with the ĉ that makes it least. Under one law the c_f differ from it by their
    errors alone, which each film's replicates show: T is computed again and again from replicates drawn from each.
    """
    weights = np.stack([np.linalg.inv(film.covariance) for film in films])
    values = np.stack([film.values for film in films])
    shared, distance = _nearest(values[None], weights)
    rng = np.random.default_rng([seed, 21])
    drawn = np.stack([film.draw(resamples, rng) for film in films], axis=1)
    _, under_one_law = _nearest(drawn, weights)
    chance = (1 + int(np.sum(under_one_law >= distance[0]))) / (1 + resamples)
    return Equality(float(distance[0]), chance, shared[0])


def _nearest(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return the shared coefficients (m, K) nearest to the films' (m, n, K), and how far they are, (m,)."""
    right = np.einsum("fkl,mfl->mk", weights, values)
    shared = np.linalg.solve(weights.sum(axis=0), right.T).T
    apart = values - shared[:, None]
    return shared, np.einsum("mfk,fkl,mfl->m", apart, weights, apart)


def find_outliers(films: Sequence[Asked]) -> list[Outlier]:
    """Set every film against the mean of all others, which may scatter among themselves; the furthest first."""
    found = []
    for index, film in enumerate(films):
        others = [*films[:index], *films[index + 1 :]]
        if len(others) < LEAST_OTHERS:
            return []
        apart, spread = film.values - _mean(others), film.covariance + _uncertainty(others)
        distance = float(apart @ np.linalg.solve(spread, apart))
        chance = min(1.0, len(films) * float(chi2.sf(distance, len(apart))))
        found.append(Outlier(film.film, float(np.sqrt(distance)), chance))
    return sorted(found, key=lambda outlier: -outlier.distance)


def _mean(films: Sequence[Asked]) -> Array:
    return np.array([_pool_term(films, k).mean.value for k in range(len(films[0].values))])


def _uncertainty(films: Sequence[Asked]) -> Array:
    """Return how far a further film may lie from the mean of these by chance: their scatter, and the mean's error."""
    spread = []
    for k in range(len(films[0].values)):
        pooled = _pool_term(films, k)
        spread.append(pooled.tau.value**2 + float(pooled.errors[0]) ** 2)
    return np.diag(spread)


def _pool_term(films: Sequence[Asked], term: int) -> RandomEffects:
    values = np.array([film.values[term] for film in films])
    return pool(values, np.array([(film.half[term] / NORMAL) ** 2 for film in films]))
