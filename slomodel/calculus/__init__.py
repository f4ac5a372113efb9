"""Derivatives of expression graphs, as graphs of the same kinds."""

from slomodel.calculus.degree import degree
from slomodel.calculus.gradient import NOTHING, Known, gradient
from slomodel.calculus.jvp import hessian_vector, jvp
from slomodel.calculus.squares import gauss_newton, squares

__all__ = [
    "NOTHING",
    "Known",
    "degree",
    "gauss_newton",
    "gradient",
    "hessian_vector",
    "jvp",
    "squares",
]
