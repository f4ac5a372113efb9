"""Variables that stay in closed sets: nonnegative least squares, and a portfolio, with a picture.

python examples/stay_in_a_set.py
"""

from pathlib import Path

import numpy as np

import slomodel

rng = np.random.default_rng(0)

# Nonnegative least squares: a bound is active where its multiplier is positive.
A = rng.standard_normal((60, 20))
b = A @ np.maximum(rng.standard_normal(20), 0.0) + 0.1 * rng.standard_normal(60)
fit = slomodel.compile(
    """
    dim n, N
    data A[N, n], b[N]
    var x[n] >= 0
    minimize sumsq(A @ x - b)
    """,
    data={"A": A, "b": b},
).solve(gtol=1e-9)
active, multipliers = fit.active["x"], fit.multipliers["x"]
print(f"least squares: {fit.fun:.6f}, {active.sum()} of 20 elements are 0,")
print(f"  their multipliers are at least {multipliers[active].min():.3g}")

# A portfolio: weights with sum 1, over the returns of 250 days.
returns = 0.01 * rng.standard_normal((250, 8)) + 0.001 * rng.random(8)
portfolio = slomodel.compile(
    """
    dim n, days
    data R[days, n], gamma = 5
    var w[n] in simplex
    let r = R @ w
    maximize mean(r) - gamma * mean((r - mean(r))^2)
    """,
    data={"R": returns},
)
for gamma in (1.0, 10.0, 100.0):
    best = portfolio.bind(gamma=gamma).solve()
    weights = best.variables["w"]
    print(f"gamma {gamma:5.0f}: {np.count_nonzero(weights)} assets, weights {np.round(weights, 3)}")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    risks = np.geomspace(0.3, 300.0, 40)
    shares = [portfolio.bind(gamma=gamma).solve().variables["w"] for gamma in risks]
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.bar(range(20), fit.variables["x"], label="element")
    left.plot(np.flatnonzero(active), multipliers[active], "rv", label="multiplier at 0")
    left.legend()
    left.set_title("nonnegative least squares")
    right.stackplot(risks, np.transpose(shares))
    right.set(xscale="log", xlabel="aversion to risk", title="weights of the portfolio")
    path = Path("stay_in_a_set.png")
    figure.savefig(path)
    print(f"picture: {path}")
