"""Analyse a law: what can be proved about it, stated with its own numbers and checked on its own rollout."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.field import Grid
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.terms import CATALOGUE
from video2pde.terms.symbol import is_diffusion, multiple_of
from video2pde.terms.words import describe
from video2pde.using.edges import state_edges
from video2pde.using.identities import (
    CLOSED,
    evolve,
    measure_identities,
    measure_moving_frame,
    periodic_plume,
    Transform,
)
from video2pde.using.linear import (
    find_equilibria,
    grid_scale_growth,
    is_divergence,
    measure_front_speed,
    measure_growth,
    reaction,
    short_wave_growth,
)
from video2pde.using.modelfile import SavedModel
from video2pde.using.statements import Analysis, Group, Statement
from video2pde.using.wording import word_identities

__all__ = ["Analysis", "Group", "Statement", "analyse_model"]

Array = NDArray[np.float64]
TOLERANCE = 2e-3
"""Relative residual up to which an identity counts as verified."""
LEAST_ORDER = 2.5
"""Order of convergence from which a residual counts as the scheme's error; the scheme's own order is 4."""
ROUNDING = 1e-9
FRONT_TOLERANCE = 0.03
GROWTH_TOLERANCE = 0.02
LARGEST_GAIN = 16.0
"""Largest aΔu/β at which the check's plume is resolved; a larger one is checked with a lower plume."""
TRANSFORMED = ("grad_squared", "u_grad_squared", "laplacian")


def analyse_model(model: SavedModel, u0: ArrayLike | None = None) -> Analysis:
    """Analyse a law and check every identity on a rollout over a periodic domain.

    ``u0`` (y, x), a frame of the film, gives the range of u and the test of the identities at the film's own edges;
    without it u is taken to range from 0.1 to 0.9.
    """
    first = None if u0 is None else np.asarray(u0, float)
    low, high = (0.1, 0.9) if first is None or np.ptp(first) == 0 else (float(first.min()), float(first.max()))
    subject = _Subject(model, low, high, first)
    equation = subject.law.equation
    growth = subject.check_well_posedness()
    if growth is not None:
        statements = [growth, *subject.state_equilibria()]
        note = "The law is ill-posed: nothing else can be checked on a rollout, which grows without bound."
        return Analysis("ill-posed", equation, subject.groups(), tuple(statements), "", (note,))
    statements = []
    check = ""
    if subject.transform is not None:
        found, check = subject.state_identities()
        statements += found
    statements += subject.state_content()
    statements += subject.state_equilibria()
    statements += subject.state_front()
    statements += subject.state_sharpening()
    return Analysis(subject.kind, equation, subject.groups(), tuple(statements), check, subject.notes())


@dataclass(frozen=True, eq=False)
class _Subject:
    """The law under analysis: the range of u, and a frame of the film if there is one."""

    model: SavedModel
    low: float
    high: float
    first: Array | None

    @property
    def law(self) -> Model:
        # nothing can be proved of a law whose coefficients vary as they please: each is taken as its mean
        return self.model.law.constant()

    @property
    def unit(self) -> str:
        return self.model.grid.unit

    @property
    def transform(self) -> Transform | None:
        """The Cole–Hopf transform where the law has one."""
        a, a2, beta = (self.law.amount(name) for name in TRANSFORMED)
        if beta <= 0 or not self.law.consists_of(TRANSFORMED):
            return None
        return Transform(a, a2, beta, self.low, self.high)

    @property
    def kind(self) -> str:
        if self.transform is not None:
            return "Cole–Hopf" if self.transform.gain > 0 else "diffusion"
        spreads = any(is_diffusion(term) for term in self.law.terms)
        return "reaction–diffusion" if spreads and reaction(self.law) != 0 else "other"

    # -------------------------------------------------------------- numbers without dimension

    def groups(self) -> tuple[Group, ...]:
        beta, reach = self.law.amount("laplacian"), self.high - self.low
        if beta == 0:
            return ()
        length = max(self.model.grid.height, self.model.grid.width)
        speed = float(np.hypot(*(np.array(self.model.drift.velocity) * self.model.drift.scale).mean(axis=0)))
        found = [Group("Péclet number", r"|\mathbf{v}|L/\beta", speed * length / abs(beta))]
        a, a2, r = (self.law.amount(name) for name in ("grad_squared", "u_grad_squared", "u"))
        if a:
            found.append(Group("gradient number", r"a\,\Delta u/\beta", a * reach / beta))
        if a2:
            found.append(Group("gradient number", r"a_2\,\Delta u\,\bar u/\beta", a2 * reach * self.middle / beta))
        if r:
            found.append(Group("Damköhler number", r"|r|L^2/\beta", abs(r) * length**2 / abs(beta)))
        return tuple(found)

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)

    # -------------------------------------------------------------- well-posedness

    def check_well_posedness(self) -> Statement | None:
        """State that short waves grow the faster the shorter they are, where they do."""
        grid = self.model.grid
        levels = (self.low, self.middle, self.high)
        if max(short_wave_growth(self.law, level, grid) for level in levels) <= 0:
            return None
        rates = [(level, *grid_scale_growth(self.law, level, grid)) for level in levels]
        level, rate, on_grid = max(rates, key=lambda item: item[1])
        text = (
            f"{self._cause()}: waves grow the faster the shorter they are, and no solution depends continuously on "
            "its first frame."
        )
        if rate <= 0 or on_grid <= 0:
            return Statement(
                "Ill-posed", "", f"{text} On the film's own grid even the shortest waves still decay along x."
            )
        measured = measure_growth(self.law, level, grid, on_grid)
        residual = abs(measured / on_grid - 1) if math.isfinite(measured) else None
        return Statement(
            "Ill-posed",
            rf"\operatorname{{Re}}\lambda(\pi/\Delta x) = {rate:.4g}\ \mathrm{{s}}^{{-1}}",
            f"{text} Stripes two pixels wide ({2 * grid.dx:.3g} {self.unit}) grow e-fold in {1 / rate:.3g} s around "
            f"u = {level:.3g}, and on a finer grid sooner still.",
            residual,
            None,
            None if residual is None else residual < GROWTH_TOLERANCE,
        )

    def _cause(self) -> str:
        """Name the diffusion that is negative."""
        pairs = zip(self.law.terms, self.law.coefficients, strict=True)
        negative = [(term, c) for term, c in pairs if c < 0 and is_diffusion(term)]
        if not negative:
            return "The leading term has the wrong sign"
        term, value = negative[0]
        plain = multiple_of(term, CATALOGUE["laplacian"]) == 1
        return (
            f"The diffusion β = {value:.4g} is negative"
            if plain
            else (f"The diffusion {describe(term).text} is negative, {value:.4g}")
        )

    # -------------------------------------------------------------- Cole–Hopf and diffusion

    def state_identities(self) -> tuple[list[Statement], str]:
        """State and check the identities of a law with a linearising transform."""
        full = self.transform
        if full is None:
            return [], ""
        share = min(1.0, LARGEST_GAIN / full.gain) if full.gain > 0 else 1.0
        tr = replace(full, high=self.low + share * (self.high - self.low))
        size = max(self.model.grid.height, self.model.grid.width)
        width = size / (2 * np.pi) / math.sqrt(1 + tr.gain)
        duration = 0.5 * width**2 / tr.beta
        fine = int(np.clip(2 * round(20 * math.sqrt(1 + tr.gain)), 64, 192))
        try:
            results = [self._measure(tr, count, duration) for count in (fine // 2, fine)]
        except ArithmeticError as error:
            return [Statement("Identities", "", f"The rollout of the check failed: {error}.")], ""
        check = (
            f"a smooth plume from u = {tr.low:.3g} to {tr.high:.3g} on a periodic domain of the film's size with the "
            f"film's drift, {duration:.3g} s, on {fine // 2} and {fine} cells along the longer side; nothing clipped"
        )
        statements = []
        level = tr.limit(periodic_plume(_similar(self.model.grid, 96), tr.low, tr.high))
        for key, title, latex, text in word_identities(tr, size, level):
            coarse, residual = results[0][key], results[1][key]
            # what is left of the slowest wave does not depend on the grid
            converges = key != "limit" and residual > ROUNDING and coarse > 0
            order = math.log2(coarse / residual) if converges else None
            holds = residual <= TOLERANCE and (order is None or order >= LEAST_ORDER)
            statements.append(Statement(title, latex, text, residual, order, holds))
        if self.first is not None:
            statements.append(state_edges(self.model, self.first, full, duration))
        return statements, check

    def _measure(self, tr: Transform, count: int, duration: float) -> dict[str, float]:
        grid = _similar(self.model.grid, count)
        u0 = periodic_plume(grid, tr.low, tr.high)
        # frames as fine as the grid, so that the integrals over time converge with it
        times = np.linspace(0.0, duration, count + 1 - count % 2)
        velocity = self._drift(times)
        moving = evolve(self.law, u0, times, velocity, grid)
        still = evolve(self.law, u0, times[[0, -1]], np.zeros((2, 2)), grid)
        found = measure_identities(moving, tr)
        found["frame"] = measure_moving_frame(moving, still)
        found["limit"] = self._measure_limit(tr, count)
        return found

    def _drift(self, times: Array) -> Array:
        """Return the film's drift over a check's times, slowed down where it would cross the domain more than once."""
        velocity = self.model.velocity_at(times + self.model.times[0])
        path = float(np.trapezoid(np.hypot(*velocity.T), times))
        return np.asarray(velocity * min(1.0, max(self.model.grid.height, self.model.grid.width) / max(path, 1e-300)))

    def _measure_limit(self, tr: Transform, count: int) -> float:
        """Run until the slowest wave has decayed by e⁻¹⁰, and compare with the limit."""
        grid = _similar(self.model.grid, max(24, count // 2))
        u0 = periodic_plume(grid, tr.low, tr.high)
        slowest = tr.beta * (2 * np.pi / max(grid.height, grid.width)) ** 2
        times = np.linspace(0.0, 10.0 / slowest, 41)
        settings = CLOSED.model_copy(update={"safety": 0.8})
        rollout = simulate(self.law, u0, times, grid, None, settings, frames=[40])
        if rollout.failed:
            raise ArithmeticError(rollout.reason)
        return float(np.abs(rollout.values[0] - tr.limit(u0)).max() / (tr.high - tr.low))

    # -------------------------------------------------------------- content, reaction, fronts

    def state_content(self) -> list[Statement]:
        """State what becomes of ∫u where the law is a divergence, or a divergence with linear growth."""
        if self.transform is not None:
            return []  # said there already
        pairs = zip(self.law.terms, self.law.coefficients, strict=True)
        if any(c and not is_divergence(term) and not multiple_of(term, CATALOGUE["u"]) for term, c in pairs):
            return []
        rate = self.law.amount("u")
        grid = _similar(self.model.grid, 48)
        u0 = periodic_plume(grid, self.low, self.high)
        film = float(np.ptp(self.model.times)) or 1.0
        duration = min(1.0 / abs(rate), film) if rate else film
        times = np.linspace(0.0, duration, 17)
        try:
            seen = evolve(self.law, u0, times, self._drift(times), grid)
        except ArithmeticError as error:
            return [Statement("Content", "", f"The rollout of the check failed: {error}.")]
        content = seen.integral(seen.values)
        residual = float(abs(content[-1] / (content[0] * math.exp(rate * duration)) - 1))
        if not rate:
            return [
                Statement(
                    "Conserved content",
                    r"\tfrac{d}{dt}\int u\,dA = 0",
                    "Every term is a divergence: what leaves one place arrives at another.",
                    residual,
                    None,
                    residual <= TOLERANCE,
                )
            ]
        word = "grows" if rate > 0 else "decays"
        return [
            Statement(
                "Growth of the content",
                rf"\int u\,dA = e^{{{rate:.4g}\,t}}\int u_0\,dA",
                f"All other terms are divergences, so that the content {word} e-fold in {1 / abs(rate):.3g} s.",
                residual,
                None,
                residual <= TOLERANCE,
            )
        ]

    def state_equilibria(self) -> list[Statement]:
        """State the uniform states that stay, and whether they are stable."""
        room = max(1.0, self.high - self.low)
        found = find_equilibria(self.law, self.low - room, self.high + room)
        if not found:
            return []
        listed = ", ".join(
            f"u = {point.level:.4g} ({'stable' if point.rate < 0 else 'unstable' if point.rate > 0 else 'neutral'}, "
            f"f′ = {point.rate:.3g} 1/s)"
            for point in found
        )
        return [Statement("Equilibria", r"f(u^*) = 0", f"Uniform states that stay: {listed}.")]

    def state_front(self) -> list[Statement]:
        """State the speed of a Fisher front where the law has one, and check it on a simulated front."""
        r, q, d = self.law.amount("u"), -self.law.amount("u_squared"), self.law.amount("laplacian")
        if min(r, q, d) <= 0 or not self.law.consists_of(("u", "u_squared", "laplacian")):
            return []
        measured, predicted = measure_front_speed(r, q, d)
        residual = abs(measured / predicted - 1)
        return [
            Statement(
                "Front speed",
                rf"c = 2\sqrt{{rD}} = {2 * math.sqrt(r * d):.4g}",
                f"A front of the state u = {r / q:.4g} invades u = 0 at {2 * math.sqrt(r * d):.4g} {self.unit}/s in "
                f"the long run, over a width of about {math.sqrt(d / r):.3g} {self.unit}; one that starts from a step "
                f"lags by 1.5√(D/r) ln t, which the check takes into account.",
                residual,
                None,
                residual <= FRONT_TOLERANCE,
            )
        ]

    def state_sharpening(self) -> list[Statement]:
        """State that gradients steepen without bound where nothing spreads them."""
        steep = self.law.amount("grad_squared") or self.law.amount("u_grad_squared")
        spread = [term.name for term in self.law.terms if max((sum(order) for order in term.jets), default=0) >= 2]
        if not steep or spread:
            return []
        return [
            Statement(
                "No diffusion",
                r"u_t + \mathbf{v}\cdot\nabla u = a|\nabla u|^2",
                "A Hamilton–Jacobi equation without diffusion: kinks form after a finite time, and a grid adds "
                "diffusion of its own there.",
            )
        ]

    # -------------------------------------------------------------- where it does not apply

    def notes(self) -> tuple[str, ...]:
        found = []
        if self.model.law.maps:
            found.append("Coefficients of this law vary; what is said here holds for the law with each at its mean.")
        if self.model.boundary == "replicate":
            found.append(
                "The film's edges are mirrored (no flux), and its drift carries u through them: integrals over the "
                "picture are conserved only as long as the plume stays away from the edges."
            )
        if self.model.clip != "off":
            found.append("Rollouts of normalised films are clipped to [0, 1]; where clipping acts, no identity holds.")
        return tuple(found)


def _similar(grid: Grid, count: int) -> Grid:
    """Return a grid over the same rectangle with ``count`` cells on its longer side."""
    longer = max(grid.height, grid.width)
    ny, nx = (max(12, 2 * round(count * size / longer / 2)) for size in (grid.height, grid.width))
    return Grid(ny, nx, grid.height, grid.width, grid.unit)
