"""The windows of a recording."""

from __future__ import annotations

from video2pde.field import Field, Windows
from video2pde.settings import Settings


def choose_windows(field: Field, settings: Settings) -> Windows:
    """Split a recording as the settings say; of fewer than ten frames all but the last two are fitted.

    Parameters
    ----------
    field : the recording.
    settings : those of the split.

    Returns
    -------
    The windows.

    Examples
    --------
    >>> choose_windows(vp.example_field(), vp.load_settings()).train
    slice(0, 36, None)
    """
    split = settings.split
    return Windows.of(field, split.train, split.validation, split.by)
