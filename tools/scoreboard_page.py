"""The scoreboard as a page: bars, tables, and a list of what went wrong."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from datetime import datetime, UTC
from typing import Any

from video2pde import __version__

Score = dict[str, Any]

CLEAN, NOISY = 0.01, 0.03
"""Largest relative error of a coefficient that is allowed without noise, and with 2 % noise at quality 23."""
ALARMS = 0.03
"""Share of the films that the test of fit may call an approximation, or ambiguous, though all is right."""
COVERED = 0.93
"""Share of the coefficients whose interval must hold the truth."""
HELD = 0.9
"""Share of the seeds in which an interval must hold the truth."""

HEAD = """# Scoreboard

Films whose law is known, each through the whole pipeline up to the choice of the law: the right law or not, the errors
of its coefficients, and whether the 95 % intervals hold the truth. Written by

```console
$ make recovery
```

or, this page alone, `python tools/scoreboard.py`. video2pde {version}, Python {python}, {date}, {count} films.
Films of 540 × 540 pixels, 205 frames, a grid of 100 × 100 and the default settings (without inverse PINN and
front-aware recalibration, which the choice does not use), unless said otherwise. Noise is that of each camera pixel, as
a share of full scale; quality is H.264's (0 lossless, 18 good, 23 usual, 28 visibly compressed). An error is that of
the worst coefficient.
"""


def write_page(scores: Sequence[Score]) -> tuple[str, list[str]]:
    """Return the page and the bars that were missed."""
    bars = judge(scores)
    missed = [name for name, passed, _ in bars if not passed]
    head = HEAD.format(
        version=__version__, python=platform.python_version(), date=datetime.now(UTC).date(), count=len(scores)
    )
    parts = [
        head,
        "## Bars\n",
        _table(["bar", "", "measured"], [(n, "met" if p else "**missed**", t) for n, p, t in bars]),
    ]
    if some := _part(scores, "grid"):
        parts += ["## Laws × noise × compression × background\n", GRID_WORDS, grid_tables(some)]
    if some := _part(scores, "seeds"):
        parts += ["## Ten seeds at 2 % noise, quality 23\n", SEED_WORDS, seeds_table(some)]
    if some := _part(scores, "no noise"):
        parts += ["## Without noise: lossless, and at an encoder's usual quality\n", full_table(some)]
    if some := _part(scores, "full size"):
        parts += ["## Full size: 1080 × 1080 pixels, 405 frames, grid 200 × 200\n", full_table(some)]
    if some := _part(scores, "nothing"):
        parts += ["## Films without a law\n", nothing_table(some)]
    parts += ["## What went wrong\n", wrong_list(scores)]
    return "\n".join(parts), missed


GRID_WORDS = """Each cell: the error of the worst coefficient, and how many of the intervals hold the truth; or what was
chosen instead of the law.
"""
SEED_WORDS = """Errors are over the seeds in which the law was right; width is half the interval, relative to the truth.
"""


def judge(scores: Sequence[Score]) -> list[tuple[str, bool, str]]:
    """Return each bar that these scores can be held to: name, met or not, what was measured."""
    bars = []
    for name, chosen, limit in (
        ("without noise, lossless: right law, coefficients within 1 %", lambda s: _is(s, 0.0, 0), CLEAN),
        ("without noise, quality 18: right law, coefficients within 1 %", lambda s: _is(s, 0.0, 18), CLEAN),
        ("2 % noise, quality 23: right law, coefficients within 3 %", lambda s: _is(s, 0.02, 23), NOISY),
    ):
        known = [s for s in scores if s["part"] != "nothing" and chosen(s)]
        if known:
            good = [s for s in known if s["right"] and worst(s) <= limit]
            measured = f"{len(good)} of {len(known)} films"
            if len(good) < len(known):
                measured += ", not: " + ", ".join(sorted({f"{s['law']} ({s['part']})" for s in known if s not in good}))
            bars.append((name, len(good) == len(known), measured))
    if seeds := _part(scores, "seeds"):
        held = {(law, term): share for law, term, share, _ in held_shares(seeds)}
        low = min(held, key=lambda pair: held[pair])
        text = f"least: {held[low]:.0%} for {low[1]} of {low[0]}"
        bars.append(("2 % noise, quality 23: truth inside the interval in 9 of 10 seeds", held[low] >= HELD, text))
    if nothing := _part(scores, "nothing"):
        good = [s for s in nothing if s["right"]]
        bars.append(("films without a law: no_law", len(good) == len(nothing), f"{len(good)} of {len(nothing)} films"))
    if lawful := [s for s in scores if s["terms"]]:
        alarms = [s for s in lawful if s["verdict"] != "law" and all(term["held"] for term in s["terms"].values())]
        limit = ALARMS * len(scores)
        text = f"{len(alarms)} of {len(scores)} films"
        name = f"right and inside its intervals, yet not called a law: at most {ALARMS:.0%}"
        bars.append((name, len(alarms) <= limit, text))
        wrong = [s for s in scores if s["verdict"] == "law" and not s["right"]]
        bars.append(("called a law, with wrong terms: none", not wrong, f"{len(wrong)} films{_named(wrong)}"))
        inside = [t["held"] for s in lawful if s["verdict"] == "law" for t in s["terms"].values()]
        share = sum(inside) / max(len(inside), 1)
        text = f"{share:.1%} of {len(inside)} coefficients"
        bars.append((f"called a law: truth inside the 95 % interval in {COVERED:.0%}", share >= COVERED, text))
    if tried := [s for s in scores if s.get("flow")]:
        moved = [s for s in tried if s["flow"] != "uniform"]
        text = f"{len(tried) - len(moved)} of {len(tried)} films{_named(moved)}"
        bars.append(('no flow is found where there is none (`drift.flow = "auto"`)', not moved, text))
    return bars


def _named(scores: Sequence[Score]) -> str:
    """List films by law, noise and quality, where there are any."""
    return "".join(f"; {s['law']} {s['noise']:.0%} q{s['crf']} b{s['background']:g}" for s in scores)


def held_shares(seeds: Sequence[Score]) -> list[tuple[str, str, float, list[dict[str, float]]]]:
    """Return, for each law and term, the share of seeds whose interval holds the truth, and the seeds' figures."""
    rows = []
    for law in dict.fromkeys(s["law"] for s in seeds):
        own = [s for s in seeds if s["law"] == law]
        for term in dict.fromkeys(t for s in own for t in s["terms"]):
            found = [s["terms"][term] for s in own if term in s["terms"]]
            rows.append((law, term, sum(f["held"] for f in found) / len(own), found))
    return rows


def worst(score: Score) -> float:
    """Return the largest relative error of a coefficient; infinite where the law is wrong."""
    return max((abs(term["error"]) for term in score["terms"].values()), default=float("inf"))


def grid_tables(scores: Sequence[Score]) -> str:
    """Return one table for each quality: laws and backgrounds down, noise across."""
    noises = sorted({s["noise"] for s in scores})
    tables = []
    for crf in sorted({s["crf"] for s in scores}):
        rows = []
        for law, background in dict.fromkeys((s["law"], s["background"]) for s in scores):
            own = [s for s in scores if (s["law"], s["background"], s["crf"]) == (law, background, crf)]
            cells = {s["noise"]: _cell(s) for s in own}
            rows.append([law, f"{background:g}", *(cells.get(noise, "") for noise in noises)])
        head = ["law", "background", *(f"{noise:.0%} noise" for noise in noises)]
        tables.append(f"Quality {crf}:\n\n{_table(head, rows)}")
    return "\n".join(tables)


def _cell(score: Score) -> str:
    if not score["right"]:
        return f"**{_chosen(score)}**"
    terms = score["terms"].values()
    return f"{worst(score):.2%}, {sum(t['held'] for t in terms)}/{len(terms)}"


def _chosen(score: Score) -> str:
    return str(score["chosen"] or score["verdict"])


def seeds_table(scores: Sequence[Score]) -> str:
    rows = []
    for law, term, share, found in held_shares(scores):
        own = [s for s in scores if s["law"] == law]
        errors = [f["error"] for f in found]
        mean = sum(errors) / len(errors)
        width = sum(f["width"] for f in found) / len(found)
        right = f"{sum(s['right'] for s in own)} of {len(own)}"
        held = f"{round(share * len(own))} of {len(own)}"
        rows.append([law, right, f"`{term}`", f"{mean:+.2%}", f"{max(map(abs, errors)):.2%}", f"{width:.2%}", held])
    return _table(["law", "right", "coefficient", "mean error", "largest error", "width", "holds the truth"], rows)


def full_table(scores: Sequence[Score]) -> str:
    rows = []
    for s in scores:
        errors = [f"`{name}` {t['error']:+.2%}{'' if t['held'] else ' (outside)'}" for name, t in s["terms"].items()]
        found = "right" if s["right"] else _chosen(s)
        rows.append([s["law"], f"{s['noise']:.0%}", s["crf"], found, ", ".join(errors)])
    return _table(
        ["law", "noise", "quality", "law found", "errors (outside: the interval does not hold the truth)"], rows
    )


def nothing_table(scores: Sequence[Score]) -> str:
    rows = [[s["law"], f"{s['noise']:.0%}", s["seed"], s["verdict"], s["chosen"] or ""] for s in scores]
    return _table(["film", "noise", "seed", "verdict", "law"], rows)


def wrong_list(scores: Sequence[Score]) -> str:
    """Name every film whose law was not found, or was found where there is none."""
    wrong = [
        f"- {s['law']}, noise {s['noise']:.0%}, quality {s['crf']}, background {s['background']:g}, seed {s['seed']}"
        f" ({s['part']}): {s['verdict']} {s['chosen'] or ''}"
        for s in scores
        if not s["right"]
    ]
    return "\n".join(wrong or ["Nothing: every law was found, and none where there is none."]) + "\n"


def _part(scores: Sequence[Score], part: str) -> list[Score]:
    return [s for s in scores if s["part"] == part]


def _is(score: Score, noise: float, crf: int) -> bool:
    return bool(score["noise"] == noise and score["crf"] == crf)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + "\n"
