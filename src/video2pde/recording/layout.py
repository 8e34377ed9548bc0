"""Where the field lies in the picture: crop, border, grid, extent and unit."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.machine import require_memory
from video2pde.recording.base import Header, Picture
from video2pde.settings import RecordingSettings

LONGER_SIDE = 200  # cells, and image units, on the longer side by default
FRAMES_AT_ONCE, CAMERA_COPIES = 64, 24
"""Frames of the field that are held in any case; bytes per camera pixel while one frame is reduced: the picture, its
crop, logarithms and samples."""
BORDER = 8
BORDER_FROM = 256  # camera pixels on the shorter side
SCALE = re.compile(r"^\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*([^\d\s.][^\s]*)\s*$")


@dataclass(frozen=True)
class Layout:
    """Fix the rectangle of camera pixels that becomes the field, and its grid.

    ``crop`` is (x0, y0, width, height) in camera pixels; ``border`` pixels go on each side of it.
    """

    crop: tuple[int, int, int, int]
    border: int
    grid: Grid
    notes: tuple[str, ...] = ()

    @property
    def inner(self) -> tuple[int, int, int, int]:
        """The rectangle (x0, y0, width, height) that is left after the border is cut off."""
        x0, y0, width, height = self.crop
        b = self.border
        return x0 + b, y0 + b, width - 2 * b, height - 2 * b

    def cut(self, picture: Picture) -> Picture:
        """Take the crop without its border."""
        return cut(picture, self.inner)

    def within(self, box: tuple[int, int, int, int]) -> Layout:
        """Keep the cells (y0, x0, height, width) alone, in the units and at the pitch of the whole."""
        row, column, ny, nx = box
        x0, y0, width, height = self.inner
        left, right = (round(edge * width / self.grid.nx) for edge in (column, column + nx))
        top, bottom = (round(edge * height / self.grid.ny) for edge in (row, row + ny))
        kept = (bottom - top) * self.grid.height / height, (right - left) * self.grid.width / width
        grid = replace(self.grid, ny=ny, nx=nx, height=kept[0], width=kept[1])
        return Layout((x0 + left, y0 + top, right - left, bottom - top), 0, grid, self.notes)


def cut(picture: Picture, box: tuple[int, int, int, int]) -> Picture:
    """Take the rectangle (x0, y0, width, height) of a picture, as a view."""
    x0, y0, width, height = box
    return picture[y0 : y0 + height, x0 : x0 + width]


def plan_layout(header: Header, settings: RecordingSettings) -> Layout:
    """Work out crop, border, grid and extent from the settings and the size of the picture."""
    crop = _check_crop(header, settings.crop)
    shorter = min(crop[2:])
    border = (BORDER if shorter >= BORDER_FROM else 0) if settings.border == "auto" else settings.border
    width, height = crop[2] - 2 * border, crop[3] - 2 * border
    if min(width, height) < 4:
        raise InputError(
            f"a border of {border} pixels leaves {max(width, 0)}×{max(height, 0)} of a crop of {crop[2]}×{crop[3]}; "
            "at least 4×4 pixels are needed"
        )
    notes: list[str] = []
    ny, nx = settings.grid or _default_grid(height, width)
    if ny > height or nx > width:
        notes.append(
            f"the grid of {ny}×{nx} is finer than the {height}×{width} camera pixels it covers; "
            "the added cells carry no information"
        )
    _require_room(header, (ny, nx))
    size_y, size_x, unit = _extent(settings, height, width, header, notes)
    return Layout(crop, border, Grid(ny, nx, size_y, size_x, unit, settings.pitch), tuple(notes))


def _require_room(header: Header, grid: tuple[int, int]) -> None:
    """Refuse pictures of which not even a few fit into memory; a field that does not fit is kept in a file."""
    needed = CAMERA_COPIES * float(header.height) * header.width + 4.0 * FRAMES_AT_ONCE * grid[0] * grid[1]
    require_memory(
        needed,
        f"frames of {header.width}×{header.height} pixels on a grid of {grid[0]}×{grid[1]}",
        "use a smaller grid (--grid) or a smaller crop (--crop)",
    )


def parse_scale(text: str) -> tuple[float, str]:
    """Read the size of a camera pixel, such as ``0.05mm``, as a number and its unit."""
    match = SCALE.match(text)
    if match is None or float(match[1]) <= 0:
        raise InputError(f"the scale '{text}' is not a positive size with a unit, such as 0.05mm or 1.3µm")
    unit = re.sub(r"^[uμ]m$", "µm", match[2])  # as it is typed on a keyboard, and the Greek letter instead of the sign
    return float(match[1]), unit


def _check_crop(header: Header, crop: tuple[int, int, int, int] | None) -> tuple[int, int, int, int]:
    if crop is None:
        return 0, 0, header.width, header.height
    x0, y0, width, height = crop
    if x0 < 0 or y0 < 0 or width < 1 or height < 1 or x0 + width > header.width or y0 + height > header.height:
        raise InputError(
            f"the crop x0, y0, width, height = {x0}, {y0}, {width}, {height} does not lie inside the frame of "
            f"{header.width}×{header.height} pixels"
        )
    return crop


def _default_grid(height: int, width: int) -> tuple[int, int]:
    longer = max(height, width)
    cells = min(LONGER_SIDE, longer)
    return max(4, round(cells * height / longer)), max(4, round(cells * width / longer))


def _extent(
    settings: RecordingSettings, height: int, width: int, header: Header, notes: list[str]
) -> tuple[float, float, str]:
    aspect = header.pixel_aspect
    if settings.scale is not None:
        size, unit = parse_scale(settings.scale)
        if settings.extent is not None:
            notes.append(f"the scale of {settings.scale} per camera pixel was used, the extent was not")
        return size * height, size * width * aspect, unit
    if settings.extent is not None:
        return (*settings.extent, "image units")
    if header.pixel is not None:
        size, unit = header.pixel
        notes.append(f"a pixel of {size:g} {unit} from the file's metadata; --scale overrides it")
        return size * height, size * width * aspect, unit
    longer = max(height, width * aspect)
    return LONGER_SIDE * height / longer, LONGER_SIDE * width * aspect / longer, "image units"
