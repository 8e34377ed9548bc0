"""The whole refinement by the perceptron on a short film of drifting, spreading Gaussians, u_t = −v·∇u + D Δu − k u."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from video2pde.errors import InputError, SettingsError
from video2pde.field import Field, Grid
from video2pde.flow import Flow, FlowShape
from video2pde.refinement.refine import refine
from video2pde.settings import load_settings, RefinementSettings
from video2pde.terms import get_term

D, K, DRIFT = 1.5, 0.08, np.array([0.6, -0.4])
TIMES = np.linspace(1.0, 5.0, 25)
VELOCITY = np.tile(DRIFT, (25, 1))
TERMS = (get_term("laplacian"), get_term("u"))
SMALL = RefinementSettings(
    network="perceptron",
    width=24,
    depth=3,
    pretrain_steps=250,
    joint_steps=2400,
    data_samples=256,
    residual_samples=256,
    pretrain_rate=1e-2,
    joint_rate=1e-2,
    residual_weight=0.03,
    cell_average=False,
    seeds=(1,),
)


@cache
def film(spin: float = 0.0) -> Field:
    """With ``spin`` (1/s) all turns about the picture's centre, beside the drift of the turning frame."""
    grid = Grid(40, 40, 40.0, 40.0)
    values = np.zeros((25, 40, 40))
    for height, x0, y0, variance in ((0.6, 17.0, 23.0, 30.0), (0.4, 26.0, 16.0, 18.0)):
        for k, t in enumerate(TIMES - TIMES[0]):
            spread = variance + 2 * D * t
            cos, sin, moved = np.cos(spin * t), np.sin(spin * t), DRIFT * t * (spin == 0)
            x = grid.x - 20 - moved[0] - (cos * (x0 - 20) - sin * (y0 - 20))
            y = grid.y - 20 - moved[1] - (sin * (x0 - 20) + cos * (y0 - 20))
            bump = np.exp(-0.5 * (x[None, :] ** 2 + y[:, None] ** 2) / spread)
            values[k] += height * variance / spread * np.exp(-K * t) * bump
    return Field(values, TIMES, grid)


def train(field=None, terms=TERMS, start=None, **changes):
    names = ("checkpoint", "progress", "seeds", "flow")
    options = {name: changes.pop(name) for name in names if name in changes}
    velocity = changes.pop("velocity", VELOCITY)
    settings = SMALL.model_copy(update=changes)
    return refine(film() if field is None else field, terms, velocity, start, settings, **options)


@pytest.fixture(scope="module")
def reference():
    return train()


def test_the_law_is_recovered(reference):
    assert reference.coefficients["laplacian"] == pytest.approx(D, rel=0.02)
    assert reference.coefficients["u"] == pytest.approx(-K, rel=0.05)
    assert reference.converged, reference.reason
    assert reference.residual < 0.05
    assert reference.steps == (250, SMALL.joint_steps)


def test_the_law_is_recovered_in_a_flow_that_turns():
    spin = 0.25
    shape = FlowShape("affine", (40.0, 40.0), (1.0, 5.0))
    flow = Flow(shape, np.array([[spin, 0.0, 0.0]]), np.zeros((1, 3)))
    found = train(film(spin), velocity=np.zeros((25, 2)), flow=flow)
    assert found.coefficients["laplacian"] == pytest.approx(D, rel=0.03)
    assert found.coefficients["u"] == pytest.approx(-K, rel=0.05)
    assert found.residual < 0.1


def test_histories_tell_the_whole_training(reference):
    history = reference.runs[0].history
    assert history.steps[-1] == SMALL.joint_steps
    assert np.all(np.diff(history.steps) > 0)
    assert history.coefficients.shape == (len(history.steps), 2)
    assert history.pretrain_data[-1] < 0.2 * history.pretrain_data[0]
    assert history.held_out_residual[-1] < history.held_out_residual[0]


def test_trained_coefficients_in_fixed_coordinates_end_at_the_same_place_from_a_bad_start(reference):
    trained = train(coefficients="trained", frame="fixed", start=[0.1 * D, -0.1 * K])
    for name, value in reference.coefficients.items():
        assert trained.coefficients[name] == pytest.approx(value, rel=0.03)
    assert trained.start == {"laplacian": 0.1 * D, "u": -0.1 * K}


def test_projection_forgets_a_bad_start(reference):
    assert train(start=[0.1 * D, 0.0]).coefficients == pytest.approx(reference.coefficients, rel=1e-6)


def test_a_wrong_library_leaves_a_larger_error(reference):
    wrong = train(terms=(get_term("u_squared"),))
    assert wrong.residual > 5 * reference.residual
    assert wrong.data_error > 2 * reference.data_error


def test_units_of_the_data_do_not_matter(reference):
    shifted = replace(film(), values=film().values * 30.0 - 5.0)
    terms = (get_term("laplacian"), get_term("u"), get_term("constant"))
    found = train(field=shifted, terms=terms)
    assert found.coefficients["laplacian"] == pytest.approx(reference.coefficients["laplacian"], rel=0.03)
    assert found.coefficients["constant"] == pytest.approx(-5.0 * K, rel=0.15)


class _StopAt:
    """Press Ctrl-C once, after a given joint step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, standing) -> None:
        if standing.phase == "joint" and standing.step >= self.step:
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_the_best_and_resumes_to_the_same_end(reference, tmp_path):
    file = tmp_path / "refinement.npz"
    stopped = train(checkpoint=file, progress=_StopAt(1000))
    assert stopped.interrupted
    assert not stopped.converged
    assert stopped.reason == "seed 1: interrupted at joint step 750 of 2400"
    assert stopped.coefficients["laplacian"] == pytest.approx(D, rel=0.1)
    resumed = train(checkpoint=file)
    assert resumed.coefficients == reference.coefficients
    assert np.array_equal(resumed.runs[0].history.coefficients, reference.runs[0].history.coefficients)
    again = train(checkpoint=file)
    assert again.coefficients == reference.coefficients


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    file = tmp_path / "refinement.npz"
    train(checkpoint=file, progress=_StopAt(250), seeds=(3,))
    with pytest.raises(InputError, match="other data, terms or settings"):
        train(checkpoint=file, joint_rate=1e-3, seeds=(3,))
    (tmp_path / "refinement-3.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a checkpoint"):
        train(checkpoint=file, seeds=(3,))


def test_the_papers_settings_are_as_printed_and_warn():
    paper = load_settings("paper").refinement
    assert (paper.width, paper.depth, paper.pretrain_steps, paper.joint_steps) == (128, 6, 5000, 12000)
    assert (paper.data_samples, paper.residual_samples, paper.residual_weight) == (8192, 4096, 1e-3)
    assert (paper.pretrain_rate, paper.joint_rate, paper.final_rate) == (8e-4, 2e-4, 2e-4)
    assert (paper.optimizer, paper.seeds, paper.coefficients) == ("adam", (2026,), "trained")
    assert paper.network == "perceptron"
    short = paper.model_copy(
        update={
            "width": 8,
            "depth": 2,
            "pretrain_steps": 50,
            "joint_steps": 100,
            "data_samples": 64,
            "residual_samples": 32,
        }
    )
    result = refine(film(), TERMS, VELOCITY, [0.1, 0.0], short)
    assert "step-limited" in result.warnings[0]
    assert "0.02 at most" in result.warnings[0]
    assert not result.converged
    assert abs(result.coefficients["laplacian"] - 0.1) < 0.021


def test_unusable_input_is_refused():
    with pytest.raises(InputError, match=r"within \[0, 1\]"):
        train(field=replace(film(), values=film().values * 2.0), output="unit")
    with pytest.raises(InputError, match="coefficient 1"):
        train(terms=(get_term("drift_x"),))
    with pytest.raises(InputError, match="1 starting coefficients for 2 terms"):
        train(start=[1.0])
    with pytest.raises(InputError, match="velocity needs shape"):
        refine(film(), TERMS, VELOCITY[:-1], None, SMALL)
    with pytest.raises(InputError, match="JAX finds no gpu"):
        refine(film(), TERMS, VELOCITY, None, SMALL, device="gpu")
    with pytest.raises(SettingsError, match="residual_weight"):
        load_settings(overrides=["refinement.residual_weight=0"])
