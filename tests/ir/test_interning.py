"""Equal expressions are one object: in a thread, across threads, copies, pickles and processes."""

import copy
import gc
import math
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from strategies import Example, graphs

from slomodel import functions as fn
from slomodel.calculus import gradient
from slomodel.ir import build
from slomodel.ir.dims import literal, named
from slomodel.ir.expr import Affine, Expr

ROOT = Path(__file__).parent.parent.parent
n, m = named("n"), named("m")


def every_kind(name: str = "x") -> Expr:
    """A scalar over a variable, with each kind of node in it."""
    x = build.variable(name, (n, n))
    row = build.gather(x, [Affine(n - 1, (0,)), Affine(literal(0), (1,))], (n,))
    padded = build.scatter(fn.mul(row, build.iota(n)), [Affine(literal(1), (1,))], (n + 1,))
    column = build.reshape(padded, (n + 1, literal(1)))
    largest = build.spread(build.extreme(column, "max", (1,)), build.extreme(column, "max", (1,)))
    running = build.scan(fn.sin(column), fn.sub(column, largest), 0)
    chosen = fn.where(fn.lt(column, 0.5), running, -0.0)
    return build.inner(chosen, chosen)


def test_the_same_expression_is_the_same_object() -> None:
    assert every_kind() is every_kind()
    assert every_kind("x") is not every_kind("y")
    assert build.variable("x", (n,)) is not build.data("x", (n,))
    assert build.variable("x", (n,)) is not build.variable("x", (m,))
    assert build.variable("x", (literal(10),)) is not build.variable("x", (named("h"),))


def test_constants_are_distinguished_by_type_and_bits() -> None:
    values = (0.0, -0.0, 1.0, True, False, math.nan, math.inf, -math.inf, 5e-324, 0.1 + 0.2, 0.3)
    for one, other in combinations(values, 2):
        assert build.const(one) is not build.const(other), (one, other)
    for value in values:
        assert build.const(value) is build.const(value)
        assert type(build.const(value).value) is type(value)


@pytest.mark.parametrize(
    ("given", "plain"),
    [(1, 1.0), (np.float64(0.5), 0.5), (np.int64(2), 2.0), (np.True_, True), (np.False_, False)],
)
def test_numbers_of_other_types_become_plain_ones(given: float, plain: float) -> None:
    assert build.const(given) is build.const(plain)


@pytest.mark.parametrize("field", ["operands", "shape", "dtype", "name", "anything"])
def test_nodes_are_immutable(field: str) -> None:
    with pytest.raises(AttributeError, match="Input nodes are immutable"):
        setattr(build.variable("x", (n,)), field, ())


@given(graphs())
def test_copies_and_pickles_are_the_object_itself(example: Example) -> None:
    root = example.objective
    assert copy.copy(root) is root
    assert copy.deepcopy(root) is root
    assert pickle.loads(pickle.dumps(root)) is root


CHILD = """
import pickle, sys
sys.path.insert(0, sys.argv[1] + "/tests/ir")
from test_interning import every_kind
from slomodel.calculus import gradient
from slomodel.ir.walk import inputs

theirs = pickle.loads(sys.stdin.buffer.read())
assert theirs is every_kind(), "the pickle is not the graph built here"
sys.stdout.buffer.write(pickle.dumps(gradient(theirs, inputs(theirs))[0]))
"""


def test_pickles_cross_processes() -> None:
    root = every_kind()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(ROOT)],
        input=pickle.dumps(root),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert pickle.loads(done.stdout) is gradient(root, [build.variable("x", (n, n))])[0]


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_that_build_the_same_graph_get_the_same_nodes() -> None:
    workers, rounds = 8, 200
    start = threading.Barrier(workers)
    found: list[list[Expr]] = [[] for _ in range(workers)]

    def work(own: list[Expr]) -> None:
        start.wait()
        node: Expr = build.variable("shared", (n,))
        for k in range(rounds):
            node = fn.sin(fn.add(node, float(k)))
            own.append(node)

    threads = [threading.Thread(target=work, args=(own,)) for own in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found[0]) == rounds
    for own in found[1:]:
        assert all(one is other for one, other in zip(found[0], own, strict=True))


def test_nodes_are_freed_with_their_last_use() -> None:
    x = build.variable("freed", (n,))
    node: Expr = x
    alive = []
    for _ in range(1000):
        node = fn.sin(fn.mul(node, 0.5))
        alive.append(weakref.ref(node))
    shared = alive[0]()
    assert all(ref() is not None for ref in alive)
    del node
    gc.collect()
    assert [ref() is not None for ref in alive] == [True] + [False] * 999
    assert fn.sin(fn.mul(x, 0.5)) is shared
