"""When pictures were taken: from their names, from a table, or from the camera's own clock (EXIF).

A folder's times come from the first of these that answers: the table that was given (``file,time``), names such as
``10s``, ``1m30s`` or ``t0005``, and the EXIF time of each picture. All times are in seconds.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from video2pde.errors import InputError
from video2pde.files import require_regular

SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0, "d": 86400.0}
_UNIT = "ms|min|sec|hr|s|m|h|d"
_PART = re.compile(rf"(\d+(?:[.,]\d+)?)({_UNIT})", re.IGNORECASE)
_NAMED = re.compile(rf"(?:^|[\s_\-.(])((?:\d+(?:[.,]\d+)?(?:{_UNIT}))+)(?=$|[\s_\-.)])", re.IGNORECASE)
_COUNTED = re.compile(r"(?:^|[\s_\-.(])t[_\-]?(\d+)(?=$|[\s_\-.)])", re.IGNORECASE)
MOSTLY = 0.5
"""Share of a folder's pictures whose names must be times for the folder to be one of times."""
EXIF_IFD, ORIGINAL, SUBSECONDS, MODIFIED = 0x8769, 0x9003, 0x9291, 0x0132
MAKE, MODEL = 0x010F, 0x0110
EXIF_SUFFIXES = (".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".png")


@dataclass(frozen=True)
class Schedule:
    """Pictures in the order of their times, with what was left out and where the times come from.

    ``times``: seconds, one for each file; None: the pictures carry none. ``counted``: they count frames. ``tick``:
    resolution of the clock, s.
    """

    files: tuple[Path, ...]
    times: tuple[float, ...] | None
    left_out: tuple[Path, ...] = ()
    origin: str = ""
    tick: float = 0.0
    counted: bool = False


def time_in_name(stem: str) -> float | None:
    """Read a time such as ``10s``, ``1m30s``, ``2h`` or ``cell_250ms`` from a name without its suffix, s."""
    found: list[str] = _NAMED.findall(stem)
    if not found:
        return None
    parts: list[tuple[str, str]] = _PART.findall(found[-1])
    return sum(float(number.replace(",", ".")) * SECONDS[unit.lower()] for number, unit in parts)


def count_in_name(stem: str) -> float | None:
    """Read a count such as ``t0005`` from a name without its suffix."""
    found: list[str] = _COUNTED.findall(stem)
    return float(found[-1]) if found else None


def parse_time(text: str) -> float | None:
    """Read a time from a table: seconds, a time with units, a clock ``h:mm:ss``, or a date with a time of day."""
    plain = text.strip()
    try:
        return float(plain)
    except ValueError:
        pass
    if re.fullmatch(rf"(?:\d+(?:[.,]\d+)?\s*(?:{_UNIT})\s*)+", plain, re.IGNORECASE):
        return time_in_name(re.sub(r"\s+", "", plain))
    clock = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", plain)
    if clock:
        return 3600.0 * int(clock[1] or 0) + 60.0 * int(clock[2]) + float(clock[3])
    try:
        return datetime.fromisoformat(plain).timestamp()
    except ValueError:
        return None


def schedule_by_names(files: Sequence[Path]) -> Schedule | None:
    """Order pictures by the times in their names; None where most names are no times."""
    for read, origin in (
        (time_in_name, "the files' names"),
        (count_in_name, "the counts in the files' names (t0005: 5), taken as seconds unless --fps is given"),
    ):
        found = _read_all(files, lambda file, read=read: read(file.stem))  # type: ignore[misc]
        if found is not None:
            return replace(_in_order(files, found, origin), counted=read is count_in_name)
    return None


def _read_all(files: Sequence[Path], read: Callable[[Path], float | None]) -> dict[Path, float] | None:
    found = {file: time for file in files if (time := read(file)) is not None}
    return found if len(found) >= 2 and len(found) > MOSTLY * len(files) else None


def _in_order(files: Sequence[Path], found: Mapping[Path, float], origin: str, tick: float = 0.0) -> Schedule:
    order = sorted(found, key=lambda file: found[file])
    for before, after in pairwise(order):
        if found[after] <= found[before]:
            raise InputError(
                f"{before.name} and {after.name} have the same time, {found[after]:g} s, by {origin}; "
                "rename one of them, or give the times as a table (--times)"
            )
    rest = tuple(file for file in files if file not in found)
    return Schedule(tuple(order), tuple(found[file] for file in order), rest, origin, tick)


def schedule_by_table(files: Sequence[Path], table: Path) -> Schedule:
    """Order pictures by a table ``file,time``; pictures that it does not name are left out."""
    rows = read_table(table)
    if rows and rows[0][0] is None:
        raise InputError(f"{table} has no column 'file'; a folder needs a table with the columns file and time")
    by_name = {file.name: file for file in files} | {file.stem: file for file in files}
    found: dict[Path, float] = {}
    for name, time in rows:
        file = by_name.get(Path(str(name)).name)
        if file is None:
            raise InputError(f"{table} names {name}, which is not among the pictures of {files[0].parent}")
        found[file] = time
    if len(found) < 2:
        raise InputError(f"{table} gives the times of {len(found)} pictures; at least two are needed")
    return _in_order(files, found, f"the table {table}")


def read_table(table: Path) -> list[tuple[str | None, float]]:
    """Read (file, time in s) from a table with a heading; file is None where there is no such column."""
    try:
        require_regular(table)
        text = table.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the table of times {table}: {error}") from None
    try:
        kind = csv.Sniffer().sniff(text.splitlines()[0] if text.strip() else "", delimiters=",;\t")
    except csv.Error:
        kind = csv.excel
    rows = [row for row in csv.reader(text.splitlines(), kind) if any(cell.strip() for cell in row)]
    heading = [cell.strip().lower() for cell in rows[0]] if rows else []
    column = next((i for i, name in enumerate(heading) if re.match(r"(time|t)\b|time", name)), None)
    if column is None:
        raise InputError(f"{table} has no column 'time'; its first line must name the columns, such as file,time")
    names = next((i for i, name in enumerate(heading) if name in ("file", "filename", "name", "picture")), None)
    unit = re.search(rf"[\[(_ ]({_UNIT})[\])]?$", heading[column])
    scale = SECONDS[unit[1]] if unit else 1.0
    found = []
    for number, row in enumerate(rows[1:], start=2):
        time = parse_time(row[column]) if column < len(row) else None
        if time is None or not math.isfinite(time):
            raise InputError(
                f"{table}, line {number}: '{','.join(row)}' holds no time in the column '{rows[0][column]}'"
            )
        found.append((row[names].strip() if names is not None else None, scale * time))
    return found


def schedule_by_camera(files: Sequence[Path]) -> Schedule | None:
    """Order pictures by the time that the camera wrote into them; None where one has none or two have the same."""
    if any(file.suffix.lower() not in EXIF_SUFFIXES for file in files) or len(files) < 2:
        return None
    stamps: dict[Path, tuple[float, bool]] = {}
    for file in files:
        stamp = camera_time(file)
        if stamp is None:
            return None
        stamps[file] = stamp
    if len({time for time, _ in stamps.values()}) < len(files):
        return None
    first = min(time for time, _ in stamps.values())
    fine = all(exact for _, exact in stamps.values())
    found = {file: time - first for file, (time, _) in stamps.items()}
    return _in_order(files, found, "the camera's clock (EXIF)", 0.01 if fine else 1.0)


def camera_time(file: Path) -> tuple[float, bool] | None:
    """Read when a picture was taken (EXIF), s, and whether the clock gave fractions of a second."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as picture:
            exif = picture.getexif()
            details = exif.get_ifd(EXIF_IFD)
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError):
        return None
    text, fraction = details.get(ORIGINAL), str(details.get(SUBSECONDS, "")).strip()
    text = text if text is not None else exif.get(MODIFIED)
    if text is None:
        return None
    for form in ("%Y:%m:%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%m/%d/%Y %I:%M:%S.%f %p", "%Y%m%d %H:%M:%S.%f"):
        try:
            moment = datetime.strptime(str(text).strip("\0 "), form)
        except ValueError:
            continue
        part = float(f"0.{fraction}") if fraction.isdigit() else 0.0
        return moment.timestamp() + part, bool(part) or fraction.isdigit() or "%f" in form
    return None


def camera_name(file: Path) -> str:
    """Return the camera that a picture names (EXIF); empty: none."""
    from PIL import Image, UnidentifiedImageError

    if file.suffix.lower() not in EXIF_SUFFIXES:
        return ""
    try:
        with Image.open(file) as picture:
            exif = picture.getexif()
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError):
        return ""
    return str(exif.get(MODEL) or exif.get(MAKE) or "").strip("\0 ")
