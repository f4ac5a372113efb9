"""Targets: how an entry becomes source text and a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout

Vector = NDArray[np.float64]
Maker = Callable[[Mapping[str, Vector]], Callable[..., float]]
"""Constructs a function of vectors from data by name; the last vector receives the arrays."""


class Target(Protocol):
    """What source is generated for: `source` is the text that runs, `maker` compiles one entry.

    `on_device` says that vectors may be arrays of CuPy. `instead` names the option to use in place
    of a target that is text alone; it is empty for one that runs. `require` raises TargetLimit
    where the target cannot run here.
    """

    @property
    def name(self) -> str: ...

    @property
    def on_device(self) -> bool: ...

    @property
    def instead(self) -> str: ...

    def require(self) -> None: ...

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str: ...

    def maker(
        self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]
    ) -> Maker: ...
