"""The kernel of a region without axes: numbers, computed one after another by one thread."""

from __future__ import annotations

from slomodel.codegen.cuda.kernel import Kernel, kernel
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.loops.fusion import Fusion, Region
from slomodel.codegen.program import Form
from slomodel.ir.expr import Map


def scalar_kernel(name: str, region: Region, regions: Fusion, names: DeviceNames) -> list[Kernel]:
    """Numbers computed by one thread."""
    names.begin()
    lines: list[str] = []
    written: list[str] = []
    for node in region.nodes:
        texts = []
        for read in regions.reads(node):
            access = regions.accesses.of(read.node)
            element = f"({names.base(access.base)})[{access.offset}]" if access.base.rank else ""
            texts.append(element or names.scalar(access.base))
        text = texts[0]
        if isinstance(node, Map) and regions.forms[node] is Form.ELEMENTWISE:
            text = node.function.spelling["c"].format(*texts)
        if node in regions.stored:
            written.append(names.base(node).split(" ", 1)[0])
            lines.append(f"({names.base(node)})[0] = {text};")
        else:
            lines.append(f"const real {names.scalar(node)} = {text};")
    return [kernel(name, names.taken, written, (1, 1), 1, lines)] if lines else []
