"""Compares `auto` on problems with constraints with SLSQP and trust-constr, from the same starts.

    python benchmarks/constraints.py [--further]

The models and starts are those of `constraint_cases.py`, or of `constraint_more.py` with
`--further`. An evaluation is a point at which a value was needed; products with Hessians are shown
beside. SciPy's solvers have exact gradients and Jacobians, and their default options.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import OptimizeResult, minimize

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.constraint_cases import KNOWN
from benchmarks.constraint_more import FURTHER

PEERS = ("SLSQP", "trust-constr")
# Tolerance on violations and on values, relative to the larger of 1 and the least one.
CLOSE = 1e-5


def row(name: str) -> str:
    """One line of the table."""
    text, start, value, _ = KNOWN[name]
    model = slomodel.compile(text)
    ours = model.solve(x0=start)
    cells = [f"{name:10s} {ours.nfev:6d} {ours.nhev:8d} {abs(ours.fun - value):9.1e}"]
    for method in PEERS:
        peer = by_scipy(model, start, method)
        cells.append(f"{peer.nfev:6d} {abs(abs(peer.fun) - abs(value)):9.1e}")
    return "   ".join(cells)


def by_scipy(model: slomodel.Model, start: list[float], method: str) -> OptimizeResult:
    """The run of a solver of SciPy; `fun` is of the objective to be minimised."""
    arguments = model.scipy()
    if method == "SLSQP":
        del arguments["hessp"]
    return minimize(**arguments, x0=start, method=method)


def further(name: str) -> str:
    """One line of the table of further problems, in Markdown."""
    text, start, expected = FURTHER[name]
    model = slomodel.compile(text)
    ours = model.solve(x0=start)
    cells = [name, str(ours.status), f"{ours.nfev} + {ours.nhev}"]
    if isinstance(expected, str):
        cells += ["as it should" if ours.status == expected else f"should be {expected}"]
    else:
        cells += [verdict(ours.fun, ours.violation, ours.success, expected)]
    for method in PEERS:
        peer = by_scipy(model, start, method)
        violation = largest_violation(model, peer.x)
        value = expected if isinstance(expected, float) else -math.inf
        claims = peer.success or peer.status in (1, 2)
        cells += [f"{peer.nfev}, {verdict(peer.fun, violation, claims, value)}"]
    return "| " + " | ".join(cells) + " |"


def largest_violation(model: slomodel.Model, x: Array) -> float:
    """The largest violation of a constraint at x (n,)."""
    return max(float(np.max(one, initial=0.0)) for one in model.constraints(x).values())


def verdict(value: float, violation: float, claims: bool, least: float) -> str:
    """Whether a value is the least one, at a point that is feasible to CLOSE; and claims."""
    if math.isfinite(least) and violation <= CLOSE:
        excess = value - least
        if abs(excess) <= CLOSE * max(1.0, abs(least)):
            return "solved" if claims else "there, without a claim"
        if claims:
            return f"claims {value:.6g}"
    return "false claim" if claims else "no claim"


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    if "--further" in sys.argv[1:]:
        print("| problem | auto | values + products | verdict | SLSQP | trust-constr |")
        print("| --- | --- | ---: | --- | --- | --- |")
        for name in FURTHER:
            print(further(name), flush=True)
        return
    print("problem    values products     error    SLSQP     error   trust-constr error")
    for name in KNOWN:
        print(row(name))


if __name__ == "__main__":
    main()
