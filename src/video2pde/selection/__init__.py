"""The choice of a law among calibrated contenders, frozen before the test window is read."""

from video2pde.selection.choose import select, Selection
from video2pde.selection.criteria import block_error, Candidate, Criterion, exceeds, LEAST_SKILL

__all__ = ["LEAST_SKILL", "Candidate", "Criterion", "Selection", "block_error", "exceeds", "select"]
