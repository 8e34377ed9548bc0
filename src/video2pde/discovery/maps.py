"""Law and maps of its coefficients in one linear regression.

The columns of a map stand beside the law's,

    b ≈ Θ ξ + Σ_j F_j q_j,     F_jk = ⟨φ, B_k T_j⟩ (in divergence form where T_j diffuses),     Σ_k w_k q_k = 0,

with roughness penalised, λ qᵀPq. The weights w_k = F_kᵀT_j make a map orthogonal to its own term: the law's coefficient
is the one that a constant would have, and the map what it departs by. λ comes from cross-validation over blocks of
time, of a coefficient over time from tiles of the picture. Like the terms of a law (``moments``), a map moves the
centroid, and the measured drift holds that already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.stats import f as fisher

from video2pde.discovery.mapped import map_columns, map_moments
from video2pde.discovery.mapshapes import BLOCKS, map_shapes, near_signal, tiles, time_blocks
from video2pde.discovery.moments import map_key
from video2pde.discovery.regression import solve_columns
from video2pde.discovery.system import Weak, weak_system
from video2pde.discovery.weak import WeakSystem
from video2pde.discovery.weighted import slice_centres, TimeMoments
from video2pde.drift import Drift
from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.maps import CoefficientMap, MapShape
from video2pde.settings import Settings
from video2pde.terms.catalogue import DRIFT
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion
from video2pde.terms.term import Term

Array = NDArray[np.float64]

RIDGES = tuple(10.0 ** (k / 2) for k in range(-10, 5))
"""Penalties on roughness, relative to the columns, that cross-validation chooses from."""
NEARLY = 1.0
"""How much more than the best ridge a stiffer one may leave unexplained."""
SLOPE = {"space": 0.01, "time": 0.0}
"""Weight of any change beside roughness: where there is no signal, a map goes on level."""
POOL = 2
"""Centres in store for the stability runs, as a multiple of the test functions."""
NARROWER = 2 / 3
"""Width in space of the test functions that see maps, relative to the usual ones: they blur a map less."""
LOWEST = 0.05
"""Share of its mean that diffusion has at least, anywhere; a map that would fall below is pulled to its mean, ..."""
LEAST_PULL, PULL_STEP, PULLS = 1e-6, 10.0**0.5, 20
"""... first by so much, relative to the columns, and more in steps, so many at most."""
MOST_DIRECTIONS, LEAST_POWER = 32, 1e-4
"""Changes of a map that a calibration may make, and the share of the strongest one's effect that counts."""
RANK = 1e-9
TINY = 1e-10
"""Ridge on everything, relative: it settles what no column shows."""


@dataclass(frozen=True, eq=False)
class MappedTerm:
    """A term's column and those of its map at the same centres: (M,) and (M, k).

    ``coarse``: the columns that a constant is tested against; ``basis`` (k, n): the splines on all cells, or at all
    frames; ``diffuses``: whether a negative coefficient would run diffusion backward.
    """

    shape: MapShape
    own: Array
    columns: Array
    coarse: Array
    basis: Array
    diffuses: bool

    def lowest(self, free: Array) -> float:
        """Return the lowest coefficient over its mean, for departures ``free`` (k − 1,) relative to it."""
        return 1.0 + float((self.free @ free @ self.basis).min())

    @cached_property
    def weights(self) -> Array:
        """w_k, which add up to one: what each spline has to say of the mean."""
        weights = np.maximum(self.columns.T @ self.own, 0.0)
        return np.asarray(weights / max(float(weights.sum()), 1e-300))

    @cached_property
    def free(self) -> Array:
        """The directions in which a map is free, (k, k − 1): its mean stays zero."""
        return np.asarray(null_space(self.weights[None]))

    @cached_property
    def signal(self) -> Array:
        """What the recording has to say where each spline lies, the largest 1."""
        density = self.weights / self.shape.sizes
        return np.asarray(density / max(float(density.max()), 1e-300))

    @cached_property
    def penalty(self) -> Array:
        """The penalty on a map, in units of its columns, (k, k)."""
        rough, slope = (_unit(matrix) for matrix in (self.shape.products(2), self.shape.products(1)))
        return (rough + SLOPE[self.shape.over] * slope) * float(np.mean(np.sum(self.columns**2, axis=0)))


def _unit(matrix: Array) -> Array:
    return np.asarray(matrix / (np.trace(matrix) / len(matrix)))


@dataclass(frozen=True, eq=False)
class MapColumns:
    """Draw weak systems of a law beside its maps from a pool of centres, as ``WeakColumns`` draws them without.

    ``ridges`` by term; ``gains`` by term: the share of what a constant leaves of left-out parts that the map removes;
    ``beside``: the terms of the laws that both were found with.
    """

    law: WeakSystem
    terms: Mapping[str, MappedTerm]
    ridges: Mapping[str, float]
    gains: Mapping[str, float]
    beside: frozenset[str] = frozenset()

    def for_law(self, names: Iterable[str]) -> MapColumns:
        """Choose the ridges for one law: beside terms that it does not have, less smoothing would seem right."""
        own = frozenset(names)
        return self if self.beside == own else _choose_ridges(self, sorted(own))

    @cached_property
    def pool(self) -> WeakSystem:
        """The law's system less what the maps explain: least squares on it gives the law's coefficients beside them."""
        design = np.hstack([t.columns @ t.free for t in self.terms.values()])
        both = np.column_stack([self.law.theta, self.law.b])
        matrix = design.T @ design + self._ridge(self.ridges)
        left = both - design @ np.linalg.solve(matrix, design.T @ both)
        return WeakSystem(self.law.names, left[:, :-1], left[:, -1], self.law.centres, self.law.widths)

    def draw(self, count: int, rng: np.random.Generator) -> WeakSystem:
        """Draw a random part of the pool."""
        chosen = rng.choice(len(self.pool.b), size=min(count, len(self.pool.b) // 2), replace=False)
        pool = self.pool
        return WeakSystem(pool.names, pool.theta[chosen], pool.b[chosen], pool.centres[chosen], pool.widths)

    def departures(self, coefficients: Mapping[str, float]) -> tuple[CoefficientMap, ...]:
        """Return the maps that belong to a law, without errors."""
        names = [name for name in self.law.names if coefficients.get(name, 0.0) != 0.0]
        held = {name: term for name, term in self.terms.items() if name in names}
        if not held:
            return ()
        target = self.law.b - self.law.columns(names) @ np.array([coefficients[name] for name in names])
        design, parts = self._design([], held)
        ridge = self._ridge(self.ridges, held, self._levels(names, held))
        values = np.linalg.solve(design.T @ design + ridge, design.T @ target)
        nothing = [(np.zeros((t.shape.count + 1,) * 2), t.signal, np.zeros((0, t.shape.count))) for t in held.values()]
        return tuple(
            CoefficientMap(term.shape, term.free @ values[parts[name]] / coefficients[name], *more)
            for (name, term), more in zip(held.items(), nothing, strict=True)
        )

    def maps(self, coefficients: Mapping[str, float]) -> tuple[CoefficientMap, ...]:
        """Return the maps that belong to a law, with errors that count overlapping test functions.

        The penalty counts as what is known beforehand, so that the errors hold what it smooths away, too.
        """
        names = [name for name in self.law.names if coefficients.get(name, 0.0) != 0.0]
        held = {name: term for name, term in self.terms.items() if name in names}
        design, parts = self._design(names, held)
        ridge = np.zeros((design.shape[1],) * 2)
        ridge[len(names) :, len(names) :] = self._ridge(self.ridges, held, self._levels(names, held))
        scale = _scales(design, len(names))
        unit, unit_ridge = design / scale, ridge / np.outer(scale, scale)
        unit_ridge[np.diag_indices(len(scale))] += TINY
        bread = np.linalg.inv(unit.T @ unit + unit_ridge)
        values = bread @ (unit.T @ self.law.b)
        scores = unit * (self.law.b - unit @ values)[:, None]
        meat = scores.T @ self.law.overlap @ scores
        known = float(np.trace(meat)) / float(np.trace(unit.T @ unit))
        spread = bread @ (meat + known * unit_ridge) @ bread / np.outer(scale, scale)
        found = []
        for name, part in parts.items():
            term, own = held[name], names.index(name)
            index = np.r_[own, np.arange(part.start, part.stop)]
            mean, free = (values / scale)[own], (values / scale)[part]
            # relative to the mean: δq/c̄ − q δc̄/c̄²
            turn = np.zeros((term.shape.count + 1, len(index)))
            turn[0, 0], turn[1:, 0], turn[1:, 1:] = 1.0, -(term.free @ free) / mean**2, term.free / mean
            covariance = turn @ spread[np.ix_(index, index)] @ turn.T
            statistic, freedom, chance = self._test(names, held, name)
            found.append(
                CoefficientMap(
                    term.shape,
                    term.free @ free / mean,
                    covariance,
                    term.signal,
                    _directions(covariance[1:, 1:], term),
                    ridge=self.ridges[name],
                    chance=chance,
                    statistic=statistic,
                    freedom=freedom,
                    gain=self.gains[name],
                )
            )
        return tuple(self._with_answers(found, names, held, values[: len(names)] / scale[: len(names)]))

    def _with_answers(
        self, maps: Sequence[CoefficientMap], names: Sequence[str], held: Mapping[str, MappedTerm], means: Array
    ) -> list[CoefficientMap]:
        """Say how the law's coefficients answer to departures beside those that a calibration decides."""
        columns = {m.term: held[m.term].columns * means[names.index(m.term)] for m in maps}
        decided = np.hstack([self.law.columns(names), *(columns[m.term] @ m.directions.T for m in maps)])
        found = []
        for each in maps:
            answer = -solve_columns(decided, columns[each.term], RANK)
            rows = {name: row for name, row in zip(names, answer, strict=False) if name not in DRIFT}
            found.append(replace(each, answers=rows))
        return found

    def _levels(self, names: Sequence[str], held: Mapping[str, MappedTerm]) -> dict[str, float]:
        """Return how strongly each map is pulled to its mean: not at all, unless diffusion would be backward somewhere.

        That happens where there is little to see, and no rollout survives it.
        """
        design, parts = self._design(names, held)
        scale = _scales(design, len(names))
        unit = design / scale
        gram, right = unit.T @ unit + TINY * np.eye(len(scale)), unit.T @ self.law.b
        levels = dict.fromkeys(held, 0.0)
        own = len(names)
        for _ in range(PULLS):
            matrix = gram.copy()
            matrix[own:, own:] += self._ridge(self.ridges, held, levels) / np.outer(scale[own:], scale[own:])
            values = np.linalg.solve(matrix, right) / scale
            means = {name: values[names.index(name)] for name in held}
            backward = [n for n, t in held.items() if t.diffuses and t.lowest(values[parts[n]] / means[n]) < LOWEST]
            if not backward:
                break
            for name in backward:
                power = float(np.mean(np.sum(held[name].columns ** 2, axis=0)))
                levels[name] = max(PULL_STEP * levels[name], LEAST_PULL * power)
        return levels

    def _design(self, names: Sequence[str], held: Mapping[str, MappedTerm]) -> tuple[Array, dict[str, slice]]:
        """Put the columns of a law and of its maps side by side; return where each map's are."""
        columns, parts, begin = [self.law.columns(names)], {}, len(names)
        for name, term in held.items():
            columns.append(term.columns @ term.free)
            parts[name] = slice(begin, begin + columns[-1].shape[1])
            begin = parts[name].stop
        return np.hstack(columns), parts

    def _ridge(
        self,
        ridges: Mapping[str, float],
        held: Mapping[str, MappedTerm] | None = None,
        levels: Mapping[str, float] | None = None,
    ) -> Array:
        """Return the penalties of the maps in the directions in which they are free, as one matrix."""
        chosen, pulls = self.terms if held is None else held, levels or {}
        blocks = [
            ridges[name] * term.free.T @ term.penalty @ term.free + pulls.get(name, 0.0) * np.eye(term.free.shape[1])
            for name, term in chosen.items()
        ]
        total = np.zeros((sum(map(len, blocks)),) * 2)
        begin = 0
        for block in blocks:
            end = begin + len(block)
            total[begin:end, begin:end] = block + TINY * np.trace(block) / len(block) * np.eye(len(block))
            begin = end
        return total

    def _test(self, names: Sequence[str], held: Mapping[str, MappedTerm], name: str) -> tuple[float, int, float]:
        """Test a constant coefficient against smooth departures (Wald), the other maps in place.

        Returns the statistic, its degrees of freedom, and its chance.
        """
        others = {other: term for other, term in held.items() if other != name}
        design, _ = self._design(names, others)
        span, _ = np.linalg.qr(design / np.maximum(np.linalg.norm(design, axis=0), 1e-300))
        residual = self.law.b - span @ (span.T @ self.law.b)
        beside = held[name].coarse - span @ (span.T @ held[name].coarse)
        size = np.linalg.norm(beside, axis=0)
        beside = beside[:, size > RANK * size.max()] / size[size > RANK * size.max()]
        left, values, _ = np.linalg.svd(beside, full_matrices=False)
        basis = left[:, values > 1e-3 * values[0]]
        told = basis.T @ residual
        scores = basis * (residual - basis @ told)[:, None]
        meat = scores.T @ self.law.overlap @ scores
        freedom = basis.shape[1]
        # overlapping test functions are fewer than they seem
        overlap = self.law.overlap.astype(float)
        independent = float(np.trace(overlap) ** 2 / np.sum(overlap**2))
        rest = max(independent - freedom - len(names), 2.0)
        statistic = float(told @ np.linalg.pinv(meat, hermitian=True) @ told) / freedom
        return statistic, freedom, float(fisher.sf(statistic, freedom, rest))


def _directions(covariance: Array, term: MappedTerm) -> Array:
    """Return the changes of a map by one standard error that are largest where there is signal, (n, k)."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    metric = np.diag(term.weights)
    power, along = np.linalg.eigh(root.T @ metric @ root)
    chosen = [n for n in range(len(power))[::-1][:MOST_DIRECTIONS] if power[n] > LEAST_POWER * power[-1]]
    return np.asarray((root @ along[:, chosen]).T)


def choose_maps(
    train: Field,
    drift: Drift,
    weak: Weak,
    laws: Mapping[str, Sequence[Term]],
    settings: Settings,
    total_frames: int,
) -> MapColumns:
    """Put the columns of the maps that the settings ask for beside the law's, and choose their ridges.

    ``weak``: the window's system, into whose ``moments`` is entered how the maps move the centroid; ``laws``: the terms
    of every law that is tried, all of which hold the terms that vary.
    """
    narrow = settings.weak.model_copy(update={"sigma_space": NARROWER * settings.weak.sigma_space})
    if "space" in settings.maps.vary.values():
        columns = weak_system(train, drift, settings.model_copy(update={"weak": narrow}), total_frames).columns
    else:
        columns = weak.columns
    shapes = map_shapes(train, settings)
    every = {term.name: term for terms in laws.values() for term in terms}
    rng = np.random.default_rng([settings.run.seed, 7])
    inside = columns.inside & near_signal(train, columns.widths)
    count = POOL * settings.weak.test_functions
    centres = slice_centres(columns.frames, inside if inside.any() else columns.inside, columns.widths, count, rng)
    if len(np.unique(centres[:, 0])) < 2 * BLOCKS:
        raise InputError("too few frames to say how a coefficient varies; use more of the recording, or leave out vary")
    law = columns.sample(centres)
    around = TimeMoments(train, centres, columns.widths, settings.weak)
    corrected = settings.drift.law_correction and drift.moving and drift.given is None
    terms = {}
    for name, (shape, coarse) in shapes.items():
        pushed: list[Array | None] = [None, None]
        if corrected:
            pushed[:] = [map_moments(train, drift, each, every[name], settings.weak) for each in (shape, coarse)]
            weak.moments[map_key(name)] = np.asarray(pushed[0])
        own = law.columns([name])[:, 0]
        fine, tested = (
            map_columns(around, each, every[name], push) for each, push in zip((shape, coarse), pushed, strict=True)
        )
        basis = (
            shape.on_grid(train.grid).reshape(shape.count, -1) if shape.over == "space" else shape.in_time(train.times)
        )
        terms[name] = MappedTerm(shape, own, fine, tested, basis, is_diffusion(every[name], EMPTY_TO_FULL))
    free = MapColumns(law, terms, {}, {})
    return _choose_ridges(free, sorted(every))


def _choose_ridges(free: MapColumns, every: Sequence[str]) -> MapColumns:
    """Choose each map's ridge in turn, all terms of all laws beside it."""
    names = [*every, *(name for name in DRIFT if name in free.law.names)]
    ridges = dict.fromkeys(free.terms, 1e-3)
    gains = {}
    for name, term in free.terms.items():
        fold = time_blocks(free.law) if term.shape.over == "space" else tiles(free.law)
        left = np.array([_left_out(free, names, ridges | {name: ridge}, fold) for ridge in RIDGES])
        ridges[name] = max(r for r, share in zip(RIDGES, left, strict=True) if share <= NEARLY * left.min())
        others = replace(free, terms={other: t for other, t in free.terms.items() if other != name})
        constant = _left_out(others, names, ridges, fold)
        gains[name] = float(1 - left[RIDGES.index(ridges[name])] / constant) if constant > 0 else 0.0
    return replace(free, ridges=ridges, gains=gains, beside=frozenset(every))


def _scales(design: Array, own: int) -> Array:
    """Return the lengths of the law's own columns, and one length for all columns of maps: some of them are zero."""
    scale = np.linalg.norm(design, axis=0)
    scale[own:] = np.sqrt(np.mean(scale[own:] ** 2)) if design.shape[1] > own else 1.0
    return np.asarray(np.where(scale > 0, scale, 1.0))


def _left_out(free: MapColumns, names: Sequence[str], ridges: Mapping[str, float], fold: NDArray[np.int64]) -> float:
    """Return the share of b that fits to the other parts leave of each left-out part, in all."""
    if free.terms:
        design, _ = free._design(names, free.terms)
        ridge = np.zeros((design.shape[1],) * 2)
        ridge[len(names) :, len(names) :] = free._ridge(ridges)
    else:
        design = free.law.columns(names)
        ridge = np.zeros((design.shape[1],) * 2)
    scale = _scales(design, len(names))
    unit, b = design / scale, free.law.b
    extra = ridge / np.outer(scale, scale) + TINY * np.eye(len(scale))
    grams = [unit[fold == n].T @ unit[fold == n] for n in range(BLOCKS)]
    rights = [unit[fold == n].T @ b[fold == n] for n in range(BLOCKS)]
    left = 0.0
    for n in range(BLOCKS):
        gram = sum(g for m, g in enumerate(grams) if m != n) + extra * (1 - 1 / BLOCKS)
        right = sum(r for m, r in enumerate(rights) if m != n)
        here = fold == n
        left += float(np.sum((b[here] - unit[here] @ np.linalg.solve(gram, right)) ** 2))
    return left / float(b @ b)
