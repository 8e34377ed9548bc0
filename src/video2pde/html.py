"""Small pieces of HTML by which results show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

WIDTH, HEIGHT, MARGIN = 360, 90, 4
COLOURS = ("#0072b2", "#d55e00")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a table; all texts are escaped.

    Examples
    --------
    >>> table(["term"], [["u < 1"]], "a law")
    '<table><caption>a law</caption><tr><th>term</th></tr><tr><td>u &lt; 1</td></tr></table>'
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<tr>{head}</tr>{body}</table>"


def curves(times: ArrayLike, series: Sequence[tuple[str, ArrayLike]], caption: str) -> str:
    """Return curves over time as one small drawing, each with its name and a colour of its own."""
    t = np.asarray(times, float)
    values = [np.asarray(given, float) for _, given in series]
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    across = MARGIN + (t - t[0]) / max(float(np.ptp(t)), 1e-300) * (WIDTH - 2 * MARGIN)
    lines = []
    for (name, _), v, colour in zip(series, values, COLOURS, strict=False):
        down = HEIGHT - MARGIN - (v - low) / max(float(high - low), 1e-300) * (HEIGHT - 2 * MARGIN)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
        shown = f"<title>{escape(name)}</title>"
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5">{shown}</polyline>')
    names = ", ".join(
        f'<span style="color:{colour}">{escape(name)}</span>'
        for (name, _), colour in zip(series, COLOURS, strict=False)
    )
    drawing = f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(caption)}">{"".join(lines)}</svg>'
    return f"<div>{drawing}<br/><small>{names}: {escape(caption)}</small></div>"
