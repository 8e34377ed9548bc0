"""Compare reading a 1080p film into a field with merely decoding it to grey.

Run: python benchmarks/recording.py [--frames 1009] [--film FILE]
Prints both times, their ratio (the limit is 1.3), the time that registration of a film from a camera that shakes adds
(the limit is twice decoding) and the peak memory of each, measured in processes of their own.
Both sides decode with the same threads. ``decode to grey`` converts each frame with PyAV's ``to_ndarray("gray")``;
``decode only`` never looks at a pixel and is shown as the floor.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 1.3
SHAKE_LIMIT = 2.0
SHAKE = 3.0  # pixels, rms
CROP = (450, 0, 1080, 1080)
NAMES = {
    "only": "decode only",
    "grey": "decode to grey",
    "field": "film to field",
    "shaken": "film to field, camera shaking",
}


def render(path: Path, frames: int, shake: float = 0.0) -> None:
    """Write a 1920×1080 H.264 film of a growing blot with a little camera noise; ``shake`` in pixels."""
    import av

    rng = np.random.default_rng(1)
    noise = [rng.normal(0, 1.0, (1080, 1920)).astype(np.float32) for _ in range(8)]
    y, x = np.mgrid[:1080, :1920].astype(np.float32)
    shifts = shake * rng.normal(0, 1, (frames, 2))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"preset": "ultrafast", "crf": "20"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 30)
        for k in range(frames):
            distance = (x - 990 - np.float32(shifts[k, 1])) ** 2 + (y - 540 - np.float32(shifts[k, 0])) ** 2
            width = 2 * (100 + 0.15 * k) ** 2
            luma = 200 - 150 * np.exp(-distance / width) + noise[k % 8]
            planes = np.full((1620, 1920), 128, dtype=np.uint8)
            planes[:1080] = luma.round()
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.pts = k
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def decode(path: Path, grey: bool) -> int:
    """Decode all frames, to grey if asked."""
    import av

    count = 0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            if grey:
                frame.to_ndarray(format="gray")
            count += 1
    return count


def reduce(path: Path) -> int:
    """Read the film into a field, with all checks."""
    from video2pde.recording import read_recording
    from video2pde.settings import RecordingSettings

    return len(read_recording(path, RecordingSettings(crop=CROP, border=8, grid=(200, 200))).field)


def measure(task: str, path: Path, warm: Path) -> None:
    """Time one task after warming it up on a short film, and print time and memory as JSON."""
    run = {"only": lambda p: decode(p, False), "grey": lambda p: decode(p, True)}.get(task, reduce)
    run(warm)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, start_cpu = time.perf_counter(), time.process_time()
    count = run(path)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = {"peak_mb": peak / 1024, "extra_mb": (peak - base) / 1024}
    print(json.dumps({"frames": count, "seconds": seconds, "cpu": cpu, **memory}))


def compare(frames: int = 1009, film: Path | None = None, repeat: int = 3) -> dict[str, dict[str, float]]:
    """Render the films if need be and measure each task in processes of their own; the fastest of ``repeat`` counts."""
    best: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.mp4"
        render(warm, 24, SHAKE)
        chosen = film or Path(folder) / "film.mp4"
        if film is None:
            render(chosen, frames)
        shaken = Path(folder) / "shaken.mp4"
        render(shaken, frames, SHAKE)
        for _ in range(repeat):
            for task in NAMES:
                which = shaken if task == "shaken" else chosen
                command = [sys.executable, __file__, "--task", task, "--film", str(which), "--warm", str(warm)]
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                if task not in best or found["seconds"] < best[task]["seconds"]:
                    best[task] = found
    return best


def run() -> list[dict[str, Any]]:
    """Measure the film of the paper's size; give rows of name, value and unit."""
    best = compare()
    rows: list[dict[str, Any]] = []
    for task, found in best.items():
        rows.append(
            {"name": f"{NAMES[task]}, {found['frames']:.0f} frames of 1080p", "value": found["seconds"], "unit": "s"}
        )
        rows.append({"name": f"{NAMES[task]}, peak memory", "value": found["peak_mb"], "unit": "MB"})
    ratio = best["field"]["seconds"] / best["grey"]["seconds"]
    added = (best["shaken"]["seconds"] - best["field"]["seconds"]) / best["grey"]["seconds"]
    return [
        *rows,
        {"name": "film to field / decode to grey", "value": ratio, "unit": "×", "limit": LIMIT},
        {"name": "registration / decode to grey", "value": added, "unit": "×", "limit": SHAKE_LIMIT},
    ]


def main() -> int:
    """Measure, print, and compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1009)
    parser.add_argument("--film", type=Path)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    parser.add_argument("--task", choices=tuple(NAMES), help=argparse.SUPPRESS)
    parser.add_argument("--warm", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        measure(options.task, options.film, options.warm)
        return 0
    best = compare(options.frames, options.film, options.repeat)
    for task, found in best.items():
        print(
            f"{NAMES[task]:15s} {found['frames']:5.0f} frames  {found['seconds']:6.2f} s  "
            f"{found['cpu']:6.2f} s of CPU  "
            f"peak {found['peak_mb']:5.0f} MB ({found['extra_mb']:+.0f} MB during the run)"
        )
    ratio = best["field"]["seconds"] / best["grey"]["seconds"]
    cpu = best["field"]["cpu"] / best["grey"]["cpu"]
    print(f"film to field / decode to grey = {ratio:.2f} (limit {LIMIT}), in CPU time {cpu:.2f}")
    added, added_cpu = ((best["shaken"][key] - best["field"][key]) / best["grey"][key] for key in ("seconds", "cpu"))
    print(f"registration / decode to grey = {added:.2f} (limit {SHAKE_LIMIT}), in CPU time {added_cpu:.2f}")
    return 0 if ratio <= LIMIT and added <= SHAKE_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
