"""The law to play with: it runs live in the page, from any frame of the film."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from video2pde.report.content.words import MEANINGS, Story
from video2pde.report.document import Dial, Math, Play, Player, Section
from video2pde.terms.words import describe
from video2pde.using.javascript import law_key, write_script
from video2pde.using.modelfile import SavedModel


def tell_play(story: Story, player: Player | None) -> Section | None:
    """Offer the law beside the film that the page already holds; None where there is no law."""
    if story.model is None or player is None or not story.model.terms:
        return None
    if story.model.law.maps:
        return None  # it knows one number for each coefficient
    if story.model.boundary == "open" or (story.run.field is not None and story.run.field.walls):
        return None  # the page's rollout knows mirrored, wrapped and measured edges alone
    core = None if story.run.field is None else story.run.field.core
    return Section(
        "play",
        "Play with the law",
        "The law runs live here: turn its coefficients, switch the drift off, paint with the pointer, and see how far "
        "the simulation is from the film.",
        (make_play(story.model, player, None if core is None else ~core),),
    )


def make_play(model: SavedModel, player: Player, outside: NDArray[np.bool_] | None = None) -> Play:
    """Put a law and the film of its recording together.

    ``outside``: bool, shape (y, x) of the law's grid, where the simulation follows the film.
    """
    terms = model.law.terms
    film = player.observed
    if outside is not None and outside.shape != (film.ny, film.nx):
        # the page's film is coarser than the grid: a cell follows the film where any part of it does
        pool = -(-outside.shape[0] // film.ny)
        whole = outside[: film.ny * pool, : film.nx * pool].reshape(film.ny, pool, film.nx, pool)
        outside = np.asarray(whole.any(axis=(1, 3)))
    clipped = model.clip == "on" or (model.clip == "auto" and film.low >= 0.0 and film.high <= 1.0)
    settings = model.settings
    flows = model.flow is not None
    fields, weights = _sample_flow(model, player)
    return Play(
        law=law_key(terms, flows),
        source=write_script([(terms, flows)]),
        dials=tuple(
            Dial(
                Math(describe(entry.term).latex, describe(entry.term).text),
                MEANINGS.get(entry.name, "a term of your own"),
                entry.value,
                entry.low,
                entry.high,
                entry.units,
            )
            for entry in model.terms
        ),
        film=film,
        times=player.times,
        width=player.width,
        height=player.height,
        unit=player.unit,
        drift_times=model.times,
        drift=model.velocity_at(model.times),
        periodic=model.boundary == "periodic",
        clip=(0.0, 1.0) if clipped else None,
        safety=settings.safety,
        max_substeps=settings.max_substeps,
        outside=outside,
        flow=fields,
        flow_weights=weights,
        caption="The same scheme as the run's own rollouts. The film is stored in 256 levels, so that errors here are "
        "a little larger than those of the report.",
    )


def _sample_flow(model: SavedModel, player: Player) -> tuple[NDArray[np.float32] | None, NDArray[np.float64] | None]:
    """Return the flow's fields on the film's cells, and their factors averaged over the intervals between frames."""
    flow, film = model.flow, player.observed
    if flow is None:
        return None, None
    times = np.asarray(player.times, float)
    cells = replace(model.grid, ny=film.ny, nx=film.nx, height=player.height, width=player.width, pitch="cells")
    # the mean over an interval, by Simpson's rule, as the rollouts have it
    ends, middles = flow.weights(times), flow.weights(0.5 * (times[1:] + times[:-1]))
    return flow.fields(cells).astype(np.float32), (ends[1:] + ends[:-1] + 4 * middles) / 6
