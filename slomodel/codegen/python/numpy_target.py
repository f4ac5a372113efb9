"""Target `numpy`: one ufunc call per operation, into preallocated arrays."""

from __future__ import annotations

from slomodel.codegen.program import Step
from slomodel.codegen.python.names import GeneratedNames
from slomodel.codegen.python.statements import Printer
from slomodel.codegen.python.views import expanded
from slomodel.functions import where
from slomodel.ir.expr import Const, Map
from slomodel.ir.function import ScalarFunction


def spells(function: ScalarFunction) -> bool:
    return "numpy" in function.spelling


def operand_text(node: Map, k: int, scope: GeneratedNames) -> str:
    """Operand k of an elementwise node, with axes of size 1 along which it is broadcast."""
    operand = node.operands[k]
    text = scope.ref(operand)
    if not operand.rank or operand.rank == node.rank:
        return text
    return scope.alias(expanded(text, tuple(range(node.rank)), node.axes[k]))


def elementwise(step: Step, scope: GeneratedNames) -> list[str]:
    """The one operation of the step: a ufunc for arrays, an expression for scalars."""
    node = step.node
    assert isinstance(node, Map)
    if not node.rank:
        return [f"{scope.ref(node)} = {_scalar(node, scope)}"]
    texts = [operand_text(node, k, scope) for k in range(len(node.operands))]
    return [node.function.spelling["numpy"].format(*texts, out=scope.ref(node))]


def _scalar(node: Map, scope: GeneratedNames) -> str:
    texts = [scope.ref(operand) for operand in node.operands]
    if node.function is where:
        # A Python float as a branch would raise ZeroDivisionError in a later division.
        texts = [
            scope.alias(f"real({text})", "c") if isinstance(operand, Const) and k else text
            for k, (text, operand) in enumerate(zip(texts, node.operands, strict=True))
        ]
    return node.function.spelling["scalar"].format(*texts)


NUMPY = Printer("numpy", (), spells, None, elementwise)
