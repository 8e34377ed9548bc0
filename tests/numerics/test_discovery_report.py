"""Figures and tables of discovery show the artefacts' numbers, for every library and for the user's own terms."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from known_fields import analyse, known_analysis, known_field

from video2pde.report import discovery_figures as figures
from video2pde.report import style
from video2pde.report.discovery_tables import tabulate_coefficients, tabulate_conditioning, tabulate_stability
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE, LIBRARIES

DRAWINGS = {
    "correlations": figures.draw_correlations,
    "counts": figures.draw_threshold_counts,
    "paths": figures.draw_coefficient_paths,
    "frequencies": figures.draw_selection_frequencies,
    "coefficients": figures.draw_coefficient_stability,
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_figures_are_drawn_and_saved(name: str, tmp_path: Path) -> None:
    found, _, _ = known_analysis("C")
    before = dict(mpl.rcParams)
    figure = DRAWINGS[name](found)
    picture = style.save_png(figure, tmp_path / name)
    style.save_pdf(figure, tmp_path / name)
    assert picture.size == pytest.approx(figure.get_size_inches() * style.DOTS_PER_INCH, abs=1)
    for kind in ("png", "pdf"):
        assert (tmp_path / f"{name}.{kind}").stat().st_size > 2000
    assert dict(mpl.rcParams) == before


def test_figures_take_a_choice_of_libraries() -> None:
    found, _, _ = known_analysis("C")
    figure = figures.draw_correlations(found, ["C", "C-alt"])
    assert [axes.get_title().split()[0] for axes in figure.axes[:2]] == ["C", "C-alt"]
    drawn = np.asarray(figure.axes[0].images[0].get_array())
    assert np.array_equal(drawn, found.libraries["C"].correlation)


def test_counts_figure_shows_the_counts() -> None:
    found, _, _ = known_analysis("C")
    axes = figures.draw_threshold_counts(found, ["Full"]).axes[0]
    assert np.array_equal(np.asarray(axes.lines[0].get_ydata()), found.libraries["Full"].sweep.counts)
    assert "share" in axes.get_xlabel()
    assert "coefficient" in figures.draw_threshold_counts(found, threshold_on="coefficient").axes[0].get_xlabel()


def test_drift_figure(tmp_path: Path) -> None:
    field = known_field("A")
    _, _, drift = known_analysis("A")
    for under in (field, None):
        figure = figures.draw_drift(drift, under)
        figure.savefig(tmp_path / "drift.png", dpi=50)
        labels = {axes.get_ylabel() for axes in figure.axes}
        assert "velocity (image units/s)" in labels
        assert "M(t) (image units²)" in labels


def test_own_terms_are_drawn_by_name(tmp_path: Path) -> None:
    settings = load_settings(
        overrides={"terms": {"my_term": [{"density": "u*(1 - u)"}]}, "libraries": {"mine": ["my_term", "laplacian"]}}
    )
    found, _, _ = analyse(known_field("A", 40, 97), settings)
    for name, draw in DRAWINGS.items():
        draw(found, ["mine"]).savefig(tmp_path / f"{name}.png", dpi=50)
    assert style.term_label("my_term") == "my term"


def test_tables_hold_the_artefacts_numbers() -> None:
    found, _, _ = known_analysis("C")
    conditioning = {row["library"]: row for row in tabulate_conditioning(found)}
    assert list(conditioning) == list(LIBRARIES)
    assert conditioning["C"]["active"] == "grad_squared, laplacian, drift_x, drift_y"
    assert conditioning["Full"]["condition"] == found.libraries["Full"].condition
    stability = {(row["library"], row["term"]): row for row in tabulate_stability(found)}
    assert stability["C", "grad_squared"]["frequency"] == 1
    assert stability["Full", "u"]["mean"] is None
    coefficients = {(row["library"], row["term"]): row for row in tabulate_coefficients(found, ["C"])}
    assert coefficients["C", "laplacian"]["coefficient"] == found.libraries["C"].fit.coefficients["laplacian"]


def test_colours_are_distinct_within_a_library() -> None:
    for terms in LIBRARIES.values():
        colours = [style.term_colour(name) for name in (*terms, "drift_x", "drift_y")]
        assert len(set(colours)) == len(colours)
    assert len({style.library_colour(name) for name in LIBRARIES}) == len(LIBRARIES)
    assert {style.term_colour(name) for name in CATALOGUE} >= {style.term_colour("laplacian")}
    assert style.term_colour("own") == style.term_colour("own")
