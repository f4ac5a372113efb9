"""From a problem to what can be planned: its derivatives, the chosen target, a set of sizes."""

from __future__ import annotations

from slomodel.calculus import Known
from slomodel.codegen.kernels import Compiled, Derivatives, target_named
from slomodel.codegen.layout import Precision
from slomodel.codegen.target import Target
from slomodel.errors import DomainError, MissingRule
from slomodel.front.data.bind import Binding
from slomodel.problem import Problem

PRECISIONS: dict[str, Precision] = {"float64": "float64", "float32": "float32"}


def known_of(problem: Problem) -> Known:
    """What the declarations say of the data."""
    return Known(
        frozenset(d.node for d in problem.data if not d.may_be_missing),
        frozenset(d.node for d in problem.data if "symmetric" in d.attributes),
    )


def derivatives_of(problem: Problem) -> Derivatives:
    """The objective with what the declarations say of its data."""
    nodes = [variable.node for variable in problem.variables]
    return Derivatives(problem.objective, nodes, known_of(problem))


def target_of(name: str) -> Target:
    """The target of a backend; `auto` is numexpr. Raises DomainError or MissingRule."""
    if name in ("c", "cupy"):
        raise MissingRule(f"backend {name!r} is not there yet; use 'numexpr' or 'numpy'")
    return target_named("numexpr" if name == "auto" else name)


def precision_of(dtype: str) -> Precision:
    """The precision of this name. Raises DomainError for others."""
    if dtype not in PRECISIONS:
        raise DomainError(f"dtype is 'float64' or 'float32', not {dtype!r}")
    return PRECISIONS[dtype]


def planned(
    problem: Problem,
    derivatives: Derivatives,
    binding: Binding,
    target: Target,
    precision: Precision,
) -> Compiled:
    """The kernels for the sizes of a binding; nothing is printed before it is asked for."""
    nodes = [declaration.node for declaration in problem.data]
    defaults = {d.node: d.default for d in problem.data if d.default is not None}
    sizes = binding.sizes
    return Compiled(problem.name, derivatives, nodes, sizes, target, precision, defaults)
