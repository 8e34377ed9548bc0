"""Damage films, stacks, arrays, settings, model files and run folders at random; every command must survive it.

    python tools/fuzz.py --seconds 600 --seed 1
    python tools/fuzz.py --seed 1 --replay 4711

Each case is a file that was right, damaged by one to four mutations drawn from (seed, case), and one command on it, in
a process of its own. A command may succeed or refuse (exit status 0, 1 or 2, one line); it must not show a traceback or
an unexpected error, take LONGEST seconds, or take more than twice the memory that is expected: its own
estimates, made before anything is allocated, and what the program takes for itself, measured on the right files.
What fails is printed with its case, which ``--replay`` runs again. Needs fork, so it runs on Linux and macOS.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil
import tifffile
from PIL import Image

from video2pde.cli import main as video2pde
from video2pde.field import Field, Grid, Windows
from video2pde.pipeline import run_pipeline
from video2pde.recording.synth import Camera, exact_field, make_case, noisy, render_film
from video2pde.settings import load_settings
from video2pde.using import SavedModel

LONGEST = 60  # seconds of the processor
PATIENCE = 10 * LONGEST  # seconds on the clock, for a machine with other work
TOO_MUCH = 2.0  # times the memory that was estimated
NUMBERS = ("-1", "0", "1e300", "-1e300", "1e-300", "NaN", "Infinity", "99999999999999999999")
EXTREMES = (*NUMBERS, "null", '""', "[]", "{}", "true")
TEXTS = ("<<SIZE>>", "../../etc", "\\u0000", "\\u202e", "a" * 300, "'; import os", "$(true)", "%s%s", "\\ud800")


@dataclass(frozen=True)
class Target:
    """A kind of file, how it is damaged, and the command that reads it."""

    name: str
    file: Path
    command: Callable[[Path, Path], list[str]]
    text: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a case: done, refused, or how it failed; what was said; memory taken and estimated, bytes."""

    target: str
    kind: str
    text: str
    taken: float = 0.0
    estimate: float = 0.0

    def judged(self, program: float) -> Outcome:
        """Call it a failure where it took more than twice its estimate and what the program takes for itself."""
        expected = program + self.estimate
        if self.taken <= TOO_MUCH * expected:
            return self
        return replace(self, kind="memory", text=f"{self.taken / 1e6:.0f} of {expected / 1e6:.0f} MB; {self.text}")


def damage_bytes(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(max(1, len(changed) if draw.random() < 0.5 else min(len(changed), 512)))
        match draw.randrange(6):
            case 0 if changed:
                changed[place % len(changed)] ^= 1 << draw.randrange(8)
            case 1:
                changed[place : place + 4] = draw.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\0\0\0\x80"))
            case 2:
                del changed[place:]
            case 3:
                del changed[place : place + draw.randint(1, 64)]
            case 4:
                changed[place:place] = draw.randbytes(draw.randint(1, 64))
            case _:
                other = draw.randrange(max(len(changed), 1))
                changed[place : place + 16] = changed[other : other + 16]
    return bytes(changed)


def damage_text(data: bytes, draw: random.Random) -> bytes:
    text = data.decode("utf-8")
    for _ in range(draw.randint(1, 4)):
        spots = list(re.finditer(r"-?\d+\.?\d*(?:e[+-]?\d+)?|\"[^\"]*\"|[\[\]{}:,=]", text))
        if not spots or draw.random() < 0.15:
            return damage_bytes(text.encode(), draw)
        spot = draw.choice(spots)
        if spot[0].startswith('"'):
            new = f'"{draw.choice(TEXTS)}"' if draw.random() < 0.7 else draw.choice(EXTREMES)
        elif spot[0] in "[]{}:,=":
            new = draw.choice(("", "[", "}", ",", "{"))
        else:
            new = draw.choice(EXTREMES) if draw.random() < 0.8 else f'"{draw.choice(TEXTS)}"'
        text = text[: spot.start()] + new + text[spot.end() :]
    return text.encode("utf-8", "replace")


def make_targets(folder: Path) -> list[Target]:
    """Write one right file of each kind."""
    case = make_case("C")
    field = noisy(exact_field(case, Grid(24, 24, 200.0, 200.0), np.linspace(0, case.duration, 40)), 0.003, 1)
    frames = np.clip(255 * (1 - field.values), 0, 255).astype(np.uint8)
    camera = Camera(size=(48, 64), crop=(0, 0, 64, 48), border=0, frames=12)
    film = render_film(case, folder / "film", camera)
    matroska = render_film(case, folder / "mkv", replace(camera, container="mkv"))
    tifffile.imwrite(folder / "plain.tif", frames[:8], photometric="minisblack")
    tifffile.imwrite(folder / "packed.tif", frames[:8], photometric="minisblack", compression="zlib")
    tifffile.imwrite(folder / "imagej.tif", frames[:8], imagej=True, metadata={"axes": "TYX", "finterval": 0.2})
    timed = {"axes": "TYX", "TimeIncrement": 0.2}
    tifffile.imwrite(folder / "ome.ome.tif", frames[:8], ome=True, photometric="minisblack", metadata=timed)
    pictures = [Image.fromarray(frame) for frame in frames[:8]]
    pictures[0].save(folder / "film.gif", save_all=True, append_images=pictures[1:], duration=50)
    np.save(folder / "array.npy", frames)
    np.savez(folder / "array.npz", frames=frames, times=field.times)
    np.savez_compressed(folder / "packed.npz", frames=frames)
    field.save(folder / "field.npz")
    (folder / "settings.toml").write_text(load_settings().to_toml(), encoding="utf-8")
    coefficients = {"grad_squared": 9.0, "laplacian": 0.7}
    law = SavedModel.of(
        list(coefficients),
        coefficients,
        field.grid,
        Windows.split(40),
        field.times,
        np.zeros((40, 2)),
        draws=np.tile(list(coefficients.values()), (3, 1)),
        path="film.mp4",
    )
    law.save(folder / "model.json")
    np.save(folder / "u0.npy", field.values[0])
    run = folder / "run"
    quick = {"weak.test_functions": 100, "identifiability.stability_runs": 3, "calibration.replicates": 2}
    run_pipeline(folder / "field.npz", run, load_settings("quick", overrides=quick), figures=False)

    return [*_files(folder, film, matroska), *_laws(folder), *_runs(run)]


def _files(folder: Path, film: Path, matroska: Path) -> list[Target]:
    """Recordings and settings."""
    options = ["--fps", "5", "--quiet", "--no-figures", "--allow-truncated"]

    def read(path: Path, out: Path) -> list[str]:
        return ["field", str(path), "--out", str(out / "f"), *options]

    def with_settings(path: Path, out: Path) -> list[str]:
        return [*read(folder / "array.npy", out), "--settings", str(path)]

    stacks = ("plain.tif", "packed.tif", "imagej.tif", "ome.ome.tif", "film.gif")
    names = (*stacks, "array.npy", "array.npz", "packed.npz", "field.npz")
    films = [Target("film.mp4", film, read), Target("film.mkv", matroska, read)]
    settings = Target("settings", folder / "settings.toml", with_settings, text=True)
    return [*(Target(name, folder / name, read) for name in names), *films, settings]


def _laws(folder: Path) -> list[Target]:
    """Model files."""
    model = folder / "model.json"
    start = ["--from", str(folder / "u0.npy"), "--duration", "0.5", "--quiet"]
    return [
        Target("model, export", model, lambda p, _: ["export", str(p), "--to", "python"], text=True),
        Target("model, latex", model, lambda p, _: ["export", str(p), "--to", "latex"], text=True),
        Target(
            "model, simulate", model, lambda p, out: ["simulate", str(p), *start, "--out", str(out / "u.npz")], True
        ),
    ]


def _runs(run: Path) -> list[Target]:
    """Files of a run folder."""

    def folder_of(path: Path) -> str:
        return str(path.parents[1] if path.parent.name == "stages" else path.parent)

    def rendered(path: Path, _out: Path) -> list[str]:
        return ["report", folder_of(path), "--no-figures"]

    return [
        Target("run, result", run / "result.json", lambda p, _: ["runs", folder_of(p)], text=True),
        Target("run, standing", run / "stages" / "standing.json", rendered, text=True),
        *(Target(f"run, {path.stem}", path, rendered) for path in sorted((run / "stages").glob("*.npz"))),
    ]


def run_case(targets: list[Target], seed: int, case: int, folder: Path) -> Outcome:
    """Damage a file and run its command in a child."""
    draw = random.Random(f"{seed}/{case}")
    target = draw.choice(targets)
    data = target.file.read_bytes()
    return run_target(target, damage_text(data, draw) if target.text else damage_bytes(data, draw), folder)


def run_target(target: Target, data: bytes, folder: Path) -> Outcome:
    """Run a target's command on a file with this content."""
    place = folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if target.name.startswith("run, "):
        run = target.file.parents[1] if target.file.parent.name == "stages" else target.file.parent
        shutil.copytree(run, place / "run")
        file = place / "run" / target.file.relative_to(run)
    else:
        file = place / target.file.name
    file.write_bytes(data)
    said, planned = place / "said.txt", place / "planned.json"
    child = os.fork()
    if child == 0:
        run_child(target.command(file, place), said, planned)
    ended = wait_for(child)
    text = said.read_text(encoding="utf-8", errors="replace")
    if ended is None:
        return Outcome(target.name, "hang", text)
    code, peak = ended
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome(target.name, "hang", text)
    if code not in (0, 1, 2) or "Traceback" in text or "error: unexpected " in text:
        return Outcome(target.name, f"status {code}", text)
    start, estimate = json.loads(planned.read_text(encoding="utf-8"))
    return Outcome(target.name, "done" if code == 0 else "refused", text, peak - start, estimate)


def wait_for(child: int) -> tuple[int, int] | None:
    """Wait for a process; return its exit status and the most memory that it held, None where it had to be ended."""
    began = time.monotonic()
    ended, status, used = os.wait4(child, os.WNOHANG)
    while not ended and time.monotonic() - began < PATIENCE:
        time.sleep(0.002)
        ended, status, used = os.wait4(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None
    return os.waitstatus_to_exitcode(status), used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run_child(command: list[str], said: Path, planned: Path) -> None:
    """Run the command with its output in a file, its memory and its estimates in another; never returns."""
    status = 99
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
        estimates, start = Estimates(), psutil.Process().memory_info().rss
        status = video2pde(command)
        planned.write_text(json.dumps([start, estimates.total]), encoding="utf-8")
        sys.stdout.flush()
    except BaseException as error:
        os.write(2, f"Traceback: {type(error).__name__}: {error}".encode("utf-8", "replace"))
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


class Estimates(logging.Handler):
    """Add up the memory that a command plans for before it allocates it."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0.0
        logger = logging.getLogger("video2pde.memory")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple) and isinstance(record.args[-1], float | int):
            self.total += record.args[-1]


def measure_program(targets: list[Target], folder: Path) -> float:
    """Run every command on its right file; return the most memory that one takes beyond its own estimate.

    A command that refuses the right file would make every case a success.
    """
    most = 0.0
    for target in targets:
        whole = run_target(target, target.file.read_bytes(), folder)
        if whole.kind != "done":
            raise SystemExit(f"{target.name} is not right to begin with: {whole.text}")
        most = max(most, whole.taken - whole.estimate)
    return most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case, to go on from an earlier run")
    parser.add_argument("--replay", type=int, help="run this one case, and print what it said")
    given = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        targets = make_targets(folder)
        Field.load(folder / "field.npz")
        program = measure_program(targets, folder)
        if given.replay is not None:
            print(run_case(targets, given.seed, given.replay, folder).judged(program))
            return 0
        until, case = time.monotonic() + given.seconds, given.first
        while time.monotonic() < until:
            found = run_case(targets, given.seed, case, folder).judged(program)
            counts[found.target, found.kind] += 1
            if found.kind not in ("done", "refused"):
                failures.append(case)
                said = " ".join(found.text.split())[-300:]
                print(f"case {case}: {found.target}: {found.kind}: {said}", file=sys.stderr, flush=True)
            case += 1
    kinds = sorted({target for target, _ in counts})
    table = {kind: {outcome: n for (target, outcome), n in counts.items() if target == kind} for kind in kinds}
    told = {"seed": given.seed, "first": given.first, "cases": case - given.first, "program_mb": round(program / 1e6)}
    print(json.dumps({**told, "failed": failures, "by target": table}, indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
