"""Equations and inequalities: a hanging chain of given length, the largest polygon of diameter 1.

python examples/constraints.py
"""

from pathlib import Path

import numpy as np

import slomodel

# Heights of a chain between two points at distance 1, of length 4 (COPS).
chain = slomodel.compile(
    """
    dim n = 60
    data a = 1, b = 3, length = 4
    var y[n]
    let h = 1 / (n + 1)
    let Y[i in range(n + 2)] = where(i == 0, a, where(i == n + 1, b, y[i-1]))
    let s = (Y[1:] - Y[:-1]) / h
    minimize energy: h * sum((Y[1:] + Y[:-1]) / 2 .* sqrt(1 + s^2))
    subject to long: h * sum(sqrt(1 + s^2)) == length
    """
)
t = np.arange(1, 61) / 61
hanging = chain.solve(x0=1 + 2 * t - 4 * t * (1 - t))
print(f"chain: {hanging.status}, energy {hanging.fun:.6f}, violation {hanging.violation:.0e}")
rate = hanging.multipliers["long"]
longer = chain.bind(length=4.001).solve(x0=hanging)
change = longer.fun - hanging.fun
print(f"  energy of a chain longer by 0.001: {change:+.8f},")
print(f"  by the multiplier: {0.001 * rate:+.8f}")

# Corners in polar coordinates around one of them, the origin.
polygon = slomodel.compile(
    """
    dim n = 8
    var r[n - 1] in [0, 1], angle[n - 1] in [0, pi]
    maximize area: sum(r[i+1] * r[i] * sin(angle[i+1] - angle[i]) for i in range(n - 2)) / 2
    subject to diameter:
         r[i]^2 + r[j]^2 - 2 * r[i] * r[j] * cos(angle[i] - angle[j]) <= 1
         for i in range(n - 1), j in range(i + 1, n - 1)
    subject to order: angle[i] <= angle[i+1] for i in range(n - 2)
    """
)
k = np.arange(1, 8) / 8
largest = polygon.solve(x0={"r": np.sin(np.pi * k), "angle": np.pi * k})
print(f"octagon: {largest.status} after {largest.nfev} values, area {largest.fun:.6f},")
print(f"  {largest.active['diameter'].sum()} of its diagonals have length 1")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0, *t, 1], [1, *hanging.variables["y"], 3])
    left.set_title("chain of length 4")
    r, angle = largest.variables["r"], largest.variables["angle"]
    right.fill([0, *r * np.cos(angle)], [0, *r * np.sin(angle)], alpha=0.4)
    right.set_aspect("equal")
    right.set_title("octagon of diameter 1")
    path = Path("constraints.png")
    figure.savefig(path)
    print(f"picture: {path}")
