"""The field u(t, y, x), its grid, its times and its chronological windows.

This package is the only place that fixes the order of axes: **time, y, x**. ``y`` grows downwards, as in a picture.
"""

from video2pde.field.field import Encoding, Field, Light, Provenance, same_rows
from video2pde.field.grid import Grid
from video2pde.field.timing import is_uniform, noise_weights
from video2pde.field.windows import Windows

__all__ = ["Encoding", "Field", "Grid", "Light", "Provenance", "Windows", "is_uniform", "noise_weights", "same_rows"]
