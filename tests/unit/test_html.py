"""How results show themselves in a notebook."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import video2pde as vp
from video2pde.html import curves, table


def shown(piece: object) -> ElementTree.Element:
    """Parse what an object shows: it must be whole."""
    return ElementTree.fromstring(f"<div>{piece._repr_html_()}</div>")  # type: ignore[attr-defined]


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


@pytest.fixture(scope="module")
def run() -> vp.Run:
    return vp.example_run()


def test_a_run_shows_law_verdict_errors_and_warnings(run: vp.Run) -> None:
    assert run.chosen is not None
    assert run.test_score is not None
    text = words(shown(run))
    assert run.chosen.model.equation.text in text
    assert str(run.chosen.estimates["laplacian"]) in text
    assert "law: A predicts" in text
    assert f"{run.test_score.full.rrmse:.3%}" in text
    assert "persistence" in text
    hostile = replace(run, drift=replace(run.drift, notes=("<script>alert(1)</script>",)))  # type: ignore[type-var]
    assert shown(hostile).find(".//script") is None
    assert "<script>" in words(shown(hostile))


def test_an_unfinished_run_says_how_far_it_has_come(run: vp.Run) -> None:
    early = vp.Run(run.settings, {"recording": 1.0}, recording=run.recording)
    assert "unfinished" in words(shown(early))
    assert "recording" in words(shown(early))


def test_drift_fits_and_selection_show_themselves(run: vp.Run) -> None:
    assert run.drift is not None
    assert run.discovery is not None
    assert run.selection is not None
    lines = shown(run.drift).findall(".//polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [len(run.drift.times)] * 2
    fit = run.discovery.identifiability.libraries["A"].fit
    assert f"{fit.coefficients['laplacian']:.5g}" in words(shown(fit))
    assert str(run.calibration["A"].estimates["laplacian"]) in words(shown(run.calibration["A"]))
    chosen = words(shown(run.selection))
    assert "A, chosen" in chosen
    assert "forward diffusion" in chosen
    nothing = replace(run.selection, verdict="no_law", candidates=(), chosen=None, reason="nothing moves")
    assert words(shown(nothing)) == "no_law: nothing moves"


def test_curves_keep_their_order_and_place() -> None:
    drawing = ElementTree.fromstring(curves([0.0, 1.0, 2.0], [("up", [0.0, 1.0, 2.0]), ("still", np.ones(3))], "words"))
    up, still = (
        [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()] for line in drawing.iter("polyline")
    )
    assert up[0][1] > up[1][1] > up[2][1]  # y grows downwards
    assert {y for _, y in still} == {up[1][1]}
    assert table(["a"], []) == "<table><tr><th>a</th></tr></table>"


def test_stages_print_what_they_found_not_their_arrays(run: vp.Run) -> None:
    assert run.test is not None
    assert run.discovery is not None
    errors = repr(run.test)
    assert errors.startswith("Evaluation(Validation(")
    assert f"A {run.test.scores.rows[0].measured.full.rrmse:.2%}" in errors
    assert "array" not in errors + repr(run.discovery) + repr(run.validation)
