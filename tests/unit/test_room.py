"""Room for large arrays: in memory up to what is allowed, in files beyond it, and the same numbers either way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from video2pde import room
from video2pde.errors import InputError
from video2pde.room import empty, limited, require_space, watched
from video2pde.settings import load_settings

SHAPE = (3, 1000, 1000)
SIZE = 4 * 3 * 1000 * 1000


def in_file(array: np.ndarray) -> bool:
    base = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap)


def test_what_goes_beyond_the_limit_lies_in_a_file_without_a_name(tmp_path: Path) -> None:
    with limited(2 * SIZE, tmp_path), watched() as most:
        first, second, third = (empty(SHAPE, np.float32) for _ in range(3))
        assert [in_file(array) for array in (first, second, third)] == [False, False, True]
        third[...] = 7.0
        assert third.sum() == 7 * SIZE / 4
        assert third.flags.writeable
        assert third.flags.c_contiguous
        assert list(tmp_path.iterdir()) == [] or os.name == "nt"
        part = first[1:]
        del first
        assert in_file(empty(SHAPE, np.float32))  # a part of it is still held
        del part
        assert not in_file(empty(SHAPE, np.float32))
        assert most() == 2 * SIZE


def test_small_arrays_stay_in_memory(tmp_path: Path) -> None:
    with limited(1, tmp_path):
        assert not in_file(empty((10, 10), np.float64))


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room, "_reserve", full)
    with limited(1, tmp_path), pytest.raises(InputError, match=r"run\.memory.*No space left on device.*--grid"):
        empty(SHAPE, np.float32)
    with limited(1, tmp_path), pytest.raises(InputError, match=r"^10 frames need about 1000000000\.0 GB.*; cut it$"):
        require_space(1e18, "10 frames", "cut it")


def test_the_setting_is_an_amount_of_memory() -> None:
    assert load_settings(overrides=["run.memory=1.5GiB"]).run.memory_bytes == 3 * 2**29
    assert load_settings().run.memory_bytes is None
    for wrong in ("much", "4", "1MB", "-4GB"):
        with pytest.raises(InputError, match=r"run\.memory.*'4GB'"):
            load_settings(overrides=[f"run.memory={wrong!r}"])
