"""The identities of a law with a Cole–Hopf transform, in words and LaTeX, with its numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from video2pde.using.identities import Transform


def word_identities(tr: Transform, size: float, level: float) -> list[tuple[str, str, str, str]]:
    """Return (key, title, LaTeX, text) of each identity with a law's numbers.

    Parameters
    ----------
    size : longest side of the periodic domain, which sets the slowest decay.
    level : the limit of the plume that the identities are checked on.
    """
    forms, b = _write_forms(tr), f"{tr.beta:.4g}"
    decay = size**2 / (4 * np.pi**2 * tr.beta)
    found = [
        (
            "linear",
            "Linear equation",
            rf"{forms.theta},\qquad \theta_t + \mathbf{{v}}(t)\cdot\nabla\theta = {b}\,\Delta\theta",
            f"{forms.name} spreads by plain diffusion and drift; where the first frame is known, every later one "
            "follows by a Gaussian average.",
        ),
        (
            "frame",
            "Moving frame",
            r"w(z,t) = u(z + \int_0^t \mathbf{v}\,ds,\, t),\qquad w_t = \text{the law without drift}",
            "The drift is uniform in space, so that it only moves the picture.",
        ),
        (
            "maximum",
            "Maximum principle",
            r"\min u_0 \le u \le \max u_0",
            f"u stays between its first extremes, here {tr.low:.3g} and {tr.high:.3g}.",
        ),
        (
            "energy",
            "Energy law",
            rf"\tfrac12\tfrac{{d}}{{dt}}\int {forms.squared}\,dA = -{forms.weight}\int {forms.power}|\nabla u|^2\,dA",
            "This integral only falls, and at exactly this rate.",
        ),
        ("mass", "Conserved mass", r"\tfrac{d}{dt}\int\theta\,dA = 0", f"The integral of {forms.name} is conserved."),
    ]
    growth = (
        "mean",
        "Growth of the content",
        rf"\tfrac{{d}}{{dt}}\int u\,dA = {forms.growth}",
        "The content ∫u itself is not conserved: it changes wherever there are gradients.",
    )
    limit = (
        "limit",
        "Long-time limit",
        forms.limit,
        f"On a periodic domain u becomes uniform at this level, {level:.4g} for the check's plume; the slowest "
        f"wave decays e-fold in {decay:.3g} s, and the check ends after ten times as long.",
    )
    return [*found, *([growth] if tr.a or tr.a2 else []), limit]


@dataclass(frozen=True)
class _Forms:
    """The parts of the formulas that depend on the transform: θ and its name, F′², weights, growth, limit."""

    theta: str
    name: str
    power: str
    weight: str
    squared: str
    growth: str
    limit: str


def _write_forms(tr: Transform) -> _Forms:
    a, a2, b = tr.a, tr.a2, f"{tr.beta:.4g}"
    square = r"|\nabla u|^2\,dA"
    both = rf"\int ({a:.4g} + {a2:.4g}\,u)\,{square}"
    growth = both if a and a2 else rf"{a:.4g}\int {square}" if a else rf"{a2:.4g}\int u\,{square}"
    if a2:
        inner = (rf"{a:.4g}\,s + " if a else "") + rf"{0.5 * a2:.4g}\,s^2"
        theta = rf"\theta = F(u) = \int_0^u \exp\left(({inner})/{b}\right)ds"
        limit = r"F(u) \to \langle F(u_0)\rangle"
        return _Forms(theta, "θ", r"F'(u)^2", b, r"\theta^2", growth, limit)
    if a:
        rate = a / tr.beta
        power = rf"e^{{{2 * rate:.4g}\,u}}"
        limit = rf"u \to {tr.beta / a:.4g}\,\log\langle e^{{{rate:.4g}\,u_0}}\rangle"
        theta, weight = rf"\theta = e^{{{rate:.4g}\,u}}", f"{a * a / tr.beta:.4g}"
        return _Forms(theta, f"exp({rate:.4g} u)", power, weight, power, growth, limit)
    return _Forms(r"\theta = u", "u", "", b, r"\theta^2", growth, r"u \to \langle u_0\rangle")
