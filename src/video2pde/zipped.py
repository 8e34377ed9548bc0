"""Arrays in ZIP archives that need not be read: they lie uncompressed and in step with memory, and are mapped.

A mapped array is part of the file: its pages are read when they are looked at, and given up when memory is short, so
that a field may be larger than memory. It is for reading alone. Archives of earlier versions, in which arrays lie
anywhere, and compressed ones are read as a whole.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import weakref
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.machine import require_memory

AnyArray = NDArray[Any]

ARRAY_KINDS = "biufcUS"
STEP = 64
"""Bytes: where an array's numbers begin is a multiple of it, as NumPy itself does in its files."""
PADDING = 0xD935
"""The kind of extra field that fills the space before a member; other programs skip it."""
MAPPED = 4 << 20
"""Bytes from which an array is mapped; smaller ones are read."""
LOCAL_HEADER, ZIP64_FIELD = 30, 20
"""Bytes of a member's header without name and extra fields, and of the extra field that sizes take."""
CHECKED = 8 << 20
"""Bytes that are compared with the checksum at a time."""
_MAPS: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""What is mapped at present."""


def write_array(archive: zipfile.ZipFile, name: str, array: AnyArray) -> None:
    """Write an array as a member of an archive, uncompressed, where it can be mapped; equal arrays give equal bytes."""
    info = zipfile.ZipInfo(name)
    assert archive.fp is not None
    begin = archive.fp.tell() + LOCAL_HEADER + len(name.encode()) + ZIP64_FIELD + 4
    filling = -begin % STEP
    info.extra = struct.pack("<HH", PADDING, filling) + bytes(filling)
    with archive.open(info, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asanyarray(array), version=(1, 0), allow_pickle=False)


def read_array(archive: zipfile.ZipFile, name: str) -> AnyArray:
    """Return a member: mapped where it is large and lies right, else read.

    The header is looked at first: plain numbers or text, which fill the member. The checksum is compared either way.
    """
    info = archive.getinfo(name)
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version != (1, 0):
            raise InputError(f"{name} has version {version}")
        shape, columns_first, kind = np.lib.format.read_array_header_1_0(member)
        header = member.tell()
        if kind.kind not in ARRAY_KINDS or header + math.prod(shape) * kind.itemsize != info.file_size:
            raise InputError(f"{name} does not hold {shape} values of {kind}")
    begin = _place(archive, info)
    if begin is not None and info.file_size >= MAPPED and (begin + header) % STEP == 0:
        order: Any = "F" if columns_first else "C"
        assert archive.filename is not None
        mapped = np.memmap(archive.filename, kind, "r", begin + header, shape, order)
        whole: Any = mapped.base
        _MAPS.add(whole)
        _compare_checksum(archive.filename, begin, info)
        return np.asarray(mapped)
    if info.file_size >= MAPPED:
        require_memory(info.file_size, f"{archive.filename} unpacked would", "cut the recording into parts")
    with archive.open(info) as member:
        array: AnyArray = np.lib.format.read_array(member, allow_pickle=False)
        member.read(1)  # at the end the checksum is compared
    return array


def let_go() -> None:
    """Give the pages of mapped arrays back, which count as this process's own: whoever looks again fetches them anew.

    They stay in the system's memory as long as that has room, so that looking again costs little.
    """
    for mapped in list(_MAPS):
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)


def _place(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int | None:
    """Say where a member's bytes begin in the file; None where they cannot be mapped from there."""
    # Windows replaces no file that is mapped, and run folders are written anew
    if os.name == "nt" or info.compress_type != zipfile.ZIP_STORED or archive.filename is None:
        return None
    with Path(archive.filename).open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(LOCAL_HEADER)
    name_bytes, extra_bytes = struct.unpack("<HH", header[26:30])
    return int(info.header_offset + LOCAL_HEADER + name_bytes + extra_bytes)


def _compare_checksum(path: str, begin: int, info: zipfile.ZipInfo) -> None:
    found, left = 0, info.file_size
    with Path(path).open("rb") as file:
        file.seek(begin)
        while left > 0:
            block = file.read(min(CHECKED, left))
            if not block:
                raise InputError(f"{info.filename} ends before its time")
            found, left = zlib.crc32(block, found), left - len(block)
    if found != info.CRC:
        raise InputError(f"Bad CRC-32 for file {info.filename!r}")
