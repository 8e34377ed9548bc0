"""Where a simulation starts: a frame of the film, a picture or an array, brought onto the law's grid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.files import require_regular
from video2pde.settings import RecordingSettings, Settings
from video2pde.using.modelfile import SavedModel

MOST_VALUES = 2**28
STAGE = "recording.npz"
"""How the file of the stage that read the film ends."""


@dataclass(frozen=True, eq=False)
class Start:
    """A first frame (y, x), its time in seconds of the film, and what it was taken from."""

    values: NDArray[np.float64]
    time: float
    origin: str


def find_start(
    model: SavedModel,
    model_path: Path,
    source: Path | None = None,
    frame: int | None = None,
    settings: Settings | None = None,
) -> Start:
    """Find the first frame of a simulation.

    Parameters
    ----------
    source : a film, a saved field (.npz), an array (.npy, of shape (y, x) or (t, y, x)) or a picture. None: the
        field in the run folder beside the model file, or else the film that the law was found in.
    frame : number of the frame, negative ones from the end; None: the first.
    settings : how a film is read; None: as the law's own film was.
    """
    from video2pde.recording.pictures import PICTURE_SUFFIXES

    number = 0 if frame is None else frame
    if source is None:
        return _take_own(model, model_path, number, settings)
    suffix = source.suffix.lower()
    if not source.exists():
        raise InputError(f"no such file to start from: {source}")
    require_regular(source)
    if suffix == ".npy":
        return _take_array(model, source, frame)
    if suffix == ".npz":
        return _take_frame(load_field(source, model.grid), number, str(source))
    if suffix in PICTURE_SUFFIXES and source.is_file() and suffix not in (".tif", ".tiff"):
        if frame is not None:
            raise InputError(f"{source} is one picture: leave --frame out")
        return _take_picture(model, source)
    return _take_frame(_read_film(model, source, settings), number, str(source))


def find_field(model_path: Path) -> Path | None:
    """Find the film's field in the run folder of a model file: a saved field, or the recording's stage."""
    folder = model_path if model_path.is_dir() else model_path.parent
    stages = sorted((folder / "stages").glob(f"*{STAGE}"))
    return next((path for path in (folder / "field.npz", *stages) if path.is_file()), None)


def load_field(path: Path, grid: Grid) -> Field:
    """Load a saved field, or the one in a recording's stage, and check that it is on the law's grid."""
    if path.parent.name == "stages" and path.name.endswith(STAGE):
        from video2pde.runs.archive import load_artefact

        loaded = getattr(load_artefact(path), "field", None)
        if not isinstance(loaded, Field):
            raise InputError(f"{path} holds no field; give a first frame with --from")
    else:
        loaded = Field.load(path)
    if loaded.grid.shape != grid.shape:
        raise InputError(f"{path} has a grid of {loaded.grid.shape}, the model one of {grid.shape}")
    return loaded


def _take_own(model: SavedModel, model_path: Path, number: int, settings: Settings | None) -> Start:
    beside = find_field(model_path)
    if beside is not None:
        return _take_frame(load_field(beside, model.grid), number, str(beside))
    film = Path(model.provenance.path) if model.provenance.path else None
    if film is None or not film.exists():
        raise InputError(
            f"there is no field beside {model_path} and the law's film is not at hand; "
            "give a first frame with --from (a film, a field .npz, an array .npy or a picture)"
        )
    return _take_frame(_read_film(model, film, settings), number, str(film))


def _read_film(model: SavedModel, film: Path, settings: Settings | None) -> Field:
    from video2pde.recording import read_field

    chosen = settings.recording if settings is not None else model.provenance.recording_settings()
    on_grid = chosen.model_copy(update={"grid": model.grid.shape})
    return read_field(film, on_grid)


def _take_frame(field: Field, number: int, origin: str) -> Start:
    if not -len(field) <= number < len(field):
        raise InputError(f"{origin} has {len(field)} frames, there is no frame {number}")
    index = number % len(field)
    return Start(field.values[index].astype(float), float(field.times[index]), f"frame {index} of {origin}")


def _take_array(model: SavedModel, source: Path, frame: int | None) -> Start:
    try:
        values = np.load(source, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise InputError(f"{source} cannot be read as an array ({str(error).splitlines()[0]})") from None
    if values.dtype.kind not in "fiub" or values.size > MOST_VALUES:
        raise InputError(f"{source} holds {values.size} values of type {values.dtype}; real numbers are needed")
    if values.ndim == 2 and frame is not None:
        raise InputError(f"{source} is one frame: leave --frame out")
    if values.ndim == 3:
        number = 0 if frame is None else frame
        if not -len(values) <= number < len(values):
            raise InputError(f"{source} has {len(values)} frames, there is no frame {number}")
        values = values[number]
    if values.ndim != 2 or values.shape != model.grid.shape:
        raise InputError(f"{source} has frames of shape {values.shape}, the law's grid is {model.grid.shape}")
    u0 = np.asarray(values, float)
    if not np.isfinite(u0).all():
        raise InputError(f"{source} has values that are not finite; a simulation cannot start from it")
    return Start(u0, model.drift.times[0], str(source))


def _take_picture(model: SavedModel, source: Path) -> Start:
    """Reduce a whole picture to the law's grid and make it u, as the law's film was: dark or bright."""
    from video2pde.recording.pictures import read_picture
    from video2pde.recording.resize import AreaResizer

    picture = read_picture(source)
    recording = model.provenance.recording_settings()
    if recording.observable == "absorbance":
        raise InputError(
            f"the law's u is an absorbance, which needs a reference; give {source} as an array of u (.npy)"
        )
    _require_aspect(picture.shape[0], picture.shape[1], model.grid, source)
    share = AreaResizer((picture.shape[0], picture.shape[1]), model.grid.shape)(picture) / _white(picture, recording)
    u0 = share if recording.observable == "bright" else 1.0 - share
    return Start(np.asarray(u0, float), model.drift.times[0], str(source))


def _white(picture: NDArray[Any], recording: RecordingSettings) -> float:
    if recording.white is not None:
        return recording.white
    # colours were averaged to floats of the same scale as 8-bit grey values
    return float(np.iinfo(picture.dtype).max) if picture.dtype.kind == "u" else 255.0


def _require_aspect(height: int, width: int, grid: Grid, source: Path) -> None:
    ratio = (height / width) / (grid.height / grid.width)
    if not 0.9 < ratio < 1.1:
        raise InputError(
            f"{source} is {width}×{height} pixels, the law's domain {grid.width:.4g}×{grid.height:.4g} {grid.unit}; "
            "crop the picture to the same shape"
        )
