"""Functions of one coordinate on the samples of an axis: B-splines and powers, with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Profiles:
    """Functions of one coordinate, on the samples of an axis, with their derivatives.

    ``spline`` has coefficients (basis, functions); ``order`` is how often it is differentiated.
    """

    spline: BSpline
    samples: Array
    order: int = 0

    @classmethod
    def splines(cls, samples: Array, count: int, degree: int = 3, ends: tuple[float, float] | None = None) -> Profiles:
        """Cover an axis with ``count`` B-splines; a degree lower than asked for where there are too few.

        ``ends``: where the axis begins and ends; default: half a sample beyond the first and last one.
        """
        degree = min(degree, count - 1)
        if ends is None:
            step = samples[1] - samples[0]
            ends = float(samples[0] - step / 2), float(samples[-1] + step / 2)
        inner = np.linspace(*ends, count - degree + 1)
        knots = np.concatenate([[ends[0]] * degree, inner, [ends[1]] * degree])
        return cls(BSpline(knots, np.eye(count), degree), samples)

    @classmethod
    def between(cls, samples: Array, breaks: Sequence[float], degree: int = 3) -> Profiles:
        """Cover an axis with the B-splines that join at the given places, the first and last being its ends."""
        knots = np.concatenate([[breaks[0]] * degree, breaks, [breaks[-1]] * degree])
        return cls(BSpline(knots, np.eye(len(breaks) + degree - 1), degree), samples)

    @classmethod
    def powers(cls, samples: Array, degree: int = 1, origin: float = 0.0) -> Profiles:
        """Return 1 and, with ``degree`` 1, s − origin."""
        low, high = samples[0] - 1.0, samples[-1] + 1.0
        ends = np.array([low, high])
        values = np.stack([np.ones(2), ends - origin], axis=1)[:, : degree + 1]
        return cls(BSpline(np.array([low, low, high, high]), values, 1), samples)

    @property
    def count(self) -> int:
        return int(self.spline.c.shape[1])

    @property
    def derivative(self) -> Profiles:
        """Differentiate every function."""
        return Profiles(self.spline, self.samples, self.order + 1)

    def take(self, *index: int) -> Profiles:
        """Keep some of the functions."""
        chosen = BSpline(self.spline.t, self.spline.c[:, list(index)], self.spline.k)
        return Profiles(chosen, self.samples, self.order)

    def values(self, order: int = 0) -> Array:
        """Sample the functions' derivative of the given order: (functions, samples)."""
        order += self.order
        if order > self.spline.k:
            return np.zeros((self.count, len(self.samples)))
        return np.asarray(self.spline(self.samples, nu=order).T)

    def gram(self, order: int) -> Array:
        """Integrate products of the functions' derivatives of the given order over the axis, by midpoints."""
        values = self.values(order)
        return np.asarray(values @ values.T * (self.samples[1] - self.samples[0]))
