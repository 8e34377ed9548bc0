"""The law in the browser: the same numbers as the compiled rollouts, fast enough to watch, and a page to play with."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from watching import error_at, wait_until

from video2pde.field import Field, Grid, Windows
from video2pde.flow import Flow, FlowShape
from video2pde.report.content.play import make_play
from video2pde.report.document import Head, Section
from video2pde.report.document import Page as Document
from video2pde.report.films import make_player
from video2pde.report.page import write_page
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings
from video2pde.terms import CATALOGUE, Term
from video2pde.terms.stencil import apply_term, difference, radius
from video2pde.using.javascript import law_key, write_script
from video2pde.using.modelfile import SavedModel

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OWN = Term.of("own", ("xx", "exp(u)*tanh(2*u)"), ("", "sqrt(1 + u_x**2)/(1 + u**2)"), ("y", "u**3/4"))
INTRINSIC = [term for term in CATALOGUE.values() if not term.is_drift]
TOLERANCE = 1e-10
RUN = """([key, u0, times, velocity, c, ny, nx, dx, dy, periodic, clip, safety]) => {
  const scheme = { ny, nx, dx, dy, periodic, clip, safety, maxSubsteps: 2000 };
  const rollout = new video2pdeReport.Rollout(video2pdeLaws[key], scheme);
  rollout.start(u0);
  const steps = [];
  for (let k = 0; k + 1 < times.length; k += 1) {
    rollout.advance(times[k + 1] - times[k], c, velocity[k], velocity[k + 1]);
    steps.push(rollout.substeps);
  }
  const values = new Float64Array(ny * nx);
  rollout.read(values);
  return [Array.from(values), steps, rollout.failure];
}"""


@pytest.fixture(scope="module")
def lab(browser: Browser) -> Iterator[Page]:
    """Open an empty page with the report's script and every term as a law."""
    page = browser.new_page()
    page.goto("about:blank")
    laws = [((term,), False) for term in (*INTRINSIC, OWN)]
    laws += [((CATALOGUE["grad_squared"], CATALOGUE["laplacian"], CATALOGUE["u"]), False)]
    laws += [((CATALOGUE["laplacian"],), True)]
    page.add_script_tag(content=write_script(laws))
    script = resources.files("video2pde.report").joinpath("static", "report.js").read_text(encoding="utf-8")
    page.add_script_tag(content=script)
    yield page
    page.close()


def start(grid: Grid) -> np.ndarray:
    """Make an asymmetric first frame."""
    x, y = grid.x[None, :] / grid.width, grid.y[:, None] / grid.height
    return 0.3 + 0.25 * np.exp(-30 * (x - 0.4) ** 2 - 18 * (y - 0.55) ** 2) + 0.06 * np.sin(5 * x + 3 * y)


def compare(lab: Page, model: Model, grid: Grid, settings: RolloutSettings, coefficients: tuple[float, ...]) -> float:
    """Roll a law out here and in the browser; return the largest difference."""
    times = np.linspace(0.0, 1.2, 7)
    velocity = np.stack([0.4 + 0.2 * times, -0.3 * np.cos(times)], axis=1)
    here = simulate(model, start(grid), times, grid, velocity, settings)
    assert not here.failed, here.reason
    clip = [0.0, 1.0] if settings.clip == "on" else None
    order = [
        law_key(model.terms),
        start(grid).ravel().tolist(),
        times.tolist(),
        velocity.tolist(),
        list(coefficients),
        grid.ny,
        grid.nx,
        grid.dx,
        grid.dy,
        settings.boundary == "periodic",
        clip,
        settings.safety,
    ]
    values, steps, failure = lab.evaluate(RUN, order)
    assert failure == ""
    assert steps == here.substeps.tolist()
    return float(np.abs(np.reshape(values, grid.shape) - here.values[-1]).max())


STAGE = """([key, padded, ny, nx, c, v, g, h, wind]) => {
  const law = video2pdeLaws[key];
  const w = Float64Array.from(padded), out = new Float64Array(w.length);
  law.stage(w, w, out, ny, nx, c, v[0], v[1], Float64Array.from(wind), g[0], g[1], h, 0, -1e9, 1e9);
  const s = nx + 2 * law.radius, values = [];
  for (let j = law.radius; j < ny + law.radius; j += 1) {
    for (let i = law.radius; i < nx + law.radius; i += 1) values.push(out[j * s + i]);
  }
  return values;
}"""


@pytest.mark.parametrize("term", [*INTRINSIC, OWN], ids=lambda term: term.name)
def test_every_term_is_differenced_as_its_definition_says(lab: Page, term: Term) -> None:
    """One step of every term against ``terms.stencil``, the reference of all implementations."""
    grid, (vx, vy), c, h = Grid(21, 26, 30.0, 40.0), (0.7, -0.4), 1.3, 0.01
    u = start(grid)
    drift = [apply_term(CATALOGUE[name], u, grid.dx, grid.dy, (vx, vy)) for name in ("drift_x", "drift_y")]
    expected = u + h * (c * apply_term(term, u, grid.dx, grid.dy) + sum(drift))
    reach = max(2, radius(term))
    padded = np.pad(u, reach, mode="symmetric").ravel().tolist()
    order = [law_key((term,)), padded, grid.ny, grid.nx, [c], [vx, vy], [1 / grid.dx, 1 / grid.dy], h, []]
    values = np.reshape(lab.evaluate(STAGE, order), grid.shape)
    assert np.abs(values - expected).max() < TOLERANCE
    wrong = u + h * (1.1 * c * apply_term(term, u, grid.dx, grid.dy) + sum(drift))
    assert np.abs(values - wrong).max() > 100 * TOLERANCE


def test_a_flow_carries_as_its_definition_says(lab: Page) -> None:
    grid, c, h = Grid(21, 26, 30.0, 40.0), 0.7, 0.01
    u, law = start(grid), (CATALOGUE["laplacian"],)
    fields = 0.5 * np.random.default_rng(2).standard_normal((2, *grid.shape))
    padded = np.pad(u, 2, mode="symmetric")
    u_x, u_y = (difference(padded, 2, order, grid.dx, grid.dy) for order in ((1, 0), (0, 1)))
    carried = fields[0] * u_x + fields[1] * u_y
    expected = u + h * (c * apply_term(law[0], u, grid.dx, grid.dy) - carried)
    scales = [1 / grid.dx, 1 / grid.dy]
    order = [law_key(law, True), padded.ravel().tolist(), grid.ny, grid.nx, [c], [0.0, 0.0], scales, h]
    values = np.reshape(lab.evaluate(STAGE, [*order, fields.ravel().tolist()]), grid.shape)
    assert np.abs(values - expected).max() < TOLERANCE
    still = np.reshape(lab.evaluate(STAGE, [*order, (0 * fields).ravel().tolist()]), grid.shape)
    assert np.abs(still - expected).max() > 1e-5


@pytest.mark.parametrize(("boundary", "clip"), [("replicate", "on"), ("periodic", "off")])
def test_edges_and_clipping_agree_and_a_wrong_coefficient_is_seen(lab: Page, boundary: str, clip: str) -> None:
    grid = Grid(40, 33, 40.0, 30.0)
    settings = RolloutSettings(boundary=boundary, clip=clip)  # type: ignore[arg-type]
    model = Model.of({"grad_squared": 3.0, "laplacian": 0.4, "u": -0.2})
    assert compare(lab, model, grid, settings, model.coefficients) < TOLERANCE
    broken = (3.0, 0.401, -0.2)
    assert compare(lab, model, grid, settings, broken) > 1e-5


def test_200_by_200_run_at_30_frames_a_second(lab: Page) -> None:
    """The quickest of many frames counts, for the machine may be busy with other things."""
    grid = Grid(200, 200, 200.0, 200.0)
    terms = (CATALOGUE["grad_squared"], CATALOGUE["laplacian"], CATALOGUE["u"])
    seconds = lab.evaluate(
        """([key, u0]) => {
          const scheme = { ny: 200, nx: 200, dx: 1, dy: 1, periodic: false, clip: [0, 1], safety: 0.25,
                           maxSubsteps: 2000 };
          const rollout = new video2pdeReport.Rollout(video2pdeLaws[key], scheme);
          rollout.start(u0);
          return Array.from({ length: 60 }, () => {
            const begun = performance.now();
            rollout.advance(0.11, [9.0, 0.67, 0], [0.3, -0.1], [0.3, -0.1]);
            return (performance.now() - begun) / 1000;
          });
        }""",
        [law_key(terms), start(grid).ravel().tolist()],
    )
    assert min(seconds) < 1 / 60, f"a frame takes {min(seconds):.4f} s: no time is left to draw it"


def test_a_law_with_a_flow_follows_its_film_from_a_file(browser: Browser, tmp_path: Path) -> None:
    """The whole way from a model with a flow to the page: with the flow the film is met, without it, it is not."""
    grid, times = Grid(48, 60, 48.0, 60.0), np.linspace(0.0, 6.0, 31)
    shape = FlowShape("stream", (48.0, 60.0), (0.0, 6.0), splines=(5, 6), in_time=2, divergence=True)
    speeds = 2.5 * np.random.default_rng(4).standard_normal((2, len(shape.names)))
    speeds[:, -1] = 0.03
    flow, drift = Flow(shape, speeds, np.zeros_like(speeds)), np.tile([0.3, -0.2], (31, 1))
    model = SavedModel.of(["laplacian"], {"laplacian": 0.4}, grid, Windows.split(31), times, drift, flow=flow)
    rollout = model.simulate(start(grid), times)
    assert not rollout.failed
    field = Field(np.asarray(rollout.values, np.float32), times, grid)
    section = Section("play", "Play", "It plays.", (make_play(model, make_player(field)),))
    file = write_page(Document("A flow", Head("none", "info", ""), (section,)), tmp_path / "flow.html")
    page = browser.new_page()
    page.goto(file.as_uri())
    box = page.locator(".play-box[data-ready=true]")
    box.wait_for()

    level = (field.values.max() - field.values.min()) / 255
    assert error_at(box, 30) < 1.5 * level
    box.get_by_label("flow").uncheck()
    assert error_at(box, 30) > 10 * level
    # it runs by itself, beyond the end of the film, until it is told to pause
    box.get_by_role("button", name="Start again").click()
    box.get_by_role("button", name="Run", exact=True).click()
    wait_until(lambda: int(box.get_attribute("data-frame") or 0) >= 35)
    box.get_by_role("button", name="Pause").click()
    stopped = box.get_attribute("data-frame")
    page.wait_for_timeout(200)
    assert box.get_attribute("data-frame") == stopped
    page.close()
