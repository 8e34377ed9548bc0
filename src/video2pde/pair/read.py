"""Two fields from a recording: two of its channels, two arrays of a file, or two recordings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.pair.fields import load_arrays, Pair
from video2pde.progress import Progress
from video2pde.recording.read import read_recording
from video2pde.recording.source import FILM_SUFFIXES, hash_recording, open_recording
from video2pde.settings import RecordingSettings, Settings

ALONE: dict[str, tuple[Any, Any]] = {
    "frames": ("auto", "all"),
    "objects": ("auto", "none"),
    "stabilise": ("auto", "none"),
    "illumination": ("auto", "none"),
}
"""Settings that look at the picture for themselves: what they do to one channel they might not do to the other."""


@dataclass(frozen=True, eq=False)
class PairRecording:
    """Hold both fields, with what was noticed while they were read."""

    pair: Pair
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def is_pair(settings: Settings) -> bool:
    """Tell whether two fields are asked for."""
    return settings.recording.channels is not None or settings.recording.second is not None


def read_pair(path: str | Path, settings: Settings, progress: Progress | None = None) -> PairRecording:
    """Read two fields of a recording.

    Parameters
    ----------
    path : a recording with two channels, an ``.npz`` file with two arrays, or that of the first field.
    settings : those of the recording: ``channels``, or ``second``.
    progress : called with the frames read and in all.

    Returns
    -------
    Both fields, on one grid and at the same times.
    """
    source, chosen = Path(path), settings.recording
    if chosen.second is not None and chosen.channels is not None:
        raise InputError("recording.channels and recording.second are two ways to give a second field; give one")
    if chosen.channels is not None and source.suffix.lower() == ".npz":
        pair = load_arrays(source, (str(chosen.channels[0]), str(chosen.channels[1])))
        return PairRecording(_select(pair, chosen), (), ("two arrays, taken as they are",))
    if chosen.channels is not None:
        if chosen.channels[0] == chosen.channels[1]:
            raise InputError(f"recording.channels names {chosen.channels[0]!r} twice; two fields need two channels")
        places: list[tuple[Path, dict[str, Any]]] = [(source, {"channel": name}) for name in chosen.channels]
        names = (str(chosen.channels[0]), str(chosen.channels[1]))
    else:
        places, names = [(source, {}), (Path(str(chosen.second)), {})], (source.stem, Path(str(chosen.second)).stem)
    held = {key: after for key, (before, after) in ALONE.items() if getattr(chosen, key) == before}
    fields, warnings, notes = list[Field](), list[str](), list[str]()
    for (place, own), name in zip(places, names, strict=True):
        alone = chosen.model_copy(update={**held, **own, "channels": None, "second": None})
        found = read_recording(place, alone, progress)
        fields.append(_as_encoded(found.field, place))
        warnings += [f"{name}: {text}" for text in found.warnings]
        notes += [f"{name}: {text}" for text in found.field.provenance.notes]
    return PairRecording(Pair(fields[0], fields[1], names), tuple(warnings), tuple(notes))


def _as_encoded(field: Field, place: Path) -> Field:
    """Say of a film that an encoder was at work, even one that made no frame from those around it."""
    if place.suffix.lower() not in FILM_SUFFIXES or field.encoding is None or field.encoding.b_frames is not None:
        return field
    return replace(field, encoding=replace(field.encoding, b_frames=np.zeros(len(field), bool)))


def _select(pair: Pair, settings: RecordingSettings) -> Pair:
    """Take the frames that the settings ask for; other settings of a film do not apply to arrays."""
    selected = slice(settings.first, settings.stop, settings.every)
    if len(range(*selected.indices(len(pair)))) < 2:
        raise InputError(f"start, stop and every select fewer than two of the {len(pair)} frames")
    return replace(pair, u=pair.u.frames(selected), w=pair.w.frames(selected))


def hash_pair(path: Path, settings: Settings) -> str:
    """Hash all that is read: the recording, and the second one where there is one."""
    chosen = settings.recording.model_copy(update={"channels": None, "second": None})
    files = [path] + ([] if settings.recording.second is None else [Path(settings.recording.second)])
    hashes = [hash_recording(open_recording(file, chosen), chosen) for file in files]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
