"""Recordings of known truth as a laboratory makes them, through the whole pipeline: what was found, what is true.

    python tools/laboratory.py [--only front,few] [--seed 1] [--faster 0.7] [--discover] OUT

Each recording of ``video2pde synth`` is written to OUT and run with the arguments that its ``truth.json`` gives: with
its law named, or with ``--discover`` without. ``--seed`` and ``--faster`` (a factor on D) make others than those that
tests and examples use. Prints the rows of the table in ``docs/known-truth.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shlex
import time
from pathlib import Path

from video2pde.cli import main
from video2pde.recording.synth import LABORATORY, write_laboratory


def describe(result: dict, truth: dict) -> str:
    """Write the coefficients of the chosen law beside the true ones."""
    chosen = result["selected"]
    if chosen is None:
        return "–"
    parts = []
    for name, found in chosen["terms"].items():
        true = truth["law"].get(name)
        ends = "no interval" if found["low"] is None else f"[{found['low']:.4g}, {found['high']:.4g}]"
        inside = "" if true is None or found["low"] is None or found["low"] <= true <= found["high"] else " OUT"
        off = "not in the law" if true is None else f"{found['value'] / true - 1:+.1%}{inside}"
        parts.append(f"{name} {found['value']:.4g} {ends} ({off})")
    return ", ".join(parts)


def recovered(result: dict, truth: dict) -> list[str]:
    """Write what was measured of a recovery beside what is true; nothing where there is none."""
    found = result.get("frap")
    if not isinstance(found, dict):
        return []
    true = {"diffusion": truth["law"]["laplacian"], **{k: truth[k] for k in ("mobile_fraction", "bleaching_rate")}}
    return [f"{k} {found[k]['value']:.4g} [{found[k]['low']:.4g}, {found[k]['high']:.4g}] of {true[k]:g}" for k in true]


def run(name: str, out: Path, options: argparse.Namespace) -> str:
    """Write one recording, run it, and return its row."""
    folder = out / f"{name}-{options.seed}-{options.faster:g}"
    film = write_laboratory(name, folder, options.seed, LABORATORY[name].diffusion * options.faster)
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    how = "discovered" if options.discover else "named"
    law = [] if options.discover else ["--law", ",".join(truth["law"])]
    given = [*shlex.split(truth["arguments"]), *law, *shlex.split(options.more)]
    command = ["run", film.name, "--out", how, *given, "--no-figures", "--quiet", "--overwrite"]
    began = time.perf_counter()
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as told:
        status = main([*command, "--set", "refinement.enabled=false"])
    (folder / f"{how}.txt").write_text(told.getvalue(), encoding="utf-8")
    if status:
        return f"| {name} | {how} | exit status {status} |"
    result = json.loads((folder / how / "result.json").read_text(encoding="utf-8"))
    law_name = "" if result["selected"] is None else result["selected"]["library"]
    moved = "drift {:.2g}, {:.2g}".format(*result["drift"]["mean"])
    row = [name, how, f"{result['verdict']} {law_name}", describe(result, truth), moved, *recovered(result, truth)]
    return f"| {' | '.join(row)} | {time.perf_counter() - began:.0f} s |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default=",".join(LABORATORY))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faster", type=float, default=1.0)
    parser.add_argument("--discover", action="store_true")
    parser.add_argument("--more", default="", help="further arguments of the run")
    chosen = parser.parse_args()
    for each in chosen.only.split(","):
        print(run(each, chosen.out.resolve(), chosen), flush=True)
        os.sync()
