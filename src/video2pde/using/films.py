"""Simulations as files: arrays, films (H.264), GIF and a strip of pictures."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.files import atomic_path, atomic_write
from video2pde.using.ensemble import Ensemble

Frames = NDArray[Any]
SUFFIXES = (".npy", ".npz", ".mp4", ".gif", ".png")
SHORTEST_SIDE = 360
"""Pixels: small fields are enlarged to about this size in films and pictures."""
STRIP = 6
BLACK, WHITE = 16, 235
LIMITED, BT709 = 1, 1


def write_simulation(
    path: Path, times: NDArray[np.float64], values: Frames, *, dark: bool = True, ensemble: Ensemble | None = None
) -> Path:
    """Write frames (t, y, x) in the form that the file's name asks for, whole or not at all.

    ``.npy``: the frames (the mean of an ensemble). ``.npz``: ``times`` and ``values``, or ``times``, ``mean``, ``low``
    and ``high``. ``.mp4``, ``.gif``: a film at the pace of the times, u dark on white where the law's film was.
    ``.png``: a strip of six moments with a scale, and an ensemble's band below.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"a simulation cannot be written as '{path.name}'; use {', '.join(SUFFIXES)}")
    if suffix == ".npy":
        with atomic_write(path) as file:
            np.save(file, values)
    elif suffix == ".npz":
        arrays: dict[str, Any] = {"values": values} if ensemble is None else _band(ensemble)
        with atomic_write(path) as file:
            np.savez_compressed(file, times=times, **arrays)
    elif suffix == ".png":
        _write_strip(path, times, values, ensemble)
    else:
        levels = _grey_levels(values, dark)
        pace = Fraction((len(times) - 1) / max(float(np.ptp(times)), 1e-9)).limit_denominator(1000)
        writer = _write_film if suffix == ".mp4" else _write_gif
        with atomic_path(path) as temporary:
            writer(temporary, levels, min(max(pace, Fraction(1, 10)), Fraction(60)))
    return path


def _band(ensemble: Ensemble) -> dict[str, Any]:
    return {"mean": ensemble.mean, "low": ensemble.low, "high": ensemble.high}


def _grey_levels(values: Frames, dark: bool) -> NDArray[np.uint8]:
    """Map u from [0, 1], or from its own range where it leaves that, to 8 bits, enlarged by whole pixels."""
    low, high = min(0.0, float(values.min())), max(1.0, float(values.max()))
    share = (values - low) / (high - low)
    levels = np.rint(255 * (1 - share if dark else share)).astype(np.uint8)
    times = max(1, round(SHORTEST_SIDE / min(levels.shape[1:])))
    return np.repeat(np.repeat(levels, times, axis=1), times, axis=2)


def _write_film(path: Path, levels: NDArray[np.uint8], rate: Fraction) -> None:
    import av
    from av.video.frame import VideoFrame

    # H.264 with halved colour planes needs even sides
    even = levels[:, : levels.shape[1] // 2 * 2, : levels.shape[2] // 2 * 2]
    _, height, width = even.shape
    luma = np.rint(BLACK + (WHITE - BLACK) / 255.0 * even).astype(np.uint8)
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=rate, options={"crf": "16", "preset": "fast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.time_base = 1 / rate
        stream.codec_context.color_range = LIMITED
        stream.codec_context.colorspace = BT709
        grey = np.full((height // 2, width), 128, np.uint8)
        for index, picture in enumerate(luma):
            frame = VideoFrame.from_ndarray(np.concatenate([picture, grey]), format="yuv420p")
            frame.color_range, frame.colorspace = LIMITED, BT709
            frame.pts, frame.time_base = index, 1 / rate
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _write_gif(path: Path, levels: NDArray[np.uint8], rate: Fraction) -> None:
    from PIL import Image

    # GIF counts in hundredths of a second, and players refuse less than two
    duration = max(20, round(100 / rate) * 10)
    pictures = [Image.fromarray(frame, mode="L") for frame in levels]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=duration, loop=0)


def _write_strip(path: Path, times: NDArray[np.float64], values: Frames, ensemble: Ensemble | None) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from video2pde.report import style

    shown = np.unique(np.round(np.linspace(0, len(times) - 1, STRIP)).astype(int))
    rows: list[tuple[str, Frames, str]] = [("u", values[shown], style.SEQUENTIAL)]
    if ensemble is not None:
        rows.append(("width of the band", (ensemble.high - ensemble.low)[shown], "magma"))
    with style.apply():
        figure = Figure(figsize=(1.75 * len(shown) + 0.8, 1.55 * len(rows) + 0.3))
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(rows), len(shown), squeeze=False)
        for line, (label, frames, colours) in zip(axes, rows, strict=True):
            low, high = float(frames.min()), float(frames.max())
            for axis, frame, index in zip(line, frames, shown, strict=True):
                picture = axis.imshow(frame, cmap=colours, vmin=low, vmax=max(high, low + 1e-12))
                axis.set(xticks=[], yticks=[], title=f"t = {times[index]:.3g} s" if label == "u" else "")
            figure.colorbar(picture, ax=list(line), label=label, shrink=0.9)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="png")
