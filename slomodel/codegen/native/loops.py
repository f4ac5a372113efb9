"""The C text of a nest with fixed axes: passes over blocks of elements that stay in the cache.

Each pass is a separate loop without sums or branches, so that the compiler can use vector
instructions and the vector forms of exp, log, sin, …: a sine and a cosine in one loop would become
one scalar call, and a sum would prevent the loop from being vectorised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from math import prod

from slomodel.codegen.loops.names import Names
from slomodel.codegen.loops.nest import (
    Apply,
    Computed,
    Element,
    Fill,
    Nest,
    Operand,
    Reduce,
    RowParts,
    Scalar,
    Store,
)
from slomodel.codegen.loops.plain import start_of
from slomodel.codegen.loops.pointers import Pointer, Pointers
from slomodel.codegen.loops.text import indented
from slomodel.codegen.native.axis_order import LoopAxes, arranged
from slomodel.codegen.native.lookups import (
    in_pieces,
    known_runs,
    piece_lines,
    run_length,
    scatter_lines,
    tables_in_runs,
)
from slomodel.codegen.native.passes import BLOCK, LoopPass, append, share_temporaries, write_over
from slomodel.codegen.native.plain import fill_line, fill_lines
from slomodel.codegen.native.prelude import fused
from slomodel.codegen.native.totals import Total, rolling
from slomodel.functions import mul

_OTHERS = 64
"""Up to this many indices of the other axes, one block of the last axis takes all of them."""
_LEAST = 128
"""The least elements of a block that is divided among the indices of other axes."""
_LONGEST = 300
"""Upper limit on the characters of an expression that is printed inside another one."""


class BlockedLoop:
    """Prints one nest. `axes` are those of its loops, `totals` its reductions to scalars.

    `is_fused`: a product that is only added is added without being rounded.
    """

    def __init__(self, nest: Nest, names: Names, is_fused: bool = False) -> None:
        self._is_fused = is_fused
        # The factors of products that are printed inside another expression.
        self._factors: dict[int, list[str]] = {}
        self.nest = nest
        self.names = names
        self.pointers = Pointers(nest, names)
        self.totals: list[Total] = []
        self.rolling = rolling(nest, names)
        # The arrays to which statements add: iterations meet only in one that several add to.
        self._targets = [
            names.base(statement.target.array)
            for statement in nest.statements
            if isinstance(statement, Reduce) and isinstance(statement.target, Element)
        ]
        self.axes: LoopAxes = []
        # The parts of rows over which passes run.
        self._rows_of_nest: RowParts | None = None
        # Whether the last axis is the outer of two loops, within blocks of the first.
        self.turned = False
        self.body: list[str] = []
        # The first store of each statement's result: the result is computed directly there.
        self._stored: dict[int, Store] = {}
        for one in nest.statements:
            if isinstance(one, Store) and isinstance(one.value, Computed):
                self._stored.setdefault(one.value.statement, one)
        self._summed: set[int] = set()
        self._uses = self._counted()
        self._texts: dict[int, str] = {}
        self._rows: list[Total] = []
        # Whether the totals of a few rows are formed together, element by element.
        self.gathers_rows = False
        self._temporaries: list[str] = []
        # The index data by whose runs the loop goes.
        self._tables: list[Pointer] = []
        self._late: list[tuple[str, Pointer]] = []
        # The values that are added at places of index data, by the index: arrays and values.
        self._scattered: dict[str, list[tuple[Pointer, str]]] = {}
        # The temporary blocks of arrays that are read by pieces of index data, by pointer.
        self._pieced: dict[str, str] = {}
        self.is_loop = bool(nest.axes) and 0 not in nest.shape
        if self.is_loop:
            self.axes, self._rows_of_nest = _axes_with_rows(nest, self.pointers)
            for k, pointer in enumerate(self.pointers):
                pointer.steps = tuple(own[k] for _, own in self.axes)
            self._find_runs()
            others = prod(size for size, _ in self.axes[:-1])
            whole = self._rows_of_nest is not None
            self.turned = not whole and 1 < others <= _OTHERS and self.axes[-1][0] > BLOCK // others
            few = len(self.axes) > 1 and prod(size for size, _ in self.axes[:-1][-1:]) <= _OTHERS
            self.gathers_rows = self.turned or (few and self.axes[-1][0] <= BLOCK)
            self._summed = self._summed_alone()
            self.body = self._printed()

    def _find_runs(self) -> None:
        """Let the loop go from run to run of its index data, if they consist of long ones."""
        if len(self.axes) == 1:
            self._tables = tables_in_runs(list(self.pointers))
        if self._tables:
            for pointer in self.pointers:
                if pointer.lookups:
                    pointer.in_runs()

    @property
    def block(self) -> int:
        """The most elements that a pass runs over."""
        others = prod(size for size, _ in self.axes[:-1])
        return max(_LEAST, BLOCK // others & -8) if self.turned else BLOCK

    @property
    def divided(self) -> int:
        """The axis that is cut into parts for several threads: that of the outermost loop."""
        return -1 if self.turned else 0

    def lines(self) -> list[str]:
        """The whole loop, with the statements before and after it."""
        if not self.nest.axes:
            return [*self.fills(), *self._scalar_lines()]
        if not self.is_loop:
            return [*self.fills(), *self._lines_of_nothing()]
        before, after = self.ends()
        inside = [*(total.start for total in self.totals), *before, *self.loops()]
        lines = ["{", *indented([*inside, *(one.end for one in self.totals), *after]), "}"]
        return [*self.fills(), *lines]

    def fills(self, others: Collection[str] = ()) -> list[str]:
        """The initialisation of arrays that are not initialised inside the loop, nor `others`."""
        inside = {*self.rolling, *others}
        every = [fill for fill in self.nest.fills if self.names.base(fill.array) not in inside]
        return [line for one in every for line in fill_lines(one, self.names)]

    def _counted(self) -> dict[int, int]:
        """How often each value is read by other statements."""
        uses: dict[int, int] = {}
        for statement in self.nest.statements:
            if not isinstance(statement, Store):
                for operand in statement.operands:
                    if isinstance(operand, Computed):
                        uses[operand.statement] = uses.get(operand.statement, 0) + 1
        return uses

    def _printed(self) -> list[str]:
        """The passes over one block."""
        passes: list[LoopPass] = []
        last = {id(one) for own in self.rolling.values() for _, one in own}
        for k, one in enumerate(self.nest.statements):
            if isinstance(one, Apply):
                self._add_value(k, one, passes)
            elif isinstance(one, Reduce):
                if id(one) not in last:
                    self._add_sum(one, passes)
            elif not self._is_first(one):
                assert isinstance(one.target, Element)
                place = _element(self.pointers.of(one.target))
                append(passes, f"{place} = {self._operand(one.value)};", alone=False)
        for own in self.rolling.values():
            for k, (_, one) in enumerate(own):
                assert isinstance(one.target, Element)
                place = _element(self.pointers.of(one.target))
                text = self._operand(one.operands[0])
                # In a pass of its own: other iterations have written elements that it adds to.
                append(passes, f"{place} {'+=' if k else '='} {text};", alone=bool(k))
        for index, added in self._scattered.items():
            passes.append(LoopPass(self._scatter(index, added), alone=True, once=True))
        for temporary, pointer in self._late:
            write_over(passes, temporary, pointer.name, _element(pointer))
        passes[:0] = self._loads()
        self._temporaries = share_temporaries(passes)
        return [line for one in passes for line in one.lines()]

    def _is_first(self, one: Store) -> bool:
        """Whether a store is the first one of its value, which is then computed in its target."""
        value = one.value
        return isinstance(value, Computed) and self._stored[value.statement] is one

    def _add_value(self, k: int, one: Apply, passes: list[LoopPass]) -> None:
        text = self._value(one)
        costly = one.function is not None and one.function.costly
        store = self._stored.get(k)
        place = None
        if store is not None and isinstance(store.target, Element):
            place = self.pointers.of(store.target)
        if place is not None and not place.reads:
            text_of = _element(place)
        elif place is not None:
            text_of = f"{self._temporary()}[i]"
            self._late.append((self._temporaries[-1], place))
        elif costly or self._uses.get(k, 0) > 1 or len(text) > _LONGEST or k in self._summed:
            text_of = f"{self._temporary()}[i]"
        else:
            self._texts[k] = text
            if self._is_fused and one.function is mul:
                self._factors[k] = [self._operand(operand) for operand in one.operands]
            return
        self._texts[k] = text_of
        append(passes, f"{text_of} = {text};", alone=costly)

    def _value(self, one: Apply) -> str:
        texts = [self._operand(operand) for operand in one.operands]
        together = fused(one.function, one.operands, texts, self._factors)
        if together is not None:
            return together
        return one.function.spelling["c"].format(*texts) if one.function else texts[0]

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, Computed):
            return self._texts[operand.statement]
        if isinstance(operand, Scalar):
            return self.names.number(operand.node)
        assert isinstance(operand, Element)
        pointer = self.pointers.of(operand)
        if not self._goes_by_pieces(pointer):
            return _element(pointer)
        if pointer.name not in self._pieced:
            self._pieced[pointer.name] = self._temporary()
        return f"{self._pieced[pointer.name]}[i]"

    def _goes_by_pieces(self, pointer: Pointer) -> bool:
        """Whether a block is a whole axis of lookups at places that are known."""
        size = self.axes[-1][0] if self.axes else 0
        return 0 < size <= self.block and in_pieces(pointer, size)

    def _loads(self) -> list[LoopPass]:
        """The passes that read what is looked up at places that are known."""
        named = {pointer.name: pointer for pointer in self.pointers}
        return [
            LoopPass(piece_lines(named[name], f"{block}[i] = {{element}};"), alone=True, once=True)
            for name, block in self._pieced.items()
        ]

    def _scatter(self, index: str, added: Sequence[tuple[Pointer, str]]) -> list[str]:
        """Statements that add values of a block to arrays at an index."""
        if not self._goes_by_pieces(added[0][0]):
            return scatter_lines(index, [(pointer.name, value) for pointer, value in added])
        return [
            line
            for pointer, value in added
            for line in piece_lines(pointer, f"{{element}} += {value};")
        ]

    def _summed_alone(self) -> set[int]:
        """The statements whose values, without further factors, are reduced over the block."""
        result = set()
        for statement in self.nest.statements:
            if isinstance(statement, Reduce) and len(statement.operands) == 1:
                (operand,) = statement.operands
                steps = (
                    ()
                    if isinstance(statement.target, Scalar)
                    else self.pointers.of(statement.target).steps
                )
                if isinstance(statement.target, Element):
                    tables = [table for table, _ in self.pointers.of(statement.target).lookups]
                    steps = (*steps[-1:], *(table.steps[-1] for table in tables if table.steps))
                if isinstance(operand, Computed) and not any(steps[-1:]):
                    result.add(operand.statement)
        return result

    def _temporary(self) -> str:
        self._temporaries.append(f"t{len(self._temporaries)}")
        return self._temporaries[-1]

    def _add_sum(self, one: Reduce, passes: list[LoopPass]) -> None:
        texts = [self._operand(operand) for operand in one.operands]
        text = " * ".join(texts)
        largest = "" if one.op == "sum" else f"slo_{one.op}"
        target = self.pointers.of(one.target) if isinstance(one.target, Element) else None
        if target is not None and any(any(table.steps[-1:]) for table, _ in target.lookups):
            # Stored, as a later statement may write over what the text reads.
            value = f"{self._temporary()}[i]"
            append(passes, f"{value} = {text};", alone=False)
            self._scattered.setdefault(_index(target), []).append((target, value))
            return
        if target is not None and target.steps and target.steps[-1]:
            place = _element(target)
            added = f"{largest}({place}, {text})" if largest else f"{place} + {text}"
            # In short runs each pass costs; in long loops sums alone are faster.
            together = bool(self._tables) and self._targets.count(target.base) == 1
            append(passes, f"{place} = {added};", alone=not together)
            return
        arrays = [part.removesuffix("[i]") for part in texts]
        plain = all(part.endswith("[i]") for part in texts) and all(map(str.isidentifier, arrays))
        if not plain or len(arrays) > 2:
            arrays = [self._temporary()]
            append(passes, f"{arrays[0]}[i] = {text};", alone=False)
        name = f"{largest}_of" if largest else ("slo_total", "slo_dot")[len(arrays) - 1]
        total = f"{name}({', '.join(arrays)}, m)"
        if isinstance(one.target, Scalar) and not largest and self.gathers_rows:
            own = Total(len(self.totals), self.names.number(one.target.node), largest)
            self.totals.append(own)
            self._rows.append(own)
            append(passes, f"q{own.k}[i] = q{own.k}[i] + {text};", alone=False)
            return
        if isinstance(one.target, Scalar):
            self.totals.append(Total(len(self.totals), self.names.number(one.target.node), largest))
            statement = self.totals[-1].adding(total)
        elif largest:
            assert target is not None
            place = _element(target)
            statement = f"{place} = {largest}({place}, {total});"
        else:
            assert target is not None
            statement = f"{_element(target)} += {total};"
        passes.append(LoopPass([statement], alone=True, once=True))

    def loops(self, part: tuple[str, str] | None = None) -> list[str]:
        """The loops around the passes, with the pointers at the start of each block.

        `part` holds the bounds of the outermost loop, if they are not those of its axis.
        """
        axes = self.axes
        size = axes[-1][0] if axes else 1
        inside = len(axes) - 1
        cut = self.turned or len(axes) == 1
        by_runs = bool(self._tables)
        blocked = by_runs or size > self.block or (part is not None and cut)
        ranges = [("0", str(length)) for length, _ in axes]
        if part:
            ranges[-1 if cut else 0] = part
        width = min(self.block, size)
        inner = [f"real {name}[{width}] ALIGNED;" for name in self._temporaries]
        known = known_runs(self._tables, self.block) if part is None else None
        rows = self._rows_of_nest
        if known:
            tables = [_declared(table, blocked) for table in self._tables]
            inner = [*tables, "const long m = run;", *inner]
        elif rows:
            blocked = True
            ends, head, length = _of_row(rows, size, width)
            inner = [*length, *inner]
        elif blocked:
            end = ranges[-1][1]
            most = f"{end} - s < {width} ? {end} - s : {width}"
            tables = [_declared(table, blocked) for table in self._tables]
            inner = [*tables, f"const long m = {run_length(self._tables, most)};", *inner]
        else:
            inner = [f"const long m = {size};", *inner]
        used = set(re.findall(r"\bp\d+\b", "\n".join(self.body)))
        for pointer in self.pointers:
            if pointer.name in used and pointer not in self._tables:
                inner.append(_declared(pointer, blocked))
        heads = [
            f"for (long i{k} = {ranges[k][0]}; i{k} < {ranges[k][1]}; i{k}++) {{"
            for k in range(inside)
        ]
        if rows:
            heads.append(head)
        elif blocked:
            first, last = ranges[-1]
            step = "" if by_runs else f" s += {width}"
            begin = f"s = {first}, run = {known.first}" if known else f"s = {first}"
            step = f" run += {known.growth}" if known else step
            head = f"for (long {begin}; s < {last};{step}) {{"
            heads.insert(0 if self.turned else inside, head)
        lines = [*inner, *self.body, *(["s += m;"] if by_runs else [])]
        rows_from = int(blocked) if self.turned else inside - 1
        for place, head in reversed(list(enumerate(heads))):
            lines = [head, *indented(lines), "}"]
            if rows and place == inside:
                lines = [*ends, *lines]
            if place == rows_from:
                lines = [*self._rows_before(width), *lines, *self._rows_after(width)]
        return lines

    def _rows_before(self, width: int) -> list[str]:
        """The arrays in which the totals of rows are summed element by element."""
        return [f"double q{row.k}[{width}] ALIGNED = {{0}};" for row in self._rows]

    def _rows_after(self, width: int) -> list[str]:
        return [row.adding(f"slo_rows_total(q{row.k}, {width})") for row in self._rows]

    def ends(self) -> tuple[list[str], list[str]]:
        """Statements that zero the elements before and after those that the loop initialises."""
        before, after = [], []
        size = self.axes[-1][0] if self.axes else 1
        whole = {self.names.base(one.array): one for one in self.nest.fills}
        for base, own in self.rolling.items():
            fill, start = whole[base], own[0][0]
            assert isinstance(fill, Fill)
            before.append(fill_line(base, start, 0.0))
            after.append(fill_line(f"{base} + {start + size}", fill.size - start - size, 0.0))
        return before, after

    def _lines_of_nothing(self) -> list[str]:
        """Values of empty reductions to scalars; other targets have been initialised before."""
        return [
            f"{self.names.number(statement.target.node)} = {start_of(statement.op)};"
            for statement in self.nest.statements
            if isinstance(statement, Reduce) and isinstance(statement.target, Scalar)
        ]

    def _scalar_lines(self) -> list[str]:
        """The statements of a nest without axes."""
        lines = []
        for k, one in enumerate(self.nest.statements):
            if isinstance(one, Store):
                lines.append(f"{self._place(one.target)} = {self._scalar(one.value)};")
            elif isinstance(one, Apply):
                texts = [self._scalar(operand) for operand in one.operands]
                self._texts[k] = (
                    one.function.spelling["c"].format(*texts) if one.function else texts[0]
                )
            else:
                lines.append(f"{self._place(one.target)} += {self._scalar(one.operands[0])};")
        return lines

    def _scalar(self, operand: Operand) -> str:
        if isinstance(operand, Computed):
            return self._texts[operand.statement]
        assert isinstance(operand, (Element, Scalar))
        return self._place(operand)

    def _place(self, place: Element | Scalar) -> str:
        if isinstance(place, Scalar):
            return self.names.number(place.node)
        return f"({self.names.base(place.array)})[{place.position.offset}]"


def keeps_rows(nest: Nest, names: Names) -> bool:
    """Whether passes run along the last of two axes, inside a loop over the first."""
    if not nest.is_blocked or 0 in nest.shape or len(nest.axes) != 2:
        return False
    return _along_rows(nest, Pointers(nest, names)) is not None


def _axes_with_rows(nest: Nest, pointers: Pointers) -> tuple[LoopAxes, RowParts | None]:
    """The axes of the loop and, if passes run over parts of rows, these parts."""
    rows = None if nest.rows is None else _along_rows(nest, pointers)
    return (arranged(nest, pointers), None) if rows is None else (rows, nest.rows)


def _along_rows(nest: Nest, pointers: Pointers) -> LoopAxes | None:
    """The two axes of a nest, if passes run along the last one or along both as one."""
    columns = nest.shape[1]
    strides = [pointer.position.strides for pointer in pointers]
    outer, inner = (tuple(own[axis] for own in strides) for axis in range(2))
    axes = arranged(nest, pointers)
    merged = all(own[0] == columns * own[1] for own in strides)
    kept = len(axes) == 1 if merged else axes[-1] == (columns, inner)
    return [(nest.shape[0], outer), (columns, inner)] if kept else None


def _of_row(rows: RowParts, size: int, width: int) -> tuple[list[str], str, list[str]]:
    """The part of row i0: its ends, the head of the loop over its blocks, and their lengths."""
    low, high = (
        f"slo_cut({start} + i0 * {step}, {size})" if step else f"{start}"
        for start, step in ((rows.low, rows.low_step), (rows.high, rows.high_step))
    )
    own = rows.width
    ends = [
        f"const long low = {low} / {own} * {own};",
        f"const long high = slo_cut(({high} + {own - 1}) / {own} * {own}, {size});",
    ]
    head = f"for (long s = low; s < high; s += {width}) {{"
    return ends, head, [f"const long m = high - s < {width} ? high - s : {width};"]


def _element(pointer: Pointer) -> str:
    return f"{pointer.name}[{_index(pointer)}]"


def _index(pointer: Pointer) -> str:
    step = pointer.steps[-1] if pointer.steps else 0
    terms = ["i" if step == 1 else f"i * {step}"] if step else []
    for table, stride in pointer.lookups:
        terms.append(_element(table) + (f" * {stride}" if stride != 1 else ""))
    return " + ".join(terms) or "0"


def _declared(pointer: Pointer, blocked: bool) -> str:
    parts = [pointer.base]
    if pointer.position.offset:
        parts.append(str(pointer.position.offset))
    for k, step in enumerate(pointer.steps[:-1]):
        if step:
            parts.append(f"i{k} * {step}")
    parts += [f"{table.name}[0] * {stride}" for table, stride in pointer.starts]
    if blocked and pointer.along:
        parts.append(f"s * {pointer.along}")
    kind = "const long" if pointer.integers else "real" if pointer.writes else "const real"
    return f"{kind} *const {pointer.name} = {' + '.join(parts)};"
