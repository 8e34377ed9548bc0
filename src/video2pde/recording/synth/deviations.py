"""One broken assumption at a time: named deviations of a known-truth recording, each with a strength.

A deviation changes the case (what happens) or the camera (how it is filmed). Its ``law`` says what a reader of the film
should still find: the case's own law, another one that the deviation makes, or none of the libraries'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from video2pde.errors import InputError
from video2pde.recording.synth.laws import Case
from video2pde.recording.synth.medium import Source
from video2pde.recording.synth.render import Camera

Change = Callable[[Case, Camera, float], tuple[Case, Camera]]
STRONGEST = 1e6
Kind = Literal["flow", "source", "coefficient", "law", "light", "camera", "object", "frames"]


@dataclass(frozen=True)
class Deviation:
    """Name a broken assumption.

    Parameters
    ----------
    kind : what it belongs to. words : what happens, with the strength's meaning and unit.
    strengths : a weak, a usual and a strong one.
    law : what is to be found: "same", "other" (still a sum of the catalogue's terms) or "none".
    only : names of the cases that it makes sense for; empty: all.
    """

    name: str
    kind: Kind
    words: str
    strengths: tuple[float, float, float]
    change: Change
    law: Literal["same", "other", "none"] = "same"
    only: tuple[str, ...] = ()

    @property
    def usual(self) -> float:
        return self.strengths[1]


def deviate(case: Case, camera: Camera, name: str, strength: float | None = None) -> tuple[Case, Camera]:
    """Apply the deviation called ``name``; its usual strength unless one is given."""
    deviation = find_deviation(name)
    if deviation.only and case.name not in deviation.only:
        raise InputError(f"the deviation {deviation.name} needs case {' or '.join(deviation.only)}, not {case.name}")
    return deviation.change(case, camera, deviation.usual if strength is None else strength)


def find_deviation(name: str) -> Deviation:
    """Return the deviation called ``name``."""
    try:
        return DEVIATIONS[name.strip().lower()]
    except KeyError:
        raise InputError(f"no deviation is called {name!r}; deviations: {', '.join(DEVIATIONS)}") from None


def parse_deviations(text: str) -> list[tuple[str, float | None]]:
    """Read ``rotation=0.03,flicker`` as names with strengths, None where none is given."""
    found: list[tuple[str, float | None]] = []
    for part in text.split(","):
        name, given, value = part.partition("=")
        try:
            strength = float(value) if given else None
        except ValueError:
            raise InputError(f"the strength {value!r} of the deviation {name!r} is not a number") from None
        if strength is not None and not abs(strength) <= STRONGEST:
            raise InputError(f"the strength {value!r} of the deviation {name!r} is not between ±{STRONGEST:g}")
        found.append((find_deviation(name).name, strength))
    return found


def describe_deviations(parts: list[tuple[str, float | None]]) -> dict[str, Any]:
    """Return the entry of ``truth.json`` that names what was broken."""
    entries = []
    for name, strength in parts:
        deviation = find_deviation(name)
        entries.append(
            {
                "name": name,
                "kind": deviation.kind,
                "strength": deviation.usual if strength is None else strength,
                "words": deviation.words,
                "law": deviation.law,
            }
        )
    return {"deviations": entries}


def _flow(**parts: float) -> Change:
    """Make a change that adds a flow; each part is a factor on the strength."""

    def change(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
        changed: dict[str, Any] = {name: factor * s for name, factor in parts.items()}
        return replace(case, medium=replace(case.medium, flow=replace(case.medium.flow, **changed))), camera

    return change


def _medium(name: str) -> Change:
    def change(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
        changed: dict[str, Any] = {name: s}
        return replace(case, medium=replace(case.medium, **changed)), camera

    return change


def _optics(name: str, kind: Callable[[float], Any] = float) -> Change:
    def change(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
        changed: dict[str, Any] = {name: kind(s)}
        return case, replace(camera, optics=replace(camera.optics, **changed))

    return change


def _camera(name: str) -> Change:
    def change(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
        changed: dict[str, Any] = {name: s}
        return case, replace(camera, **changed)

    return change


def _pulse(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
    on_and_off = (0.2 * case.duration, 0.5 * case.duration)
    flow = replace(case.medium.flow, vortex=s, pulse=on_and_off)
    return replace(case, medium=replace(case.medium, flow=flow)), camera


def _drip(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
    # a lower plume leaves room for what is added
    low = replace(case.plume, peak=0.6 * case.plume.peak)
    source = Source(s, until=case.duration / 2)
    return replace(case, plume=low, medium=replace(case.medium, source=source)), camera


def _vary(name: str) -> Change:
    """Make a change that lets the law's leading coefficient vary: a where there is one, otherwise D."""

    def change(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
        leading = "grad_squared" if case.law.grad_squared else "laplacian"
        changed: dict[str, Any] = {"varies": leading, name: s}
        return replace(case, medium=replace(case.medium, **changed)), camera

    return change


def _vary_diffusion(name: str) -> Change:
    """Make a change that lets D vary, whatever else is in the law."""

    def change(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
        changed: dict[str, Any] = {"varies": "laplacian", name: s}
        return replace(case, medium=replace(case.medium, **changed)), camera

    return change


def _fade(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
    law = replace(case.law, u=case.law.u - s, constant=case.law.constant + s * case.background)
    return replace(case, law=law), camera


def _steepen(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
    return replace(case, law=replace(case.law, laplacian=s)), camera


def _oversaturate(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
    return replace(case, dense=True, plume=replace(case.plume, peak=1 - case.background + s)), camera


def _hold(case: Case, camera: Camera, s: float) -> tuple[Case, Camera]:
    return case, replace(camera, optics=replace(camera.optics, roll=s, zoom=s / 100))


_TABLE = (
    Deviation("rotation", "flow", "the liquid turns as a whole, rad/s", (0.01, 0.03, 0.06), _flow(rotation=1.0)),
    Deviation("shear", "flow", "layers slide past each other, 1/s", (0.007, 0.02, 0.04), _flow(shear=1.0)),
    Deviation("strain", "flow", "the liquid is stretched along x, 1/s", (0.003, 0.01, 0.02), _flow(strain=1.0)),
    Deviation("vortex", "flow", "a vortex off-centre, largest speed", (0.25, 0.7, 1.4), _flow(vortex=1.0)),
    Deviation("pulse", "flow", "a vortex that turns on and off, largest speed", (0.5, 1.2, 2.4), _pulse),
    Deviation("divergence", "flow", "the surface spreads, div v in 1/s", (0.002, 0.005, 0.01), _flow(divergence=1.0)),
    Deviation("source", "source", "dye keeps dripping for half the time, u per second", (0.01, 0.03, 0.06), _drip),
    Deviation(
        "halves",
        "coefficient",
        "the left half spreads (1 + s)/(1 − s) times as fast",
        (0.1, 0.33, 0.6),
        _vary("halves"),
        "none",
    ),
    Deviation(
        "bump",
        "coefficient",
        "D is 1 + s times as large in the middle of a round patch",
        (0.3, 1.0, 2.0),
        _vary_diffusion("bump"),
        "none",
    ),
    Deviation(
        "slowing",
        "coefficient",
        "the spreading slows down by this share until the end",
        (0.1, 0.3, 0.6),
        _vary("slowing"),
        "none",
    ),
    Deviation(
        "anisotropy",
        "coefficient",
        "D_x = D(1 + s), D_y = D(1 − s)",
        (0.1, 0.33, 0.5),
        _medium("anisotropy"),
        "none",
    ),
    Deviation(
        "fading",
        "law",
        "the dye fades on a background that stays, −k(u − u_b), 1/s",
        (0.005, 0.02, 0.04),
        _fade,
        "other",
    ),
    Deviation(
        "steep",
        "law",
        "a steep front: diffusion of only this much beside a|∇u|²",
        (0.3, 0.1, 0.06),
        _steepen,
        "other",
        ("C",),
    ),
    Deviation(
        "fourth",
        "law",
        "a fourth-order term −κΔ²u, κ",
        (3.0, 10.0, 30.0),
        _medium("fourth"),
        "none",
    ),
    Deviation(
        "fractional",
        "law",
        "fractional diffusion −D(−Δ)^(α/2), α",
        (1.8, 1.5, 1.2),
        _medium("fractional"),
        "none",
        ("A",),
    ),
    Deviation(
        "memory",
        "law",
        "sub-diffusion, a time derivative of order α",
        (0.95, 0.8, 0.6),
        _medium("memory"),
        "none",
        ("A",),
    ),
    Deviation(
        "immobile",
        "law",
        "this share of the plume does not move",
        (0.05, 0.15, 0.3),
        _medium("immobile"),
        "none",
    ),
    Deviation("dimming", "light", "the light dims by this share until the end", (0.03, 0.1, 0.2), _optics("dimming")),
    Deviation("exposure", "light", "automatic exposure makes up for this share", (0.3, 0.6, 1.0), _optics("exposure")),
    Deviation("flicker", "light", "the light flickers, standard deviation", (0.005, 0.02, 0.04), _camera("flicker")),
    Deviation("steps", "light", "the light jumps three times by this share", (0.02, 0.05, 0.1), _optics("steps")),
    Deviation(
        "vignetting", "light", "the corners lose this share of the light", (0.1, 0.2, 0.4), _camera("vignetting")
    ),
    Deviation("dome", "light", "light that falls off from a point off-centre", (0.1, 0.25, 0.5), _optics("dome")),
    Deviation("gamma", "camera", "the camera's pixel is light^(1/γ), γ", (1.3, 1.8, 2.2), _optics("gamma")),
    Deviation("saturation", "camera", "ink so dense that u passes 1 by this much", (0.05, 0.15, 0.3), _oversaturate),
    Deviation("shake", "camera", "the camera shakes, pixels (rms)", (0.3, 0.6, 2.0), _optics("shake")),
    Deviation("handheld", "camera", "the camera turns (degrees) and zooms (per cent), rms", (0.1, 0.3, 0.6), _hold),
    Deviation("focus", "camera", "the focus drifts, blur at the end in pixels", (1.0, 2.0, 3.0), _optics("focus")),
    Deviation("yellow", "camera", "yellow ink, missing share of red and green", (0.8, 0.9, 0.95), _optics("yellow")),
    Deviation("dust", "object", "specks of dust, their number", (5, 15, 40), _optics("dust", int)),
    Deviation("walls", "object", "two walls in the picture, their darkness", (0.2, 0.5, 0.9), _optics("walls")),
    Deviation(
        "rod",
        "object",
        "an opaque rod in the plume, radius as a share of the picture",
        (0.03, 0.05, 0.08),
        _optics("rod"),
    ),
    Deviation(
        "glare", "object", "a reflection in the plume, the light that it adds", (0.1, 0.2, 0.3), _optics("glare")
    ),
    Deviation("stamp", "object", "the time burnt into the picture, its darkness", (0.3, 0.6, 0.95), _optics("stamp")),
    Deviation("hand", "frames", "a hand reaches into the picture, frames", (4, 10, 20), _optics("hand", int)),
    Deviation("black", "frames", "black frames in the middle, their number", (1, 3, 8), _optics("black", int)),
    Deviation("cut", "frames", "the last share of the film shows another scene", (0.1, 0.2, 0.3), _optics("cut")),
    Deviation("repeats", "frames", "share of frames that repeat the one before", (0.02, 0.05, 0.1), _optics("repeats")),
)

DEVIATIONS: Mapping[str, Deviation] = {deviation.name: deviation for deviation in _TABLE}
