"""The grid: where samples lie, in y (downwards) and x."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.units import require_range, require_unit

Pitch = Literal["cells", "nodes"]


@dataclass(frozen=True)
class Grid:
    """Place ``ny`` × ``nx`` samples over a rectangle of size ``height`` × ``width``.

    ``cells``: the samples are averages over cells that cover the rectangle, Δx = L/n, centred at
    (i + ½)Δx. ``nodes``: the samples lie on the rectangle's edges, Δx = L/(n − 1) (the paper's
    convention, 1/n too large for averaged pixels).
    """

    ny: int
    nx: int
    height: float
    width: float
    unit: str = "image units"
    pitch: Pitch = "cells"

    def __post_init__(self) -> None:
        require_unit(self.unit)
        for size, count, what in ((self.width, self.nx, "width"), (self.height, self.ny, "height")):
            require_range(size / max(count, 1), f"the {what} of a cell", self.unit)

    @property
    def shape(self) -> tuple[int, int]:
        return self.ny, self.nx

    @property
    def dx(self) -> float:
        return self.width / (self.nx if self.pitch == "cells" else self.nx - 1)

    @property
    def dy(self) -> float:
        return self.height / (self.ny if self.pitch == "cells" else self.ny - 1)

    @cached_property
    def x(self) -> NDArray[np.float64]:
        """Positions of the columns, in ``unit``."""
        return (np.arange(self.nx, dtype=np.float64) + (0.5 if self.pitch == "cells" else 0.0)) * self.dx

    @cached_property
    def y(self) -> NDArray[np.float64]:
        """Positions of the rows (downwards), in ``unit``."""
        return (np.arange(self.ny, dtype=np.float64) + (0.5 if self.pitch == "cells" else 0.0)) * self.dy
