"""The table of scalar functions: each one is an attribute of this module."""

from slomodel.functions.activations import logcosh, sigmoid, softplus
from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import (
    eq,
    ge,
    gt,
    land,
    le,
    lnot,
    lor,
    lt,
    ne,
    where,
)
from slomodel.functions.compound import (
    differentiated,
    hypot,
    logaddexp,
    same,
    still,
    xlogx,
    xlogx1p,
)
from slomodel.functions.elementary import (
    asinh,
    atan,
    cos,
    cosh,
    erf,
    exp,
    expm1,
    log,
    log1p,
    sech2,
    sech_asinh,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from slomodel.functions.gamma import digamma, lgamma
from slomodel.functions.piecewise import (
    abs,
    clip,
    floor,
    huber,
    maximum,
    minimum,
    relu,
    root,
    sign,
)
from slomodel.functions.power import pow, powlog
from slomodel.functions.translate import partial, symbols, to_graph
from slomodel.ir.function import DISCONTINUOUS, ScalarFunction, every_function

TABLE: dict[str, ScalarFunction] = {
    record.name: record for record in every_function() if record not in (still, same)
}
"""Every scalar function by the name of its record."""

FUNCTIONS: dict[str, ScalarFunction] = {
    record.signature.partition("(")[0]: record
    for record in sorted(TABLE.values(), key=lambda record: -record.smoothness)
    if record.signature
}
"""The functions that a model may call, by their name in the language, smooth ones first."""

__all__ = [
    "DISCONTINUOUS",
    "FUNCTIONS",
    "TABLE",
    "abs",
    "add",
    "asinh",
    "atan",
    "clip",
    "cos",
    "cosh",
    "differentiated",
    "digamma",
    "div",
    "eq",
    "erf",
    "exp",
    "expm1",
    "floor",
    "ge",
    "gt",
    "huber",
    "hypot",
    "land",
    "le",
    "lgamma",
    "lnot",
    "log",
    "log1p",
    "logaddexp",
    "logcosh",
    "lor",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "partial",
    "pow",
    "powlog",
    "relu",
    "root",
    "same",
    "sech2",
    "sech_asinh",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "still",
    "sub",
    "symbols",
    "tan",
    "tanh",
    "to_graph",
    "where",
    "xlogx",
    "xlogx1p",
]
