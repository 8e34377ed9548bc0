"""The page's Python side: numbers, formulae, films, escaping, whole-or-nothing writing."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid, Windows
from video2pde.numbers import format_estimate, format_number
from video2pde.report import page as page_module
from video2pde.report.document import (
    Axis,
    Chart,
    Check,
    Column,
    Equation,
    Head,
    Heatmap,
    histogram,
    Image,
    Math,
    Page,
    Pairs,
    Paragraph,
    Quantity,
    Section,
    Series,
    Table,
)
from video2pde.report.films import encode, make_player, quantise
from video2pde.report.mathml import latex_to_tree
from video2pde.report.page import render_page, write_page

HOSTILE = "<img src=x onerror=alert(1)></script><!--\u2028"


def document_of(html: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def film_of(html: str, number: int, shape: tuple[int, ...]) -> np.ndarray:
    (text,) = re.findall(rf'<script type="text/plain" id="film-{number}">(.*?)</script>', html)
    delta = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(shape)
    return np.cumsum(delta, axis=0, dtype=np.uint8)


def small_page(*items: object, **head: object) -> Page:
    section = Section("only", "Only", "One section.", tuple(items))  # type: ignore[arg-type]
    return Page("Title", Head("A law", "good", "It works.", **head), (section,))  # type: ignore[arg-type]


@pytest.fixture
def field() -> Field:
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(0.0, 0.05, (30, 12, 17)), axis=0)
    return Field(values, np.arange(30) * 0.5, Grid(12, 17, 2.4, 3.4, "mm"))


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "spec", "text"),
        [
            (-1.5, ".3f", "−1.500"),
            (1.2e-7, ".3g", "1.2×10⁻⁷"),
            (-3e12, ".2g", "−3×10¹²"),
            (None, ".3g", "–"),
            (float("nan"), ".3g", "–"),
            (float("-inf"), ".3g", "−∞"),
            (1009, ".3g", "1009"),
            (0.042, ".1%", "4.2%"),
            (12345, ",", "12,345"),
        ],
    )
    def test_numbers_are_written_for_people(self, value: float, spec: str, text: str) -> None:
        assert format_number(value, spec) == text

    @pytest.mark.parametrize(
        ("numbers", "texts"),
        [
            ((9.00561, 8.9513, 9.0612), ("9.006", "[8.951, 9.061]")),
            ((0.6654, 0.641, 0.688), ("0.665", "[0.641, 0.688]")),
            ((-120.4, -180.0, -60.0), ("−120", "[−180, −60]")),
            ((4.1e-5, 3.8e-5, 4.4e-5), ("4.10×10⁻⁵", "[3.80, 4.40]×10⁻⁵")),
            ((2.0, 2.0, 2.0), ("2", "[2, 2]")),
            ((2.0,), ("2", "")),
        ],
    )
    def test_estimates_show_the_digits_that_their_interval_supports(self, numbers: tuple, texts: tuple) -> None:
        assert format_estimate(Estimate(*numbers)) == texts


class TestFormulae:
    def test_a_law_becomes_mathml(self) -> None:
        tree = latex_to_tree(r"u_t = 9.005\,\left|\nabla u\right|^{2} + \frac{\beta}{2}\,\Delta u")
        text = json.dumps(tree, ensure_ascii=False)
        assert tree is not None
        assert tree[0] == "math"
        for part in ('"msub"', '"mfrac"', '"msup"', "∇", "Δ", "β", "9.005"):
            assert part in text

    @pytest.mark.parametrize("latex", ["{", r"\left( u", "x^{2}^{3}"])
    def test_what_cannot_be_set_falls_to_the_plain_text(self, latex: str) -> None:
        assert latex_to_tree(latex) is None
        assert document_of(render_page(small_page(Equation(latex, "plain"))))["sections"][0]["items"][0]["tree"] is None

    def test_markup_inside_a_formula_is_not_let_through(self) -> None:
        assert latex_to_tree(r"\text{<script>alert(1)</script>}") is None
        tree = latex_to_tree(r"\text{<mi onclick='alert(1)'>u</mi>}")
        assert "onclick" not in json.dumps(tree)


class TestFilms:
    def test_levels_are_within_half_a_step(self, field: Field) -> None:
        low, high = float(field.values.min()), float(field.values.max())
        levels = quantise(field.values, low, high)
        shown = low + (high - low) * levels / 255.0
        assert np.abs(shown - field.values).max() <= 0.5001 * (high - low) / 255

    def test_a_film_survives_the_page(self, field: Field) -> None:
        windows = Windows.split(len(field))
        prediction = field.values[windows.train_end :] + 0.02
        player = make_player(field, [(windows.train_end, prediction)], windows)
        html = render_page(small_page(player))
        model = document_of(html)["sections"][0]["items"][0]
        for key, truth, frames in (
            ("observed", field.values, range(30)),
            ("predicted", prediction, range(windows.train_end, 30)),
            ("difference", prediction - field.values[windows.train_end :], range(windows.train_end, 30)),
        ):
            film = model[key]
            levels = film_of(html, film["payload"], (len(frames), 12, 17))
            shown = film["low"] + (film["high"] - film["low"]) * levels / 255.0
            assert film["frames"] == list(frames)
            assert np.abs(shown - truth).max() < (film["high"] - film["low"]) / 255
        assert (model["width"], model["height"], model["unit"]) == (3.4, 2.4, "mm")
        assert [(w["label"], w["start"], w["end"]) for w in model["windows"]] == [
            ("train", 0, 18),
            ("validation", 18, 24),
            ("test", 24, 30),
        ]

    def test_forgetting_the_delta_would_be_seen(self, field: Field) -> None:
        levels = quantise(field.values, -1.0, 1.0)
        raw = np.frombuffer(zlib.decompress(encode(levels)), np.uint8).reshape(levels.shape)
        assert not np.array_equal(raw, levels)
        assert np.array_equal(np.cumsum(raw, axis=0, dtype=np.uint8), levels)

    def test_perfect_agreement_has_the_neutral_level(self, field: Field) -> None:
        player = make_player(field, [(10, field.values[10:20])])
        assert player.difference is not None
        levels = np.frombuffer(zlib.decompress(player.difference.payload), np.uint8).reshape(10, 12, 17)
        assert (np.cumsum(levels, axis=0, dtype=np.uint8) == 128).all()

    def test_a_rollout_that_blew_up_neither_stretches_the_scale_nor_counts_where_undefined(self, field: Field) -> None:
        wild = np.array(field.values[20:], dtype=float)
        wild[3, 0, 0] = 1e12
        wild[7:] = np.nan
        player = make_player(field, [(20, wild)])
        assert player.predicted is not None
        assert player.difference is not None
        assert player.predicted.frames == tuple(range(20, 27))
        assert player.predicted.clipped
        assert player.difference.clipped
        assert player.predicted.high - player.predicted.low <= 3 * (player.observed.high - player.observed.low)

    def test_a_large_noisy_film_keeps_to_its_budget(self) -> None:
        rng = np.random.default_rng(2)
        noisy = Field(rng.random((120, 300, 40)), np.arange(120.0), Grid(300, 40, 3.0, 0.4))
        player = make_player(noisy, [(60, noisy.values[60:])], Windows.split(120), budget=100_000)
        films = (player.observed, player.predicted, player.difference)
        assert sum(len(film.payload) for film in films if film is not None) * 4 / 3 <= 100_000
        assert (player.observed.ny, player.observed.nx) == (150, 20)
        assert (player.times[0], player.times[-1]) == (0.0, 119.0)
        assert 2 <= len(player.times) < 120

    def test_masks_travel_as_bits(self, field: Field) -> None:
        mask = np.zeros((12, 17), bool)
        mask[2:9, 3:] = True
        masked = Field(field.values, field.times, field.grid, mask)
        packed = document_of(render_page(small_page(make_player(masked))))["sections"][0]["items"][0]["mask"]
        bits = np.unpackbits(np.frombuffer(zlib.decompress(base64.b64decode(packed)), np.uint8))[: mask.size]
        assert np.array_equal(bits.reshape(mask.shape), mask)

    def test_a_constant_field_can_be_shown(self) -> None:
        flat = Field(np.full((3, 4, 4), 0.5), np.arange(3.0), Grid(4, 4, 1.0, 1.0))
        assert make_player(flat, [(0, flat.values)]).observed.high > 0.5


class TestPage:
    def test_hostile_text_stays_inside_the_data(self) -> None:
        table = Table((Column(HOSTILE),), ((HOSTILE,),), HOSTILE)
        page = Page(HOSTILE, Head(HOSTILE, "error", HOSTILE), (Section("s", HOSTILE, HOSTILE, (table,)),), HOSTILE)
        html = render_page(page)
        assert "<img src=x" not in html
        assert html.count("</script>") == len(re.findall(r"<script[ >]", html)) == 2
        assert document_of(html)["sections"][0]["title"] == HOSTILE

    def test_the_policy_allows_our_script_alone_and_no_network(self) -> None:
        html = render_page(small_page())
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "'unsafe-inline'" not in policy.split("style-src")[0]
        assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", html)

    def test_numbers_that_json_lacks_become_null(self) -> None:
        series = Series("s", [0.0, 1.0, 2.0], np.array([1 / 3, np.nan, np.inf]))
        chart = Chart("c", Axis("x"), Axis("y"), (series,), "alt")
        shown = document_of(render_page(small_page(chart)))["sections"][0]["items"][0]["series"][0]
        assert shown["y"] == [0.3333333, None, None]

    def test_cells_carry_text_order_and_marks(self) -> None:
        row = (
            "word",
            3,
            0.12345,
            None,
            Estimate(2.0, 1.5, 2.5),
            Check(False, "too slow"),
            True,
            Math("a", "a"),
            np.float32(0.5),
        )
        columns = tuple(Column(str(i), format=".3g") for i in range(len(row)))
        (cells,) = document_of(render_page(small_page(Table(columns, (row,)))))["sections"][0]["items"][0]["rows"]
        texts = [cell["text"] for cell in cells]
        assert texts == ["word", "3", "0.123", "–", "2.00", "too slow", "pass", "a", "0.5"]
        assert cells[4]["interval"] == "[1.50, 2.50]"
        assert [cells[5]["state"], cells[6]["state"]] == ["fail", "pass"]
        assert cells[3]["sort"] is None

    def test_pictures_are_embedded(self, tmp_path: Path) -> None:
        file = tmp_path / "figure.svg"
        file.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
        item = document_of(render_page(small_page(Image.from_file(file, "a figure"))))["sections"][0]["items"][0]
        kind, data = item["source"].split(",")
        assert kind == "data:image/svg+xml;base64"
        assert base64.b64decode(data) == file.read_bytes()
        with pytest.raises(ValueError, match="none of"):
            Image.from_file(tmp_path / "figure.tiff", "a figure")

    def test_a_failed_write_leaves_the_old_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target = write_page(small_page(Paragraph("first")), tmp_path / "report.html")
        before = target.read_bytes()
        with pytest.raises(TypeError, match="cannot hold a set"):
            write_page(small_page({1, 2}), target)
        monkeypatch.setattr(page_module, "_static", lambda name: "</script>" if name.endswith("js") else "")
        with pytest.raises(ValueError, match="cannot be inlined"):
            write_page(small_page(), target)
        assert target.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

    def test_a_folder_that_does_not_exist_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot write"):
            write_page(small_page(), tmp_path / "nowhere" / "report.html")


class TestDocument:
    def test_mismatched_numbers_are_refused(self) -> None:
        with pytest.raises(ValueError, match="2 x values for 3"):
            Series("s", [0, 1], [0, 1, 2])
        with pytest.raises(ValueError, match="both its ends"):
            Series("s", [0], [0], low=[0])
        with pytest.raises(ValueError, match="1 cells for 2 columns"):
            Table((Column("a"), Column("b")), ((1,),))
        with pytest.raises(ValueError, match="2 rows"):
            Heatmap("h", np.zeros((3, 3)), ("a", "b"), ("a", "b", "c"), "alt")
        with pytest.raises(ValueError, match="for 1 quantities"):
            Pairs("p", (Quantity("a"),), np.zeros((5, 2)), "alt")

    def test_section_ids_are_unique_words(self) -> None:
        with pytest.raises(ValueError, match="section id"):
            Section("a b", "A", "s")
        twice = Section("a", "A", "s")
        with pytest.raises(ValueError, match="two sections"):
            Page("t", Head("v", "good", "s"), (twice, twice))

    def test_a_histogram_counts_every_finite_sample(self) -> None:
        series = histogram("h", np.array([0.0, 1.0, 1.5, np.nan, 4.0]), bins=4)
        assert list(series.y) == [1, 2, 0, 1]
        assert len(series.x) == 5
