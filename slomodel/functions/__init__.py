"""The table of scalar functions: each one is an attribute of this module."""

from slomodel.functions.activations import logcosh, sigmoid, softplus
from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.bessel import bessel_ratio, log_bessel_i0
from slomodel.functions.beta import lbeta
from slomodel.functions.box_cox import box_cox
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
    limited,
    logaddexp,
    same,
    stop_gradient,
    xlogx,
    xlogx1p,
)
from slomodel.functions.elementary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cbrt,
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
from slomodel.functions.ends import acos1m, acosh1p, atanh1m
from slomodel.functions.gamma import digamma, lgamma
from slomodel.functions.logarithms import (
    log1mexp,
    log2,
    log10,
    logexpm1,
    logit,
    xlog1py,
    xlogy,
)
from slomodel.functions.normal import erfc, erfcx, lognormcdf, normcdf
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
from slomodel.functions.quantiles import erfinv, normppf
from slomodel.functions.rising import (
    digamma_difference,
    log_rising_factorial,
    trigamma_difference,
)
from slomodel.functions.sinc import sin_quotient, sinc
from slomodel.functions.tail_differences import DIFFERENCES
from slomodel.functions.translate import partial, symbols, to_graph
from slomodel.ir.function import DISCONTINUOUS, ScalarFunction, every_function

TABLE: dict[str, ScalarFunction] = {
    record.name: record
    for record in every_function()
    if record not in (limited, same, stop_gradient)
}
"""Every scalar function by the name of its record."""

FUNCTIONS: dict[str, ScalarFunction] = {
    record.signature.partition("(")[0]: record
    for record in sorted(TABLE.values(), key=lambda record: -record.smoothness)
    if record.signature
}
"""The functions that a model may call, by their name in the language, smooth ones first."""

__all__ = [
    "DIFFERENCES",
    "DISCONTINUOUS",
    "FUNCTIONS",
    "TABLE",
    "abs",
    "acos",
    "acos1m",
    "acosh",
    "acosh1p",
    "add",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "atanh1m",
    "bessel_ratio",
    "box_cox",
    "cbrt",
    "clip",
    "cos",
    "cosh",
    "differentiated",
    "digamma",
    "digamma_difference",
    "div",
    "eq",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp",
    "expm1",
    "floor",
    "ge",
    "gt",
    "huber",
    "hypot",
    "land",
    "lbeta",
    "le",
    "lgamma",
    "limited",
    "lnot",
    "log",
    "log1mexp",
    "log1p",
    "log2",
    "log10",
    "log_bessel_i0",
    "log_rising_factorial",
    "logaddexp",
    "logcosh",
    "logexpm1",
    "logit",
    "lognormcdf",
    "lor",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "normcdf",
    "normppf",
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
    "sin_quotient",
    "sinc",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "stop_gradient",
    "sub",
    "symbols",
    "tan",
    "tanh",
    "to_graph",
    "trigamma_difference",
    "where",
    "xlog1py",
    "xlogx",
    "xlogx1p",
    "xlogy",
]
