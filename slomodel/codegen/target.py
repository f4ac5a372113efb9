"""What a target is: how it turns an entry into source and into a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout

Vector = NDArray[np.float64]
Maker = Callable[[Mapping[str, Vector]], Callable[..., float]]
"""Makes, of data by name, a function of vectors; the last one is filled where there are arrays."""


class Target(Protocol):
    """A backend: `source` is the text that runs, `maker` compiles the text of one entry."""

    @property
    def name(self) -> str: ...

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str: ...

    def maker(
        self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]
    ) -> Maker: ...
