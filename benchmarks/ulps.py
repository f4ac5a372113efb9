"""Worst errors of all scalar functions on each target, against ball arithmetic.

    python -m benchmarks.ulps [NAME …] [--points 1000000] [--seconds 25] [--write]

Points are those of `tests/functions/test_ulps.py`: over plain magnitudes, over the whole range of
doubles, and at both ends. Each value is compared with that of the record's definition, which Arb
(the package python-flint) encloses at as many bits as 64 correct ones take; errors are in units in
the last place of the value or, where the record states the magnitude of its largest term, of that.
`--write` puts the table in results/ulps.md. A point counts if its value is finite and less than the
largest double by a factor of 1,000, as quotients such as sinh(x)/x overflow where sinh(x) does. The
points of a function are tried in random order, those at the ends first, until `--seconds` have
passed. The exit status is 1 if an error is above the one that the record states.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.evaluate import in_columns
from benchmarks.machine import description
from slomodel.functions import symbols
from slomodel.functions.compound import graph_values
from slomodel.ir.build import variable
from slomodel.ir.function import ScalarFunction
from tests.functions.exact_values import columns, points
from tests.functions.test_ulps import MEASURED, on_target, operands

RESULT = Path(__file__).parent / "results" / "ulps.md"
TARGETS = ("numpy", "numexpr", "c")
BITS = (128, 512, 2_400, 9_600)
"""Working precisions, in turn; log(1 + exp(-700)) takes 1,100 bits."""
CHUNK = 10_000
"""Points that are evaluated at once."""
LARGEST = np.finfo(float).max / 1000.0

Ball = Any
Rule = Callable[[Sequence[Ball]], Ball]
Rows = NDArray[np.float64]


class UnreadableDefinition(Exception):
    """A definition has a part without a rule here."""


def rule_of(expr: sp.Basic, own: Sequence[sp.Symbol], arb: Any) -> Rule:
    """The expression as a function of balls."""
    if expr in own:
        place = own.index(expr)
        return lambda x: x[place]
    if expr.is_Rational:
        above, below = int(expr.p), int(expr.q)
        return lambda _x: arb(above) / below
    if expr is sp.pi:
        return lambda _x: arb.pi()
    if expr is sp.E:
        return lambda _x: arb.const_e()
    if isinstance(expr, sp.Piecewise):
        return _choice(expr, own, arb)
    parts = [rule_of(part, own, arb) for part in expr.args]
    if isinstance(expr, sp.Pow) and expr.exp.is_Rational:
        exponent = expr.exp
        if exponent.is_Integer:
            power = int(exponent)
            return lambda x: parts[0](x) ** power
        if exponent == sp.Rational(1, 2):
            return lambda x: parts[0](x).sqrt()
        if exponent == sp.Rational(-1, 2):
            return lambda x: parts[0](x).rsqrt()
    for kind, operation in _operations(arb).items():
        if isinstance(expr, kind):
            return lambda x: operation(*(part(x) for part in parts))
    raise UnreadableDefinition(str(expr.func))


def _choice(expr: sp.Piecewise, own: Sequence[sp.Symbol], arb: Any) -> Rule:
    branches = [
        (rule_of(one, own, arb), None if c is sp.true else _condition(c, own, arb))
        for one, c in expr.args
    ]

    def choose(x: Sequence[Ball]) -> Ball:
        for value, condition in branches:
            if condition is None or condition(x):
                return value(x)
        raise UnreadableDefinition("no branch")

    return choose


def _condition(expr: sp.Basic, own: Sequence[sp.Symbol], arb: Any) -> Rule:
    if not isinstance(expr, sp.core.relational.Relational):
        raise UnreadableDefinition(str(expr.func))
    left, right = (rule_of(part, own, arb) for part in expr.args)
    compare = {sp.Eq: "eq", sp.Ne: "ne", sp.Lt: "lt", sp.Le: "le", sp.Gt: "gt", sp.Ge: "ge"}
    name = f"__{compare[expr.func]}__"
    return lambda x: getattr(left(x), name)(right(x))


def _operations(arb: Any) -> dict[type[sp.Basic], Callable[..., Ball]]:
    def total(*terms: Ball) -> Ball:
        result = terms[0]
        for one in terms[1:]:
            result = result + one
        return result

    def product(*terms: Ball) -> Ball:
        result = terms[0]
        for one in terms[1:]:
            result = result * one
        return result

    def polygamma(n: Ball, x: Ball) -> Ball:
        order = int(float(n))
        if order == 0:
            return x.digamma()
        return (-1) ** (order + 1) * math.factorial(order) * arb(order + 1).zeta(x)

    def largest(*terms: Ball) -> Ball:
        result = terms[0]
        for one in terms[1:]:
            result = result.max(one)
        return result

    def smallest(*terms: Ball) -> Ball:
        result = terms[0]
        for one in terms[1:]:
            result = result.min(one)
        return result

    one_each = [
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "exp",
        "log",
        "erf",
        "erfc",
        "erfinv",
    ]
    return {
        sp.Add: total,
        sp.Mul: product,
        sp.Pow: lambda a, b: a**b,
        sp.Abs: abs,
        sp.sign: lambda a: a.sgn(),
        sp.Max: largest,
        sp.Min: smallest,
        sp.loggamma: lambda a: a.lgamma(),
        sp.polygamma: polygamma,
        sp.besseli: lambda n, a: a.bessel_i(n),
        sp.sinc: lambda a: a.sinc(),
        sp.atan2: arb.atan2,
        **{getattr(sp, name): (lambda a, n=name: getattr(a, n)()) for name in one_each},
    }


def exact(function: ScalarFunction, rows: Rows) -> Rows:
    """The definition's values (m,); NaN where it has none."""
    flint = import_module("flint")
    own = symbols(function)
    rule = rule_of(function.definition(*own), own, flint.arb)
    found = np.full(len(rows), np.nan)
    waiting = np.arange(len(rows))
    for bits in BITS:
        flint.ctx.prec = bits
        left = []
        for k in waiting:
            value = rule([flint.arb(float(x)) for x in rows[k]])
            if value.rel_accuracy_bits() >= 64 or value.is_zero() or _is_tiny(value):
                found[k] = float(value.mid())
            elif bits < BITS[-1] and not (value.is_nan() and bits > BITS[0]):
                left.append(k)
        waiting = np.array(left, dtype=int)
    return found


def _is_tiny(value: Ball) -> bool:
    """Whether a value rounds to 0."""
    return bool(abs(value) < 1e-330) if value.is_finite() else False


def _is_defined(function: ScalarFunction, rows: Rows) -> NDArray[np.bool_]:
    """Where the value is defined for operands in their domains."""
    if function.undefined is None:
        return np.ones(len(rows), dtype=bool)
    inputs = [variable(f"v{k}", ()) for k in range(function.arity)]
    at = dict(zip(inputs, rows.T, strict=True))
    return np.asarray(graph_values(function.undefined(*inputs), at) == 0.0)


def worst(function: ScalarFunction, rows: Rows, want: Rows, target: str) -> tuple[float, Rows]:
    """The largest error in units in the last place, and where."""
    got = on_target(function, rows, target)
    scale: Rows | float = 0.0
    with np.errstate(all="ignore"):
        if function.error_scale is not None:
            scale = np.asarray(function.error_scale(*columns(function, [*map(tuple, rows)])))
        units = np.abs(got - want) / np.spacing(np.maximum(np.abs(want), scale))
    edge = np.abs(want) > LARGEST
    units = np.where((got == want) | np.isnan(want) | edge, 0.0, units)
    place = int(np.argmax(np.where(np.isnan(units), np.inf, units)))
    return float(units[place]), rows[place]


def chosen(function: ScalarFunction, count: int) -> Rows:
    """The points where the function is defined: those at the ends, and others in random order."""
    rows = operands(function, count)
    last = len(points(function))
    np.random.default_rng(0).shuffle(rows[:-last])
    rows = np.concatenate([rows[-last:], rows[:-last]])
    return rows[_is_defined(function, rows)]


def row(function: ScalarFunction, count: int, seconds: float) -> tuple[tuple[str, ...], bool]:
    """A line of the table, and whether all errors are at most those stated."""
    rows = chosen(function, count)
    start = time.perf_counter()
    errors, places, tried = [0.0] * len(TARGETS), [rows[0]] * len(TARGETS), 0
    while tried < len(rows) and time.perf_counter() - start < seconds:
        some = rows[tried : tried + CHUNK]
        try:
            want = exact(function, some)
        except UnreadableDefinition as reason:
            return (function.name, "0", *["-"] * 3, f"no rule for {reason}"), True
        for k, target in enumerate(TARGETS):
            error, place = worst(function, some, want, target)
            if not error <= errors[k]:
                errors[k], places[k] = error, place
        tried += len(some)
    place = places[int(np.argmax(errors))]
    stated = [function.worst_ulps(target) for target in TARGETS]
    cells = [f"{error:.3g} ({most})" for error, most in zip(errors, stated, strict=True)]
    at = ", ".join(f"{x:.17g}" for x in place)
    line = (function.name, f"{tried:,}", *cells, at)
    print(*line, f"{time.perf_counter() - start:.0f} s", flush=True)
    return line, all(error <= most for error, most in zip(errors, stated, strict=True))


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description="Measure the worst errors of scalar functions.")
    parser.add_argument("names", nargs="*", help="functions, by default all")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=25.0, help="limit for each function")
    parser.add_argument("--write", action="store_true", help=f"write results/{RESULT.name}")
    options = parser.parse_args(arguments)
    selected = [f for f in MEASURED if not options.names or f.name in options.names]
    found = [row(function, options.points, options.seconds) for function in selected]
    lines = in_columns(
        [("function", "points", *TARGETS, "worst at"), *(cells for cells, _ in found)], True
    )
    if options.write:
        facts = "\n".join(f"- {key}: {value}" for key, value in description(1).items())
        told = "Printed by `python -m benchmarks.ulps --write`; the module explains it."
        count = "In brackets the error that the record states."
        RESULT.write_text(
            f"# Errors of scalar functions\n\n{told} {count}\n\n{facts}\n\n{lines}\n",
            encoding="utf-8",
        )
    return 0 if all(fine for _, fine in found) else 1


if __name__ == "__main__":
    sys.exit(main())
