"""Coefficients that vary in space or time: the one definition of a map, and its views."""

from video2pde.maps.maps import CoefficientMap, in_divergence_form, MapShape, Over

__all__ = ["CoefficientMap", "MapShape", "Over", "in_divergence_form"]
