"""What a camera does to films of known laws, as data (see ``films``).

All sets were fixed before a film of theirs was run. The first has the strengths of the table of deviations, with seeds
of its own. The second, to check on, has other laws, plumes, strengths, seeds and another encoder. What was wrong there
was mended, so that a third one was fixed, with pictures that are not square. These three are of diffusion (A) and of
front-like spreading (C). The fourth has decay (B), u|∇u|² (C-alt) and logistic growth (Fisher) beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from check_sets import FRAMES, NOISE, PIXELS, SET

from video2pde.recording.synth import Camera, Case, find_deviation, make_case, Plume

ALL = "all"
"""Every fault of AT_ONCE in one film; its strength is the rank of theirs."""
AT_ONCE = (
    "flicker",
    "dimming",
    "exposure",
    "vignetting",
    "gamma",
    "shake",
    "dust",
    "walls",
    "saturation",
    "focus",
    "yellow",
)
NAMED_GAMMA = 2.2
"""A response that the file names: which one it was cannot be told from pictures, least of all from such."""


@dataclass(frozen=True)
class CameraSet:
    """A set of films of two laws, ``undisturbed`` ones of several seeds and one for each fault and strength."""

    name: SET
    cases: Mapping[str, Case]
    strengths: Mapping[str, tuple[float, ...]]
    camera: Camera
    undisturbed: int = 4


def strengths_of_all(rank: float) -> dict[str, float]:
    """Return the strength of each fault where all are there at once: the weak ones (1), or the usual ones (2)."""
    found = {name: find_deviation(name).strengths[int(rank) - 1] for name in AT_ONCE}
    return {**found, "gamma": NAMED_GAMMA}


STRENGTHS: dict[str, tuple[float, ...]] = {
    "flicker": (0.02,),
    "dimming": (0.1,),
    "exposure": (0.6,),
    "vignetting": (0.2,),
    "gamma": (1.8, NAMED_GAMMA),
    "shake": (0.5, 1.0, 2.0),
    "handheld": (0.3,),
    "dust": (15,),
    "walls": (0.5,),
    "saturation": (0.15,),
    "focus": (2.0,),
    "yellow": (0.9,),
    "source": (0.03,),
    ALL: (1, 2),
    "rod": (0.05,),
    "glare": (0.2,),
}
AGAIN: dict[str, tuple[float, ...]] = {
    "flicker": (0.03,),
    "dimming": (0.15,),
    "exposure": (0.8,),
    "vignetting": (0.3,),
    "gamma": (1.5, NAMED_GAMMA),
    "shake": (0.7, 1.5),
    "handheld": (0.4,),
    "dust": (25,),
    "walls": (0.7,),
    "saturation": (0.1,),
    "focus": (1.5,),
    "yellow": (0.85,),
    "source": (0.02,),
    ALL: (1, 2),
    "rod": (0.04,),
    "glare": (0.15,),
}
THIRD: dict[str, tuple[float, ...]] = {
    "flicker": (0.025,),
    "dimming": (0.08,),
    "exposure": (0.5,),
    "vignetting": (0.25,),
    "gamma": (1.6, NAMED_GAMMA),
    "shake": (0.8, 1.8),
    "handheld": (0.35,),
    "dust": (20,),
    "walls": (0.6,),
    "saturation": (0.12,),
    "focus": (1.8,),
    "yellow": (0.87,),
    "source": (0.025,),
    ALL: (1, 2),
    "rod": (0.06,),
    "glare": (0.25,),
}
FOURTH: dict[str, tuple[float, ...]] = {
    "flicker": (0.015,),
    "dimming": (0.12,),
    "exposure": (0.7,),
    "steps": (0.04,),
    "vignetting": (0.22,),
    "gamma": (NAMED_GAMMA,),
    "shake": (1.2,),
    "handheld": (0.25,),
    "dust": (18,),
    "walls": (0.55,),
    "saturation": (0.08,),
    "focus": (1.2,),
    "yellow": (0.88,),
    "source": (0.035,),
    "rod": (0.045,),
    "glare": (0.18,),
    ALL: (1,),
}
CAMERA_SETS: dict[SET, CameraSet] = {
    "camera": CameraSet(
        "camera",
        {
            "A": make_case("A", coefficients={"laplacian": 1.5}),
            "C": make_case("C", coefficients={"grad_squared": 9.0, "laplacian": 0.7}),
        },
        STRENGTHS,
        Camera(size=(PIXELS, PIXELS), frames=FRAMES, noise=NOISE, crf=23, seed=6000),
    ),
    "camera again": CameraSet(
        "camera again",
        {
            "A": replace(
                make_case("A", coefficients={"laplacian": 2.0}, drift=(0.2, -0.1)),
                plume=Plume(0.7, 41, 7, 1.0, "spots"),
            ),
            "C": replace(
                make_case("C", coefficients={"grad_squared": 7.0, "laplacian": 1.0}, drift=(-0.1, 0.15)),
                plume=Plume(0.7, 43, 6, 1.0, "hook"),
            ),
        },
        AGAIN,
        Camera(size=(PIXELS, PIXELS), frames=FRAMES, noise=NOISE, crf=21, seed=7000, codec="h265"),
    ),
    "camera third": CameraSet(
        "camera third",
        {
            "A": replace(
                make_case("A", coefficients={"laplacian": 1.2}, drift=(-0.15, -0.1), background=0.12),
                plume=Plume(0.72, 51, 6, 1.0, "hook"),
            ),
            "C": replace(
                make_case("C", coefficients={"grad_squared": 8.0, "laplacian": 0.9}, drift=(0.12, 0.15)),
                plume=Plume(0.68, 53, 8, 1.0, "spots"),
            ),
        },
        THIRD,
        Camera(size=(232, 256), frames=FRAMES, noise=NOISE, crf=22, seed=8000),
    ),
    "camera fourth": CameraSet(
        "camera fourth",
        {
            "A": replace(
                make_case("A", coefficients={"laplacian": 1.7}, drift=(0.1, 0.2)),
                plume=Plume(0.66, 61, 7, 1.0, "spots"),
            ),
            "B": replace(
                make_case("B", coefficients={"u": -0.025, "laplacian": 1.3}, drift=(-0.15, 0.1)),
                plume=Plume(0.74, 63, 8, 1.0, "hook"),
            ),
            "C": replace(
                make_case("C", coefficients={"grad_squared": 10.0, "laplacian": 0.8}, drift=(0.15, -0.12)),
                plume=Plume(0.64, 65, 7, 1.0, "hook"),
            ),
            "C-alt": replace(
                make_case("C-alt", coefficients={"u_grad_squared": 15.0, "laplacian": 0.9}, drift=(-0.12, -0.15)),
                plume=Plume(0.76, 67, 6, 1.0, "spots"),
            ),
            "Fisher": replace(
                make_case("Fisher", coefficients={"u": 0.12, "u_squared": -0.15, "laplacian": 1.0}, drift=(0.1, -0.05)),
                plume=Plume(0.45, 69, 7, 1.0, "hook"),
            ),
        },
        FOURTH,
        Camera(size=(256, 240), frames=FRAMES, noise=NOISE, crf=20, seed=9000),
        undisturbed=2,
    ),
}
