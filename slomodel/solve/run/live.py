"""The display of a run in progress: a live line on a terminal or in a notebook, or an object."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, cast

from slomodel.solve.options import bad_value
from slomodel.solve.run.monitor import Progress, State

# The drawing library is loaded only by runs that are displayed.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class LiveLine:
    """One line on standard error, redrawn at each update and removed at the end."""

    def __init__(
        self, console: Console, max_time: float | None, counted: str, measure: str
    ) -> None:
        from rich.live import Live

        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._counted = counted
        self._measure = measure
        self._limit = "" if max_time is None else f" of {max_time:g}"

    def update(self, state: State) -> None:
        self._live.start()
        self._live.update(self._line(state), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def _line(self, state: State) -> Text:
        from rich.text import Text

        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{self._counted} {state.k:<9,}", style="bold")
        line.append(f"  f {state.fun:<15.8g}")
        line.append(f"  {self._measure} {state.gradient_norm:<10.3e}", style="cyan")
        line.append(f"  {state.time:.1f}{self._limit} s", style="dim")
        return line


class NotebookLine:
    """One line in the output of a notebook's cell, replaced at each update, empty at the end."""

    def __init__(
        self, shell: NotebookShell, max_time: float | None, counted: str, measure: str
    ) -> None:
        self._display = shell
        self._handle: NotebookHandle | None = None
        self._counted = counted
        self._measure = measure
        self._limit = "" if max_time is None else f" of {max_time:g}"

    def update(self, state: State) -> None:
        self._show(
            f"{self._counted} {state.k:,}   f {state.fun:.8g}   "
            f"{self._measure} {state.gradient_norm:.3e}   {state.time:.1f}{self._limit} s"
        )

    def close(self) -> None:
        if self._handle is not None:
            self._show("")

    def _show(self, text: str) -> None:
        bundle = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class NotebookHandle(Protocol):
    """An output of a cell that can be replaced."""

    def update(self, bundle: dict[str, str], /, *, raw: bool) -> None: ...


class NotebookShell(Protocol):
    """IPython's `display`."""

    def __call__(
        self, bundle: dict[str, str], /, *, raw: bool, display_id: bool
    ) -> NotebookHandle: ...


def notebook_display() -> NotebookShell | None:
    """IPython's `display` within a kernel of a notebook, otherwise None."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    is_kernel = shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
    return cast(NotebookShell, display) if is_kernel else None


def live_line(
    max_time: float | None, counted: str = "iteration", measure: str = "‖∇f‖"
) -> Progress | None:
    """The live line of a run; None without a terminal or notebook; `counted` is what k counts."""
    shell = notebook_display()
    if shell is not None:
        return NotebookLine(shell, max_time, counted, measure)
    from rich.console import Console

    console = Console(file=sys.stderr, highlight=False)
    return LiveLine(console, max_time, counted, measure) if console.is_terminal else None


def display_of(
    progress: object,
    max_time: float | None,
    counted: str = "iteration",
    measure: str = "‖∇f‖",
) -> Progress | None:
    """The requested display: the live line for True; None for None, False or without a terminal.

    `counted` names the units that the line counts, `measure` the norm that the tolerance is for.
    Raises DomainError for an object that is not a display.
    """
    if progress is None or progress is False:
        return None
    if progress is True:
        return live_line(max_time, counted, measure)
    if isinstance(progress, Progress) and not isinstance(progress, type):
        return progress
    wanted = "True, False or an object with update(state) and close()"
    raise bad_value("progress", wanted, progress)
