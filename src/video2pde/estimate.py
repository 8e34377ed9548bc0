"""A number with its interval: the one type for every estimate, from calibration to the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % interval.

    Parameters
    ----------
    value : the estimate, in the units of what is estimated.
    low, high : ends of the interval; NaN where there is none.

    Examples
    --------
    >>> print(Estimate(9.005, 8.91, 9.1))
    9.005 [8.91, 9.1]
    >>> print(Estimate(0.25))
    0.25 (no interval)
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def has_interval(self) -> bool:
        """Tell whether both ends of the interval are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def highest(self) -> float:
        """The upper end of the interval, or the value itself where there is none."""
        return self.high if math.isfinite(self.high) else self.value

    def __str__(self) -> str:
        if not self.has_interval:
            return f"{self.value:.5g} (no interval)"
        return f"{self.value:.5g} [{self.low:.5g}, {self.high:.5g}]"

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in units that are smaller by ``factor`` > 0, such as 100 for per cent."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high)

    def to_json(self) -> dict[str, float | None]:
        """Return the entry of ``result.json``; an end that does not exist is null."""
        ends = (self.low, self.high) if self.has_interval else (None, None)
        return {"value": self.value, "low": ends[0], "high": ends[1]}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Estimate:
        """Read an entry of ``result.json``."""
        low, high = entry.get("low"), entry.get("high")
        if low is None or high is None:
            return cls(float(entry["value"]))
        return cls(float(entry["value"]), float(low), float(high))
