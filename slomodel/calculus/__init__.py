"""Derivatives of expression graphs, as graphs of the same kinds."""

from slomodel.calculus.gradient import gradient
from slomodel.calculus.jvp import hessian_vector, jvp

__all__ = ["gradient", "hessian_vector", "jvp"]
