"""The films of every kind of law that docs/which-laws.md names, beyond the scoreboard's; fixed before any was run.

One field: 320 × 320 pixels, 150 frames, noise of 1 %, quality 20, read to 64 × 64 cells (fourth derivatives: 400 and
80). Where the search can hold a law's terms, it has to find them; families of terms, tensors and maps are asked
for as a user asks for them. Two fields: colours as H.264 stores them (4:2:0), 400 × 400 pixels, 100 frames, 80 cells.

The first film of Gray–Scott is the one that reading and fitting of two fields were mended on, "porous" and the first
near tie those that the rules for sets of terms that say nearly the same were made on; all others are checks. The last
two near ties were added after the rules were made, and before either was run. The five films with a small term beside
others, and the five plain ones, check the rule for a term that rollouts see and the weak form does not
(``fit/omitted``); it was made on the steepest near tie and on films of the scoreboard, and made stricter after "small,
porous" had been seen. "less" and "again" were added before any of them was run with that; "again, front", a right law
with a front of a cell, was called ambiguous, and the rule asked for more until "less, front" was sure and wrong; what
the grid makes up is taken off since. "third" was added between these two changes, and changed nothing. "fourth" was
added with the rule that lets the larger law compete, and before one of them was run; "fifth" after that rule had its
last form (one of a law and the larger one, where both fit), and before one of them was run. "bistable, again" and
"D(t), again" were added with what "bistable" and "map: slowing" had shown, and before either was run.

Of two fields, reading and fit were mended once more on "Gray-Scott" and "Gray-Scott, seed 11" (rollouts of eighth
order, steps of the Jacobian, when a fit has converged); "Gray-Scott, third" and "Gray-Scott, slow" were added before
either was run. What the band of D(t) holds was mended on "D(t), again"; the other "D(t)" and the three called "D(x, y)"
were added before one of them was run, "setting" so that not all courses are straight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from video2pde.recording.synth import Camera, Case, Drift, Law, make_system, Medium, Plume, System
from video2pde.recording.synth.further import Further
from video2pde.recording.synth.populations import Bleached
from video2pde.recording.synth.systems import gray_scott

NOISE, QUALITY = 0.01, 20
SEARCH = {"search.over": "subsets"}


@dataclass(frozen=True)
class LawFilm:
    """A film of one field: what is filmed, how it is asked for, and what else must come out.

    ``derived``: numbers that follow from the coefficients, by symbol; ``directions``: of a tensor, along and across;
    ``pixels``, ``cells``: along each side of the picture and of the grid; ``spacing``, ``domain``:
    of the solver's grid.
    """

    name: str
    case: Case
    ask: Mapping[str, Any]
    derived: Mapping[str, float] = field(default_factory=dict)
    directions: tuple[float, float] | None = None
    pixels: int = 320
    cells: int = 64
    seed: int = 700
    spacing: float = 2.0
    domain: float | None = None

    @property
    def camera(self) -> Camera:
        return Camera(size=(self.pixels, self.pixels), frames=150, noise=NOISE, crf=QUALITY, seed=self.seed)


def _plume(seed: int, peak: float = 0.6, size: float = 1.2) -> Plume:
    return Plume(peak, seed=seed, size=size, shape="spots" if seed % 2 else "fingers")


def _case(name: str, law: Law, seed: int, background: float, **more: Any) -> Case:
    plume = _plume(seed, more.pop("peak", 0.6), more.pop("size", 1.2))
    return Case(name, law, Drift((0.1, -0.08)), plume, background, **more)


def _further(laplacian: float = 0.0, **more: float) -> Law:
    return Law(laplacian=laplacian, further=Further(**more))


def _wide(name: str, case: Case, seed: int, domain: float = 340.0) -> LawFilm:
    """Film what spreads far or is steep: the solver needs a larger square and a finer grid."""
    return LawFilm(name, case, {}, seed=seed, spacing=1.6, domain=domain)


LAWS: tuple[LawFilm, ...] = (
    LawFilm(
        "power law",
        _case("power", _further(porous_power=4.0, exponent=1.4), 41, 0.2),
        {"regression.law": "porous-power"},
        {"m": 1.4},
        seed=701,
        spacing=1.6,
        domain=340.0,
    ),
    LawFilm(
        "uptake",
        _case("uptake", _further(0.9, uptake=-0.012, half_saturation=0.25), 42, 0.3),
        {"regression.law": "uptake"},
        {"K": 0.25},
        seed=702,
    ),
    LawFilm(
        "saturation",
        _case("saturation", _further(0.9, saturation=-0.02), 43, 0.25),
        {"regression.law": "saturation,laplacian"},
        seed=703,
    ),
    LawFilm(
        "bistable",
        _case("bistable", Law(u=-0.06, u_squared=0.26, laplacian=0.8, further=Further(u_cubed=-0.2)), 44, 0.22),
        SEARCH,
        {"alpha": 0.3},
        seed=704,
    ),
    LawFilm(
        "Cahn-Hilliard",
        _case("cahn-hilliard", _further(6.6, porous=-30.0, porous_squared=30.0, biharmonic=-10.0), 45, 0.2),
        {"regression.law": "cahn-hilliard"},
        pixels=400,
        cells=80,
        seed=705,
        spacing=1.5,
        domain=340.0,
    ),
    LawFilm(
        "thin film",
        _case("thin-film", _further(0.4, biharmonic=-14.0), 46, 0.2, size=1.0),
        SEARCH,
        pixels=400,
        cells=80,
        seed=706,
    ),
    LawFilm(
        "porous",
        _case("porous", _further(0.5, porous=2.5), 47, 0.2),
        SEARCH,
        seed=707,
    ),
    LawFilm(
        "near tie, linear",
        _case("porous", _further(0.8, porous=1.6), 57, 0.15),
        SEARCH,
        seed=717,
    ),
    LawFilm(
        "near tie, squared",
        _case("squared", _further(0.7, porous_squared=3.0), 58, 0.2),
        SEARCH,
        seed=718,
    ),
    LawFilm(
        "near tie, steeper",
        _case("porous", _further(0.3, porous=3.0), 59, 0.25),
        SEARCH,
        seed=719,
        spacing=1.6,
        domain=340.0,
    ),
    LawFilm(
        "near tie, decay",
        _case("decay", Law(u_squared=-0.03, laplacian=0.9), 60, 0.2),
        SEARCH,
        seed=720,
    ),
    _wide("small, linear", _case("small", _further(0.15, porous=2.2), 61, 0.25), 721),
    LawFilm("small, porous", _case("small", _further(1.4, porous=0.35), 62, 0.15), {}, seed=722),
    _wide("small, growth", _case("small", Law(u=0.0015, grad_squared=7.0, laplacian=1.0), 63, 0.1), 723),
    LawFilm("small, decay", _case("small", Law(u=-0.0008, laplacian=1.3), 64, 0.2), {}, seed=724),
    LawFilm(
        "small, front",
        _case("small", Law(grad_squared=1.0, u_grad_squared=9.0, laplacian=0.9), 65, 0.1),
        {},
        seed=725,
    ),
    _wide("less, linear", _case("less", _further(0.25, porous=1.8), 71, 0.2), 731),
    LawFilm("less, porous", _case("less", _further(1.1, porous=0.4), 72, 0.2), {}, seed=732),
    LawFilm("less, square", _case("less", Law(u_squared=-0.004, laplacian=1.5), 73, 0.1), {}, seed=733),
    _wide("less, front", _case("less", Law(grad_squared=8.0, u_grad_squared=1.5, laplacian=0.8), 74, 0.1), 734),
    LawFilm("again, diffusion", _case("plain", Law(laplacian=0.9), 75, 0.25), {}, seed=735),
    LawFilm("again, decay", _case("plain", Law(u=-0.015, laplacian=1.4), 76, 0.1), {}, seed=736),
    LawFilm("again, front", _case("plain", Law(grad_squared=10.0, laplacian=0.7), 77, 0.1), {}, seed=737),
    _wide("again, steep", _case("plain", Law(u_grad_squared=14.0, laplacian=1.0), 78, 0.1), 738),
    _wide("again, porous", _case("plain", _further(porous=2.0), 79, 0.25), 739),
    _wide("third, linear", _case("third", _further(0.2, porous=2.6), 81, 0.3), 741),
    LawFilm("third, porous", _case("third", _further(0.9, porous=0.5), 82, 0.1), {}, seed=742),
    LawFilm("third, weak", _case("third", _further(1.2, porous=0.15), 83, 0.2), {}, seed=743),
    _wide("third, front", _case("third", Law(grad_squared=9.0, laplacian=0.6), 84, 0.1), 744),
    _wide("third, steep", _case("third", Law(u_grad_squared=16.0, laplacian=0.8), 85, 0.1), 745, 460.0),
    LawFilm("third, decay", _case("third", Law(u=-0.02, laplacian=1.0), 86, 0.15), {}, seed=746),
    _wide("fourth, linear", _case("fourth", _further(0.3, porous=2.4), 91, 0.25), 751),
    LawFilm("fourth, porous", _case("fourth", _further(1.2, porous=0.6), 92, 0.15), {}, seed=752),
    _wide(
        "fourth, two fronts", _case("fourth", Law(grad_squared=6.0, u_grad_squared=3.0, laplacian=1.0), 93, 0.1), 753
    ),
    LawFilm("fourth, fading", _case("fourth", Law(u=-0.004, grad_squared=5.0, laplacian=1.1), 94, 0.1), {}, seed=754),
    LawFilm("fourth, diffusion", _case("plain", Law(laplacian=1.2), 95, 0.2), {}, seed=755),
    LawFilm("fourth, front", _case("plain", Law(grad_squared=5.0, laplacian=1.1), 96, 0.1), {}, seed=756),
    LawFilm("fourth, steep", _case("plain", Law(u_grad_squared=9.0, laplacian=1.1), 97, 0.1), {}, seed=757),
    LawFilm("fourth, decay", _case("plain", Law(u=-0.025, laplacian=1.2), 98, 0.15), {}, seed=758),
    _wide("fifth, linear", _case("fifth", _further(0.35, porous=2.0), 101, 0.2), 761),
    LawFilm("fifth, porous", _case("fifth", _further(1.0, porous=0.7), 102, 0.2), {}, seed=762),
    _wide("fifth, two fronts", _case("fifth", Law(grad_squared=4.0, u_grad_squared=6.0, laplacian=0.9), 103, 0.1), 763),
    _wide("fifth, fading", _case("fifth", Law(u=-0.006, grad_squared=6.0, laplacian=0.9), 104, 0.15), 764),
    LawFilm("fifth, diffusion", _case("plain", Law(laplacian=1.0), 105, 0.15), {}, seed=765),
    LawFilm("fifth, front", _case("plain", Law(grad_squared=7.0, laplacian=1.2), 106, 0.15), {}, seed=766),
    _wide("fifth, steep", _case("plain", Law(u_grad_squared=11.0, laplacian=0.9), 107, 0.1), 767),
    LawFilm("fifth, decay", _case("plain", Law(u=-0.018, laplacian=1.5), 108, 0.2), {}, seed=768),
    LawFilm(
        "bistable, again",
        _case("bistable", Law(u=-0.072, u_squared=0.26, laplacian=1.0, further=Further(u_cubed=-0.2)), 109, 0.3),
        SEARCH,
        {"alpha": 0.4},
        seed=769,
    ),
    LawFilm(
        "D(t), again",
        _case("slowing", Law(laplacian=1.2), 110, 0.15, medium=Medium(slowing=0.3)),
        {"maps.vary": {"laplacian": "time"}},
        seed=770,
    ),
    *(
        LawFilm(
            f"D(t), {name}",
            _case("slowing", Law(laplacian=value), seed, ground, medium=medium, size=size),
            {"maps.vary": {"laplacian": "time"}},
            seed=seed + 700,
        )
        for name, value, medium, seed, ground, size in (
            ("third", 1.0, Medium(slowing=0.5), 111, 0.1, 1.2),
            ("fourth", 1.8, Medium(slowing=0.25), 112, 0.2, 1.2),
            ("rising", 0.9, Medium(slowing=-0.6), 113, 0.1, 1.2),
            ("sixth", 1.4, Medium(slowing=0.35), 114, 0.25, 0.9),
            ("setting", 1.5, Medium(slowing=0.5, setting=4.0), 118, 0.1, 1.2),
        )
    ),
    *(
        LawFilm(
            f"D(x, y), {name}",
            _case("patches", Law(laplacian=value), seed, ground, medium=medium, size=size),
            {"maps.vary": {"laplacian": "space"}},
            seed=seed + 700,
        )
        for name, value, medium, seed, ground, size in (
            ("halves", 1.2, Medium(halves=0.25), 115, 0.15, 1.5),
            ("bump", 1.0, Medium(bump=0.6, bump_width=20.0), 116, 0.2, 1.2),
            ("dip", 1.6, Medium(bump=-0.4, bump_width=22.0), 117, 0.1, 1.2),
        )
    ),
    LawFilm("plain, diffusion", _case("plain", Law(laplacian=1.6), 66, 0.15), {}, seed=726),
    LawFilm("plain, decay", _case("plain", Law(u=-0.03, laplacian=0.9), 67, 0.2), {}, seed=727),
    LawFilm("plain, front", _case("plain", Law(grad_squared=6.0, laplacian=0.9), 68, 0.1), {}, seed=728),
    LawFilm("plain, steep", _case("plain", Law(u_grad_squared=10.0, laplacian=0.8), 69, 0.15), {}, seed=729),
    LawFilm("plain, porous", _case("plain", _further(porous=3.0), 70, 0.3), {}, seed=730),
    LawFilm(
        "tensor",
        _case("tensor", Law(laplacian=1.2), 48, 0.1, medium=Medium(anisotropy=0.4, turned=-50.0)),
        SEARCH,
        directions=(1.68, 0.72),
        seed=708,
    ),
    LawFilm(
        "map: halves",
        _case("halves", Law(laplacian=1.4), 49, 0.1, medium=Medium(halves=0.3), size=1.5),
        {"maps.vary": {"laplacian": "space"}},
        seed=709,
    ),
    LawFilm(
        "map: bump",
        _case("bump", Law(laplacian=1.3), 50, 0.1, medium=Medium(bump=0.8, bump_width=18.0)),
        {"maps.vary": {"laplacian": "space"}},
        seed=710,
    ),
    LawFilm(
        "map: slowing",
        _case("slowing", Law(laplacian=1.6), 51, 0.1, medium=Medium(slowing=0.4)),
        {"maps.vary": {"laplacian": "time"}},
        seed=711,
    ),
    LawFilm(
        "map: C with a bump",
        _case("C-bump", Law(grad_squared=8.0, laplacian=0.7), 52, 0.1, medium=Medium(bump=0.8), size=1.0),
        {"maps.vary": {"laplacian": "space"}},
        pixels=400,
        cells=80,
        seed=712,
        spacing=1.4,
    ),
)


@dataclass(frozen=True)
class RecoveryFilm:
    """A film of a recovery after a bleach: which law of one or two populations it must be, and its parameters."""

    name: str
    case: Bleached
    law: str
    truth: Mapping[str, float]
    seed: int


POPULATIONS: tuple[RecoveryFilm, ...] = (
    RecoveryFilm("recovery: one", Bleached(45.0, share=1.0), "single", {"D": 45.0}, 721),
    RecoveryFilm("recovery: immobile", Bleached(60.0, share=0.65), "mobile-immobile", {"D": 60.0, "M": 0.65}, 722),
    RecoveryFilm(
        "recovery: two D",
        Bleached(110.0, slow=6.0, share=0.55),
        "two-diffusions",
        {"D1": 110.0, "D2": 6.0, "p": 0.55},
        723,
    ),
    RecoveryFilm(
        "recovery: exchange",
        Bleached(90.0, bind=0.07, release=0.05),
        "exchange",
        {"D": 90.0, "k_on": 0.07, "k_off": 0.05},
        724,
    ),
)


@dataclass(frozen=True)
class PairFilm:
    """A film of two fields, and what is not default about how it is read."""

    name: str
    system: System
    seed: int
    tuned_on: bool = False
    pixels: int = 400
    cells: int = 80
    frames: int = 100

    @property
    def camera(self) -> Camera:
        return Camera(
            size=(self.pixels, self.pixels), border=0, frames=self.frames, noise=NOISE, crf=QUALITY, seed=self.seed
        )


PAIRS: tuple[PairFilm, ...] = (
    PairFilm("Gray-Scott", make_system("gray-scott", 1), 0, tuned_on=True),
    PairFilm("Gray-Scott, seed 11", make_system("gray-scott", 11), 731, tuned_on=True),
    PairFilm("Gray-Scott, seed 12", make_system("gray-scott", 12), 732),
    PairFilm("Gray-Scott, other", replace(gray_scott(0.042, 0.061, 1.0, 0.5, (0.8, 1.8)), seed=13), 733),
    PairFilm("Gray-Scott, third", make_system("gray-scott", 14), 736),
    PairFilm("Gray-Scott, slow", replace(gray_scott(0.033, 0.059, 0.8, 0.4, (0.85, 1.9)), seed=15), 737),
    PairFilm("FitzHugh-Nagumo", make_system("fitzhugh-nagumo", 21), 734),
    PairFilm("A + B", make_system("reagents", 22), 735),
)
