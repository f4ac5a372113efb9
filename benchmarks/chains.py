"""Long chains as people write them, of any length: what compile times are measured on.

Each is one definition after another, or one SymPy expression, so that its graph is as deep or as
long as the text; nothing in it becomes a loop over an axis unless a pass finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import sympy as sp
from numpy.typing import NDArray

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chain:
    """A model: text or a SymPy expression, its data, and the value of every variable."""

    source: str | sp.Expr
    data: Mapping[str, Reals] = field(default_factory=dict)
    at: float = 0.9


_PART = 1000
"""Terms of a sum in one statement; the language takes 50,000 names, numbers and signs in one."""


def _minimized(terms: Sequence[str]) -> str:
    """Statements that minimise a sum, of which long ones are defined in parts."""
    parts = [" + ".join(terms[k : k + _PART]) for k in range(0, len(terms), _PART)]
    if len(parts) == 1:
        return f"minimize {parts[0]}"
    lets = [f"let part{k} = {part}" for k, part in enumerate(parts)]
    return "\n".join([*lets, f"minimize {' + '.join(f'part{k}' for k in range(len(parts)))}"])


def runge_kutta(steps: int) -> Chain:
    """Lotka–Volterra by the classical method with step 0.05, fitted to given populations."""
    lines = ["var a[4]", "let u0 = 1.0", "let v0 = 0.5"]
    for k in range(steps):
        u, v, parts = f"u{k}", f"v{k}", []
        for j, (pu, pv, h) in enumerate(
            [("", "", ""), ("p0", "q0", "0.025"), ("p1", "q1", "0.025"), ("p2", "q2", "0.05")]
        ):
            mu = f"({u} + {h}*{pu}_{k})" if j else u
            mv = f"({v} + {h}*{pv}_{k})" if j else v
            lines.append(f"let p{j}_{k} = a[0]*{mu} - a[1]*{mu}*{mv}")
            lines.append(f"let q{j}_{k} = a[2]*{mu}*{mv} - a[3]*{mv}")
        for state, slope in (("u", "p"), ("v", "q")):
            parts = " + ".join(f"{c}{slope}{j}_{k}" for j, c in enumerate(("", "2*", "2*", "")))
            lines.append(f"let {state}{k + 1} = {state}{k} + 0.05/6*({parts})")
    terms = [f"(u{k} - {1 + k % 3})^2" for k in range(1, steps + 1)]
    return Chain("\n".join([*lines, _minimized(terms)]))


def _definitions(steps: int, start: str, step: Callable[[int], str], terms: Sequence[str]) -> str:
    """`let p0 = …`, `let p1 = …`, each by the one before, and a sum of terms."""
    lets = (f"let p{k} = {step(k)}" for k in range(1, steps))
    return "\n".join([f"var x[{steps}]", f"let p0 = {start}", *lets, _minimized(terms)])


def product(steps: int) -> Chain:
    """The square of a product by definitions."""
    last = [f"(p{steps - 1} - 1)^2"]
    return Chain(_definitions(steps, "x[0]", lambda k: f"p{k - 1} * x[{k}]", last), at=1.001)


def quotients(steps: int) -> Chain:
    """A continued fraction."""
    last = [f"(p{steps - 1} - 1)^2"]
    return Chain(_definitions(steps, "x[0]", lambda k: f"x[{k}] + 1/p{k - 1}", last))


def nested_tanh(steps: int) -> Chain:
    """A scalar recurrent network written out."""
    last = [f"p{steps - 1}^2"]
    return Chain(
        _definitions(steps, "x[0]", lambda k: f"tanh(0.7*p{k - 1} + {k % 5}*x[{k}])", last)
    )


def running_sums(steps: int) -> Chain:
    """A random walk by definitions, each of its positions fitted."""
    terms = [f"(p{k} - {k % 7})^2" for k in range(steps)]
    return Chain(_definitions(steps, "x[0]", lambda k: f"p{k - 1} + x[{k}]", terms))


def garch(steps: int) -> Chain:
    """Variances that follow the one before: GARCH(1, 1), its likelihood as one sum."""
    lines = ["data e[n]", "var w", "var a", "var b", "let h0 = w"]
    lines += [f"let h{k} = w + a*e[{k - 1}]^2 + b*h{k - 1}" for k in range(1, steps)]
    terms = [f"log(h{k}) + e[{k}]^2/h{k}" for k in range(steps)]
    data = {"e": np.random.default_rng(1).normal(size=steps)}
    return Chain("\n".join(["dim n", *lines, _minimized(terms)]), data, 0.3)


def logs_of_sums(steps: int) -> Chain:
    """Logarithms of all partial sums of exponentials: Cox's partial likelihood written out."""
    terms = [f"log(p{k}) - x[{k}]" for k in range(steps)]
    return Chain(_definitions(steps, "exp(x[0])", lambda k: f"p{k - 1} + exp(x[{k}])", terms))


def nested_logs(steps: int) -> Chain:
    """The forward recursion of a chain of two states in logarithms."""
    last = [f"p{steps - 1}^2"]
    return Chain(
        _definitions(steps, "x[0]", lambda k: f"log(exp(0.5*p{k - 1}) + exp(x[{k}]))", last)
    )


def matrices(steps: int) -> Chain:
    """Layers of a network that shares its weights, by products of matrices and tanh in turn."""
    lines = ["var W[4, 4]", "var x[4]", "let p0 = x"]
    lines += [f"let p{k} = tanh(W @ p{k - 1})" for k in range(1, steps)]
    return Chain("\n".join([*lines, f"minimize sum(p{steps - 1}^2)"]))


def filtered(steps: int) -> Chain:
    """An exponential filter of data, unrolled, with its innovations squared."""
    lines = ["dim n", "data y[n]", "var a", "let s0 = y[0]"]
    lines += [f"let s{k} = a*y[{k}] + (1 - a)*s{k - 1}" for k in range(1, steps)]
    terms = [f"(y[{k}] - s{k - 1})^2" for k in range(1, steps)]
    data = {"y": np.random.default_rng(2).normal(size=steps)}
    return Chain("\n".join([*lines, _minimized(terms)]), data, 0.4)


def sympy_sum(steps: int) -> Chain:
    """One SymPy sum of unlike terms."""
    x = sp.symbols(f"x:{steps}")
    forms: list[Callable[[sp.Expr, sp.Expr], sp.Expr]] = [
        lambda a, b: (a - b) ** 2,
        lambda a, b: sp.exp(-a * b),
        lambda a, b: sp.sin(a) * b,
    ]
    near = zip(x, (*x[1:], x[0]), strict=True)
    return Chain(sp.Add(*(forms[k % 3](a, b) for k, (a, b) in enumerate(near))))


CHAINS: dict[str, tuple[Callable[[int], Chain], float]] = {
    "Runge–Kutta": (runge_kutta, 75.0),
    "product": (product, 2.0),
    "continued fraction": (quotients, 3.0),
    "nested tanh": (nested_tanh, 5.0),
    "running sums": (running_sums, 5.0),
    "GARCH": (garch, 11.0),
    "recursive filter": (filtered, 7.0),
    "logs of sums": (logs_of_sums, 6.0),
    "nested log-sum-exp": (nested_logs, 6.0),
    "matrices and tanh": (matrices, 2.0),
    "SymPy sum": (sympy_sum, 6.0),
}
"""Chains by name, and about how many nodes a step has."""


def chain(name: str, nodes: int) -> Chain:
    """The chain of this name with about so many nodes."""
    make, per_step = CHAINS[name]
    return make(max(2, round(nodes / per_step)))
