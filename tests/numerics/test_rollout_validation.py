"""Validation of known laws on their exact fields, the baselines, and the figures that show them."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from video2pde.field import Field, Grid
from video2pde.recording.synth import exact_field, PRESETS
from video2pde.report.rollout_figures import figure_errors, figure_errors_over_time, figure_fronts, figure_snapshots
from video2pde.rollout.model import Model
from video2pde.rollout.validate import validate, Validation

GRID = Grid(100, 100, 200.0, 200.0)
TIMES = np.linspace(20.4, 27.2, 13)


@pytest.mark.parametrize("name", ["C", "C-alt", "Fisher", "A"])
def test_the_true_law_predicts_its_exact_field(name: str) -> None:
    case = PRESETS[name]
    # as a camera sees it: averages over the pixels of the paper's grid
    field = exact_field(case, Grid(200, 200, 200.0, 200.0), TIMES)
    velocity = np.stack(case.drift.velocity(TIMES), 1)
    truth = Model.of(case.law.coefficients)
    wrong = Model.of({key: 1.1 * value for key, value in case.law.coefficients.items()})
    result = validate(field, {"truth": truth, "wrong": wrong}, velocity, background=case.background)
    row = next(row for row in result.rows if row.library == "truth")
    assert row.measured.full.rrmse < 0.005
    assert row.measured.full.centroid_rmse < 0.1
    assert row.measured.one_step.rrmse < 0.0005
    assert row.measured.skill > 0.99
    other = next(row for row in result.rows if row.library == "wrong")
    assert other.measured.full.rrmse > 3 * row.measured.full.rrmse


@pytest.fixture(scope="module")
def validation() -> Validation:
    case = PRESETS["C"]
    field = exact_field(case, GRID, TIMES)
    velocity = np.stack(case.drift.velocity(TIMES), 1)
    models = {
        "A": Model.of({"grad_squared": 0.0, "laplacian": 1.2}, (0.2, 0.1)),
        "C": Model.of(case.law.coefficients, (1.02, 0.98)),
        "back": Model.of({"grad_squared": 0.0, "laplacian": -20.0}),
        "worse": Model.of({"grad_squared": 0.0, "laplacian": 9.0}),
    }
    return validate(field, models, velocity, background=case.background, diffusion=1.2)


def test_baselines_form_a_ladder(validation: Validation) -> None:
    assert [score.name for score in validation.baselines] == ["persistence", "drift", "drift + diffusion"]
    assert validation.persistence.skill == 0.0
    assert validation.persistence.full.rrmse > validation.baselines[1].full.rrmse > 0
    assert validation.persistence.one_step.rrmse < validation.persistence.full.rrmse


def test_rows_are_ordered_and_prefer_a_mode(validation: Validation) -> None:
    errors = [row.measured.full.rrmse for row in validation.rows]
    assert errors == sorted(errors)
    assert validation.rows[0].library == "C"
    assert validation.rows[0].preferred == "measured"
    assert validation.best is validation.rows[0]
    assert len(validation.scores) == 3 + 2 * 4


def test_a_model_that_does_not_beat_persistence_is_said_not_to(validation: Validation) -> None:
    rows = {row.library: row for row in validation.rows}
    assert rows["C"].measured.verdict.startswith("beats persistence")
    assert not rows["worse"].measured.beats_persistence
    assert rows["worse"].measured.verdict.startswith("does not beat persistence")


def test_a_failed_model_scores_last(validation: Validation) -> None:
    last = validation.rows[-1]
    assert last.library == "back"
    assert last.measured.full.rrmse == np.inf
    assert last.measured.skill == -np.inf
    assert last.measured.verdict.startswith("failed: ")
    assert not last.measured.beats_persistence


def test_the_mask_restricts_the_validation() -> None:
    rng = np.random.default_rng(0)
    values = np.full((4, *GRID.shape), 0.3)
    mask = np.zeros(GRID.shape, bool)
    mask[:, :50] = True
    values[1:, :, 60:] += 0.1 * rng.random((3, 100, 40))
    field = Field(values, np.arange(4.0), GRID, mask)
    result = validate(field, {"A": Model.of({"laplacian": 1.0})}, np.zeros((4, 2)))
    assert result.persistence.full.rrmse == 0.0
    assert result.rows[0].measured.full.rrmse < 1e-7


@pytest.mark.parametrize("draw", [figure_errors, figure_errors_over_time, figure_snapshots, figure_fronts])
def test_figures_can_be_drawn(validation: Validation, draw, tmp_path) -> None:
    figure = draw(validation)
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / "figure.png", dpi=60)
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_blocks_show_what_a_pattern_that_stands_still_hides() -> None:
    """A recovery divided by a noisy reference: nothing but noise and the reference's pattern is left of pixels."""
    random = np.random.default_rng(3)
    grid = Grid(48, 48, 48.0, 48.0)
    times = 20.0 + np.arange(6.0)
    distance = (grid.x[None] - 24) ** 2 + (grid.y[:, None] - 24) ** 2
    spread = [9.0 + 4 * t for t in times]
    clean = np.stack([1 - 10.0 * np.exp(-distance / s) / s for s in spread])
    pattern = random.normal(0, 0.008, grid.shape)
    field = Field(clean + pattern + random.normal(0, 0.002, clean.shape), times, grid)
    laws = {"right": Model.of({"laplacian": 1.0}), "backwards": Model.of({"constant": -0.01})}
    scored = {row.library: row.measured for row in validate(field, laws, np.zeros((6, 2))).rows}
    right, wrong = scored["right"], scored["backwards"]
    assert right.skill < 0
    assert right.coarse_skill > 0.5
    assert wrong.coarse_skill < 0
