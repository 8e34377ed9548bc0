"""Figures of a run of two fields, as files for a paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from video2pde.pair.evaluate import PairScores
from video2pde.pair.fields import Pair
from video2pde.pair.record import PairRun
from video2pde.report import style
from video2pde.terms.pairs import FIELDS, get_pair_term
from video2pde.terms.words import describe

MOMENTS = 4


def draw_figures(run: PairRun, folder: Path, pdf: bool = False) -> None:
    """Write every figure that the run has numbers for, as PNG and, with ``pdf``, as PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    with style.apply():
        if run.discovery is not None:
            drawn["front"] = _front(run)
        if run.chosen is not None:
            drawn["coefficients"] = _coefficients(run)
        if run.pair is not None and run.test is not None and run.test.predicted and run.windows is not None:
            drawn["test-snapshots"] = _snapshots(run.pair.frames(run.windows.test), run.test)
    for name, figure in drawn.items():
        style.save_png(figure, folder / name)
        style.save_pdf(figure if pdf else None, folder / name)


def _front(run: PairRun) -> Figure:
    """Draw what the best set of each size leaves, for both laws."""
    figure = Figure(figsize=(6.5, 2.8))
    axes = figure.subplots(1, 2, sharey=True)
    assert run.discovery is not None
    for axis, search in zip(axes, run.discovery.searches, strict=True):
        sizes, left = [len(f.terms) for f in search.front], [f.unexplained for f in search.front]
        axis.semilogy(sizes, left, "o-", color=style.MEASURED)
        best = search.candidates[0]
        axis.semilogy(len(best.terms), best.unexplained, "o", color=style.MODEL, label="chosen", ms=7)
        axis.axhline(max(search.expected, 1e-12), color=style.GREY, ls="--", label="what noise leaves")
        axis.set(xlabel="terms", title=f"${search.field}_t$")
        axis.legend()
    axes[0].set_ylabel("share of the weak signal left")
    return figure


def _coefficients(run: PairRun) -> Figure:
    """Draw each coefficient relative to its estimate, with its interval."""
    assert run.chosen is not None
    rows = [(field, name, e) for field in FIELDS for name, e in run.chosen.estimates[field].items()]
    figure = Figure(figsize=(5.5, 0.35 * len(rows) + 1))
    axis = figure.subplots()
    for place, (_, _, estimate) in enumerate(rows):
        size = abs(estimate.value) or 1.0
        if estimate.has_interval:
            ends = [100 * (end - estimate.value) / size for end in (estimate.low, estimate.high)]
            axis.plot(ends, [place, place], color=style.UNCERTAINTY, lw=4)
        axis.plot(0, place, "o", color=style.MODEL)
    labels = [f"{describe(get_pair_term(name)).text} in {field}_t: {e.value:.4g}" for field, name, e in rows]
    axis.set(yticks=range(len(rows)), yticklabels=labels, xlabel="95 % interval, % of the coefficient")
    axis.invert_yaxis()
    return figure


def _snapshots(observed: Pair, scores: PairScores) -> Figure:
    """Show both fields as recorded and as predicted, at moments of the test window."""
    predicted = next(iter(scores.predicted.values()))
    moments = np.unique(np.linspace(0, len(observed) - 1, MOMENTS).round().astype(int))
    figure = Figure(figsize=(1.7 * len(moments) + 0.6, 6.6))
    axes = figure.subplots(4, len(moments), squeeze=False)
    rows = [
        (recorded, shown, what)
        for recorded, own in zip(observed.values, predicted, strict=True)
        for shown, what in ((recorded, "recorded"), (own, "predicted"))
    ]
    for row, (recorded, own, what) in enumerate(rows):
        low, high = float(recorded.min()), float(recorded.max())
        for axis, moment in zip(axes[row], moments, strict=True):
            axis.imshow(own[moment], vmin=low, vmax=high, cmap=style.SEQUENTIAL)
            axis.set(xticks=[], yticks=[])
            if row == 0:
                axis.set_title(f"{observed.times[moment]:.4g} s")
        axes[row, 0].set_ylabel(f"{FIELDS[row // 2]}, {what}")
    return figure
