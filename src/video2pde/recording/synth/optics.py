"""What a camera adds to a scene: changing and uneven light, shake, focus, ink of a colour, things in the picture.

    pixel = response(g(t) f(x, y) · scene moved, blurred, with dust and walls)

A perfect camera changes nothing. Every part has its own stream of random numbers, so that changing one leaves the
others as they were.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError

Array = NDArray[np.float64]
Picture = NDArray[np.float32]

METERING = 0.25  # width of the exposure meter's window, share of the picture
STEP_TIMES = (0.22, 0.47, 0.71)  # share of the film at which the light jumps
WALL = 0.04  # width of a wall, share of the picture
STAMP = (0.06, 0.30)  # height and width of the time that is burnt in, share of the picture
ROD, ROD_LETS = (0.36, 0.58), 0.04  # where a rod's tip stands in the picture (y, x), share of the light that it sends
GLARE, GLARE_RADIUS = (0.62, 0.40), 0.035  # where a reflection lies, and its radius, shares of the picture
SHAKE_MEMORY = 0.6  # how much of a frame's displacement the next one keeps: a hand is not white noise


@dataclass(frozen=True)
class Optics:
    """Describe what is wrong with a camera; the defaults are a perfect one.

    Parameters
    ----------
    dimming : share of the light that is lost until the end, linearly.
    exposure : share of a change in brightness that an automatic exposure makes up for.
    steps : size of three jumps of the light (down, up, down).
    dome : share of the light that is missing one picture width from the light's middle, which lies off-centre.
    gamma : the pixel is light^(1/gamma).
    shake : standard deviation of the picture's position along each axis, camera pixels.
    roll, zoom : standard deviations of its angle (degrees) and of its scale (share).
    focus : blur at the end, σ in camera pixels, growing linearly from 0. blur : constant blur, σ in camera pixels.
    yellow : how little of its darkness in blue the ink has in red and green: 0 is grey ink, 1 none.
    dust : number of dark specks. walls : darkness of two walls along the picture's edges.
    rod : radius of an opaque rod seen from above, share of the picture. glare : light that a reflection adds.
    stamp : darkness of the running time that is burnt in, bottom right.
    black : number of black frames in the middle. cut : share of the film, at its end, that shows another scene.
    repeats : share of frames in which the camera repeats the one before. hand : frames with a hand in the picture.
    photons : the noise grows with the root of the light; otherwise it is the same everywhere.
    """

    dimming: float = 0.0
    exposure: float = 0.0
    steps: float = 0.0
    dome: float = 0.0
    gamma: float = 1.0
    shake: float = 0.0
    roll: float = 0.0
    zoom: float = 0.0
    focus: float = 0.0
    blur: float = 0.0
    yellow: float = 0.0
    dust: int = 0
    walls: float = 0.0
    rod: float = 0.0
    glare: float = 0.0
    stamp: float = 0.0
    black: int = 0
    cut: float = 0.0
    repeats: float = 0.0
    hand: int = 0
    photons: bool = False

    def __post_init__(self) -> None:
        for name in (
            "dimming",
            "exposure",
            "steps",
            "dome",
            "yellow",
            "walls",
            "rod",
            "glare",
            "stamp",
            "cut",
            "repeats",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} = {getattr(self, name):g}; give a share from 0 to 1")
        for name in ("shake", "roll", "zoom", "focus", "blur", "dust", "black", "hand"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} = {getattr(self, name):g}; give a value of 0 or more")
        if not 0.2 <= self.gamma <= 5:
            raise InputError(f"gamma = {self.gamma:g}; give a value from 0.2 to 5")

    @property
    def truth(self) -> dict[str, Any]:
        """What differs from a perfect camera, for ``truth.json``."""
        perfect = asdict(Optics())
        return {name: value for name, value in asdict(self).items() if value != perfect[name]}

    @property
    def in_colour(self) -> bool:
        return self.yellow > 0

    @property
    def absorption(self) -> tuple[float, float, float]:
        """Share of u that darkens red, green and blue."""
        return 1 - self.yellow, 1 - 0.9 * self.yellow, 1.0


class Shot:
    """Carry a camera's faults through one film.

    Parameters
    ----------
    shape : height, width in camera pixels. count : number of frames. seed : of everything random.
    """

    def __init__(self, optics: Optics, shape: tuple[int, int], count: int, seed: int) -> None:
        self.optics, self.shape, self.count = optics, shape, count
        names = ("shake", "turn", "dust", "repeats")
        # far from the streams of noise and flicker, which are older than these
        children = np.random.SeedSequence([seed, 7919]).spawn(len(names))
        self._random = {name: np.random.default_rng(child) for name, child in zip(names, children, strict=True)}
        self.shifts = optics.shake * _wander(count, 2, self._random["shake"])
        turn = _wander(count, 2, self._random["turn"])
        self.angles, self.scales = np.deg2rad(optics.roll) * turn[:, 0], 1 + optics.zoom * turn[:, 1]
        self._dust = self._place_dust()
        self._meter: float | None = None
        self.gains: list[float] = []
        repeated = self._random["repeats"].random(count) < optics.repeats
        self.repeated = repeated & (np.arange(count) > 0)

    def scene(self, u: Picture, index: int) -> Picture:
        """Return the light that leaves the scene, 1 − u in each colour, with dust, walls and a hand.

        The shape is (y, x), or (3, y, x) for ink of a colour.
        """
        optics = self.optics
        if optics.cut and index >= self.count * (1 - optics.cut):
            u = np.ascontiguousarray(0.7 - 0.6 * u[::-1].T) if u.shape[0] == u.shape[1] else 0.7 - 0.6 * u[::-1]
        shade, added = self._shade(index), self._added(index)
        if not optics.in_colour:
            return np.asarray((1 - u) * shade + added, dtype=np.float32)
        return np.stack([(1 - share * u) * shade + added for share in optics.absorption]).astype(np.float32)

    def expose(self, light: Picture, index: int, gain: float, vignette: Picture | None = None) -> Picture:
        """Blur, turn and light the scene of frame ``index``; ``gain`` flickers, ``vignette`` belongs to the lens."""
        from scipy import ndimage

        optics = self.optics
        along = index / max(1, self.count - 1)
        sigma = math.hypot(optics.blur, optics.focus * along)
        layers = light if light.ndim == 3 else light[None]
        if sigma:
            layers = np.stack([ndimage.gaussian_filter(layer, sigma, mode="nearest") for layer in layers])
        if optics.roll or optics.zoom:
            layers = np.stack([self._turn(layer, index) for layer in layers])
        exposed = np.asarray(layers if light.ndim == 3 else layers[0], dtype=np.float32)
        exposed = exposed * self._uneven() if optics.dome else exposed
        exposed = exposed if vignette is None else exposed * vignette
        total = gain * self._lamp(along) * self._expose_automatically(exposed, gain * self._lamp(along))
        self.gains.append(float(total))
        return np.asarray(exposed * np.float32(total), dtype=np.float32)

    def respond(self, light: Picture, index: int) -> Picture:
        """Turn light into pixel values from 0 to 1, and burn in what the camera writes over them."""
        optics = self.optics
        np.clip(light, 0, 1, out=light)
        if optics.gamma != 1:
            light = light ** np.float32(1 / optics.gamma)
        if optics.stamp:
            self._burn_in(light, index)
        middle = (self.count - optics.black) // 2
        if optics.black and middle <= index < middle + optics.black:
            light = np.zeros_like(light)
        return light

    def noise(self, light: Picture, level: float, stream: np.random.Generator) -> Picture:
        """Add white noise of standard deviation ``level``, or level·√light where photons are counted."""
        grain = np.float32(level) * stream.standard_normal(light.shape, dtype=np.float32)
        return light + (grain * np.sqrt(np.maximum(light, 0.02)) if self.optics.photons else grain)

    def _lamp(self, along: float) -> float:
        steps = self.optics.steps * sum((-1, 1, -1)[k] for k, at in enumerate(STEP_TIMES) if along >= at)
        return (1 - self.optics.dimming * along) * (1 + steps)

    def _expose_automatically(self, light: Picture, gain: float) -> float:
        """Bring the metered brightness back to that of the first frame, in part; the meter looks at the middle."""
        if not self.optics.exposure:
            return 1.0
        y, x = (((np.arange(n) + 0.5) / n - 0.5) / METERING for n in self.shape)
        window = np.exp(-0.5 * y[:, None] ** 2) * np.exp(-0.5 * x[None, :] ** 2)
        layer = light if light.ndim == 2 else light.mean(axis=0)
        metered = gain * float((layer * window).sum() / window.sum())
        self._meter = metered if self._meter is None else self._meter
        return float((self._meter / metered) ** self.optics.exposure)

    def _turn(self, layer: Picture, index: int) -> Picture:
        from scipy import ndimage

        angle, scale = self.angles[index], self.scales[index]
        matrix = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]) / scale
        centre = (np.array(layer.shape) - 1) / 2
        return np.asarray(ndimage.affine_transform(layer, matrix, centre - matrix @ centre, order=3, mode="nearest"))

    def _uneven(self) -> Picture:
        y, x = ((np.arange(n) + 0.5) / n for n in self.shape)
        squared = (y[:, None] - 0.45) ** 2 + (x[None, :] - 0.6) ** 2
        return np.asarray(1 - self.optics.dome * squared, dtype=np.float32)

    def _place_dust(self) -> list[tuple[float, float, float, float]]:
        rng, (height, width) = self._random["dust"], self.shape
        return [
            (rng.uniform(0, height), rng.uniform(0, width), rng.uniform(1.0, 2.5), rng.uniform(0.3, 0.7))
            for _ in range(self.optics.dust)
        ]

    def _shade(self, index: int) -> Picture | float:
        """Return the share of light that dust, walls and a hand let through, where the camera is in this frame."""
        optics, (height, width) = self.optics, self.shape
        if not (optics.dust or optics.walls or optics.rod or optics.hand):
            return 1.0
        dy, dx = self.shifts[index]
        y, x = np.arange(height) + 0.5 - dy, np.arange(width) + 0.5 - dx
        shade = np.ones((height, width))
        for cy, cx, radius, dark in self._dust:
            shade *= 1 - dark * np.exp(-0.5 * (((y - cy) / radius) ** 2)[:, None] - 0.5 * ((x - cx) / radius) ** 2)
        if optics.walls:
            shade *= 1 - optics.walls * _soft(WALL * width - x)[None, :]
            shade *= 1 - optics.walls * _soft(y - (1 - WALL) * height)[:, None]
        if optics.rod:
            shade *= 1 - (1 - ROD_LETS) * self._disc(index, ROD, optics.rod)
        begins = round(0.62 * self.count)
        if optics.hand and begins <= index < begins + optics.hand:
            reach = 0.6 * math.sin(math.pi * (index - begins + 0.5) / optics.hand)
            inside = ((y - 0.3 * height) / (0.12 * height))[:, None] ** 2 + ((x / width) / max(reach, 1e-3)) ** 2
            shade *= np.where(inside < 1, 0.2, 1.0)
        return shade.astype(np.float32)

    def _added(self, index: int) -> Picture | float:
        """Return the light that a reflection adds, where the camera is in this frame."""
        if not self.optics.glare:
            return 0.0
        return np.asarray(self.optics.glare * self._disc(index, GLARE, GLARE_RADIUS), dtype=np.float32)

    def _disc(self, index: int, place: tuple[float, float], radius: float) -> Array:
        (height, width), (dy, dx) = self.shape, self.shifts[index]
        y, x = np.arange(height) + 0.5 - dy - place[0] * height, np.arange(width) + 0.5 - dx - place[1] * width
        return _soft(radius * width - np.hypot(y[:, None], x[None, :]))

    def _burn_in(self, light: Picture, index: int) -> None:
        """Write the frame's number over the picture, as cameras write the time."""
        from PIL import Image, ImageDraw, ImageFont

        height, width = self.shape
        rows, columns = max(8, round(STAMP[0] * height)), round(STAMP[1] * width)
        board = Image.new("L", (columns, rows), 0)
        font = ImageFont.load_default(size=rows)
        ImageDraw.Draw(board).text((0, rows / 2), f"00:{index // 25:02d}:{index % 25:02d}", 255, font, anchor="lm")
        ink = np.float32(self.optics.stamp / 255) * np.asarray(board, dtype=np.float32)
        part = light[..., height - rows - 4 : height - 4, width - columns - 4 : width - 4]
        part *= 1 - ink


def _soft(distance: Array) -> Array:
    """Return 0 outside, 1 inside, over a pixel."""
    return np.asarray(0.5 * (1 + np.tanh(2 * distance)))


def _wander(count: int, columns: int, rng: np.random.Generator) -> Array:
    """Return a stationary sequence of unit variance in which each entry remembers the one before."""
    fresh = rng.standard_normal((count, columns))
    out = fresh.copy()
    for k in range(1, count):
        out[k] = SHAKE_MEMORY * out[k - 1] + math.sqrt(1 - SHAKE_MEMORY**2) * fresh[k]
    return out
