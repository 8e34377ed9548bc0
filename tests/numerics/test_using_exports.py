"""Exported scripts, run as they are, against our simulator: all known laws and the porous medium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from using_laws import LAWS, make_flow, make_model, skewed_plume, SMALL

from video2pde.field import Windows
from video2pde.settings import RolloutSettings
from video2pde.terms.stencil import central_weights
from video2pde.using import export_model, SavedModel
from video2pde.using.scripts import drift_table

END = 2.0

PYPDE_DRIVER = """
import json, runpy, sys
import numpy as np
found = {}
for path in sys.argv[1:-1]:
    script = runpy.run_path(path)
    times, values = script["simulate"](np.load(sys.argv[-1]), 0.0, 2.0, 2, backend="numpy")
    found[path] = {"times": times.tolist(), "values": values.tolist()}
json.dump(found, sys.stdout)
"""


def run_numpy_script(model: SavedModel, u0: np.ndarray, folder: Path, *more: str) -> np.ndarray:
    script, start, out = folder / "law.py", folder / "u0.npy", folder / "u.npy"
    script.write_text(export_model(model, "python"), encoding="utf-8")
    np.save(start, u0)
    command = [sys.executable, "-W", "error", str(script), "--start", str(start), "--out", str(out), *more]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return np.load(out)


def second_order_rollout(model: SavedModel, u0: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Run the exported script with differences of second order in place of its own."""
    script: dict[str, Any] = {"__name__": "law"}
    exec(compile(export_model(model, "python"), "law.py", "exec"), script)
    script["WEIGHTS"].update({n: central_weights(n, 2) for n in script["WEIGHTS"]})
    return np.asarray(script["simulate"](u0, times))


@pytest.mark.parametrize("name", LAWS)
def test_the_numpy_script_repeats_our_rollout(name: str, tmp_path: Path) -> None:
    model, u0 = make_model(LAWS[name]), skewed_plume()
    theirs = run_numpy_script(model, u0, tmp_path, "--duration", f"{END}", "--frames", "10")
    ours = model.simulate(u0, np.linspace(0, END, 11)).values
    moved = np.abs(ours[-1] - u0).max()
    assert moved > 0.02
    np.testing.assert_allclose(theirs, ours, atol=1e-3 * moved)


@pytest.mark.parametrize("kind", ["affine", "changing", "diverging", "stream", "pulsing"])
def test_the_numpy_script_carries_the_flow(kind: str, tmp_path: Path) -> None:
    model, u0 = make_model(LAWS["C"], flow=make_flow(kind)), skewed_plume()
    theirs = run_numpy_script(model, u0, tmp_path, "--duration", f"{END}", "--frames", "40")
    ours = model.simulate(u0, np.linspace(0, END, 41)).values
    calm = make_model(LAWS["C"]).simulate(u0, np.linspace(0, END, 41)).values
    carried = np.abs(ours[-1] - calm[-1]).max()
    assert carried > 0.02
    np.testing.assert_allclose(theirs, ours, atol=2e-3 * carried)
    assert SavedModel.parse(model.to_json()) == model


def test_the_numpy_script_keeps_a_periodic_boundary_and_goes_past_the_film(tmp_path: Path) -> None:
    settings = RolloutSettings(boundary="periodic", clip="off")
    model = make_model(LAWS["C"], rollout=settings)
    u0 = np.roll(skewed_plume(), 9, axis=1) - 0.3  # over the edge, and below 0
    theirs = run_numpy_script(model, u0, tmp_path, "--time", "2.5", "--duration", "2", "--frames", "80")
    ours = model.simulate(u0, 2.5 + np.linspace(0, 2, 81)).values
    # the drift jumps at the film's end, by what a linear interpolation over one frame smears
    np.testing.assert_allclose(theirs, ours, atol=1e-3)
    mirrored = (
        make_model(LAWS["C"], rollout=RolloutSettings(clip="off")).simulate(u0, 2.5 + np.linspace(0, 2, 81)).values
    )
    assert np.abs(mirrored - ours).max() > 0.02


def test_a_script_with_another_coefficient_is_noticed(tmp_path: Path) -> None:
    model, u0 = make_model(LAWS["C"]), skewed_plume()
    wrong = make_model({**LAWS["C"], "laplacian": 0.666 * 1.05})
    theirs = run_numpy_script(wrong, u0, tmp_path, "--duration", f"{END}", "--frames", "10")
    ours = model.simulate(u0, np.linspace(0, END, 11)).values
    assert np.abs(theirs - ours).max() > 2e-3 * np.abs(ours[-1] - u0).max()


@pytest.mark.skipif(find_spec("pde") is None, reason="py-pde is not installed")
def test_the_pypde_scripts_agree_within_the_discretisation_error(tmp_path: Path) -> None:
    u0 = skewed_plume()
    np.save(tmp_path / "u0.npy", u0)
    paths = {}
    flows = {"C, changing flow": make_flow("changing"), "A, diverging flow": make_flow("diverging")}
    models = {name: make_model(law) for name, law in LAWS.items()}
    models |= {name: make_model(LAWS[name[0]], flow=flow) for name, flow in flows.items()}
    for name, model in models.items():
        paths[name] = tmp_path / f"{name}.py"
        paths[name].write_text(export_model(model, "pypde"), encoding="utf-8")
    command = [sys.executable, "-c", PYPDE_DRIVER, *map(str, paths.values()), str(tmp_path / "u0.npy")]
    # compiling py-pde's operators takes a minute, running them uncompiled on this grid a second
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    times = np.linspace(0, END, 21)
    for name, model in models.items():
        theirs = np.array(found[str(paths[name])]["values"])
        np.testing.assert_allclose(found[str(paths[name])]["times"], [0, 1, 2], atol=1e-9)
        ours = model.simulate(u0, times).values[::10]
        second = second_order_rollout(model, u0, times)[::10]
        discretisation = np.abs(second - ours).max()
        # py-pde's operators are of second order: it is our second-order rollout, and so far from the fourth-order one
        close = 1e-5 if name in LAWS else 1e-4
        assert np.abs(theirs - second).max() < 0.02 * discretisation + close, name
        assert np.abs(theirs - ours).max() < 1.1 * discretisation + 1e-5, name
        assert discretisation < 0.1 * np.abs(ours[-1] - u0).max(), name


def test_the_drift_table_of_a_script_is_as_short_as_the_drift_allows() -> None:
    times = np.linspace(0, 30, 301)
    windows = Windows.split(len(times))
    for velocity, most in ((0.3 + 0 * times, 2), (0.3 + 0.1 * np.sin(times / 9), 33)):
        pairs = np.stack([velocity, -velocity], axis=1)
        rows = np.array(drift_table(SavedModel.of(["laplacian"], {"laplacian": 1.0}, SMALL, windows, times, pairs)))
        assert len(rows) <= most
        np.testing.assert_allclose(np.interp(times, rows[:, 0], rows[:, 1]), velocity, atol=1e-3 * 0.4)
    rough = np.random.default_rng(0).normal(size=(301, 2))
    assert len(drift_table(SavedModel.of(["u"], {"u": 1.0}, SMALL, windows, times, rough))) == 301


def test_a_stream_function_of_an_earlier_file_is_cubic() -> None:
    flow = make_flow("stream")
    model = make_model(LAWS["C"], flow=replace(flow, shape=replace(flow.shape, degree=3)))
    saved = json.loads(model.to_json())
    del saved["flow"]["degree"]
    assert SavedModel.parse(json.dumps(saved)) == model
    assert SavedModel.parse(model.to_json()) != make_model(LAWS["C"], flow=flow)
