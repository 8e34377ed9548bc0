"""Rollouts: integrate a law over a window, measure how far it is from the recording."""
