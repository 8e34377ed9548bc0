"""Films of known laws on which intervals are measured: one set to fit constants on, another to check them on.

The two sets share no seed, no plume, no law strength, no noise level and no setting of an encoder (lossless apart).
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kept import recall, ROOT

KEPT = ROOT / "build" / "intervals"
LIBRARY = {"A": "A", "B": "B", "C": "C", "C-alt": "C-alt", "Fisher": "R"}
BRIGHTEST = 0.95
"""Largest u of a film: a plume on a background is made lower where it would not fit the camera's range."""
PRESETS = (
    *((0.0, crf) for crf in (0, 18, 23, 28)),
    *((0.01, crf) for crf in (23, 28)),
    *((0.02, crf) for crf in (18, 28)),
    (0.05, 23),
)
"""Noise and H.264 quality (preset ``veryfast``) of the preset cases, the first films of the set to fit on."""


@dataclass(frozen=True)
class Draw:
    """How the films of a set are drawn: how many, from which seeds on, with which noise and encoders."""

    films: int
    seed: int
    first_plume: int
    first_noise: int
    noises: tuple[float, ...]
    fingers: tuple[int, ...]
    sizes: tuple[float, ...]
    backgrounds: tuple[float, ...]
    empty: tuple[float, ...]
    encoders: tuple[tuple[str, dict[str, str]], ...]


FIT = Draw(
    films=110,
    seed=2026,
    first_plume=1000,
    first_noise=5000,
    noises=(0.0, 0.006, 0.015, 0.03),
    fingers=(3, 4, 5, 7, 8),
    sizes=(0.85, 1.15),
    backgrounds=(0.05, 0.15, 0.3),
    empty=(0.03, 0.06),
    encoders=(
        ("libx264", {"crf": "0", "preset": "medium"}),
        ("libx264", {"crf": "16", "preset": "medium"}),
        ("libx264", {"crf": "21", "preset": "faster"}),
        ("libx264", {"crf": "26", "preset": "medium"}),
        ("libx264", {"crf": "20", "preset": "slow", "g": "30", "bf": "0"}),
        ("libx265", {"crf": "22"}),
        ("libx265", {"crf": "27"}),
        ("libvpx-vp9", {"crf": "30", "b": "0", "cpu-used": "5"}),
        ("mpeg4", {"qscale": "3"}),
        ("mjpeg", {"qscale": "4"}),
        ("libx264", {"crf": "30", "preset": "fast"}),
    ),
)
CHECK = Draw(
    films=140,
    seed=77,
    first_plume=3000,
    first_noise=9000,
    noises=(0.0, 0.004, 0.012, 0.022, 0.04),
    fingers=(2, 6, 9, 10),
    sizes=(0.9, 1.0, 1.1),
    backgrounds=(0.08, 0.12, 0.2),
    empty=(0.02, 0.05),
    encoders=(
        ("libx264", {"crf": "0", "preset": "superfast"}),
        ("libx264", {"crf": "15", "preset": "fast"}),
        ("libx264", {"crf": "19", "preset": "medium"}),
        ("libx264", {"crf": "22", "preset": "slow"}),
        ("libx264", {"crf": "25", "preset": "superfast"}),
        ("libx264", {"crf": "27", "preset": "faster"}),
        ("libx264", {"crf": "24", "preset": "fast", "g": "48", "bf": "1"}),
        ("libx265", {"crf": "20", "preset": "ultrafast"}),
        ("libx265", {"crf": "25", "preset": "superfast"}),
        ("libvpx-vp9", {"crf": "25", "b": "0", "cpu-used": "7"}),
        ("mpeg4", {"qscale": "5"}),
        ("mjpeg", {"qscale": "6"}),
        ("mpeg2video", {"qscale": "4"}),
    ),
)


@dataclass(frozen=True)
class Film:
    """One film: the law and its strength, the plume, and how it was filmed."""

    set: str
    law: str
    strengths: tuple[float, ...]
    plume: dict[str, Any]
    background: float
    noise: float
    encoder: str
    options: dict[str, str]
    seed: int

    @property
    def key(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True)
        return f"{self.set}-{self.law}-{self.seed}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def list_films(chosen: str) -> Iterator[Film]:
    """Name the films of a set: ``fit`` or ``check``."""
    if chosen == "fit":
        for number, (noise, crf) in enumerate(PRESETS):
            for law in LIBRARY:
                background = (0.0, 0.1)[number % 2] if law == "Fisher" else (0.1, 0.25)[number % 2]
                options = {"crf": str(crf), "preset": "veryfast"}
                yield Film(
                    set="fit",
                    law=law,
                    strengths=(),
                    plume={},
                    background=background,
                    noise=noise,
                    encoder="libx264",
                    options=options,
                    seed=number,
                )
    draw = FIT if chosen == "fit" else CHECK
    rng = np.random.default_rng(draw.seed)
    for number in range(draw.films):
        law = list(LIBRARY)[number % len(LIBRARY)]
        encoder, options = draw.encoders[number % len(draw.encoders)]
        # stronger or weaker than the preset by a fifth at least
        away = rng.uniform(0.2, 0.45, 3)
        strengths = tuple(np.round(np.exp(np.where(rng.random(3) < 0.5, -away, away)), 3).tolist())
        shape = {"fingers": int(rng.choice(draw.fingers)), "size": float(rng.choice(draw.sizes))}
        plume = {"seed": draw.first_plume + number, **shape}
        background = float(rng.choice(draw.empty if law == "Fisher" else draw.backgrounds))
        noise = draw.noises[(number // len(LIBRARY) + number // len(draw.encoders)) % len(draw.noises)]
        seed = draw.first_noise + number
        yield Film(
            set=chosen,
            law=law,
            strengths=strengths,
            plume=plume,
            background=background,
            noise=noise,
            encoder=encoder,
            options=dict(options),
            seed=seed,
        )


def measure(film: Film) -> dict[str, Any]:
    """Film the law, calibrate it as the pipeline does, and keep what its error budget is made from."""
    from video2pde.calibration import calibrate, make_problem
    from video2pde.discovery import weak_system
    from video2pde.discovery.moments import law_velocity
    from video2pde.discovery.regression import fit_library
    from video2pde.drift import estimate_drift
    from video2pde.errors import Video2pdeError
    from video2pde.field import Windows
    from video2pde.recording import read_field
    from video2pde.settings import load_settings
    from video2pde.terms import libraries

    settings = load_settings(overrides={"recording.grid": (100, 100), "run.workers": 1})
    with tempfile.TemporaryDirectory() as folder:
        try:
            path, truth = render(film, Path(folder))
        except Video2pdeError as error:  # a plume that outgrows the solver's square
            return {**asdict(film), "failed": str(error)}
        field = read_field(path, settings)
    windows = Windows.split(len(field))
    train = field.frames(windows.train)
    drift = estimate_drift(field.frames(slice(0, windows.validation_end)), settings.drift).frames(windows.train)
    weak = weak_system(train, drift, settings, len(field))
    terms = libraries(settings)[LIBRARY[film.law]]
    found = fit_library(LIBRARY[film.law], [term.name for term in terms], weak.system, settings.regression).coefficients
    start = {term.name: found[term.name] for term in terms}
    problem = make_problem(train, terms, start, law_velocity(drift, weak.moments, start), weak.moments, settings)
    try:
        done = calibrate(LIBRARY[film.law], problem, {"weak": list(start.values())}, settings)
    except Video2pdeError as error:
        return {**asdict(film), "failed": str(error)}
    return {**asdict(film), "terms": list(start), "truth": [truth[name] for name in start], **describe(done, problem)}


def describe(done: Any, problem: Any) -> dict[str, Any]:
    """Keep what the budget is made from."""
    from video2pde.calibration.fit import compare_halves

    boot, encoding, halves = done.bootstrap, problem.window.encoding, compare_halves(problem, done.fit)
    return {
        "converged": done.fit.converged,
        "estimates": [[e.value, e.low, e.high] for e in done.estimates.values()],
        "found": done.fit.coefficients.tolist(),
        "bias": None if boot is None else boot.bias.tolist(),
        "half": None if boot is None else np.maximum(boot.value - boot.low, boot.high - boot.value).tolist(),
        "std": None if boot is None else boot.draws.std(axis=0, ddof=1).tolist(),
        "offset": None if boot is None else boot.offset.tolist(),
        "light": None if boot is None else boot.light.tolist(),
        "shifts": {line.name: line.shift.tolist() for line in done.budget},
        "held_back": encoding.held_back,
        "level": encoding.level,
        "late_b_frames": encoding.late_b_frames,
        "misfit": done.misfit,
        "halves": halves.apart.tolist(),
        "noisier": halves.noisier.tolist(),
    }


def render(film: Film, folder: Path) -> tuple[Path, dict[str, float]]:
    """Film the case, through the encoder that is asked for; return the path and the law."""
    from video2pde.recording.synth import Camera, find_preset, make_case, render_film

    preset = find_preset(film.law)
    peak = min(preset.plume.peak, BRIGHTEST - film.background)
    law = preset.law.coefficients
    if film.strengths:
        law = {name: value * factor for (name, value), factor in zip(law.items(), film.strengths, strict=False)}
    case = make_case(film.law, coefficients=law, background=film.background, peak=peak)
    case = replace(case, plume=replace(case.plume, **film.plume))
    plain = film.encoder == "libx264" and set(film.options) <= {"crf", "preset"}
    crf, preset_name = (int(film.options["crf"]), film.options["preset"]) if plain else (0, "ultrafast")
    camera = Camera(size=(540, 540), frames=205, noise=film.noise, crf=crf, preset=preset_name, seed=film.seed)
    path = render_film(case, folder, camera)
    return (path if plain else transcode(path, folder / "other.mkv", film.encoder, film.options)), law


def transcode(source: Path, target: Path, encoder: str, options: dict[str, str]) -> Path:
    """Encode a lossless film once more."""
    import av

    with av.open(str(source)) as original, av.open(str(target), "w") as container:
        stream = original.streams.video[0]
        rate = Fraction(stream.average_rate)
        quality = int(options["qscale"]) if "qscale" in options else None
        out = container.add_stream(encoder, rate=rate, options={k: v for k, v in options.items() if k != "qscale"})
        out.width, out.height = stream.width, stream.height
        out.pix_fmt = "yuvj420p" if encoder == "mjpeg" else "yuv420p"
        out.codec_context.time_base = 1 / rate
        if quality is not None:
            out.codec_context.qmin = out.codec_context.qmax = quality
        for index, frame in enumerate(original.decode(video=0)):
            if encoder == "mjpeg":
                frame = frame.reformat(format="yuvj420p", src_color_range="MPEG", dst_color_range="JPEG")
            frame.pts, frame.time_base = index, 1 / rate
            frame.pict_type = 0
            container.mux(out.encode(frame))
        container.mux(out.encode())
    return target


def measure_once(film: Film) -> dict[str, Any]:
    """Return a film's measurement, the one that is kept where there is one."""
    return recall(
        KEPT / f"{film.key}.json",
        None,
        partial(measure, film),
        lambda found: f"{film.key}: {found.get('failed') or 'done'}",
    )


def measure_all(chosen: str, part: tuple[int, int] = (0, 1)) -> list[dict[str, Any]]:
    """Measure a set, or every n-th film of it: ``part`` is (which, n)."""
    return [measure_once(film) for number, film in enumerate(list_films(chosen)) if number % part[1] == part[0]]


if __name__ == "__main__":
    measure_all(sys.argv[1], (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 2 else (0, 1))
