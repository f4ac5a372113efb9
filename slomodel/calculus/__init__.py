"""Derivatives of expression graphs, as graphs of the same kinds."""

from slomodel.calculus.gradient import NOTHING, Known, gradient
from slomodel.calculus.jvp import hessian_vector, jvp

__all__ = ["NOTHING", "Known", "gradient", "hessian_vector", "jvp"]
