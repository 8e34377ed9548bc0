"""Flow that varies in space and time: one definition, and its views."""

from video2pde.flow.flow import Flow, FlowShape

__all__ = ["Flow", "FlowShape"]
