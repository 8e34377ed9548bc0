"""One more term in the rollout: what each term that a law lacks would be beside it, and where the law would go.

The weak form sees a term by what it does within a test function, and noise hides a small one there. A rollout adds up
what it does over the whole window. At the calibrated law, with the terms that it lacks at zero, one pass of rollouts
gives the normal equations of law, drift, initial frame and every one of these terms (``calibration.linear``), and a
Gauss–Newton step for the law with each of them. Errors come from how blocks of frames disagree about that step,

    cov = H⁻¹ (Σ_b g_b g_bᵀ) H⁻¹,      g_b = Σ_{t in b} Jᵀr after the step,

so that noise which lasts for several frames, and is the same over parts of the picture, counts as what it is. A coarse
grid makes up terms, too: what it adds to the step is found by a fit to a finer truth (``calibration.finer``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from video2pde.calibration import Calibration, make_problem
from video2pde.calibration.blocks import LAW
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.further import moved, Omitted
from video2pde.calibration.linear import Linear
from video2pde.calibration.problem import Problem
from video2pde.field import Field
from video2pde.fit.result import Suspicion
from video2pde.settings import Settings
from video2pde.terms import CATALOGUE
from video2pde.terms.words import describe

Array = NDArray[np.float64]

ASKED = ("constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian", "porous")
"""Terms that are tried one by one where the law lacks them: those of the libraries."""
CERTAIN = 25.0
"""Standard errors from which the law with the term is calibrated and competes: no right law was seen to come near."""
BLOCKS = 12
"""Blocks of frames that errors are taken from."""
ALIKE = 1e-5
"""Share of a term's effect, squared, that law, drift and initial frame cannot have, from which it can be asked for."""
SINGULAR = 1e-10
"""Singular value of the scaled normal equations, relative to the largest, below which a direction counts as none."""


def ask_rollout(calibration: Calibration, train: Field, settings: Settings) -> tuple[Omitted, ...]:
    """Ask for every term of :data:`ASKED` that a calibrated law lacks; none where its rollouts cannot say.

    That is so beside flows and maps, under constraints, and where a law that grows was fitted with its initial frame.
    What the grid adds is still in the answers. A law that was asked once keeps its answers (``Calibration.asked``).
    """
    if calibration.asked is not None:
        return calibration.asked
    fit, own = calibration.fit, [term.name for term in calibration.terms]
    plain = calibration.model.flow is None and not calibration.maps and not calibration.held
    lacks = [name for name in ASKED if name not in own]
    if not (plain and fit.converged and not fit.whole and lacks) or np.isfinite(fit.floor):
        return ()
    # one order of terms, and so one kernel, for all laws of the libraries
    names = list(ASKED) if set(own) <= set(ASKED) else [*own, *lacks]
    problem, values = _with(calibration, names, train, settings)
    look = problem.unclipped().look({LAW: values}, fit.start, fit.base, fit.modes)
    sums = look.sum_up()
    if isinstance(sums, str):
        return ()
    whole = Linear.of(sums, look.weights, problem.split.counted)
    known = [names.index(name) for name in own]
    others = [*known, *range(len(names), len(whole.slope))]
    alone = whole.only(np.array(others))
    gained = -float(alone.slope @ alone.solve())
    found = []
    for name in lacks:
        linear = whole.only(np.array([names.index(name), *others]))
        if not _says_more(linear.hessian):
            continue  # beside a tensor, the Laplacian is what the law says already
        step = linear.solve()
        errors = _errors(linear, sums, step)
        law = slice(1, 1 + len(own))
        found.append(
            Omitted(
                name=name,
                value=float(step[0]),
                error=float(errors[0]),
                coefficients=dict(zip(own, (fit.coefficients + step[law]).tolist(), strict=True)),
                errors=dict(zip(own, errors[law].tolist(), strict=True)),
                removes=(-float(linear.slope @ step) - gained) / whole.cost,
            )
        )
    return tuple(found)


def _with(calibration: Calibration, names: Sequence[str], train: Field, settings: Settings) -> tuple[Problem, Array]:
    """Pose the fit of a law with further terms, in the order of ``names``; and its coefficients, zero for those."""
    fit, own = calibration.fit, {term.name: term for term in calibration.terms}
    known = {**dict.fromkeys(names, 0.0), **dict(zip(own, fit.coefficients.tolist(), strict=True))}
    terms = tuple(own.get(name) or CATALOGUE[name] for name in names)
    still = {name: np.zeros((len(train), 2)) for name in names}
    return make_problem(train, terms, known, fit.velocity, still, settings), np.array([known[name] for name in names])


def _grid_bias(calibration: Calibration, name: str, train: Field, settings: Settings) -> Array:
    """Return what the grid adds to the coefficients of a law with one more term, which is zero."""
    fit = calibration.fit
    problem, values = _with(calibration, [*(term.name for term in calibration.terms), name], train, settings)
    still = {block: np.zeros_like(found) for block, found in fit.values.items()}
    terms = tuple(term.name for term in problem.terms)
    return discretisation_bias(problem, replace(fit, terms=terms, values={**still, LAW: values}))


def _says_more(hessian: Array) -> bool:
    """Tell whether the first unknown's effect is more than what the others together can do."""
    among, beside, own = hessian[1:, 1:], hessian[1:, 0], float(hessian[0, 0])
    size = np.sqrt(np.maximum(np.diag(among), 1e-300))
    same = beside / size @ np.linalg.lstsq(among / np.outer(size, size), beside / size, rcond=SINGULAR)[0]
    return bool(own - same > ALIKE * own)


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


def find_omitted(
    calibration: Calibration, train: Field, settings: Settings, widths: Mapping[str, float]
) -> Omitted | None:
    """Find the term that takes most away, of those that are seen and move a coefficient out of its interval.

    ``widths``: half-widths of the intervals, by term.
    """
    fitted = dict(zip((term.name for term in calibration.terms), calibration.fit.coefficients.tolist(), strict=True))
    telling = [each for each in ask_rollout(calibration, train, settings) if each.tells(fitted, widths)]
    less_grid = [each.less(_grid_bias(calibration, each.name, train, settings)) for each in telling]
    telling = [each for each in less_grid if each.tells(_settled(calibration), widths)]
    return max(telling, key=lambda each: each.removes, default=None)


def _settled(calibration: Calibration) -> dict[str, float]:
    return {name: estimate.value for name, estimate in calibration.estimates.items()}


def name_omitted(
    calibration: Calibration, train: Field, settings: Settings, widths: Mapping[str, float]
) -> Suspicion | None:
    """Put what :func:`find_omitted` finds into words; None where it finds nothing."""
    best = find_omitted(calibration, train, settings, widths)
    if best is None:
        return None
    shifts = best.shifts(_settled(calibration))
    with_it = ", ".join(f"{name} {value:.3g}" for name, value in {**best.coefficients, best.name: best.value}.items())
    law = ",".join([*best.coefficients, best.name])
    return Suspicion(
        name=f"missing {best.name}, in rollouts",
        law=calibration.library,
        removes=best.removes,
        chance=0.0,
        log_chance=float(norm.logsf(best.deviations) / np.log(10)),
        columns=1,
        after=float("nan"),
        coefficients=best.coefficients,
        moves=moved(shifts, widths),
        criterion=float("inf"),
        words=(
            f"with {describe(CATALOGUE[best.name]).text} beside it, rollouts over the training window fit better "
            f"(try --law {law}), and the law would be another: {with_it}"
        ),
        cure=f"try --law {law}",
        material=False,
        shifts=shifts,
    )
