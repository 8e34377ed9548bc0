"""Arrays in archives: mapped where they are large, read where they lie anywhere, refused where they are damaged."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.runs.archive import load_artefact, save_artefact
from video2pde.zipped import let_go, MAPPED, read_array, STEP, write_array

LARGE = np.arange(MAPPED // 4 + 7, dtype=np.float32)
mapping = pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is mapped")


def is_mapped(array: np.ndarray) -> bool:
    base = array.base
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap)


def write(path: Path, **arrays: np.ndarray) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            write_array(archive, f"{name}.npy", array)
    return path


def read(path: Path, name: str) -> np.ndarray:
    with zipfile.ZipFile(path) as archive:
        return read_array(archive, f"{name}.npy")


@mapping
@pytest.mark.parametrize("name", ["a", "values", "a_rather_long_name_for_an_array"])
def test_a_large_array_is_mapped_wherever_it_lies(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.npz", small=np.arange(5), **{name: LARGE.reshape(-1, 1)}, other=LARGE[::2])
    found = read(path, name)
    assert is_mapped(found)
    assert found.flags.aligned
    assert not found.flags.writeable
    assert found.ctypes.data % STEP == 0
    np.testing.assert_array_equal(found[:, 0], LARGE)
    assert not is_mapped(read(path, "small"))


@mapping
def test_a_mapped_array_outlives_the_file_that_replaces_it(tmp_path: Path) -> None:
    path = save_artefact(tmp_path / "01-x.npz", LARGE)
    found = load_artefact(path)
    save_artefact(path, -LARGE)
    np.testing.assert_array_equal(found, LARGE)
    np.testing.assert_array_equal(load_artefact(path), -LARGE)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells what of a file is held")
def test_pages_of_a_mapped_array_are_let_go_and_come_again(tmp_path: Path) -> None:
    def held() -> int:
        """Return the kilobytes of the file that this process holds."""
        parts = Path("/proc/self/smaps").read_text(encoding="utf-8").split(str(path))[1:]
        return sum(int(part.split("Rss:")[1].split()[0]) for part in parts)

    path = write(tmp_path / "a.npz", values=LARGE)
    found = read(path, "values")
    total = float(found.sum(dtype=float))
    assert held() > LARGE.nbytes / 1024 / 2
    let_go()
    assert held() < LARGE.nbytes / 1024 / 4
    assert float(found.sum(dtype=float)) == total
    assert held() > LARGE.nbytes / 1024 / 2


def test_numpy_reads_them_and_equal_arrays_make_equal_files(tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{n}.npz", a=LARGE, b=np.array("text")) for n in "12")
    assert one.read_bytes() == two.read_bytes()
    with np.load(one) as stored:
        np.testing.assert_array_equal(stored["a"], LARGE)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_of_earlier_versions_are_read(tmp_path: Path, save) -> None:  # type: ignore[no-untyped-def]
    save(tmp_path / "old.npz", x=np.arange(3), values=LARGE)
    np.testing.assert_array_equal(read(tmp_path / "old.npz", "values"), LARGE)


@pytest.mark.parametrize("at", [0.3, 0.999])
def test_a_damaged_array_is_refused(tmp_path: Path, at: float) -> None:
    path = save_artefact(tmp_path / "01-x.npz", {"values": LARGE})
    content = bytearray(path.read_bytes())
    content[int(at * 4 * len(LARGE))] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="CRC"):
        load_artefact(path)


@mapping
def test_a_large_field_is_mapped_and_a_part_of_it_is_no_copy(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((30, 200, 200)).astype(np.float32)
    saved = Field(values, np.arange(30.0), Grid(200, 200, 1.0, 1.0)).save(tmp_path / "field.npz")
    field = Field.load(saved)
    assert is_mapped(field.values)
    assert np.shares_memory(field.frames(slice(3, 20)).values, field.values)
    np.testing.assert_array_equal(field.values, values)
