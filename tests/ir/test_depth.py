"""Depth is not limited: a chain of 5,000 nodes through every walk, against a plain recurrence."""

import math
import pickle
import sys

import numpy as np
import pytest

from slomodel import functions as fn
from slomodel.calculus import gradient, hessian_vector
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import postorder, substitute
from slomodel.reference import evaluate, first_nonfinite

DEPTH = 2_000
STEP = 1e-4
START = 0.3
X: Input = build.variable("deep", ())


@pytest.fixture(scope="module")
def chain() -> Expr:
    """y + STEP * sin(y) repeatedly: three nodes per step, each on the one before."""
    node: Expr = X
    for _ in range(DEPTH // 3 + 1):
        node = fn.add(node, fn.mul(STEP, fn.sin(node)))
    return node


def by_recurrence() -> tuple[float, float, float]:
    """Value, first and second derivative of the chain at START."""
    y, d, dd = START, 1.0, 0.0
    for _ in range(DEPTH // 3 + 1):
        slope, bend = 1.0 + STEP * math.cos(y), -STEP * math.sin(y)
        y, d, dd = y + STEP * math.sin(y), slope * d, slope * dd + bend * d * d
    return y, d, dd


def test_the_chain_is_deeper_than_the_stack(chain: Expr) -> None:
    assert len(postorder(chain)) > DEPTH > sys.getrecursionlimit()


def test_value_and_derivatives(chain: Expr) -> None:
    direction = build.direction("t", ())
    roots = [chain, *gradient(chain, [X]), *hessian_vector(chain, {X: direction})]
    found = evaluate(roots, {X: np.asarray(START), direction: np.asarray(1.0)})
    # Each of the steps rounds a few times, relative to numbers of order 1.
    np.testing.assert_allclose(found, by_recurrence(), rtol=DEPTH * 8 * np.finfo(float).eps)


def test_pickle_and_substitution(chain: Expr) -> None:
    assert pickle.loads(pickle.dumps(chain)) is chain
    other = build.variable("other", ())
    (moved,) = substitute((chain,), {X: other})
    assert moved is not chain
    assert substitute((moved,), {other: X})[0] is chain


def test_first_nonfinite(chain: Expr) -> None:
    assert first_nonfinite([chain], {X: np.asarray(START)}) is None
    found = first_nonfinite([fn.log(fn.sub(chain, 10.0))], {X: np.asarray(START)})
    assert found is not None
    assert found.node is fn.log(fn.sub(chain, 10.0))
