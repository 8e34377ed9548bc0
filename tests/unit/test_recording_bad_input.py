"""Bad recordings get one clear line, never a traceback, and leave nothing half-written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from recording_files import blot, cut_short, levels, write_film

from video2pde.errors import InputError
from video2pde.recording import preview, read_field, read_recording
from video2pde.recording.stacks import Stack
from video2pde.settings import RecordingSettings

RNG = np.random.default_rng(5)


def noisy(count: int = 40) -> np.ndarray:
    """Return frames that do not compress to nothing, so that a file can be cut in its middle."""
    frames = levels(blot(count), 16, 235).astype(int) + RNG.integers(-8, 9, (count, 48, 64))
    return frames.clip(16, 235).astype(np.uint8)


def error_line(path: Path, **keys: object) -> str:
    with pytest.raises(InputError) as caught:
        read_field(path, RecordingSettings(**keys))
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    return line


def test_a_film_whose_names_are_no_text(tmp_path: Path) -> None:
    path = write_film(tmp_path / "a.mkv", noisy(12), codec="ffv1")
    content = path.read_bytes()
    name = b"ENCODER"
    assert name in content
    path.write_bytes(content.replace(name, b"ENC\x94DER"))
    assert len(read_field(path)) == 12


def test_a_stack_with_an_empty_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged tags of a page make tifffile give an array of another number of dimensions."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((3, 12, 16), np.uint8) + np.arange(16, dtype=np.uint8), photometric="minisblack")
    whole = Stack._plane

    def damaged(stack: Stack, tiff: object, page: int) -> np.ndarray:
        return np.zeros(0, np.uint8) if page == 2 else whole(stack, tiff, page)

    monkeypatch.setattr(Stack, "_plane", damaged)
    assert "page 2 has 0 pixels, the first one 16×12" in error_line(path, fps=10)


def test_a_stack_with_strips_of_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    frames = np.zeros((3, 12, 16), np.uint8) + np.arange(16, dtype=np.uint8)
    tifffile.imwrite(path, frames, photometric="minisblack", compression="zlib", rowsperstrip=4)
    with tifffile.TiffFile(path, mode="r+") as tiff:
        tiff.pages[1].tags["RowsPerStrip"].overwrite(0)
    assert "1 of 3 frames are readable" in error_line(path, fps=10)


def test_missing_empty_and_unknown_files(tmp_path: Path) -> None:
    assert "no such recording" in error_line(tmp_path / "none.mp4")
    for name in ("a.mp4", "a.gif", "a.tif", "a.npy", "a.npz"):
        (tmp_path / name).touch()
        assert "is empty" in error_line(tmp_path / name, fps=1)
    (tmp_path / "a.docx").write_text("words")
    assert "unknown kind" in error_line(tmp_path / "a.docx")
    (tmp_path / "folder").mkdir()
    assert "holds no pictures" in error_line(tmp_path / "folder", fps=1)


@pytest.mark.parametrize("name", ["a.mp4", "a.avi", "a.mkv", "a.gif", "a.tif", "a.npy", "a.npz"])
@pytest.mark.parametrize(
    "text", ["these are only words\n" * 40, "#EXTM3U\nother.mp4\n", "ffconcat version 1.0\nfile x.mp4\n"]
)
def test_text_with_a_recording_s_name(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert "cannot be read as" in error_line(tmp_path / name, fps=1)


def check_truncated(path: Path, total: int, **keys: object) -> int:
    """Assert that the error counts the readable frames and that exactly these are read when allowed."""
    line = error_line(path, **keys)
    assert "frames are readable" in line
    assert "allow_truncated" in line
    readable = int(line.split("damaged: ")[1].split()[0])
    assert 2 <= readable < total
    result = read_recording(path, RecordingSettings(allow_truncated=True, **keys))
    assert len(result.field) == readable
    assert any("cut short" in note for note in result.field.provenance.notes)
    early = read_field(path, RecordingSettings(stop=readable, **keys))
    assert len(early) == readable
    return readable


def test_truncated_mp4_with_its_index_in_front(tmp_path: Path) -> None:
    path = write_film(tmp_path / "a.mp4", noisy(), container_options={"movflags": "faststart"})
    check_truncated(cut_short(path, 0.6), 40)


def test_truncated_mp4_without_its_index(tmp_path: Path) -> None:
    path = cut_short(write_film(tmp_path / "a.mp4", noisy()), 0.6)
    assert "0 frames are readable" in error_line(path)


@pytest.mark.parametrize(("name", "codec"), [("a.avi", "libx264"), ("a.mkv", "libx264"), ("a.avi", "ffv1")])
def test_truncated_avi_and_mkv(tmp_path: Path, name: str, codec: str) -> None:
    options = {"libx264": None}.get(codec, {})
    check_truncated(cut_short(write_film(tmp_path / name, noisy(), codec=codec, options=options), 0.6), 40)


def test_damage_in_the_middle_of_a_film(tmp_path: Path) -> None:
    path = write_film(tmp_path / "a.mp4", noisy(), container_options={"movflags": "faststart"})
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 9000] = bytes(9000)
    path.write_bytes(bytes(data))
    assert 15 <= check_truncated(path, 40) <= 22


def test_truncated_gif(tmp_path: Path) -> None:
    pictures = [Image.fromarray(frame) for frame in noisy(20)]
    pictures[0].save(tmp_path / "a.gif", save_all=True, append_images=pictures[1:], duration=50)
    whole = (tmp_path / "a.gif").read_bytes()
    check_truncated(cut_short(tmp_path / "a.gif", 0.6), 20)
    (tmp_path / "a.gif").write_bytes(whole[:-1])
    assert "end mark" in error_line(tmp_path / "a.gif")


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_truncated_tiff(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as writer:
        for frame in noisy(20):
            writer.write(frame, compression=compression, contiguous=False, photometric="minisblack")
    check_truncated(cut_short(path, 0.6), 20, fps=1)


def test_truncated_contiguous_and_imagej_tiff(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", noisy(20), imagej=True, metadata={"axes": "TYX", "finterval": 1})
    check_truncated(cut_short(tmp_path / "a.tif", 0.6), 20)
    tifffile.imwrite(tmp_path / "b.tif", noisy(20), photometric="minisblack")
    line = error_line(cut_short(tmp_path / "b.tif", 0.6), fps=1)
    assert "readable" in line


def test_truncated_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", noisy())
    assert "cannot be read" in error_line(cut_short(tmp_path / "a.npy", 0.6), fps=1)
    np.savez(tmp_path / "a.npz", frames=noisy())
    assert "cannot be read" in error_line(cut_short(tmp_path / "a.npz", 0.6), fps=1)


def test_broken_picture_in_a_folder(tmp_path: Path) -> None:
    for k, frame in enumerate(noisy(6)):
        Image.fromarray(frame).save(tmp_path / f"{k}.png")
    cut_short(tmp_path / "4.png", 0.5)
    assert check_truncated(tmp_path, 6, fps=1) == 4


def test_zero_frames(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((0, 8, 8)))
    assert "no frames" in error_line(tmp_path / "a.npy", fps=1)
    path = write_film(tmp_path / "a.mp4", noisy(), container_options={"movflags": "faststart"})
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"mdat") + 4])
    assert "readable" in error_line(path)


def test_a_container_without_pictures(tmp_path: Path) -> None:
    import av

    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 44100
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert "no film stream" in error_line(tmp_path / "a.mp4")


def test_unreadable_codec(tmp_path: Path) -> None:
    path = write_film(tmp_path / "a.mp4", noisy())
    path.write_bytes(path.read_bytes().replace(b"avc1", b"zq9x"))
    line = error_line(path)
    assert "codec" in line or "decode" in line


@pytest.mark.parametrize("crop", [(30, 0, 40, 20), (0, 30, 20, 40), (-1, 0, 20, 20), (0, 0, 0, 10)])
def test_crop_outside_the_frame(tmp_path: Path, crop: tuple[int, int, int, int]) -> None:
    path = write_film(tmp_path / "a.mp4", noisy(4))
    line = error_line(path, crop=crop)
    assert "64×48" in line
    assert ", ".join(map(str, crop)) in line
    with pytest.raises(InputError, match="64×48"):
        preview(path, RecordingSettings(crop=crop), tmp_path / "preview.png")
    assert not (tmp_path / "preview.png").exists()


def test_border_that_leaves_nothing(tmp_path: Path) -> None:
    assert "border of 23" in error_line(write_film(tmp_path / "a.mp4", noisy(4)), border=23)


def test_nan_and_wrong_arrays(tmp_path: Path) -> None:
    values = blot()
    values[7, 3, 3] = np.nan
    np.save(tmp_path / "a.npy", values)
    assert "frame 7 holds 1 values that are NaN" in error_line(tmp_path / "a.npy", fps=1)
    tifffile.imwrite(tmp_path / "a.tif", values.astype(np.float32), photometric="minisblack")
    assert "frame 7" in error_line(tmp_path / "a.tif", fps=1)
    np.save(tmp_path / "b.npy", values[0])
    assert "(t, y, x)" in error_line(tmp_path / "b.npy", fps=1)
    np.save(tmp_path / "c.npy", values.astype(complex))
    assert "complex128" in error_line(tmp_path / "c.npy", fps=1)
    np.savez(tmp_path / "d.npz", first=values, second=values)
    assert "first, second" in error_line(tmp_path / "d.npz", fps=1)
    np.savez(tmp_path / "e.npz", frames=blot(), times=np.zeros(3))
    assert "times of shape (3,)" in error_line(tmp_path / "e.npz")
    np.savez(tmp_path / "f.npz", frames=blot(), times=np.array([0, 1, 1, *range(3, 12)]))
    assert "not later" in error_line(tmp_path / "f.npz")


def test_constant_film(tmp_path: Path) -> None:
    path = write_film(tmp_path / "a.mp4", np.full((10, 48, 64), 100, np.uint8))
    assert "is constant" in error_line(path)
    np.save(tmp_path / "black.npy", np.zeros((5, 8, 8)))
    assert "give recording.white" in error_line(tmp_path / "black.npy", fps=1)


def test_missing_frame_rate_and_selection_of_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    assert "--fps" in error_line(tmp_path / "a.npy")
    assert "select 0 of the 12 frames" in error_line(tmp_path / "a.npy", fps=1, start=50)
    assert "at least two" in error_line(tmp_path / "a.npy", fps=1, start=11)


def test_pictures_of_two_sizes(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "1.png")
    Image.fromarray(np.zeros((8, 9), np.uint8)).save(tmp_path / "2.png")
    assert "9×8" in error_line(tmp_path, fps=1)


def test_tiff_with_planes_in_time(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((4, 2, 8, 8), np.uint16), imagej=True, metadata={"axes": "TZYX"})
    assert "has 2 planes in depth (Z): choose one, --z 1 to 2" in error_line(tmp_path / "a.tif", fps=1)
    assert "not 3" in error_line(tmp_path / "a.tif", fps=1, z=3)


def test_masks_that_cannot_be_used(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    assert "neither a picture" in error_line(tmp_path / "a.npy", fps=1, mask="u=3")
    assert "frames 0 to 11" in error_line(tmp_path / "a.npy", fps=1, mask="u>0.2@99")
    assert "is empty" in error_line(tmp_path / "a.npy", fps=1, mask="u>7")
    Image.fromarray(np.eye(13, dtype=np.uint8)).save(tmp_path / "m.png")
    assert "13×13" in error_line(tmp_path / "a.npy", fps=1, mask=str(tmp_path / "m.png"))


@pytest.mark.parametrize("scale", ["mm", "0.05", "-1mm", "0 mm", "1 2 mm"])
def test_wrong_scale(tmp_path: Path, scale: str) -> None:
    np.save(tmp_path / "a.npy", blot())
    assert "such as 0.05mm" in error_line(tmp_path / "a.npy", fps=1, scale=scale)


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="the superuser may read and write everything")
def test_no_permission(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    (tmp_path / "a.npy").chmod(0)
    assert "ermission" in error_line(tmp_path / "a.npy", fps=1)


@pytest.mark.posix
def test_unwritable_target_leaves_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    field = read_field(tmp_path / "a.npy", RecordingSettings(fps=1))
    with pytest.raises(InputError, match="cannot write"):
        field.save(tmp_path / "nowhere" / "field.npz")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        field.save(tmp_path / "file" / "field.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "file"]


FULL_DISK = """
import resource, signal, sys
from video2pde.errors import InputError
from video2pde.field import Field
field = Field.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    field.save(sys.argv[2])
except InputError as error:
    print(error)
    sys.exit(2)
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """A limit on file size fails a write half-way, as a full disk does."""
    np.save(tmp_path / "a.npy", blot())
    read_field(tmp_path / "a.npy", RecordingSettings(fps=1)).save(tmp_path / "field.npz")
    target = tmp_path / "out" / "field.npz"
    target.parent.mkdir()
    target.write_bytes(b"what was there before")
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "field.npz"), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("cannot write")
    assert os.strerror(errno.EFBIG) in done.stdout
    assert [p.name for p in target.parent.iterdir()] == ["field.npz"]
    assert target.read_bytes() == b"what was there before"
