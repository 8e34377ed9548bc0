"""The absolute test: is what the calibrated law leaves within what noise leaves, at every scale?

Thresholds come from theory. A mean of squares is compared with the χ² distribution of as many degrees of freedom as
the residual has, the worst test function or block with the largest of as many normal variables (Bonferroni); together
a right law fails in one recording of a hundred. Beyond noise, what the recording is known to get wrong is allowed for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from video2pde.calibration import Calibration
from video2pde.calibration.budget import GRID, GRID_FLOOR
from video2pde.discovery.flows import flow_columns
from video2pde.discovery.jets import FilmJets
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.fit.blocks import block_residual, block_scales, BlockScale, lasting_worst
from video2pde.fit.consistency import compare_parts, disagreement, Part
from video2pde.fit.explain import ask_suspects, Asked, doubts, half_widths, name_cause, name_rival, TELLING, undecided
from video2pde.fit.faults import Faults, recording_faults
from video2pde.fit.law import fit_law, LawFit, slow_noise, TELL_FAULTS
from video2pde.fit.mapped import see_maps, Sight
from video2pde.fit.maps import make_maps
from video2pde.fit.noise import film_memory, Memory
from video2pde.fit.omitted import name_omitted
from video2pde.fit.result import FitTest, Scale, Suspicion
from video2pde.fit.rules import ask_edges, ask_front, NARROW_FRONT, unresolved_share
from video2pde.fit.suspects import answered_by, OFTEN_MISSING, out_of_place
from video2pde.fit.view import build_view, View
from video2pde.settings import Settings
from video2pde.terms import CATALOGUE, libraries
from video2pde.terms.catalogue import TENSOR
from video2pde.terms.symbol import multiple_of

Array = NDArray[np.float64]

FALSE_ALARMS = 0.01
"""Share of recordings of a right law that may fail by chance, over all scales and both tests."""
TESTS = 24
"""Tests that share it: three widths of test functions and nine sizes of blocks, a mean and a worst value each."""
NOISE_KNOWN = 0.4
"""How well the variance of the noise is known, relative: an encoder makes it uneven in space and time."""
WIDTHS = (0.5, 1.0, 2.0)
"""Widths of the test functions, relative to the usual ones."""
ENOUGH = 3
"""Test functions for each unknown of the fit from which its residual says something."""
COMPARED = (2, 2)
"""Merged blocks (space, time) by which laws are compared with each other."""


def test_laws(
    train: Field,
    drift: Drift,
    moments: Mapping[str, Array],
    calibrations: Mapping[str, Calibration],
    settings: Settings,
    total_frames: int,
) -> dict[str, FitTest]:
    """Test every calibrated law on the training window; ``moments`` by term as discovery found them.

    All laws are looked at on all scales. Suspects and parts of the window are asked about the laws that pass there,
    or, where none does whose fit has converged, about the one that leaves least; what explains it is the likeliest
    cause for all of them.
    """
    if not calibrations:
        return {}
    tests, asked = _judge_all(_Bench.of(train, drift, moments, calibrations, settings, total_frames), calibrations)
    # rollouts are asked once the weak system and its jets are let go: either takes as much memory
    return {
        name: _ask_rollouts(test, calibrations[name], train, settings) if test.passes and name in asked else test
        for name, test in tests.items()
    }


test_laws.__test__ = False  # type: ignore[attr-defined]


def _judge_all(bench: _Bench, calibrations: Mapping[str, Calibration]) -> tuple[dict[str, FitTest], frozenset[str]]:
    """Judge all laws by what they leave, and say which of them the suspects were asked about."""
    looks = {name: bench.look(name, calibration) for name, calibration in calibrations.items()}
    passing = [name for name, look in looks.items() if not look.failing]
    usable = [name for name, calibration in calibrations.items() if calibration.fit.converged] or list(looks)
    closest = min(usable, key=lambda name: looks[name].excess)
    asked = frozenset([*passing, closest])
    tests = {name: bench.judge(look, name in asked) for name, look in looks.items()}
    if closest not in passing:
        best = tests[closest]
        for name, test in tests.items():
            if not test.suspects:
                tests[name] = replace(test, suspects=best.suspects, cause=best.cause)
    return tests, asked


def _ask_rollouts(test: FitTest, calibration: Calibration, train: Field, settings: Settings) -> FitTest:
    """Ask the rollouts of a law that passes for one more term, and let its intervals reach there."""
    one_more = name_omitted(calibration, train, settings, _widths_of(calibration))
    if one_more is None:
        return test
    lack = _in_quadrature(test.lack, one_more.shifts)
    return replace(test, suspects=(one_more, *test.suspects), lack=lack, rival=test.rival or one_more.words)


def _widths_of(calibration: Calibration) -> dict[str, float]:
    """Return half-widths by term; a coefficient that is held has no interval that an effect could leave."""
    return {**half_widths(calibration), **dict.fromkeys(calibration.held, float("inf"))}


@dataclass(frozen=True, eq=False)
class _Look:
    """One law on all scales."""

    name: str
    calibration: Calibration
    law: LawFit
    others: list[tuple[str, View, LawFit]]
    scales: tuple[Scale, ...]
    blocks: list[BlockScale]
    slow: float
    extra: Array | None
    sight: Sight

    @property
    def failing(self) -> list[Scale]:
        return [scale for scale in self.scales if not scale.passes]

    @property
    def excess(self) -> float:
        return max((scale.excess for scale in self.scales), default=np.inf)


@dataclass(frozen=True, eq=False)
class _Bench:
    """What all laws of a recording are tested with."""

    train: Field
    drift: Drift
    settings: Settings
    views: list[View]
    faults: Faults
    memory: Memory
    named: dict[str, tuple[str, ...]]
    moments: Mapping[str, Array]

    @classmethod
    def of(
        cls,
        train: Field,
        drift: Drift,
        moments: Mapping[str, Array],
        calibrations: Mapping[str, Calibration],
        settings: Settings,
        total_frames: int,
    ) -> _Bench:
        memory = film_memory(train.values)
        named = libraries(settings)
        terms = {term.name: term for library in named.values() for term in library}
        terms |= {name: CATALOGUE[name] for name in OFTEN_MISSING}
        own = {name: CATALOGUE[name] for name in TELL_FAULTS}
        for calibration in calibrations.values():
            own |= {term.name: term for term in calibration.terms}
        jets = FilmJets(train, settings.weak).keep()
        views = [
            build_view(
                train,
                drift.velocity,
                # other laws and missing terms are asked with the usual widths alone
                list((terms | own if width == 1.0 else own).values()),
                settings,
                total_frames,
                moments=moments,
                memory=memory,
                scale=width,
                given=drift.given,
                jets=jets,
            )
            for width in WIDTHS
        ]
        listed = {name: tuple(term.name for term in library) for name, library in named.items()}
        return cls(train, drift, settings, views, recording_faults(train), memory, listed, moments)

    def look(self, name: str, calibration: Calibration) -> _Look:
        """Look at what a law leaves on all scales, in weak form and as a rollout."""
        names = [term.name for term in calibration.terms]
        seen = [see_maps(view, calibration, self.moments) for view in self.views]
        views = [sight.view for sight in seen]
        extras = [_flow_extra(s.view, self.drift, calibration) if s.free is None else s.free for s in seen]
        slow = slow_noise(views[0], names, extras[0])
        fits = [
            fit_law(sight.view, names, self.faults, extra, slow, sight.allowed)
            for sight, extra in zip(seen, extras, strict=True)
        ]
        told = [
            (f"{width:g} × width", view, fit)
            for width, view, fit in zip(WIDTHS, views, fits, strict=True)
            if len(fit.target) >= ENOUGH * fit.design.shape[1]
        ]
        blocks = _blocks(calibration, self.train, self.settings, self.faults, self.memory)
        scales = [_weak_scale(view, fit) for _, view, fit in told] + [_block_scale(b, self.train) for b in blocks]
        usual = WIDTHS.index(1.0)
        others = [entry for entry in told if entry[1] is not views[usual]]
        return _Look(
            name=name,
            calibration=calibration,
            law=fits[usual],
            others=others,
            scales=tuple(scales),
            blocks=blocks,
            slow=slow,
            extra=extras[usual],
            sight=seen[usual],
        )

    def judge(self, look: _Look, asked: bool) -> FitTest:
        """Say whether a law passes; with ``asked`` after hearing the suspects and comparing parts of the window."""
        law, names = look.law, look.law.names
        widths = _widths_of(look.calibration)
        view = look.sight.view
        question = Asked(
            view,
            law,
            look.name,
            widths,
            self.settings.recording.observable,
            _limit(law.freedom),
            answered_by(self.settings.recording, names, look.calibration.maps),
            out_of_place=out_of_place(self.settings.frap),
        )
        front = ask_front(self.train, look.calibration)
        suspects = (*(() if front is None else (front,)), *(ask_suspects(question) if asked else ()))
        in_time = any(each.over == "time" for each in look.calibration.maps)
        parts = compare_parts(view, law, look.others, in_time) if asked else ()
        material = [suspect for suspect in suspects if suspect.material]
        told = law.noisy > TELLING
        split = [part for part in parts if told and any(part.excess[name] > widths[name] for name in names)]
        passes = not (look.failing or material or split)

        def refit(others: Sequence[str]) -> LawFit:
            return fit_law(view, others, self.faults, look.extra, look.slow, look.sight.allowed)

        cause = front
        if cause is None and asked and not passes:
            cause = name_cause(question, self.named, refit) or ask_edges(self.train, look.calibration)
        rival = name_rival(question, self.named, refit) if passes else ""
        heard = () if passes else undecided(question, suspects)
        unresolved = unresolved_share(self.train, look.calibration)
        apart = disagreement(law, look.calibration) if passes else {}
        unseen = doubts(question) if passes and asked else {}
        lack = _in_quadrature(_lack(law, heard, cause, parts, look.calibration, unresolved), apart, unseen)
        compared = next((b for b in look.blocks if b.merged == COMPARED), None)
        return FitTest(
            library=look.name,
            passes=passes,
            reason=_reason(look.name, look.failing, material, split),
            unexplained=law.unexplained,
            expected=law.expected,
            scales=look.scales,
            suspects=suspects,
            consistency=parts,
            lack=lack,
            apart=apart,
            cause=cause,
            rival=rival,
            blocks=np.zeros(0) if compared is None else compared.standard[np.isfinite(compared.standard)] ** 2,
            maps=make_maps(view, law, look.blocks, self.settings.run.seed) if asked else None,
        )


def _flow_extra(view: View, drift: Drift, calibration: Calibration) -> Array | None:
    """Return the columns of the flow that belongs to a law; None where there is none but the uniform drift."""
    flow = calibration.model.flow
    if flow is None or flow.kind == "given":
        return None
    columns = flow_columns(view.moments, drift, flow.shape)
    return columns.reshape(len(columns), -1)


def _limit(freedom: float) -> float:
    """Return the mean square, in units of what is expected, that a right law exceeds too seldom to be believed."""
    nu = max(freedom, 1.0)
    return float(chi2.isf(FALSE_ALARMS / TESTS, nu)) / nu * (1 + NOISE_KNOWN)


def _worst_limit(count: int) -> float:
    return float(norm.isf(FALSE_ALARMS / TESTS / (2 * max(count, 1))) * np.sqrt(1 + NOISE_KNOWN))


def _weak_scale(view: View, law: LawFit) -> Scale:
    grid = view.film.grid
    return Scale(
        form="weak",
        space=view.widths.x * grid.dx,
        time=view.widths.t * view.film.dt,
        count=len(law.target),
        unexplained=law.unexplained,
        expected=law.expected,
        ratio=law.unexplained / law.expected,
        limit=_limit(law.freedom),
        worst=lasting_worst(view.lay_out(law.standardised)),
        worst_limit=_worst_limit(len(law.target)),
    )


def _blocks(
    calibration: Calibration, train: Field, settings: Settings, faults: Faults, memory: Memory
) -> list[BlockScale]:
    residual = block_residual(calibration, train, settings)
    if residual is None:
        return []
    sizes = np.maximum(np.abs(calibration.fit.coefficients), 1e-300)
    grid = float(np.max(np.abs(calibration.correction(GRID).shift) / sizes))
    return block_scales(residual, train, faults, memory, max(grid, GRID_FLOOR))


def _block_scale(scale: BlockScale, train: Field) -> Scale:
    found = np.isfinite(scale.standard)
    count = int(found.sum())
    standard = scale.standard[found]
    return Scale(
        form="rollout",
        space=train.grid.width / scale.standard.shape[2],
        time=train.duration / scale.standard.shape[0],
        count=count,
        unexplained=float(np.mean(scale.left[found] ** 2)),
        expected=float(np.mean((scale.noise**2)[found])),
        ratio=float(np.mean(standard**2)),
        limit=_limit(count),
        worst=scale.worst,
        worst_limit=_worst_limit(count),
    )


def _lack(
    law: LawFit,
    suspects: Sequence[Suspicion],
    cause: Suspicion | None,
    parts: Sequence[Part],
    calibration: Calibration,
    unresolved: float,
) -> dict[str, float]:
    """Return by term how much further its interval must reach: to the value with a cause, and over the parts.

    ``unresolved``: share of Δu's coefficient that the grid may get wrong.
    """
    names = law.names
    reach = {name: max((part.excess[name] for part in parts), default=0.0) for name in names}
    moved = [s for s in suspects if s.material] + ([cause] if cause is not None else [])
    for suspicion in moved:
        for name, shift in _shifts(suspicion, law, calibration.library).items():
            reach[name] = max(reach[name], min(shift, abs(law.coefficients[name])))
    for term in calibration.terms:
        if multiple_of(term, CATALOGUE["laplacian"]) or term.name in TENSOR:
            reach[term.name] = max(reach[term.name], unresolved * abs(law.coefficients[term.name]))
    if suspects:
        # a law that does not fit is no better known than its two fits agree, in weak form and as a rollout
        for name, error in zip(names, law.coefficient_errors, strict=True):
            gap = abs(law.coefficients[name] - calibration.estimates[name].value)
            reach[name] = max(reach[name], gap - 2 * float(error))
    return reach


def _in_quadrature(reach: Mapping[str, float], *others: Mapping[str, float]) -> dict[str, float]:
    return {
        name: float(np.linalg.norm([more, *(each.get(name, 0.0) for each in others)])) for name, more in reach.items()
    }


def _shifts(suspicion: Suspicion, law: LawFit, library: str) -> Mapping[str, float]:
    """Say by term how far a coefficient lies from its value with an effect: beside this law, or instead of it."""
    if suspicion.law == library:
        return suspicion.shifts
    if not suspicion.coefficients.keys() >= set(law.names):
        return {}
    return {name: abs(suspicion.coefficients[name] - law.coefficients[name]) for name in law.names}


def _reason(name: str, failing: Sequence[Scale], material: Sequence[Suspicion], split: Sequence[Part]) -> str:
    if failing:
        worst = max(failing, key=lambda scale: scale.excess)
        what = "rate of change" if worst.form == "weak" else "rollout"
        return (
            f"averaged over {worst.space:.3g} in length and {worst.time:.3g} s, {name} leaves {worst.ratio:.3g} times "
            f"the square of what noise leaves of the {what} (chance: up to {worst.limit:.2g}), and "
            f"{worst.worst:.3g} standard deviations at the worst place (chance: up to {worst.worst_limit:.2g})"
        )
    if material and material[0].name == NARROW_FRONT:
        return material[0].words
    if material:
        return f"{name} fits, but with {material[0].name} included a coefficient leaves its interval"
    if split:
        return f"{name} has other coefficients in the {split[0].name} than in the whole"
    return f"what {name} leaves is within what noise leaves at every scale"
