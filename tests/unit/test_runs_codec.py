"""Artefacts on disk: equal objects come back, equal artefacts are equal files, and hostile files are refused."""

from __future__ import annotations

import dataclasses
import gc
import io
import json
import sys
import types
import weakref
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from runs_artefacts import real_artefacts, same

from video2pde.errors import InputError, StageError
from video2pde.field import Grid
from video2pde.front import FrontFit
from video2pde.rollout.model import Model
from video2pde.runs.archive import load_artefact, read_meta, save_artefact
from video2pde.runs.codec import decode, encode
from video2pde.settings import load_settings, RecordingSettings
from video2pde.terms import CATALOGUE, Term

KINDS = [
    "field",
    "windows",
    "drift",
    "weak system",
    "identifiability",
    "validation",
    "refinement",
    "fit",
    "bootstrap",
    "settings",
]


def round_trip(value: Any) -> Any:
    tree, parts = encode(value)
    return decode(json.loads(json.dumps(tree, allow_nan=False)), parts)


@pytest.mark.parametrize("kind", KINDS)
def test_real_artefacts_come_back_equal(kind: str, tmp_path: Path) -> None:
    artefact = real_artefacts()[kind]
    path = save_artefact(tmp_path / "a.npz", artefact, {"key": "k"})
    again = load_artefact(path)
    assert same(artefact, again)
    assert read_meta(path) == {"key": "k", "format": 1}
    assert save_artefact(tmp_path / "b.npz", again, {"key": "k"}).read_bytes() == path.read_bytes()


def test_the_comparison_sees_a_small_change() -> None:
    drift = real_artefacts()["drift"]
    assert same(drift, dataclasses.replace(drift))
    moved = drift.velocity.copy()
    moved[3, 1] = np.nextafter(moved[3, 1], np.inf)
    assert not same(drift, dataclasses.replace(drift, velocity=moved))
    assert not same((1, 2), [1, 2])
    assert not same(1.0, np.float64(1.0))
    assert not same(np.zeros(2), np.zeros(2, np.float32))


SAMPLES = [
    *CATALOGUE.values(),
    Grid(3, 4, 1.0, 2.5),
    RecordingSettings(crop=(1, 2, 9, 9)),
    Path("a"),
    Path("/b/ö"),
    np.float32(1.5),
    np.int64(-3),
    np.bool_(True),
    np.float64("nan"),
]
NUMBERS = ["f4", "f8", "i8", "?", "c16", "u1", "<U3", ">f8"]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.slices(9)
    | st.sampled_from(SAMPLES)
    | arrays.arrays(st.sampled_from(NUMBERS), arrays.array_shapes(min_dims=0, min_side=0))
)


def nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(inner, max_size=3)
    return few | few.map(tuple) | st.dictionaries(st.text(), inner, max_size=3)


trees = st.recursive(leaves, nest, max_leaves=8)


@given(trees)
@hypothesis_settings(max_examples=60)
def test_any_tree_comes_back_equal(tree: Any) -> None:
    assert same(round_trip(tree), tree)


def test_the_order_of_an_array_in_memory_is_kept(tmp_path: Path) -> None:
    column_first = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    again = load_artefact(save_artefact(tmp_path / "a.npz", (column_first, column_first)))
    assert again[0].flags.f_contiguous
    assert again[0] is again[1]  # kept once


def test_an_artefact_that_is_let_go_leaves_memory_at_once() -> None:
    gc.disable()
    try:
        tree, parts = encode({"values": [np.zeros(3)]})
        watched = weakref.ref(parts[0])
        artefact = decode(tree, parts)
        parts.clear()
        assert watched() is artefact["values"][0]
        del artefact
        assert watched() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "density",
    [
        "sqrt(u)**3",
        "u**8*u**5",
        "0.1234567*u/3",
        "exp(1)*u",
        "sqrt(u_x**2)",
        "1/(1+u)**2",
        "sqrt(sqrt(u))",
        "-u*(1-u)",
        "tanh(2*u-1)",
        "u**-3",
        "sqrt(2)*u",
        "999999.5*u*999999",
        "-(u+u_x)",
        "exp(-u)/sqrt(1+u)",
        "log(1+u)*sin(u_y)*cos(u)",
        "1e-30*u",
        "(u + 1)*(u_x - 2)/7",
        "-3*(u + 1)*(2 - u)/(1 + u_x**2)",
    ],
)
def test_a_users_term_comes_back_equal(density: str) -> None:
    term = Term.of("own", ("xy", density), ("", "u"))
    model = Model((term, CATALOGUE["laplacian"]), (1.0, -0.5), (0.9, 1.1))
    assert round_trip(model) == model


def test_fields_without_a_place_in_the_constructor_and_checks_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass(frozen=True)
    class Odd:
        values: tuple[int, ...]
        scale: float = dataclasses.field(default=1.0, kw_only=True)
        total: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            if not self.values:
                raise InputError("values must not be empty")
            object.__setattr__(self, "total", sum(self.values))

    module = types.ModuleType("video2pde.odd")
    module.Odd = Odd  # type: ignore[attr-defined]
    Odd.__module__, Odd.__qualname__ = "video2pde.odd", "Odd"
    monkeypatch.setitem(sys.modules, "video2pde.odd", module)
    odd = Odd((1, 2), scale=3.0)
    assert round_trip([odd, {"again": odd}]) == [odd, {"again": odd}]
    tree, _ = encode(odd)
    tree["fields"]["values"]["items"] = []
    with pytest.raises(InputError, match="must not be empty"):
        decode(tree, [])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1: 2}, "the artefact cannot be stored: the key 1 is not a text"),
        ([{"a": {1, 2}}], r"the artefact\[0\].a cannot be stored: a builtins.set"),
        (np.array([None]), "an array of object"),
        (dataclasses.make_dataclass("Elsewhere", ["x"])(1), "only dataclasses of video2pde"),
        (b"bytes", "builtins.bytes is no kind of artefact"),
    ],
)
def test_what_is_no_artefact_is_named(value: Any, message: str) -> None:
    with pytest.raises(StageError, match=message):
        encode(value)


def write_hostile(path: Path, tree: str, arrays: tuple[bytes, ...] = (), compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("meta.json", '{"format": 1}')
        archive.writestr("tree.json", tree)
        for number, content in enumerate(arrays):
            archive.writestr(f"{number}.npy", content)
    return path


def npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def an_object(name: str, **fields: Any) -> str:
    return json.dumps({"!": "object", "type": name, "fields": fields})


GOOD_GRID = {"ny": 3, "nx": 4, "height": 1.0, "width": 1.0, "unit": "mm", "pitch": "cells"}


def test_the_hostile_files_differ_from_a_good_one_by_what_is_wrong_in_them(tmp_path: Path) -> None:
    path = write_hostile(tmp_path / "good.npz", an_object("video2pde.field:Grid", **GOOD_GRID))
    assert load_artefact(path) == Grid(3, 4, 1.0, 1.0, "mm")
    path = write_hostile(tmp_path / "array.npz", '{"!": "array", "number": 0}', (npy(np.arange(3)),))
    assert load_artefact(path).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "tree",
    [
        an_object("os:system", command="true"),
        an_object("builtins:eval"),
        an_object("subprocess:Popen", args="true"),
        an_object("video2pde.cli.__main__:main"),
        an_object("video2pde.field.field:os.system"),
        an_object("video2pde.field.field:Path"),
        an_object("video2pde.files:atomic_write"),
        an_object("video2pde.runs.folder:RunFolder", path="x"),
        an_object("video2pde.drift:Field"),  # defined elsewhere
        an_object("video2pde.nowhere:Grid", **GOOD_GRID),
        an_object("video2pde..field:Grid", **GOOD_GRID),
        an_object("video2pde.field:Grid", ny=3),
        an_object("video2pde.field:Grid", **GOOD_GRID, more=1),
        an_object("video2pde.field:Grid.__init__"),
        '{"!": "object", "type": ["video2pde.field:Grid"], "fields": {}}',
        '{"!": "pickle", "text": "cos"}',
        '{"no tag": 1}',
        '{"!": "settings", "type": "load_settings", "values": {}}',
        '{"!": "settings", "type": "RecordingSettings", "values": {"crops": 1}}',
        '{"!": "term", "name": "t", "parts": [["", "__import__(\'os\').system(\'true\')"]]}',
        '{"!": "term", "name": "t", "parts": [["", "9**8**8"]]}',
        '{"!": "array", "number": 0}',
        '{"!": "array", "number": -1}',
        '{"!": "array", "number": true}',
        '{"!": "float", "text": "1e3"}',
        '{"!": "tuple", "items": "ab"}',
        "{'not': json}",
        "[" * 100_000,
        "",
    ],
)
def test_hostile_trees_are_refused_in_one_line(tree: str, tmp_path: Path) -> None:
    path = write_hostile(tmp_path / "bad.npz", tree)
    with pytest.raises(InputError, match="is not an artefact written by video2pde") as caught:
        load_artefact(path)
    assert "\n" not in str(caught.value)


def test_hostile_arrays_are_refused(tmp_path: Path) -> None:
    tree = '{"!": "array", "number": 0}'
    huge = npy(np.zeros(4)).replace(b"(4,)", b"(4000000000000,)")
    contents = [
        npy(np.array([Grid(1, 1, 1.0, 1.0)])),
        huge,
        npy(np.zeros(4))[:-8],
        npy(np.zeros(4)) + b"more",
        b"no array",
    ]
    for content in contents:
        with pytest.raises(InputError, match="is not an artefact"):
            load_artefact(write_hostile(tmp_path / "bad.npz", tree, (content,)))
    with pytest.raises(InputError, match="compressed"):
        load_artefact(write_hostile(tmp_path / "bad.npz", tree, (npy(np.zeros(10**6)),), zipfile.ZIP_DEFLATED))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = save_artefact(tmp_path / "a.npz", {"values": np.arange(2000.0)})
    whole = path.read_bytes()
    for keep in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:keep])
        with pytest.raises(InputError, match="is not an artefact"):
            load_artefact(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(InputError, match="CRC"):
        load_artefact(path)
    with pytest.raises(InputError, match="no such artefact"):
        load_artefact(tmp_path / "none.npz")
    newer = save_artefact(tmp_path / "b.npz", 1).read_bytes().replace(b'"format":1', b'"format":9')
    path.write_bytes(newer)
    with pytest.raises(InputError):
        load_artefact(path)


def test_settings_keep_what_is_not_default() -> None:
    chosen = load_settings("paper", overrides=["recording.crop=[1, 2, 30, 40]", "calibration.positive=['laplacian']"])
    assert round_trip(chosen) == chosen


def test_an_older_artefact_may_lack_a_field_that_has_a_default() -> None:
    tree, arrays_ = encode(Grid(4, 6, 200.0, 300.0))
    assert isinstance(tree, dict)
    defaults = {field.name for field in dataclasses.fields(Grid) if field.default is not dataclasses.MISSING}
    assert defaults
    for name in defaults:
        del tree["fields"][name]
    assert decode(tree, arrays_) == Grid(4, 6, 200.0, 300.0)
    del tree["fields"]["ny"]
    with pytest.raises(InputError, match="the fields of"):
        decode(tree, arrays_)


def test_a_class_is_found_where_an_older_run_knew_it() -> None:
    """A module that has become a package, or has moved, keeps its run folders readable."""
    tree, arrays_ = encode(Grid(4, 6, 200.0, 300.0))
    assert isinstance(tree, dict)
    assert tree["type"] == "video2pde.field.grid:Grid"
    assert decode({**tree, "type": "video2pde.field:Grid"}, arrays_) == Grid(4, 6, 200.0, 300.0)
    front = FrontFit("weak", True, {"laplacian": 1.0}, 0.1, 0.1, 0.0, 0.0, True, "")
    tree, arrays_ = encode(front)
    assert same(decode({**tree, "type": "video2pde.calibration.front:FrontFit"}, arrays_), front)


def test_a_field_that_an_older_run_had_is_passed_over() -> None:
    boot = real_artefacts()["bootstrap"]
    tree, arrays_ = encode(boot)
    older = {**tree, "fields": {**tree["fields"], "form": "residual"}}
    assert same(decode(older, arrays_), boot)
    stranger = {**tree, "fields": {**tree["fields"], "shape": "round"}}
    with pytest.raises(InputError, match="the fields of"):
        decode(stranger, arrays_)
