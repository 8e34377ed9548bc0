"""Small files of microscopes, written byte by byte as their formats are laid out.

CZI by the published ZISRAW layout (Zeiss), LIF by that of its header, XML and memory blocks as Leica publishes it. ND2
is published nowhere: its chunks are written as the package ``nd2`` reads those of version 2.1. No package that may be
used here writes LIF or ND2; what Zeiss's own library writes of CZI is tested where it is installed.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Stack = NDArray[np.uint16]  # (t, z, c, y, x)
AXES = "TZC"


def write_lif(path: Path, series: dict[str, Stack], pitch: float, times: list[float], names: tuple[str, ...]) -> None:
    """Write series of a project; ``pitch`` in µm, ``times`` in s."""
    texts, blocks = [], []
    for index, (name, values) in enumerate(series.items(), start=1):
        sizes, step = dict(zip("TZCYX", values.shape, strict=True)), values.itemsize
        increments = dict(zip("TZCYX", values.strides, strict=True))
        channels = "".join(
            f'<ChannelDescription DataType="0" ChannelTag="0" Resolution="16" NameOfMeasuredQuantity="" Min="0" '
            f'Max="65535" Unit="" LUTName="{lut}" IsLUTInverted="0" BytesInc="{k * increments["C"]}" BitInc="0"/>'
            for k, lut in enumerate(names[: sizes["C"]])
        )
        ends = {"X": pitch * 1e-6 * (sizes["X"] - 1), "Y": pitch * 1e-6 * (sizes["Y"] - 1), "Z": 1e-6, "T": times[-1]}
        number = {"X": 1, "Y": 2, "Z": 3, "T": 4}
        dimensions = "".join(
            f'<DimensionDescription DimID="{number[axis]}" NumberOfElements="{sizes[axis]}" Origin="0" '
            f'Length="{ends[axis]!r}" Unit="{"s" if axis == "T" else "m"}" BytesInc="{increments[axis]}" BitInc="0"/>'
            for axis in "XYZT"
        )
        ticks = [116444736000000000 + round(time * 1e7) for time in times[: sizes["T"]]]
        stamps = " ".join(f"{tick:x}" for tick in ticks for _ in range(sizes["Z"] * sizes["C"]))
        texts.append(
            f'<Element Name="{name}"><Data><Image><ImageDescription><Channels>{channels}</Channels><Dimensions>'
            f"{dimensions}</Dimensions></ImageDescription><TimeStampList>{stamps}</TimeStampList></Image></Data>"
            f'<Memory Size="{values.nbytes}" MemoryBlockID="MemBlock_{index}"/></Element>'
        )
        blocks.append((f"MemBlock_{index}", values.astype("<u2").tobytes()))
        assert step == 2
    head = f'<LMSDataContainerHeader Version="2"><Element Name="Project"><Children>{"".join(texts)}'
    xml = f"{head}</Children></Element></LMSDataContainerHeader>"
    with path.open("wb") as file:
        file.write(struct.pack("<IIBI", 0x70, 2 * len(xml) + 5, 0x2A, len(xml)) + xml.encode("utf-16-le"))
        for name, data in blocks:
            header = struct.pack("<IIBQBI", 0x70, 2 * len(name) + 14, 0x2A, len(data), 0x2A, len(name))
            file.write(header + name.encode("utf-16-le") + data)


def write_czi(path: Path, values: Stack, pitch: float, times: list[float], names: tuple[str, ...]) -> None:
    """Write one scene: a subblock for each plane, their directory, time stamps as an attachment, and metadata."""
    body = bytearray(_segment(b"ZISRAWFILE", bytes(512)))
    entries = []
    for t, z, c in np.ndindex(values.shape[:3]):
        entry = _czi_entry(len(body), {"X": values.shape[4], "Y": values.shape[3]}, {"C": c, "Z": z, "T": t})
        data = values[t, z, c].astype("<u2").tobytes()
        body += _segment(b"ZISRAWSUBBLOCK", struct.pack("<iiq", 0, 0, len(data)) + entry.ljust(240, b"\0") + data)
        entries.append(entry)
    stamps = struct.pack("<ii", 8 + 8 * len(times), len(times)) + np.array(times, "<f8").tobytes()
    attached = _czi_attachment(len(body), b"TimeStamps", b"CZTIMS")
    body += _segment(b"ZISRAWATTACH", struct.pack("<q8x", len(stamps)) + attached.ljust(240, b"\0") + stamps)
    places = {"directory": len(body)}
    body += _segment(b"ZISRAWDIRECTORY", struct.pack("<i124x", len(entries)) + b"".join(entries))
    places["attachments"] = len(body)
    body += _segment(b"ZISRAWATTDIR", struct.pack("<i252x", 1) + attached)
    places["metadata"] = len(body)
    channels = "".join(f'<Channel Id="Channel:{k}" Name="{name}"/>' for k, name in enumerate(names))
    xml = (
        "<ImageDocument><Metadata><Information><Image><Dimensions><Channels>"
        f"{channels}</Channels></Dimensions></Image></Information><Scaling><Items><Distance Id='X'>"
        f"<Value>{pitch * 1e-6!r}</Value></Distance></Items></Scaling></Metadata></ImageDocument>"
    ).encode()
    body += _segment(b"ZISRAWMETADATA", struct.pack("<ii248x", len(xml), 0) + xml)
    header = struct.pack(
        "<iiii16s16siqqiq",
        1,
        0,
        0,
        0,
        b"\1" * 16,
        b"\1" * 16,
        0,
        places["directory"],
        places["metadata"],
        0,
        places["attachments"],
    )
    body[32 : 32 + len(header)] = header
    path.write_bytes(bytes(body))


def _segment(name: bytes, data: bytes) -> bytes:
    padded = data.ljust(-(-len(data) // 32) * 32, b"\0")
    return struct.pack("<16sqq", name, len(padded), len(data)) + padded


def _czi_entry(position: int, sides: dict[str, int], place: dict[str, int]) -> bytes:
    """Return a directory entry (schema DV) of one plane of 16 bits."""
    dimensions = [(axis, 0, size) for axis, size in sides.items()] + [(axis, at, 1) for axis, at in place.items()]
    entry = struct.pack("<2siqiiBB4si", b"DV", 1, position, 0, 0, 0, 0, b"", len(dimensions))
    return entry + b"".join(struct.pack("<4siifi", axis.encode(), at, n, float(at), n) for axis, at, n in dimensions)


def _czi_attachment(position: int, name: bytes, kind: bytes) -> bytes:
    return struct.pack("<2s10sqi16s8s80s", b"A1", b"", position, 0, b"\2" * 16, kind, name)


def write_nd2(path: Path, values: Stack, pitch: float, times: list[float], names: tuple[str, ...]) -> None:
    """Write a loop over time, and one over depth in it; channels are interleaved in each frame."""
    frames, depth, channels, rows, columns = values.shape
    counts = {"uiWidth": columns, "uiWidthBytes": 2 * columns * channels, "uiHeight": rows, "uiComp": channels}
    counts |= {"uiBpcInMemory": 16, "uiBpcSignificant": 16, "uiSequenceCount": frames * depth}
    over_time = {"uiCount": frames, "dStart": 0.0, "dPeriod": 0.0, "dDuration": 1000 * times[-1]}
    inner = {"ppNextLevelEx": {"no_name": {"eType": 4, "uLoopPars": {"uiCount": depth, "dZStep": 1.0}}}}
    loops = {"eType": 1, "uLoopPars": over_time} | (inner if depth > 1 else {})
    probe = {"m_ExcitationSpectrum": {"uiCount": 0}, "m_EmissionSpectrum": {"uiCount": 0}}
    plane = {"uiCompCount": 1, "pFluorescentProbe": probe}
    planes = {f"a{k}": {"sDescription": name, **plane} for k, name in enumerate(names)}
    seen = {"dCalibration": pitch, "bCalibrated": True, "sPicturePlanes": {"uiCount": channels, "sPlaneNew": planes}}
    chunks = {
        b"ImageAttributes!": _variant(counts),
        b"ImageMetadata!": _variant(loops),
        b"ImageMetadataSeq|0!": _variant(seen),
        b"CustomData|AcqTimesCache!": np.repeat(1000 * np.array(times), depth).astype("<f8").tobytes(),
    }
    for index, (t, z) in enumerate(np.ndindex(frames, depth)):
        pixels = np.moveaxis(values[t, z], 0, -1).astype("<u2").tobytes()
        chunks[f"ImageDataSeq|{index}!".encode()] = struct.pack("<d", 1000 * times[t]) + pixels
    body = bytearray(_chunk(b"ND2 FILE SIGNATURE CHUNK NAME01!", b"Ver2.1".ljust(64, b"\0"), 32))
    listed = b""
    for name, data in chunks.items():
        listed += name + struct.pack("<QQ", len(body), len(data))
        body += _chunk(name, data, 4072)
    place = len(body)
    signature = b"ND2 CHUNK MAP SIGNATURE 0000001!"
    body += _chunk(b"ND2 FILEMAP SIGNATURE NAME 0001!", listed + signature + struct.pack("<Q", place), 32)
    path.write_bytes(bytes(body))


def _chunk(name: bytes, data: bytes, reserved: int) -> bytes:
    return struct.pack("<IIQ", 0x0ABECEDA, reserved, len(data)) + name.ljust(reserved, b"\0") + data


def _variant(content: dict[str, object]) -> bytes:
    """Return values as the XML variant of version 2."""
    kinds = {int: "lx_uint32", float: "double", bool: "bool", str: "CLxStringW"}

    def tag(name: str, value: object) -> str:
        if isinstance(value, dict):
            return f"<{name}>{''.join(tag(key, inner) for key, inner in value.items())}</{name}>"
        return f'<{name} runtype="{kinds[type(value)]}" value="{str(value).lower() if value is True else value}"/>'

    return f"<variant><no_name>{''.join(tag(*item) for item in content.items())}</no_name></variant>".encode()
