"""Specifications: the same film under other reasonable settings, one changed at a time, and many at once.

A factor is something that one chose, such as the crop, with levels around the choice; a specification takes a level
of each. The space-filling sample is a Latin hypercube over the levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from video2pde.errors import InputError
from video2pde.recording.arrays import is_saved_field
from video2pde.recording.base import Header
from video2pde.recording.layout import Layout, plan_layout
from video2pde.recording.source import open_recording
from video2pde.settings import load_settings, parse_overrides, RecordingSettings, Settings

INSETS = (0.05, 0.1)
"""Shares of the crop's size that are left out on each side."""
GRIDS, WIDTHS = (0.7, 0.85), (0.75, 1.33)
"""Factors on the cells of the grid, and on the widths of the test functions."""
TRAINING = (0.5, 0.7)
SMOOTHING = (0.5, 1.0)
SEEDS = (1, 2)
IMAGE_UNITS = "image units"


@dataclass(frozen=True)
class Level:
    """One choice: how it is called, and the settings that make it."""

    label: str
    overrides: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Factor:
    """Something that was chosen, and other choices; the first level is as it was."""

    name: str
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Specification:
    """One way to read and analyse the film: the level of each factor by its number, and the settings."""

    name: str
    levels: tuple[int, ...]
    settings: Settings

    @property
    def changed(self) -> tuple[int, ...]:
        """The factors that are not as they were."""
        return tuple(k for k, level in enumerate(self.levels) if level)


def usual_factors(film: Path, settings: Settings) -> tuple[Factor, ...]:
    """Return what is varied unless factors are named: of the recording (not of a saved field), the window, the fit."""
    recording = () if film.is_file() and is_saved_field(film) else _of_recording(film, settings)
    weak, split = settings.weak, settings.split
    factors = (
        *recording,
        _factor("training window", f"{split.train:g}", "split.train", TRAINING, "{:g} of the frames"),
        _factor(
            "test functions in space", f"{weak.sigma_space:g}", "weak.sigma_space", _times(WIDTHS, weak.sigma_space)
        ),
        _factor("test functions in time", f"{weak.sigma_time:g}", "weak.sigma_time", _times(WIDTHS, weak.sigma_time)),
        _factor("seed", f"{settings.run.seed}", "run.seed", [settings.run.seed + s for s in SEEDS], "{}"),
        _other_drift(settings),
    )
    return tuple(factor for factor in factors if len(factor.levels) > 1)


def _times(factors: Iterable[float], value: float) -> list[float]:
    return [round(factor * value, 4) for factor in factors]


def _factor(name: str, base: str, key: str, values: Iterable[Any], label: str = "{:g}") -> Factor:
    return Factor(name, (Level(base), *(Level(label.format(value), {key: value}) for value in values)))


def _other_drift(settings: Settings) -> Factor:
    mode = settings.calibration.drift
    other = "scale" if mode == "spline" else "spline"
    return Factor("drift in the fit", (Level(mode), Level(other, {"calibration.drift": other})))


def _of_recording(film: Path, settings: Settings) -> tuple[Factor, ...]:
    """Return crop, border, grid, smoothing, thinning and observable."""
    chosen = settings.recording
    header = open_recording(film, chosen).header
    layout = plan_layout(header, chosen)
    x, y, width, height = layout.crop
    crops = []
    for share in INSETS:
        dx, dy = round(share * width), round(share * height)
        crop = (x + dx, y + dy, width - 2 * dx, height - 2 * dy)
        crops.append(Level(f"{share:.0%} less on each side", {"recording.crop": crop}))
    grids = [tuple(max(8, round(factor * n)) for n in layout.grid.shape) for factor in GRIDS]
    borders = [border for border in (0, 8, 16) if border != layout.border and 8 * border < min(width, height)]
    other = {"dark": "absorbance", "absorbance": "dark"}.get(chosen.observable)
    return (
        Factor("crop", (Level("as given"), *crops)),
        _factor("border", f"{layout.border}", "recording.border", borders, "{} pixels"),
        Factor(
            "grid",
            (
                Level("×".join(map(str, layout.grid.shape))),
                *(Level("×".join(map(str, g)), {"recording.grid": g}) for g in grids),
            ),
        ),
        _factor(
            "smoothing",
            f"{chosen.smooth:g}",
            "recording.smooth",
            [s for s in SMOOTHING if s != chosen.smooth],
            "σ = {:g}",
        ),
        _factor("frames used", f"1 in {chosen.every}", "recording.every", [2 * chosen.every], "1 in {}"),
        _factor("observable", chosen.observable, "recording.observable", [] if other is None else [other], "{}"),
    )


def named_factors(texts: Sequence[str], settings: Settings) -> tuple[Factor, ...]:
    """Read factors such as ``weak.sigma_space=0.04,0.08``; the value that the settings have is the first level."""
    factors = []
    for text in texts:
        ((key, values),) = parse_overrides([text]).items()
        section, _, name = key.partition(".")
        base = getattr(getattr(settings, section, None), name, None)
        listed = values if isinstance(values, list) else [values]
        levels = (Level(f"{base}"), *(Level(f"{value}", {key: value}) for value in listed if value != base))
        if len(levels) < 2:
            raise InputError(f"'{text}' varies nothing: {key} is {base} already")
        factors.append(Factor(key, levels))
    return tuple(factors)


def list_specifications(
    film: Path, settings: Settings, factors: Sequence[Factor], samples: int, seed: int
) -> list[Specification]:
    """Name the settings to run: as they are, each factor changed alone, and a space-filling sample of all together."""
    base = (0,) * len(factors)
    chosen = [base]
    for k, factor in enumerate(factors):
        chosen += [(*base[:k], level, *base[k + 1 :]) for level in range(1, len(factor.levels))]
    counts = np.array([len(factor.levels) for factor in factors])
    if samples:
        unit = qmc.LatinHypercube(len(factors), rng=np.random.default_rng([seed, 23])).random(samples)
        chosen += [tuple(int(n) for n in row) for row in np.floor(unit * counts).astype(int)]
    return [
        Specification(f"{number:03d}", levels, _combine(film, settings, factors, levels))
        for number, levels in enumerate(dict.fromkeys(chosen))
    ]


def _combine(film: Path, settings: Settings, factors: Sequence[Factor], levels: Sequence[int]) -> Settings:
    overrides: dict[str, Any] = {}
    for factor, level in zip(factors, levels, strict=True):
        overrides.update(factor.levels[level].overrides)
    if any(key.startswith("recording.") for key in overrides):
        changed = RecordingSettings.model_validate(
            {**settings.recording.model_dump(), **_section(overrides, "recording")}
        )
        overrides["recording.extent"] = _same_length(film, settings.recording, changed)
    stored = {f"{name}.{key}": value for name, part in settings.model_dump().items() for key, value in part.items()}
    return load_settings(overrides={**stored, **overrides})


def _section(overrides: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key.partition(".")[2]: value for key, value in overrides.items() if key.startswith(f"{name}.")}


def _same_length(film: Path, base: RecordingSettings, changed: RecordingSettings) -> tuple[float, float] | None:
    """Return the extent of another crop or border in the same image units: a pixel keeps its size."""
    if film.is_file() and is_saved_field(film):
        return base.extent
    header = open_recording(film, base).header
    before, after = _layout(header, base), _layout(header, changed)
    if before.grid.unit != IMAGE_UNITS:
        return base.extent
    return (
        before.grid.height * after.inner[3] / before.inner[3],
        before.grid.width * after.inner[2] / before.inner[2],
    )


def _layout(header: Header, settings: RecordingSettings) -> Layout:
    return plan_layout(header, settings)
