"""Compares `auto` on problems with constraints with SLSQP and trust-constr, from the same starts.

    python benchmarks/constraints.py

The models and starts are those of `constraint_cases.py`. An evaluation is a point at which a
value was needed; products with Hessians are shown beside. SciPy's solvers have exact gradients and
Jacobians, and their default options.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from scipy.optimize import minimize

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.constraint_cases import KNOWN


def row(name: str) -> str:
    """One line of the table."""
    text, start, value, _ = KNOWN[name]
    model = slomodel.compile(text)
    ours = model.solve(x0=start)
    cells = [f"{name:10s} {ours.nfev:6d} {ours.nhev:8d} {abs(ours.fun - value):9.1e}"]
    for method in ("SLSQP", "trust-constr"):
        arguments = model.scipy()
        if method == "SLSQP":
            del arguments["hessp"]
        peer = minimize(**arguments, x0=start, method=method)
        cells.append(f"{peer.nfev:6d} {abs(abs(peer.fun) - abs(value)):9.1e}")
    return "   ".join(cells)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("problem    values products     error    SLSQP     error   trust-constr error")
    for name in KNOWN:
        print(row(name))


if __name__ == "__main__":
    main()
