"""Targets: how an entry becomes source text and a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout

Vector = NDArray[np.float64]
Maker = Callable[[Mapping[str, Vector]], Callable[..., float]]
"""Constructs a function of vectors from data by name; the last vector receives the arrays."""


@runtime_checkable
class CompiledTarget(Protocol):
    """A target whose compiler runs beside this process.

    `begin` starts to compile an entry; the result waits for it and constructs the maker. It returns
    None where it is not yet known that the entry is compiled.
    """

    def begin(
        self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]
    ) -> Callable[[], Maker] | None: ...


class Target(Protocol):
    """A language or library that source is generated for.

    `source` is the text that runs; `maker` compiles one entry. `on_device` says that vectors may be
    CuPy arrays. For a target that produces text only, `instead` names the option to use for running
    a model; it is empty for the others. `require` raises TargetLimit where the target cannot run.
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
