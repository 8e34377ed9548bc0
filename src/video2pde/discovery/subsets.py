"""Every subset of a weak system's columns, by how much of the signal it leaves.

    left(S) = ‖b̂ − Θ̂_S s‖² = 1 − r_Sᵀ R_S⁻¹ r_S,      R = Θ̂ᵀΘ̂, r = Θ̂ᵀb̂ (``regression.Normal``)

The walk goes down the tree of subsets. A term is appended to the Cholesky factor of those before it, R_S = LLᵀ, which
costs |S|² operations, and takes y² from what is left, y the new entry of L⁻¹r_S. Its pivot is the share of the column
that the others cannot make up: where nothing is left of it, this subset and all that hold it mean nothing, and the walk
turns back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.compiled import njit
from video2pde.discovery.regression import Normal

Array = NDArray[np.float64]

KEPT = 48
"""Subsets of each size that are kept, the best first: some of them cannot be a law."""
COLLINEAR = 64
"""Subsets with a term that the others make up, that are kept, the smallest first."""


@dataclass(frozen=True)
class Subset:
    """Some of the units of a search, by their numbers, and the share of ‖b‖² that they leave."""

    units: tuple[int, ...]
    left: float


@dataclass(frozen=True, eq=False)
class Subsets:
    """What a walk over all subsets has found.

    ``best`` by number of terms, the best first; ``collinear``: the smallest sets of units of which one is made up by
    the others; ``visited``: subsets that were looked at.
    """

    best: dict[int, tuple[Subset, ...]]
    collinear: tuple[tuple[int, ...], ...]
    visited: int


def walk_subsets(
    normal: Normal, units: Sequence[Sequence[str]], always: Sequence[str] = (), most: int = 20, least: float = 1e-6
) -> Subsets:
    """Look at every subset of the units with up to ``most`` terms.

    Parameters
    ----------
    normal : normal equations with unit columns.
    units : names of columns that enter together; most have one. 62 at most.
    always : columns that belong to every subset, such as the drift's; they do not count as terms.
    most : terms of a subset.
    least : share of a column's square that the others must leave of it.

    Returns
    -------
    The best subsets of every size.
    """
    place = {name: index for index, name in enumerate(normal.names)}
    order = [place[name] for group in (always, *units) for name in group]
    ends = np.cumsum([len(always), *(len(unit) for unit in units)])
    most = min(most, int(ends[-1] - ends[0]))
    left, masks = np.full((most + 1, KEPT), np.inf), np.zeros((most + 1, KEPT), np.int64)
    tied, sizes = np.zeros(COLLINEAR, np.int64), np.full(COLLINEAR, len(units) + 1)
    gram, right = np.ascontiguousarray(normal.gram[np.ix_(order, order)]), normal.right[order]
    visited = int(_walk(gram, right, ends, most, least, left, masks, tied, sizes))
    best = {
        size: tuple(
            Subset(_members(int(mask)), max(float(share), 0.0))
            for mask, share in zip(masks[size], left[size], strict=True)
            if np.isfinite(share)
        )
        for size in range(1, most + 1)
    }
    found = [_members(int(mask)) for mask, size in zip(tied, sizes, strict=True) if size <= len(units)]
    return Subsets({size: subsets for size, subsets in best.items() if subsets}, _smallest(found), visited)


def _members(mask: int) -> tuple[int, ...]:
    return tuple(index for index in range(mask.bit_length()) if mask >> index & 1)


def _smallest(sets: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Drop every set that holds another one."""
    kept: list[tuple[int, ...]] = []
    for each in sorted(set(sets), key=lambda each: (len(each), each)):
        if not any(set(other) <= set(each) for other in kept):
            kept.append(each)
    return tuple(kept)


@njit(nogil=True)
def _append(
    gram: Array, right: Array, column: int, chosen: NDArray[np.int64], count: int, lower: Array, y: Array, least: float
) -> bool:
    """Append a column to the factor of the ``count`` chosen ones; say no where they make it up."""
    pivot = gram[column, column]
    value = right[column]
    for j in range(count):
        entry = gram[column, chosen[j]]
        for i in range(j):
            entry -= lower[count, i] * lower[j, i]
        entry /= lower[j, j]
        lower[count, j] = entry
        pivot -= entry * entry
        value -= entry * y[j]
    if pivot < least:
        return False
    lower[count, count] = np.sqrt(pivot)
    y[count] = value / lower[count, count]
    chosen[count] = column
    return True


@njit(nogil=True)
def _insert(values: Array, masks: NDArray[np.int64], value: float, mask: int) -> None:
    """Put a value into its place in an ascending list; the last one falls out."""
    place = len(values) - 1
    if value >= values[place]:
        return
    while place > 0 and values[place - 1] > value:
        values[place], masks[place] = values[place - 1], masks[place - 1]
        place -= 1
    values[place], masks[place] = value, mask


@njit(nogil=True)
def _walk(
    gram: Array,
    right: Array,
    ends: NDArray[np.int64],
    most: int,
    least: float,
    left: Array,
    masks: NDArray[np.int64],
    tied: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> int:
    """Walk over all subsets, depth first; unit n has the columns ends[n] to ends[n + 1], those before are always in."""
    units, columns = len(ends) - 1, len(right)
    lower, y = np.zeros((columns + 1, columns + 1)), np.zeros(columns + 1)
    chosen = np.zeros(columns + 1, np.int64)
    path, counts, mask_at = np.zeros(units + 1, np.int64), np.zeros(units + 1, np.int64), np.zeros(units + 1, np.int64)
    left_at = np.ones(units + 1)
    for column in range(ends[0]):
        if _append(gram, right, column, chosen, counts[0], lower, y, least):
            left_at[0] -= y[counts[0]] ** 2
            counts[0] += 1
    depth, unit, visited = 0, 0, 0
    while True:
        if unit == units:
            if depth == 0:
                return visited
            unit = path[depth] + 1
            depth -= 1
            continue
        count, rest, fits = counts[depth], left_at[depth], True
        terms = count - counts[0] + ends[unit + 1] - ends[unit]
        if terms <= most:
            for column in range(ends[unit], ends[unit + 1]):
                fits = fits and _append(gram, right, column, chosen, count, lower, y, least)
                if fits:
                    rest -= y[count] ** 2
                    count += 1
            visited += 1
            mask = mask_at[depth] | (1 << unit)
            if fits:
                _insert(left[terms], masks[terms], rest, mask)
                depth += 1
                path[depth], counts[depth], mask_at[depth], left_at[depth] = unit, count, mask, rest
            else:
                _insert(sizes, tied, depth + 1, mask)
        unit += 1
