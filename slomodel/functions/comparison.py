"""Truth values: comparisons, connectives, and the choice between two numbers.

A comparison looks at real parts, so that a complex step takes the branch of its real point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy as sp

from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import DISCONTINUOUS, Array, C, Cost, Kink, RangeRule, ScalarFunction

_STEPS = (Kink(DISCONTINUOUS),)

# The cost of every comparison and connective.
_TRUTH = Cost(0.2, 0.5)
# For random conditions; for predictable ones the costs are 0.9 and 0.8.
_CHOICE = Cost(2.5, 2.5)


def _zero(*operands: Expr) -> None:
    return None


def _comparison(
    name: str, sign: str, ufunc: Callable[..., Array], relation: type[sp.Basic], meaning: str
) -> ScalarFunction:
    return ScalarFunction(
        name,
        2,
        definition=relation,
        numpy=lambda a, b: ufunc(np.real(a), np.real(b)),
        partials=(_zero, _zero),
        spelling={
            "numpy": f"np.{ufunc.__name__}({{0}}, {{1}}, out={{out}})",
            "scalar": f"({{0}} {sign} {{1}})",
            "numexpr": f"({{0}} {sign} {{1}})",
            "c": f"({{0}} {sign} {{1}})",
        },
        cost=_TRUTH,
        kinks=_STEPS,
        result="bool",
        exact=True,
        meaning=meaning,
        ranges=RangeRule.OPERATION,
        sympy=(relation,),
    )


lt = _comparison("lt", "<", np.less, sp.Lt, "whether a is smaller than b")
le = _comparison("le", "<=", np.less_equal, sp.Le, "whether a is at most b")
gt = _comparison("gt", ">", np.greater, sp.Gt, "whether a is larger than b")
ge = _comparison("ge", ">=", np.greater_equal, sp.Ge, "whether a is at least b")
eq = _comparison("eq", "==", np.equal, sp.Eq, "whether two are equal")
ne = _comparison("ne", "!=", np.not_equal, sp.Ne, "whether two differ")


def _simplify_connective(neutral: bool) -> Callable[[Expr, Expr], Expr | None]:
    """Simplification with a constant operand: `neutral` is dropped, its negation is the result."""

    def simplify(a: Expr, b: Expr) -> Expr | None:
        for number, other in ((a, b), (b, a)):
            if isinstance(number, Const):
                return other if number.value == neutral else number
        return None

    return simplify


land = ScalarFunction(
    "land",
    2,
    definition=sp.And,
    numpy=np.logical_and,
    partials=(_zero, _zero),
    spelling={
        "numpy": "np.logical_and({0}, {1}, out={out})",
        "scalar": "({0} and {1})",
        "numexpr": "({0} & {1})",
        "c": "slo_and({0}, {1})",
    },
    cost=_TRUTH,
    kinks=_STEPS,
    simplify=_simplify_connective(neutral=True),
    operand_types=("bool", "bool"),
    result="bool",
    c=C(source="static inline real slo_and(real a, real b) { return (a != 0) & (b != 0); }"),
    exact=True,
    meaning="whether both hold",
    ranges=RangeRule.OPERATION,
    sympy=(sp.And,),
)

lor = ScalarFunction(
    "lor",
    2,
    definition=sp.Or,
    numpy=np.logical_or,
    partials=(_zero, _zero),
    spelling={
        "numpy": "np.logical_or({0}, {1}, out={out})",
        "scalar": "({0} or {1})",
        "numexpr": "({0} | {1})",
        "c": "slo_or({0}, {1})",
    },
    cost=_TRUTH,
    kinks=_STEPS,
    simplify=_simplify_connective(neutral=False),
    operand_types=("bool", "bool"),
    result="bool",
    c=C(source="static inline real slo_or(real a, real b) { return (a != 0) | (b != 0); }"),
    exact=True,
    meaning="whether one of two holds",
    ranges=RangeRule.OPERATION,
    sympy=(sp.Or,),
)

lnot = ScalarFunction(
    "lnot",
    1,
    definition=sp.Not,
    numpy=np.logical_not,
    partials=(_zero,),
    spelling={
        "numpy": "np.logical_not({0}, out={out})",
        "scalar": "(not {0})",
        "numexpr": "(~{0})",
        "c": "(!{0})",
    },
    cost=_TRUTH,
    kinks=_STEPS,
    operand_types=("bool",),
    result="bool",
    exact=True,
    meaning="whether the condition does not hold",
    ranges=RangeRule.OPERATION,
    sympy=(sp.Not,),
)


def _simplify_where(condition: Expr, a: Expr, b: Expr) -> Expr | None:
    if isinstance(condition, Const):
        return a if condition.value else b
    return a if isinstance(a, Const) and a is b else None


# Both statements of the NumPy form read operands after writing: `out` may share memory with
# operand 2 only. Whether the branches meet smoothly is unknown here; order 0 is the safe answer.
where: ScalarFunction = ScalarFunction(
    "where",
    3,
    definition=lambda condition, a, b: sp.Piecewise((a, condition), (b, True)),
    numpy=np.where,
    partials=(
        _zero,
        lambda condition, a, b: where(condition, 1.0, 0.0),
        lambda condition, a, b: where(condition, 0.0, 1.0),
    ),
    spelling={
        "numpy": "np.copyto({out}, np.where({0}, {1}, {2}))",
        "scalar": "({1} if {0} else {2})",
        "numexpr": "where({0}, {1}, {2})",
        "c": "slo_where({0}, {1}, {2})",
    },
    cost=_CHOICE,
    kinks=(Kink(0, message="`where` may jump or have a kink where its condition changes"),),
    simplify=_simplify_where,
    operand_types=("bool", "real", "real"),
    c=C(source="static inline real slo_where(real c, real a, real b) { return c != 0 ? a : b; }"),
    exact=True,
    meaning="a where the condition holds, b elsewhere",
    ranges=RangeRule.OPERATION,
    signature="where(condition, a, b)",
)
