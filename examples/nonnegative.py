"""Unknowns that are not negative: parts of images by factorisation, and a deblurred image.

python examples/nonnegative.py
"""

from pathlib import Path

import numpy as np

import slomodel

rng = np.random.default_rng(0)

# Images of 12 x 12 pixels that are mixtures of four bars.
bars = np.zeros((4, 12, 12))
bars[0, 2:4], bars[1, 8:10], bars[2, :, 3:5], bars[3, :, 9:11] = 1.0, 1.0, 1.0, 1.0
mixed = rng.uniform(size=(80, 4)) * (rng.uniform(size=(80, 4)) < 0.5)
images = np.abs(mixed @ bars.reshape(4, -1) + 0.02 * rng.standard_normal((80, 144)))
factors = slomodel.compile(
    """
    dim m, n, r = 4
    data X[m, n]
    var W[m, r] >= 0 init uniform(0, 1), H[r, n] >= 0 init uniform(0, 1)
    minimize sumsq(X - W @ H)
    """,
    data={"X": images},
)
found = factors.solve(gtol=1e-4, seed=1)
parts = found.variables["H"]
print(f"factors: {found.status}, residual {found.fun:.4f} of {np.sum(images**2):.1f},")
print(f"  {np.mean(parts < 0.02 * parts.max()):.0%} of the pixels of the parts are dark")

# Counts of photons, blurred along both axes.
k = np.arange(32)
B = np.exp(-0.5 * ((k[:, None] - k) / 1.5) ** 2)
B /= B.sum(axis=1, keepdims=True)
sharp = 0.2 + 40.0 * ((k[:, None] % 11 < 2) & (k % 7 < 2))
counts = rng.poisson(B @ sharp @ B.T).astype(float)
image = slomodel.compile(
    """
    dim n
    data B[n, n], counts[n, n], background = 0.1
    var u[n, n] >= 0 init 1
    let rate = B @ u @ B' + background
    minimize sum(rate - counts .* log(rate)) + 0.001 * sumsq(u)
    """,
    data={"B": B, "counts": counts},
)
clear = image.solve(gtol=1e-3)
u = clear.variables["u"]
print(f"deblurring: {clear.status}, {np.mean(clear.active['u']):.0%} of the pixels are 0,")
print(f"  error {np.linalg.norm(u - sharp) / np.linalg.norm(sharp):.2f} of the image's norm,")
print(f"  that of the counts {np.linalg.norm(counts - sharp) / np.linalg.norm(sharp):.2f}")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    panels = figure.subplots(2, 4)
    for panel, part in zip(panels[0], parts, strict=True):
        panel.imshow(part.reshape(12, 12))
        panel.set_title("a part of the images")
    shown = {"sources": sharp, "counts": counts, "deblurred, u >= 0": u}
    for panel, (title, picture) in zip(panels[1], shown.items(), strict=False):
        panel.imshow(picture)
        panel.set_title(title)
    for panel in panels.ravel():
        panel.set_axis_off()
    path = Path("nonnegative.png")
    figure.savefig(path)
    print(f"picture: {path}")
