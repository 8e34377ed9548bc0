"""A small study as ``video2pde study`` leaves it, with numbers made up and everything else the program's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from video2pde.estimate import Estimate
from video2pde.settings import SelectionSettings
from video2pde.study.choice import choose_shared
from video2pde.study.equality import Asked
from video2pde.study.films import FilmRun
from video2pde.study.joint import JointLaw
from video2pde.study.order import compare, Study
from video2pde.study.own import Answer, OwnFit
from video2pde.study.prediction import gather, law_of, OTHERS, Outcome, PERSISTENCE, Predicted, SHARED, Shown
from video2pde.study.publish import publish
from video2pde.terms import CATALOGUE

DIFFUSION = {"shallow": 0.98, "middle": 1.03, "deep <b>": 1.01}
"""Each film's own coefficient; the shared one is 1."""
HALF = 0.06


def make_study(root: Path, finished: bool = True) -> Path:
    """Leave a study of three films in a folder; each film's run is an empty one."""
    for film in DIFFUSION:
        (root / "films" / film / "stages").mkdir(parents=True)
        (root / "films" / film / "settings.toml").write_text("")
    (root / "stages").mkdir()
    (root / "settings.toml").write_text("")
    if finished:
        publish(root, _study(root))
    return root


def _study(root: Path) -> Study:
    rng = np.random.default_rng(5)
    own = tuple(
        OwnFit(
            Asked(film, np.array([value]), np.array([HALF]), 0.03 * rng.standard_normal((40, 1))),
            np.zeros(1),
            np.zeros((40, 1)),
            True,
        )
        for film, value in DIFFUSION.items()
    )
    answers = tuple(Answer(film, np.eye(1), np.zeros(1), 1.0) for film in DIFFUSION)
    estimates = {"laplacian": Estimate(1.0, 0.97, 1.03)}
    terms = (CATALOGUE["laplacian"],)
    law = JointLaw("A", terms, estimates, np.ones(1), np.zeros((2, 1)), own, answers, 2, True, {})
    scores = [_outcomes(film, "validation") for film in DIFFUSION]
    films = tuple(
        FilmRun(film, str(root / "films" / film), "", {"depth": float(k)}) for k, film in enumerate(DIFFUSION)
    )
    return Study(
        "Ink at three depths",
        "mm",
        films,
        {"broken": "it cannot be read"},
        laws={"A": law},
        choice=choose_shared({"A": law}, scores, SelectionSettings(), ""),
        comparison=compare(law, films, ["depth"]),
        predictions=gather(
            tuple(DIFFUSION), {film: np.ones(1) for film in DIFFUSION}, [_outcomes(film, "test") for film in DIFFUSION]
        ),
    )


def _outcomes(film: str, window: str) -> Predicted:
    names = {SHARED: 0.031, OTHERS: 0.04, PERSISTENCE: 0.3, "A": 0.03, **{law_of(name): 0.033 for name in DIFFUSION}}
    outcomes = tuple(Outcome(name, error, 0.9, 0.1) for name, error in names.items())
    t, y, x = np.meshgrid(np.arange(12), np.linspace(-1, 1, 24), np.linspace(-1, 1, 24), indexing="ij")
    observed = np.exp(-(x**2 + y**2) / (0.1 + 0.02 * t)).astype(np.float32)
    forecast = np.where(t < 6, np.nan, observed + 0.01).astype(np.float32)
    return Predicted(film, window, outcomes, Shown(np.arange(12.0), observed, forecast))  # type: ignore[arg-type]
