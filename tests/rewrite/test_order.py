"""The order of nodes in memory must not show: two processes generate the same code."""

from __future__ import annotations

import subprocess
import sys

TEXTS = (
    "x * y * z * u * sqrt(w + 1) - x * y * z * u * sqrt(w)",
    "x * y * z * u * w / (1 + x * exp(y) * sin(z)) + y * x * z * exp(x) * exp(u) / (1 + exp(w))",
    "log(exp(x) * y^2 * z^3 * w) + x * y * z / (y * z * w * u) + x^y * x^z * u^w * u^x",
)
PROGRAM = """
import sys
from slomodel.ir.node import Expr
factor = int(sys.argv[1])
Expr.__hash__ = lambda node: (id(node) >> 4) * factor & 0x7FFFFFFFFFFF
import slomodel
for text in sys.argv[2:]:
    model = "var x, y, z, u, w\\nminimize " + text
    print(slomodel.compile(model, backend="numpy").source())
"""


def test_hashes_of_nodes_do_not_change_generated_code() -> None:
    sources = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, multiplier, *TEXTS],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for multiplier in ("1", "11400714819323198485")
    ]
    assert sources[0] == sources[1]
    assert sources[0].count("def ") >= len(TEXTS)
