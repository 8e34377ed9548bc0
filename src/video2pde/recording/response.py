"""The camera's response: from grey values back to light.

Cameras for people do not write light but about its square root, so that shadows keep their steps. A law of u = 1 − I/I₀
needs the light itself: seen through a gamma of 1.8, plain diffusion passes for a law with |∇u|². What a camera did
cannot be told from the film; the container or the picture's own data may say it, otherwise the user does.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.numbers import is_number
from video2pde.recording.base import Header, Picture

Array = NDArray[np.float64]

CAMERA_CURVES = ("bt709", "srgb")
"""Names that also stand in files whose pixels were never encoded so: they count where a camera is named beside them."""


def _bt709(v: Array) -> Array:
    return np.where(v < 0.081, v / 4.5, ((np.maximum(v, 0.081) + 0.099) / 1.099) ** (1 / 0.45))


def _srgb(v: Array) -> Array:
    return np.where(v <= 0.04045, v / 12.92, ((np.maximum(v, 0.04045) + 0.055) / 1.055) ** 2.4)


def _hlg(v: Array) -> Array:
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    light = np.where(v <= 0.5, v**2 / 3, (np.exp((np.maximum(v, 0.5) - c) / a) + b) / 12)
    return np.asarray(light / ((np.exp((1 - c) / a) + b) / 12))


def _pq(v: Array) -> Array:
    m, n, c1, c2, c3 = 78.84375, 0.1593017578125, 0.8359375, 18.8515625, 18.6875
    root = v ** (1 / m)
    return np.asarray((np.maximum(root - c1, 0) / (c2 - c3 * root)) ** (1 / n))


CURVES: dict[str, Callable[[Array], Array]] = {
    "linear": np.array,
    "bt709": _bt709,
    "srgb": _srgb,
    "hlg": _hlg,
    "pq": _pq,
    "gamma22": lambda v: v**2.2,
    "gamma28": lambda v: v**2.8,
}
"""Light as a function of the pixel value, both as shares of full scale."""


@dataclass(frozen=True)
class Response:
    """Name a curve that turns pixel values into light, shares of full scale both.

    ``name``: one of :data:`CURVES`, "gamma" with its exponent, or "table" with pairs of pixel value and light.
    """

    name: str
    gamma: float = 1.0
    table: tuple[tuple[float, float], ...] = ()

    def __call__(self, share: NDArray[Any]) -> Array:
        """Return the light of pixel values; below black the curve is continued as its mirror image."""
        v = np.asarray(share, dtype=np.float64)
        size = np.abs(v)
        if self.name == "table":
            seen, light = np.array(self.table).T
            return np.asarray(np.sign(v) * np.interp(size, seen, light))
        curve = size**self.gamma if self.name == "gamma" else CURVES[self.name](size)
        return np.asarray(np.sign(v) * curve)

    @property
    def words(self) -> str:
        return {"gamma": f"a gamma of {self.gamma:g}", "table": "the table that was given"}.get(self.name, self.name)


def choose_response(setting: str | float, header: Header) -> tuple[Response | None, str]:
    """Choose the curve that is undone, and say why; None: grey values are light.

    Parameters
    ----------
    setting : recording.response. header : says what the file names as its curve, and whether a camera wrote it.
    """
    if isinstance(setting, int | float):
        return (None, "") if setting == 1 else _given(Response("gamma", float(setting)))
    if setting == "linear":
        return None, ""
    if setting != "auto":
        return _given(Response(setting) if setting in CURVES else Response("table", table=read_curve(Path(setting))))
    named = header.transfer
    if named is None or named == "linear":
        return None, ""
    if named not in CURVES:
        return None, f"the file names a response that is not known here ({named}); recording.response gives it"
    if named in CAMERA_CURVES and not header.camera:
        return None, (
            f"the file names the response {named}, as nearly all files do, and no camera that applied it: grey values "
            f'are taken for light; recording.response = "{named}" undoes it for a film of a phone or a video camera'
        )
    by = f" and the camera that applied it ({header.camera})" if header.camera else ""
    return Response(named), (
        f"the file names the response {named}{by}: it was undone, so that u is made from light; "
        'recording.response = "linear" leaves grey values as they are'
    )


def _given(response: Response) -> tuple[Response, str]:
    return response, f"the camera's response ({response.words}) was undone, so that u is made from light"


def read_curve(path: Path) -> tuple[tuple[float, float], ...]:
    """Read a table of pixel value and light, rising both; they are scaled to end at 1."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
        start = 0 if is_number(rows[0][0]) else 1
        table = np.array([[float(cell) for cell in row[:2]] for row in rows[start:]])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"recording.response '{path}' is none of auto, {', '.join(CURVES)}, a gamma, or a table that can be read "
            f"({error})"
        ) from None
    except (ValueError, IndexError):
        table = np.zeros((0, 2))
    if table.ndim != 2 or len(table) < 2 or table.shape[1] != 2 or not (np.diff(table, axis=0) > 0).all():
        raise InputError(f"{path} is no response: it needs lines of pixel value and light, both rising")
    table = np.maximum(table, 0) / table[-1]
    return tuple((float(seen), float(light)) for seen, light in table)


def to_light(picture: Picture, response: Response, black: float, gain: float, full: float) -> NDArray[np.float32]:
    """Turn pixel values into light, from 0 to ``full``; full scale is (value − black) · gain = ``full``."""
    share = (np.asarray(picture, dtype=np.float64) - black) * (gain / full)
    return np.asarray(full * response(share), dtype=np.float32)
