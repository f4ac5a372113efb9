"""Target `numexpr`: fused elementwise groups as compiled kernels, called with `out=`."""

from __future__ import annotations

import math

from slomodel.codegen import numpy_target
from slomodel.codegen.program import Step
from slomodel.codegen.scope import Scope
from slomodel.codegen.target import Target
from slomodel.ir.expr import Const, Expr, Map
from slomodel.ir.function import ScalarFunction


def prints(function: ScalarFunction) -> bool:
    return "numexpr" in function.spelling


def spells(function: ScalarFunction) -> bool:
    """Functions without a kernel spelling stay NumPy calls unless a stable form can be fused."""
    return prints(function) or function.stable is None


def elementwise(step: Step, scope: Scope) -> list[str]:
    """A compiled kernel for several operations, a ufunc call for one, an expression for scalars."""
    if len(step.fused) == 1:
        return numpy_target.elementwise(step, scope)
    kernel, arguments = _kernel(step, scope)
    # numexpr 2.14 wants ex_uses_vml whenever a keyword is given.
    call = f"{kernel}({', '.join(arguments)}, out={scope.ref(step.node)}, ex_uses_vml=False)"
    return [call]


def _kernel(step: Step, scope: Scope) -> tuple[str, list[str]]:
    """The name of the compiled kernel and the arrays to call it with."""
    names: dict[str, str] = {}
    signature: list[str] = []
    texts: dict[Expr, str] = {}
    for node in step.fused:
        assert isinstance(node, Map)
        operands = []
        for k, operand in enumerate(node.operands):
            if operand in texts:
                operands.append(texts[operand])
            elif isinstance(operand, Const):
                operands.append(_literal(operand.value))
            else:
                argument = numpy_target.operand_text(node, k, scope)
                if argument not in names:
                    names[argument] = f"v{len(names)}"
                    kind = "bool" if operand.dtype == "bool" else "np.double"
                    signature.append(f'("{names[argument]}", {kind})')
                operands.append(names[argument])
        texts[node] = node.function.spelling["numexpr"].format(*operands)
    text = f"NumExpr({texts[step.node]!r}, [{', '.join(signature)}])"
    return scope.kernel(text), list(names)


def _literal(value: float) -> str:
    """numexpr knows no names for infinities and NaN, but folds constants."""
    if isinstance(value, bool):
        return repr(value)
    if math.isnan(value):
        return "(1e999 - 1e999)"
    text = repr(value).replace("inf", "1e999")
    return f"({text})" if text.startswith("-") else text


NUMEXPR = Target("numexpr", ("from numexpr import NumExpr",), spells, prints, elementwise)
