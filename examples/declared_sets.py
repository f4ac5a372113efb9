"""Declare where variables lie: eight schools, a Dirichlet mixture, and an ordered logit.

python examples/declared_sets.py
"""

import numpy as np

import slomodel

EIGHT_SCHOOLS = """
model eight_schools
dim  J
data y[J], sigma[J]
var  mu init 0, tau > 0 init 5, theta[J] init 0
let  prior = sumsq((theta - mu) / tau) / 2 + J * log(tau) + log1p((tau / 5)^2) + 1 / tau
minimize sumsq((y - theta) ./ sigma) / 2 + prior
"""

DIRICHLET_MIXTURE = """
model dirichlet_mixture
dim  N, K = 3
data y[N], alpha = 2
var  p[K] in open_simplex, m[K] in ordered init -1, s > 0 init 1
let  density[i in N, k in K] = log(p[k]) - log(s) - ((y[i] - m[k]) / s)^2 / 2
maximize sum(logsumexp(density[i, k] for k in K) for i in N) + (alpha - 1) * sum(log(p))
"""

ORDERED_LOGIT = """
model ordered_logit
dim  N, n, K = 4
data X[N, n], y[N] whole
var  b[n] init 0, cut[K-1] in ordered init -1
maximize ordered_logistic_lpmf(y, X @ b, cut) - sumsq(b) / 50
"""

effects = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
errors = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]
schools = slomodel.compile(EIGHT_SCHOOLS, data={"y": effects, "sigma": errors}).solve()
print(f"schools: mean {schools.variables['mu']:.3f}, spread {schools.variables['tau']:.3f}")

rng = np.random.default_rng(0)
means, shares = np.array([-4.0, 0.0, 3.0]), np.array([0.5, 0.2, 0.3])
y = rng.normal(means[rng.choice(3, 2000, p=shares)], 0.5)
mixture = slomodel.compile(DIRICHLET_MIXTURE, data={"y": y}).solve().variables
print("mixture: shares", *(f"{p:.3f}" for p in mixture["p"]), f"sum {mixture['p'].sum():.12f}")
print("mixture: means", *(f"{m:.3f}" for m in mixture["m"]), f"width {mixture['s']:.3f}")

X = rng.standard_normal((3000, 2))
answers = np.searchsorted([-1.0, 0.5, 2.0], X @ [1.0, -0.5] + rng.logistic(size=3000))
logit = slomodel.compile(ORDERED_LOGIT, data={"X": X, "y": answers}).solve()
print("logit: slopes", *(f"{b:.3f}" for b in logit.variables["b"]))
print("logit: cuts", *(f"{c:.3f}" for c in logit.variables["cut"]))
