"""Selection of the source of Lipschitz constants from the options of a method."""

from __future__ import annotations

import numbers
from collections.abc import Mapping

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.proved import Analytic, AnalyticElseSampled, ProofSource
from slomodel.solve.constants.source import (
    SAMPLES,
    GivenFunction,
    GivenNumber,
    LipschitzSource,
    Sampled,
)
from slomodel.solve.options import bad_value, choice, number, whole

NAMES = ("auto", "analytic", "sampled")


def lipschitz_source(
    given: Mapping[str, object], prove: ProofSource | None, *, second: bool = False
) -> LipschitzSource:
    """Source of constants for the options `lipschitz`, `samples` and `safety`; `second`: with L2.

    `prove` is None for an objective that only computes values and gradients; `auto` then samples.
    """
    option = given.get("lipschitz", "auto")
    if isinstance(option, str):
        choice("lipschitz", option, NAMES)
        if option == "analytic":
            _require_no_samples(given)
            return Analytic(_required(prove))
        sampled = Sampled(
            samples=whole("samples", given.get("samples", SAMPLES), 1),
            safety=number("safety", given.get("safety", 1.0), 0.0),
            second=second,
        )
        if option == "sampled" or prove is None:
            return sampled
        return AnalyticElseSampled(Analytic(prove), sampled)
    _require_no_samples(given)
    if callable(option):
        return GivenFunction(option)
    if isinstance(option, numbers.Real):
        return GivenNumber(number("lipschitz", option, 0.0, closed=True))
    wanted = f"{', '.join(map(repr, NAMES))}, a number ≥ 0 or a function"
    raise bad_value("lipschitz", wanted, option)


def _require_no_samples(given: Mapping[str, object]) -> None:
    for name in ("samples", "safety"):
        if name in given:
            message = f"{name} is for sampled constants, and lipschitz gives them"
            raise DomainError(Diagnostic("E604", message, help=f"leave {name} or lipschitz out"))


def _required(prove: ProofSource | None) -> ProofSource:
    if prove is None:
        message = "lipschitz='analytic' needs a compiled model: plain functions have no bounds"
        remedy = "use 'sampled', a number or a function of centre and radius"
        raise DomainError(Diagnostic("E604", message, help=remedy))
    return prove
