"""Known-truth recordings as a laboratory makes them: pictures at their own times, edges, calibrated light.

Every field here is a closed form or a convergent series, so that nothing but the camera stands between truth and file.
Lengths are in the recording's own unit, times in seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image
from scipy.special import erfc, jnp_zeros, jv

from video2pde.errors import InputError
from video2pde.files import atomic_write
from video2pde.recording.synth.laws import make_case
from video2pde.recording.synth.render import Camera, render_pictures
from video2pde.recording.synth.solvers import sample_case

Array = NDArray[np.float64]
DEEP = 60000.0  # levels of 16 bits at u = 1
NEGLIGIBLE = 1e-5  # modes below it are left out
MOST_CHANGE = 3.0  # factor on D up to which the pictures show what they should


@dataclass(frozen=True)
class Recording:
    """Name a laboratory recording: what it shows, its D in units of its own, and the function that writes it.

    That is given the folder, the seed of the noise, and D; it returns the truth.
    """

    name: str
    words: str
    diffusion: float
    write: Callable[[Path, int, float], dict[str, Any]]


def write_laboratory(name: str, out_dir: str | Path, seed: int = 0, diffusion: float | None = None) -> Path:
    """Write the laboratory recording called ``name`` with ``truth.json``; return the film, file or folder to read.

    ``arguments`` in ``truth.json`` are those with which ``video2pde run`` reads it as it was taken, from its folder.
    """
    if name not in LABORATORY:
        raise InputError(f"no laboratory recording is called {name!r}; there are: {', '.join(LABORATORY)}")
    if seed < 0:
        raise InputError(f"seed = {seed}; give 0 or a positive number")
    chosen = LABORATORY[name]
    value = chosen.diffusion if diffusion is None else diffusion
    if not chosen.diffusion / MOST_CHANGE <= value <= chosen.diffusion * MOST_CHANGE:
        raise InputError(
            f"laplacian = {value:g}; the recording '{name}' shows D = {chosen.diffusion:g}, and "
            f"{MOST_CHANGE:g} times less or more at most"
        )
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    truth = {"case": name, "words": chosen.words, **chosen.write(folder, seed, value)}
    with atomic_write(folder / "truth.json") as file:
        file.write(json.dumps(truth, indent=2, ensure_ascii=False).encode() + b"\n")
    return folder / str(truth["file"])


def name_time(seconds: float) -> str:
    """Write a time as files are named after it: 10s, 1m, 1m30s, 2h."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{value}{unit}" for value, unit in ((hours, "h"), (minutes, "m"), (left, "s")) if value]
    return "".join(parts) or "0s"


def _write_deep(file: Path, u: Array, level: float, noise: float, rng: np.random.Generator) -> None:
    """Write a picture of 16 bits: ``level`` · u, with noise that grows with the root of the light."""
    grain = noise * np.sqrt(np.maximum(u, 0.02)) * rng.standard_normal(u.shape)
    tifffile.imwrite(file, np.clip(level * (u + grain) + 0.5, 0, 65535).astype(np.uint16))


def _axes(shape: tuple[int, int], pixel: float) -> tuple[Array, Array]:
    y, x = (_centred(n, pixel) for n in shape)
    return y[:, None], x[None, :]


def _centred(count: int, pixel: float) -> Array:
    """Return the middles of pixels, from the picture's centre."""
    return (np.arange(count, dtype=np.float64) + 0.5 - count / 2) * pixel


def _bleached_spot(folder: Path, seed: int, diffusion: float) -> dict[str, Any]:
    """Recover a bleached spot in a sheet that dims: u_t = DΔu, seen as g(t) f(x, y) u + dark."""
    rng = np.random.default_rng(seed)
    pixel, mobile, depth, radius, loss = 0.3185, 0.9, 0.7, 9.0, 4e-4
    times = [0, 3, 6, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 240, 300, 360]
    y, x = _axes((220, 260), pixel)
    light = 1 - 0.15 * (((y - 4) / 40) ** 2 + ((x + 6) / 45) ** 2)
    dark, pictures = 0.02, folder / "pictures"
    pictures.mkdir(exist_ok=True)
    squared = (y + 1.5) ** 2 + (x - 2.0) ** 2
    for time in times:
        variance = radius**2 / 4
        spread = variance + 2 * diffusion * time
        hole = mobile * variance / spread * np.exp(-squared / (2 * spread))
        hole = hole + (1 - mobile) * np.exp(-squared / (2 * variance))
        sheet = math.exp(-loss * time) * light * 0.6 * (1 - depth * hole) + dark
        _write_deep(pictures / f"{name_time(time)}.tif", sheet, DEEP, 0.01, rng)
    _write_deep(pictures / "prima.tif", light * 0.6 + dark, DEEP, 0.003, rng)
    _write_deep(pictures / "closed.tif", np.full_like(light, dark), DEEP, 0.01, rng)
    return {
        "file": "pictures",
        "observable": "bright",
        "scale": f"{pixel}um",
        "law": {"laplacian": diffusion},
        "times": times,
        "reference": "prima.tif",
        "dark": "closed.tif",
        "mobile_fraction": mobile,
        "bleaching_rate": loss,
        "light": [math.exp(-loss * time) for time in times],
        "drift": {"mean": [0.0, 0.0]},
        "arguments": f"--preset frap --reference prima.tif --dark closed.tif --scale {pixel}um --grid 60,71",
    }


def _entering_front(folder: Path, seed: int, diffusion: float) -> dict[str, Any]:
    """Let dye enter through the left edge of a still dish: u = c erfc(x / 2√(D(t + t₀))), drift none."""
    height, before, background = 0.75, 3.0, 0.08
    camera = Camera(size=(160, 240), frames=200, noise=0.01, crf=23, seed=seed)
    duration = 60.0
    x = np.arange(240) * camera.pixel

    def field(time: float) -> Array:
        # the average over a pixel, from the integral of erfc: ∫ erfc = z erfc z − exp(−z²)/√π
        width = 2 * math.sqrt(diffusion * (time + before))
        edges = np.append(x, x[-1] + camera.pixel) / width
        integral = edges * erfc(edges) - np.exp(-(edges**2)) / math.sqrt(math.pi)
        profile = np.diff(integral) * width / camera.pixel
        return np.asarray(background + height * np.broadcast_to(profile, (160, 240)))

    times = np.linspace(0.0, duration, camera.frames)
    film = render_pictures((field(float(t)) for t in times), folder, camera, duration)
    return {
        "file": film.name,
        "law": {"laplacian": diffusion},
        "drift": {"mean": [0.0, 0.0]},
        "duration": duration,
        "frames": camera.frames,
        "noise": 0.01,
        "background": background,
        "enters": "left",
        "boundary": "measured",
        "arguments": "",
    }


def _few_frames(folder: Path, seed: int, diffusion: float) -> dict[str, Any]:
    """Take twelve pictures of a spreading plume at irregular times, with a table of their times."""
    rng = np.random.default_rng(seed)
    case = make_case("A", coefficients={"laplacian": diffusion}, drift=(0.0, 0.0))
    times = [0.0, 1.5, 2.5, 4.0, 6.5, 8.0, 11.0, 15.0, 18.5, 24.0, 29.0, 34.0]
    pixel = 200.0 / 240
    axis = _centred(240, pixel)
    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    rows = ["file,time"]
    for k, u in enumerate(sample_case(case, axis, axis, (pixel, pixel), times)):
        name = f"plume-{k:02d}.tif"
        _write_deep(pictures / name, 1 - np.asarray(u, dtype=np.float64), DEEP, 0.01, rng)
        rows.append(f"{name},{times[k]:g}")
    (folder / "times.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return {
        **case.truth,
        "case": "few",
        "file": "pictures",
        "times": times,
        "white": DEEP,
        "arguments": "--times times.csv --set recording.white=60000",
    }


def _domed_light(folder: Path, seed: int, diffusion: float) -> dict[str, Any]:
    """Film a plume that spreads and decays under light that falls off like a dome from a point off-centre."""
    case = make_case("B", coefficients={"laplacian": diffusion}, drift=(0.0, 0.0), background=0.1)
    y, x = _axes((240, 240), 1 / 240)
    dome = 1 - 0.5 * ((y + 0.05) ** 2 + (x - 0.08) ** 2)
    pixel = 200.0 / 240
    axis = _centred(240, pixel)
    camera = Camera(size=(240, 240), frames=200, noise=0.01, crf=23, seed=seed)
    times = np.linspace(0.0, case.duration, camera.frames)
    fields = sample_case(case, axis, axis, (pixel, pixel), times)
    # filmed as light that is given off: the picture is u times the dome
    film = render_pictures((1 - dome * u for u in fields), folder, camera, case.duration)
    Image.fromarray(np.round(255 * dome).astype(np.uint8)).save(folder / "flat.png")
    return {
        **case.truth,
        "case": "dome",
        "file": film.name,
        "observable": "bright",
        "reference": "flat.png",
        "arguments": "--observable bright --reference flat.png",
    }


def _droplet(folder: Path, seed: int, diffusion: float) -> dict[str, Any]:
    """Let half a droplet recover: u_t = DΔu + k(1 − u) inside a circle that nothing passes, by Bessel modes."""
    radius, rate = 80.0, 0.01
    size, frames, duration = 240, 150, 150.0
    pixel = 200.0 / size
    y, x = _axes((size, size), pixel)
    r, angle = np.hypot(y, x), np.arctan2(y, x)
    inside = r <= radius
    modes = _bleached_half(radius, np.minimum(r, radius), angle)
    times = np.linspace(0.0, duration, frames)

    def field(time: float) -> Array:
        decays = [math.exp(-(diffusion * k2 + rate) * time) for k2, _ in modes]
        missing = sum(mode * decay for (_, mode), decay in zip(modes, decays, strict=True) if decay > NEGLIGIBLE)
        return np.where(inside, 0.85 * (1 - missing), 0.05)

    camera = Camera(size=(size, size), frames=frames, noise=0.01, crf=18, seed=seed)
    film = render_pictures((1 - field(float(t)) for t in times), folder, camera, duration)
    Image.fromarray(np.where(inside, 255, 0).astype(np.uint8)).save(folder / "mask.png")
    return {
        "file": film.name,
        "observable": "bright",
        "law": {"constant": 0.85 * rate, "u": -rate, "laplacian": diffusion},
        "drift": {"mean": [0.0, 0.0]},
        "mask": "mask.png",
        "boundary": "no_flux",
        "radius": radius,
        "frames": frames,
        "duration": duration,
        "noise": 0.01,
        "arguments": "--observable bright --mask mask.png --edges no_flux --drift none --grid 60,60",
    }


def _bleached_half(radius: float, r: Array, angle: Array) -> list[tuple[float, Array]]:
    """Expand what is bleached at t = 0, ½ − ½ tanh((x + 10)/12), in modes J_m(j′_mn r/R) cos mθ of a closed circle."""
    points, weights = np.polynomial.legendre.leggauss(60)
    rho, weight = (points + 1) / 2, weights * (points + 1) / 4  # ∫₀¹ … ρ dρ
    theta = (np.arange(64) + 0.5) * np.pi / 32
    start = 0.3 * (1 - np.tanh((radius * rho[:, None] * np.cos(theta) + 10.0) / 12.0))
    modes: list[tuple[float, Array]] = [(0.0, np.full_like(r, float((start.mean(axis=1) * weight).sum() * 2)))]
    for m in range(14):
        angular = (start * np.cos(m * theta)).mean(axis=1) * (1 if m == 0 else 2)
        for root in jnp_zeros(m, 14):
            shape = jv(m, root * rho)
            amplitude = float((angular * shape * weight).sum() / (shape**2 * weight).sum())
            if abs(amplitude) < NEGLIGIBLE:
                continue
            modes.append(((root / radius) ** 2, amplitude * jv(m, root * r / radius) * np.cos(m * angle)))
    return modes


def _line_profile(folder: Path, seed: int, diffusion: float) -> dict[str, Any]:
    """Record one line over time: two bands of dye that spread along a narrow channel, as a kymograph of 16 bits."""
    rng = np.random.default_rng(seed)
    pixel, count, frames, duration = 0.5, 400, 160, 60.0
    edges = (np.arange(count + 1) - count / 2) * pixel
    times = np.linspace(0.0, duration, frames)
    lines = np.full((frames, count), 0.1)
    for centre, sigma, mass in ((-18.0, 5.0, 8.0), (14.0, 7.0, 9.0)):
        for k, time in enumerate(times):
            width = math.sqrt(2 * (sigma**2 + 2 * diffusion * time))
            lines[k] += mass * np.diff(-erfc((edges - centre) / width) / 2) / pixel
    _write_deep(folder / "kymograph.tif", lines, DEEP, 0.01, rng)
    table = "\n".join(f"{k},{time:.6g}" for k, time in enumerate(times))
    (folder / "times.csv").write_text(f"row,time\n{table}\n", encoding="utf-8")
    return {
        "file": "kymograph.tif",
        "observable": "bright",
        "axes": "rows are times, columns positions",
        "law": {"laplacian": diffusion},
        "drift": {"mean": [0.0, 0.0]},
        "frame_rate": (frames - 1) / duration,
        "duration": duration,
        "scale": f"{pixel}um",
        "white": DEEP,
        "arguments": f"--kymograph rows --times times.csv --observable bright --scale {pixel}um "
        f"--set recording.white={DEEP:g}",
    }


LABORATORY: Mapping[str, Recording] = {
    entry.name: entry
    for entry in (
        Recording(
            "frap", "a bleached spot in a dimming sheet: 16-bit pictures at irregular times", 2.0, _bleached_spot
        ),
        Recording("front", "a still diffusion front that enters from the left edge", 4.0, _entering_front),
        Recording("few", "twelve pictures at irregular times, which a table gives", 1.5, _few_frames),
        Recording(
            "dome", "a plume given off light under a dome of brightness, with a flat-field picture", 1.2, _domed_light
        ),
        Recording("droplet", "a droplet whose half recovers, with an edge that nothing passes", 12.0, _droplet),
        Recording("profile", "one line over time, as a kymograph", 3.0, _line_profile),
    )
}
