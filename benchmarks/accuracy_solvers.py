"""Solvers that run until a value is reached: slomodel, SciPy and optax, with kernels of both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.optimize import minimize

import slomodel
from benchmarks.by_hand import Array
from benchmarks.cases import MODELS, stated
from benchmarks.peers import FORMULAS, in_jax

OURS = "slomodel auto"

Pair = Callable[[Array], tuple[float, Array]]
Product = Callable[[Array, Array], Array]


@dataclass(frozen=True, slots=True)
class Functions:
    """Value with gradient, and products with the Hessian, over x (n,)."""

    pair: Pair
    product: Product


@dataclass(frozen=True, slots=True)
class Problem:
    """A model, a divisor of its value, and the least value of the quotient."""

    name: str
    model: slomodel.Model
    samples: float
    least: float
    start: Callable[[int], Array]
    """The point (n,) of a seed."""


class Reached(Exception):
    """Raised if the gap is small enough, or the time is up."""


class Watch:
    """Records when values approach the least one; stops the run there, or after `limit` seconds."""

    def __init__(self, problem: Problem, gap: float, limit: float) -> None:
        self._goal = problem.samples * (problem.least + gap)
        self._limit = limit
        self.seconds = np.inf
        self.begin()

    def begin(self) -> None:
        """Start the clock; all work before was compilation."""
        self._began = time.process_time()

    def look(self, value: float) -> bool:
        """True when the run may stop."""
        took = time.process_time() - self._began
        if value <= self._goal:
            self.seconds = min(self.seconds, took)
        return value <= self._goal or took > self._limit

    def stop(self, value: float) -> None:
        if self.look(value):
            raise Reached


Solver = Callable[[Problem, Array, Watch], None]


def auto(problem: Problem, x0: Array, watch: Watch) -> None:
    """Our own solver."""
    problem.model.solve(
        x0=x0, gtol=0.0, max_iter=10**7, callback=lambda state: watch.look(state.fun)
    )


def kernels(problem: Problem) -> Functions:
    """Our value, gradient and product."""
    return Functions(problem.model.value_and_gradient, problem.model.hvp)


@cache
def _traced(
    name: str,
) -> tuple[Callable[..., object], Callable[..., object], Callable[..., object]]:
    """JAX's compiled value with gradient, product and plain value, over x (n,) and data."""
    in_jax(name)  # configures JAX: one thread, double precision
    import jax
    import jax.numpy as jnp

    shapes = slomodel.compile(MODELS / f"{name}.slo", backend="numpy").variables

    def value(x: Array, data: dict[str, Array]) -> object:
        parts, at = {}, 0
        for variable, shape in shapes.items():
            end = at + int(np.prod(shape))
            parts[variable] = x[at:end].reshape(shape)
            at = end
        return FORMULAS[name](jnp, parts, data)

    def product(x: Array, v: Array, data: dict[str, Array]) -> object:
        return jax.jvp(lambda at: jax.grad(value)(at, data), (x,), (v,))[1]

    return jax.jit(jax.value_and_grad(value)), jax.jit(product), value


def jax_functions(problem: Problem) -> Functions:
    """The same from JAX, NumPy in and NumPy out."""
    import jax.numpy as jnp

    pair, product, _ = _traced(problem.name)
    data = {name: jnp.asarray(array) for name, array in stated(problem.name).items()}

    def both(x: Array) -> tuple[float, Array]:
        value, gradient = pair(x, data)
        return float(value), np.asarray(gradient)

    return Functions(both, lambda x, v: np.asarray(product(x, v, data)))


def scipys(method: str, source: Callable[[Problem], Functions]) -> Solver:
    """A method of SciPy without stop rules of its own."""
    options: dict[str, dict[str, float]] = {
        "L-BFGS-B": {"ftol": 0.0, "gtol": 0.0, "maxiter": 10**7, "maxfun": 10**7},
        "CG": {"gtol": 0.0, "maxiter": 10**7},
        "trust-ncg": {"gtol": 0.0, "maxiter": 10**7},
    }

    def run(problem: Problem, x0: Array, watch: Watch) -> None:
        own = source(problem)

        def pair(x: Array) -> tuple[float, Array]:
            value, gradient = own.pair(x)
            watch.stop(value)
            return value, gradient

        more = {"hessp": own.product} if method == "trust-ncg" else {}
        minimize(pair, x0, jac=True, method=method, options=options[method], **more)

    return run


def optax_jax(problem: Problem, x0: Array, watch: Watch) -> None:
    """optax's L-BFGS with its zoom line search, value and gradient from JAX."""
    import jax.numpy as jnp

    step, begin = _optax(problem.name)
    data = {name: jnp.asarray(array) for name, array in stated(problem.name).items()}
    _descend(step, begin, jnp.asarray(x0), data, watch)


def optax_ours(problem: Problem, x0: Array, watch: Watch) -> None:
    """The same with our kernels, which JAX calls back."""
    import jax
    import jax.numpy as jnp

    shape = (jax.ShapeDtypeStruct((), float), jax.ShapeDtypeStruct(x0.shape, float))

    def numbers(x: Array) -> tuple[Array, Array]:
        value, gradient = problem.model.value_and_gradient(np.array(x))
        return np.asarray(value), gradient

    @jax.custom_vjp
    def value(x: Array, data: object) -> object:
        return jax.pure_callback(numbers, shape, x)[0]

    def forward(x: Array, data: object) -> tuple[object, object]:
        return jax.pure_callback(numbers, shape, x)

    value.defvjp(forward, lambda gradient, slope: (slope * gradient, None))
    step, begin = _stepping(value)
    _descend(step, begin, jnp.asarray(x0), None, watch)


@cache
def _optax(name: str) -> tuple[Callable[..., object], Callable[..., object]]:
    return _stepping(_traced(name)[2])


def _stepping(value: Callable[..., object]) -> tuple[Callable[..., object], Callable[..., object]]:
    import jax
    import optax

    method = optax.lbfgs()

    @jax.jit
    def step(x: object, state: object, data: object) -> object:
        of_x = partial(value, data=data)
        f, g = optax.value_and_grad_from_state(of_x)(x, state=state)
        updates, state = method.update(g, state, x, value=f, grad=g, value_fn=of_x)
        return optax.apply_updates(x, updates), state, f

    return step, method.init


def _descend(
    step: Callable[..., object],
    begin: Callable[..., object],
    x: object,
    data: object,
    watch: Watch,
) -> None:
    state = begin(x)
    step(x, state, data)  # compiled before the clock starts
    watch.begin()
    while True:
        x, state, f = step(x, state, data)  # type: ignore[misc]
        watch.stop(float(f))


SOLVERS: dict[str, Solver] = {
    OURS: auto,
    **{f"{m}, ours": scipys(m, kernels) for m in ("L-BFGS-B", "CG", "trust-ncg")},
    "optax, ours": optax_ours,
    **{f"{m}, JAX": scipys(m, jax_functions) for m in ("L-BFGS-B", "CG", "trust-ncg")},
    "optax, JAX": optax_jax,
}
