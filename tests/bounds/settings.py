"""Settings of bounds from the text of a model."""

from __future__ import annotations

import numpy as np

import slomodel
from slomodel.bounds import Setting


def setting(text: str, centre: list[float], **data: object) -> Setting:
    """The setting of a model at a centre (n,)."""
    model = slomodel.compile(text, data=data)
    found = model._setting(np.asarray(centre, dtype=float))
    assert isinstance(found, Setting)
    return found
