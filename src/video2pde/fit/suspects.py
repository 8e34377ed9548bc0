"""The suspects: effects that break an assumption, each with its columns in the weak system and words about it.

Each is asked how much of what the law leaves it would take away, against what chance would take (``score``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from video2pde.fit import effects
from video2pde.fit.effects import Columns
from video2pde.maps import CoefficientMap
from video2pde.settings import FrapSettings, RecordingSettings
from video2pde.terms import CATALOGUE
from video2pde.terms.catalogue import TENSOR
from video2pde.terms.words import describe

UNEVEN_LIGHT, RESPONSE, SOURCE, ANISOTROPY = "uneven light", "response", "source", "anisotropy"
STEADY_LIGHT, OF_LIGHT = "light that changes to match", ("gain", "flicker", "offset")
"""That light makes up for a part of the law, which a recording in steady light answers; and the suspects that do so."""
IN_SPACE, IN_TIME = "coefficients in space", "coefficients in time"
OFTEN_MISSING = ("constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian", "porous", "biharmonic")
"""Terms of the catalogue that are tried one by one where the law lacks them."""


@dataclass(frozen=True)
class Suspect:
    """An effect: its columns (M, k), what it means and what to do.

    ``law_bound``: the columns depend on the law; ``searched``: unknowns that were chosen before the columns were made;
    ``adds``: terms of the catalogue that it stands for; ``late``: it is asked only once a law is known to fail.
    """

    name: str
    columns: Columns
    meaning: str
    cure: str
    law_bound: bool = False
    searched: int = 0
    adds: tuple[str, ...] = ()
    late: bool = False


FLOW_CURE = 'a flow that is not uniform can be included with drift.flow = "auto"'
LIGHT_CURE = 'include it with recording.illumination = "gain"'
POPULATIONS_CURE = "after a bleach, compare laws with a bound, an immobile or a slower part: --populations"
SUSPECTS: tuple[Suspect, ...] = (
    Suspect(
        "drift",
        effects.uneven_drift,
        "the drift changes faster than it is followed (a shake, a push)",
        "steady the camera or set recording.stabilise; or raise calibration.drift_knots",
    ),
    Suspect("rotation", effects.rotation, "the fluid turns", FLOW_CURE),
    Suspect("strain", effects.strain, "the fluid is stretched or sheared", FLOW_CURE),
    Suspect("divergence", effects.thinning, "the surface spreads or contracts", FLOW_CURE),
    Suspect("divergence", effects.spreading, "the surface spreads or contracts, fed from below", FLOW_CURE),
    Suspect("flow", effects.flow, "the flow is not the same everywhere (an eddy, a jet)", FLOW_CURE),
    Suspect("flow", effects.changing_flow, "the flow is not the same everywhere, and changes", FLOW_CURE, late=True),
    Suspect("gain", effects.gain, "the light or the exposure changes with time", LIGHT_CURE, law_bound=True),
    Suspect("gain", effects.steady_gain, "the light or the exposure changes steadily", LIGHT_CURE, law_bound=True),
    Suspect("flicker", effects.flicker, "the light flickers", LIGHT_CURE),
    Suspect(
        "offset",
        effects.offset,
        "a brightness that is the same everywhere is added, and changes with time",
        "shade the set-up, or mask a part that stays empty and subtract it",
    ),
    Suspect(
        UNEVEN_LIGHT,
        effects.uneven_light,
        "the picture is not lit evenly (vignetting, a lamp to one side)",
        "give a picture of the empty scene with --reference",
        law_bound=True,
    ),
    Suspect(
        RESPONSE,
        effects.response,
        "grey values are not in proportion to light (gamma, a tone curve)",
        "film with a linear response, or give recording.response",
        law_bound=True,
    ),
    Suspect(
        SOURCE,
        effects.source,
        "something is added or taken away at fixed places",
        "mask the source with recording.mask",
    ),
    Suspect(
        SOURCE,
        effects.changing_source,
        "something is added or taken away at fixed places, for a time",
        "mask the source with recording.mask, or cut its time out with recording.start",
    ),
    *(
        Suspect(
            SOURCE,
            columns,
            "something is added or taken away at one place",
            "mask the source with recording.mask, or cut its time out with recording.start",
            law_bound=True,
            searched=3,
        )
        for columns in (effects.local_source, effects.passing_source)
    ),
    *(
        Suspect(
            IN_SPACE,
            columns,
            "the law's coefficients differ from place to place",
            "let one vary over space, such as --vary laplacian, or crop to a uniform part",
            law_bound=True,
        )
        for columns in (effects.in_space, effects.along_space)
    ),
    Suspect(
        IN_TIME,
        effects.in_time,
        "the law's coefficients change with time",
        "let one vary over time, such as --vary laplacian=time, or cut a steady part out with recording.start and stop",
        law_bound=True,
    ),
    Suspect(
        ANISOTROPY,
        effects.anisotropy,
        "it spreads faster in one direction than across it",
        "fit diffusion as a tensor: --diffusion tensor",
    ),
    Suspect(
        "memory",
        effects.memory,
        "there is a second time scale: what happened before goes on",
        f"a law of first order in time cannot say it; {POPULATIONS_CURE}, or film for longer",
        law_bound=True,
    ),
    Suspect(
        "immobile part",
        effects.immobile,
        "a part of it does not move",
        f"{POPULATIONS_CURE}; or rinse it, or subtract it",
        law_bound=True,
    ),
    Suspect(
        "missing constant and u",
        effects.missing("constant", "u"),
        "it fades or grows towards a level of its own",
        'give a library with "constant" and "u"',
        law_bound=True,
        adds=("constant", "u"),
    ),
    *(
        Suspect(
            f"missing {name}",
            effects.missing(name),
            f"a term {describe(CATALOGUE[name]).text} is missing",
            f'give a library with "{name}"',
            law_bound=True,
            adds=(name,),
        )
        for name in OFTEN_MISSING
    ),
)


def out_of_place(frap: FrapSettings) -> frozenset[str]:
    """Name the suspects that are no cause here: after a bleach nothing is added, what fills is the spot."""
    return frozenset({SOURCE} if frap.enabled else ())


def answered_by(
    recording: RecordingSettings, law: Sequence[str] = (), maps: Sequence[CoefficientMap] = ()
) -> frozenset[str]:
    """Name the suspects that settings or law have answered: a reference holds uneven light, a tensor anisotropy."""
    varied = {each.over for each in maps}
    answered = {
        IN_SPACE: "space" in varied,
        IN_TIME: "time" in varied,
        UNEVEN_LIGHT: recording.reference is not None,
        RESPONSE: recording.response != "auto",
        STEADY_LIGHT: recording.illumination == "steady",
        ANISOTROPY: set(TENSOR) <= set(law),
    }
    return frozenset(name for name, known in answered.items() if known)
