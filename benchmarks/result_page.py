"""A page of `results/`: rows of named models, measured in a process of their own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchmarks.machine import description, run_again

RESULTS = Path(__file__).parent / "results"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[Row]):
    """The command line of a benchmark: `about` what it times, and the title of its page.

    `script` is its file. `rows` measures the models of these names, all if there are none, with
    short runs if `quick`; `row` is their class, and `text` their tables. `threads` are those of the
    process.
    """

    script: str
    title: str
    about: str
    row: Callable[..., Row]
    rows: Callable[[Sequence[str], bool], Sequence[Row]]
    text: Callable[[Sequence[Row]], str]
    threads: int = 1

    def run(self, arguments: Sequence[str] | None) -> Sequence[Row]:
        """Print the page, or write it; return its rows, none where they are printed as JSON."""
        module = Path(self.script).stem
        path = RESULTS / f"{module}.md"
        parser = argparse.ArgumentParser(description=self.about)
        parser.add_argument("names", nargs="*", help="models, by default all")
        parser.add_argument("--quick", action="store_true", help="short runs")
        parser.add_argument("--write", action="store_true", help=f"write results/{path.name}")
        parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
        options = parser.parse_args(arguments)
        if options.here:
            rows: Sequence[Any] = self.rows(options.names, options.quick)
            print(json.dumps([asdict(row) for row in rows]))
            return []
        chosen = [*options.names, *(["--quick"] if options.quick else [])]
        records = run_again(self.script, [*chosen, "--here"], "kept", self.threads)
        assert isinstance(records, list)
        own = [self.row(**record) for record in records]
        facts = "\n".join(f"- {key}: {value}" for key, value in description(self.threads).items())
        text = f"{facts}\n\n{self.text(own)}"
        if options.write:
            source = f"Printed by `python -m benchmarks.{module} --write`; the module explains it."
            path.write_text(f"# {self.title}\n\n{source}\n\n{text}\n", encoding="utf-8")
        else:
            print(text)
        return own
