"""From Python: what a run may be given, what it leaves, and labelled arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import video2pde as vp
from video2pde.api import IN_MEMORY

QUICK = vp.load_settings("quick", overrides={"run.workers": 1, "identifiability.stability_runs": 5})


def diffusion(run: vp.Run) -> float:
    assert run.discovery is not None
    return float(run.discovery.identifiability.libraries["A"].fit.coefficients["laplacian"])


@pytest.fixture(scope="module")
def field() -> vp.Field:
    return vp.example_field()


@pytest.fixture(scope="module")
def expected(field: vp.Field) -> float:
    return diffusion(vp.run(field, settings=QUICK, until="discovery"))


def test_every_kind_of_recording_gives_the_same(field: vp.Field, expected: float, tmp_path: Path) -> None:
    assert expected == pytest.approx(1.0, abs=0.05)
    path = field.save(tmp_path / "field.npz")
    given: list[tuple[Any, dict[str, Any]]] = [
        (path, {}),
        (str(path), {}),
        (np.asarray(field.values), {"dt": field.dt, "dx": 1.0}),
        (field.to_xarray(), {}),
    ]
    for recording, more in given:
        run = vp.run(recording, settings=QUICK, until="discovery", **more)
        assert diffusion(run) == pytest.approx(expected, rel=1e-5)


def test_lengths_and_times_of_an_array_are_its_units(field: vp.Field, expected: float) -> None:
    """β has units of length² over time: cells of 2 mm and frames 5 times as far apart make it 4/5."""
    run = vp.run(np.asarray(field.values), settings=QUICK, until="discovery", dt=5 * field.dt, dx=2.0, unit="mm")
    assert diffusion(run) == pytest.approx(0.8 * expected, rel=1e-5)
    assert run.unit == "mm"


def test_no_folder_is_left_unless_one_is_named(
    field: vp.Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    run = vp.run(field, settings=QUICK, until="drift")
    assert list(run.timings) == ["recording", "drift"]
    assert list(tmp_path.iterdir()) == []
    vp.run(field, "result", settings=QUICK, until="drift")
    assert (tmp_path / "result" / IN_MEMORY).is_file()
    assert list(vp.load_run("result").timings) == ["recording", "drift"]


def test_a_folder_is_continued_with_the_same_object(field: vp.Field, tmp_path: Path) -> None:
    first = vp.run(field, tmp_path, QUICK, until="drift")
    again = vp.run(field, tmp_path, QUICK, until="drift")
    assert again.timings == first.timings  # read, not computed once more


@pytest.mark.parametrize(
    ("recording", "more", "words"),
    [
        (np.zeros((4, 5, 6)), {}, "needs dt"),
        (np.zeros((4, 5, 6)), {"dt": 0.1}, "needs dt"),
        (np.zeros((5, 6)), {"dt": 0.1, "dx": 1.0}, "three axes, not of 2"),
        (np.zeros((4, 5, 6)), {"dt": -1.0, "dx": 1.0}, "must be positive"),
        (np.full((4, 5, 6), np.nan), {"dt": 1.0, "dx": 1.0}, "NaN"),
        ([1, 2, 3], {}, "a list is no recording"),
    ],
)
def test_what_is_no_recording_is_refused(recording: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(vp.InputError, match=words):
        vp.run(recording, **more)


class TestLabelledArrays:
    """Field.from_xarray."""

    @staticmethod
    def array(**changes: Any) -> xarray.DataArray:
        values = np.random.default_rng(0).random((4, 5, 6)).astype(np.float32)
        coords: dict[str, Any] = {
            "time": ("time", np.arange(4) * 0.5, {"units": "s"}),
            "y": ("y", np.arange(5) * 0.2, {"units": "mm"}),
            "x": ("x", 3 + np.arange(6) * 0.1, {"units": "mm"}),
        }
        return xarray.DataArray(values, dims=("time", "y", "x"), coords={**coords, **changes})

    def test_there_and_back(self, field: vp.Field) -> None:
        mask = np.ones(field.grid.shape, bool)
        mask[:3] = False
        masked = vp.Field(field.values, field.times, field.grid, mask)
        again = vp.Field.from_xarray(masked.to_xarray())
        np.testing.assert_array_equal(again.values, field.values)
        np.testing.assert_allclose(again.times, field.times, atol=1e-12)
        assert again.mask is not None
        np.testing.assert_array_equal(again.mask, mask)
        assert (again.grid.dx, again.grid.dy, again.grid.unit) == pytest.approx((1.0, 1.0, "image units"))

    def test_axes_in_any_order_and_under_other_names(self) -> None:
        array = self.array()
        turned = array.transpose("x", "time", "y").rename(time="t", y="row", x="column")
        np.testing.assert_array_equal(vp.Field.from_xarray(turned).values, array.values)
        assert vp.Field.from_xarray(turned).grid.dx == pytest.approx(0.1)

    def test_rows_follow_the_direction_of_y(self) -> None:
        upwards = self.array(y=("y", 1 - np.arange(5) * 0.2, {"units": "mm"}))
        np.testing.assert_array_equal(vp.Field.from_xarray(upwards).values, upwards.values[:, ::-1])

    @pytest.mark.parametrize(
        ("time", "seconds"),
        [
            (("time", np.arange(4) * 500, {"units": "ms"}), 0.5),
            (("time", np.arange(4), {"units": "min"}), 60.0),
            (("time", np.datetime64("2026-01-01", "ns") + np.arange(4) * np.timedelta64(2, "s")), 2.0),
            (("time", np.arange(4) * np.timedelta64(250, "ms")), 0.25),
        ],
    )
    def test_times_are_seconds(self, time: Any, seconds: float) -> None:
        assert vp.Field.from_xarray(self.array(time=time)).dt == pytest.approx(seconds)

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (lambda make: make().rename(x="z"), "no dimension x"),
            (lambda make: make().drop_vars("x"), "'x' has no coordinate"),
            (lambda make: make(x=("x", np.arange(6) ** 2.0, {"units": "mm"})), "not evenly spaced"),
            (lambda make: make(x=("x", np.arange(6.0), {"units": "cm"})), "different units"),
            (lambda make: make(time=("time", np.arange(4.0), {"units": "fortnights"})), "fortnights"),
            (lambda make: make().where(make() > 0.5), "NaN"),
        ],
    )
    def test_what_cannot_be_a_field_is_refused(self, array: Any, words: str) -> None:
        with pytest.raises(vp.InputError, match=words):
            vp.Field.from_xarray(array(self.array))
