"""What an analysis says: statements with their residuals, groups without dimension, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from video2pde.terms.words import Words


@dataclass(frozen=True)
class Statement:
    """One thing that can be said about a law.

    Parameters
    ----------
    latex : the formula, with the model's numbers.
    text : what it means, in a sentence or two.
    residual : relative error of the formula on a rollout of the law; None where nothing was to be computed.
    order : order with which the residual falls as the grid is refined; None where it is at rounding.
    holds : whether the rollout bears it out; None where it was not checked.
    """

    title: str
    latex: str
    text: str
    residual: float | None = None
    order: float | None = None
    holds: bool | None = None


@dataclass(frozen=True)
class Group:
    """A dimensionless group: its name, its formula and its value for this model."""

    name: str
    latex: str
    value: float


@dataclass(frozen=True)
class Analysis:
    """Hold what can be said about a law.

    ``kind``: Cole–Hopf, diffusion, reaction–diffusion, ill-posed or other. ``check`` says what the numerical checks
    were made on, ``notes`` where the idealised statements do not apply to the film.
    """

    kind: str
    equation: Words
    groups: tuple[Group, ...]
    statements: tuple[Statement, ...]
    check: str
    notes: tuple[str, ...]
