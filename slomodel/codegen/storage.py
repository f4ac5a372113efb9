"""Where the arrays of a program live: later results reuse slots that have become free."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slomodel.codegen.program import Slot, Step
from slomodel.ir.expr import Expr


class Storage:
    """Slots for the results of steps, by liveness.

    A slot is reused by a result of the same shape and type only, so that the program's text does
    not depend on sizes. The slot of a result that is computed once per data, or once per centre and
    read by calls, is never reused.
    """

    def __init__(
        self, roots: Sequence[Expr], outputs: Sequence[Expr], base: Callable[[Expr], Expr]
    ) -> None:
        self._kept = {base(root) for root in roots}
        self._wanted = list(outputs)
        self._base = base
        self._free: dict[Slot, list[int]] = {}
        self.slots: list[Slot] = []
        self.slot_of: dict[Expr, int] = {}
        self.outputs: dict[Expr, int] = {}

    def place(self, steps: Sequence[Step]) -> None:
        """Give every array that the steps compute its slot or the caller's array."""
        self._place_outputs(steps)
        last = self._last_reads(steps)
        dying: dict[int, list[Expr]] = {}
        for node, position in last.items():
            dying.setdefault(position, []).append(node)
        for position, step in enumerate(steps):
            ending = dying.get(position, [])
            for node in step.writes:
                self._place_one(node, step, ending)
            for node in ending:
                self._release(node, step)

    def _place_outputs(self, steps: Sequence[Step]) -> None:
        computed = {
            node for step in steps for node in step.writes if step.stage == "call" and node.rank
        }
        for k, root in enumerate(self._wanted):
            if root in computed and root not in self.outputs:
                self.outputs[root] = k
        for step in reversed(steps):
            if step.in_place is not None and step.node in self.outputs:
                self.outputs[step.in_place] = self.outputs[step.node]

    def _last_reads(self, steps: Sequence[Step]) -> dict[Expr, int]:
        last: dict[Expr, int] = {}
        stages = {node: step.stage for step in steps for node in step.writes}
        for position, step in enumerate(steps):
            if step.stage != "data":
                last.update(dict.fromkeys(step.writes, position))
            for operand in step.reads:
                node = self._base(operand)
                if node in last and stages[node] == step.stage:
                    last[node] = position
                else:
                    last.pop(node, None)
        return {node: position for node, position in last.items() if node not in self._kept}

    def _place_one(self, node: Expr, step: Step, ending: Sequence[Expr]) -> None:
        if not node.rank or node in self.outputs:
            return
        if step.in_place is not None:
            self.slot_of[node] = self.slot_of[step.in_place]
            return
        slot = Slot(node.shape, node.dtype)
        taken = self._overwritten(step, ending, slot)
        if taken is not None:
            self.slot_of[node] = self.slot_of[taken]
            return
        free = self._free.get(slot)
        if step.stage != "data" and free:
            self.slot_of[node] = free.pop()
        else:
            self.slot_of[node] = len(self.slots)
            self.slots.append(slot)

    def _overwritten(self, step: Step, ending: Sequence[Expr], slot: Slot) -> Expr | None:
        """An operand that one ufunc call may overwrite, as nothing reads it later."""
        if step.stage == "data" or step.fused != (step.node,):
            return None
        for operand in step.node.operands:
            own = self.slot_of.get(operand) if operand in ending else None
            if own is not None and self.slots[own] == slot:
                return operand
        return None

    def _release(self, node: Expr, step: Step) -> None:
        if node is step.in_place or node not in self.slot_of:
            return
        if step.node is not node and self.slot_of.get(step.node) == self.slot_of[node]:
            return
        index = self.slot_of[node]
        self._free.setdefault(self.slots[index], []).append(index)
