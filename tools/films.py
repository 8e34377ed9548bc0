"""The films on which assumptions are broken: one set to tune on, four to check on.

All are data, and were fixed before a result of theirs was looked at. The tuning set has each deviation at three
strengths, for diffusion (A) and for front-like spreading (C), filmed with one camera. The check set shares with it the
names of the deviations alone: another solver (finite volumes), other plumes, laws and strengths, noise that grows with
the light, a lens that blurs, other encoders. What was wrong there was mended, so that a second check set was fixed, and
then a third: other plumes, laws, strengths and seeds again, pictures that are not square, other encoder settings. The
fourth has every deviation of law, flow and light at three strengths, from one that hardly shows to a strong one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from camera_sets import ALL, CAMERA_SETS, CameraSet, strengths_of_all
from check_sets import CHECKS, CheckSet, FRAMES, LIBRARIES, NOISE, PIXELS, SET

from video2pde.field import Grid
from video2pde.recording.synth import (
    Camera,
    Case,
    describe_deviations,
    deviate,
    DEVIATIONS,
    exact_field,
    find_deviation,
    make_case,
    render_film,
)

TRAINING = 0.6  # share of the frames that laws are fitted to
SPECTRAL_ONLY = ("fourth", "fractional", "memory", "immobile")  # what finite volumes do not solve
BOTH = ("A", "C")
LATER = ("rod", "glare")  # deviations that are younger than the tuning set


@dataclass(frozen=True)
class Film:
    """One film: a case, what is broken in it and how much, and how it was filmed.

    ``deviation`` is "" for an undisturbed film, "all" for every fault of a camera at once. ``library`` is where the law
    would be found if nothing were wrong.
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
        alone = f"undisturbed{f'={self.strength:g}' if self.strength else ''}"
        what = f"{self.deviation}={self.strength:g}" if self.deviation else alone
        return f"{self.set.replace(' ', '-')}-{self.base}-{what}"

    @property
    def broken(self) -> list[tuple[str, float]]:
        """The deviations that are broken, with their strengths."""
        if self.deviation == ALL:
            return list(strengths_of_all(self.strength).items())
        return [(self.deviation, self.strength)] if self.deviation else []

    @property
    def law(self) -> dict[str, float]:
        """The law that the film obeys, by term name; empty where no sum of the catalogue's terms is."""
        broken = any(find_deviation(name).law == "none" for name, _ in self.broken)
        return {} if broken else self.deviated()[0].law.coefficients

    @cached_property
    def nominal(self) -> dict[str, float]:
        """The coefficients before anything was broken (or after, where the deviation is another law).

        Of a coefficient that falls with time, its mean over the training window: there is no other one number. That of
        sub-diffusion is in length²/time^α; it spreads as K t^α/Γ(1 + α), and D is the mean rate. That of fractional
        diffusion is in length^α/time, and D that of the diffusion nearest to it.
        """
        same = all(find_deviation(name).law != "other" for name, _ in self.broken)
        law = self.case.law.coefficients if same else self.deviated()[0].law.coefficients
        medium = self.deviated()[0].medium
        if medium.slowing:
            law = {**law, medium.varies: law[medium.varies] * (1 - medium.slowing * TRAINING / 2)}
        if self.deviation == "memory":
            order, span = self.strength, TRAINING * self.case.duration
            law = {**law, "laplacian": law["laplacian"] * span ** (order - 1) / math.gamma(1 + order)}
        if self.deviation == "fractional":
            law = {**law, "laplacian": law["laplacian"] * _nearest_diffusion(self.deviated()[0], self.strength)}
        return law

    def deviated(self) -> tuple[Case, Camera]:
        """Return the case and the camera with the assumption broken."""
        case, camera = self.case, self.camera
        for name, strength in self.broken:
            case, camera = deviate(case, camera, name, strength)
        return case, camera

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


def _nearest_diffusion(case: Case, order: float) -> float:
    """Return the least-squares d of −(−Δ)^(α/2)u ≈ dΔu over the training window: ⟨k^(2+α)|û|²⟩/⟨k⁴|û|²⟩."""
    grid = Grid(64, 64, 200.0, 200.0)
    values = exact_field(case, grid, np.linspace(0, TRAINING * case.duration, 7)).values.astype(float)
    power = np.mean(np.abs(np.fft.fft2(values - values.mean(axis=(1, 2), keepdims=True))) ** 2, axis=0)
    square = np.add.outer(*((2 * np.pi * np.fft.fftfreq(64, d)) ** 2 for d in (grid.dy, grid.dx)))
    return float(np.sum(power * square ** (1 + order / 2)) / np.sum(power * square**2))


def render(film: Film, folder: str | Path) -> tuple[Path, dict[str, Any]]:
    """Write the film into ``folder``; return its path and its truth."""
    case, camera = film.deviated()
    path = render_film(case, folder, camera, solver=film.solver, extra=describe_deviations([*film.broken]))
    return path, json.loads((Path(folder) / "truth.json").read_text(encoding="utf-8"))


def list_films(which: SET) -> list[Film]:
    """Name the films of a set, undisturbed ones and usual strengths first."""
    if which in CAMERA_SETS:
        return list(_camera(CAMERA_SETS[which]))
    return list(_tuning() if which == "tuning" else _check(CHECKS[which]))


FLOWS = ("rotation", "shear", "strain", "vortex", "pulse")
QUALITIES = (23, 18)


def list_flow_films() -> list[Film]:
    """Name the films of five laws in five flows of usual strength, each at two qualities of the encoder."""
    films = []
    for base, library in LIBRARIES.items():
        for name in FLOWS:
            for crf in QUALITIES:
                camera = Camera(size=(PIXELS, PIXELS), frames=FRAMES, noise=NOISE, crf=crf, seed=900 + len(films))
                strength = find_deviation(name).strengths[1]
                films.append(Film("flows", base, name, strength, make_case(base), camera, library=library))
    return films


FLOW_CHECK: tuple[tuple[str, dict[str, float], str, float], ...] = (
    ("A", {"laplacian": 1.1}, "rotation", 0.045),
    ("A", {"laplacian": 2.0}, "pulse", 0.9),
    ("B", {"u": -0.03, "laplacian": 0.9}, "shear", 0.03),
    ("B", {"u": -0.015, "laplacian": 1.6}, "vortex", 1.0),
    ("C", {"grad_squared": 6.5, "laplacian": 0.9}, "strain", 0.015),
    ("C", {"grad_squared": 11.0, "laplacian": 0.8}, "vortex", 0.5),
    ("C-alt", {"u_grad_squared": 15.0, "laplacian": 0.7}, "rotation", 0.02),
    ("C-alt", {"u_grad_squared": 10.0, "laplacian": 1.0}, "pulse", 1.6),
    ("Fisher", {"u": 0.11, "u_squared": -0.12, "laplacian": 1.1}, "shear", 0.015),
    ("Fisher", {"u": 0.16, "u_squared": -0.19, "laplacian": 0.7}, "vortex", 0.9),
)
"""Films in flows to check on: other laws, plumes, strengths, seeds, a picture that is not square, another quality, and
the second solver. Fixed before one was run."""


def list_flow_check() -> list[Film]:
    """Name the films in flows on which no rule was made."""
    films = []
    for turn, (base, law, name, strength) in enumerate(FLOW_CHECK):
        case = make_case(base, coefficients=law, seed=410 + turn)
        camera = Camera(size=(256, 232), frames=180, noise=0.012, crf=21, seed=1700 + turn)
        films.append(Film("flow check", base, name, strength, case, camera, "volumes", LIBRARIES[base]))
    return films


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
            for base in () if name in LATER else deviation.only or BOTH:
                strength = deviation.strengths[rank]
                yield Film("tuning", base, name, strength, cases[base], camera, library=base)


def _check(chosen: CheckSet) -> Iterator[Film]:
    turn = 0
    for name in ("", *chosen.strengths):
        for base, strength in chosen.strengths.get(name, tuple((base, 0.0) for base in chosen.cases)):
            case, plume = chosen.cases[base]
            codec, crf, container = chosen.encoders[turn % len(chosen.encoders)]
            seed = chosen.camera.seed + turn
            camera = replace(chosen.camera, crf=crf, seed=seed, codec=codec, container=container)
            solver: Literal["spectral", "volumes"] = "spectral" if name in SPECTRAL_ONLY else "volumes"
            film = replace(case, plume=plume)
            yield Film(chosen.name, base, name, strength, film, camera, solver, LIBRARIES[base])
            turn += 1


def _camera(chosen: CameraSet) -> Iterator[Film]:
    """Name the films of a camera's faults: undisturbed ones of several seeds (their strength), then each fault."""
    for base, case in chosen.cases.items():
        for seed in range(1, chosen.undisturbed + 1):
            camera = replace(chosen.camera, seed=chosen.camera.seed + seed)
            yield Film(chosen.name, base, "", float(seed), case, camera, library=LIBRARIES[base])
    for turn, (name, strengths) in enumerate(chosen.strengths.items(), start=chosen.undisturbed + 1):
        for base, case in chosen.cases.items():
            for rank, strength in enumerate(strengths):
                camera = replace(chosen.camera, seed=chosen.camera.seed + 10 * turn + rank)
                yield Film(chosen.name, base, name, strength, case, camera, library=LIBRARIES[base])
