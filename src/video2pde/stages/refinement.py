"""Refinement: the leading contenders' coefficients by the inverse PINN, each with its own checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from video2pde.device import choose_device
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.refinement.result import Refinement
from video2pde.runs.events import Events
from video2pde.settings import Settings
from video2pde.stages.structure import Contender, Discovery


def refine_contenders(
    contenders: Sequence[Contender],
    train: Field,
    drift: Drift,
    found: Discovery,
    settings: Settings,
    *,
    events: Events,
    folder: Path,
) -> dict[str, Refinement]:
    """Refine the leading contenders by the inverse PINN; none where that is off.

    Parameters
    ----------
    contenders : the most explaining ones first.
    train : the training window, and ``drift`` over its frames.
    folder : where checkpoints are kept, so that an interrupted training goes on.
    """
    options = settings.refinement
    if not options.enabled or not contenders:
        return {}
    # JAX takes seconds to load, and most runs do without it
    from video2pde.refinement.refine import refine

    done: dict[str, Refinement] = {}
    chosen = [contender for contender in contenders if not contender.maps][: options.contenders]
    if not chosen:
        events.note("the inverse PINN is left out: it knows one number for each coefficient, and here one varies")
        return {}
    for index, contender in enumerate(chosen):
        velocity = contender.velocity(train, drift, found.moments)

        def tell(standing: Any, index: int = index, name: str = contender.library) -> None:
            figures = ", ".join(f"{term} {value:.4g}" for term, value in standing.coefficients.items())
            events.progress(round(1000 * (index + standing.share)), 1000 * len(chosen), f"{name}: {figures}")

        done[contender.library] = refine(
            train,
            contender.terms,
            velocity,
            list(contender.weak.values()),
            options,
            device=choose_device(settings.run.device, train.grid.ny * train.grid.nx),
            checkpoint=folder / f"refinement-{contender.library}.npz",
            progress=tell,
            flow=contender.flow,
        )
        if done[contender.library].interrupted:
            raise KeyboardInterrupt
    return done
