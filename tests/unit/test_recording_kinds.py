"""Every kind of recording is read right, from real encoded files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from recording_files import blot, FULL, levels, LIMITED, orient_film, turn_film, write_film

from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.recording import read_field, read_recording
from video2pde.recording.pictures import natural_key
from video2pde.settings import RecordingSettings, Settings

TRUTH = 1 - blot()


def as_pixels(**keys: object) -> RecordingSettings:
    """Keep every camera pixel, so that values can be compared one by one."""
    return RecordingSettings(border=0, grid=(48, 64), **keys)


def assert_reads(path: Path, tolerance: float, **keys: object) -> Field:
    field = read_field(path, as_pixels(**keys))
    assert field.values.shape == TRUTH.shape
    assert np.abs(field.values - TRUTH).max() < tolerance
    return field


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "options"),
    [
        ("film.mp4", "libx264", "yuv420p", None),
        ("film.mov", "libx264", "yuv422p", None),
        ("film.mkv", "ffv1", "yuv444p", {}),
        ("film.avi", "ffv1", "yuv420p", {}),
        ("film.webm", "libvpx-vp9", "yuv420p", {"lossless": "1", "deadline": "realtime"}),
    ],
)
def test_reads_films_of_every_container(
    tmp_path: Path, name: str, codec: str, pix_fmt: str, options: dict[str, str] | None
) -> None:
    path = write_film(tmp_path / name, levels(blot(), 16, 235), codec=codec, pix_fmt=pix_fmt, options=options)
    field = assert_reads(path, 0.012)
    assert field.times == pytest.approx(np.arange(12) / 10, abs=1.1e-3)
    assert len(field.provenance.sha256) == 64
    assert any("limited-range" in note for note in field.provenance.notes)


def test_limited_and_full_range_give_the_same_field(tmp_path: Path) -> None:
    tagged = write_film(tmp_path / "tagged.mp4", levels(blot(), 16, 235), color_range=LIMITED)
    full = write_film(tmp_path / "full.mp4", levels(blot()), color_range=FULL)
    jpeg = write_film(tmp_path / "jpeg.avi", levels(blot()), codec="mjpeg", pix_fmt="yuvj420p", options={"qmin": "1"})
    assert_reads(tagged, 0.012)
    assert_reads(full, 0.012)
    assert np.abs(read_field(jpeg, as_pixels()).values - TRUTH).mean() < 0.01
    wrong = write_film(tmp_path / "wrong.mp4", levels(blot(), 16, 235), color_range=FULL)
    assert np.abs(read_field(wrong, as_pixels()).values - TRUTH).max() > 0.02


def test_values_beyond_the_limited_range_are_clipped_with_a_note(tmp_path: Path) -> None:
    film = levels(blot(), 16, 235)
    film[:, :4] = 250
    field = read_field(write_film(tmp_path / "film.mp4", film), as_pixels(objects="none"))
    assert field.values.min() == 0
    assert any("clipped" in note for note in field.provenance.notes)


def test_ten_bit_film_keeps_its_depth(tmp_path: Path) -> None:
    deep = levels(blot(), 64, 940)
    path = write_film(tmp_path / "deep.mkv", deep, codec="ffv1", pix_fmt="yuv420p10le", options={})
    field = assert_reads(path, 0.0007)
    shallow = read_field(
        write_film(tmp_path / "flat.mkv", levels(blot(), 16, 235), codec="ffv1", options={}), as_pixels()
    )
    assert np.abs(shallow.values - TRUTH).max() > 2 * np.abs(field.values - TRUTH).max()


@pytest.mark.parametrize(("codec", "pix_fmt"), [("rawvideo", "bgr24"), ("rawvideo", "uyvy422"), ("ffv1", "gray")])
def test_reads_packed_colour_and_grey_pixels(tmp_path: Path, codec: str, pix_fmt: str) -> None:
    import av

    path = tmp_path / "film.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, pix_fmt
        for picture in levels(blot()):
            if pix_fmt == "uyvy422":
                limited = np.rint(16 + picture * (219 / 255)).astype(np.uint8)
                frame = av.VideoFrame(64, 48, pix_fmt)
                packed = np.full((48, 128), 128, dtype=np.uint8)
                packed[:, 1::2] = limited
                rows = np.zeros((48, frame.planes[0].line_size), dtype=np.uint8)
                rows[:, :128] = packed
                frame.planes[0].update(rows.tobytes())
            elif pix_fmt == "gray":
                frame = av.VideoFrame.from_ndarray(picture, format="gray")
            else:
                frame = av.VideoFrame.from_ndarray(np.repeat(picture[..., None], 3, axis=2), format="bgr24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert_reads(path, 0.005)


ORIENTATIONS = [(p, 0, 0, q) for p in (1, -1) for q in (1, -1)] + [(0, p, q, 0) for p in (1, -1) for q in (1, -1)]


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_rotation_metadata_is_honoured(tmp_path: Path, quarters: int) -> None:
    """The film is stored turned; the header asks the player to turn it back."""
    stored = np.rot90(levels(blot(), 16, 235), quarters, axes=(1, 2))
    path = write_film(tmp_path / "film.mp4", stored)
    turn_film(path, quarters)
    field = assert_reads(path, 0.012)
    assert any("turned" in note for note in field.provenance.notes)


@pytest.mark.parametrize("matrix", ORIENTATIONS)
def test_mirrored_and_turned_films_are_shown_as_they_ask(tmp_path: Path, matrix: tuple[int, int, int, int]) -> None:
    shown = levels(blot(), 16, 235)
    a, b, c, d = matrix
    rows, columns = shown.shape[1:]
    height, width = (rows, columns) if a else (columns, rows)
    y, x = np.mgrid[:height, :width]
    across, down = a * x + c * y, b * x + d * y
    stored = shown[:, down - down.min(), across - across.min()]
    path = write_film(tmp_path / "film.mp4", np.ascontiguousarray(stored))
    orient_film(path, *matrix)
    field = assert_reads(path, 0.012)
    assert any("mirrored" in note for note in field.provenance.notes) == (a * d - b * c < 0)


def test_a_variable_frame_rate_is_kept(tmp_path: Path) -> None:
    pts = np.array([0, 100, 200, 300, 500, 600, 700, 850, 1000, 1100, 1200, 1300])
    ramp = np.linspace(0.2, 0.8, 1301)[pts]
    frames = np.repeat(ramp, 48 * 64).reshape(12, 48, 64) * np.linspace(0.5, 1, 64)
    path = write_film(tmp_path / "film.mp4", levels(frames, 16, 235), pts=list(pts), ticks=1000)
    field = read_field(path, as_pixels(observable="bright"))
    assert field.times == pytest.approx(pts / 1000)
    assert not field.uniform
    assert any("uneven times" in note for note in field.provenance.notes)
    assert field.values[:, :, -1].mean(axis=1) == pytest.approx(ramp, abs=0.006)


def test_a_longer_sound_track_does_not_make_a_film_look_cut(tmp_path: Path) -> None:
    import av

    path = tmp_path / "film.mkv"
    with av.open(str(path), "w") as container:
        pictures, sound = container.add_stream("ffv1", rate=10), container.add_stream("aac", rate=44100)
        pictures.width, pictures.height, pictures.pix_fmt = 64, 48, "gray"
        for picture in levels(blot()):
            container.mux(pictures.encode(av.VideoFrame.from_ndarray(picture, format="gray")))
        container.mux(pictures.encode(None))
        for k in range(130):  # three seconds
            silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            silence.sample_rate, silence.pts = 44100, 1024 * k
            container.mux(sound.encode(silence))
        container.mux(sound.encode(None))
    assert_reads(path, 0.005)


def test_frames_are_selected_by_index(tmp_path: Path) -> None:
    path = write_film(tmp_path / "film.mp4", levels(blot(), 16, 235))
    field = read_field(path, as_pixels(start=2, stop=9, every=3))
    assert field.times == pytest.approx([0.2, 0.5, 0.8])
    assert np.abs(field.values - TRUTH[[2, 5, 8]]).max() < 0.012


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_reads_tiff_stacks(tmp_path: Path, kind: type) -> None:
    white = {np.uint8: 255, np.uint16: 60000, np.float32: 1.0}[kind]
    stack = blot() * white
    stack = stack.astype(kind) if kind is np.float32 else np.rint(stack).astype(kind)
    path = tmp_path / "stack.tif"
    tifffile.imwrite(path, stack, photometric="minisblack")
    field = assert_reads(path, 0.003 if kind is np.uint8 else 2e-5, fps=5, white=white)
    assert field.times == pytest.approx(np.arange(12) / 5)
    brightest = read_recording(path, as_pixels(fps=5, observable="bright"))
    if kind is np.uint8:
        assert brightest.field.values.max() < 0.9
    else:
        assert brightest.field.values.max() == pytest.approx(1)
        assert any("brightest value" in note for note in brightest.field.provenance.notes)


def test_tiff_metadata_gives_the_times(tmp_path: Path) -> None:
    stack = levels(blot(), 0, 4000)
    tifffile.imwrite(tmp_path / "ij.tif", stack, imagej=True, metadata={"axes": "TYX", "finterval": 0.25})
    tifffile.imwrite(
        tmp_path / "x.ome.tif", stack, metadata={"axes": "TYX", "TimeIncrement": 40.0, "TimeIncrementUnit": "ms"}
    )
    assert assert_reads(tmp_path / "ij.tif", 2e-4, white=4000).dt == pytest.approx(0.25)
    assert assert_reads(tmp_path / "x.ome.tif", 2e-4, white=4000).dt == pytest.approx(0.04)


def test_gif_keeps_its_delays(tmp_path: Path) -> None:
    pictures = [Image.fromarray(frame) for frame in levels(blot())]
    path = tmp_path / "film.gif"
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=40)
    field = assert_reads(path, 0.003)
    assert field.dt == pytest.approx(0.04)
    delays = [100] * 5 + [300] + [100] * 6
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=delays)
    field = read_field(path, as_pixels())
    assert field.times == pytest.approx(np.concatenate([[0], np.cumsum(delays)[:-1]]) / 1000)
    assert len(field) == 12


def test_folder_of_pictures_in_natural_order(tmp_path: Path) -> None:
    for k, frame in enumerate(levels(blot())):
        Image.fromarray(frame).save(tmp_path / f"img{k}.png")
    (tmp_path / "notes.txt").write_text("not a picture")
    assert_reads(tmp_path, 0.003, fps=10)
    assert sorted(["img10.png", "img2.png", "img1.png"], key=natural_key) == ["img1.png", "img2.png", "img10.png"]


def test_folder_of_deep_and_colour_pictures(tmp_path: Path) -> None:
    deep, colour = tmp_path / "deep", tmp_path / "colour"
    deep.mkdir()
    colour.mkdir()
    for k, frame in enumerate(blot()):
        Image.fromarray(np.rint(frame * 50000).astype(np.uint16)).save(deep / f"{k}.png")
        rgb = np.stack([levels(frame), levels(frame), np.zeros((48, 64), np.uint8)], axis=2)
        Image.fromarray(rgb).save(colour / f"{k}.png")
    assert_reads(deep, 3e-5, fps=10, white=50000)
    field = read_field(colour, as_pixels(fps=10, observable="bright"))
    assert np.abs(field.values - 0.886 * blot()).max() < 0.003


def test_arrays_and_their_times(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    np.savez(tmp_path / "b.npz", frames=blot().astype(np.float32), times=np.arange(12) * 0.5 + 3)
    assert_reads(tmp_path / "a.npy", 1e-6, white=1, fps=4)
    assert assert_reads(tmp_path / "b.npz", 1e-6, white=1).times == pytest.approx(np.arange(12) * 0.5)


def test_a_saved_field_passes_straight_through(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    field = read_field(tmp_path / "a.npy", as_pixels(white=1, fps=4, scale="0.5mm"))
    field.save(tmp_path / "field.npz")
    again = read_recording(tmp_path / "field.npz", as_pixels(start=2, mask="u>0.3@0"))
    assert np.array_equal(again.field.values, field.values[2:])
    assert again.field.grid == field.grid
    assert again.field.mask is not None
    assert np.array_equal(again.field.mask, field.values[2] > np.float32(0.3))
    assert "do not apply" in again.warnings[0]


def test_progress_and_whole_settings(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", blot())
    calls: list[tuple[int, int | None]] = []
    settings = Settings(recording=as_pixels(fps=1, stop=8))
    read_field(tmp_path / "a.npy", settings, lambda done, total: calls.append((done, total)))
    assert calls == [(k, 8) for k in range(1, 9)]


def test_absorbance_from_reference_frames_and_percentile(tmp_path: Path) -> None:
    light = np.linspace(0.5, 1.0, 64) * np.ones((48, 1)) * 40000
    truth = np.zeros((12, 48, 64))
    truth[4:] = 0.8 * TRUTH[4:]
    np.save(tmp_path / "a.npy", np.rint(light * 10**-truth).astype(np.uint16))
    field = read_field(tmp_path / "a.npy", as_pixels(fps=1, observable="absorbance", reference=(0, 3)))
    assert np.abs(field.values - truth).max() < 2e-4
    blind = read_field(tmp_path / "a.npy", as_pixels(fps=1, observable="absorbance"))
    assert np.abs(blind.values - truth).max() < 2e-4
    with pytest.raises(InputError, match="only 2 were read"):
        read_field(tmp_path / "a.npy", as_pixels(fps=1, observable="absorbance", reference=(10, 14)))


def test_known_truth_film_if_present() -> None:
    film = Path(__file__).parents[3] / "shared" / "recordings" / "known_truth" / "dev-C" / "film.mp4"
    if not film.is_file():
        pytest.skip("the shared recordings are not here")
    settings = RecordingSettings(crop=(450, 0, 1080, 1080), border=8, grid=(200, 200), stop=20)
    field = read_field(film, settings)
    corners = field.values[:, :10, :10].mean(), field.values[:, -10:, -10:].mean()
    assert corners == pytest.approx((0.12, 0.12), abs=0.003)
    assert field.grid.dx == 1.0
