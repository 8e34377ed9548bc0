"""Figures of the refinement: histories, and the refined coefficients beside the weak fit. They compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from video2pde.refinement.result import Refinement
from video2pde.report import style
from video2pde.rollout.metrics import Metrics

WIDTH = 7.2
Array = NDArray[np.float64]


def figure_coefficients(refinement: Refinement, title: str = "") -> Figure:
    """Draw each coefficient over the joint phase, every seed, with the start and the result."""
    with style.apply():
        figure = Figure(figsize=(WIDTH, 1.5 * len(refinement.terms) + 0.8), layout="constrained")
        panels = figure.subplots(len(refinement.terms), sharex=True, squeeze=False)[:, 0]
        for column, (axes, term) in enumerate(zip(panels, refinement.terms, strict=True)):
            colour = style.term_colour(term)
            for run in refinement.runs:
                axes.plot(run.history.steps, run.history.coefficients[:, column], color=colour, lw=1.0, alpha=0.8)
            final = refinement.coefficients[term]
            axes.axhline(final, color=style.BLACK, lw=0.8, label=f"refined {final:.4g}{_spread(refinement, term)}")
            if refinement.start is not None:
                start = refinement.start[term]
                axes.axhline(start, color=style.GREY, lw=0.8, ls="--", label=f"weak fit {start:.4g}")
            axes.set_ylabel(style.term_label(term))
            axes.legend(loc="center right")
            axes.grid(visible=True)
        panels[-1].set_xlabel("joint step")
        panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.suptitle(title or _verdict(refinement), fontsize=9)
        return figure


def figure_losses(refinement: Refinement, title: str = "") -> Figure:
    """Draw data error and residual over both phases, on trained points (lines) and held-out points (dots)."""
    with style.apply():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        axes = figure.add_subplot()
        for index, run in enumerate(refinement.runs):
            history = run.history
            first = float(history.pretrain_steps[-1]) if len(history.pretrain_steps) else 0.0
            labels = ("data error / spread", "residual / rate of change") if index == 0 else (None, None)
            axes.plot(history.pretrain_steps, history.pretrain_data, color=style.BLUE, lw=1.0)
            axes.plot(first + history.steps, history.data, color=style.BLUE, lw=1.0, label=labels[0])
            axes.plot(first + history.steps, history.residual, color=style.RED, lw=1.0, label=labels[1])
            held: dict[str, Any] = {"ls": "", "marker": "o", "ms": 2.5, "mfc": "none", "mew": 0.7}
            axes.plot(first + history.checked, history.held_out_data, color=style.BLACK, **held)
            axes.plot(
                first + history.checked,
                history.held_out_residual,
                color=style.BLACK,
                label="held-out points" if index == 0 else None,
                **held,
            )
            if index == 0 and first:
                axes.axvline(first, color=style.GREY, lw=0.8, ls=":")
        axes.set_yscale("log")
        axes.set_xlabel("step (dotted: the law joins the data)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel("relative error")
        axes.grid(visible=True)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.suptitle(title or _verdict(refinement), fontsize=9)
        return figure


def figure_comparison(times: Array, metrics: Mapping[str, Metrics], unit: str) -> Figure:
    """Draw validation errors over time of weak and refined coefficients: MSE, relative, fronts, centroid.

    ``metrics`` has a rollout's metrics under a label such as "C, refined"; ``times`` are the window's, seconds.
    """
    with style.apply():
        figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True)
        names = (
            "mean squared error",
            "relative error (%)",
            f"front error ({unit})",
            f"centroid error ({unit})",
        )
        for axes, name in zip(panels.flat, names, strict=True):
            axes.set_ylabel(name)
            axes.grid(visible=True)
        for index, (label, found) in enumerate(metrics.items()):
            # weak and refined coefficients of one library share its colour
            colour = style.library_colour(label)
            look: dict[str, Any] = {"color": colour, "lw": 1.2, "ls": ("-", "--")[index % 2]}
            panels[0, 0].plot(times, found.mse, label=label, **look)
            panels[0, 1].plot(times, 100.0 * found.rrmse_over_time, **look)
            panels[1, 0].plot(times, found.front_error, **{**look, "lw": 0.8})
            panels[1, 1].plot(times, found.centroid_error, **look)
        for axes in panels[1]:
            axes.set_xlabel("time (s)")
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        return figure


def _spread(refinement: Refinement, term: str) -> str:
    return "" if refinement.spread is None else f" ± {refinement.spread[term]:.2g}"


def _verdict(refinement: Refinement) -> str:
    return "converged" if refinement.converged else f"not converged: {refinement.reason}"
