"""Who did it: ask every suspect, name the one that explains most with least, and look for a smaller law with an effect.

Explanations are compared by ν·(what is left)/(what is expected) + k ln ν, ν the degrees of freedom of the residual and
k the number of unknowns, the law's terms included: a cause must take away more than as many unknowns would anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration
from video2pde.fit.doubt import reach_of_doubt, weigh
from video2pde.fit.effects import Context
from video2pde.fit.law import LawFit
from video2pde.fit.result import Suspicion
from video2pde.fit.score import Score, score
from video2pde.fit.suspects import OF_LIGHT, RESPONSE, STEADY_LIGHT, Suspect, SUSPECTS
from video2pde.fit.view import View
from video2pde.fit.words import describe_effect
from video2pde.rollout.model import Model
from video2pde.terms.symbol import is_diffusion

Array = NDArray[np.float64]
Refit = Callable[[Sequence[str]], LawFit]

SIGNIFICANT = -6.0
"""log₁₀ of the probability below which a suspect is no chance: one in ten thousand, over some thirty suspects."""
SUGGESTIVE = -3.0
"""The same for a cause, once the law is known to fail: something is wrong, and the question is only what."""
TELLING = 0.5
"""Share of what a right law leaves that must be noise for a suspect or a part of the window to count: nobody knows the
pattern of a recording's faults."""
SURE = 2.0
"""Standard errors that are taken off a shift of a coefficient: what noise alone moves is no effect."""
NO_INTERVAL = 0.03
"""Relative half-width that stands for an interval that could not be found."""
EXPLAINS = 0.3
"""Share of what is left that a cause must take away to be named."""
TIE = 6.0
"""Difference of criteria from which one explanation is clearly better; of others beside the same law, the simplest is
named, that with the fewest unknowns."""
SIMPLE = 6
"""Columns up to which an effect beside a smaller law is as simple as a larger law."""
CURVED = 3.0
"""|a|/D up to which |∇u|² looks like diffusion seen through a response curve that a camera may well have."""
DECISIVE = 10.0
"""Difference of the criterion beyond which the worse explanation is out of the question (Kass and Raftery)."""
VARYING = ("coefficients in space", "coefficients in time")
"""Suspects whose columns hold the law's own: then a coefficient is a map, and has no single value."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The law that the suspects are asked about, with the half-widths of its coefficients' intervals.

    ``answered``: names of suspects that the settings have answered, such as light that a reference was divided by.
    ``out_of_place``: names of suspects that are compared with others, but are no cause of what was recorded.
    ``measure``: the law whose noise all explanations are measured in, this one where none is given; a wrong law has
    larger rates, and would be allowed more.
    """

    view: View
    law: LawFit
    library: str
    widths: Mapping[str, float]
    observable: str
    limit: float
    answered: frozenset[str] = frozenset()
    out_of_place: frozenset[str] = frozenset()
    measure: LawFit | None = None

    @property
    def noise(self) -> LawFit:
        return self.law if self.measure is None else self.measure

    @property
    def freedom(self) -> float:
        return max(self.noise.freedom, 2.0)

    @cached_property
    def answers(self) -> list[tuple[Suspect, Score]]:
        """What every suspect says about the law, but for those that are asked late."""
        return _ask(self, self.law, lambda suspect: suspect.late)

    @cached_property
    def doubted(self) -> dict[Suspect, float]:
        """The probability of each effect that may be there, weighed against the law alone (see ``doubt``)."""
        if self.law.noisy <= TELLING:
            return {}
        possible = [
            (suspect, answer)
            for suspect, answer in self.answers
            if suspect.name not in VARYING and _runs_forward(self.view, answer.coefficients)
        ]
        weights = weigh([answer for _, answer in possible], self.freedom)
        return {suspect: float(weight) for (suspect, _), weight in zip(possible, weights, strict=True)}

    def criterion(self, left: float, unknowns: int) -> float:
        return self.freedom * left + unknowns * float(np.log(self.freedom))

    def columns(self, index: int, suspect: Suspect, law: LawFit) -> Array:
        """Make a suspect's columns, or take them from an earlier law where they do not depend on it."""
        context = Context(self.view, law, self.observable)
        if suspect.law_bound:
            return suspect.columns(context)
        return self.view.once(("suspect", index), lambda: suspect.columns(context))


def half_widths(calibration: Calibration) -> dict[str, float]:
    """Return the half-width of every coefficient's interval."""
    widths = {}
    for name, estimate in calibration.estimates.items():
        half = (estimate.high - estimate.low) / 2
        widths[name] = half if np.isfinite(half) and half > 0 else NO_INTERVAL * abs(estimate.value)
    return widths


def ask_suspects(asked: Asked) -> tuple[Suspicion, ...]:
    """Ask every suspect about the law, the best explanation first."""
    found = [
        replace(
            _as_suspicion(asked, asked.law, asked.library, suspect, answer),
            probability=asked.doubted.get(suspect, 0.0),
        )
        for suspect, answer in asked.answers
    ]
    return tuple(sorted(found, key=lambda suspicion: suspicion.criterion))


def doubts(asked: Asked) -> dict[str, float]:
    """Return by term what its interval needs for effects that may be there (see ``doubt``)."""
    known = {name: value for name, value in asked.law.coefficients.items() if asked.widths.get(name, 0.0) > 0}
    doubted = {suspect: answer for suspect, answer in asked.answers if suspect in asked.doubted}
    weights = np.array([asked.doubted[suspect] for suspect in doubted])
    return reach_of_doubt(list(doubted.values()), weights, known, asked.widths)


def undecided(asked: Asked, suspects: Sequence[Suspicion]) -> list[Suspicion]:
    """Return the explanations that the best one does not beat beyond doubt.

    Where none explains everything, they are compared in units of what is left by the one that leaves least: nobody
    knows its pattern, and many columns take some of it away by chance.
    """
    compared = [suspicion for suspicion in suspects if np.isfinite(suspicion.criterion)]
    least = max(1.0, min((suspicion.after for suspicion in compared), default=1.0))
    weights = [found.criterion - asked.freedom * found.after * (1 - 1 / least) for found in compared]
    best = min(weights, default=0.0)
    return [found for found, weight in zip(compared, weights, strict=True) if weight <= best + DECISIVE]


def _ask(asked: Asked, law: LawFit, spared: Callable[[Suspect], bool] | None = None) -> list[tuple[Suspect, Score]]:
    """Ask every suspect about a law, but for those that are ``spared``."""
    answers = []
    for index, suspect in enumerate(SUSPECTS):
        if suspect.name in asked.answered or (spared is not None and spared(suspect)):
            continue
        answer = score(law, asked.columns(index, suspect, law))
        if answer is None:
            continue
        if suspect.searched:
            # the best of so many places: chance has had as many tries
            tries = float(np.log10(len(np.unique(asked.view.place))))
            answer = replace(
                answer,
                log_chance=min(answer.log_chance + tries, 0.0),
                unknowns=answer.columns + suspect.searched,
            )
        answers.append((suspect, answer))
    return answers


def _as_suspicion(asked: Asked, law: LawFit, library: str, suspect: Suspect, answer: Score) -> Suspicion:
    after = answer.after / asked.noise.expected
    shifts = _shifts(law, suspect, answer)
    moves = _moves(asked, law, suspect, answer, shifts)
    told = law.noisy > TELLING
    possible = _runs_forward(asked.view, answer.coefficients)
    material = told and possible and answer.log_chance < SIGNIFICANT and moves > 1.0
    context = Context(asked.view, law, asked.observable)
    return Suspicion(
        name=suspect.name,
        law=library,
        removes=answer.removes,
        chance=answer.chance,
        log_chance=answer.log_chance,
        columns=answer.columns,
        after=after,
        coefficients={} if suspect.name in VARYING else answer.coefficients,
        shifts=shifts,
        moves=moves,
        criterion=asked.criterion(after, answer.unknowns + len(law.names)),
        words=describe_effect(suspect, answer.amplitudes, context),
        cure=suspect.cure,
        material=bool(material),
    )


def _runs_forward(view: View, coefficients: Mapping[str, float]) -> bool:
    """Tell whether a law can be run forward with an effect included: diffusion that turns backward explains nothing.

    Then the effect's columns and Δu say the same of this recording, and only their difference is fitted.
    """
    return all(value >= 0 or not is_diffusion(view.terms[name]) for name, value in coefficients.items())


def _shifts(law: LawFit, suspect: Suspect, answer: Score) -> dict[str, float]:
    """Say by term how far its coefficient moves with the effect included, beyond what noise would move it."""
    if suspect.name in VARYING:
        return {}
    return {
        name: max(0.0, abs(answer.coefficients[name] - law.coefficients[name]) - SURE * answer.shift_errors[name])
        for name in law.names
    }


def _moves(asked: Asked, law: LawFit, suspect: Suspect, answer: Score, shifts: Mapping[str, float]) -> float:
    """Say by how many half-widths of its interval a coefficient moves with the effect included, beyond noise.

    Where a coefficient becomes a map, what the map takes away is compared with what a half-width of it would change.
    """
    known = [name for name in law.names if asked.widths.get(name, 0.0) > 0]
    if suspect.name in VARYING:
        taken = np.sqrt(answer.removes * float(law.residual @ law.residual))
        steps = [
            np.linalg.norm(law.without_drift(asked.view.columns([name])[:, 0])) * asked.widths[name] for name in known
        ]
        return float(taken / max(max(steps, default=0.0), 1e-300))
    return max((shifts[name] / asked.widths[name] for name in known), default=0.0)


def name_cause(asked: Asked, named: Mapping[str, tuple[str, ...]], refit: Refit) -> Suspicion | None:
    """Name the effect that explains best what the law leaves, beside this law or beside one that is no larger."""
    others, own = _smaller(asked, named, refit, len(asked.law.names)), set(asked.law.names)
    answers, late = asked.answers, _ask(asked, asked.law, lambda suspect: not suspect.late)
    asked = replace(asked, measure=min((asked.law, *(law for _, law in others)), key=lambda law: law.expected))
    pairs = list[Suspicion]()
    for library, law in ((asked.library, asked.law), *others):
        pairs += [
            _as_suspicion(asked, law, library, suspect, answer)
            for suspect, answer in ([*answers, *late] if law is asked.law else _ask(asked, law))
            # a part of this law is no cause, and this law with one more term is among its own suspects
            if law is asked.law or not ({*law.names, *suspect.adds} <= own or {*law.names, *suspect.adds} >= own)
        ]
    alone = asked.criterion(asked.law.unexplained / asked.noise.expected, len(asked.law.names))
    likely = [pair for pair in pairs if pair.log_chance < SUGGESTIVE and pair.criterion < alone]
    likely = [pair for pair in likely if pair.name not in asked.out_of_place]
    told = [pair for pair in likely if pair.removes > EXPLAINS or pair.after < asked.limit or pair.material]
    if not told:
        return None
    best = min(told, key=lambda pair: pair.criterion)
    alike = [pair for pair in told if pair.law == best.law and pair.criterion < best.criterion + TIE]
    return min(alike, key=lambda pair: (pair.columns, pair.criterion))


def name_rival(asked: Asked, named: Mapping[str, tuple[str, ...]], refit: Refit) -> str:
    """Say which smaller law with one simple effect does as well as a law that passes; an empty text: none."""
    alone = asked.criterion(asked.law.unexplained / asked.law.expected, len(asked.law.names))
    model = Context(asked.view, asked.law).model
    bent = "" if RESPONSE in asked.answered else _response_like(model)
    # bright dye that fades has no constant, whatever the light does
    known = STEADY_LIGHT in asked.answered or asked.observable == "bright"
    if seen := bent or ("" if known else _light_like(model)):
        return seen
    for library, law in _smaller(asked, named, refit, len(asked.law.names) - 1):
        for suspect, answer in _ask(asked, law, _no_rival):
            steady = STEADY_LIGHT in asked.answered and suspect.name in OF_LIGHT
            if answer.columns > SIMPLE or steady:
                continue
            pair = _as_suspicion(asked, law, library, suspect, answer)
            if pair.criterion < alone:
                return f"{library} with this effect says as much: {pair.words}"
    return ""


def _no_rival(suspect: Suspect) -> bool:
    """Tell whether an effect beside a smaller law is none to compare: another law, or one that allows for any.

    A response that a camera may well have is asked in other words (see :func:`_response_like`).
    """
    return bool(suspect.adds) or suspect.late or suspect.name in (RESPONSE, *VARYING)


def _response_like(law: Model) -> str:
    """Say where a law with |∇u|² or u² may be a simpler one, seen through a curved response.

    With w = h(u), u_t = D Δu + a|∇u|² becomes w_t = D Δw + (a/h′ − D h″/h′²)|∇w|²: diffusion alone gets a small |∇w|²,
    and a constant coefficient becomes one that depends on w. Decay −ku becomes −ku h′(u): of a small w², too.
    """
    decay, square = law.amount("u"), law.amount("u_squared")
    if law.consists_of(("laplacian", "u", "u_squared")) and decay < 0 and 0 < abs(square) < abs(decay):
        return (
            "decay alone, seen through a response curve (gamma, a tone curve), says as much: u² is as small beside u "
            "as such a curve makes it; film with a linear response, or give recording.response"
        )
    diffusion, steady, rising = (law.amount(name) for name in ("laplacian", "grad_squared", "u_grad_squared"))
    alone = law.consists_of(("laplacian", "grad_squared", "u_grad_squared"))
    if alone and diffusion > 0 and steady and rising:
        return (
            "|∇u|² alone, seen through a response curve (gamma, a tone curve), says as much: such a curve makes its "
            "coefficient depend on u; film with a linear response, or give recording.response"
        )
    bend = abs(steady) + 0.5 * abs(rising)
    if not alone or diffusion <= 0 or not 0 < bend / diffusion < CURVED:
        return ""
    return (
        "diffusion alone, seen through a response curve (gamma, a tone curve), says as much: |∇u|² is as small beside "
        "Δu as such a curve makes it; film with a linear response, or give recording.response"
    )


def _light_like(law: Model) -> str:
    """Say where a background that stays while dye fades may be one that fades, under light that changes to match.

    Of −k(u − b) + DΔu a film shows that the plume fades towards b, and where its background is b, not why it stays.
    """
    if not (law.amount("u") < 0 < law.amount("constant") and law.consists_of(("constant", "u", "laplacian"))):
        return ""
    return (
        "dye that fades everywhere, under light that changes as much as the background would have (an automatic "
        'exposure may do that), says as much: fix the exposure, and say so with recording.illumination = "steady"'
    )


def _smaller(asked: Asked, named: Mapping[str, tuple[str, ...]], refit: Refit, most: int) -> list[tuple[str, LawFit]]:
    """Fit the libraries with at most so many terms, other than the law itself."""
    own = set(asked.law.names)
    return [
        (library, refit(terms))
        for library, terms in named.items()
        if len(terms) <= most and set(terms) != own and all(term in asked.view.slots for term in terms)
    ]
