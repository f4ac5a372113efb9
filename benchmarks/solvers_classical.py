"""Classical smooth test problems in the language, with their starts and least values.

Moré, Garbow & Hillstrom, Testing unconstrained optimization software (1981), and the chained and
extended forms of some of them that are common in collections of larger problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import slomodel
from benchmarks.by_hand import Array


@dataclass(frozen=True, slots=True)
class Classical:
    """The text of a model, its start (n,) and the values of its known minima, least first."""

    text: str
    x0: tuple[float, ...]
    minima: tuple[float, ...] = (0.0,)


def _repeated(*block: float, n: int) -> tuple[float, ...]:
    return tuple(np.tile(block, n // len(block)).tolist())


CLASSICAL: dict[str, Classical] = {
    "rosenbrock": Classical("var x, y\nminimize (1 - x)^2 + 100*(y - x^2)^2", (-1.2, 1.0)),
    "freudenstein-roth": Classical(
        "var x, y\nminimize (x - 13 + ((5 - y)*y - 2)*y)^2 + (x - 29 + ((y + 1)*y - 14)*y)^2",
        (0.5, -2.0),
        (0.0, 48.98425367924),
    ),
    "powell-badly-scaled": Classical(
        "var x, y\nminimize (1e4*x*y - 1)^2 + (exp(-x) + exp(-y) - 1.0001)^2", (0.0, 1.0)
    ),
    "brown-badly-scaled": Classical(
        "var x, y\nminimize (x - 1e6)^2 + (y - 2e-6)^2 + (x*y - 2)^2", (1.0, 1.0)
    ),
    "beale": Classical(
        "var x, y\nminimize (1.5 - x*(1 - y))^2 + (2.25 - x*(1 - y^2))^2 + (2.625 - x*(1 - y^3))^2",
        (1.0, 1.0),
    ),
    "jennrich-sampson": Classical(
        "var x, y\nminimize sum((2 + 2*i - exp(i*x) - exp(i*y))^2 for i in range(1, 11))",
        (0.3, 0.4),
        (124.36218235562,),
    ),
    "helical": Classical(
        "var x, y, z\n"
        "minimize 100*(z - 10*atan2(y, x)/6.283185307179586)^2 + 100*(sqrt(x^2 + y^2) - 1)^2 + z^2",
        (-1.0, 0.0, 0.0),
    ),
    "meyer": Classical(
        "dim m\ndata y[m]\nvar a, b, c\n"
        "minimize sum((a*exp(b/(45 + 5*(i + 1) + c)) - y[i])^2 for i in m)",
        (0.02, 4000.0, 250.0),
        (87.945855170396,),
    ),
    "powell-singular": Classical(
        "var a, b, c, d\nminimize (a + 10*b)^2 + 5*(c - d)^2 + (b - 2*c)^4 + 10*(a - d)^4",
        (3.0, -1.0, 0.0, 1.0),
    ),
    "wood": Classical(
        "var a, b, c, d\nminimize 100*(b - a^2)^2 + (1 - a)^2 + 90*(d - c^2)^2 + (1 - c)^2"
        " + 10*(b + d - 2)^2 + 0.1*(b - d)^2",
        (-3.0, -1.0, -3.0, -1.0),
    ),
    "brown-dennis": Classical(
        "var a, b, c, d\nminimize sum(((a + 0.2*i*b - exp(0.2*i))^2"
        " + (c + d*sin(0.2*i) - cos(0.2*i))^2)^2 for i in range(1, 21))",
        (25.0, 5.0, -5.0, -1.0),
        (85822.2016263,),
    ),
    "biggs-exp6": Classical(
        "var a, b, c, d, p, q\nminimize sum((c*exp(-0.1*i*a) - d*exp(-0.1*i*b) + q*exp(-0.1*i*p)"
        " - exp(-0.1*i) + 5*exp(-i) - 3*exp(-0.4*i))^2 for i in range(1, 14))",
        (1.0, 2.0, 1.0, 1.0, 1.0, 1.0),
        (0.0, 0.00565564991779),
    ),
    "three-exponentials": Classical(
        "dim m = 40\nvar a[3], k[3]\nminimize sum((sum(a[j]*exp(-k[j]*0.25*i) for j in 3)"
        " - 4*exp(-0.25*i*0.2) - 2*exp(-0.25*i) - 6*exp(-0.25*i*3))^2 for i in m)",
        (3.0, 3.0, 3.0, 0.1, 0.7, 2.0),
    ),
    "variably-dimensioned": Classical(
        "dim n = 10\nvar x[n]\nlet s = sum((i + 1)*(x[i] - 1) for i in n)\n"
        "minimize sum((x[i] - 1)^2 for i in n) + s^2 + s^4",
        tuple(1.0 - k / 10 for k in range(1, 11)),
    ),
    "trigonometric": Classical(
        "dim n = 50\nvar x[n]\n"
        "minimize sum((n - sum(cos(x[j]) for j in n) + (i + 1)*(1 - cos(x[i])) - sin(x[i]))^2"
        " for i in n)",
        (0.02,) * 50,
    ),
    "chained-rosenbrock": Classical(
        "dim n = 50\nvar x[n]\n"
        "minimize sum(100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(n - 1))",
        _repeated(-1.2, 1.0, n=50),
    ),
    "extended-powell": Classical(
        "dim m = 25\nvar a[m], b[m], c[m], d[m]\nminimize sum((a[i] + 10*b[i])^2"
        " + 5*(c[i] - d[i])^2 + (b[i] - 2*c[i])^4 + 10*(a[i] - d[i])^4 for i in m)",
        (3.0,) * 25 + (-1.0,) * 25 + (0.0,) * 25 + (1.0,) * 25,
    ),
    "broyden-tridiagonal": Classical(
        "dim n = 100\nvar x[n]\n"
        "minimize sum(((3 - 2*x[i])*x[i] - x[i-1] - 2*x[i+1] + 1)^2 for i in range(1, n - 1))"
        " + ((3 - 2*x[0])*x[0] - 2*x[1] + 1)^2 + ((3 - 2*x[n-1])*x[n-1] - x[n-2] + 1)^2",
        (-1.0,) * 100,
    ),
    "discrete-boundary": Classical(
        "dim n = 50\nvar x[n]\n"
        "let c[i in n] = (x[i] + (i + 1)/51 + 1)^3/5202\n"
        "minimize sum((2*x[i] - x[i-1] - x[i+1] + c[i])^2 for i in range(1, n - 1))"
        " + (2*x[0] - x[1] + c[0])^2 + (2*x[n-1] - x[n-2] + c[n-1])^2",
        tuple(k / 51 * (k / 51 - 1) for k in range(1, 51)),
    ),
}

_MEYER = (
    *(34780.0, 28610.0, 23650.0, 19630.0, 16370.0, 13720.0, 11540.0, 9744.0),
    *(8261.0, 7030.0, 6005.0, 5147.0, 4427.0, 3820.0, 3307.0, 2872.0),
)


def classical() -> Iterator[tuple[str, slomodel.Model, Array, tuple[float, ...]]]:
    """Name, model, start (n,) and minima of each problem."""
    for name, problem in CLASSICAL.items():
        data = {"y": np.array(_MEYER)} if name == "meyer" else {}
        model = slomodel.compile(problem.text, data=data)
        yield name, model, np.array(problem.x0), problem.minima
