"""The windows of a recording."""

from __future__ import annotations

from video2pde.field import Field, Windows
from video2pde.settings import Settings


def choose_windows(field: Field, settings: Settings) -> Windows:
    """Split a recording as the settings say; where a law is named, nothing is chosen, and few frames are enough."""
    split = settings.split
    return Windows.of(field, split.train, split.validation, split.by, few=settings.regression.law is not None)
