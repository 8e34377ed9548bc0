"""What the test of fit has found, as other stages and files use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from video2pde.fit.consistency import Part

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """One scale at which the law was looked at.

    ``form``: ``weak`` or ``rollout``; ``space``, ``time``: size of test function (σ) or block, length units and
    seconds; ``count`` of them; ``unexplained`` and ``expected``: in weak form shares of the signal, for rollouts mean
    squares of u; ``ratio`` and ``limit``: mean square in units of what is expected, and what chance allows;
    ``worst`` and ``worst_limit``: the same for the worst test function or block, in standard deviations.
    """

    form: str
    space: float
    time: float
    count: int
    unexplained: float
    expected: float
    ratio: float
    limit: float
    worst: float
    worst_limit: float

    @property
    def passes(self) -> bool:
        return self.ratio <= self.limit and self.worst <= self.worst_limit

    @property
    def excess(self) -> float:
        """How far beyond what chance allows: 1 is just within."""
        return max(self.ratio / self.limit, (self.worst / self.worst_limit) ** 2)


@dataclass(frozen=True, eq=False)
class Suspicion:
    """One suspect's answer.

    ``removes``: share of what the law leaves that it would take away; ``chance``: the share that noise would give it;
    ``log_chance``: log₁₀ of the probability that noise alone does as much; ``after``: what is left then, as a ratio to
    what is expected; ``coefficients`` of the law with the effect included; ``shifts`` by term: how far it moves then,
    beyond noise; ``moves``: the same in half-widths of its interval; ``law``: the library beside which it stands;
    ``probability``: of the effect, weighed against the law alone and all other effects.
    """

    name: str
    law: str
    removes: float
    chance: float
    log_chance: float
    columns: int
    after: float
    coefficients: Mapping[str, float]
    moves: float
    criterion: float
    words: str
    cure: str
    material: bool
    shifts: Mapping[str, float] = field(default_factory=dict)
    probability: float = 0.0

    @classmethod
    def of_recording(cls, name: str, law: str, words: str, cure: str, *, material: bool) -> Suspicion:
        """Return what the recording itself shows, without columns: beyond doubt where it is material, a hint else."""
        sure = np.inf if material else 0.0
        return cls(
            name=name,
            law=law,
            removes=0.0,
            chance=0.0,
            log_chance=-sure,
            columns=0,
            after=np.nan,
            coefficients={},
            moves=sure,
            criterion=-np.inf if material else np.inf,
            words=words,
            cure=cure,
            material=material,
        )


@dataclass(frozen=True, eq=False)
class Maps:
    """What is left, for the report, beside what noise alone would look like; in standard deviations.

    ``weak`` (t, y, x) at the lattice (NaN where there is no centre) with its ``weak_axes`` in seconds and length units;
    ``blocks`` (t, y, x) at the scale that shows most.
    """

    weak: Array
    weak_noise: Array
    weak_axes: tuple[Array, Array, Array]
    blocks: Array
    blocks_noise: Array
    block_size: tuple[float, float]


@dataclass(frozen=True, eq=False)
class FitTest:
    """The absolute test of one calibrated law.

    ``lack`` by term: half-width that the interval needs beyond its own, in quadrature, for what the law leaves out or
    may leave out; ``apart``: the part of it that comes from the law's two fits, where they disagree; ``cause``: the
    effect that explains it best, if any does; ``rival``: a smaller law with an effect that does as well, in words;
    ``blocks``: squared standardised block means at one scale, the same blocks for every law of a recording.
    """

    library: str
    passes: bool
    reason: str
    unexplained: float
    expected: float
    scales: tuple[Scale, ...]
    suspects: tuple[Suspicion, ...]
    consistency: tuple[Part, ...]
    lack: Mapping[str, float]
    cause: Suspicion | None
    rival: str
    blocks: Array
    maps: Maps | None = None
    apart: Mapping[str, float] = field(default_factory=dict)

    @property
    def worst(self) -> Scale | None:
        """The scale at which the law fails most, or comes nearest to it."""
        return max(self.scales, key=lambda scale: scale.excess, default=None)

    @property
    def misfit(self) -> float:
        """Mean square of block means in units of what noise leaves, at the scale that shows most."""
        found = [scale.ratio for scale in self.scales if scale.form == "rollout"]
        return max(found, default=float("nan"))
