"""Effects in words: what they are, how large, and what to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from video2pde.fit.effects import Context
from video2pde.fit.suspects import ANISOTROPY, Suspect

Array = NDArray[np.float64]


def describe_effect(suspect: Suspect, amplitudes: Array, context: Context) -> str:
    """Say what an effect is, with its size where one number tells it."""
    return f"{_sized(suspect, amplitudes, context)}: {suspect.cure}"


def _sized(suspect: Suspect, amplitudes: Array, context: Context) -> str:
    size = float(np.mean(amplitudes)) if len(amplitudes) else 0.0
    if suspect.name == "rotation":
        return f"the fluid turns at about {abs(size):.2g} rad/s"
    if suspect.name == "strain":
        return f"the fluid is stretched or sheared at about {float(np.hypot(*amplitudes[:2])):.2g} /s"
    if suspect.name == "divergence":
        return f"the surface {'spreads' if size > 0 else 'contracts'} at about {abs(size):.2g} /s"
    if suspect.name == "gain":
        if len(amplitudes) == 1 or np.ptp(amplitudes) < abs(size):
            return f"the light {'dims' if size < 0 else 'grows'} by about {100 * abs(size):.2g} % a second"
        return f"the light changes by up to {100 * float(np.abs(amplitudes).max()):.2g} % a second, up and down"
    diffusion = abs(context.model.amount("laplacian"))
    if suspect.name == ANISOTROPY and diffusion > 0:
        share = float(np.hypot(*amplitudes[:2])) / diffusion
        return f"it spreads {2 * share:.0%} faster in one direction than across it"
    return suspect.meaning
