"""A membrane over an obstacle, with a picture: bounds from data, and many of them active.

python examples/obstacle.py
python examples/obstacle.py 320

The number is that of points along each side, by default 60; 320 gives 102,400 unknowns.
"""

import sys
from pathlib import Path

import numpy as np

import slomodel

N = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 60
points = np.arange(1, N + 1) / (N + 1)
x, y = np.meshgrid(points, points, indexing="ij")
hill = 0.5 - 4.0 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)

membrane = slomodel.compile(
    """
    dim n
    data hill[n, n]
    var u[n, n] >= hill init 0
    let inner = sumsq(u[1:n, :] - u[0:n-1, :]) + sumsq(u[:, 1:n] - u[:, 0:n-1])
    let rim = sumsq(u[0, :]) + sumsq(u[n-1, :]) + sumsq(u[:, 0]) + sumsq(u[:, n-1])
    minimize (inner + rim) / 2
    """,
    data={"hill": hill},
)
start = np.maximum(hill, 0.0).ravel()
rest = membrane.solve(x0=start)
u, touches = rest.variables["u"], rest.active["u"]
print(f"{rest.status} in {rest.nit} steps: energy {rest.fun:.8f}")
print(f"the membrane touches the hill at {touches.sum()} of {touches.size} points,")
print(f"  with forces of up to {rest.multipliers['u'].max():.4f} there")
print(f"  and is above it by up to {(u - hill).max():.4f} elsewhere")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.contourf(x, y, u, 20)
    left.contour(x, y, touches, [0.5], colors="white")
    left.set_aspect("equal")
    left.set_title("height, and where the membrane touches")
    right.imshow(rest.multipliers["u"].T, origin="lower", extent=(0, 1, 0, 1))
    right.set_title("force of the hill")
    path = Path("obstacle.png")
    figure.savefig(path)
    print(f"picture: {path}")
