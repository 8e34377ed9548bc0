"""An independent estimate of D (px²/s) and k (1/s) of a FRAP droplet, with NumPy and SciPy alone.

    python tools/droplet_estimate.py droplet.tif [first frame] [frames]

Inside the eroded droplet u = (I − d)/(I₀ − d), I₀ being the mean of the frames before the bleach and d the level of the
surroundings, obeys u_t = DΔu − ku with the rim as it was recorded. In modes of the five-point Laplacian every a_q
decays by itself; the initial state is eliminated, D and k are fitted by least squares.
"""

import sys

import numpy as np
import tifffile
from scipy import ndimage, optimize


def estimate(path: str, first: int = 4, frames: int = 58) -> np.ndarray:
    """Return (D, k) from ``frames`` frames, one a second, beginning with frame ``first``, after the bleach."""
    stack = tifffile.imread(path).astype(float)
    before = stack[:first].mean(axis=0)
    dark = np.percentile(before, 5)
    labels, _ = ndimage.label(before - dark > 0.5 * (np.percentile(before, 99) - dark))
    droplet = ndimage.binary_fill_holes(labels == 1 + np.argmax(np.bincount(labels.ravel())[1:]))
    inside = ndimage.binary_erosion(droplet, iterations=4)
    u = np.where(ndimage.binary_erosion(droplet), (stack - dark) / np.where(droplet, before - dark, np.inf), 0.0)
    u = u[first : first + frames]
    cells = np.flatnonzero(inside)
    unit = np.eye(inside.size)[cells].reshape(-1, *inside.shape)
    laplace = np.array([ndimage.laplace(cell, mode="constant").ravel()[cells] for cell in unit])
    rates, modes = np.linalg.eigh(-laplace)
    rim = np.array([ndimage.laplace(np.where(inside, 0.0, frame), mode="constant").ravel()[cells] for frame in u])
    seen, drive = u.reshape(frames, -1)[:, cells] @ modes, rim @ modes

    def left(parameters: np.ndarray) -> np.ndarray:
        rate = parameters[0] * rates + parameters[1]
        brought = np.zeros_like(seen)
        for t in range(1, frames):
            middle = (drive[t] + drive[t - 1]) / 2
            brought[t] = np.exp(-rate) * brought[t - 1] + parameters[0] * (1 - np.exp(-rate)) / rate * middle
        decay = np.exp(-np.outer(np.arange(frames), rate))
        start = (decay * (seen - brought)).sum(axis=0) / (decay**2).sum(axis=0)
        return (seen - brought - decay * start).ravel()

    return optimize.least_squares(left, [0.2, 0.004], x_scale=[0.1, 0.001]).x


if __name__ == "__main__":
    diffusion, rate = estimate(sys.argv[1], *(int(number) for number in sys.argv[2:]))
    print(f"D = {diffusion:.4f} px²/s, k = {rate:.5f} 1/s")
