"""How a run goes on, read from its folder: stages, how far the present one has come, what it found so far, its log.

Nothing is asked of the run itself, so that one started from a terminal is watched just as well.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STAGES = {
    "recording": "film to field",
    "drift": "background, centroid, drift",
    "discovery": "weak form, sparse fits, identifiability",
    "validation": "rollouts of every library",
    "calibration": "rollout calibration and bootstrap",
    "fit": "what the laws leave, against what noise leaves",
    "front": "front-aware recalibration",
    "calibrated_validation": "rollouts of the calibrated laws",
    "selection": "the choice, frozen",
    "test": "the held-out frames, once",
    "recovery": "recovery after a bleach",
    "steadiness": "the named law in parts of the recording",
    "refinement": "inverse PINN",
    "comparison": "weak and refined coefficients side by side",
    "report": "page, figures, tables",
}
"""The pipeline's stages, repeated here because importing the pipeline takes seconds; a test compares the two."""
SOMETIMES = frozenset({"recovery", "steadiness"})
"""Stages that a run has only where it is asked for them: they are not shown before they begin."""
LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ (\w+)\s+(.*)$")
BEGUN = re.compile(r"^video2pde [\w.+-]+, process (\d+)$")
ENDED = re.compile(r"^(done in|taken from the run folder \(it took) ([\d.]+) s\)?$")
STEP = re.compile(r"^(\d+)(?: of (\d+))? after (\d+) s(?:, about (\d+) s left)?(?:, (.*))?$")
LATER = re.compile(r"^(.*), after (\d+) s$")
FIGURE = re.compile(r"(\w+) (-?\d[\d.]*(?:e[+-]?\d+)?)(?:,|$)")
DRAWN = re.compile(r"^replicates of (\S.*?) \(([^()]+)\): ([-+.\de ;naif]+)$")
MOST_DRAWS = 400
"""Replicates of one law that are shown at most."""
TAIL_BYTES = 400_000
SHOWN_LINES = 300


@dataclass
class StageState:
    """One stage: waiting, running, done or cached; seconds that it took, and how far it has come."""

    name: str
    title: str
    state: str = "waiting"
    seconds: float | None = None
    done: int | None = None
    total: int | None = None
    left: float | None = None
    note: str = ""


@dataclass
class Cloud:
    """Replicates of the bootstrap of one law so far: coefficients by term, in the order of ``terms``."""

    library: str
    terms: list[str]
    draws: list[list[float]] = field(default_factory=list)


@dataclass
class RunState:
    """All stages of a run, the paths of its figures and the clouds of replicates so far, and the end of its log."""

    stages: list[StageState]
    lines: list[str]
    warnings: list[str]
    figures: dict[str, list[list[float]]] = field(default_factory=dict)
    clouds: list[Cloud] = field(default_factory=list)
    stopped: str = ""

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def read_state(out: Path) -> RunState:
    """Read how a run stands from the last start on that its log tells of."""
    state = RunState([StageState(name, title) for name, title in STAGES.items()], [], [])
    stages = {stage.name: stage for stage in state.stages}
    texts = _tail(out / "log.txt")
    starts = [index for index, (_, text) in enumerate(texts) if BEGUN.match(text)]
    for level, text in texts[starts[-1] :] if starts else texts:
        if match := DRAWN.match(text):
            _add_draws(state, *match.groups())
            continue
        if level != "DEBUG":
            state.lines.append(text)
        if level == "WARNING":
            state.warnings.append(text)
        elif level == "ERROR":
            state.stopped = text
        name, _, rest = text.partition(": ")
        if name in stages and rest:
            _follow(stages[name], rest, state)
    state.lines = state.lines[-SHOWN_LINES:]
    state.stages = [stage for stage in state.stages if stage.name not in SOMETIMES or stage.state != "waiting"]
    return state


def _follow(stage: StageState, text: str, state: RunState) -> None:
    """Take one line of a stage into account."""
    if text == stage.title:
        stage.state, stage.done, stage.note = "running", None, ""
    elif match := ENDED.match(text):
        stage.state = "done" if text.startswith("done") else "cached"
        stage.seconds, stage.left = float(match[2]), None
    elif match := STEP.match(text):
        stage.done, stage.total = int(match[1]), int(match[2]) if match[2] else None
        stage.left = float(match[4]) if match[4] else None
        stage.note = match[5] or ""
        _collect(stage, int(match[1]), state)
    elif match := LATER.match(text):
        stage.note = match[1]


def _collect(stage: StageState, step: int, state: RunState) -> None:
    """Keep the coefficients that the inverse PINN tells of as it goes on."""
    library, found, rest = stage.note.partition(": ")
    if stage.name == "refinement" and found:
        for match in FIGURE.finditer(rest):
            state.figures.setdefault(f"{library}: {match[1]}", []).append([float(step), float(match[2])])


def _add_draws(state: RunState, library: str, terms: str, rows: str) -> None:
    """Add replicates to the cloud of their law; a law with other terms begins anew."""
    names = terms.split(", ")
    if not state.clouds or (state.clouds[-1].library, state.clouds[-1].terms) != (library, names):
        state.clouds.append(Cloud(library, names))
    draws = state.clouds[-1].draws
    for row in rows.split("; "):
        try:
            values = [float(value) for value in row.split()]
        except ValueError:
            continue
        if len(values) == len(names) and all(map(math.isfinite, values)) and len(draws) < MOST_DRAWS:
            draws.append(values)


def _tail(path: Path) -> list[tuple[str, str]]:
    """Return level and text of the log's last lines; a line that goes on below the first belongs to it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            found.append((match[2], match[3]))
    return found
