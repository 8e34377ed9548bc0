"""The windows of a recording."""

from __future__ import annotations

from video2pde.field import Field, Windows
from video2pde.settings import Settings


def choose_windows(field: Field, settings: Settings) -> Windows:
    """Split a recording as the settings say; where a law is named, nothing is chosen, and few frames are enough.

    Parameters
    ----------
    field : the recording.
    settings : those of the split, and whether a law is named.

    Returns
    -------
    The windows.

    Examples
    --------
    >>> choose_windows(vp.example_field(), vp.load_settings()).train
    slice(0, 36, None)
    """
    split = settings.split
    return Windows.of(field, split.train, split.validation, split.by, few=settings.regression.law is not None)
