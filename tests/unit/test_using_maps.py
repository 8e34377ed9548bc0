"""A law whose coefficients vary, in use: model file, scripts, apply, words, tables and figures."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from video2pde.calibration import Calibration
from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid, Windows
from video2pde.maps import CoefficientMap, MapShape
from video2pde.maps.words import describe_map, summarise_map
from video2pde.report.map_figures import draw_maps
from video2pde.report.map_tables import list_maps
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings
from video2pde.terms import CATALOGUE
from video2pde.using import export_model, SavedModel

GRID = Grid(24, 28, 20.0, 24.0)
TIMES = np.linspace(0.0, 2.0, 5)


def make_map(term: str, over: Literal["space", "time"]) -> CoefficientMap:
    breaks = ((0.0, 6.0, 14.0, 20.0), (0.0, 9.0, 24.0)) if over == "space" else ((0.0, 1.0, 2.0),)
    shape = MapShape(term, over, breaks)
    drawn = np.random.default_rng(1).uniform(-0.4, 0.4, shape.count)
    signal = np.ones(shape.count)
    if over == "space":
        signal.reshape(shape.splines)[-4:] = 0.0
    spread = np.diag(np.full(shape.count + 1, 1e-4))
    return CoefficientMap(shape, drawn, spread, signal, np.zeros((0, shape.count)), chance=1e-5, gain=0.5, freedom=12)


MAPS = (make_map("laplacian", "space"), make_map("u", "time"))


def model(**more: Any) -> SavedModel:
    return SavedModel.of(
        ["laplacian", "u", "grad_squared"],
        {"laplacian": 0.8, "u": -0.3, "grad_squared": 0.5},
        GRID,
        Windows(5, 3, 4),
        TIMES,
        np.tile([0.3, -0.2], (5, 1)),
        maps=MAPS,
        **more,
    )


def plume() -> Any:
    return 0.2 + 0.5 * np.exp(-((GRID.x[None] - 10) ** 2) / 8 - (GRID.y[:, None] - 9) ** 2 / 6)


def test_the_model_file_holds_maps() -> None:
    saved = model()
    again = SavedModel.parse(saved.to_json())
    assert again == saved
    for before, after in zip(MAPS, again.law.maps, strict=True):
        assert after.shape == before.shape
        assert after.departures == pytest.approx(before.departures)
    assert "maps" not in SavedModel.of(["u"], {"u": 1.0}, GRID, Windows(5, 3, 4), TIMES, np.zeros((5, 2))).to_json()
    with pytest.raises(InputError, match="not a valid model"):
        SavedModel.parse(saved.to_json().replace('"term": "laplacian"', '"term": "porous"'))


def test_the_script_runs_the_map_as_the_rollout_does() -> None:
    saved = model()
    space: dict[str, Any] = {"__name__": "law"}
    exec(compile(export_model(saved, "python"), "law.py", "exec"), space)
    found = space["simulate"](plume(), TIMES)
    own = saved.simulate(plume(), TIMES).values
    assert np.abs(found - own).max() < 2e-5
    # without the map it would be another film
    plain = simulate(saved.law.constant(), plume(), TIMES, GRID, saved.velocity_at(TIMES), saved.settings)
    assert np.abs(own - plain.values).max() > 5e-3


def test_every_form_can_be_written() -> None:
    saved = model()
    for form in ("sympy", "pypde"):
        compile(export_model(saved, form), form, "exec")  # type: ignore[arg-type]
    latex = export_model(saved, "latex")
    assert r"\nabla\cdot\left(m(x,y)\,\nabla u\right)" in latex
    assert "varies from place to place" in latex
    with pytest.raises(InputError, match="open edges"):
        export_model(model(rollout=RolloutSettings(boundary="open")), "python")


def test_sympy_has_the_map_inside_the_derivatives() -> None:
    space: dict[str, Any] = {"__name__": "law"}
    exec(compile(export_model(model(), "sympy"), "law.py", "exec"), space)
    import sympy

    x, u, m = space["x"], space["u"], space["m_laplacian"]
    difference = space["right"].doit() - space["c_laplacian"] * sum(
        sympy.Derivative(m * sympy.Derivative(u, s), s) for s in (x, space["y"])
    )
    assert not sympy.expand(difference.doit()).has(space["c_laplacian"])


def test_words_and_tables_say_what_is_known() -> None:
    nothing: Any = None
    terms = tuple(CATALOGUE[name] for name in ("laplacian", "u"))
    estimates = {"laplacian": Estimate(0.8, 0.78, 0.82), "u": Estimate(-0.3, -0.31, -0.29)}
    law = Calibration("B", terms, estimates, {}, nothing, (), True, None, maps=MAPS)
    entry = summarise_map(MAPS[0], estimates["laplacian"], "mm²/s", GRID)
    assert entry["varies"]
    assert entry["low"] < 0.8 < entry["high"]
    assert 0.2 < entry["told"] < 0.95
    course = summarise_map(MAPS[1], estimates["u"], "1/s", GRID)["course"]
    assert len(course["times"]) == len(course["value"]) == len(course["low"])
    assert "varies with time" in describe_map(MAPS[1], -0.3, GRID)
    field = Field(np.tile(plume(), (5, 1, 1)).astype(np.float32), TIMES, GRID)
    in_space, in_time = list_maps(law, field)
    assert len(in_space.rows) == GRID.ny * GRID.nx
    assert len(in_time.rows) == len(TIMES)
    assert not all(in_space.column("told"))
    assert len(draw_maps(law, field).axes) >= 4
