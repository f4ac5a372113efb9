"""Lints: checks of a model that warn of what it probably does not mean."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from slomodel.errors import Diagnostic, ModelSyntaxError, ModelWarning, NonsmoothWarning
from slomodel.problem import NONSMOOTH


def warn(found: Sequence[Diagnostic], strict: bool) -> None:
    """Issue a model's warnings; ModelSyntaxError for kinks where `strict`."""
    kinks = [warning for warning in found if warning.code == NONSMOOTH]
    if strict and kinks:
        raise ModelSyntaxError(*(replace(kink, severity="error") for kink in kinks))
    for warning in found:
        category = NonsmoothWarning if warning.code == NONSMOOTH else ModelWarning
        warnings.warn(warning.render(), category, stacklevel=3)
