"""Recovery after a bleach, in the words of those who measure it: D, mobile fraction, half time, bleaching rate."""

from video2pde.frap.recovery import analyse_recovery, Recovery

__all__ = ["Recovery", "analyse_recovery"]
