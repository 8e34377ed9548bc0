"""Grid, windows and field: positions, splits, refusals, and a lossless way to disk and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.field import Field, Grid, Provenance, Windows
from video2pde.files import atomic_write

GRID = Grid(4, 5, 8.0, 20.0, "mm")
TIMES = np.linspace(1.0, 2.0, 6)


def make_field(**keys: object) -> Field:
    values = np.random.default_rng(0).random((6, 4, 5), dtype=np.float32)
    return Field(**{"values": values, "times": TIMES, "grid": GRID, **keys})  # type: ignore[arg-type]


def test_cells_cover_the_rectangle() -> None:
    assert (GRID.dy, GRID.dx) == (2.0, 4.0)
    assert GRID.x == pytest.approx([2, 6, 10, 14, 18])
    assert GRID.y == pytest.approx([1, 3, 5, 7])


def test_nodes_lie_on_the_edges() -> None:
    grid = replace(GRID, pitch="nodes")
    assert grid.dx == 5.0
    assert grid.x == pytest.approx([0, 5, 10, 15, 20])


def test_windows_are_chronological_and_complete() -> None:
    windows = Windows.split(1009)
    assert (windows.train, windows.validation, windows.test) == (slice(0, 605), slice(605, 807), slice(807, 1009))
    with pytest.raises(InputError, match="too few"):
        Windows.split(5)


def test_field_is_read_only_and_leaves_the_callers_array_alone() -> None:
    values = np.zeros((6, 4, 5), np.float32)
    field = make_field(values=values)
    with pytest.raises(ValueError, match="read-only"):
        field.values[0, 0, 0] = 1
    values[0, 0, 0] = 1


def test_timing() -> None:
    field = make_field()
    assert field.dt == pytest.approx(0.2)
    assert field.duration == pytest.approx(1.0)
    part = field.frames(slice(2, 5))
    assert len(part) == 3
    assert part.times[0] == pytest.approx(1.4)
    with pytest.raises(InputError, match="at least two frames"):
        _ = field.frames(slice(0, 1)).dt


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"values": np.zeros((6, 5, 4))}, "shape"),
        ({"times": TIMES[:5]}, "5 times for 6 frames"),
        ({"times": TIMES[::-1]}, "must increase"),
        ({"mask": np.ones((5, 4), bool)}, "mask has shape"),
        ({"mask": np.zeros((4, 5), bool)}, "mask is empty"),
    ],
)
def test_inconsistent_fields_are_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_field(**keys)


def test_save_and_load_lose_nothing(tmp_path: Path) -> None:
    mask = np.zeros((4, 5), bool)
    mask[1:3, 1:4] = True
    origin = Provenance("film.mp4", "abc", {"crop": [1, 2, 3, 4]}, ("a note",))
    field = make_field(mask=mask, recorded_times=TIMES + 0.01, provenance=origin)
    back = Field.load(field.save(tmp_path / "field.npz"))
    assert np.array_equal(back.values, field.values)
    assert np.array_equal(back.times, field.times)
    assert np.array_equal(back.mask, mask)
    assert np.array_equal(back.recorded_times, TIMES + 0.01)
    assert (back.grid, back.provenance) == (field.grid, origin)
    plain = Field.load(make_field().save(tmp_path / "plain.npz"))
    assert plain.mask is None
    assert plain.recorded_times is None


def test_files_that_are_not_fields_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such field file"):
        Field.load(tmp_path / "missing.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError, match="not a field"):
        Field.load(tmp_path / "text.npz")
    with pytest.raises(InputError, match="cannot write"):
        make_field().save(tmp_path / "no" / "folder.npz")


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "file.bin"
    target.write_bytes(b"before")

    def fail() -> None:
        with atomic_write(target) as file:
            file.write(b"half")
            raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        fail()
    assert target.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [target]


def test_netcdf_holds_units(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    pytest.importorskip("h5py")
    path = make_field().to_netcdf(tmp_path / "field.nc")
    with xarray.open_dataarray(path, engine="h5netcdf") as array:
        assert array.dims == ("time", "y", "x")
        assert array.x.attrs["units"] == "mm"
        assert np.array_equal(array.values, make_field().values)


def test_repr_says_what_it_is() -> None:
    assert "6 frames of 4×5, 1 s, 8×20 mm" in repr(make_field())
