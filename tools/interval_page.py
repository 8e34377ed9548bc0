"""Refresh the figures of ``docs/intervals.md`` from a finished run of the demo: ``python tools/interval_page.py``.

``make demo`` leaves the run in ``demo/run`` and its truth in ``demo/truth.json``. All that the page says of one film
stands between two marks and is written here, from the run's own record; the rest of the page is not touched.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import video2pde as vp
from video2pde.calibration import budget, Calibration
from video2pde.terms.words import describe

PAGE = Path(__file__).resolve().parents[1] / "docs" / "intervals.md"
BEGIN, END = "<!-- figures of one film: begin -->", "<!-- figures of one film: end -->"
SYMBOLS = {"grad_squared": "a", "laplacian": "β", "u_grad_squared": "a₂", "u": "r"}
LINES = {
    budget.STATISTICS: "The replicates ({replicates}), each with blocks of residuals drawn again, lie {shift:.2g} "
    "{below} the fit on average, and leave ± {half:.2g}: what noise alone would.",
    budget.ROUNDING: "A fraction of a grey level, added to u everywhere, changes {name} by {half:.2g}.",
    budget.START: "Fitting the initial frame jointly changed {name} by {shift:.2g}; ± {half:.2g} is counted for it.",
    budget.GRID: "The same law on half the pitch, averaged to the film's cells, comes out {shift:.2g} {below} the fit: "
    "that is taken off, and ± {half:.2g} stays.",
    budget.LACK_OF_FIT: "Both halves of the frames ask for values of {name} that differ by {apart:.2g} beyond noise; "
    "{factor} times that is counted.",
    budget.LIGHT: "Light that may have changed unseen counts as ± {half:.2g}.",
    budget.ENCODER: "What the encoder held back and smoothed counts as ± {half:.2g}.",
}
"""What each line of the budget found, in words."""


def write_section(run: vp.Run, truth: dict[str, Any]) -> str:
    """Return the page's part on one film: its table, its lines in words, and the sum."""
    chosen = run.chosen
    if chosen is None or not chosen.budget:
        raise SystemExit("this run has no law with intervals: there is no budget to follow")
    first = SYMBOLS.get(chosen.terms[0].name, describe(chosen.terms[0]).text)
    return "\n\n".join([_film(run, truth), _table(chosen), _lines(chosen, first), _sum(chosen, truth, first)])


def _film(run: vp.Run, truth: dict[str, Any]) -> str:
    law = " and ".join(f"{SYMBOLS.get(name, name)} = {value:.4g}" for name, value in truth["law"].items() if value)
    width, height = truth["size"]
    encoding = None if run.field is None else run.field.encoding
    stored = ""
    if encoding is not None:
        late = ", and its B frames were late" if encoding.late_b_frames else ""
        level = f"a grey level is 1/{1 / encoding.level:.0f}"
        stored = f" The encoder held back {encoding.held_back:.0%} of the changes{late}; {level}."
    return (
        f"The film of `make demo` (`video2pde synth`: law {truth['case']} with {law}, {width} × {height} pixels, "
        f"{truth['frames']} frames, {truth['noise']:.1%} noise, H.264 quality {truth['crf']}).{stored}"
    )


def _table(chosen: Calibration) -> str:
    """Return every line of the budget: shift, half-width and share of the squared half-width of each coefficient."""
    names = [SYMBOLS.get(term.name, describe(term).text) for term in chosen.terms]
    head = [f"{name}: {what}" for name in names for what in ("shift", "half-width", "share")]
    rows = [["plain fit", *(cell for value in _plain(chosen) for cell in (f"{value:.5g}", "", ""))]]
    for line, shares in zip(chosen.budget, chosen.budget_shares, strict=True):
        row = [line.name]
        for shift, half, share in zip(line.shift, line.uncertainty, shares, strict=True):
            row += [f"{shift:+.2g}" if shift else "–", f"{half:.2g}", f"{share:.1%}"]
        rows.append(row)
    ends = [(e.value, (e.high - e.low) / 2) for e in chosen.estimates.values()]
    rows.append(["**result**", *(cell for value, half in ends for cell in (f"**{value:.4g}**", f"**{half:.2g}**", ""))])
    return "\n".join("| " + " | ".join(row) + " |" for row in (["line", *head], ["---", *["---:"] * len(head)], *rows))


def _plain(chosen: Calibration) -> list[float]:
    """Return the plain fit: the estimates less all shifts."""
    values = [estimate.value for estimate in chosen.estimates.values()]
    return list(np.array(values) - np.sum([line.shift for line in chosen.budget], axis=0))


def _lines(chosen: Calibration, name: str) -> str:
    """Say of each line what it found for the first coefficient."""
    replicates = 0 if chosen.bootstrap is None else chosen.bootstrap.converged
    told = [f"**Plain fit.** The rollout of the training window, fitted from several starts: {_plain(chosen)[0]:.5g}."]
    for line in chosen.budget:
        shift, half = float(line.shift[0]), float(line.uncertainty[0])
        words = LINES[line.name].format(
            name=name,
            shift=abs(shift),
            below="below" if shift > 0 else "above",
            half=half,
            replicates=replicates,
            apart=half / budget.HALVES_LEFT,
            factor=budget.HALVES_LEFT,
        )
        told.append(f"**{line.name.capitalize()}.** {words}")
    return "\n".join(f"{number}. {text}" for number, text in enumerate(told, 1))


def _sum(chosen: Calibration, truth: dict[str, Any], name: str) -> str:
    """Add the half-widths of the first coefficient up, and name the line that decides."""
    estimate, known = chosen.estimates[chosen.terms[0].name], truth["law"].get(chosen.terms[0].name, 0.0)
    halves = [float(line.uncertainty[0]) for line in chosen.budget]
    squares = " + ".join(f"{half:.2g}²" for half in halves if half > 0.005 * max(halves))
    return (
        f"In quadrature: √({squares}) = {np.hypot.reduce(halves):.2g}, so {name} = {estimate.value:.3g} ± "
        f"{(estimate.high - estimate.low) / 2:.2g}; the truth, {known:.4g}, is {abs(estimate.value - known):.2g} away. "
        f"The line that decides is *{chosen.budget[int(np.argmax(halves))].name}*."
    )


def refresh(page: str, section: str) -> str:
    """Return the page with what stands between its marks replaced."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{section}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("demo/run"), help="folder of the finished run")
    parser.add_argument("truth", nargs="?", type=Path, default=Path("demo/truth.json"))
    given = parser.parse_args()
    section = write_section(vp.load_run(given.folder), json.loads(given.truth.read_text(encoding="utf-8")))
    PAGE.write_text(refresh(PAGE.read_text(encoding="utf-8"), section), encoding="utf-8")
    print(f"{PAGE} is as {given.folder} says")


if __name__ == "__main__":
    main()
