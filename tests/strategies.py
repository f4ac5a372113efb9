"""Random well-typed expression graphs with values for their inputs, drawn by Hypothesis.

A graph starts from a pool of inputs and grows by steps on what the pool holds; every node that
nothing uses ends in the objective, so that each step counts. Values are known while a graph is
drawn: they keep every node small, functions inside their domain, and conditions, where asked
also kinks, at a margin from where they switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from graph_indexing import add_up, extreme, gather, look_up, pad, product, reshape, scatter
from graph_maker import Maker, Reals
from graph_steps import (
    SWITCHES,
    apply_function,
    choose,
    choose_domain,
    choose_observed,
    contract,
    measure,
    power,
)
from hypothesis import strategies as st

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input

REALS = [f for f in fn.TABLE.values() if f.result == "real" and f is not fn.where]
SMOOTH = [f for f in REALS if f.smoothness >= 2 or f is fn.root]
STEPS = (
    *(apply_function, apply_function, apply_function, contract, contract),
    *(gather, scatter, choose, choose_domain, choose_observed, reshape, pad, power, measure),
    *(extreme, product, look_up, add_up),
)


@dataclass(frozen=True)
class Example:
    """A scalar objective and all that is needed to evaluate it.

    `sizes` has every named dim, `values` an array for every variable and data input. Data may be
    NaN where the objective does not depend on them. Some affine dims have size 0.
    """

    objective: Expr
    variables: tuple[Input, ...]
    data: tuple[Input, ...]
    sizes: dict[str, int]
    values: dict[Input, Reals]


def graphs(
    *, smooth: bool = False, complex_ok: bool = False, max_steps: int = 8
) -> st.SearchStrategy[Example]:
    """Examples of 1 to 3 variables and up to `max_steps` steps over all node kinds.

    `smooth` leaves out functions with kinks and jumps. `complex_ok` keeps them, but away from
    ties, so that a complex step takes the branch of its real point. The conditions of `where`
    hold by a margin always, and in the branch not taken there may be a NaN.
    """
    return _graphs(smooth, complex_ok, max_steps)


@st.composite
def _graphs(draw: st.DrawFn, smooth: bool, complex_ok: bool, max_steps: int) -> Example:
    sizes = {name: draw(st.integers(1, 4)) for name in "nmp"}
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    allowed = SMOOTH if smooth else [*SMOOTH, *SWITCHES] if complex_ok else REALS
    maker = Maker(draw, sizes, rng, allowed, ties=not (smooth or complex_ok))
    for k in range(draw(st.integers(1, 3))):
        shape = maker.shape()
        maker.add(maker.input(build.variable(f"x{k}", shape), maker.numbers(shape)))
    for _ in range(draw(st.integers(0, 2))):
        shape = maker.shape()
        maker.add(maker.data(shape, maker.numbers(shape)))
    for _ in range(draw(st.integers(0, max_steps))):
        draw(st.sampled_from(STEPS))(maker)
    objective = maker.objective()
    variables = tuple(node for node in maker.inputs if node.role == "variable")
    data = tuple(node for node in maker.inputs if node.role == "data")
    return Example(objective, variables, data, sizes, maker.inputs)
