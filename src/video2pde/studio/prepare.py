"""What a run of a recording would be: its command line, automatic values, time and memory, and u in one frame."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Picture
from video2pde.recording.layout import plan_layout
from video2pde.settings import load_settings, PRESETS, Settings
from video2pde.studio.folder import Folder
from video2pde.studio.screen import OpenFilm

FLAGS = ("crop", "border", "grid", "observable", "scale", "fps", "start", "stop", "every", "mask", "smooth")
"""Settings of [recording] that the command line has a flag for."""
SECONDS = {"quick": (6.0, 2.2), "default": (40.0, 6.5), "paper": (60.0, 30.0)}
"""Seconds of a run by preset: at least, and for each million of values of the field; measured on two cores."""
REFERENCE_FRAMES = 9
BRIGHT = 95.0


@dataclass(frozen=True)
class Wish:
    """What the page asks for: a recording, a preset, the settings that were touched, and the run's folder."""

    film: str
    preset: str
    touched: Mapping[str, Any]
    out: str
    figures: bool = True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Wish:
        """Read a request's JSON."""
        touched, figures = values.get("settings", {}), values.get("figures", True)
        texts = [values.get("film", ""), values.get("preset", "default"), values.get("out", "")]
        if not all(isinstance(text, str) for text in texts) or not isinstance(touched, dict):
            raise InputError("a run needs the texts film, preset and out, and settings by name")
        if not all(isinstance(key, str) and "." in key for key in touched):
            raise InputError("settings are named section.key, such as recording.crop")
        film, preset, out = texts
        return cls(film, preset, touched, out, figures is not False)

    @property
    def settings(self) -> Settings:
        """All settings that the run would have."""
        if self.preset not in PRESETS:
            raise InputError(f"unknown preset '{self.preset}'; there are: {', '.join(PRESETS)}")
        return load_settings(self.preset, overrides=dict(self.touched))

    def arguments(self) -> list[str]:
        """Return the words behind ``video2pde`` that do the same, typed in the folder that is open."""
        words = ["run", _as_path(self.film), "--out", _as_path(self.out)]
        if self.preset != "default":
            words += ["--preset", self.preset]
        for key, value in self.touched.items():
            section, _, name = key.partition(".")
            if section == "recording" and name in FLAGS:
                words += (
                    [f"--{name}", _as_text(value)]
                    if not _as_text(value).startswith("-")
                    else [f"--{name}={_as_text(value)}"]
                )
            else:
                words += ["--set", f"{key}={_as_text(value)}"]
        return words if self.figures else [*words, "--no-figures"]

    def command(self) -> str:
        """Return the command line to copy."""
        return shlex.join(["video2pde", *self.arguments()])


def suggest_out(folder: Folder, film: str) -> str:
    """Return a free name for the run of a recording, beside it."""
    path = PurePosixPath(film)
    return folder.name(folder.free_name(str(path.with_name(f"{path.stem.lstrip('.-') or 'film'}-run"))))


def plan_run(folder: Folder, film: OpenFilm, wish: Wish) -> dict[str, Any]:
    """Say what a run would do: the command, what is automatic, how long it may take, how much memory it needs."""
    settings = wish.settings
    layout = plan_layout(film.header, settings.recording)
    frames = _selected(film.reader.count or 0, settings)
    from video2pde.machine import available_memory
    from video2pde.runs.memory import estimate_memory

    size = (film.header.height, film.header.width)
    needed, free = estimate_memory(max(frames, 1), layout.grid.shape, settings, size), available_memory()
    least, slope = SECONDS.get(wish.preset, SECONDS["default"])
    grid = layout.grid
    problems = []
    if not film.header.timed and settings.recording.fps is None:
        problems.append("The recording carries no frame times: give the frames per second.")
    if needed > 0.8 * free:
        problems.append("This needs more memory than is free: use a smaller grid, or fewer frames.")
    if wish.out and folder.place(wish.out).exists():
        problems.append(
            "The run's folder is there already: an unfinished run in it goes on, a finished one is changed."
        )
    return {
        "command": wish.command(),
        "folder": str(folder.root),
        "automatic": {
            "recording.crop": list(layout.crop),
            "recording.border": layout.border,
            "recording.grid": list(grid.shape),
            "recording.start": settings.recording.start,
            "recording.stop": film.reader.count,
            "recording.every": settings.recording.every,
            "recording.observable": settings.recording.observable,
            "recording.smooth": settings.recording.smooth,
        },
        "extent": [grid.height, grid.width],
        "unit": grid.unit,
        "frames": frames,
        "seconds": least + slope * frames * grid.ny * grid.nx / 1e6,
        "memory": needed,
        "free": free,
        "notes": list(layout.notes),
        "problems": problems,
    }


@dataclass(frozen=True, eq=False)
class Look:
    """u in one frame, on the run's grid: levels (y, x) between ``low`` and ``high``, and the rectangle it covers."""

    levels: NDArray[np.uint8]
    low: float
    high: float
    inner: tuple[int, int, int, int]


def look_at(film: OpenFilm, number: int, settings: Settings) -> Look:
    """Turn one frame into u as the recording stage does; where it needs the whole film, a few frames stand for it."""
    from video2pde.recording.observable import LogIntensity, normalise, smooth, take_absorbance
    from video2pde.recording.resize import AreaResizer, native

    chosen = settings.recording
    seen = film.seen(chosen)
    header = seen.header
    layout = plan_layout(header, chosen)
    _, _, width, height = layout.inner
    resize = AreaResizer((height, width), layout.grid.shape)

    def cut(number: int) -> Picture:
        return native(layout.cut(seen.light(film.reader.frame(number, seen.channel.mix)[1])))

    inner = cut(number)
    if chosen.observable == "absorbance":
        log = LogIntensity(header)
        values = resize(log(inner)).astype(np.float32)
        last = max((film.reader.count or 1) - 1, 0)
        numbers = np.unique(np.linspace(0, last, REFERENCE_FRAMES).astype(int))
        clear = np.percentile(np.stack([resize(log(cut(int(n)))) for n in numbers]), BRIGHT, axis=0)
        take_absorbance(values, np.asarray(clear, dtype=np.float64))
    else:
        values = resize(inner).astype(np.float32)
        white = chosen.white or header.white or float((inner.max() - header.black) * header.gain) or 1.0
        normalise(values, chosen.observable, header, white)
    values = smooth(values, chosen.smooth)
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) * (255.0 / max(high - low, 1e-9))
    return Look(np.clip(np.rint(scaled), 0, 255).astype(np.uint8), low, high, layout.inner)


def _selected(count: int, settings: Settings) -> int:
    chosen = settings.recording
    stop = count if chosen.stop is None else min(chosen.stop, count)
    return len(range(chosen.first, stop, chosen.every))


def _as_path(name: str) -> str:
    """Keep a name that begins like an option from being taken for one."""
    return f"./{name}" if name.startswith("-") else name


def _as_text(value: Any) -> str:
    """Write a value as the command line takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(_as_text(item) for item in value)
    return "none" if value is None else str(value)
