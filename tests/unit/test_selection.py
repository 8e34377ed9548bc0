"""The choice among calibrated contenders, from scores made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.estimate import Estimate
from video2pde.selection import block_error, exceeds, select, Selection
from video2pde.terms import CATALOGUE, Term
from video2pde.terms.catalogue import TENSOR

FRAMES = 60
TERMS = {
    "A": ("laplacian",),
    "B": ("u", "laplacian"),
    "C": ("grad_squared", "laplacian"),
    "C-alt": ("u_grad_squared", "laplacian"),
    "C-both": ("grad_squared", "u_grad_squared", "laplacian"),
}
UNSURE = (Estimate(0.1, -0.2, 0.4), Estimate(0.7, 0.6, 0.8))
"""Coefficients of C, of which the first may be zero."""
NOISE = np.abs(np.random.default_rng(0).normal(1.0, 0.1, FRAMES))


def score(mse: float | NDArray[Any], front: float = 0.1, centroid: float = 0.1, failure: str = "") -> Any:
    series = mse * NOISE if np.isscalar(mse) else np.asarray(mse)
    full = SimpleNamespace(rrmse=float(np.sqrt(series.mean())), mse=series, front_rmse=front, centroid_rmse=centroid)
    return SimpleNamespace(full=full, failure=failure, skill=1 - float(series.mean()))


def choose(
    errors: Mapping[str, float | NDArray[Any]],
    fits: Mapping[str, float] | None = None,
    laplacian: Estimate | None = None,
    own: Mapping[str, tuple[tuple[Term, Estimate], ...]] | None = None,
    extra: Mapping[str, Any] | None = None,
    stuck: tuple[str, ...] = (),
    bootstrap: object = None,
    enlarges: Mapping[str, str] | None = None,
    **options: Any,
) -> Selection:
    """Select among libraries with the given squared errors; persistence has 1."""
    estimate = laplacian or Estimate(0.7, 0.6, 0.8)
    calibrations: Any = {
        name: SimpleNamespace(
            terms=tuple(CATALOGUE[term] for term in TERMS[name]),
            estimates={term: estimate if term == "laplacian" else Estimate(9.0, 8.9, 9.1) for term in TERMS[name]},
            fit=SimpleNamespace(mse=(fits or {}).get(name, 1e-6), converged=name not in stuck, reason="stuck"),
            bootstrap=bootstrap,
            enlarges=(enlarges or {}).get(name, ""),
        )
        for name in errors
    }
    for name, parts in (own or {}).items():
        calibrations[name].terms = tuple(term for term, _ in parts)
        calibrations[name].estimates = {term.name: found for term, found in parts}
    scores = {name: score(error) for name, error in errors.items()} | dict(extra or {})
    rows = tuple(SimpleNamespace(library=name, measured=value) for name, value in scores.items())
    seen = np.array([0.1, 0.8])
    validation: Any = SimpleNamespace(rows=rows, persistence=score(1.0), observed_snapshots=seen)
    return select(calibrations, validation, **options)


def test_the_best_law_wins_where_it_is_clearly_best() -> None:
    chosen = choose({"A": 0.5, "C": 0.01, "C-alt": 0.05})
    assert (chosen.verdict, chosen.chosen) == ("law", "C")
    assert chosen.alternatives == ("C-alt", "A")
    assert "C predicts the validation window" in chosen.reason


@pytest.mark.parametrize("excess", [0.0, 0.04])
def test_a_nested_tie_goes_to_the_simpler_law(excess: float) -> None:
    chosen = choose({"A": 0.01 * (1 + excess) ** 2, "C": 0.01, "C-both": 0.0099})
    assert (chosen.verdict, chosen.chosen) == ("law", "A")
    if excess:
        assert "the simpler law" in chosen.reason


def test_a_larger_law_needs_more_than_the_tolerance() -> None:
    assert choose({"A": 0.01 * 1.2**2, "C": 0.01}).chosen == "C"
    tie = choose({"C": 0.01, "C-both": 0.0099})
    assert tie.chosen == "C"
    assert min(tie.candidates, key=lambda candidate: candidate.rrmse).library == "C-both"


def test_laws_of_one_size_that_cannot_be_told_apart_are_ambiguous() -> None:
    chosen = choose({"C": 0.01, "C-alt": 0.01})
    assert chosen.verdict == "ambiguous"
    assert chosen.chosen in ("C", "C-alt")
    assert "C and C-alt have 2 terms each" in chosen.reason
    assert "would decide" in chosen.reason
    assert chosen.tied == (chosen.chosen, "C-alt" if chosen.chosen == "C" else "C")


def test_the_training_window_may_tell_equal_predictions_apart() -> None:
    chosen = choose({"C": 0.01, "C-alt": 0.01}, fits={"C": 1e-6, "C-alt": 2e-6})
    assert (chosen.verdict, chosen.chosen) == ("law", "C")
    # even where chance puts the other one a hair in front on the validation window
    chosen = choose({"C": 0.01 * (1 + 0.02 * NOISE), "C-alt": 0.0102 * NOISE}, fits={"C": 1e-6, "C-alt": 2e-6})
    assert (chosen.verdict, chosen.chosen) == ("law", "C")


def test_a_tie_under_shared_noise_does_not_save_a_law_that_is_worse_throughout() -> None:
    """Within 5 %, but worse frame by frame and in training: noise that both share hides the difference."""
    errors = {"A": 0.0105, "C": 0.01}
    assert choose(errors).chosen == "A"
    assert choose(errors, fits={"A": 1.06e-6, "C": 1e-6}).chosen == "C"
    # in training alone it is no reason: the larger law always fits a little better
    assert choose({"A": 0.01, "C": 0.01}, fits={"A": 1.06e-6, "C": 1e-6}).chosen == "A"


def test_after_a_search_the_smallest_law_that_passes_the_test_of_fit_wins() -> None:
    """A larger set of terms is the luckiest of many: that it predicts better is no reason to take it."""
    errors = {"A": 0.02, "C": 0.012, "C-both": 0.01}
    tests = {name: judged(name != "A") for name in errors}
    assert choose(errors, tests=tests).chosen == "C-both"
    assert choose(errors, tests=tests, searched=True).chosen == "C"
    # where none passes, prediction decides as it always does
    failing = {name: judged(False) for name in errors}
    assert choose(errors, tests=failing, searched=True).chosen == "C-both"


def test_after_a_search_laws_of_one_size_are_told_apart_only_where_no_window_speaks_against_it() -> None:
    """Of very many sets of terms some say nearly the same: what training prefers may predict a little worse."""
    errors = {"C": 0.0104, "C-alt": 0.01}
    tests = {"C": judged(True, 0.4), "C-alt": judged(True, 0.6)}
    assert choose(errors, tests=tests).verdict == "law"
    searched = choose(errors, tests=tests, searched=True)
    assert (searched.verdict, searched.chosen, searched.tied) == ("ambiguous", "C", ("C", "C-alt"))
    # a law beside which an effect is suspected fits all the same: one that fits worse does not take its place
    doubted = judged(False, 0.4)
    doubted.scales = (SimpleNamespace(passes=True),)
    found = choose({"C": 0.01, "C-alt": 0.0104}, tests={**tests, "C": doubted}, searched=True)
    assert (found.verdict, found.chosen) == ("approximation", "C")
    doubted.scales = (SimpleNamespace(passes=False),)
    assert choose({"C": 0.01, "C-alt": 0.0104}, tests={**tests, "C": doubted}, searched=True).chosen == "C-alt"
    # both windows say the same: that decides
    agreed = choose({"C": 0.01, "C-alt": 0.0104}, tests=tests, searched=True)
    assert (agreed.verdict, agreed.chosen) == ("law", "C")


def test_a_fit_that_did_not_converge_is_never_chosen() -> None:
    chosen = choose({"B": 0.02, "C": 0.01}, stuck=("C",))
    assert chosen.chosen == "B"
    assert "less, but its fit did not converge" in chosen.reason
    none = choose({"B": 1.2, "C": 0.01}, stuck=("C",))
    assert (none.verdict, none.chosen) == ("no_law", None)
    assert "C: its fit did not converge (stuck)" in none.reason
    assert "nearest comes C (" in none.reason


def judged(passes: bool, left: float = 1.0) -> Any:
    return SimpleNamespace(
        passes=passes,
        blocks=np.full(40, left) + 0.01 * NOISE[:40],
        rival="",
        cause=None,
        reason="",
        scales=(),
        worst=None,
    )


def test_a_law_with_a_smaller_error_is_never_passed_over_without_a_true_reason() -> None:
    """Beyond the tie, too: a test of fit may outweigh an error that is nearly all noise."""
    tests = {"A": judged(True), "C": judged(False, 3.0)}
    chosen = choose({"A": 0.02, "C": 0.01}, tests=tests)
    assert chosen.chosen == "A"
    assert "C with 10.04%, which is less, but it leaves more than noise unexplained, and A does not" in chosen.reason
    assert "simpler" not in chosen.reason
    tests = {"A": judged(False, 1.5), "C": judged(False, 30.0)}
    chosen = choose({"A": 0.02, "C": 0.01}, tests=tests)
    assert chosen.chosen == "A"
    assert "less, but it leaves clearly more of the training window unexplained" in chosen.reason
    # several at once: one that is stuck, one that is larger
    chosen = choose({"A": 0.0101, "C": 0.01, "C-both": 0.005}, stuck=("C-both",))
    assert chosen.chosen == "A"
    assert "within 5% of C (10.04%), and is the simpler law" in chosen.reason
    assert "C-both with 7.1" in chosen.reason
    assert "less, but its fit did not converge" in chosen.reason


def test_blocks_alone_do_not_speak_for_a_law_that_predicts_worse_and_fails_further() -> None:
    """An encoder's lag is followed by a law with growth, which then fails in weak form and on held-out frames."""

    def decide(errors: Mapping[str, float], growth_fails_by: float | None) -> Selection:
        tests = {"B": judged(False, 1.5), "C": judged(False, 4.0)}
        tests["C"].worst = SimpleNamespace(excess=1.7)
        tests["B"].worst = None if growth_fails_by is None else SimpleNamespace(excess=growth_fails_by)
        return choose(errors, tests=tests)

    found = decide({"B": 0.02, "C": 0.01}, 4.5)
    assert (found.chosen, found.verdict) == ("C", "approximation")
    # one of both is not enough: a law that fails less, or that predicts as well, takes its place as before
    for errors, fails_by in (
        ({"B": 0.02, "C": 0.01}, 1.6),
        ({"B": 0.0102, "C": 0.01}, 4.5),
        ({"B": 0.02, "C": 0.01}, None),
    ):
        found = decide(errors, fails_by)
        assert (found.chosen, found.verdict) == ("B", "approximation")


def test_of_laws_that_fail_more_terms_have_to_predict_better() -> None:
    """What a camera leaves in a film is followed in training by terms that say nothing of the frames held out."""
    failing = {"A": judged(False, 4.0), "C": judged(False, 1.5)}
    equal = {"A": 0.01 * NOISE, "C": 0.01 * NOISE[::-1]}
    found = choose(equal, tests=failing)
    assert (found.chosen, found.verdict) == ("A", "approximation")
    # terms that are earned on held-out frames, or that leave no more than noise, take the smaller law's place
    assert choose({"A": 0.02, "C": 0.01}, tests=failing).chosen == "C"
    found = choose(equal, tests={**failing, "C": judged(True, 1.0)})
    assert (found.chosen, found.verdict) == ("C", "law")
    # a smaller law needs no such reason
    assert choose(equal, tests={"A": judged(False, 1.5), "C": judged(False, 4.0)}).chosen == "A"


def test_terms_that_may_be_zero_do_not_make_a_law_of_one_that_fails() -> None:
    """Plain diffusion that leaves a hair too much is an approximation, not one of two laws with a term of nothing."""
    errors = {"A": 0.01, "C": 0.01, "C-alt": 0.01}
    tests = {"A": judged(False), "C": judged(True), "C-alt": judged(True)}
    parts = {name: tuple(zip((CATALOGUE[n] for n in TERMS[name]), UNSURE, strict=True)) for name in ("C", "C-alt")}
    idle = choose(errors, tests=tests, own=parts)
    assert (idle.chosen, idle.verdict) == ("A", "approximation")
    # one that passes with terms that are there is taken as before, and so are laws without a smaller one beside them
    better = {**errors, "A": 0.0102}
    assert choose(better, tests=tests, own={"C": parts["C"]}).verdict == "ambiguous"
    two = {name: errors[name] for name in ("C", "C-alt")}
    assert choose(two, tests=tests, own=parts).verdict == "ambiguous"


def test_terms_that_nothing_speaks_for_do_not_make_a_law_of_one_that_fails() -> None:
    """A term has to be known, and to tell on held-out frames or in blocks of the training window."""
    equal = {"A": 0.01 * NOISE, "C": 0.01 * NOISE[::-1]}
    found = choose(equal, tests={"A": judged(False), "C": judged(True)})
    assert (found.chosen, found.verdict) == ("A", "approximation")
    for errors, left in (({"A": 0.0102, "C": 0.01}, 1.0), (equal, 1.2)):
        found = choose(errors, tests={"A": judged(False, left), "C": judged(True)})
        assert (found.chosen, found.verdict) == ("C", "law")
    # a law that passes itself needs no such reason to be the simpler one
    assert choose(equal, tests={"A": judged(True), "C": judged(True)}).chosen == "A"


def test_a_law_with_the_term_that_rollouts_ask_for_takes_the_place_of_the_smaller_one() -> None:
    """Within the tie the smaller law wins, unless its own rollouts asked for the term and held-out frames agree."""
    within = {"A": 0.0102, "C": 0.01}
    tests, larger = {"A": judged(True), "C": judged(True)}, {"C": "A"}
    assert choose(within, tests=tests).chosen == "A"
    chosen = choose(within, tests=tests, enlarges=larger)
    assert (chosen.chosen, chosen.verdict) == ("C", "law")
    assert "rollouts of A over the training window ask for the further term" in chosen.reason
    # not where held-out frames say otherwise, where it leaves more than noise, or where the term may be zero
    assert choose({"A": 0.0098, "C": 0.01}, tests=tests, enlarges=larger).chosen == "A"
    assert choose(within, tests={"A": judged(True), "C": judged(False)}, enlarges=larger).chosen == "A"
    # a law that leaves more than noise is not mended by a term: something else is wrong with the film
    wrong = choose(within, tests={"A": judged(False), "C": judged(True)}, enlarges=larger)
    assert (wrong.chosen, wrong.verdict) == ("A", "approximation")
    # but one that fits, beside which an effect is suspected, may lack just that term
    suspected = judged(False)
    suspected.scales = (SimpleNamespace(passes=True),)
    assert choose(within, tests={"A": suspected, "C": judged(True)}, enlarges=larger).chosen == "C"
    unsure = {"C": tuple(zip((CATALOGUE[n] for n in TERMS["C"]), UNSURE, strict=True))}
    assert choose(within, tests=tests, enlarges=larger, own=unsure).chosen == "A"


def test_a_law_that_fails_by_far_gives_way_to_one_of_as_many_terms_that_its_rollouts_ask_for() -> None:
    """Dye that fades on a background that stays: u and u² fail by far, and the constant in the place of u² fits."""
    within, larger = {"B": 0.0102, "C": 0.01}, {"C": "B"}
    far, near = judged(False), judged(False)
    far.worst, near.worst = SimpleNamespace(excess=16.0), SimpleNamespace(excess=3.0)
    found = choose(within, tests={"B": far, "C": judged(True)}, enlarges=larger)
    assert (found.chosen, found.verdict) == ("C", "law")
    # what fails by less may fail by the film's faults, and what has grown by a term says more of anything
    found = choose({"B": 0.0106, "C": 0.01}, tests={"B": near, "C": judged(True)}, enlarges=larger)
    assert (found.chosen, found.verdict) == ("B", "approximation")
    assert "C with 10.04%, which is less, but rollouts of B ask for its further term" in found.reason
    # where the smaller law fits, or nothing was tested, that is not the reason
    fits = {"B": judged(True), "C": judged(True)}
    for tests in (fits, {}):
        assert "ask for its further term" not in choose({"B": 0.0102, "C": 0.01}, tests=tests, enlarges=larger).reason
    grown = choose({"B": 0.0102, "C-both": 0.01}, tests={"B": far, "C-both": judged(True)}, enlarges={"C-both": "B"})
    assert grown.chosen == "B"


def test_a_law_with_one_more_term_stands_alone_where_the_smaller_one_is_no_candidate() -> None:
    """Its rollouts may ask for a term though it predicts nothing itself: that ended in an empty table."""
    tests, larger = {"A": judged(False), "C": judged(True)}, {"C": "A"}
    found = choose({"A": 1.2, "C": 0.01}, tests=tests, enlarges=larger)
    assert (found.chosen, found.verdict) == ("C", "law")
    found = choose({"A": 0.01, "C": 0.02}, tests=tests, enlarges=larger, stuck=("A",))
    assert (found.chosen, found.verdict) == ("C", "law")


def test_a_law_without_interval_is_not_chosen_where_a_bootstrap_was_asked_for() -> None:
    bare = {"C": tuple((CATALOGUE[name], Estimate(9.0)) for name in TERMS["C"])}
    chosen = choose({"B": 0.02, "C": 0.01}, own=bare, bootstrap=object())
    assert chosen.chosen == "B"
    assert "less, but too few replicates of its bootstrap converged" in chosen.reason
    assert choose({"B": 0.02, "C": 0.01}, own=bare).chosen == "C"  # no bootstrap: no law has an interval


def test_nothing_better_than_persistence_is_no_law() -> None:
    chosen = choose({"A": 0.999, "C": 1.1})
    assert (chosen.verdict, chosen.chosen) == ("no_law", None)
    assert "nothing beats persistence" in chosen.reason
    scatter = np.random.default_rng(1).normal(0, 0.4, FRAMES)
    noisy = choose({"A": 0.95 * NOISE + scatter - scatter.mean()})
    assert noisy.verdict == "no_law"


def test_backward_diffusion_is_not_chosen() -> None:
    chosen = choose({"C": 0.01}, laplacian=Estimate(-0.3, -0.4, -0.2))
    assert chosen.verdict == "no_law"
    assert "backward diffusion" in chosen.reason
    undecided = choose({"C": 0.01}, laplacian=Estimate(-0.01, -0.1, 0.08))
    assert undecided.verdict == "law"


MINE = Term.of("mine", ("xx", "u"), ("yy", "2*u"))
POSITIVE, NEGATIVE = Estimate(0.7, 0.6, 0.8), Estimate(-0.3, -0.4, -0.2)


def tensor(along: float, across: float, degrees: float) -> tuple[tuple[Term, Estimate], ...]:
    """Return a diffusion tensor by its two coefficients and its direction, as terms of a law."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    entries = (along * c * c + across * s * s, along * s * s + across * c * c, 2 * (along - across) * c * s)
    pairs = zip(TENSOR, entries, strict=True)
    return tuple((CATALOGUE[name], Estimate(value, value - 1e-4, value + 1e-4)) for name, value in pairs)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        (((MINE, POSITIVE),), "law"),
        (((MINE, NEGATIVE),), "no_law"),
        # a term of the fourth order decides about the shortest waves, and damps them with a negative coefficient
        (((CATALOGUE["laplacian"], NEGATIVE), (CATALOGUE["biharmonic"], NEGATIVE)), "law"),
        (((CATALOGUE["laplacian"], POSITIVE), (CATALOGUE["biharmonic"], POSITIVE)), "no_law"),
        # diffusion that falls with u stays positive up to u = 0.8, or does not
        (((CATALOGUE["laplacian"], POSITIVE), (CATALOGUE["porous"], NEGATIVE)), "law"),
        (((CATALOGUE["laplacian"], POSITIVE), (CATALOGUE["porous"], Estimate(-2.0, -2.1, -1.9))), "no_law"),
        (((CATALOGUE["grad_squared"], NEGATIVE),), "law"),
        # a tensor that spreads backward at 67.5 degrees from x, and neither along the axes nor along the diagonals
        (tensor(2.0, -0.02, 22.5), "no_law"),
        (tensor(2.0, 0.02, 22.5), "law"),
    ],
)
def test_the_sign_of_diffusion_is_that_of_the_whole_law(parts: tuple[tuple[Term, Estimate], ...], verdict: str) -> None:
    assert choose({"C": 0.01}, own={"C": parts}).verdict == verdict


def test_a_reason_found_earlier_and_an_empty_table_are_no_law() -> None:
    assert choose({"C": 0.01}, why_not="nothing moves").reason == "nothing moves"
    empty = choose({})
    assert (empty.verdict, empty.reason) == ("no_law", "no library was left to calibrate")


def test_every_criterion_has_limit_and_margin() -> None:
    chosen = choose({"A": 0.5, "C": 0.01})
    table = {candidate.library: candidate for candidate in chosen.candidates}
    assert [c.name for c in table["C"].criteria] == [
        "validation rRMSE",
        "front radius",
        "centroid",
        "forward diffusion",
    ]
    assert all(c.passed for c in table["C"].criteria)
    assert not table["A"].criteria[0].passed
    assert table["A"].criteria[0].margin < 0 <= table["C"].criteria[0].margin


def test_a_front_best_model_is_kept_beside_the_choice() -> None:
    chosen = choose({"C": 0.01}, extra={"C front-aware": score(0.012, front=0.02)})
    assert (chosen.chosen, chosen.front_best) == ("C", "C front-aware")
    failed = choose({"C": 0.01}, extra={"C front-aware": score(0.012, front=0.0, failure="blew up")})
    assert failed.front_best == "C"


def test_the_digest_names_choice_and_numbers() -> None:
    first, again = choose({"A": 0.5, "C": 0.01}), choose({"A": 0.5, "C": 0.01})
    assert first.digest == again.digest
    assert len(first.digest) == 64
    assert choose({"A": 0.5, "C": 0.011}).digest != first.digest


def test_errors_of_correlated_series_are_larger() -> None:
    rng = np.random.default_rng(2)
    white = rng.standard_normal(900)
    slow = np.repeat(rng.standard_normal(30), 30)
    assert block_error(white) == pytest.approx(1 / 30, rel=0.5)
    assert block_error(slow) > 3 * block_error(white)
    assert not exceeds(1.02 + 0.1 * slow, np.ones(900))
    assert exceeds(1.06 + 0.1 * white, np.ones(900))
    assert exceeds(np.full(5, np.inf), np.zeros(5))
    assert not exceeds(np.zeros(5), np.full(5, np.inf))


def test_errors_that_grow_from_zero_are_compared_frame_by_frame() -> None:
    """A rollout's error starts at zero and grows: the growth must not pass for scatter."""
    growing = np.linspace(0, 1, 60) ** 2
    assert exceeds(growing, 0.8 * growing)
    assert not exceeds(growing, growing)
    assert not exceeds(0.8 * growing, growing)


def test_a_single_frame_tells_large_differences_alone() -> None:
    still, start = np.array([0.3, 1.0]), np.array([0.3, 0.0])
    assert exceeds(still, np.array([0.3, 0.2]))
    assert not exceeds(still, np.array([0.3, 0.3]))
    assert not exceeds(start, start)
