"""One film under many settings: which ones, and what they say together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid
from video2pde.recording.layout import plan_layout
from video2pde.recording.source import open_recording
from video2pde.settings import load_settings
from video2pde.study.sensitivity import Found, Sensitivity
from video2pde.study.sensitivity_page import (
    compose_sensitivity,
    list_changes,
    list_effects,
    list_found,
    summarise_sensitivity,
)
from video2pde.study.specifications import (
    Factor,
    Level,
    list_specifications,
    named_factors,
    Specification,
    usual_factors,
)
from video2pde.terms import CATALOGUE

SETTINGS = load_settings("quick")


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.npy"
    np.save(path, np.random.default_rng(1).integers(0, 255, (10, 80, 100), dtype=np.uint8))
    return path


def test_the_usual_settings_of_a_film_are_varied_one_by_one_and_together(film: Path) -> None:
    factors = usual_factors(film, SETTINGS)
    assert {"crop", "border", "grid", "smoothing", "observable", "training window", "seed"} <= {f.name for f in factors}
    listed = list_specifications(film, SETTINGS, factors, 10, 0)
    alone = sum(len(factor.levels) - 1 for factor in factors)
    assert listed[0].settings == SETTINGS
    assert [len(each.changed) for each in listed[1 : alone + 1]] == [1] * alone
    assert all(len(each.changed) > 1 for each in listed[alone + 1 :])
    assert len({each.levels for each in listed}) == len(listed) == alone + 11
    assert [e.levels for e in list_specifications(film, SETTINGS, factors, 10, 0)] == [e.levels for e in listed]


def test_the_sample_takes_every_level_about_equally_often(film: Path) -> None:
    factors = usual_factors(film, SETTINGS)
    listed = list_specifications(film, SETTINGS, factors, 30, 0)[-30:]
    for k, factor in enumerate(factors):
        counts = np.bincount([each.levels[k] for each in listed], minlength=len(factor.levels))
        assert counts.min() >= 30 // len(factor.levels) - 1


def test_a_pixel_keeps_its_size_under_another_crop(film: Path) -> None:
    """Image units are a share of the crop: without care a coefficient would change by the crop's size squared."""
    factors = [factor for factor in usual_factors(film, SETTINGS) if factor.name in ("crop", "border")]
    header = open_recording(film).header
    sizes = set()
    for each in list_specifications(film, SETTINGS, factors, 0, 0):
        layout = plan_layout(header, each.settings.recording)
        sizes.add((round(layout.grid.width / layout.inner[2], 9), round(layout.grid.height / layout.inner[3], 9)))
    assert sizes == {(2.0, 2.0)}


def test_a_saved_field_is_not_cropped(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((6, 8, 8), dtype=np.float32)
    path = Field(values, np.arange(6.0), Grid(8, 8, 8.0, 8.0)).save(tmp_path / "field.npz")
    assert "crop" not in {factor.name for factor in usual_factors(path, SETTINGS)}
    assert len(list_specifications(path, SETTINGS, usual_factors(path, SETTINGS), 2, 0)) > 3


def test_settings_can_be_named(film: Path) -> None:
    (factor,) = named_factors(["weak.sigma_space=0.04,0.06,0.08"], SETTINGS)
    assert [level.label for level in factor.levels] == ["0.06", "0.04", "0.08"]
    listed = list_specifications(film, SETTINGS, [factor], 0, 0)
    assert [each.settings.weak.sigma_space for each in listed] == [0.06, 0.04, 0.08]
    with pytest.raises(InputError, match="varies nothing"):
        named_factors(["run.seed=0"], SETTINGS)


def sensitivity() -> Sensitivity:
    """Make a film whose coefficient follows the crop, hardly the seed."""
    factors = tuple(Factor(name, tuple(Level(f"{name} {k}") for k in range(2))) for name in ("crop", "seed"))
    found = []
    for number, levels in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):
        value = 1.0 + 0.3 * levels[0] + 0.02 * levels[1]
        terms = ("laplacian",) if number < 3 else ("laplacian", "u")
        estimates = {"laplacian": Estimate(value, value - 0.1, value + 0.1)}
        found.append(Found(Specification(f"{number:03d}", levels, SETTINGS), "law", terms, estimates))
    found.append(Found(Specification("004", (0, 1), SETTINGS), "", (), {}, "it could not be read"))
    return Sensitivity("film.mp4", "mm", factors, (CATALOGUE["laplacian"],), tuple(found))


def test_the_setting_that_matters_is_found() -> None:
    found = sensitivity()
    first, second = found.effects("laplacian")
    assert (first.factor, first.low, first.high, first.at_high) == ("crop", 1.0, 1.3, "crop 1")
    assert second.factor == "seed"
    assert found.explained("laplacian")["crop"] > 0.98
    assert found.same_law == pytest.approx(2 / 3)
    assert found.inside("laplacian") == pytest.approx(1 / 2)
    assert "crop moves it most: 1 (crop 0) to 1.3 (crop 1)" in summarise_sensitivity(found)


def test_the_page_shows_a_curve_and_a_tornado_for_each_coefficient() -> None:
    page = compose_sensitivity(sensitivity())
    assert page.head.verdict == "the law depends on settings"
    same = replace(sensitivity(), found=tuple(replace(f, terms=("laplacian",)) for f in sensitivity().found))
    assert compose_sensitivity(same).head.verdict.endswith("but coefficients leave their intervals")
    titles = [getattr(item, "title", "") for item in page.sections[0].items]
    assert titles[:3] == ["Specification curve of Δu", "Which settings these are", "What moves Δu"]
    assert [row[0] for row in list_found(sensitivity()).rows] == ["000", "001", "002", "003", "004"]
    assert len(list_effects(sensitivity()).rows) == 2


def test_a_setting_that_leads_to_another_law_is_named_and_moves_no_coefficient() -> None:
    """Coefficients of a law that was not chosen say nothing: those of run 001 would make the crop matter most."""
    found = sensitivity()
    turned = replace(found, found=tuple(replace(f, terms=("u",)) if n == 1 else f for n, f in enumerate(found.found)))
    effects = {effect.factor: effect for effect in turned.effects("laplacian")}
    assert (effects["crop"].range, effects["crop"].another) == (0.0, ("crop 1",))
    assert "another law, or none, under crop crop 1" in summarise_sensitivity(turned)
    assert "another law under crop crop 1" in compose_sensitivity(turned).head.summary
    assert "over the 2 settings" in compose_sensitivity(turned).sections[0].sentence


def test_the_page_names_what_is_changed_in_each_run() -> None:
    rows = list_changes(sensitivity()).rows
    assert [row[1] for row in rows[:2]] == ["nothing", "crop: crop 1"]
    assert rows[3][1:3] == ("crop: crop 1; seed: seed 1", "laplacian, u")
    assert rows[4][2] == "it could not be read"
