"""The identities of a law with a Cole–Hopf transform, in words and LaTeX, with its numbers."""

from __future__ import annotations

import numpy as np

from video2pde.using.identities import Transform


def word_identities(tr: Transform, size: float, level: float) -> list[tuple[str, str, str, str]]:
    """Return (key, title, LaTeX, text) of each identity with a law's numbers.

    Parameters
    ----------
    size : longest side of the periodic domain, which sets the slowest decay.
    level : the limit of the plume that the identities are checked on.
    """
    a, a2, beta = tr.a, tr.a2, tr.beta
    b = f"{beta:.4g}"
    if a2:
        inner = (rf"{a:.4g}\,s + " if a else "") + rf"{0.5 * a2:.4g}\,s^2"
        theta = rf"\theta = F(u) = \int_0^u \exp\left(({inner})/{b}\right)ds"
        name, power = "θ", r"F'(u)^2"
        weight = rf"{b}"
    elif a:
        theta = rf"\theta = e^{{{a / beta:.4g}\,u}}"
        name, power = f"exp({a / beta:.4g} u)", rf"e^{{{2 * a / beta:.4g}\,u}}"
        weight = f"{a * a / beta:.4g}"
    else:
        theta, name, power, weight = r"\theta = u", "u", "", b
    squared = rf"{power}" if a and not a2 else r"\theta^2"
    square = r"|\nabla u|^2\,dA"
    both = rf"\int ({a:.4g} + {a2:.4g}\,u)\,{square}"
    growth = both if a and a2 else rf"{a:.4g}\int {square}" if a else rf"{a2:.4g}\int u\,{square}"
    decay = size**2 / (4 * np.pi**2 * beta)
    limit = r"F(u) \to \langle F(u_0)\rangle" if a2 else r"u \to \langle u_0\rangle"
    if a and not a2:
        limit = rf"u \to {beta / a:.4g}\,\log\langle e^{{{a / beta:.4g}\,u_0}}\rangle"
    found = [
        (
            "linear",
            "Linear equation",
            rf"{theta},\qquad \theta_t + \mathbf{{v}}(t)\cdot\nabla\theta = {b}\,\Delta\theta",
            f"{name} spreads by plain diffusion and drift; where the first frame is known, every later one follows "
            "by a Gaussian average.",
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
            rf"\tfrac12\tfrac{{d}}{{dt}}\int {squared}\,dA = -{weight}\int {power}|\nabla u|^2\,dA",
            "This integral only falls, and at exactly this rate.",
        ),
        ("mass", "Conserved mass", r"\tfrac{d}{dt}\int\theta\,dA = 0", f"The integral of {name} is conserved."),
    ]
    if a or a2:
        found.append(
            (
                "mean",
                "Growth of the content",
                rf"\tfrac{{d}}{{dt}}\int u\,dA = {growth}",
                "The content ∫u itself is not conserved: it changes wherever there are gradients.",
            )
        )
    found.append(
        (
            "limit",
            "Long-time limit",
            limit,
            f"On a periodic domain u becomes uniform at this level, {level:.4g} for the check's plume; the slowest "
            f"wave decays e-fold in {decay:.3g} s, and the check ends after ten times as long.",
        )
    )
    return found
