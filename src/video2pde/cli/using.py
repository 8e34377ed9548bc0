"""The commands on laws: simulate, export, analyse, apply."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, TYPE_CHECKING

from cyclopts import Parameter

from video2pde.cli.console import tell
from video2pde.cli.options import DEFAULT_RECORDING, DEFAULT_SETTINGS, flag, RecordingOptions, SettingsOptions
from video2pde.cli.progress import Display
from video2pde.errors import InputError, StageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from video2pde.rollout.task import Rollout
    from video2pde.settings import Settings
    from video2pde.using.analysis import Analysis
    from video2pde.using.modelfile import SavedModel
    from video2pde.using.transfer import Transfer

ModelFile = Annotated[Path, Parameter(help="model.json, or the folder of a run that holds it.")]
LONGEST = 100_000
"""Frames that a simulation may write."""


def simulate(
    model: ModelFile,
    /,
    *,
    from_: Annotated[
        Path | None,
        Parameter(
            name="--from",
            help="First frame: a film, a field .npz, an array .npy or a picture; default: the law's film.",
        ),
    ] = None,
    frame: Annotated[int | None, Parameter(help="Number of the frame to start from; −1 is the last.")] = None,
    duration: Annotated[
        float | None, Parameter(help="Seconds to simulate; default: as long as the law's film.")
    ] = None,
    fps: Annotated[float | None, Parameter(help="Frames per second of the result; default: as the law's film.")] = None,
    drift: Annotated[
        Literal["measured", "mean", "none"],
        Parameter(help="measured: as on the film, after it the mean of its last tenth; mean of the film; none."),
    ] = "measured",
    ensemble: Annotated[int, Parameter(help="Members of an ensemble over the bootstrap draws; 0: none.")] = 0,
    seed: Annotated[int, Parameter(help="Seed of the ensemble.")] = 0,
    out: Annotated[Path, Parameter(help="Result: .npy, .npz, .mp4, .gif or .png.")] = Path("simulated.npz"),
    settings: SettingsOptions = DEFAULT_SETTINGS,
) -> None:
    """Simulate a law from a frame of its film, a picture or an array, for any time.

    The drift goes on as on the film, and after its end as in its last tenth:

        video2pde simulate run/model.json --out forecast.mp4
        video2pde simulate run --frame -1 --duration 20 --out beyond.gif
        video2pde simulate run --from u0.npy --duration 5 --fps 10 --out u.npz
        video2pde simulate run --ensemble 50 --out band.npz

    Of an ensemble, .npz holds the mean and the 5–95 % band; the other forms show the mean. Two fields start from a
    frame of their own recording, or from an .npz file with the arrays u and w, and are written as .npz.
    """
    from video2pde.pair.model import is_pair_model

    if is_pair_model(model):
        _simulate_pair(model, from_, frame, duration, fps, out, Display(settings.quiet))
        return
    from video2pde.using.ensemble import simulate_ensemble
    from video2pde.using.films import SUFFIXES, write_simulation
    from video2pde.using.modelfile import SavedModel
    from video2pde.using.starts import find_start

    display = Display(settings.quiet)
    if out.suffix.lower() not in SUFFIXES:
        raise InputError(f"--out {out}: give a name that ends in {', '.join(SUFFIXES)}")
    law = SavedModel.load(model)
    start = find_start(law, model, from_, frame, _given_settings(settings))
    times = _times_from(start.time, law, duration, fps)
    dark = law.provenance.recording_settings().observable != "bright"
    display.say(f"from {start.origin}, t = {times[0]:.4g} s to {times[-1]:.4g} s, {len(times)} frames")
    with display.task("simulating"):
        if ensemble:
            band = simulate_ensemble(law, start.values, times, ensemble, drift, seed=seed, workers="auto")
            if band.failed:
                display.warn(f"{band.failed} of {ensemble} members failed and were left out")
            write_simulation(out, times, band.mean, dark=dark, ensemble=band)
        else:
            rollout = _require_whole(law.simulate(start.values, times, drift), display)
            write_simulation(out, times, rollout.values, dark=dark)
    tell(out)


def _simulate_pair(
    model: Path,
    given: Path | None,
    frame: int | None,
    duration: float | None,
    fps: float | None,
    out: Path,
    display: Display,
) -> None:
    """Simulate two fields from a frame of their recording, or from the arrays u and w of a file."""
    import numpy as np

    from video2pde.pair.fields import Pair
    from video2pde.pair.model import PairModel
    from video2pde.pair.starts import find_pair_start

    if out.suffix.lower() != ".npz":
        raise InputError(f"--out {out}: two fields are written as arrays; give a name that ends in .npz")
    law = PairModel.load(model)
    start, begin = find_pair_start(law, model, given, frame)
    seconds, rate = duration if duration is not None else law.duration, fps if fps is not None else 1 / law.interval
    if not (0 < seconds < math.inf and 0 < rate < math.inf) or seconds * rate > LONGEST:
        raise InputError(
            f"--duration {seconds:g} and --fps {rate:g} must be positive, and make {LONGEST} frames at most"
        )
    times = begin + np.linspace(0.0, seconds, max(1, round(seconds * rate)) + 1)
    with display.task("simulating"):
        found = law.simulate(start, times)
    if found.failure:
        raise StageError(f"the simulation stopped: {found.failure}")
    Pair.of(found.values, times, law.grid).save(out)
    tell(out)


def _require_whole(rollout: Rollout, display: Display) -> Rollout:
    """Refuse a simulation that stopped, and say where clipping took something away."""
    if rollout.failed:
        raise StageError(f"the simulation stopped: {rollout.reason}")
    if rollout.clipped > 0.001:
        display.warn(f"clipping to [0, 1] took {rollout.clipped:.1%} of the field")
    return rollout


def _times_from(begin: float, law: SavedModel, duration: float | None, fps: float | None) -> NDArray[np.float64]:
    """Return the times of a simulation: as long and as close as asked for, otherwise as on the law's film."""
    import numpy as np

    seconds = duration if duration is not None else float(np.ptp(law.times)) or 1.0
    rate = fps if fps is not None else 1.0 / law.frame_interval
    if not (0 < seconds < math.inf and 0 < rate < math.inf):
        raise InputError(f"--duration {seconds:g} and --fps {rate:g} must be positive and finite")
    if seconds * rate > LONGEST:
        raise InputError(
            f"{seconds * rate:.0f} frames are more than {LONGEST}; give a shorter --duration or a smaller --fps"
        )
    return begin + np.linspace(0.0, seconds, max(1, round(seconds * rate)) + 1)


def export(
    model: ModelFile,
    /,
    *,
    to: Annotated[
        Literal["latex", "sympy", "python", "pypde", "json"],
        Parameter(help="latex, sympy, python (NumPy alone), pypde or json."),
    ],
    out: Annotated[Path | None, Parameter(help="File to write; default: standard output.")] = None,
) -> None:
    """Write a law for use elsewhere.

    Scripts take a first frame, a duration and a name for the result:

    video2pde export run/model.json --to latex
    video2pde export run --to python --out law.py && python law.py --duration 10
    video2pde export run --to pypde --out law_pypde.py
    """
    from video2pde.files import atomic_write
    from video2pde.pair.model import export_pair, is_pair_model, PairModel
    from video2pde.using.export import export_model
    from video2pde.using.modelfile import SavedModel

    text = export_pair(PairModel.load(model), to) if is_pair_model(model) else export_model(SavedModel.load(model), to)
    if out is None:
        sys.stdout.write(text)
        return
    with atomic_write(out) as file:
        file.write(text.encode())
    tell(out)


def analyse(
    model: ModelFile,
    /,
    *,
    from_: Annotated[
        Path | None, Parameter(name="--from", help="Frame that gives the range of u; default: the law's film.")
    ] = None,
    frame: Annotated[int | None, Parameter(help="Number of that frame.")] = None,
    json_: Annotated[bool, Parameter(name="--json", help="Print JSON.", negative="", show_default=False)] = False,
    quiet: Annotated[bool, flag("No messages.")] = False,
) -> None:
    """Say what can be proved about a law, with its numbers, and check it on a rollout of the law.

    Of each statement the residual is told, and the order with which it falls as the grid is refined:

    video2pde analyse run/model.json
    video2pde analyse run --json | jq '.statements[] | {title, residual, holds}'
    """
    from video2pde.using.analysis import analyse_model
    from video2pde.using.modelfile import SavedModel
    from video2pde.using.starts import find_field, find_start

    _refuse_pair(model, "analysed")
    law = SavedModel.load(model)
    first = None
    if from_ is not None or find_field(model) is not None:
        first = find_start(law, model, from_, frame).values
    with Display(quiet).task("checking the identities"):
        found = analyse_model(law, first)
    tell(json.dumps(asdict(found), indent=2, ensure_ascii=False, allow_nan=False) if json_ else _tell(found))


def apply(
    model: ModelFile,
    film: Annotated[Path, Parameter(help="Another recording: a film, a stack, pictures, an array or a field .npz.")],
    /,
    *,
    against: Annotated[Path | None, Parameter(help="Run folder of FILM, for the law that was found in it.")] = None,
    json_: Annotated[bool, Parameter(name="--json", help="Print JSON.", negative="", show_default=False)] = False,
    recording: RecordingOptions = DEFAULT_RECORDING,
    settings: SettingsOptions = DEFAULT_SETTINGS,
) -> None:
    """Let a law found in one recording predict another.

    The drift is measured on FILM; the law is rolled out over FILM's validation and test windows, beside persistence,
    drift alone and drift with diffusion:

        video2pde apply run/model.json other.mp4
        video2pde apply run other.mp4 --scale 0.05mm --against other-run
    """
    from video2pde.recording import read_field
    from video2pde.using.modelfile import SavedModel
    from video2pde.using.transfer import apply_model

    display = Display(settings.quiet)
    _refuse_pair(model, "applied to another recording")
    law = SavedModel.load(model)
    own = None if against is None else SavedModel.load(against)
    chosen = settings.load(recording)
    with display.task(f"reading {film.name}") as report:
        field = read_field(film, chosen, report)
    with display.task("predicting"):
        found = apply_model(law, field, chosen, own)
    for note in found.notes:
        display.warn(note)
    tell(
        json.dumps(_as_json(found), indent=2, ensure_ascii=False, allow_nan=False)
        if json_
        else _tabulate(found, field.grid.unit)
    )


def _refuse_pair(model: Path, what: str) -> None:
    from video2pde.pair.model import is_pair_model

    if is_pair_model(model):
        raise InputError(f"the laws of two fields cannot be {what} yet; simulate and export take them")


def _given_settings(settings: SettingsOptions) -> Settings | None:
    """Load the settings where any were given; otherwise the film is read as the law's own was."""
    if (settings.preset, settings.settings, settings.set) == ("default", None, ()):
        return None
    return settings.load()


def _tell(found: Analysis) -> str:
    lines = [found.equation.text, f"kind: {found.kind}"]
    lines += [f"{group.name}: {group.value:.4g}   ({group.latex})" for group in found.groups]
    if found.check:
        lines += ["", f"Checked on {found.check}."]
    for item in found.statements:
        state = {True: "holds", False: "DOES NOT HOLD", None: "not checked"}[item.holds]
        numbers = "" if item.residual is None else f", residual {item.residual:.1e}"
        numbers += "" if item.order is None else f", falling with order {item.order:.1f}"
        lines += ["", f"{item.title}: {state}{numbers}", f"  {item.latex}", f"  {item.text}"]
    lines += ["", *(f"Note: {note}" for note in found.notes)] if found.notes else []
    return "\n".join(lines)


def _as_json(found: Transfer) -> dict[str, object]:
    return {
        "equation": found.equation,
        "drift_mean": found.drift_mean,
        "diffusion": found.diffusion,
        "windows": asdict(found.windows),
        "outcomes": [outcome.row for outcome in found.outcomes],
        "verdict": found.verdict,
        "notes": found.notes,
    }


def _tabulate(found: Transfer, unit: str) -> str:
    head = f"{'window':11} {'prediction':18} {'rRMSE %':>9} {'front RMSE':>11} {'centroid RMSE':>14} {'skill':>7}"
    lines = [
        found.equation,
        f"drift of the film: ({found.drift_mean[0]:.4g}, {found.drift_mean[1]:.4g}) {unit}/s",
        "",
        head,
    ]
    for outcome in found.outcomes:
        row = outcome.row
        numbers = [row[key] for key in ("rrmse_percent", "front_rmse", "centroid_rmse", "skill")]
        cells = [
            f"{'–' if value is None else format(value, '.4g'):>{width}}"
            for value, width in zip(numbers, (9, 11, 14, 7), strict=True)
        ]
        lines.append(f"{outcome.window:11} {outcome.name:18} {' '.join(cells)}  {outcome.failure}".rstrip())
    return "\n".join([*lines, "", found.verdict])
