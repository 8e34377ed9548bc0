"""Which colour a recording is read in: the one in which what spreads stands out most from the noise.

Yellow ink on white is nearly invisible in luma, and dark in blue. The channels are compared in a few pairs of
neighbouring frames: what differs between the pairs is signal, what differs within one is noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Header, Mix
from video2pde.recording.chroma import weigh_differences
from video2pde.recording.resize import AreaResizer

Array = NDArray[np.float64]
PLACES = 6  # in the film, at which two neighbouring frames are compared
SIDE = 40  # blocks along the longer side whose means are compared
STRONGEST = 95.0  # percentile of the blocks' changes that counts as the contrast
ROUNDING = 0.3  # levels: noise of a pixel that is at least there
BETTER = (
    1.5  # how much clearer than luma, or darker, a channel must be to take its place: grey shows little of a colour
)
LUMA = "luma"
COARSE = 1.0  # weight of the colour differences, that of luma being 1, above which a film's losses are mostly theirs


@dataclass(frozen=True)
class ChannelView:
    """How one channel sees the film: what changes, and the noise of a block's mean, both in pixel values."""

    name: str
    contrast: float
    noise: float

    @property
    def ratio(self) -> float:
        return self.contrast / self.noise


@dataclass(frozen=True)
class Channel:
    """The channel that is read: its name, its weights (None: the luma as it is stored), and what was compared."""

    name: str
    mix: Mix | None
    views: tuple[ChannelView, ...] = ()

    @property
    def note(self) -> str:
        """What was done, in words; empty for plain luma."""
        if self.name == LUMA:
            return ""
        if not self.views:
            return f"read in the channel {self.name}"
        known = {view.name: view for view in self.views}
        others = ", ".join(f"{name} {view.ratio:.3g}" for name, view in known.items() if name != self.name)
        return (
            f"read in the channel {self.name}, in which what changes stands {known[self.name].ratio:.3g} times above "
            f"the noise ({others}); recording.channel chooses another"
        )


def weigh_losses(channel: Channel, header: Header) -> float:
    """Return the weight of the colour differences that a film's encoder saves on, that of luma being 1; or 0."""
    if channel.mix is None or header.luma is None or not header.halved:
        return 0.0
    return float(np.hypot(*weigh_differences(channel.mix, header.luma)))


def warn_of_losses(channel: Channel, header: Header) -> str:
    """Say where a colour that was chosen lies mostly in what a film's encoder saves on; an empty text: it does not."""
    weight = weigh_losses(channel, header)
    if not channel.views or weight <= COARSE:
        return ""
    return (
        f"compression counts {weight:.2g} times in the channel {channel.name}: it comes from colour differences, which "
        "this film stores at half the resolution; where too little is found, film in better quality (H.264: crf 8 "
        "instead of 23), in 4:4:4, or in grey through a filter that passes this colour"
    )


def name_channel(setting: str | int | Sequence[float], names: Sequence[str], luma: Mix | None) -> Channel:
    """Return the channel that a setting names, of a recording with the channels ``names``; auto is not among them.

    ``luma``: the weights of the plain grey value; None where there is none and a channel must be chosen.
    """
    offer = f"it has {', '.join(names)}" if names else "it is grey"
    if isinstance(setting, str):
        if setting == LUMA and luma is None and names:
            raise InputError(f"the recording has no luma; {offer}: name one by its number (recording.channel)")
        if setting != LUMA and setting not in names:
            raise InputError(f"the recording has no channel {setting!r}; {offer} (recording.channel)")
        return Channel(setting, None if setting == LUMA else _unit(list(names).index(setting), len(names)))
    if isinstance(setting, int):
        if not 1 <= setting <= len(names):
            raise InputError(f"the recording has no channel {setting}; {offer}, counted from 1 (recording.channel)")
        return Channel(names[setting - 1], _unit(setting - 1, len(names)))
    weights = [float(weight) for weight in setting]
    if len(weights) != len(names) or sum(weights) <= 0:
        raise InputError(
            f"recording.channel has {len(weights)} weights with a sum of {sum(weights):g}; {offer}: as many weights "
            "with a positive sum are needed"
        )
    return Channel(f"{weights}", tuple(weight / sum(weights) for weight in weights))


def best_channel(
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]], names: Sequence[str], luma: Mix | None, level: float
) -> Channel:
    """Choose the channel with the largest contrast to noise; luma unless another is clearly better.

    Laws that are not linear in u depend on its scale: a colour that ink takes away is read where it is taken away, even
    if luma has as little noise beside its smaller changes.

    Parameters
    ----------
    pairs : two neighbouring frames at each of several places, each of shape (c, y, x).
    luma : weights of the grey value; None: there is none.
    level : one step of the pixel values; 0: floating point.
    """
    mixes = {} if luma is None else {LUMA: luma}
    mixes |= {name: _unit(k, len(names)) for k, name in enumerate(names)}
    reduced = [[_reduce(frame) for frame in pair] for pair in pairs]
    size = reduced[0][0][1]
    first, second = (np.stack([pair[k][0] for pair in reduced]) for k in (0, 1))
    floor = ROUNDING * level / np.sqrt(size) + 1e-12
    light = _light(first, second, mixes)
    views = []
    for name, mix in mixes.items():
        a, b = (np.tensordot(mix, stack, axes=(0, 1)) for stack in (first, second))
        noise = float(np.median(np.abs(b - a))) / (0.6745 * np.sqrt(2))
        contrast = float(np.percentile(np.ptp((a + b) / 2 / light, axis=0), STRONGEST))
        views.append(ChannelView(name, contrast, float(np.hypot(noise, floor))))
    best = max(views, key=lambda view: view.ratio)
    plain = views[0]
    if plain.name == LUMA and best.ratio < BETTER * plain.ratio and best.contrast < BETTER * plain.contrast:
        best = plain
    return Channel(best.name, None if best.name == LUMA else mixes[best.name], tuple(views))


def _light(first: Array, second: Array, mixes: Mapping[str, Mix]) -> Array:
    """Return the light at each place in the film, (place, 1, 1): the course of most blocks in the colour in which the
    others follow it most closely, so that what spreads shows least there."""
    best, least = np.ones(len(first)), np.inf
    for mix in mixes.values():
        seen = np.tensordot(mix, first + second, axes=(0, 1)).reshape(len(first), -1)
        lit = seen.min(axis=0) > 0
        if not lit.any():
            continue
        relative = seen[:, lit] / np.median(seen[:, lit], axis=0)
        course = np.median(relative, axis=1)
        rest = float(np.percentile(np.ptp(relative / course[:, None], axis=0), STRONGEST))
        if rest < least:
            best, least = course, rest
    return best[:, None, None]


def _reduce(frame: NDArray[Any]) -> tuple[Array, float]:
    """Average a frame (c, y, x) over blocks; return the means and the number of pixels in a block."""
    rows, columns = frame.shape[1:]
    shrink = min(1.0, SIDE / max(rows, columns))
    cells = (max(1, round(rows * shrink)), max(1, round(columns * shrink)))
    resize = AreaResizer((rows, columns), cells)
    return np.stack([resize(layer) for layer in frame]), rows * columns / (cells[0] * cells[1])


def _unit(at: int, count: int) -> Mix:
    return tuple(1.0 if k == at else 0.0 for k in range(count))
