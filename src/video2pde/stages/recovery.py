"""The recovery after a bleach, where the settings ask for it."""

from __future__ import annotations

from video2pde.errors import StageError
from video2pde.field import Field
from video2pde.frap.recovery import analyse_recovery, Recovery
from video2pde.settings import Settings


def measure_recovery(field: Field, settings: Settings) -> Recovery | str:
    """Measure the recovery of the whole recording; a text says why that failed.

    It comes after the test window has been predicted, and changes nothing in what was chosen before.
    """
    edges = settings.frap.edges
    try:
        chosen = ("no_flux" if field.walls else "measured") if edges == "auto" else edges
        return analyse_recovery(field, chosen, settings.frap.populations)
    except StageError as error:
        return str(error)
