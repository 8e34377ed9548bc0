"""One more term in the rollout: what each term that a law lacks would be beside it, and where the law would go.

The weak form sees a term by what it does within a test function, and noise hides a small one there. A rollout adds up
what it does over the whole window. At the calibrated law, with the terms that it lacks at zero, one pass of rollouts
gives the normal equations of law, drift, initial frame and every one of these terms (``calibration.linear``), and a
Gauss–Newton step for the law with each of them. Errors come from how blocks of frames disagree about that step,

    cov = H⁻¹ (Σ_b g_b g_bᵀ) H⁻¹,      g_b = Σ_{t in b} Jᵀr after the step,

so that noise which lasts for several frames, and is the same over parts of the picture, counts as what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from video2pde.calibration import Calibration, make_problem
from video2pde.calibration.blocks import LAW
from video2pde.calibration.linear import Linear
from video2pde.field import Field
from video2pde.fit.result import Suspicion
from video2pde.settings import Settings
from video2pde.terms import CATALOGUE
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion
from video2pde.terms.words import describe

Array = NDArray[np.float64]

ASKED = ("constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian", "porous")
"""Terms that are tried one by one where the law lacks them: those of the libraries."""
SEEN = 25.0
"""Standard errors from zero at which a term is seen. Blocks of frames know nothing of what errs in the same way all
along: on films of right laws, encoder and grid reach 16 where a coefficient of the law moves with it."""
SURE = 2.0
"""Standard errors that are taken off a shift of the law's coefficients."""
BLOCKS = 12
"""Blocks of frames that errors are taken from."""
SINGULAR = 1e-10
"""Singular value of the scaled normal equations, relative to the largest, below which a direction counts as none."""


@dataclass(frozen=True, eq=False)
class Omitted:
    """A term that a law lacks: its coefficient beside the law, ``value`` ± ``error``.

    ``coefficients`` of the law with it; ``shifts`` by term: how far it moves then, beyond noise; ``removes``: the share
    of the rollout's squared error that the term takes away.
    """

    name: str
    value: float
    error: float
    coefficients: Mapping[str, float]
    shifts: Mapping[str, float]
    removes: float

    @property
    def deviations(self) -> float:
        """Its distance from zero in standard errors."""
        return abs(self.value) / max(self.error, 1e-300)

    @property
    def runs_forward(self) -> bool:
        """Whether diffusion stays forward with it: backward, it says what another term could."""
        whole = {**self.coefficients, self.name: self.value}
        known = [(CATALOGUE[name], value) for name, value in whole.items() if name in CATALOGUE]
        return all(value >= 0 or not is_diffusion(term, EMPTY_TO_FULL) for term, value in known)

    def moves(self, widths: Mapping[str, float]) -> float:
        """Say by how many half-widths of its interval a coefficient of the law moves."""
        return max((shift / widths[name] for name, shift in self.shifts.items() if widths[name] > 0), default=0.0)


def ask_rollout(calibration: Calibration, train: Field, settings: Settings) -> tuple[Omitted, ...]:
    """Ask for every term of :data:`ASKED` that a calibrated law lacks; none where its rollouts cannot say.

    That is so beside flows and maps, under constraints, and where a law that grows was fitted with its initial frame.
    """
    fit, own = calibration.fit, [term.name for term in calibration.terms]
    plain = calibration.model.flow is None and not calibration.maps and not calibration.held
    lacks = [name for name in ASKED if name not in own]
    if not (plain and fit.converged and len(fit.base) and not fit.whole and lacks) or np.isfinite(fit.floor):
        return ()
    terms = (*calibration.terms, *(CATALOGUE[name] for name in lacks))
    values = np.concatenate([fit.coefficients, np.zeros(len(lacks))])
    still = {term.name: np.zeros((len(train), 2)) for term in terms}
    known = dict(zip((term.name for term in terms), values.tolist(), strict=True))
    problem = make_problem(train, terms, known, fit.velocity, still, settings).unclipped()
    look = problem.look({LAW: values}, fit.start, fit.base, fit.modes)
    sums = look.sum_up()
    if isinstance(sums, str):
        return ()
    whole = Linear.of(sums, look.weights, problem.split.counted)
    others = [n for n in range(len(whole.slope)) if not len(own) <= n < len(terms)]
    alone = whole.only(np.array(others))
    gained = -float(alone.slope @ alone.solve())
    found = []
    for place, name in enumerate(lacks, start=len(own)):
        linear = whole.only(np.array([place, *others]))
        step = linear.solve()
        errors = _errors(linear, sums, step)
        law = slice(1, 1 + len(own))
        shifts = np.maximum(np.abs(step[law]) - SURE * errors[law], 0.0)
        found.append(
            Omitted(
                name=name,
                value=float(step[0]),
                error=float(errors[0]),
                coefficients=dict(zip(own, (fit.coefficients + step[law]).tolist(), strict=True)),
                shifts=dict(zip(own, shifts.tolist(), strict=True)),
                removes=(-float(linear.slope @ step) - gained) / whole.cost,
            )
        )
    return tuple(found)


def _errors(linear: Linear, sums: Array, step: Array) -> Array:
    """Return standard errors of a step, (n,), from blocks of frames; ``sums``: see ``Linear.of``."""
    used = np.where(linear.counted[:, None, None], sums, 0.0)
    moved = np.einsum("ntc,n->tc", linear.weights, step)
    left = used[:, :-1, -1] + np.einsum("tcd,td->tc", used[:, :-1, :-1], moved)
    slopes = np.einsum("ntc,tc->tn", linear.weights, left)
    ends = np.linspace(0, len(slopes), min(BLOCKS, len(slopes)) + 1).astype(int)
    blocks = np.stack([slopes[a:b].sum(axis=0) for a, b in pairwise(ends)])
    size = np.sqrt(np.maximum(np.diag(linear.hessian), 1e-300))
    inverse = np.linalg.pinv(linear.hessian / np.outer(size, size), rcond=SINGULAR, hermitian=True)
    return np.asarray(np.linalg.norm(blocks / size @ inverse, axis=0) / size)


def name_omitted(found: tuple[Omitted, ...], library: str, widths: Mapping[str, float]) -> Suspicion | None:
    """Name the term that takes most away, of those that are seen and move a coefficient out of its interval."""
    telling = [each for each in found if each.deviations > SEEN and each.runs_forward and each.moves(widths) > 1.0]
    if not telling:
        return None
    best = max(telling, key=lambda each: each.removes)
    with_it = ", ".join(f"{name} {value:.3g}" for name, value in {**best.coefficients, best.name: best.value}.items())
    law = ",".join([*best.coefficients, best.name])
    return Suspicion(
        name=f"missing {best.name}, in rollouts",
        law=library,
        removes=best.removes,
        chance=0.0,
        log_chance=float(norm.logsf(best.deviations) / np.log(10)),
        columns=1,
        after=float("nan"),
        coefficients=best.coefficients,
        moves=best.moves(widths),
        criterion=float("inf"),
        words=(
            f"with {describe(CATALOGUE[best.name]).text} beside it, rollouts over the training window fit better, and "
            f"the law would be another: {with_it}; try --law {law}"
        ),
        cure=f"try --law {law}",
        material=False,
        shifts=best.shifts,
    )
