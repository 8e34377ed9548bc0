"""Test of fit: whether a law leaves more than noise leaves, which effect would explain it, and how well it agrees
with itself."""

from video2pde.fit.budget import widen, widen_all
from video2pde.fit.judge import test_laws
from video2pde.fit.result import FitTest, Maps, Scale, Suspicion

__all__ = ["FitTest", "Maps", "Scale", "Suspicion", "test_laws", "widen", "widen_all"]
