"""From lowered roots to a program: order, fusion and storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from slomodel.codegen.groups import Group, group, worth_fusing
from slomodel.codegen.program import (
    Form,
    Program,
    Stage,
    Step,
    UpdateGroup,
    form_of,
    is_slice,
    scattered,
    together,
)
from slomodel.codegen.storage import Storage
from slomodel.ir.dims import Dim, number_of_elements
from slomodel.ir.expr import Expr, Input, Map, Recur, Scatter
from slomodel.ir.function import ScalarFunction
from slomodel.ir.loop import Loop, StateAt, Update
from slomodel.ir.walk import dependents, postorder, users

_VIEWS: tuple[Form, ...] = (Form.AXES, Form.SLICE, Form.RESHAPE)


def schedule(
    roots: Sequence[Expr],
    arguments: Sequence[Input],
    *,
    prints: Callable[[ScalarFunction], bool] | None,
    numbers: Mapping[str, int],
    outputs: Sequence[Expr] = (),
    centre: Sequence[Input] = (),
) -> Program:
    """The program of lowered `roots` for calls that differ in `arguments`.

    `outputs` are roots whose arrays the caller provides, in order; a root that cannot be computed
    directly in its array has to be copied by the caller. `centre` are arguments that are often
    equal in successive calls, so that nodes that depend on them alone form a separate stage.
    `prints` says which functions can be fused into one kernel; None means one operation per step.
    `numbers` are the sizes of the named dims, which determine where fusion pays.
    """
    plan = _Analysis(tuple(roots), set(arguments), set(centre), prints, numbers)
    steps = plan.steps()
    storage = Storage(plan.roots, tuple(outputs), plan.base)
    storage.place(steps)
    return Program(
        roots=plan.roots,
        steps=tuple(steps),
        slots=tuple(storage.slots),
        slot_of=storage.slot_of,
        outputs=storage.outputs,
        arguments=tuple(arguments),
        centre=tuple(centre),
        forms=plan.forms,
        copied=frozenset(plan.copied),
    )


def _grouped(loop: Loop) -> list[list[Update]]:
    sources = dict(loop.sources)
    groups: list[list[Update]] = []
    for update in loop.updates:
        read = [sources[node] for node in postorder(update.value) if node in sources]
        places = [(s.state, s.shift) for s in read if isinstance(s, StateAt)]
        last = groups[-1] if groups else []
        clash = any(
            state == before.state and _may_be_equal(shift, before.shift)
            for before in last
            for state, shift in places
        )
        if last and last[0].start == update.start and not clash:
            last.append(update)
        else:
            groups.append([update])
    return groups


def _may_be_equal(a: Dim, b: Dim) -> bool:
    difference = a - b
    return not difference.is_literal or difference.const == 0


class _Analysis:
    """Forms, stages and groups of the nodes under some roots."""

    def __init__(
        self,
        roots: tuple[Expr, ...],
        arguments: set[Input],
        centre: set[Input],
        prints: Callable[[ScalarFunction], bool] | None,
        numbers: Mapping[str, int],
    ) -> None:
        self.numbers = numbers
        self.roots = roots
        self.order = together(postorder(*roots))
        self._prints = prints
        self.place = {node: k for k, node in enumerate(self.order)}
        self.users = users(self.order)
        self.varying = dependents(self.order, lambda node: node in arguments)
        self.calling = dependents(self.order, lambda node: node in arguments - centre)
        self.single = {node for node in self.order if len(self.users[node]) == 1} - set(roots)
        self.forms = {node: form_of(node) for node in self.order}
        self.added = self._accumulations()
        self.absorbed = set(self.added.values())
        self.copied = {node for node in self.order if self._must_copy(node)}
        self.groups = self._groups(prints) if prints else {}
        self.put = {node.operands[0] for node in self.order if self._puts(node)}

    def _accumulations(self) -> dict[Expr, Scatter]:
        """Additions of a slice inside zeros, done in place without materialising the zeros."""
        added: dict[Expr, Scatter] = {}
        for node in self.order:
            scatter = scattered(node, self.single)
            if scatter is not None:
                self.forms[node] = Form.ACCUMULATE
                added[node] = scatter
        return added

    def base(self, node: Expr) -> Expr:
        """The node whose storage `node` is, or is a view of."""
        while self.is_view(node):
            node = node.operands[0]
        return node

    def is_view(self, node: Expr) -> bool:
        return self.forms[node] in _VIEWS and node not in self.copied

    def steps(self) -> list[Step]:
        """All computed nodes, in order: those of the data, of a centre, of each call."""
        result: dict[Stage, list[Step]] = {"data": [], "centre": [], "call": []}
        for node in self.order:
            if self._is_computed(node):
                step = self._step(node)
                result[step.stage].append(step)
        return [step for steps in result.values() for step in steps]

    def _stage(self, node: Expr) -> Stage:
        if node in self.calling:
            return "call"
        return "centre" if node in self.varying else "data"

    def _must_copy(self, node: Expr) -> bool:
        """Whether a node is a view that some user needs as a separate array, in C order."""
        form = self.forms[node]
        if form not in _VIEWS:
            return False
        operand = node.operands[0]
        if not node.rank or not operand.rank:
            return True
        read_flat: tuple[Form, ...] = (Form.PRODUCT, Form.RESHAPE, Form.TAKE)
        if form is Form.SLICE and node.rank == 1:
            read_flat = (Form.RESHAPE,)
        return form is not Form.RESHAPE and any(
            self.forms[user] in read_flat for user in self.users[node]
        )

    def _groups(self, prints: Callable[[ScalarFunction], bool]) -> dict[Expr, Group]:
        alone = set(self.roots)
        for node in self.order:
            unprinted = isinstance(node, Map) and not prints(node.function)
            if unprinted or any(
                self._stage(user) != self._stage(node) for user in self.users[node]
            ):
                alone.add(node)
            if unprinted:
                alone.update(node.operands)
        result = group(self.order, self.forms, self.users, alone)
        worth = {id(own): self._pays(own) for own in result.values()}
        return {node: own for node, own in result.items() if worth[id(own)]}

    def _pays(self, own: Group) -> bool:
        elements = number_of_elements(own.root.shape, self.numbers)
        return worth_fusing(own, elements)

    def _is_computed(self, node: Expr) -> bool:
        if self.forms[node] in (Form.INPUT, Form.CONSTANT) or self.is_view(node):
            return False
        if node in self.absorbed or node in self.put:
            return False
        if isinstance(node, Recur):
            return not node.state  # which stands for all states
        return node not in self.groups or self.groups[node].root is node

    def _step(self, node: Expr) -> Step:
        form = self.forms[node]
        fused: tuple[Expr, ...] = ()
        if form is Form.ELEMENTWISE:
            fused = self._fused(node)
        elif form is Form.PUT and node.operands[0] in self.put:
            fused = self._fused(node.operands[0])
        added = self.added.get(node)
        in_place = None
        if added is not None:
            start = next(operand for operand in node.operands if operand is not added)
            if self._is_own(start) and self._stage(start) == self._stage(node):
                in_place = start
        updates = self._update_groups(node.loop) if isinstance(node, Recur) else ()
        return Step(node, form, self._stage(node), fused, in_place, added, updates)

    def _update_groups(self, loop: Loop) -> tuple[UpdateGroup, ...]:
        """The updates of a loop in groups that read nothing which an update of the group writes."""
        return tuple(
            UpdateGroup(group[0].start, tuple(group), self._body(group, loop))
            for group in _grouped(loop)
        )

    def _body(self, group: Sequence[Update], loop: Loop) -> Program:
        values = [update.value for update in group]
        read = [node for node, _ in loop.sources if isinstance(node, Input)]
        return schedule(values, read, prints=self._prints, numbers=self.numbers)

    def _fused(self, node: Expr) -> tuple[Expr, ...]:
        times = self.groups[node].times if node in self.groups else (node,)
        return tuple(sorted(times, key=self.place.__getitem__))

    def _puts(self, node: Expr) -> bool:
        """Whether a node is a scatter to a slice in which its operand can be computed directly."""
        if self.forms[node] is not Form.PUT or node in self.absorbed:
            return False
        assert isinstance(node, Scatter)
        return is_slice(node.index) and self._is_used_by(node.operands[0], node)

    def _is_used_by(self, node: Expr, user: Expr) -> bool:
        """Whether a node is an elementwise array with this only user, in the same stage."""
        if node not in self.single or self.forms[node] is not Form.ELEMENTWISE or not node.rank:
            return False
        root = node not in self.groups or self.groups[node].root is node
        return root and self._stage(node) == self._stage(user)

    def _is_own(self, node: Expr) -> bool:
        """Whether a node is computed into an array that only its one user reads."""
        return self._is_computed(node) and node in self.single and node.rank > 0
