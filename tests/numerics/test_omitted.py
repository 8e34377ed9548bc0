"""A term that a law lacks, seen in rollouts: it is named with where the law would go, and a right law lacks none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import video2pde as vp
from video2pde.calibration import calibrate, Calibration, make_problem
from video2pde.drift import estimate_drift
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid
from video2pde.fit.explain import half_widths
from video2pde.fit.omitted import ask_rollout, moved, name_omitted, Omitted
from video2pde.recording.synth import Case, Drift, Law, noisy, Plume, sample_case
from video2pde.recording.synth.further import Further
from video2pde.runs.codec import decode, encode
from video2pde.settings import load_settings
from video2pde.stages.calibration import _without_unsure, calibrate_contenders
from video2pde.stages.structure import Contender
from video2pde.terms import CATALOGUE

TRUE = {"porous": 3.0, "laplacian": 0.3}
DRIFT = (0.1, -0.08)
SETTINGS = load_settings("quick", overrides={"run.workers": 1, "calibration.replicates": 20})


@pytest.fixture(scope="module")
def train() -> Field:
    law = Law(laplacian=TRUE["laplacian"], further=Further(porous=TRUE["porous"]))
    case = Case("porous", law, Drift(DRIFT), Plume(0.6, seed=59, size=1.2, shape="spots"), 0.25)
    grid, times = Grid(64, 64, 200.0, 200.0), np.linspace(0, 20, 70)
    pictures = sample_case(case, grid.y - 100, grid.x - 100, (grid.dy, grid.dx), times, spacing=1.6, domain=340.0)
    return noisy(Field(np.stack([np.asarray(p, np.float32) for p in pictures]), times, grid), 0.002, 3)


def fitted(train: Field, *names: str) -> Calibration:
    terms = tuple(CATALOGUE[name] for name in names)
    still = {name: np.zeros((len(train), 2)) for name in names}
    guess = {name: 0.8 * TRUE[name] for name in names}
    problem = make_problem(train, terms, guess, np.tile(DRIFT, (len(train), 1)), still, SETTINGS)
    return calibrate("law", problem, {"weak": list(guess.values())}, SETTINGS)


def test_a_term_that_is_missing_is_named_and_where_the_law_would_go(train: Field) -> None:
    law = fitted(train, "porous")
    widths = half_widths(law)
    assert abs(law.estimates["porous"].value - TRUE["porous"]) > 2 * widths["porous"]  # tight, and wrong
    answers = {each.name: each for each in ask_rollout(law, train, SETTINGS)}
    assert "porous" not in answers
    missing = answers["laplacian"]
    assert missing.removes == max(each.removes for each in answers.values())
    assert missing.value == pytest.approx(TRUE["laplacian"], rel=0.2)  # one step of Gauss and Newton from zero
    assert missing.coefficients["porous"] == pytest.approx(TRUE["porous"], rel=0.05)
    named = name_omitted(law, train, SETTINGS, widths)
    assert named is not None
    assert named.name == "missing laplacian, in rollouts"
    assert "--law porous,laplacian" in named.words
    assert named.moves > 1
    assert named.shifts["porous"] > widths["porous"]


def test_a_right_law_lacks_nothing(train: Field) -> None:
    law = fitted(train, "porous", "laplacian")
    assert name_omitted(law, train, SETTINGS, half_widths(law)) is None
    for each in ask_rollout(law, train, SETTINGS):
        assert moved(each.shifts(dict(zip(TRUE, law.fit.coefficients, strict=True))), half_widths(law)) < 1


def test_what_rollouts_cannot_say_is_not_asked(train: Field) -> None:
    law = fitted(train, "porous")
    assert ask_rollout(replace(law, fit=replace(law.fit, converged=False)), train, SETTINGS) == ()
    assert ask_rollout(replace(law, held={"porous": "known"}), train, SETTINGS) == ()


def test_a_law_keeps_what_its_rollouts_said(train: Field) -> None:
    """They are asked once, by the calibration, and read back from its stage by the test of fit."""
    law = fitted(train, "porous")
    answers = ask_rollout(law, train, SETTINGS)
    kept = decode(*encode(replace(law, asked=answers)))
    assert [each.name for each in kept.asked] == [each.name for each in answers]
    assert ask_rollout(kept, train.frames(slice(0, 3)), SETTINGS) is kept.asked  # too few frames to ask anything
    best = max(answers, key=lambda each: each.removes)
    assert next(each for each in kept.asked if each.name == best.name).coefficients == best.coefficients


def test_what_the_grid_adds_is_taken_off_and_counts_as_uncertain() -> None:
    seen = Omitted("u_grad_squared", -0.66, 0.06, {"grad_squared": 10.32}, {"grad_squared": 0.03}, 2e-3)
    law, widths = {"grad_squared": 10.0}, {"grad_squared": 0.08}
    assert seen.tells(law, widths)
    less = seen.less(np.array([0.22, -0.36]))
    assert less.value == pytest.approx(-0.30)
    assert less.error == pytest.approx(np.hypot(0.06, 0.18))
    assert less.coefficients["grad_squared"] == pytest.approx(10.10)
    assert not less.tells(law, widths)


def test_backward_diffusion_explains_nothing() -> None:
    backward = Omitted("porous", 3.0, 0.01, {"laplacian": -0.5}, {"laplacian": 0.01}, 0.1)
    assert not backward.runs_forward
    assert not backward.tells({"laplacian": 1.0}, {"laplacian": 0.1})


def test_beside_a_tensor_the_laplacian_says_nothing(train: Field) -> None:
    names = ("porous", "dxx", "dyy", "dxy")
    still = {name: np.zeros((len(train), 2)) for name in names}
    guess = {"porous": 3.0, "dxx": 0.3, "dyy": 0.3, "dxy": 0.01}
    terms = tuple(CATALOGUE[name] for name in names)
    problem = make_problem(train, terms, guess, np.tile(DRIFT, (len(train), 1)), still, SETTINGS)
    law = calibrate("law", problem, {"weak": list(guess.values())}, SETTINGS)
    asked = {each.name for each in ask_rollout(law, train, SETTINGS)}
    assert "laplacian" not in asked
    assert "grad_squared" in asked


def test_the_law_with_the_term_is_calibrated_beside_the_one_that_lacks_it(train: Field) -> None:
    """Rollouts of the porous medium ask for diffusion with tens of standard errors: both laws go on."""
    drift, known = estimate_drift(train), vp.example_run().discovery
    assert known is not None
    found = replace(known, moments={"porous": np.zeros((len(train), 2))})
    law = Contender("porous", (CATALOGUE["porous"],), {"porous": 3.6}, (1.0, 1.0), 0.9)
    done = calibrate_contenders([law], train, drift, found, {}, SETTINGS)
    assert list(done) == ["porous", "porous+laplacian"]
    larger = done["porous+laplacian"]
    assert larger.enlarges == "porous"
    assert "laplacian" in {each.name for each in done["porous"].asked or ()}
    for name, true in TRUE.items():
        assert larger.estimates[name].value == pytest.approx(true, rel=0.08)
    # a law that was named is the user's, and stays what it is
    named = load_settings(
        "quick", overrides={"run.workers": 1, "calibration.replicates": 20, "regression.law": "porous"}
    )
    assert list(calibrate_contenders([law], train, drift, found, {}, named)) == ["porous"]


def test_a_term_that_stood_for_the_missing_one_goes(train: Field) -> None:
    """What may be zero beside the new term is left out; the new one itself is not, nor is what is known."""
    terms = tuple(CATALOGUE[name] for name in ("u", "porous", "laplacian"))
    law = replace(fitted(train, "porous", "laplacian"), terms=terms)
    sure, unsure = Estimate(3.0, 2.9, 3.1), Estimate(0.001, -0.002, 0.004)
    larger = Contender("B+laplacian", terms, {"u": 0.0, "porous": 3.6, "laplacian": 0.2}, (1.0, 1.0), 0.9)

    def fewer(**estimates: Estimate) -> Contender | None:
        return _without_unsure(larger, {larger.library: replace(law, estimates=estimates)})

    found = fewer(u=unsure, porous=sure, laplacian=sure)
    assert found is not None
    assert found.library == "B+laplacian-u"
    assert found.weak == {"porous": 3.0, "laplacian": 3.0}
    assert fewer(u=sure, porous=sure, laplacian=sure) is None
    assert fewer(u=sure, porous=sure, laplacian=unsure) is None
