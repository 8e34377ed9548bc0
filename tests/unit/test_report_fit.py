"""What the report shows of the test of fit: scales, parts, suspects, maps, in tables, figures and words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from video2pde.calibration import Calibration
from video2pde.calibration.budget import Correction, LACK_OF_FIT, STATISTICS
from video2pde.calibration.fit import Fit
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid
from video2pde.fit import FitTest, Maps, Scale, Suspicion, widen
from video2pde.fit.consistency import Part
from video2pde.maps import CoefficientMap, MapShape
from video2pde.record import Run
from video2pde.report import fit_figures, fit_tables, style
from video2pde.report.content.fit import tell_fit
from video2pde.report.content.words import Story
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE

RNG = np.random.default_rng(4)
FINE = Scale("weak", 12.0, 0.9, 80, 0.01, 0.011, 0.9, 1.8, 3.0, 5.5)
COARSE = Scale("rollout", 40.0, 5.0, 100, 2e-6, 1e-6, 2.0, 1.8, 7.5, 5.0)
CAUSE = Suspicion(
    "rotation", "A", 0.8, 0.02, -20.0, 1, 1.0, {"laplacian": 1.5}, 3.0, 90.0, "the fluid turns", "include it", True
)
PARTS = (
    Part("time", "first half", {"laplacian": 1.6}, {"laplacian": 0.02}, 1.0, {"laplacian": 0.0}),
    Part("plume", "edge", {"laplacian": 1.9}, {"laplacian": 0.03}, 6.0, {"laplacian": 0.15}),
)
AXES = (np.linspace(0.5, 2.5, 6), np.linspace(10, 90, 7), np.linspace(10, 90, 7))
MAPS = Maps(
    RNG.standard_normal((6, 7, 7)),
    RNG.standard_normal((6, 7, 7)),
    AXES,
    5 * np.ones((4, 5, 5)),
    RNG.standard_normal((4, 5, 5)),
    (20.0, 0.8),
)
FAILED = FitTest(
    library="A",
    passes=False,
    reason="A leaves twice the noise",
    unexplained=0.05,
    expected=0.011,
    scales=(FINE, COARSE),
    suspects=(CAUSE,),
    consistency=PARTS,
    lack={"laplacian": 0.15},
    cause=CAUSE,
    rival="",
    blocks=np.zeros(0),
    maps=MAPS,
)


def calibrated() -> Calibration:
    """A law with an interval of ± 0.03 by statistics alone."""
    still = np.zeros((5, 2))
    fit = Fit(
        terms=("laplacian",),
        values={"law": np.array([1.65])},
        velocity=still,
        start=np.zeros((4, 4)),
        base=np.zeros((4, 4)),
        modes=np.zeros((0, 4, 4)),
        mse=1e-5,
        converged=True,
        reason="",
        rollouts=9,
    )
    budget = (Correction(STATISTICS, np.zeros(1), np.array([0.03])),)
    return Calibration(
        "A", (CATALOGUE["laplacian"],), {"laplacian": Estimate(1.65, 1.62, 1.68)}, {}, fit, (), True, None, budget
    )


def told(test: FitTest) -> Story:
    return Story(Run(load_settings(), {"fit": 1.0}, fit={"A": test}))


def test_every_scale_part_and_suspect_is_listed() -> None:
    scales = fit_tables.list_scales(FAILED, "mm").rows
    assert [row[0] for row in scales] == ["rate of change", "rollout"]
    assert [row[-1].passed for row in scales] == [True, False]
    assert len(fit_tables.list_parts(FAILED).rows) == len(PARTS)
    assert fit_tables.list_suspects(FAILED).rows[0][0] == "rotation"
    assert not fit_tables.list_suspects(FAILED, 0).rows


def test_the_page_says_what_fails_and_why() -> None:
    section = tell_fit(told(FAILED))
    assert section is not None
    assert str(section.sentence).startswith("No: A leaves twice the noise")
    assert "not: edge" in str(section.sentence)
    assert "0.15" in str(section.sentence)
    assert any(getattr(item, "title", "") == "Likely cause" for item in section.items)
    passed = tell_fit(told(replace(FAILED, passes=True, cause=None, lack={"laplacian": 0.0})))
    assert passed is not None
    assert str(passed.sentence).startswith("Yes")
    assert "further" not in str(passed.sentence)
    assert tell_fit(Story(Run(load_settings()))) is None


def test_lack_of_fit_is_a_line_of_the_budget() -> None:
    wide = widen(calibrated(), FAILED)
    half = np.hypot(0.03, 0.15)
    assert np.isclose(wide.estimates["laplacian"].high, 1.65 + half)
    assert wide.correction(LACK_OF_FIT).uncertainty == np.array([0.15])
    assert np.isclose(np.linalg.norm([line.uncertainty[0] for line in wide.budget]), half)
    assert np.isclose(wide.budget_shares.sum(), 1.0)
    law = calibrated()
    assert widen(law, replace(FAILED, lack={})) is law


def test_the_band_of_a_map_is_as_wide_as_its_mean_at_least() -> None:
    """The mean's interval is widened, and with it the band; one that is not has the truth outside."""
    shape = MapShape("laplacian", "time", ((0.0, 1.0, 2.0, 3.0),))
    count = shape.count
    covariance = np.zeros((count + 1, count + 1))
    covariance[0, 0] = (0.03 / 1.96) ** 2
    held = CoefficientMap(shape, np.zeros(count), covariance, np.ones(count), np.zeros((0, count)))
    law = replace(calibrated(), maps=(held,))
    [wide] = widen(law, FAILED).maps
    basis = shape.in_time(np.linspace(0, 3, 7))
    np.testing.assert_allclose(1.96 * wide.error(1.65, basis), np.hypot(0.03, 0.15), rtol=1e-3)
    np.testing.assert_allclose(1.96 * held.error(1.65, basis), 0.03, rtol=1e-3)
    np.testing.assert_array_equal(wide.values(1.65, basis), held.values(1.65, basis))
    [same] = widen(law, replace(FAILED, lack={"u": 0.1})).maps
    assert same is held


def test_maps_and_parts_are_drawn() -> None:
    field = Field(np.zeros((30, 10, 10), np.float32), np.linspace(0, 3, 30), Grid(10, 10, 100.0, 100.0))
    with style.apply():
        maps = fit_figures.draw_maps(MAPS, field)
        parts = fit_figures.draw_consistency(FAILED, calibrated(), "mm")
    images = [axis.images[0] for axis in maps.axes if axis.images]
    assert len(images) >= 16
    assert max(float(image.get_array().max()) for image in images) == 5.0
    assert [text.get_text() for text in parts.axes[0].get_yticklabels()] == ["first half", "edge"]
