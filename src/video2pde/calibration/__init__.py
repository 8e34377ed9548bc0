"""Rollout calibration: coefficients that predict, their intervals, and the front-aware variant."""
