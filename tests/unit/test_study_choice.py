"""The choice of a shared law, films of another law, and films side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from video2pde.estimate import Estimate
from video2pde.settings import SelectionSettings
from video2pde.study.choice import choose_shared
from video2pde.study.equality import Asked
from video2pde.study.joint import JointLaw
from video2pde.study.mosaic import side_by_side
from video2pde.study.order import Study
from video2pde.study.own import Answer, OwnFit
from video2pde.study.prediction import gather, law_of, OTHERS, Outcome, PERSISTENCE, Predicted, SHARED, Shown
from video2pde.terms import CATALOGUE

FILMS = ("a", "b", "c", "d")


def law(library: str, terms: dict[str, float], passes: int | None = 4, converged: bool = True) -> JointLaw:
    size = len(terms)
    values = np.array(list(terms.values()))
    own = tuple(
        OwnFit(
            Asked(film, values, np.ones(size), np.eye(size)),
            np.zeros(size),
            np.zeros((3, size)),
            None if passes is None else k < passes,
        )
        for k, film in enumerate(FILMS)
    )
    answers = tuple(Answer(film, np.eye(size), np.zeros(size), 1.0) for film in FILMS)
    estimates = {name: Estimate(value, value - 1, value + 1) for name, value in terms.items()}
    found = tuple(CATALOGUE[name] for name in terms)
    return JointLaw(library, found, estimates, values, np.zeros((2, size)), own, answers, 2, converged, {})


def scores(errors: dict[str, float]) -> list[Predicted]:
    outcomes = (Outcome(PERSISTENCE, 0.3, 0.0, 1.0), *(Outcome(n, 0.1, 0.9, e) for n, e in errors.items()))
    return [Predicted(film, "validation", outcomes) for film in FILMS]


def choose(laws: list[JointLaw], errors: dict[str, float]) -> tuple[str, str | None]:
    choice = choose_shared({law.library: law for law in laws}, scores(errors), SelectionSettings(), "")
    assert len(choice.digest) == 64
    return choice.verdict, choice.chosen


SMALL, LARGE = {"laplacian": 1.0}, {"u": 0.1, "laplacian": 1.0}


def test_of_laws_that_predict_as_well_the_smaller_is_chosen() -> None:
    assert choose([law("A", SMALL), law("B", LARGE)], {"A": 0.101, "B": 0.1}) == ("law", "A")
    assert choose([law("A", SMALL), law("B", LARGE)], {"A": 0.2, "B": 0.1}) == ("law", "B")


def test_laws_of_one_size_that_predict_as_well_are_ambiguous() -> None:
    other = law("X", {"u_laplacian": 1.0}) if "u_laplacian" in CATALOGUE else law("X", {"u": 0.1})
    assert choose([law("A", SMALL), other], {"A": 0.1, "X": 0.102}) == ("ambiguous", "A")


def test_a_law_that_leaves_noise_alone_is_not_passed_over() -> None:
    assert choose([law("A", SMALL, passes=0), law("B", LARGE)], {"A": 0.1, "B": 0.1}) == ("law", "B")
    assert choose([law("A", SMALL, passes=1)], {"A": 0.1}) == ("approximation", "A")
    assert choose([law("A", SMALL, passes=None)], {"A": 0.1}) == ("law", "A")


@pytest.mark.parametrize(
    ("laws", "error"),
    [
        ([law("A", {"laplacian": -1.0})], 0.1),
        ([law("A", SMALL)], 1.2),
        ([law("A", SMALL, converged=False)], 0.1),
        ([], 1),
    ],
)
def test_nothing_that_can_be_used_is_no_law(laws: list[JointLaw], error: float) -> None:
    assert choose(laws, {"A": error}) == ("no_law", None)


def test_the_law_of_the_others_does_not_hold_the_film() -> None:
    base = law("A", SMALL)
    wants = {"a": 1.0, "b": 1.2, "c": 0.8, "d": 3.0}
    answers = tuple(Answer(film, np.eye(1), np.array([1.0 - wants[film]]), 1.0) for film in FILMS)
    shared = JointLaw("A", base.terms, base.estimates, np.array([1.0]), base.draws, base.own, answers, 1, True, {})
    assert shared.without("d")[0] == pytest.approx(1.0)
    assert shared.without("a")[0] == pytest.approx((1.2 + 0.8 + 3.0) / 3)


def test_a_film_that_the_others_cannot_predict_is_named() -> None:
    def outcome(film: str, other: str) -> float:
        return 0.02 if (film == "d") == (other == "d") else 0.06

    found = []
    for film in FILMS:
        laws = [Outcome(law_of(other), outcome(film, other), 0.9, 0.1) for other in FILMS]
        more = [(SHARED, 0.03), (OTHERS, 0.06 if film == "d" else 0.021), (PERSISTENCE, 0.3)]
        laws += [Outcome(name, error, 0.9, 0.1) for name, error in more]
        found.append(Predicted(film, "test", tuple(laws)))
    predictions = gather(FILMS, {film: np.ones(1) for film in FILMS}, found)
    assert predictions.misfits == ("d",)
    assert predictions.badly_predicted == ()
    assert predictions.matrix[3].tolist() == [0.06, 0.06, 0.06, 0.02]


def test_films_are_set_side_by_side_in_step() -> None:
    def shown(value: float, frames: int, seconds: float, size: int) -> Shown:
        observed = np.full((frames, size, size), value, np.float32)
        forecast = np.full_like(observed, np.nan)
        forecast[frames // 2 :] = value + 1
        return Shown(np.linspace(0, seconds, frames), observed, forecast)

    made = side_by_side(("a", "b", "c"), [shown(1, 10, 9.0, 8), shown(2, 20, 19.0, 6), shown(3, 10, 9.0, 8)])
    assert made is not None
    field, (first, forecast) = made
    assert field.times[-1] == 19.0
    assert field.values.shape == (20, 24, 24)
    assert [field.values[0, 0, 0], field.values[0, 0, 12], field.values[0, 12, 0]] == [1, 2, 3]
    assert first == 5  # a film of nine seconds is predicted from its middle on
    assert [forecast[0, 0, 0], forecast[0, 0, 12]] == [2, 2]  # the longer film shows itself until its own begins
    assert forecast[-1, 0, 12] == 3


def test_a_film_under_a_law_that_is_not_its_own_is_named_by_fit_and_forecast() -> None:
    """Its coefficients have intervals that contradict nothing, and its own fit of the wrong law predicts no better."""

    def outcomes(film: str) -> tuple[Outcome, ...]:
        bad = film == "d"
        names = (SHARED, OTHERS, PERSISTENCE, *(law_of(other) for other in FILMS))
        return tuple(Outcome(name, 0.09 if bad else 0.02, 0.1, 0.9 if bad else 0.1) for name in names)

    found = [Predicted(film, "test", outcomes(film)) for film in FILMS]
    predictions = gather(FILMS, {film: np.ones(1) for film in FILMS}, found)
    assert predictions.misfits == ()
    assert predictions.badly_predicted == ("d",)
    three_pass, one_passes = law("A", SMALL, passes=3), law("A", SMALL, passes=1)
    choice = choose_shared({"A": three_pass}, scores({"A": 0.1}), SelectionSettings(), "")
    study = Study("t", "mm", (), laws={"A": three_pass}, choice=choice, predictions=predictions)
    assert study.another_law == ("d",)
    assert replace(study, laws={"A": one_passes}).another_law == ()  # where most fail, none is the odd one
    assert replace(study, laws={"A": law("A", SMALL, passes=4)}).another_law == ()
