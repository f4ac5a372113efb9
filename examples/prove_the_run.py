"""A run with proofs: proved constants over balls, and the theorems' inequalities checked.

python examples/prove_the_run.py
"""

import slomodel

model = slomodel.compile("var x[2] minimize (x[0]^2 + x[1] - 11)^2 + (x[0] + x[1]^2 - 7)^2")

for options in (
    {"method": "norm-armijo"},
    {"method": "tgd"},
    {"method": "pgd", "D": "auto", "gtol": 5.0, "scaled": False},  # one proof per step takes time
):
    found = model.solve(x0=[0.0, 0.0], verify=True, max_time=20.0, **options)
    print(f"{options}\n  x = {found.x}, {found.status} after {found.nit} steps")
    last = found.epochs[-1]
    print(f"  last epoch: L1 = {last.L1} ({last.source}) over the ball of radius {last.D:.3g}")
    print("  " + found.certificate.summary.replace("\n", "\n  "))
