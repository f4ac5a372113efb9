"""The options that every run takes, each defined once: keyword, command line, checkpoint, checks.

A new option needs only a field of `RunOptions` and the code that reads it: `solve` takes it as a
keyword, the command line as `--name`, multistart and resumed runs pass it on, and errors list it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, get_args, get_type_hints

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.hints import option_hint
from slomodel.solve.options import choice, flag, listed, number, whole
from slomodel.solve.status import Sense

Check = Callable[[str, object], object]
"""(name, value): raises DomainError for a value that the option does not accept."""


@dataclass(frozen=True, slots=True)
class RunOption:
    """The meaning of an option, and the check of its values; None is checked only if not allowed.

    `meaning` is the sentence of `--help`, with the default in brackets; empty for an option that is
    not on the command line. `trajectory`: the iterates depend on it, so that a run can be resumed
    only with the same value; the other options are budgets, which may change.
    """

    meaning: str
    check: Check
    trajectory: bool = False


def _at_least(low: int) -> Check:
    return lambda name, value: whole(name, value, low)


def _nonnegative(name: str, value: object) -> float:
    return number(name, value, 0.0, closed=True)


def _sense(name: str, value: object) -> str:
    return choice(name, value, ("minimize", "maximize"))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that every run takes; DomainError for the first one out of its range."""

    sense: Annotated[Sense, RunOption("", _sense)] = "minimize"
    gtol: Annotated[
        float,
        RunOption(
            "Stop when the gradient norm is below this times min(1, max(|f|, gradient norm at the "
            "start)); with auto, by the predicted change of f and x too [1e-6].",
            _nonnegative,
            trajectory=True,
        ),
    ] = 1e-6
    scaled: Annotated[
        bool,
        RunOption(
            "With --no-scaled, stop when the gradient norm is below --gtol itself.",
            flag,
            trajectory=True,
        ),
    ] = True
    max_iter: Annotated[int, RunOption("Maximal number of iterations [100000].", _at_least(0))] = (
        100_000
    )
    max_time: Annotated[float | None, RunOption("Time limit in seconds.", _nonnegative)] = None
    max_nfev: Annotated[
        int | None, RunOption("Maximal number of evaluations of the objective.", _at_least(1))
    ] = None
    seed: Annotated[
        int,
        RunOption("Seed of the random start and of samples [0].", _at_least(0), trajectory=True),
    ] = 0
    verify: Annotated[
        bool,
        RunOption("Check the theorems' inequalities on the run.", flag, trajectory=True),
    ] = False
    second_order: Annotated[
        bool | None,
        RunOption(
            "Leave saddles along negative curvature, and report the curvature at the end.",
            flag,
            trajectory=True,
        ),
    ] = None
    ctol: Annotated[
        float,
        RunOption(
            "Largest violation of a constraint that counts as none [1e-9].",
            _nonnegative,
            trajectory=True,
        ),
    ] = 1e-9

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if not (value is None and DEFAULTS[name] is None):
                option.check(name, value)
        if self.verify and self.second_order:
            message = "verify checks the theorems of the method, and second_order takes other steps"
            raise DomainError(Diagnostic("E604", message, help="leave one of the two out"))

    @staticmethod
    def of(given: Mapping[str, object]) -> tuple[RunOptions, dict[str, object]]:
        """Split the given options into the run options and those of the method."""
        own: dict[str, Any] = {name: value for name, value in given.items() if name in OPTIONS}
        of_method = {k: v for k, v in given.items() if k not in own}
        try:
            return _checked(**own), of_method
        except TypeError:  # of values that cannot be hashed
            return RunOptions(**own), of_method

    def trajectory(self) -> dict[str, object]:
        """The options that the iterates depend on, by name."""
        return {name: getattr(self, name) for name, one in OPTIONS.items() if one.trajectory}


@lru_cache(maxsize=16, typed=True)
def _checked(**own: Any) -> RunOptions:
    """Cached, since the checks take as long as a few steps."""
    return RunOptions(**own)


_TYPES = get_type_hints(RunOptions, include_extras=True)
OPTIONS: dict[str, RunOption] = {name: get_args(kind)[1] for name, kind in _TYPES.items()}
DEFAULTS = {one.name: one.default for one in fields(RunOptions)}


def type_of(name: str) -> type:
    """The type of an option's values: bool, int, float or str."""
    kind = get_args(_TYPES[name])[0]
    return next((t for t in (bool, int, float) if t is kind or t in get_args(kind)), str)


COMMON = (
    "method",
    "x0",
    *(name for name in OPTIONS if name != "sense"),
    "callback",
    "progress",
    "threads",
    "checkpoint",
    "resume",
    "starts",
    "hops",
    "workers",
)
"""The options that `Model.solve` takes with every method."""


def check_names(method: str, given: Mapping[str, object], taken: Iterable[str]) -> None:
    """Raise an error if some given option is not one that the method takes."""
    taken = tuple(taken)
    for name in given:
        if name in taken:
            continue
        raise DomainError(
            Diagnostic(
                "E604",
                f"{method} has no option {name!r}; it takes {listed(taken)}; "
                f"every run takes {listed(COMMON)}",
                help=option_hint(name, (*taken, *COMMON)),
            )
        )
