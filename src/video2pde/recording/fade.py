"""Films that fade to black, or out of it: the light goes, and no law of what it shows can be read from that.

A fade multiplies the whole picture by one number, so that the picture divided by its own median stays what it was. Ink
that spreads or grows until all is dark changes that ratio: its dark places stay dark while the light ones follow. Only
ink that grows everywhere at once, on a background of ink, looks the same, and cannot be told from a fade.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError

Array = NDArray[np.float64]

BLACK, LIT, JUDGED = 0.1, 0.85, (0.3, 0.65)
"""Shares of the brightest light: below the first a frame is black, above the second it is lit; frames between the last
two tell a fade from ink."""
ALIKE, SAME_SIZE = 0.95, (0.75, 1.33)
"""Correlation of the picture with the lit one, and ratio of their contrasts, of a fade."""
LEAST_CONTRAST = 0.02
"""Contrast, relative to the median, below which a picture tells nothing."""


def require_light(values: NDArray[np.float32], black: float, first: int, every: int, name: str) -> None:
    """Refuse a film that fades to black at its end, or out of black at its beginning, and say where to cut it.

    Parameters
    ----------
    values : pixel values (t, y, x), in which ``black`` is no light.
    first, every : number of the first frame in the film, and the step between frames.
    """
    light = np.percentile(values.reshape(len(values), -1)[:, :: max(1, values[0].size // 4096)], 90, axis=1) - black
    if light.max() <= 0:
        return
    light = light / light.max()
    for backwards in (False, True):
        order = slice(None, None, -1 if backwards else 1)
        lit = _fades(values[order], light[order], black)
        if lit is None:
            continue
        frame = first + every * (len(values) - 1 - lit if backwards else lit)
        share = (lit + 1) / len(values)
        cure = (
            f"leave these frames out: {f'--start {frame}' if backwards else f'--stop {frame + 1}'}"
            if share > 0.2
            else "film it again in steady light"
        )
        way = f"out of black until frame {frame}" if backwards else f"to black after frame {frame}"
        raise InputError(f"{name} fades {way}: its light goes, and what it shows with it; {cure}")


def _fades(values: NDArray[np.float32], light: Array, black: float) -> int | None:
    """Return the last lit frame of a film that ends black by a fade, else None."""
    if light[-1] > BLACK or not (light > LIT).any():
        return None
    lit = int(np.flatnonzero(light > LIT)[-1])
    between = np.flatnonzero((light[lit:] > JUDGED[0]) & (light[lit:] < JUDGED[1])) + lit
    if not len(between):  # from one frame to the next
        return lit if lit < len(light) - 1 and light[lit + 1] <= BLACK else None
    before = _relative(values[max(0, lit - 2) : lit + 1].mean(axis=0), black)
    after = np.mean([_relative(values[k], black) for k in between], axis=0)
    if before.std() < LEAST_CONTRAST:
        return None
    alike = float(np.corrcoef(before.ravel(), after.ravel())[0, 1])
    # the part of the contrast that the two have in common: noise adds to the later one's alone
    size = alike * float(after.std() / before.std())
    return lit if alike > ALIKE and SAME_SIZE[0] < size < SAME_SIZE[1] else None


def _relative(picture: NDArray[np.float32], black: float) -> Array:
    seen = picture.astype(float) - black
    return np.asarray(seen / max(float(np.median(seen)), 1e-9) - 1)
