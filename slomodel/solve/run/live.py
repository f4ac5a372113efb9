"""The display of a run in progress: a live line on a terminal, or a user-supplied object."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

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


def live_line(
    max_time: float | None, counted: str = "iteration", measure: str = "‖∇f‖"
) -> Progress | None:
    """The live line of a run, or None without a terminal; `counted` is what k counts."""
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
