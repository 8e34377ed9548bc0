"""One artefact in one ``.npz`` file: ``meta.json``, ``tree.json``, and the arrays ``0.npy``, ``1.npy``, …

The same artefact gives the same bytes. Members are stored uncompressed, which also means that a file from
elsewhere cannot unpack to more than its own size, and that large arrays are mapped instead of read (``zipped``).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from video2pde.errors import InputError
from video2pde.files import atomic_write, require_regular
from video2pde.runs.codec import decode, encode
from video2pde.zipped import read_array, write_array

FORMAT = 1
EPOCH = (1980, 1, 1, 0, 0, 0)  # the archive's date of every member, so that equal artefacts are equal files


def save_artefact(path: Path, value: Any, meta: Mapping[str, Any] | None = None) -> Path:
    """Write an artefact, with ``meta`` (plain JSON values) beside it, whole or not at all."""
    tree, arrays = encode(value)
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write_json(archive, "meta.json", {**(meta or {}), "format": FORMAT})
        _write_json(archive, "tree.json", tree)
        for number, array in enumerate(arrays):
            write_array(archive, f"{number}.npy", array)
    return path


def load_artefact(path: Path) -> Any:
    """Read an artefact that ``save_artefact`` wrote; refuse every other file."""
    with _opened(path) as archive:
        tree = _read_json(archive, "tree.json")
        count = sum(info.filename.endswith(".npy") for info in archive.infolist())
        return decode(tree, [read_array(archive, f"{number}.npy") for number in range(count)])


def read_meta(path: Path) -> dict[str, Any]:
    """Read what was written beside an artefact, without the artefact itself."""
    with _opened(path) as archive:
        return _read_meta(archive)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive for reading; anything that is wrong with it ends as one line."""
    try:
        require_regular(path)
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED:
                    raise InputError(f"{info.filename} is compressed")
            version = _read_meta(archive)["format"]
            if version != FORMAT:
                raise InputError(f"it has format {version!r}, this version of video2pde reads {FORMAT}")
            yield archive
    except FileNotFoundError:
        raise InputError(f"no such artefact: {path}") from None
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path} is not an artefact written by video2pde ({reason[:200]})") from None


def _read_meta(archive: zipfile.ZipFile) -> dict[str, Any]:
    meta = _read_json(archive, "meta.json")
    if not isinstance(meta, dict):
        raise InputError("meta.json holds no names and values")
    return meta


def _write_json(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    archive.writestr(zipfile.ZipInfo(name, EPOCH), text)


def _read_json(archive: zipfile.ZipFile, name: str) -> Any:
    return json.loads(archive.read(name))
