"""The laws of one and two populations: what each mode of a recovery does under them.

    one D             a_q(t) = e^{−Dλt} a_q(0)
    mobile-immobile   M e^{−Dλt} + 1 − M
    two-diffusions    p e^{−D₁λt} + (1 − p) e^{−D₂λt}
    exchange          m_t = DΔm − k_on m + k_off b, b_t = k_on m − k_off b, of which m + b is seen

A bleach takes the same share of all populations, so that just after it they are mixed as before: in the equilibrium of
the exchange, m : b = k_off : k_on. Each law is then a sum of exponentials for each mode, with weights and rates that
depend on λ in its own way, and that is what tells them apart: rates of two D's both grow with λ, those of an exchange
end at k_off, an immobile part has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from video2pde.frap.fit import carried_in

Array = NDArray[np.float64]
Values = Mapping[str, float]

FURTHER, RATES = (0.03, 0.2), (0.5, 5.0)
"""Starts: a second D as a share of the first, and rates of exchange times the recording's length."""
SHARES = ("M", "p")
"""Parameters that are shares."""


@dataclass(frozen=True, eq=False)
class Component:
    """One exponential of a law: its ``weight`` (q,) in the response, its ``rate`` (q,), and what edges bring into it.

    ``inlet`` (q,): its weight in the response to what comes in; ``speed``: the D that it comes in by, 0 where nothing
    does; ``at_rim``: makes of the rim as it is seen (t, q), and of the times, what there is of this population.
    """

    weight: Array
    rate: Array
    inlet: Array | float = 1.0
    speed: float = 0.0
    at_rim: Callable[[Array, Array], Array] = lambda rim, _: rim


@dataclass(frozen=True)
class PopulationLaw:
    """A law by its parameters and components; ``simple`` orders laws, ``words`` say what it is."""

    name: str
    parameters: tuple[str, ...]
    words: str
    simple: int
    components: Callable[[Array, Values], tuple[Component, ...]]
    starts: Callable[[float, float], tuple[Values, ...]]

    def bounds(self, name: str) -> tuple[float, float]:
        return (0.0, 1.0) if name in SHARES else (-np.inf if name == "k" else 0.0, np.inf)


def _single(rates: Array, v: Values) -> tuple[Component, ...]:
    return (Component(np.ones_like(rates), v["D"] * rates, speed=v["D"]),)


def _immobile(rates: Array, v: Values) -> tuple[Component, ...]:
    mobile = v["M"] * np.ones_like(rates)
    return (
        Component(mobile, v["D"] * rates, speed=v["D"], at_rim=lambda rim, _: rim - (1 - v["M"]) * rim[0]),
        Component(1 - mobile, 0 * rates),
    )


def _two(rates: Array, v: Values) -> tuple[Component, ...]:
    """Return both populations. What changes at the rim is taken to be the faster one: right where the slower one hardly
    moves, and where both are equally fast.
    """
    first, rest = v["p"] * np.ones_like(rates), 1 - v["p"]
    return (
        Component(first, v["D1"] * rates, speed=v["D1"], at_rim=lambda rim, _: rim - rest * rim[0]),
        Component(1 - first, v["D2"] * rates, speed=v["D2"], at_rim=lambda rim, _: rest * rim[0] + 0 * rim),
    )


def _exchange(rates: Array, v: Values) -> tuple[Component, ...]:
    """Return both exponentials of each mode: roots of s² + (Dλ + k_on + k_off)s + Dλ k_off = 0.

    The sum starts at 1 with the slope −Dλ f, f being the mobile share; what enters, as mobile, starts with −Dλ. At the
    rim both are seen together, and what is bound there follows b_t = k_on (rim − b) − k_off b.
    """
    on, off = v["k_on"], v["k_off"]
    share = off / max(on + off, 1e-300)
    decay = v["D"] * rates
    total = decay + on + off
    apart = np.sqrt(np.maximum(total**2 - 4 * decay * off, 0.0))
    apart = np.maximum(apart, 1e-9 * np.maximum(total, 1e-300))
    fast = (total + apart) / 2
    slow = total - fast
    weight, inlet = ((decay * f - slow) / apart for f in (share, 1.0))

    def mobile(rim: Array, times: Array) -> Array:
        late = np.exp(-np.minimum((on + off) * (times - times[0]), 700.0))[:, None] * rim[0]
        late = late + carried_in(times, np.full(rim.shape[1], on + off), rim, on + off)
        return np.asarray(rim - (1 - share) * late)

    return (
        Component(weight, fast, inlet, v["D"], mobile),
        Component(1 - weight, slow, 1 - inlet, v["D"], mobile),
    )


LAWS: tuple[PopulationLaw, ...] = (
    PopulationLaw("single", ("D",), "one population", 0, _single, lambda D, _: ({"D": D},)),
    PopulationLaw(
        "mobile-immobile",
        ("D", "M"),
        "a mobile part, and one that does not move",
        1,
        _immobile,
        lambda D, _: ({"D": D, "M": 0.7},),
    ),
    PopulationLaw(
        "two-diffusions",
        ("D1", "D2", "p"),
        "two populations with a D of their own",
        2,
        _two,
        lambda D, _: tuple({"D1": 1.5 * D, "D2": 1.5 * D * less, "p": 0.6} for less in FURTHER),
    ),
    PopulationLaw(
        "exchange",
        ("D", "k_on", "k_off"),
        "a mobile part that binds and is released",
        2,
        _exchange,
        lambda D, length: tuple(
            {"D": 1.5 * D, "k_on": on / length, "k_off": off / length} for on, off in product(RATES, RATES)
        ),
    ),
)
