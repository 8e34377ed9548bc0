"""The stage: refine a library's coefficients on the training window by an inverse PINN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TYPE_CHECKING

import jax
import numpy as np
from numpy.typing import NDArray

from video2pde.device import choose_device, Device, load_jax
from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.flow import Flow
from video2pde.refinement.checkpoint import fingerprint
from video2pde.refinement.job import Job, Standing, Task
from video2pde.refinement.perceptron import PerceptronJob
from video2pde.refinement.radial import RadialJob
from video2pde.refinement.result import Refinement, SeedRun, summarise
from video2pde.refinement.sampling import average_neighbours
from video2pde.terms.term import Term

if TYPE_CHECKING:
    from video2pde.settings import RefinementSettings


def refine(
    train_field: Field,
    terms: Sequence[Term],
    velocity: NDArray[np.float64],
    start: Sequence[float] | None,
    settings: RefinementSettings,
    *,
    device: Device = "cpu",
    seeds: Sequence[int] | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[Standing], None] | None = None,
    flow: Flow | None = None,
) -> Refinement:
    """Fit a network and the coefficients c of û_t + v·∇û = Σ c_j T_j(û) to the training window.

    Parameters
    ----------
    train_field : the training window alone; only points inside its mask are used.
    terms : intrinsic terms T_j of the library, without the drift.
    velocity : v(t), shape (t, 2), length per second at the frames' times; its coefficient is 1.
    start : coefficients to start from, one per term; None: those of the pretrained network.
    seeds : of weights and samples, instead of ``settings.seeds``.
    checkpoint : file to resume from and to save to; the seed is added to its name.
    progress : called after every chunk of steps.
    flow : velocity that varies in space, beside ``velocity``; it is taken as it is.

    Returns
    -------
    The coefficients, with the training's history. Ctrl-C ends the training, saves the checkpoint and returns the best
    so far, marked as interrupted.

    Examples
    --------
    >>> from video2pde.settings import RefinementSettings
    >>> field, terms = vp.example_field(), vp.Model.of({"laplacian": 1.0}).terms
    >>> found = refine(field, terms, np.tile([0.5, -0.25], (60, 1)), [1.0], RefinementSettings())
    >>> sorted(found.coefficients)
    ['laplacian']
    """
    if start is not None and len(start) != len(terms):
        raise InputError(f"{len(start)} starting coefficients for {len(terms)} terms; give one per term")
    chosen = tuple(settings.seeds if seeds is None else seeds)
    if not chosen:
        raise InputError("refinement.seeds is empty; give at least one seed")
    velocity = np.asarray(velocity, dtype=np.float64)
    if velocity.shape != (len(train_field), 2):
        raise InputError(f"the velocity needs shape ({len(train_field)}, 2), one row per frame, not {velocity.shape}")
    mark = "" if checkpoint is None else fingerprint(train_field, terms, velocity, start, settings, flow)
    if settings.average:
        train_field, velocity = average_neighbours(train_field, velocity)
    begin = None if start is None else np.asarray(start, dtype=np.float64)
    runs: list[SeedRun] = []
    with jax.default_device(find_device(device)):
        for seed in chosen:
            path = None if checkpoint is None else checkpoint.with_stem(f"{checkpoint.stem}-{seed}")
            kind = _choose_network(train_field, settings)
            task = Task(train_field, tuple(terms), velocity, flow, settings, seed, begin, device, progress)
            runs.append(kind(task).run(path, f"{mark}-{seed}-{device}"))
            if runs[-1].interrupted:
                break
    given = None if start is None else tuple(float(value) for value in start)
    names = tuple(term.name for term in terms)
    return summarise(names, tuple(runs), given, device, tuple(_caveats(settings)))


def find_device(device: Device) -> Any:
    """Return JAX's device for the setting ``run.device``."""
    choose_device(device, 0)
    return load_jax().devices(device)[0]


def _choose_network(field: Field, settings: RefinementSettings) -> type[Job[Any]]:
    # nothing holds neurons beyond a mask's edge, and the steps were not seen to settle on a film that has one
    hidden = field.mask is not None and not field.mask.all()
    return PerceptronJob if settings.network == "perceptron" or hidden else RadialJob


def _caveats(settings: RefinementSettings) -> list[str]:
    if settings.network == "perceptron" and settings.coefficients == "trained" and not settings.scaled_loss:
        reach = settings.joint_rate * settings.joint_steps
        return [
            f"step-limited: {settings.joint_steps} steps at a rate of {settings.joint_rate:g} move a coefficient by "
            f"{reach:.3g} at most, whatever the data say; the default settings have no such limit"
        ]
    return []
