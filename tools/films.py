"""The films on which assumptions are broken: one set to tune on, three to check on.

All are data, and were fixed before a result of theirs was looked at. The tuning set has each deviation at three
strengths, for diffusion (A) and for front-like spreading (C), filmed with one camera. The check set shares with it the
names of the deviations alone: another solver (finite volumes), other plumes, laws and strengths, noise that grows with
the light, a lens that blurs, other encoders. What was wrong there was mended, so that a second check set was fixed, and
then a third: other plumes, laws, strengths and seeds again, pictures that are not square, other encoder settings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from video2pde.recording.synth import (
    Camera,
    Case,
    describe_deviations,
    deviate,
    DEVIATIONS,
    find_deviation,
    Law,
    make_case,
    Optics,
    Plume,
    render_film,
)

SET = Literal["tuning", "check", "second", "third"]
PIXELS, FRAMES, NOISE = 240, 200, 0.01
TRAINING = 0.6  # share of the frames that laws are fitted to
SPECTRAL_ONLY = ("fourth", "fractional", "memory", "immobile")  # what finite volumes do not solve
BOTH = ("A", "C")


@dataclass(frozen=True)
class Film:
    """One film: a case, what is broken in it and how much, and how it was filmed.

    ``deviation`` is "" for an undisturbed film. ``library`` is where the law would be found if nothing were wrong.
    """

    set: SET
    base: str
    deviation: str
    strength: float
    case: Case
    camera: Camera
    solver: Literal["spectral", "volumes"] = "spectral"
    library: str = field(default="")

    @property
    def key(self) -> str:
        what = f"{self.deviation}={self.strength:g}" if self.deviation else "undisturbed"
        return f"{self.set}-{self.base}-{what}"

    @property
    def law(self) -> dict[str, float]:
        """The law that the film obeys, by term name; empty where no sum of the catalogue's terms is."""
        broken = self.deviation and find_deviation(self.deviation).law == "none"
        return {} if broken else self._deviated()[0].law.coefficients

    @property
    def nominal(self) -> dict[str, float]:
        """The coefficients before anything was broken (or after, where the deviation is another law).

        Of a coefficient that falls with time, its mean over the training window: there is no other one number. That of
        sub-diffusion is in length²/time^α; it spreads as K t^α/Γ(1 + α), and D is the mean rate.
        """
        same = not self.deviation or find_deviation(self.deviation).law != "other"
        law = self.case.law.coefficients if same else self._deviated()[0].law.coefficients
        medium = self._deviated()[0].medium
        if medium.slowing:
            law = {**law, medium.varies: law[medium.varies] * (1 - medium.slowing * TRAINING / 2)}
        if self.deviation == "memory":
            order, span = self.strength, TRAINING * self.case.duration
            law = {**law, "laplacian": law["laplacian"] * span ** (order - 1) / math.gamma(1 + order)}
        return law

    def _deviated(self) -> tuple[Case, Camera]:
        if not self.deviation:
            return self.case, self.camera
        return deviate(self.case, self.camera, self.deviation, self.strength)

    def describe(self) -> dict[str, Any]:
        """Return what identifies the film, for a table."""
        return {
            "set": self.set,
            "base": self.base,
            "deviation": self.deviation,
            "strength": self.strength,
            "library": self.library,
            "law": self.law,
            "nominal": self.nominal,
            "key": self.key,
        }


def render(film: Film, folder: str | Path) -> tuple[Path, dict[str, Any]]:
    """Write the film into ``folder``; return its path and its truth."""
    case, camera = film._deviated()
    broken = [(film.deviation, film.strength)] if film.deviation else []
    path = render_film(case, folder, camera, solver=film.solver, extra=describe_deviations(broken))
    return path, json.loads((Path(folder) / "truth.json").read_text(encoding="utf-8"))


def list_films(which: SET) -> list[Film]:
    """Name the films of a set, undisturbed ones and usual strengths first."""
    return list(_tuning() if which == "tuning" else _check(CHECKS[which]))


def _tuning() -> Iterator[Film]:
    cases = {
        "A": make_case("A", coefficients={"laplacian": 1.5}),
        "C": make_case("C", coefficients={"grad_squared": 9.0, "laplacian": 0.7}),
    }
    camera = Camera(size=(PIXELS, PIXELS), frames=FRAMES, noise=NOISE, crf=23, seed=1)
    for base, case in cases.items():
        yield Film("tuning", base, "", 0.0, case, camera, library=base)
    for rank in (1, 0, 2):
        for name, deviation in DEVIATIONS.items():
            for base in deviation.only or BOTH:
                strength = deviation.strengths[rank]
                yield Film("tuning", base, name, strength, cases[base], camera, library=base)


@dataclass(frozen=True)
class CheckSet:
    """A set to check on: two films for each deviation, or one, the encoder and the law going round.

    ``strengths``: by deviation, the bases and strengths, none of which another set has; ``seed`` of the first film.
    """

    name: SET
    cases: Mapping[str, tuple[Case, Plume]]
    strengths: Mapping[str, tuple[tuple[str, float], ...]]
    encoders: tuple[tuple[str, int, str], ...]
    camera: Camera


LIBRARIES = {"A": "A", "B": "B", "C": "C", "C-alt": "C-alt", "Fisher": "R"}
CHECK_CASES = {
    "A": (
        make_case("A", coefficients={"laplacian": 2.2}, drift=(0.25, 0.1), background=0.15),
        Plume(0.7, 5, 5, 1.0, "hook"),
    ),
    "B": (
        make_case("B", coefficients={"u": -0.03, "laplacian": 1.8}, drift=(-0.1, 0.2)),
        Plume(0.75, 8, 9, 1.1, "spots"),
    ),
    "C": (
        make_case("C", coefficients={"grad_squared": 6.5, "laplacian": 0.9}, drift=(-0.2, -0.1), background=0.12),
        Plume(0.7, 11, 8, 1.0, "spots"),
    ),
    "C-alt": (
        make_case("C-alt", coefficients={"u_grad_squared": 14.0, "laplacian": 1.0}, drift=(0.1, -0.2)),
        Plume(0.75, 13, 6, 1.0, "hook"),
    ),
    "Fisher": (
        make_case("Fisher", coefficients={"u": 0.1, "u_squared": -0.12, "laplacian": 1.1}, drift=(0.1, 0.1)),
        Plume(0.4, 17, 7, 0.9, "spots"),
    ),
}
CHECK_STRENGTHS: dict[str, tuple[tuple[str, float], ...]] = {
    "rotation": (("C", 0.02), ("C-alt", 0.04)),
    "shear": (("A", 0.015), ("Fisher", 0.03)),
    "strain": (("C", 0.006), ("B", 0.015)),
    "vortex": (("C-alt", 0.5), ("A", 1.0)),
    "pulse": (("C", 0.9), ("Fisher", 1.8)),
    "divergence": (("A", 0.008), ("C", 0.004)),
    "source": (("A", 0.02), ("C", 0.045)),
    "halves": (("A", 0.25), ("C", 0.45)),
    "slowing": (("A", 0.4), ("C", 0.2)),
    "anisotropy": (("A", 0.25), ("B", 0.4)),
    "fading": (("A", 0.03), ("A", 0.012)),
    "steep": (("C", 0.15),),
    "fourth": (("A", 15.0),),
    "fractional": (("A", 1.4),),
    "memory": (("A", 0.7),),
    "immobile": (("A", 0.2),),
    "dimming": (("C", 0.07), ("B", 0.14)),
    "exposure": (("A", 0.8), ("C", 0.5)),
    "flicker": (("C-alt", 0.015), ("A", 0.03)),
    "steps": (("C", 0.04), ("Fisher", 0.07)),
    "vignetting": (("A", 0.3), ("C", 0.15)),
    "dome": (("C", 0.4), ("B", 0.2)),
    "gamma": (("A", 2.0), ("C", 1.5)),
    "saturation": (("A", 0.2), ("C", 0.1)),
    "shake": (("C", 1.0), ("A", 0.5)),
    "handheld": (("A", 0.4), ("C", 0.2)),
    "focus": (("A", 2.5), ("C", 1.5)),
    "yellow": (("C", 0.85), ("A", 0.93)),
    "dust": (("A", 25), ("C", 10)),
    "walls": (("C", 0.7), ("A", 0.35)),
    "stamp": (("A", 0.8), ("C", 0.45)),
    "hand": (("C", 15),),
    "black": (("A", 5),),
    "cut": (("C", 0.15),),
    "repeats": (("A", 0.07),),
}
SECOND_CASES = {
    "A": (make_case("A", coefficients={"laplacian": 1.1}, drift=(-0.15, 0.2)), Plume(0.65, 21, 7, 1.1, "spots")),
    "B": (
        make_case("B", coefficients={"u": -0.022, "laplacian": 1.4}, drift=(0.2, 0.05), background=0.08),
        Plume(0.7, 23, 6, 1.0, "hook"),
    ),
    "C": (
        make_case("C", coefficients={"grad_squared": 11.0, "laplacian": 1.1}, drift=(0.1, 0.15)),
        Plume(0.65, 27, 6, 1.0, "hook"),
    ),
    "C-alt": (
        make_case("C-alt", coefficients={"u_grad_squared": 17.0, "laplacian": 0.8}, drift=(-0.15, 0.1)),
        Plume(0.8, 29, 9, 1.1, "spots"),
    ),
    "Fisher": (
        make_case("Fisher", coefficients={"u": 0.08, "u_squared": -0.1, "laplacian": 1.4}, drift=(-0.1, 0.05)),
        Plume(0.45, 31, 6, 1.0, "hook"),
    ),
}
SECOND_STRENGTHS: dict[str, tuple[tuple[str, float], ...]] = {
    "rotation": (("A", 0.025), ("C", 0.035)),
    "shear": (("C", 0.018), ("B", 0.025)),
    "strain": (("A", 0.008), ("C-alt", 0.012)),
    "vortex": (("C", 0.7), ("B", 1.2)),
    "pulse": (("A", 1.2), ("C-alt", 1.5)),
    "divergence": (("B", 0.006), ("C", 0.007)),
    "source": (("A", 0.03), ("C-alt", 0.03)),
    "halves": (("A", 0.35), ("C", 0.3)),
    "slowing": (("A", 0.3), ("C", 0.35)),
    "anisotropy": (("A", 0.35), ("C", 0.3)),
    "fading": (("A", 0.02),),
    "steep": (("C", 0.12),),
    "fourth": (("A", 20.0),),
    "fractional": (("A", 1.6),),
    "memory": (("A", 0.65),),
    "immobile": (("A", 0.12), ("C", 0.25)),
    "dimming": (("A", 0.05), ("C-alt", 0.12)),
    "exposure": (("C", 0.9), ("B", 0.4)),
    "flicker": (("C", 0.01), ("B", 0.025)),
    "steps": (("A", 0.03), ("C", 0.08)),
    "vignetting": (("C", 0.25), ("B", 0.12)),
    "dome": (("A", 0.3), ("C", 0.15)),
    "gamma": (("C", 2.1), ("A", 1.6)),
    "saturation": (("C", 0.2), ("A", 0.1)),
    "shake": (("A", 1.2), ("C", 0.7)),
    "handheld": (("C", 0.35), ("B", 0.2)),
    "focus": (("A", 1.5), ("C", 2.2)),
    "yellow": (("A", 0.87), ("C", 0.92)),
    "dust": (("C", 20), ("A", 8)),
    "walls": (("A", 0.6), ("C", 0.3)),
    "stamp": (("C", 0.7), ("A", 0.4)),
    "hand": (("A", 8),),
    "black": (("C", 4),),
    "cut": (("A", 0.2),),
    "repeats": (("C", 0.04),),
}
THIRD_CASES = {
    "A": (
        make_case("A", coefficients={"laplacian": 1.8}, drift=(0.05, -0.25), background=0.05),
        Plume(0.75, 41, 8, 0.9),
    ),
    "B": (
        make_case("B", coefficients={"u": -0.026, "laplacian": 1.2}, drift=(-0.2, -0.05), background=0.06),
        Plume(0.8, 43, 7, 1.2, "spots"),
    ),
    "C": (
        make_case("C", coefficients={"grad_squared": 7.5, "laplacian": 0.75}, drift=(0.15, -0.1), background=0.09),
        Plume(0.75, 47, 10, 1.1),
    ),
    "C-alt": (
        make_case("C-alt", coefficients={"u_grad_squared": 15.0, "laplacian": 1.2}, drift=(-0.05, -0.2)),
        Plume(0.7, 53, 7, 1.2, "hook"),
    ),
    "Fisher": (
        make_case("Fisher", coefficients={"u": 0.09, "u_squared": -0.11, "laplacian": 1.25}, drift=(0.15, -0.05)),
        Plume(0.5, 59, 8, 1.1, "spots"),
    ),
}
THIRD_STRENGTHS: dict[str, tuple[tuple[str, float], ...]] = {
    "rotation": (("B", 0.022), ("C", 0.045)),
    "shear": (("C-alt", 0.022), ("A", 0.03)),
    "strain": (("C", 0.009), ("A", 0.013)),
    "vortex": (("A", 0.6), ("C", 0.9)),
    "pulse": (("C", 1.4), ("B", 1.7)),
    "divergence": (("C", 0.006), ("A", 0.007)),
    "source": (("C", 0.025), ("B", 0.04)),
    "halves": (("C", 0.4), ("B", 0.3)),
    "slowing": (("C", 0.45), ("A", 0.5)),
    "anisotropy": (("C", 0.25), ("A", 0.2)),
    "fading": (("A", 0.025),),
    "steep": (("C", 0.08),),
    "fourth": (("A", 25.0),),
    "fractional": (("A", 1.3),),
    "memory": (("A", 0.75),),
    "immobile": (("C", 0.15), ("A", 0.25)),
    "dimming": (("C", 0.06), ("A", 0.15)),
    "exposure": (("A", 0.5), ("C-alt", 0.7)),
    "flicker": (("A", 0.012), ("C", 0.03)),
    "steps": (("B", 0.04), ("C-alt", 0.06)),
    "vignetting": (("A", 0.22), ("C-alt", 0.3)),
    "dome": (("C", 0.3), ("A", 0.18)),
    "gamma": (("A", 1.9), ("B", 1.5)),
    "saturation": (("A", 0.25), ("B", 0.12)),
    "shake": (("C", 1.5), ("B", 0.8)),
    "handheld": (("A", 0.3), ("C-alt", 0.25)),
    "focus": (("C", 1.2), ("B", 2.0)),
    "yellow": (("C", 0.88), ("B", 0.9)),
    "dust": (("A", 12), ("C-alt", 30)),
    "walls": (("C", 0.4), ("A", 0.8)),
    "stamp": (("A", 0.55), ("C", 0.85)),
    "hand": (("C", 12),),
    "black": (("A", 6),),
    "cut": (("C", 0.25),),
    "repeats": (("A", 0.08),),
}
CHECKS = {
    "check": CheckSet(
        "check",
        CHECK_CASES,
        CHECK_STRENGTHS,
        (("h265", 24, "mp4"), ("vp9", 28, "mkv"), ("mpeg4", 8, "mp4"), ("ffv1", 0, "mkv")),
        Camera(size=(PIXELS, PIXELS), frames=FRAMES, noise=0.012, seed=100, optics=Optics(photons=True, blur=0.7)),
    ),
    "second": CheckSet(
        "second",
        SECOND_CASES,
        SECOND_STRENGTHS,
        (("h264", 20, "mp4"), ("vp9", 24, "mp4"), ("h265", 21, "mkv"), ("mpeg4", 5, "mp4")),
        Camera(size=(220, 260), frames=170, noise=0.009, seed=300, optics=Optics(photons=True, blur=0.5)),
    ),
    "third": CheckSet(
        "third",
        THIRD_CASES,
        THIRD_STRENGTHS,
        (("h265", 19, "mp4"), ("h264", 22, "mkv"), ("vp9", 20, "mkv"), ("mpeg4", 4, "mp4")),
        Camera(size=(250, 210), frames=185, noise=0.011, seed=500, optics=Optics(photons=True, blur=0.6)),
    ),
}


def _check(chosen: CheckSet) -> Iterator[Film]:
    turn = 0
    for name in ("", *chosen.strengths):
        for base, strength in chosen.strengths.get(name, tuple((base, 0.0) for base in chosen.cases)):
            case, plume = chosen.cases[base]
            codec, crf, container = chosen.encoders[turn % len(chosen.encoders)]
            seed = chosen.camera.seed + turn
            camera = replace(chosen.camera, crf=crf, seed=seed, codec=codec, container=container)
            solver: Literal["spectral", "volumes"] = "spectral" if name in SPECTRAL_ONLY else "volumes"
            film = replace(case, plume=plume, law=Law(**asdict(case.law)))
            yield Film(chosen.name, base, name, strength, film, camera, solver, LIBRARIES[base])
            turn += 1
