"""Fit a curve to measurements: a robust fit of a decay, and least squares, misled by outliers.

python examples/fit_a_curve.py
"""

import numpy as np

import slomodel

MODEL = """
model decay
dim  m
data t[m], y[m], width
var  a init 1, rate init 1, floor init 0
let  residual = a * exp(-rate * t) + floor - y
minimize sum(log1p((residual / width)^2))
"""

rng = np.random.default_rng(0)
t = np.linspace(0.0, 5.0, 200)
y = 3.0 * np.exp(-1.5 * t) + 0.5 + 0.02 * rng.standard_normal(t.size)
y[::10] += rng.uniform(1.0, 3.0, y[::10].size)

robust = slomodel.compile(MODEL, data={"t": t, "y": y, "width": 0.05}).solve()
plain = slomodel.compile(
    MODEL.replace("log1p((residual / width)^2)", "(residual / width)^2"),
    data={"t": t, "y": y, "width": 0.05},
).solve()

print("         a  rate  floor   (measured: 3, 1.5, 0.5, and every tenth point wrong)")
for name, found in (("robust", robust), ("plain", plain)):
    print(f"{name:<7}", *(f"{float(v):.3f}" for v in found.variables.values()), found.status)
