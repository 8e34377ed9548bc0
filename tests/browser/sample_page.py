"""A page like a finished run's, from made-up numbers: every kind of item, hostile names included."""

from __future__ import annotations

import base64

import numpy as np

from video2pde.estimate import Estimate
from video2pde.field import Field, Grid, Windows
from video2pde.report.document import (
    Axis,
    Bar,
    Chart,
    Check,
    Code,
    Coefficient,
    Column,
    Comparison,
    Details,
    Ellipse,
    Equation,
    Head,
    Headline,
    Heatmap,
    histogram,
    Image,
    Link,
    Marker,
    Math,
    Note,
    Page,
    Pairs,
    Paragraph,
    Quantity,
    Section,
    Series,
    Span,
    Strong,
    Table,
    Tiles,
)
from video2pde.report.films import make_player

HOSTILE = "<img src=x onerror=alert(1)>"
ESCAPE = "</script><script>window.hacked = true</script><!--"
FRAMES, SIDE = 60, 80
TERMS = ("1", "u", "u²", "|∇u|²", "u|∇u|²", "Δu", "−vₓuₓ", "−v_y u_y")
LIBRARIES = ("A", "B", "C", "C-alt", "C-both", "Full")
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def sample_field(frames: int = FRAMES, side: int = SIDE, noise: float = 0.004, seed: int = 3) -> Field:
    """Make a plume that spreads and drifts, with a little camera noise."""
    rng = np.random.default_rng(seed)
    grid = Grid(side, side, 1.0, 1.0)
    times = np.linspace(0.0, 33.6, frames)
    return Field(_plume(grid, times, 1.0) + noise * rng.standard_normal((frames, side, side)), times, grid)


def sample_prediction(field: Field, first: int) -> tuple[int, np.ndarray]:
    """Predict from ``first`` on, a little too wide."""
    times = field.times[first:]
    growth = 1.0 + 0.03 * (times - times[0]) / max(times[-1] - times[0], 1e-9)
    return first, _plume(field.grid, times, growth).astype(np.float32)


def _plume(grid: Grid, times: np.ndarray, growth: np.ndarray | float) -> np.ndarray:
    t = times[:, None, None]
    x, y = grid.x[None, None, :] - 0.42 - 0.003 * t, grid.y[None, :, None] - 0.55 + 0.001 * t
    angle = np.arctan2(y, x)
    radius = (0.1 + 0.035 * np.sqrt(t)) * np.reshape(growth, (-1, 1, 1)) * (1 + 0.08 * np.cos(3 * angle))
    return 0.12 + 0.75 / (1 + np.exp((np.hypot(x, y) - radius) / 0.025))


def sample_page() -> Page:
    """Compose the page."""
    field = sample_field()
    windows = Windows.split(FRAMES)
    player = make_player(
        field,
        [sample_prediction(field, windows.train_end), sample_prediction(field, windows.validation_end)],
        windows,
        alt="A dark plume spreads from the middle and drifts to the right.",
        caption="The prediction starts from the first frame of each held-out window.",
    )
    head = Head(
        verdict="One law explains this recording",
        level="good",
        summary=(
            "Library C predicts the held-out test window with a relative error of 4.2 %, less than half that ",
            "of the best baseline, and its two terms were selected in every one of 100 random samples. See ",
            Link("the selection", "selection"),
            ".",
        ),
        equation=Equation(
            r"u_t + c_x v_x(t)\,u_x + c_y v_y(t)\,u_y = a\,\left|\nabla u\right|^{2} + \beta\,\Delta u",
            "u_t + c_x v_x(t) u_x + c_y v_y(t) u_y = a |∇u|² + β Δu",
        ),
        coefficients=(
            Coefficient(Math("a", "a"), "|∇u|², motion of the front", Estimate(9.0056, 8.951, 9.061), "image units²/s"),
            Coefficient(Math(r"\beta", "β"), "Δu, diffusion", Estimate(0.6654, 0.641, 0.688), "image units²/s"),
            Coefficient(
                Math("c_x", "c_x"),
                "drift along x",
                Estimate(1.012, 0.981, 1.044),
                "1",
                "1 if the measured drift is right",
            ),
            Coefficient(Math("c_y", "c_y"), "drift along y", Estimate(0.987, 0.94, 1.031), "1"),
        ),
        headlines=(
            Headline("Test error (rRMSE)", "4.2 %", "held out, looked at once"),
            Headline("Front position", "1.3 px", "root mean square"),
            Headline("Selected in", "100 of 100", "random samples"),
            Headline("Film", "60 frames", "33.6 s at 80 × 80"),
        ),
        comparisons=(
            Comparison(
                "Relative error on the test window",
                (
                    Bar("this law", 0.042, True),
                    Bar("advection–diffusion", 0.093),
                    Bar("last frame persists", 0.187),
                    Bar("linear extrapolation", 0.214),
                ),
                note="Less is better.",
            ),
            Comparison(
                "Front-radius error",
                (Bar("this law", 0.013, True), Bar("advection–diffusion", 0.041), Bar("last frame persists", 0.062)),
                "image units",
            ),
        ),
        player=player,
        notes=(Note("The background changes by 1.8 % over the film; it was subtracted frame by frame.", "warning"),),
    )
    return Page(
        "Report on dye-07.mp4",
        head,
        (
            _preprocessing(),
            _drift(field, windows),
            _conditioning(),
            _sweep(),
            _bootstrap(),
            _selection(),
            _settings(),
        ),
        subtitle=f"dye-07.mp4, sha256 3f9a…, also known as {HOSTILE}",
        footer=("Made by ", Code("video2pde 0.1.0"), f" from {ESCAPE}"),
    )


def _preprocessing() -> Section:
    table = Table(
        (
            Column("stage"),
            Column("frames", align="right"),
            Column("rows × columns", "px"),
            Column("least", align="right", format=".3f"),
            Column("greatest", align="right", format=".3f"),
        ),
        (
            ("decoded", 60, "1080 × 1080", 0.012, 0.991),
            ("cropped", 60, "960 × 960", 0.012, 0.987),
            ("resized", 60, "80 × 80", 0.118, 0.874),
            (HOSTILE, 60, "80 × 80", 1.2e-7, float("nan")),
        ),
        "What each preprocessing stage left.",
    )
    picture = Image(_PIXEL, "image/png", "A single blue pixel", f"A picture with a caption: {ESCAPE}")
    return Section(
        "preprocessing",
        "Preprocessing and checks",
        "The film decoded without gaps; all six checks passed.",
        (table, Details("The raw frame", (picture,))),
    )


def _drift(field: Field, windows: Windows) -> Section:
    times = field.times
    spans = tuple(
        Span(label, times[window.start], times[window.stop - 1], colour)
        for label, window, colour in (
            ("train", windows.train, "blue"),
            ("validation", windows.validation, "orange"),
            ("test", windows.test, "green"),
        )
    )
    speed = 0.0031 + 0.0006 * np.sin(times / 5)
    gap = np.where((times > 12) & (times < 14), np.nan, -0.0012 + 0.0003 * np.cos(times / 4))
    velocity = Chart(
        "Drift velocity",
        Axis("time", "s"),
        Axis("velocity", "image units/s"),
        (
            Series("v_x", times, speed, low=speed - 4e-4, high=speed + 4e-4, band=True, colour="blue"),
            Series("v_y", times, gap, colour="orange", dashed=True),
        ),
        "Both components of the drift hardly change over the film.",
        "Bands: two standard errors. The gap marks frames without a centroid.",
        spans=spans,
        markers=(Marker("zero", 0.0, "y", "grey"),),
    )
    path = Chart(
        "Centroid",
        Axis("x", "image units"),
        Axis("y", "image units", downwards=True),
        (
            Series("measured", 0.42 + 0.003 * times, 0.55 - 0.001 * times + 0.0005 * np.sin(times), markers=True),
            Series("raw", 0.47 + 0.0004 * times, 0.52 - 0.0002 * times, style="scatter", colour="grey"),
        ),
        "The centroid moves right and slightly up.",
        equal_aspect=True,
    )
    return Section(
        "drift",
        "Drift and background",
        "The plume drifts by 0.0031 image units per second along x.",
        (Tiles((velocity, path)),),
    )


def _conditioning() -> Section:
    rng = np.random.default_rng(1)
    maps = []
    for library in LIBRARIES[:3]:
        correlation = np.corrcoef(rng.standard_normal((8, 12)))
        maps.append(
            Heatmap(
                f"Library {library}",
                correlation,
                TERMS,
                TERMS,
                f"Correlations of the columns of library {library}.",
                "correlation",
                "diverging",
                (-1.0, 1.0),
            )
        )
    condition = Chart(
        "Condition number by library",
        Axis("library", categories=LIBRARIES),
        Axis("condition number", log=True),
        (
            Series("raw", range(6), [12, 30, 41, 77, 690, 2.4e5], style="bars", colour="grey"),
            Series("normalised", range(6), [3, 4.1, 5.2, 6.6, 48, 1900], style="bars", colour="blue"),
        ),
        "The full library is far worse conditioned than the others.",
    )
    return Section(
        "conditioning",
        "Conditioning and correlations",
        "Libraries A to C-alt are well conditioned; the full library is not.",
        (Tiles(tuple(maps), 3), condition),
    )


def _sweep() -> Section:
    threshold = np.logspace(-4, 0, 60)
    paths = tuple(
        Series(name, threshold, np.where(threshold < cut, size, np.nan), markers=False)
        for name, size, cut in (
            (TERMS[3], 9.0, 0.8),
            (TERMS[5], 0.67, 0.09),
            (TERMS[2], -0.4, 0.01),
            (TERMS[1], 0.1, 0.002),
        )
    )
    coefficients = Chart(
        "Coefficients along the threshold sweep",
        Axis("threshold", log=True),
        Axis("coefficient"),
        paths,
        "The gradient term survives every threshold up to 0.8.",
        markers=(Marker("chosen", 0.02),),
    )
    counts = Chart(
        "Active terms",
        Axis("threshold", log=True),
        Axis("terms", limits=(0, 5)),
        (Series("C", threshold, np.digitize(-threshold, [-0.8, -0.09, -0.01, -0.002]), style="steps"),),
        "The number of active terms falls from four to none.",
    )
    steps = np.arange(12_000)
    loss = Chart(
        "Inverse-PINN loss",
        Axis("step"),
        Axis("loss", log=True),
        (Series("total", steps, 1e-2 * np.exp(-steps / 2000) * (1 + 0.3 * np.sin(steps)) + 1e-5, colour="purple"),),
        "The loss falls by three orders of magnitude.",
    )
    return Section(
        "sweep",
        "Threshold sweep",
        ("Two terms, ", Math(r"\left|\nabla u\right|^{2}", "|∇u|²"), " and ", Math(r"\Delta u", "Δu"), ", persist."),
        (Tiles((coefficients, counts)), loss),
    )


def _bootstrap() -> Section:
    rng = np.random.default_rng(5)
    covariance = np.array([[0.0008, 0.0002, 0.0], [0.0002, 0.00015, 0.0], [0.0, 0.0, 0.0003]])
    samples = rng.multivariate_normal([9.0056, 0.6654, 1.01], covariance, 200)
    pairs = Pairs(
        "Bootstrap replicates",
        (
            Quantity("a", "", Estimate(9.0056, 8.951, 9.061), 9.005),
            Quantity("β", "", Estimate(0.6654, 0.641, 0.688), 0.666),
            Quantity("c_x", "", Estimate(1.01, 0.98, 1.04)),
        ),
        samples,
        "The replicates of a and β are positively correlated.",
        samples.mean(axis=0),
        covariance,
        caption="Lines: estimate (dark) and true value (red). Shaded: 95 % interval. Ellipses hold 95 %.",
    )
    count = np.arange(5, 201, 5)
    half = 0.055 * np.sqrt(1 + 20 / count)
    convergence = Chart(
        "Interval of a against replicates",
        Axis("replicates"),
        Axis("a", "image units²/s"),
        (Series("mean", count, np.full(count.size, 9.006), style="scatter", low=9.006 - half, high=9.006 + half),),
        "The interval settles after about fifty replicates.",
    )
    spread = Chart(
        "Distribution of a",
        Axis("a", "image units²/s"),
        Axis("replicates"),
        (histogram("a", samples[:, 0]),),
        "The replicates of a are roughly normal.",
        markers=(Marker("estimate", 9.0056),),
    )
    ellipse = Chart(
        "a and β",
        Axis("a"),
        Axis("β"),
        (Series("replicate", samples[:, 0], samples[:, 1], style="scatter"),),
        "Replicates and their 95 % ellipse.",
        ellipses=(Ellipse("95 %", (9.0056, 0.6654), ((0.0008, 0.0002), (0.0002, 0.00015))),),
    )
    return Section(
        "bootstrap",
        "Bootstrap",
        "Two hundred replicates give a narrow, unimodal distribution.",
        (pairs, Tiles((convergence, spread)), Details("The ellipse alone", (ellipse,))),
    )


def _selection() -> Section:
    yes, no = Check(True), Check(False)
    table = Table(
        (
            Column("library"),
            Column("well conditioned"),
            Column("stable"),
            Column("β > 0"),
            Column("beats baselines"),
            Column(Math("a", "a"), "image units²/s", "right"),
            Column("rRMSE", align="right", format=".3f"),
        ),
        (
            (Strong("C"), yes, yes, yes, yes, Estimate(9.0056, 8.951, 9.061), 0.042),
            ("C-alt", yes, yes, yes, no, Estimate(11.2, 10.8, 11.7), 0.061),
            ("A", yes, no, yes, Check(False, "12 % worse"), None, 0.093),
            ("Full", no, no, Check(None), no, Estimate(4.1e-5, 3.8e-5, 4.4e-5), 0.31),
        ),
        "The four criteria. Only library C meets them all.",
    )
    return Section("selection", "Selection", "Library C is the only one that passes all four criteria.", (table,))


def _settings() -> Section:
    rows = tuple((Code(f"section.key_{i}"), HOSTILE if i == 3 else f"value {i}") for i in range(12))
    table = Table((Column("setting"), Column("value")), rows)
    return Section(
        "settings",
        "Settings and provenance",
        ("Every value used, from ", Code("settings.toml"), "."),
        (Paragraph("All settings have their default except those listed first."), Note("Seed 7.", "info"), table),
        collapsed=True,
    )
