"""Peers on the same fields in the same run: each in a process of its own, with its time, memory, error and structure.

The fields are exact solutions of law A (diffusion) and C (|∇u|² and diffusion), 100×100 cells and 200 frames, clean and
with white noise of 1 % of full scale. The drift is constant, so that a library with u_x and u_y can express it.
Everyone gets the training window (60 %). What a peer cannot find for itself it is given, and the row says what.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.rollouts import ROLLOUTS
from benchmarks.support.scores import largest_error, same_structure
from benchmarks.support.tasks import Given, RECOVERY, Task
from video2pde.field import Field, Grid
from video2pde.recording.synth import Case, exact_field, make_case, noisy

Row = dict[str, Any]
SIZE, FRAMES, EXTENT = 100, 200, 200.0
NOISE = (0.0, 0.01)
LAWS = ("C", "A")
SECONDS_ALLOWED = 240

TITLE = "Beside other packages"
NOTES = """\
Exact solutions of law A (diffusion) and C (|∇u|² and diffusion) with a constant drift, 100×100 cells, 200 frames, clean
and with white noise of 1 % of full scale; everyone gets the first 60 % of the frames. Every line is one process: the
time of the fit (imports and compilation before it are not counted), the peak of the resident memory above what was in
use before, the largest relative error of an intrinsic coefficient, and whether exactly the true terms were found (the
drift is not judged: every method has it). What a method cannot find for itself it is given, and the last column says
what. PySINDy's libraries have no |∇u|²; it gets it as a second field, and the threshold is chosen with the truth at
hand, the one most in its favour. A network that trains for a minute on two cores has not converged: that line says
what a minute buys, not what the method can do. py-pde compiles at every call: its time leaves that out, its memory
cannot.
"""


def make_peer_case(law: str) -> Case:
    """Return the preset of a law with a constant drift."""
    return make_case(law, swing=0.0)


@dataclass(frozen=True)
class Outcome:
    """What one process reported, or why there is nothing."""

    seconds: float
    megabytes: float
    found: dict[str, float]
    truth: dict[str, float]
    remark: str = ""
    failure: str | None = None


def run_task(task: Task, folder: Path, law: str) -> Outcome:
    """Run one task in a process of its own."""
    print(f"  {law}: {task.title}", file=sys.stderr, flush=True)
    missing = [name for name in task.needs if find_spec(name) is None]
    if missing:
        return Outcome(float("nan"), float("nan"), {}, {}, failure=f"not installed: {', '.join(missing)}")
    command = [sys.executable, "-m", "benchmarks.peers", "--task", task.name, "--folder", str(folder), "--law", law]
    root = Path(__file__).resolve().parent.parent
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=root,
            timeout=SECONDS_ALLOWED,
            env={**os.environ, **task.environment},
        )
    except subprocess.TimeoutExpired:
        return Outcome(float("nan"), float("nan"), {}, {}, failure=f"stopped after {SECONDS_ALLOWED} s")
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return Outcome(float("nan"), float("nan"), {}, {}, failure=f"failed: {done.stderr.strip().splitlines()[-1]}")
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def measure_memory() -> tuple[float, float]:
    """Return the resident memory now and its peak so far, in MiB; not numbers where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("nan"), float("nan")
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return sizes["VmRSS"], sizes["VmHWM"]


def forget_peak() -> None:
    """Let the peak of the resident memory start anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return


def serve(name: str, folder: Path, law: str) -> None:
    """Run one task here and print what it found as JSON: the other end of :func:`run_task`."""
    task = next(task for task in (*RECOVERY, *ROLLOUTS) if task.name == name)
    fit = task.prepare(Given(Field.load(folder / "field.npz"), Field.load(folder / "exact.npz"), make_peer_case(law)))
    forget_peak()
    before, _ = measure_memory()
    began = time.perf_counter()
    finding = fit()
    seconds = time.perf_counter() - began
    _, peak = measure_memory()
    timed = seconds if finding.seconds is None else finding.seconds
    print(json.dumps({**asdict(finding), "seconds": timed, "megabytes": peak - before}))


def describe(task: Task, outcome: Outcome) -> Row:
    """Score a recovery."""
    row: Row = {"method": task.title, "time (s)": outcome.seconds, "memory (MiB)": outcome.megabytes}
    if outcome.failure:
        return {**row, "error (%)": "—", "structure": outcome.failure, "given": task.given}
    judged = "given" if task.structure_given else ("right" if same_structure(outcome.found, outcome.truth) else "wrong")
    return {
        **row,
        "error (%)": 100 * largest_error(outcome.found, outcome.truth),
        "structure": f"{judged} ({outcome.remark})" if outcome.remark else judged,
        "given": task.given,
    }


def run() -> list[Row]:
    """Run every peer on every field; give one row each."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for law in LAWS:
            case = make_peer_case(law)
            grid = Grid(SIZE, SIZE, EXTENT, EXTENT)
            exact = exact_field(case, grid, np.linspace(0, case.duration, FRAMES))
            exact.save(folder / "exact.npz")
            for noise in NOISE:
                (noisy(exact, noise, 1) if noise else exact).save(folder / "field.npz")
                label = f"{law}, {f'noise {noise:.0%}' if noise else 'clean'}"
                rows += [{"field": label, **describe(task, run_task(task, folder, law))} for task in RECOVERY]
            for task in ROLLOUTS:
                outcome = run_task(task, folder, law)
                row: Row = {"rollout of": law, "method": task.title, "time (s)": outcome.seconds}
                error = outcome.failure or outcome.found["error"]
                rows.append({**row, "memory (MiB)": outcome.megabytes, "rRMSE (%)": error, "given": task.given})
    return sorted(rows, key=lambda row: "rollout of" in row)


def main() -> None:
    """Run one task (from :func:`run_task`), or all and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=[task.name for task in (*RECOVERY, *ROLLOUTS)])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--law", choices=LAWS)
    options = parser.parse_args()
    if options.task:
        serve(options.task, options.folder, options.law)
        return
    for row in run():
        print(
            ", ".join(
                f"{key}: {value:.4g}" if isinstance(value, float) else f"{key}: {value}" for key, value in row.items()
            )
        )


if __name__ == "__main__":
    main()
