"""slomodel's methods as `method=` of `scipy.optimize.minimize`, for plain Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.entry import solve
from slomodel.solve.hints import closest, method_hint
from slomodel.solve.methods.table import METHODS
from slomodel.solve.objective import Objective
from slomodel.solve.options import bad_value
from slomodel.solve.plain_functions import CurvedFunctions, Functions
from slomodel.solve.run.monitor import State
from slomodel.solve.run.solution import Solution
from slomodel.solve.sets.box import Box

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

Vector = NDArray[np.float64]
_SCIPY_ONLY = {"disp", "return_all", "maxfev"}


def scipy_method(
    method: str = "norm-armijo", *misplaced: object, **keywords: object
) -> Callable[..., OptimizeResult]:
    """A callable for `scipy.optimize.minimize(fun, x0, jac=…, method=scipy_method("…"))`.

    The call takes the name of a method only; everything else is given to SciPy.

    The method needs the gradient (`jac=` a function, or True where `fun` returns both). `hessp=` or
    a function `hess=` provides Hessian products to the directions that use them. SciPy's `tol` is
    the tolerance on ‖∇f‖, `options=` are those of `Model.solve` and of the method, and `maxiter` is
    `max_iter`. `bounds=` are a Bounds or pairs of numbers, None and ±inf for none; constraints are
    refused. Raises DomainError for an unknown method.
    """
    _check_name(method, alone=not (misplaced or keywords))

    def minimize(
        fun: Callable[..., float],
        x0: ArrayLike,
        args: tuple[object, ...] = (),
        jac: Callable[..., ArrayLike] | None = None,
        hess: object = None,
        hessp: object = None,
        bounds: object = None,
        constraints: Sequence[object] = (),
        callback: Callable[..., object] | None = None,
        **options: object,
    ) -> OptimizeResult:
        _refuse(jac, constraints)
        assert jac is not None
        start = np.atleast_1d(np.asarray(x0, dtype=np.float64))
        objective: Objective = Functions(
            lambda x: fun(x.copy(), *args),
            lambda x: np.ravel(np.asarray(jac(x.copy(), *args))),
            start.size,
        )
        product = _product(hess, hessp, args)
        objective = CurvedFunctions(objective, product) if product else objective
        reporting = None if callback is None else _reporting(callback)
        known = _translated(options)
        within = None if bounds is None else box_of(bounds, start.size)
        result = solve(objective, start, method=method, within=within, callback=reporting, **known)  # type: ignore[arg-type]
        return _result(result)

    return minimize


def _result(solution: Solution) -> OptimizeResult:
    """The result in SciPy's form, without named arrays: SciPy cannot print an empty table."""
    from scipy.optimize import OptimizeResult  # costs half a second

    named = ("variables", "multipliers", "active")
    return OptimizeResult({key: value for key, value in dict(solution).items() if key not in named})


def _product(
    hess: object, hessp: object, args: tuple[object, ...]
) -> Callable[[Vector, Vector], Vector] | None:
    """(x, v) -> the Hessian at x times v, all (n,); None if neither function is given.

    `hess` returns a matrix of NumPy or scipy.sparse, or an operator; that of the last x is cached.
    """
    if callable(hessp):
        return lambda x, v: _flat(hessp(x.copy(), v.copy(), *args))
    if not callable(hess):
        return None
    last: dict[bytes, Any] = {}

    def product(x: Vector, v: Vector) -> Vector:
        key = x.tobytes()
        if key not in last:
            last.clear()
            last[key] = hess(x.copy(), *args)
        return _flat(last[key] @ v)

    return product


def _flat(value: object) -> Vector:
    return np.asarray(value, dtype=np.float64).ravel()


def _check_name(method: object, alone: bool) -> None:
    if callable(method) or not alone:
        message = "scipy_method takes the name of a method alone, before SciPy gets the result"
        remedy = "write minimize(fun, x0, jac=…, method=slomodel.scipy_method('norm-armijo'))"
        raise DomainError(Diagnostic("E604", message, help=remedy))
    if method not in METHODS:
        known = ", ".join(sorted(METHODS))
        message = f"no method is called {method!r}; there are {known}"
        remedy = method_hint(method) or closest(method, METHODS)
        raise DomainError(Diagnostic("E602", message, help=remedy))


def box_of(bounds: object, n: int) -> Box:
    """The box of SciPy's bounds on n unknowns; DomainError for others, or if it is empty."""
    try:
        if isinstance(bounds, SciPyBounds):
            given = (np.asarray(end, dtype=np.float64) for end in (bounds.lb, bounds.ub))
            ends = [np.broadcast_to(end, n) for end in given]
        else:
            pairs = [(low, high) for low, high in bounds]  # type: ignore[attr-defined]
            lows = [-np.inf if low is None else float(low) for low, _ in pairs]
            highs = [np.inf if high is None else float(high) for _, high in pairs]
            ends = [np.broadcast_to(np.array(end), n) for end in (lows, highs)]
    except (TypeError, ValueError) as error:
        raise bad_value("bounds", f"a Bounds, or {n} pairs of numbers", bounds) from error
    low, high = (end.copy() for end in ends)
    if not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
        raise bad_value("bounds", "a number between both ends of each pair", bounds)
    return Box(low, high)


@runtime_checkable
class SciPyBounds(Protocol):
    """The bounds of `scipy.optimize.Bounds`."""

    @property
    def lb(self) -> ArrayLike: ...

    @property
    def ub(self) -> ArrayLike: ...


def _refuse(jac: object, constraints: Sequence[object]) -> None:
    if not callable(jac):
        remedy = "pass jac=, or jac=True where fun returns both"
        raise DomainError(
            Diagnostic("E604", "a gradient is needed, and jac= gives none", help=remedy)
        )
    if len(constraints):
        remedy = "use bounds, or a model whose variables are declared in sets"
        raise DomainError(Diagnostic("E604", "constraints are not handled", help=remedy))


def _translated(options: dict[str, object]) -> dict[str, object]:
    """SciPy's names of options translated to ours; those of SciPy's methods alone are dropped."""
    names = {"maxiter": "max_iter", "tol": "gtol"}
    return {names.get(k, k): v for k, v in options.items() if k not in _SCIPY_ONLY}


def _reporting(callback: Callable[..., object]) -> Callable[[State], bool | None]:
    """Adapt SciPy's two kinds of callback: with `intermediate_result`, or with x alone."""
    try:
        wants_result = "intermediate_result" in inspect.signature(callback).parameters
    except ValueError:  # some functions implemented in C have no signature
        wants_result = False

    def call(state: State) -> bool | None:
        if state.k == 0:
            return None
        if wants_result:
            from scipy.optimize import OptimizeResult

            result = OptimizeResult(x=state.x, fun=state.fun)
            return bool(callback(intermediate_result=result))
        return bool(callback(state.x))

    return call
