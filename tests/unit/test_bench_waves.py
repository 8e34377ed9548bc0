"""Two fields of the PDE-FIND examples: λ–ω waves, whose true terms show only far below what films leave."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.support import lambda_omega
from benchmarks.support.scores import largest_error, same_structure

from video2pde.pair.discover import discover, PairDiscovery
from video2pde.pair.fields import Pair
from video2pde.recording.synth import noisy
from video2pde.settings import load_settings

SETTINGS = load_settings(overrides={"identifiability.stability_runs": 5})


@pytest.fixture(scope="module")
def waves() -> Pair:
    return lambda_omega.solve()


def worst(found: PairDiscovery) -> float:
    laws = [search.candidates[0].coefficients for search in found.searches]
    assert all(same_structure(law, truth) for law, truth in zip(laws, lambda_omega.LAW, strict=True))
    return max(largest_error(law, truth) for law, truth in zip(laws, lambda_omega.LAW, strict=True))


def test_exact_waves_give_the_law_to_many_digits(waves: Pair) -> None:
    assert worst(discover(waves, len(waves), SETTINGS)) < 2e-5


def test_noise_of_half_a_per_cent_hides_no_term(waves: Pair) -> None:
    size = float(np.sqrt(np.mean(np.square(waves.u.values, dtype=np.float64))))
    rough = Pair(*(noisy(part, 0.005 * size, n) for n, part in enumerate(waves.fields)))
    assert worst(discover(rough, len(rough), SETTINGS)) < 0.02
