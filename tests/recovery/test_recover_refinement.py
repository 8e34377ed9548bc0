"""Recoveries from exact-law fields of full size (200 × 200 × 605): minutes, run by ``make recovery``.

The times hold on two free cores; on a busy machine the accuracy is asserted all the same.
"""

from functools import cache

import numpy as np
import pytest

from video2pde.field import Field, Grid
from video2pde.recording.synth import exact_field, find_preset, noisy
from video2pde.refinement.refine import refine
from video2pde.refinement.result import Refinement
from video2pde.settings import RefinementSettings
from video2pde.terms import get_term, LIBRARIES

pytestmark = pytest.mark.recovery

TIMES = np.linspace(0.0, 20.4, 605)
PERCEPTRON = {"network": "perceptron"}
LONG = {**PERCEPTRON, "joint_steps": 25000}


@cache
def training_window(name: str) -> Field:
    return exact_field(find_preset(name), Grid(200, 200, 200.0, 200.0), TIMES)


def run(name: str, library: str, field: Field | None = None, start: float = 1.0, **changes) -> Refinement:
    case = find_preset(name)
    velocity = np.stack(case.drift.velocity(TIMES), axis=1)
    terms = [get_term(term) for term in LIBRARIES[library]]
    begin = [start * case.law.coefficients.get(term.name, 1.0) for term in terms]
    settings = RefinementSettings(**changes)
    return refine(training_window(name) if field is None else field, terms, velocity, begin, settings)


def largest_error(found: Refinement, name: str) -> float:
    truth = find_preset(name).law.coefficients
    return max(abs(value / truth[term] - 1.0) for term, value in found.coefficients.items())


@pytest.mark.parametrize("name", ["C", "C-alt", "A"])
def test_clean_films_within_one_per_cent(name):
    found = run(name, name, **PERCEPTRON)
    assert found.converged, found.reason
    assert largest_error(found, name) < 0.01


@pytest.mark.parametrize("name", ["C", "C-alt", "A"])
def test_the_radial_network_within_a_quarter_of_a_per_cent(name):
    found = run(name, name)
    assert found.converged, found.reason
    assert largest_error(found, name) < 0.0025


@pytest.mark.parametrize("name", ["C", "C-alt", "A"])
def test_longer_training_within_half_a_per_cent(name):
    assert largest_error(run(name, name, **LONG), name) < 0.005


@pytest.mark.parametrize(("network", "limit"), [("perceptron", 0.015), ("radial", 0.005)])
def test_one_per_cent_noise(network, limit):
    found = run("C", "C", noisy(training_window("C"), 0.01, seed=5), network=network)
    assert largest_error(found, "C") < limit


@pytest.mark.parametrize("coefficients", ["projection", "trained"])
def test_a_start_ten_times_too_small_ends_at_the_same_place(coefficients):
    found = run("C", "C", start=0.1, coefficients=coefficients, **PERCEPTRON)
    assert largest_error(found, "C") < 0.01


@pytest.mark.parametrize("network", ["perceptron", "radial"])
def test_a_wrong_library_shows_a_larger_residual(network):
    right, wrong = run("C", "C", network=network), run("C", "C-alt", network=network)
    assert wrong.residual > 2 * right.residual
    assert wrong.data_error > 3 * right.data_error
