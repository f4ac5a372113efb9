"""Target `numexpr`: fused elementwise groups as compiled kernels, called with `out=`."""

from __future__ import annotations

import math

from slomodel.codegen.program import Step
from slomodel.codegen.python import numpy_target
from slomodel.codegen.python.names import GeneratedNames, number
from slomodel.codegen.python.statements import Printer
from slomodel.functions import div
from slomodel.ir.expr import Const, Expr, Map
from slomodel.ir.function import ScalarFunction


def prints(function: ScalarFunction) -> bool:
    return "numexpr" in function.spelling


def spells(function: ScalarFunction) -> bool:
    """Whether a function is not replaced by its stable form.

    Functions without a numexpr spelling are NumPy calls unless their stable form can be fused.
    """
    return prints(function) or function.stable is None


def elementwise(step: Step, scope: GeneratedNames) -> list[str]:
    """A compiled kernel for several operations, a ufunc call for one, an expression for scalars."""
    if len(step.fused) == 1:
        return numpy_target.elementwise(step, scope)
    kernel = _KernelText(scope)
    for node in step.fused:
        kernel.add(node)
    # numexpr 2.14 requires ex_uses_vml whenever a keyword is given.
    keywords = [f"out={scope.ref(step.node)}", "ex_uses_vml=False"]
    if scope.precision == "float32":
        # Its maximum, minimum and sign return doubles whatever the type of their operands.
        keywords.append('casting="same_kind"')
    arguments = ", ".join([*kernel.names, *keywords])
    return [f"{scope.kernel(kernel.text(step.node))}({arguments})"]


class _KernelText:
    """The text of a kernel under construction; `names` maps arrays to their names in it."""

    def __init__(self, scope: GeneratedNames) -> None:
        self.names: dict[str, str] = {}
        self._scope = scope
        self._signature: list[str] = []
        self._texts: dict[Expr, str] = {}
        # numexpr calls its single precision `float`, and a literal would make the rest double.
        self._double = scope.precision == "float64"

    def add(self, node: Expr) -> None:
        """Print one operation; its operands have been printed or are inputs of the kernel."""
        assert isinstance(node, Map)
        operands = [self._operand(node, k) for k in range(len(node.operands))]
        self._texts[node] = node.function.spelling["numexpr"].format(*operands)

    def text(self, root: Expr) -> str:
        """The expression that compiles the kernel for `root`."""
        return f"NumExpr({self._texts[root]!r}, [{', '.join(self._signature)}])"

    def _operand(self, node: Map, k: int) -> str:
        operand = node.operands[k]
        if operand in self._texts:
            return self._texts[operand]
        if isinstance(operand, Const):
            # numexpr computes the reciprocal of a constant, and fails for 0.
            by_zero = node.function is div and k == 1 and operand.value == 0
            return self._constant(operand.value, as_literal=not by_zero)
        kind = "bool" if operand.dtype == "bool" else None
        return self._argument(numpy_target.operand_text(node, k, self._scope), kind)

    def _constant(self, value: float, *, as_literal: bool) -> str:
        if (self._double and as_literal) or isinstance(value, bool):
            return _literal(value)
        return self._argument(self._scope.alias(f"real({number(value)})", "c"), None)

    def _argument(self, array: str, kind: str | None) -> str:
        if array not in self.names:
            self.names[array] = f"v{len(self.names)}"
            real = "np.double" if self._double else "float"
            self._signature.append(f'("{self.names[array]}", {kind or real})')
        return self.names[array]


def _literal(value: float) -> str:
    """A literal for numexpr, which has no names for infinities and NaN but folds constants."""
    if isinstance(value, bool):
        return repr(value)
    if math.isnan(value):
        return "(1e999 - 1e999)"
    text = repr(value).replace("inf", "1e999")
    return f"({text})" if text.startswith("-") else text


NUMEXPR = Printer("numexpr", ("from numexpr import NumExpr",), spells, prints, elementwise)
