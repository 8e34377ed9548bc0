"""What flows cost: rollouts in a velocity field beside those in a uniform drift, and the weak stage with 81 modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.discovery import clock, make_recording
from benchmarks.rollout import DRIFT, DT, fastest, first_frame, GRID, LAW
from video2pde.drift import estimate_drift
from video2pde.field import Windows
from video2pde.flow.flow import Flow, FlowShape
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import load_settings
from video2pde.stages.structure import discover_structure

TITLE = "Flow"
NOTES = (
    "Rollouts of law C over 40 frames on 200 × 200; the weak stage (system, flow, all libraries and diagnostics) "
    "on the training window of 200 × 200 × 1009, exact. Ratios to the same with a uniform drift. A flow so fast in the "
    "picture's corners that stability asks for a second substep takes twice as long: it has a row without a limit."
)
FRAMES = 40
FAST = "affine, two substeps"
MOST_ROLLOUT, MOST_WEAK = 1.5, 3.0


def run() -> list[dict[str, Any]]:
    """Measure both, in turns with what they are compared with."""
    return [*_rollouts(), *_weak_stage()]


def _rollouts() -> list[dict[str, Any]]:
    start, times = first_frame(), DT * np.arange(FRAMES)
    drift = np.tile(DRIFT, (FRAMES, 1))
    extent, span = (GRID.height, GRID.width), (0.0, float(times[-1]))
    rng = np.random.default_rng(0)
    turning = FlowShape("affine", extent, span)
    eddies = FlowShape("stream", extent, span, (9, 9))
    flows = {
        "affine": Flow(turning, np.array([[0.01, 0.003, 0.0]]), np.zeros((1, 3))),
        FAST: Flow(turning, np.array([[0.03, 0.01, 0.0]]), np.zeros((1, 3))),
        "stream function, 81 modes": Flow(eddies, 3 * rng.standard_normal((1, 81)), np.zeros((1, 81))),
    }
    models = [LAW, *(Model(LAW.terms, LAW.coefficients, flow=flow) for flow in flows.values())]
    plain, *others = fastest(*(lambda m=model: simulate(m, start, times, GRID, drift) for model in models))
    rows = [{"name": "rollout, uniform drift", "value": 1e3 * plain, "unit": "ms"}]
    for name, seconds in zip(flows, others, strict=True):
        limit = {} if name == FAST else {"limit": MOST_ROLLOUT}
        rows.append({"name": f"rollout, {name}: ratio", "value": seconds / plain, **limit})
    return rows


def _weak_stage() -> list[dict[str, Any]]:
    film = make_recording()
    windows = Windows.split(len(film))
    known = film.frames(slice(0, windows.validation.stop))
    drift = estimate_drift(known)
    uniform, stream = (
        load_settings(overrides={"drift.flow": flow, "drift.flow_splines": 9, "drift.flow_times": 1})
        for flow in ("uniform", "stream")
    )
    discover_structure(known, drift, windows, uniform)
    plain, _ = clock(lambda: discover_structure(known, drift, windows, uniform), 3)
    with_flow, found = clock(lambda: discover_structure(known, drift, windows, stream), 3)
    modes = 0 if found.flow is None else max(c.shape.splines[0] * c.shape.splines[1] for c in found.flow.candidates)
    return [
        {"name": "weak stage, uniform drift", "value": plain, "unit": "s"},
        {
            "name": f"weak stage, stream function of {modes} modes: ratio",
            "value": with_flow / plain,
            "limit": MOST_WEAK,
        },
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
