"""Inverse-PINN refinement: a second opinion on a library's coefficients.

Import from the modules here; this file stays empty of JAX so that other commands start fast.
"""
