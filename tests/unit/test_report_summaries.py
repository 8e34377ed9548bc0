"""The small summaries that figures and the page share, and tables as files."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from video2pde.report.sheets import Entry, fill, to_csv, to_latex
from video2pde.report.summaries import ellipse_path, running_intervals, thin


def test_an_ellipse_holds_what_it_says() -> None:
    covariance = np.array([[2.0, 0.7], [0.7, 0.5]])
    path = ellipse_path(np.array([1.0, -3.0]), covariance, radius=2.448)
    away = path - np.array([1.0, -3.0])
    assert np.allclose(np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away), 2.448**2)


def test_running_intervals_end_at_the_whole_sample() -> None:
    draws = np.random.default_rng(0).standard_normal((40, 2))
    counts, middle, low, high = running_intervals(draws)
    assert counts[0] == 3
    assert counts[-1] == 40
    assert np.allclose(middle[-1], np.median(draws, axis=0))
    assert np.allclose((low[-1], high[-1]), np.quantile(draws, (0.025, 0.975), axis=0))


def test_thinning_keeps_both_ends() -> None:
    x = np.arange(1000.0)
    kept, values = thin(x, x**2, 50)
    assert len(kept) == 50
    assert (kept[0], kept[-1]) == (0.0, 999.0)
    assert np.array_equal(values, kept**2)


@pytest.mark.parametrize("text", ["=1+1", "-1+1", "+1", "@SUM(A1)", "\t=1"])
def test_no_cell_of_a_csv_is_a_formula(text: str) -> None:
    assert next(csv.reader(to_csv(fill("t", "t", (Entry("a", "a"),), [{"a": text}])).splitlines()[1:])) == [f"'{text}"]


def test_a_table_takes_hostile_text() -> None:
    sheet = fill("t", "100 % of a_b", (Entry("a", "a & b"), Entry("x", "x", percent=True)), [{"a": "=1+1", "x": 0.5}])
    assert to_csv(sheet).splitlines() == ["a,x", "'=1+1,0.5"]
    latex = to_latex(sheet)
    assert r"\caption{100 \% of a\_b}" in latex
    assert r"a \& b & x (\%) \\" in latex
    assert r"=1+1 & 50 \\" in latex
