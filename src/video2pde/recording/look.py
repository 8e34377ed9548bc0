"""Look at a recording before anything is run: three frames, the crop box, and a suggestion for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.files import atomic_path
from video2pde.progress import Progress
from video2pde.recording.base import DamagedError, Header, Picture, Recording
from video2pde.recording.layout import plan_layout
from video2pde.recording.resize import AreaResizer
from video2pde.recording.seen import Seen
from video2pde.recording.source import open_recording
from video2pde.settings import RecordingSettings, Settings

Box = tuple[int, int, int, int]
LONGER_SIDE = 480  # pixels of a preview frame
MOST = 48  # frames compared
MARGIN = 0.12  # of the box, added on each side
CHANGED = 0.1  # of the strongest change above the quietest tenth: what counts as part of it


@dataclass(frozen=True, eq=False)
class Preview:
    """Hold the outcome of a look at a recording.

    ``crop``: the rectangle (x0, y0, width, height) given or suggested, camera pixels. ``frames``: first, middle
    and last frame, reduced, as intensities. ``times``: theirs, in ``time_unit`` (s, or frames where the
    recording has no times).
    """

    path: Path
    crop: Box
    suggested: bool
    header: Header
    count: int
    times: tuple[float, float, float]
    time_unit: str
    frames: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
    picture: Path | None = None
    notes: tuple[str, ...] = ()


def preview(
    path: str | os.PathLike[str],
    settings: RecordingSettings | Settings | None = None,
    out_png: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Preview:
    """Write one picture with first, middle and last frame and the crop box; suggest a crop if none is given.

    Parameters
    ----------
    path : the recording.
    settings : crop, frames and times are taken from them. None: the defaults.
    out_png : where the picture is written. None: nowhere.
    progress : called with the number of frames read and the number expected.

    Returns
    -------
    Three frames with their times, and the crop.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> film = pathlib.Path(tempfile.mkdtemp()) / "film.npy"
    >>> np.save(film, (255 * vp.example_field().values.clip(0, 1)).astype(np.uint8))
    >>> preview(film, vp.load_settings(overrides={"recording.fps": 7.4})).count
    60
    """
    chosen = settings.recording if isinstance(settings, Settings) else settings or RecordingSettings()
    recording = Seen(open_recording(Path(path), chosen), chosen)
    header = recording.header
    layout = plan_layout(header, chosen)  # refuses a crop outside the frame before anything is read
    look = _Look(recording, chosen)
    look.run(progress)
    crop = chosen.crop or _suggest(look.stack(), header)
    times, frames = look.three()
    target = None if out_png is None else Path(out_png)
    result = Preview(
        path=recording.path,
        crop=crop if chosen.crop is None else layout.crop,
        suggested=chosen.crop is None,
        header=header,
        count=look.count,
        times=times,
        time_unit="s" if header.timed or chosen.fps is not None else "frames",
        frames=frames,
        picture=target,
        notes=tuple(look.notes),
    )
    if target is not None:
        from video2pde.recording.preview_figure import draw_preview

        figure = draw_preview(result)
        with atomic_path(target) as temporary:
            figure.savefig(temporary, format="png", dpi=120)
    return result


def suggest_crop(
    path: str | os.PathLike[str], settings: RecordingSettings | Settings | None = None, progress: Progress | None = None
) -> Box:
    """Return the rectangle (x0, y0, width, height) in camera pixels where the recording changes, with a margin."""
    chosen = settings.recording if isinstance(settings, Settings) else settings or RecordingSettings()
    return preview(path, chosen.model_copy(update={"crop": None}), None, progress).crop


class _Look:
    """Read the selected frames, keeping up to ``MOST`` small ones and the very last."""

    def __init__(self, recording: Recording, settings: RecordingSettings) -> None:
        self._recording, self._settings = recording, settings
        header = recording.header
        shrink = min(1.0, LONGER_SIDE / max(header.height, header.width))
        small = (max(1, round(header.height * shrink)), max(1, round(header.width * shrink)))
        self._resizer = AreaResizer((header.height, header.width), small)
        self._stride = max(1, (header.frames or 1) // (settings.every * MOST // 2))
        self._kept: list[tuple[int, float, NDArray[np.float32]]] = []
        self.count = 0
        self.notes: list[str] = list(header.notes)

    def run(self, progress: Progress | None) -> None:
        settings, header = self._settings, self._recording.header
        last: tuple[float, Picture] | None = None
        try:
            for index, (recorded, picture, _) in enumerate(self._recording.frames()):
                if progress is not None:
                    progress(index + 1, header.frames)
                if index >= settings.first and (index - settings.first) % settings.every == 0:
                    time = index / settings.fps if settings.fps else recorded
                    last = (time if np.isfinite(time) else float(index), picture)
                    if self.count % self._stride == 0:
                        self._keep(*last)
                    self.count += 1
                if index + 1 == settings.stop:
                    break
        except DamagedError as error:
            if error.readable == 0:
                raise
            self.notes.append(str(error).split(";")[0])
        if last is None:
            raise InputError(f"no frame of {self._recording.path} is selected by start={settings.first}")
        if self._kept[-1][0] != self.count - 1:
            self.count -= 1
            self._keep(*last)
            self.count += 1

    def _keep(self, time: float, picture: Picture) -> None:
        header = self._recording.header
        reduced = ((self._resizer(picture) - header.black) * header.gain).astype(np.float32)
        self._kept.append((self.count, time, reduced))
        if len(self._kept) > 2 * MOST:
            self._stride *= 2
            self._kept = [item for item in self._kept if item[0] % self._stride == 0]

    def stack(self) -> NDArray[np.float32]:
        return np.stack([frame for _, _, frame in self._kept])

    def three(
        self,
    ) -> tuple[tuple[float, float, float], tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]]:
        first, last = self._kept[0], self._kept[-1]
        middle = min(self._kept, key=lambda item: abs(item[0] - self.count / 2))
        return (first[1], middle[1], last[1]), (first[2], middle[2], last[2])


def _suggest(stack: NDArray[np.float32], header: Header) -> Box:
    """Bound the pixels whose values change in time, with a margin; the whole picture if none stand out."""
    from scipy.ndimage import gaussian_filter, label

    change = gaussian_filter(stack.std(axis=0, dtype=np.float64), 2.0)
    floor, peak = float(np.percentile(change, 10)), float(change.max())
    if peak - floor <= 1e-6 * max(abs(float(stack.max())), 1e-30):
        return 0, 0, header.width, header.height
    changed = change > floor + CHANGED * (peak - floor)
    regions, count = label(changed)
    weights = np.array([change[regions == k].sum() for k in range(1, count + 1)])
    main = np.isin(regions, 1 + np.nonzero(weights >= 0.1 * weights.max())[0])
    rows, columns = np.nonzero(main)
    scale_y, scale_x = header.height / stack.shape[1], header.width / stack.shape[2]
    x0, width = _widen(columns.min() * scale_x, (columns.max() + 1) * scale_x, header.width)
    y0, height = _widen(rows.min() * scale_y, (rows.max() + 1) * scale_y, header.height)
    return x0, y0, width, height


def _widen(low: float, high: float, size: int) -> tuple[int, int]:
    """Add the margin, stay inside the picture, and return start and length in whole pixels."""
    margin = MARGIN * (high - low)
    start = max(0, int(np.floor(low - margin)))
    end = min(size, int(np.ceil(high + margin)))
    return start, end - start
