"""The films to check on, as data: cases, plumes, strengths, encoders and cameras of each set (see ``films``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from video2pde.recording.synth import Camera, Case, make_case, Optics, Plume

SET = Literal[
    "tuning",
    "check",
    "second",
    "third",
    "fourth",
    "fifth",
    "flows",
    "flow check",
    "camera",
    "camera again",
    "camera third",
    "camera fourth",
]
PIXELS, FRAMES, NOISE = 240, 200, 0.01


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
FOURTH_CASES = {
    "A": (
        make_case("A", coefficients={"laplacian": 1.3}, drift=(-0.1, -0.15), background=0.1),
        Plume(0.8, 61, 6, 1.1, "hook"),
    ),
    "B": (
        make_case("B", coefficients={"u": -0.018, "laplacian": 1.6}, drift=(0.1, -0.2), background=0.04),
        Plume(0.7, 67, 9, 1.0),
    ),
    "C": (
        make_case("C", coefficients={"grad_squared": 8.2, "laplacian": 0.85}, drift=(-0.1, 0.2), background=0.05),
        Plume(0.8, 71, 7, 1.0, "spots"),
    ),
    "C-alt": (
        make_case("C-alt", coefficients={"u_grad_squared": 16.0, "laplacian": 0.9}, drift=(0.2, 0.05)),
        Plume(0.75, 73, 8, 1.1, "spots"),
    ),
    "Fisher": (
        make_case("Fisher", coefficients={"u": 0.11, "u_squared": -0.13, "laplacian": 1.2}, drift=(-0.05, 0.15)),
        Plume(0.45, 79, 7, 1.0, "hook"),
    ),
}
FOURTH_STRENGTHS: dict[str, tuple[tuple[str, float], ...]] = {
    "rotation": (("A", 0.008), ("C", 0.024), ("B", 0.05)),
    "shear": (("B", 0.006), ("C", 0.023), ("C-alt", 0.035)),
    "strain": (("C", 0.003), ("A", 0.01), ("Fisher", 0.018)),
    "vortex": (("B", 0.2), ("C-alt", 0.8), ("A", 1.3)),
    "pulse": (("C", 0.4), ("A", 1.3), ("B", 2.0)),
    "divergence": (("A", 0.0015), ("C", 0.005), ("B", 0.009)),
    "source": (("C", 0.008), ("A", 0.035), ("C-alt", 0.05)),
    "halves": (("B", 0.08), ("C", 0.35), ("A", 0.5)),
    "slowing": (("C", 0.08), ("A", 0.35), ("B", 0.55)),
    "anisotropy": (("A", 0.08), ("C", 0.35), ("B", 0.45)),
    "fading": (("A", 0.006), ("A", 0.018), ("A", 0.035)),
    "steep": (("C", 0.2), ("C", 0.14), ("C", 0.06)),
    "fourth": (("A", 4.0), ("A", 12.0), ("A", 30.0)),
    "fractional": (("A", 1.85), ("A", 1.55), ("A", 1.25)),
    "memory": (("A", 0.93), ("A", 0.78), ("A", 0.62)),
    "immobile": (("A", 0.04), ("C", 0.12), ("A", 0.28)),
    "dimming": (("B", 0.02), ("C", 0.08), ("A", 0.18)),
    "exposure": (("C", 0.25), ("A", 0.7), ("C-alt", 0.95)),
    "flicker": (("A", 0.004), ("C-alt", 0.018), ("B", 0.035)),
    "steps": (("C", 0.015), ("A", 0.045), ("C", 0.09)),
    "vignetting": (("B", 0.08), ("C", 0.18), ("A", 0.35)),
    "dome": (("A", 0.08), ("C", 0.22), ("B", 0.45)),
    "gamma": (("A", 1.2), ("C", 1.7), ("B", 2.1)),
    "focus": (("C", 0.8), ("A", 1.8), ("B", 2.8)),
}
FIFTH_CASES = {
    "A": (
        make_case("A", coefficients={"laplacian": 1.7}, drift=(0.2, -0.1), background=0.07),
        Plume(0.7, 83, 9, 1.0, "spots"),
    ),
    "B": (
        make_case("B", coefficients={"u": -0.024, "laplacian": 1.3}, drift=(-0.15, 0.1), background=0.1),
        Plume(0.75, 89, 7, 1.1, "hook"),
    ),
    "C": (
        make_case("C", coefficients={"grad_squared": 7.0, "laplacian": 1.0}, drift=(0.05, 0.25), background=0.08),
        Plume(0.7, 97, 8, 1.1),
    ),
    "C-alt": (
        make_case("C-alt", coefficients={"u_grad_squared": 13.0, "laplacian": 1.1}, drift=(-0.2, 0.1)),
        Plume(0.8, 101, 7, 1.0, "hook"),
    ),
    "Fisher": (
        make_case("Fisher", coefficients={"u": 0.085, "u_squared": -0.105, "laplacian": 1.3}, drift=(0.05, -0.15)),
        Plume(0.5, 103, 9, 1.1),
    ),
}
FIFTH_STRENGTHS: dict[str, tuple[tuple[str, float], ...]] = {
    "rotation": (("C", 0.006), ("B", 0.028), ("A", 0.042)),
    "shear": (("A", 0.004), ("C", 0.017), ("B", 0.032)),
    "strain": (("B", 0.004), ("C", 0.012), ("A", 0.02)),
    "vortex": (("C", 0.25), ("A", 0.75), ("C-alt", 1.1)),
    "divergence": (("C", 0.0012), ("A", 0.0035), ("B", 0.0075)),
    "source": (("A", 0.006), ("C", 0.035), ("B", 0.055)),
    "halves": (("A", 0.06), ("C-alt", 0.28), ("C", 0.5)),
    "slowing": (("A", 0.06), ("C", 0.28), ("A", 0.45)),
    "anisotropy": (("C", 0.06), ("A", 0.28), ("C", 0.42)),
    "fading": (("A", 0.008), ("A", 0.022), ("A", 0.04)),
    "steep": (("C", 0.22), ("C", 0.17), ("C", 0.1)),
    "fourth": (("A", 3.5), ("A", 10.0), ("A", 22.0)),
    "fractional": (("A", 1.88), ("A", 1.7), ("A", 1.45)),
    "memory": (("A", 0.95), ("A", 0.85), ("A", 0.7)),
    "immobile": (("C", 0.03), ("A", 0.1), ("C", 0.22)),
    "dimming": (("A", 0.015), ("B", 0.09), ("C", 0.16)),
    "exposure": (("A", 0.2), ("C", 0.6), ("B", 0.85)),
    "steps": (("A", 0.012), ("C-alt", 0.035), ("B", 0.075)),
    "vignetting": (("C", 0.06), ("A", 0.16), ("C", 0.32)),
    "gamma": (("C", 1.15), ("A", 1.55), ("C-alt", 1.9)),
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
    "fourth": CheckSet(
        "fourth",
        FOURTH_CASES,
        FOURTH_STRENGTHS,
        (("h264", 21, "mp4"), ("h265", 22, "mkv"), ("mpeg4", 6, "mp4"), ("vp9", 22, "mkv")),
        Camera(size=(230, 240), frames=190, noise=0.01, seed=700, optics=Optics(photons=True, blur=0.6)),
    ),
    "fifth": CheckSet(
        "fifth",
        FIFTH_CASES,
        FIFTH_STRENGTHS,
        (("h265", 20, "mkv"), ("vp9", 26, "mp4"), ("h264", 19, "mp4"), ("mpeg4", 7, "mkv")),
        Camera(size=(240, 220), frames=195, noise=0.011, seed=1100, optics=Optics(photons=True, blur=0.6)),
    ),
}
