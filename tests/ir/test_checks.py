"""Constructors reject operands that do not fit, and state what was expected and found."""

from collections.abc import Callable

import pytest

from slomodel import functions as fn
from slomodel.errors import ShapeError
from slomodel.ir import build
from slomodel.ir.dims import literal, named
from slomodel.ir.expr import Affine, Expr

n, m = named("n"), named("m")
V = build.variable("v", (n,))
W = build.variable("w", (m,))
A = build.variable("A", (n, m))
TRUTH = fn.gt(V, 0.0)
FIRST = Affine(literal(0), (1,))

CASES: dict[str, tuple[Callable[[], Expr], str]] = {
    "add of two lengths": (lambda: fn.add(V, W), r"add does not fit: \[m\] along axes \(0,\) of"),
    "number of a name": (lambda: fn.add(V, build.variable("u", (literal(3),))), "does not fit"),
    "no broadcast by itself": (lambda: fn.add(A, V), r"\[n\] along axes \(0, 1\) of \[n, m\]"),
    "too few operands": (lambda: fn.add(V), "add takes 2 operands, not 1"),
    "number for a truth value": (lambda: fn.where(V, V, V), "where needs a bool operand, not real"),
    "truth value for a number": (lambda: fn.sin(TRUTH), "sin needs a real operand, not bool"),
    "axes out of order": (
        lambda: build.apply_along(fn.sin, [A], [(1, 0)], (m, n)),
        "an operand of sin does not fit",
    ),
    "an axis twice": (
        lambda: build.apply_along(fn.sin, [build.variable("S", (n, n))], [(0, 0)], (n,)),
        "an operand of sin does not fit",
    ),
    "an axis beyond": (lambda: build.apply_along(fn.sin, [V], [(1,)], (n,)), "does not fit"),
    "einsum of another dim": (
        lambda: build.einsum([A, V], [(0, 1), (1,)], (0,), (n, m)),
        r"einsum expects \[m\], not \[n\]",
    ),
    "einsum of truth values": (
        lambda: build.einsum([TRUTH], [(0,)], (), (n,)),
        "needs numbers, not truth values",
    ),
    "matmul": (lambda: build.matmul(A, V), r"`@` of \[n, m\] and \[n\]"),
    "matmul with a scalar": (lambda: build.matmul(A, build.const(2.0)), "and scalar"),
    "inner": (lambda: build.inner(V, W), r"einsum expects \[n\], not \[m\]"),
    "transpose that drops an axis": (lambda: build.transpose(A, (0,)), "is not an order of"),
    "transpose that repeats one": (lambda: build.transpose(A, (0, 0)), "is not an order of"),
    "sum over a missing axis": (lambda: build.sum_over(A, (2,)), "must be axes of"),
    "sum over the last axis": (lambda: build.sum_over(A, (-1,)), "must be axes of"),
    "broadcast to another dim": (lambda: build.broadcast(V, (0,), (m,)), "einsum expects"),
    "too few indices": (lambda: build.gather(A, [FIRST], (n,)), r"1 indices into \[n, m\]"),
    "axis without index": (
        lambda: build.gather(V, [Affine(literal(0), (1, 0))], (n, m)),
        "axis 1 of the result does not occur in any index",
    ),
    "scatter of too few indices": (lambda: build.scatter(V, [FIRST], (n, n)), "1 indices into"),
    "scatter of truth values": (
        lambda: build.scatter(TRUTH, [FIRST], (n + 1,)),
        "adds numbers, not truth values",
    ),
    "reshape to another total": (
        lambda: build.reshape(build.variable("six", (literal(2), literal(3))), (literal(5),)),
        r"\[2, 3\] has 6 elements, \[5\] has 5",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    make, message = CASES[case]
    with pytest.raises(ShapeError, match=message):
        make()
