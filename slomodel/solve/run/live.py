"""The line that shows a run while it goes on; on a terminal only."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.live import Live
from rich.text import Text

from slomodel.solve.run.monitor import Progress, State


class LiveLine:
    """One line on standard error, redrawn at each update and removed at the end."""

    def __init__(self, console: Console, max_time: float | None, counted: str) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._counted = counted
        self._limit = "" if max_time is None else f" of {max_time:g}"

    def update(self, state: State) -> None:
        self._live.start()
        self._live.update(self._line(state), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def _line(self, state: State) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{self._counted} {state.k:<9,}", style="bold")
        line.append(f"  f {state.fun:<15.8g}")
        line.append(f"  ‖∇f‖ {state.gradient_norm:<10.3e}", style="cyan")
        line.append(f"  {state.time:.1f}{self._limit} s", style="dim")
        return line


def live_line(max_time: float | None, counted: str = "iteration") -> Progress | None:
    """The display of a run, or None where nobody watches; `counted` is what k counts."""
    console = Console(file=sys.stderr, highlight=False)
    return LiveLine(console, max_time, counted) if console.is_terminal else None
