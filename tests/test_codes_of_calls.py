"""Every error that a caller can make has a code and a remedy."""

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel import errors
from slomodel.codegen.cuda.target import CUDA
from slomodel.errors import SlomodelError
from slomodel.solve.scipy_method import scipy_method
from tests.sizes import parsed

PACKAGE = Path(slomodel.__file__).parent
INNER = ("ir", "functions", "calculus", "reference", "bounds", "codegen")
"""What these say by text alone, a model or a point that users give never leads to."""
ERRORS = {
    name
    for name, one in vars(errors).items()
    if isinstance(one, type) and issubclass(one, SlomodelError)
}


def texts_alone(path: Path) -> list[str]:
    """The errors of a file that are made of a text, and so have no code."""
    calls = [
        node
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for call in calls
        if call.func.id in ERRORS  # type: ignore[attr-defined]
        and any(isinstance(one, ast.Constant | ast.JoinedStr | ast.BinOp) for one in call.args)
    ]


def test_no_error_is_made_of_a_text_alone() -> None:
    found = [
        place
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in INNER
        for place in texts_alone(path)
    ]
    assert found == []


def model(**options: object) -> slomodel.Model:
    text = "dim n data y[n], lam var x[n], W[2, 2] init 1 minimize sumsq(x - y) + lam * sumsq(W)"
    given = {"data": {"y": np.ones(3), "lam": 1.0}, "backend": "numpy", **options}
    return slomodel.compile(text, **given)  # type: ignore[arg-type]


def minimized(**options: object) -> object:
    method = scipy_method("pgd")
    return method(lambda x: x @ x, np.ones(2), **options)  # type: ignore[arg-type]


CALLS: dict[str, tuple[str, Callable[[], object]]] = {
    "a point too short": ("E605", lambda: model().value(np.ones(6))),
    "a point of another shape": ("E605", lambda: model().gradient(np.ones((7, 1)))),
    "a point of a name too many": ("E605", lambda: model().value({"x": np.ones(3), "b": 1.0})),
    "a point that lacks a name": ("E605", lambda: model().value({"x": np.ones(3)})),
    "a part of another shape": (
        *("E605", lambda: model().value({"x": np.ones(2), "W": np.ones((2, 2))})),
    ),
    "a direction too short": ("E605", lambda: model().hvp(np.ones(7), np.ones(6))),
    "a start too short": ("E605", lambda: model().solve(x0=np.ones(6))),
    "a point of text": ("E306", lambda: model().value(["a"] * 7)),
    "a point of uneven rows": ("E306", lambda: model().value([[1.0], [1.0, 2.0]])),
    "out too short": ("E605", lambda: model().value_and_gradient(np.ones(7), np.ones(6))),
    "out a list": (
        *("E602", lambda: model().value_and_gradient(np.ones(7), [0.0] * 7)),  # type: ignore[arg-type]
    ),
    "out of whole numbers": (
        *("E602", lambda: model().value_and_gradient(np.ones(7), np.ones(7, dtype=int))),
    ),
    "no data": ("E706", lambda: model(data={}).value(np.ones(7))),
    "no size": ("E706", lambda: model(data={"lam": 1.0}).n),
    "no threads": ("E602", lambda: model().solve(threads=0)),
    "a seed of text": ("E602", lambda: model().x0("one")),  # type: ignore[arg-type]
    "data of no dict": ("E602", lambda: model(data=[1.0])),
    "a model of no text": ("E602", lambda: slomodel.compile(3)),  # type: ignore[arg-type]
    "variables of a text": ("E604", lambda: model(variables=[sp.Symbol("x")])),
    "a pass that is not there": ("E602", lambda: model(rewrites=["magic"])),
    "rewrites of text": ("E602", lambda: model(rewrites="all")),
    "no jac": ("E604", minimized),
    "constraints": (
        *("E604", lambda: minimized(jac=lambda x: 2 * x, constraints={"type": "eq", "fun": sum})),
    ),
    "a centre of NaN": ("E606", lambda: model().bounds(np.full(7, np.nan), 1.0)),
    "an estimate over no ball": ("E606", lambda: model().sample_bounds(np.ones(7), np.inf)),
    "a formula of no polynomial": (
        *(
            "E606",
            lambda: slomodel.compile("var x minimize exp(x)", backend="numpy").bound_formula("L1"),
        ),
    ),
    "a text of CUDA that is run": ("E801", lambda: CUDA.maker("f", None, None, {})),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", CALLS)
def test_each_wrong_call_has_a_code_and_a_remedy(call: str) -> None:
    code, action = CALLS[call]
    with pytest.raises(SlomodelError) as caught:
        action()
    (told,) = caught.value.diagnostics
    assert told.code == code, told.message
    assert told.help
    assert str(caught.value).startswith(f"error[{code}]: ")


def test_a_long_hessian_has_a_code() -> None:
    large = slomodel.compile("var x[6000] minimize sumsq(x)", backend="numpy")
    with pytest.raises(SlomodelError, match=r"error\[E320\].*6000 rows(.|\n)*hvp"):
        large.hessian(np.ones(6000))
