"""The refinement's figures draw what the result holds."""

import numpy as np
import pytest

from video2pde.refinement.result import History, Refinement, SeedRun, summarise
from video2pde.report.refinement_figures import figure_coefficients, figure_comparison, figure_losses
from video2pde.rollout.metrics import Metrics

STEPS = np.arange(10.0, 1001.0, 10.0)


@pytest.fixture
def refinement() -> Refinement:
    runs = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        fall = np.exp(-STEPS / 200)
        coefficients = np.column_stack([9.0 - 5 * fall, 0.67 - 0.3 * fall]) + rng.normal(0, 0.002, (100, 2))
        history = History(
            STEPS[:30],
            0.5 * np.exp(-STEPS[:30] / 80),
            STEPS,
            0.01 + 0.02 * fall,
            0.02 + 0.2 * fall,
            coefficients,
            STEPS[24::25],
            np.full(4, 0.011),
            np.full(4, 0.03),
        )
        runs.append(SeedRun(seed, coefficients[-1], history, 0.011, 0.03, True, "settled", (300, 1000), 1.0))
    return summarise(("grad_squared", "laplacian"), tuple(runs), (4.0, 0.4), "cpu", ())


def test_coefficient_history(refinement, tmp_path):
    figure = figure_coefficients(refinement)
    first = figure.axes[0]
    assert len(figure.axes) == 2
    assert np.array_equal(first.lines[0].get_ydata(), refinement.runs[0].history.coefficients[:, 0])
    assert "weak fit 4" in first.get_legend().get_texts()[1].get_text()
    figure.savefig(tmp_path / "coefficients.png")


def test_loss_history(refinement, tmp_path):
    figure = figure_losses(refinement)
    assert figure.axes[0].get_yscale() == "log"
    assert figure.axes[0].lines[1].get_xdata()[-1] == 1300.0
    figure.savefig(tmp_path / "losses.png")


def test_comparison(tmp_path):
    times = np.linspace(20.0, 27.0, 8)
    ramp = (times - 20.0)[:, None] * np.ones(3)
    weak = Metrics(
        0.1, 1e-3 * ramp[:, 0], 0.02 * ramp[:, 0], 0.1 * ramp[:, 0], (0.1, 0.2, 0.3), 5 + ramp, 5 + 0.7 * ramp
    )
    refined = Metrics(
        0.05, 4e-4 * ramp[:, 0], 0.01 * ramp[:, 0], 0.1 * ramp[:, 0], (0.1, 0.2, 0.3), 5 + ramp, 5 + 0.9 * ramp
    )
    figure = figure_comparison(times, {"C, weak fit": weak, "C, refined": refined}, "image units")
    assert len(figure.axes) == 4
    assert np.array_equal(figure.axes[1].lines[1].get_ydata(), 100 * refined.rrmse_over_time)
    figure.savefig(tmp_path / "comparison.png")
